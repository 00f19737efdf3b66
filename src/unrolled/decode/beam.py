"""Beam search: keep the K best beginnings, continue them all, keep the K best again.

Each step expands all K·V candidates of a sentence and keeps the K best by summed log-probability.
Of these, the ones that end are set aside; the others go on, and their candidates compete for all K
places in the next step. Nothing else is pruned, so that

- width 1 is greedy search, under every rule of stopping: when END is best, nothing goes on;
- a width of V^(T−1) prunes no beginning and finds the highest score that is found by trying all
  sequences of T tokens; a width of V^T prunes nothing and finds all of them in the same order.

A sentence ends when it has reached its limit, when nothing goes on, or by the rule `stop`:

    best    no open hypothesis can still win a place among the nbest: log-probabilities only fall,
            so log_p / limit^alpha is the highest score that it can come to
    ahead   no open hypothesis is worth more, as it stands, than the nbest that have ended; with
            alpha 0 the same as "best", else it may miss one that grows better by growing longer
    count   `count` hypotheses have ended, be they ever so unlikely
    limit   never

Results: finished hypotheses first, then those cut at the limit, each by score; of equal scores the
shorter comes first, then the one whose log-probability ranked higher. What a sentence gets never
depends on the others in its batch.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.decode.hypothesis import Hypothesis, check_alpha, check_limits, normalised
from unrolled.decode.paths import Paths
from unrolled.decode.results import Table, hypotheses
from unrolled.decode.stepper import State, Stepper
from unrolled.decode.topk import Candidates, best_candidates
from unrolled.errors import ConfigError, not_one_of, whole

MAX_WIDTH = 1000
STOPS = ("ahead", "best", "count", "limit")
PRUNED_SHOWN = 3  # a step and sentence, to a watcher


class BeamStep(NamedTuple):
    """One step of a search, for the n sentences that were still live, as plain arrays.

    The first K columns are what was kept, ended ones among them; further columns are the best of
    what was pruned.
    """

    sentences: NDArray[np.int64]  # (n,)
    parents: NDArray[np.int64]  # (n, K + pruned), the place in the step before, in 0..K − 1
    tokens: NDArray[np.int64]  # (n, K + pruned)
    log_p: NDArray[np.float64]  # (n, K + pruned), of all tokens so far; −inf: no candidate here
    ended: NDArray[np.bool_]  # (n, K + pruned), the token is END
    width: int  # K


@torch.inference_mode()
def beam_search(
    model: Stepper[State],
    state: State,
    first: Tensor,
    *,
    end: int,
    limits: Tensor,
    width: int = 5,
    alpha: float = 0.7,
    stop: str = "best",
    count: int | None = None,
    nbest: int = 1,
    banned: Collection[int] = (),
    watch: Callable[[BeamStep], None] | None = None,
) -> list[list[Hypothesis]]:
    """For each sentence its best hypotheses, best first: at least one, at most nbest.

    first (B,) is read first, by a state of B rows; limits (B,) is how many tokens a hypothesis may
    have, END among them. The state then has K = width rows for each sentence that is still live, in
    the order of the sentences, and rows that are selected stay in their sentence. alpha is the
    exponent of `normalised`. count is for the rule "count"; unless given it is the width.
    """
    rule = _Rule(stop=stop, count=width if count is None else count, alpha=alpha)
    _check(width=width, nbest=nbest, rule=rule)
    check_limits(limits)
    search = _Search(limits, end=end, width=width, nbest=nbest, rule=rule)
    never = torch.tensor([*banned], dtype=torch.long)
    state = model.select(state, search.live.repeat_interleave(width))
    token = first.repeat_interleave(width)  # (B · K,)
    while len(search.live):
        log_p, state = model.step(token, state)  # (n · K, V)
        log_p.index_fill_(1, never, -math.inf)
        found = search.candidates(log_p, pruned=PRUNED_SHOWN if watch else 0)
        if watch:
            watch(search.record(found))
        rows, token = search.keep(found)
        if len(rows):
            state = model.select(state, rows)
    return hypotheses(search.finished, search.cut, search.paths)


@dataclass(frozen=True)
class _Rule:
    """When a sentence need not go on to its limit."""

    stop: str
    count: int
    alpha: float

    def fulfilled(
        self, best: Tensor, lengths: tuple[int, Tensor], finished: Table, live: Tensor
    ) -> Tensor:
        """Which of the live sentences (n,) may stop; best (n,) is of those that are open.

        lengths are those that the open ones have, and that they may come to (n,).
        """
        now, most = lengths
        if self.stop == "count":
            return finished.added[live] >= self.count
        if self.stop in ("ahead", "best"):
            length = now if self.stop == "ahead" else most
            return normalised(best, length, self.alpha) <= finished.scores[live, -1]
        return torch.zeros_like(live, dtype=torch.bool)


class _Search:
    """The hypotheses of all sentences: open ones in `beam`, the others set aside."""

    def __init__(self, limits: Tensor, *, end: int, width: int, nbest: int, rule: _Rule) -> None:
        B = len(limits)
        self.limits, self.end, self.rule = limits, end, rule
        self.finished, self.cut = (Table(B, nbest, alpha=rule.alpha) for _ in range(2))
        self.paths = Paths(B, width)
        self.live, self.length = torch.arange(B), 0  # (n,)
        self.beam = torch.full((B, width), -math.inf, dtype=torch.float64)  # (n, K), −inf: no one
        self.beam[:, 0] = 0.0  # every sentence begins with one hypothesis, which is empty

    def candidates(self, log_p: Tensor, *, pruned: int) -> Candidates:
        """The best continuations (n, K + pruned), with the log-probabilities of all their tokens.

        They are ranked by what they are below the best, which float32 resolves however long they
        are, and summed in float64.
        """
        below = self.beam - self.beam.amax(dim=1, keepdim=True)  # (n, K)
        wanted = min(self.beam.size(1) + pruned, self.beam.size(1) * log_p.size(1))
        parents, tokens, own = best_candidates(log_p, below.to(log_p.dtype), wanted)
        return Candidates(parents, tokens, self.beam.gather(1, parents) + own)

    def keep(self, found: Candidates) -> tuple[Tensor, Tensor]:
        """Set aside what ends here; the rows that go on, out of n · K, and their tokens."""
        K = self.beam.size(1)
        parents, tokens, log_p = (part[:, :K] for part in found)  # (n, K)
        self.length += 1
        self.paths.append(self.live, parents, tokens)
        ended = tokens == self.end
        self.finished.add(self.live, log_p.masked_fill(~ended, -math.inf), self.length)
        beam, limits = log_p.masked_fill(ended, -math.inf), self.limits[self.live]
        at_limit, best = limits == self.length, beam.amax(dim=1)  # (n,)
        self.cut.add(self.live[at_limit], beam[at_limit], self.length)
        done = at_limit | (best == -math.inf)
        done |= self.rule.fulfilled(best, (self.length, limits), self.finished, self.live)
        stay = (~done).nonzero()[:, 0]
        self.live, self.beam = self.live[stay], beam[stay]
        return (stay[:, None] * K + parents[stay]).flatten(), tokens[stay].flatten()

    def record(self, found: Candidates) -> BeamStep:
        """What a watcher sees."""
        parents, tokens, log_p = (part.numpy().copy() for part in found)
        ended = (tokens == self.end) & np.isfinite(log_p)
        return BeamStep(self.live.numpy().copy(), parents, tokens, log_p, ended, self.beam.size(1))


def _check(*, width: int, nbest: int, rule: _Rule) -> None:
    if not 1 <= whole("width", width) <= MAX_WIDTH:
        raise ConfigError(
            f"width is {width}, but must be in 1..{MAX_WIDTH}. 1 is greedy search, 5 is usual."
        )
    if not 1 <= whole("nbest", nbest) <= width:
        raise ConfigError(
            f"nbest is {nbest}, but must be in 1..{width}, the width. "
            "Ask for fewer, or search wider."
        )
    if rule.stop not in STOPS:
        raise not_one_of("stop", rule.stop, STOPS)
    if whole("count", rule.count) < 1:
        raise ConfigError(
            f"count is {rule.count}, but must be at least 1. Leave it out for {width}."
        )
    check_alpha(rule.alpha)
