"""Toy models to search in, exact to the bit row by row, and slow searches with dictionaries."""

import itertools
import math

import torch


class Hashed:
    """A Stepper whose next token depends on the sentence and on all tokens before.

    The state is a number that the sentence begins and every token changes; it names a row of a
    table of random distributions. A row is looked up, so neighbours cannot change a bit of it.
    """

    def __init__(self, V, seed, *, sharpness=1.5, end_bias=0.0, dtype=torch.float64):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(4999, V, dtype=torch.float64, generator=generator) * sharpness
        logits[:, 0] += end_bias  # END is 0
        self.table = logits.log_softmax(dim=1).to(dtype)
        self.V = V

    def step(self, token, state):
        state = (state * (self.V + 1) + token + 1) % 4999
        return self.table[state], state

    def select(self, state, rows):
        return state[rows]

    def log_p_after(self, source, tokens):
        """The same without tensors: the distribution after START (token V) and these tokens."""
        state = source
        for token in (self.V, *tokens):
            state = (state * (self.V + 1) + token + 1) % 4999
        return self.table[state].tolist()

    def forced(self, source, tokens):
        """log P of a sequence, token by token."""
        return math.fsum(self.log_p_after(source, tokens[:i])[t] for i, t in enumerate(tokens))


class Listed:
    """A Stepper from a dictionary: a sequence of tokens -> probabilities of the next."""

    def __init__(self, chances, V):
        self.chances, self.V = chances, V

    def step(self, token, state):
        state = [(*before, int(new)) for before, new in zip(state, token, strict=True)]
        rows = [self.chances.get(known[1:], {0: 1.0}) for known in state]
        p = torch.tensor([[row.get(v, 0.0) for v in range(self.V)] for row in rows])
        return p.double().log(), state

    def select(self, state, rows):
        return [state[row] for row in rows.tolist()]


class Steady:
    """A Stepper that knows how many steps it took: END is sure after `steps`, impossible before."""

    def __init__(self, V, steps, dtype=torch.float64):
        self.V, self.steps, self.dtype = V, steps, dtype

    def step(self, token, state):
        log_p = torch.full((len(token), self.V), -math.log(self.V - 1), dtype=self.dtype)
        log_p[:, 0] = -math.inf
        log_p[state + 1 == self.steps] = torch.tensor(
            [0.0] + [-math.inf] * (self.V - 1), dtype=self.dtype
        )
        return log_p, state + 1

    def select(self, state, rows):
        return state[rows]


def started(model, sources):
    """What a search in a Hashed model begins with: state and first token of these sentences."""
    return torch.tensor(sources), torch.full((len(sources),), model.V)


def score(log_p, length, alpha):
    return log_p / length**alpha


def reference_beam(model, source, *, limit, width, alpha, stop="best", count=None, nbest=1):
    """Beam search by the book: dictionaries, one sentence, one candidate at a time."""
    beam, finished, cut = {(): 0.0}, [], []
    for length in range(1, limit + 1):
        candidates = {
            (*tokens, token): log_p + own
            for tokens, log_p in beam.items()
            for token, own in enumerate(model.log_p_after(source, tokens))
        }
        kept = sorted(candidates.items(), key=lambda item: -item[1])[:width]
        for tokens, log_p in kept:
            if tokens[-1] == 0:
                finished.append((score(log_p, length, alpha), list(tokens[:-1]), True))
        beam = {tokens: log_p for tokens, log_p in kept if tokens[-1] != 0}
        finished.sort(key=lambda found: -found[0])
        if length == limit:
            cut = [(score(p, length, alpha), [*tokens], False) for tokens, p in beam.items()]
        if not beam or (stop == "count" and len(finished) >= (count or width)):
            break
        hope = max(score(log_p, limit, alpha) for log_p in beam.values())
        if stop == "best" and len(finished) >= nbest and hope <= finished[nbest - 1][0]:
            break
    return (finished + cut)[:nbest]


def brute_force(model, source, *, limit, alpha):
    """Every sequence, each scored by itself: (score, tokens, finished), best first."""
    found = []
    for length in range(1, limit + 1):
        for ids in itertools.product(range(model.V), repeat=length):
            ended, whole = ids[-1] == 0, length == limit
            if 0 not in ids[:-1] and (ended or whole):
                found.append((score(model.forced(source, ids), length, alpha), ids, ended))
    found.sort(key=lambda item: (not item[2], -item[0]))
    return [(value, [*ids[: len(ids) - ended]], ended) for value, ids, ended in found]


def plain(hypotheses):
    """(score, tokens, finished) of each, to compare with the searches here."""
    return [(found.score, found.tokens, found.finished) for found in hypotheses]


def assert_same(found, expected, *, tolerance=1e-12):
    """The same sequences in the same order, with scores equal but for rounding."""
    assert [item[1:] for item in found] == [item[1:] for item in expected]
    for (value, *_), (wanted, *_) in zip(found, expected, strict=True):
        assert math.isclose(value, wanted, rel_tol=tolerance, abs_tol=tolerance)
