"""Translation: training, greedy search and beam search beside ordinary PyTorch programs.

    python benchmarks/translate.py MODEL PREFIX [--from de --to en] [--batches 30] [--rounds 3]

MODEL is a trained folder (word vocabularies, LSTM, attention "general", placement "luong" without
feeding), PREFIX the parallel test files. Two ordinary programs stand beside it, of the same sizes:
"at once" runs torch's LSTM over the whole target as our default does, over packed sequences; "step
by step" feeds what went to the softmax back, as most published programs do, and so loops over the
target. The trained weights are put into the first one, and its greedy outputs must be ours before
anything is timed. Rates are target tokens a second in training (own batches of PREFIX) and
sentences a second in search: the best of the rounds, all in one process, turn and turn about.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.tasks.folder import load
from unrolled.tasks.run import use_machine
from unrolled.tasks.translate.model import Search, TranslateModel
from unrolled.tasks.translate.report import PairData
from unrolled.text.pair_batch import PairBatch
from unrolled.text.parallel import read_parallel
from unrolled.text.tokens import END, PAD, START
from unrolled.training.optimise import clip_gradients

ROWS = 64  # sentences at once, for the ordinary programs
WIDTH = 5
State = tuple[Tensor, Tensor]


# ------------------------------------------------------------------ the ordinary program


class Ordinary(nn.Module):
    """Bidirectional LSTM, Luong attention, LSTM: with torch.nn as everybody writes it."""

    def __init__(self, model: TranslateModel, *, feed: bool) -> None:
        super().__init__()
        settings = model.settings.model
        E, H, S = settings.embedding, settings.hidden_size, len(model.source.vocabulary)
        V = len(model.target.vocabulary)
        self.feed, self.size, self.smoothing = feed, E, settings.label_smoothing
        self.source = nn.Embedding(S, E, padding_idx=PAD)
        self.target = nn.Embedding(V, E, padding_idx=PAD)
        self.encoder = nn.LSTM(E, H, settings.layers, batch_first=True, bidirectional=True)
        self.decoder = nn.LSTM(E + E * feed, H, settings.layers, batch_first=True)
        self.bridge = nn.ModuleList([nn.Linear(2 * H, H, bias=False) for _ in range(2)])
        self.general = nn.Linear(2 * H, H, bias=False)
        self.readout = nn.Linear(3 * H, E, bias=False)
        self.output = nn.Linear(E, V)
        self.dropout = nn.Dropout(settings.dropout)

    def encode(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, State]:
        packed = pack_padded_sequence(
            self.dropout(self.source(tokens)), lengths, batch_first=True, enforce_sorted=False
        )
        out, last = self.encoder(packed)
        h, _ = pad_packed_sequence(out, batch_first=True)
        L, B = self.encoder.num_layers, len(tokens)
        state = []
        for part, bridge in zip(last, self.bridge, strict=True):
            both = part.view(L, 2, B, -1).transpose(1, 2).reshape(L, B, -1)
            state.append(bridge(both))
        return self.dropout(h), tokens != PAD, (torch.tanh(state[0]), state[1])

    def attend(self, s: Tensor, h: Tensor, real: Tensor) -> Tensor:
        scores = torch.bmm(s, self.general(h).transpose(1, 2))
        weights = scores.masked_fill(~real[:, None], float("-inf")).softmax(dim=2)
        return torch.tanh(self.readout(torch.cat([torch.bmm(weights, h), s], dim=2)))

    def forward(self, batch: PairBatch) -> Tensor:
        h, real, state = self.encode(batch.source.tokens, batch.source.lengths)
        inputs, targets = batch.target.shifted()
        x = self.dropout(self.target(inputs))
        readouts = self.steps(x, h, real, state) if self.feed else self.at_once(x, h, real, state)
        return functional.cross_entropy(
            self.output(self.dropout(readouts)).flatten(0, 1),
            targets.flatten(),
            ignore_index=PAD,
            label_smoothing=self.smoothing,
        )

    def at_once(self, x: Tensor, h: Tensor, real: Tensor, state: State) -> Tensor:
        return self.attend(self.decoder(x, state)[0], h, real)

    def steps(self, x: Tensor, h: Tensor, real: Tensor, state: State) -> Tensor:
        fed, readouts = x.new_zeros(len(x), 1, self.size), []
        for t in range(x.size(1)):
            s, state = self.decoder(torch.cat([x[:, t : t + 1], fed], dim=2), state)
            fed = self.attend(s, h, real)
            readouts.append(fed)
        return torch.cat(readouts, dim=1)

    def step(
        self, token: Tensor, state: State, fed: Tensor, h: Tensor, real: Tensor
    ) -> tuple[Tensor, State, Tensor]:
        x = self.target(token[:, None])
        s, state = self.decoder(torch.cat([x, fed], dim=2) if self.feed else x, state)
        fed = self.attend(s, h, real)
        return self.output(fed[:, 0]).log_softmax(dim=1), state, fed


@torch.no_grad()
def take_weights(program: Ordinary, model: TranslateModel) -> None:
    """Our trained weights in the ordinary program."""
    own = model.network
    program.source.weight.copy_(own.source_embedding.weight)
    program.target.weight.copy_(own.target_embedding.weight)
    program.encoder.load_state_dict(own.encoder.state_dict())
    if not program.feed:
        program.decoder.load_state_dict(own.decoder.state_dict())
    for linear, weight in zip(program.bridge, own.bridge, strict=True):
        linear.weight.copy_(weight)
    program.general.weight.copy_(own.attention.score.weight)
    program.readout.weight.copy_(own.readout)
    program.output.weight.copy_(own.output_weight)
    program.output.bias.copy_(own.bias)


def batches_of(model: TranslateModel, texts: list[str]) -> list[tuple[list[int], Tensor, Tensor]]:
    """64 texts at a time, of similar length."""
    rows = [[*model.source.encode(text).tolist(), END] for text in texts]
    order = sorted(range(len(rows)), key=lambda n: len(rows[n]))
    found = []
    for start in range(0, len(order), ROWS):
        numbers = order[start : start + ROWS]
        tokens = nn.utils.rnn.pad_sequence(
            [torch.tensor(rows[n]) for n in numbers], batch_first=True, padding_value=PAD
        )
        found.append((numbers, tokens, torch.tensor([len(rows[n]) for n in numbers])))
    return found


@torch.no_grad()
def greedy_ordinary(program: Ordinary, model: TranslateModel, texts: list[str]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in texts]
    for numbers, tokens, lengths in batches_of(model, texts):
        h, real, state = program.encode(tokens, lengths)
        token = torch.full((len(tokens),), START)
        fed, ended, written = h.new_zeros(len(h), 1, program.size), token == END, []
        for _ in range(int(model.network.longest) + 10):
            log_p, state, fed = program.step(token, state, fed, h, real)
            token = log_p.argmax(dim=1)
            written.append(token)
            ended |= token == END
            if ended.all():
                break
        for number, row in zip(numbers, torch.stack(written, dim=1).tolist(), strict=True):
            found[number] = row[: row.index(END)] if END in row else row
    return found


@torch.no_grad()
def beam_ordinary(program: Ordinary, model: TranslateModel, texts: list[str]) -> list[list[int]]:
    """Width 5, mean log-probability; a sentence is done when 5 hypotheses of it are."""
    found: list[list[int]] = [[] for _ in texts]
    K, V = WIDTH, len(model.target.vocabulary)
    for numbers, tokens, lengths in batches_of(model, texts):
        h, real, state = program.encode(tokens, lengths)
        B = len(tokens)
        h, real = h.repeat_interleave(K, dim=0), real.repeat_interleave(K, dim=0)
        state = tuple(part.repeat_interleave(K, dim=1) for part in state)
        token = torch.full((B * K,), START)
        fed = h.new_zeros(B * K, 1, program.size)
        scores = torch.full((B, K), float("-inf"))
        scores[:, 0] = 0.0
        history: list[list[int]] = [[] for _ in range(B * K)]
        done: list[list[tuple[float, list[int]]]] = [[] for _ in range(B)]
        for t in range(1, int(model.network.longest) + 11):
            log_p, state, fed = program.step(token, state, fed, h, real)
            total = (scores[:, :, None] + log_p.view(B, K, V)).view(B, -1)
            best, places = total.topk(2 * K, dim=1)
            rows, words, keep = [], [], []
            for b in range(B):
                kept = 0
                for score, place in zip(best[b].tolist(), places[b].tolist(), strict=True):
                    row, word = b * K + place // V, place % V
                    if word == END:
                        if len(done[b]) < K:
                            done[b].append((score / t, history[row]))
                    elif kept < K:
                        rows.append(row)
                        words.append(word)
                        keep.append(score)
                        kept += 1
            history = [[*history[row], word] for row, word in zip(rows, words, strict=True)]
            token, order = torch.tensor(words), torch.tensor(rows)
            scores = torch.tensor(keep).view(B, K)
            state, fed = tuple(part[:, order] for part in state), fed[order]
            if all(len(each) >= K for each in done):
                break
        for b, number in enumerate(numbers):
            found[number] = max(done[b], default=(0.0, history[b * K]))[1]
    return found


# ------------------------------------------------------------------ measuring


def train_rate(network: nn.Module, loss_of: Callable, batches: list[PairBatch]) -> float:
    """Target tokens a second."""
    train = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)
    network.train()
    tokens, began = 0, time.perf_counter()
    for batch in batches:
        train.zero_grad()
        loss_of(batch).backward()
        clip_gradients([p.grad for p in network.parameters() if p.grad is not None], 1.0)
        train.step()
        tokens += int((batch.target.lengths - 1).sum())
    network.eval()
    return tokens / (time.perf_counter() - began)


def rate(search: Callable[[], object], sentences: int) -> float:
    """Sentences a second."""
    began = time.perf_counter()
    search()
    return sentences / (time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("prefix")
    parser.add_argument("--from", dest="source", default="de")
    parser.add_argument("--to", dest="target", default="en")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    use_machine(options.threads)
    model = load(options.model)
    found, _ = read_parallel(options.prefix, options.source, options.target)
    pairs = found.pairs
    texts = [pair.source for pair in pairs]
    same, stepped = (Ordinary(model, feed=feed).eval() for feed in (False, True))
    for program in (same, stepped):
        take_weights(program, model)
    greedy, beam = Search(width=1), Search(width=WIDTH)

    ours = [list(model.target.encode(text)) for text in model.predict(texts, width=1)]
    theirs = greedy_ordinary(same, model, texts)
    equal = sum(a == b for a, b in zip(ours, theirs, strict=True)) / len(texts)
    print(f"greedy outputs that are equal: {equal:.1%} of {len(texts)}")
    assert equal > 0.98, "the programs do not compute the same"

    data = PairData.of(model, pairs)
    batches = list(data.batches(model.settings.train.batch_tokens).epoch(1, 0))
    batches = [batches[n % len(batches)] for n in range(options.batches)]

    def own_loss(batch: PairBatch) -> Tensor:
        loss = model.network.loss(batch)
        return loss.total / loss.count

    measures: dict[tuple[str, str], Callable[[], float]] = {
        ("training, tokens/s", "unrolled"): lambda: train_rate(model.network, own_loss, batches),
        ("training, tokens/s", "at once"): lambda: train_rate(same, same, batches),
        ("training, tokens/s", "step by step"): lambda: train_rate(stepped, stepped, batches),
        ("greedy, sentences/s", "unrolled"): lambda: rate(
            lambda: model.translate(texts, greedy), len(texts)
        ),
        ("greedy, sentences/s", "at once"): lambda: rate(
            lambda: greedy_ordinary(same, model, texts), len(texts)
        ),
        ("beam 5, sentences/s", "unrolled"): lambda: rate(
            lambda: model.translate(texts, beam), len(texts)
        ),
        ("beam 5, sentences/s", "at once"): lambda: rate(
            lambda: beam_ordinary(same, model, texts), len(texts)
        ),
    }
    best = dict.fromkeys(measures, 0.0)
    # Search comes first: training changes the weights, and with them how long outputs are.
    for key, measure in reversed(measures.items()):
        for _ in range(options.rounds):
            best[key] = max(best[key], measure())
    for (what, who), value in best.items():
        print(f"{what:22}{who:15}{value:12,.0f}{best[what, 'unrolled'] / value:8.2f}×")


if __name__ == "__main__":
    main()
