"""`unrolled lab padding`: what padding does to quality where nobody masks it.

Nothing in this package reads padding: lengths go in. So the study does by itself what is often done
elsewhere: rows are filled up to one length, and

    lengths               nothing beyond a row's length is read or learned
    padding read          the network reads on through the padding; only words are learned
    padding learned       it also learns that padding is padding, and counts that as right

A tagger of two directions meets the padding before it has read a word from the right. A classifier
that takes the last state meets it after its text, and has to carry what it knows through it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.errors import ConfigError
from unrolled.evaluate.shown import columns
from unrolled.lab.memory import one_thread
from unrolled.lab.tagged_text import Tagged
from unrolled.nn.cells import LSTMCell
from unrolled.nn.recurrent import Recurrent
from unrolled.text.conll import TaggedSentence
from unrolled.training.optimise import clip_gradients

PAD, UNKNOWN = 0, 1
MOST_WORDS = 20_000
LONGEST = 4096  # places of a row at most
TAGGERS = ("lengths", "padding read", "padding learned")
CLASSIFIERS = ("lengths", "padding read")
AT_ONCE = 32  # sentences of a batch
MORE = 4  # updates of a classifier for one of a tagger, which has an answer a word to learn from
RATE = 0.01
COUNTED = "same, padding counted"


class Rows(NamedTuple):
    """Sentences as numbers."""

    words: Tensor  # (B, T), filled up with PAD
    tags: Tensor  # (B, T), filled up with PAD
    lengths: Tensor  # (B,)

    def of(self, places: Any) -> "Rows":
        """Some of them."""
        return Rows(*(part[places] for part in self))


class Reader(nn.Module):
    """Words in, an LSTM over them, and scores at each place or of the last state."""

    def __init__(self, words: int, outputs: int, *, hidden: int, last: bool) -> None:
        super().__init__()
        self.last = last
        self.embed = nn.Embedding(words, hidden)
        self.stack = Recurrent(hidden, hidden, cell=LSTMCell(), bidirectional=not last)
        self.head = nn.Linear(hidden if last else 2 * hidden, outputs)

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        """Scores (B, T, outputs), or (B, outputs) of the last state."""
        y, (h, *_) = self.stack(self.embed(words), lengths=lengths)
        scores: Tensor = self.head(h[-1] if self.last else y)
        return scores


class Way(NamedTuple):
    """What is read and learned of the rows."""

    last: bool  # a classifier
    reads: bool  # on through the padding
    learns: bool  # that padding is padding

    def lengths(self, rows: Rows) -> Tensor:
        """Up to where the network reads."""
        return torch.full_like(rows.lengths, rows.words.size(1)) if self.reads else rows.lengths

    def asked(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Which scores are wanted, as a mask, and the right answers."""
        if self.last:
            return torch.ones_like(rows.lengths, dtype=torch.bool), clauses(rows)
        real = torch.arange(rows.words.size(1)) < rows.lengths[:, None]
        mask = torch.ones_like(real) if self.learns else real
        return mask, rows.tags[mask]


def clauses(rows: Rows) -> Tensor:
    """What a classifier is asked of a made-up sentence: how many commas, 0 to 3."""
    return (rows.tags == rows.tags.max()).sum(dim=1).clamp(max=3)


# ------------------------------------------------------------------ sentences as rows


def numbered(data: Tagged, *, factor: int) -> tuple[Rows, Rows, int, int]:
    """Both parts as rows, filled up to `factor` times the longest; numbers of words and tags.

    The punctuation mark of made-up sentences has the last tag.
    """
    counts = Counter(word for sentence in data.train for word in sentence.words)
    words = {word: 2 + i for i, (word, _) in enumerate(counts.most_common(MOST_WORDS))}
    every = [*data.train, *data.test]
    names = sorted({tag for s in every for tag in s.tags}, key=lambda tag: (tag == "PUNCT", tag))
    tags = {tag: 1 + i for i, tag in enumerate(names)}
    T = factor * max(len(sentence.words) for sentence in every)
    if T > LONGEST:
        raise ConfigError(
            f"rows would be filled up to {T:,} places, but {LONGEST:,} are allowed. Leave out the "
            "longest sentences."
        )
    train, test = (_rows(part, words, tags, T) for part in (data.train, data.test))
    return train, test, len(words) + 2, len(tags) + 1


def _rows(
    sentences: Sequence[TaggedSentence], words: Mapping[str, int], tags: Mapping[str, int], T: int
) -> Rows:
    B = len(sentences)
    ids, gold = np.full((B, T), PAD), np.full((B, T), PAD)
    for row, sentence in enumerate(sentences):
        n = len(sentence.words)
        ids[row, :n] = [words.get(word, UNKNOWN) for word in sentence.words]
        gold[row, :n] = [tags[tag] for tag in sentence.tags]
    lengths = torch.tensor([len(sentence.words) for sentence in sentences])
    return Rows(torch.from_numpy(ids), torch.from_numpy(gold), lengths)


# ------------------------------------------------------------------ learning and asking


def learn(model: Reader, rows: Rows, way: Way, *, updates: int, seed: int) -> None:
    """Adam on sentences drawn by the seed."""
    draw = np.random.default_rng(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE)
    for update in range(updates):
        some = rows.of(torch.from_numpy(draw.integers(len(rows.lengths), size=AT_ONCE)))
        mask, answers = way.asked(some)
        loss = functional.cross_entropy(model(some.words, way.lengths(some))[mask], answers)
        optimiser.zero_grad(set_to_none=False)
        loss.backward()  # type: ignore[no-untyped-call]
        clip_gradients([p.grad for p in model.parameters() if p.grad is not None], 1.0)
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1.0 - update / updates)
        optimiser.step()


@torch.no_grad()
def right(model: Reader, rows: Rows, way: Way) -> tuple[float, float]:
    """The share of right answers, and what it would be with padding counted."""
    honest, counted = [], []
    for start in range(0, len(rows.lengths), 256):
        some = rows.of(slice(start, start + 256))
        said = model(some.words, way.lengths(some)).argmax(dim=-1)
        mask, answers = way._replace(learns=False).asked(some)
        honest.append(said[mask] == answers)
        mask, answers = way.asked(some)
        counted.append(said[mask] == answers)
    return tuple(float(torch.cat(parts).double().mean()) for parts in (honest, counted))  # type: ignore[return-value]


# ------------------------------------------------------------------ the study


@dataclass(frozen=True)
class Padding:
    """Shares of right answers by how far rows are filled up, a row a seed, in each way."""

    places: tuple[int, ...]
    mean_length: float
    found: Mapping[str, list[list[float]]]

    def mean(self, name: str) -> list[float]:
        """Over the seeds."""
        return [float(value) for value in np.mean(self.found[name], axis=0)]

    def text(self) -> str:
        """A line a way."""
        seeds = len(next(iter(self.found.values())))
        head = [f"right, {seeds} seeds; rows filled up to", *(f"{n} places" for n in self.places)]
        rows = [[name, *(f"{share:.1%}" for share in self.mean(name))] for name in self.found]
        last = f"A sentence has {self.mean_length:.1f} words on average."
        return columns([head, *rows]) + "\n" + last

    def as_json(self) -> dict[str, Any]:
        """Every value."""
        return {
            "places": list(self.places),
            "mean_length": self.mean_length,
            "right": dict(self.found),
        }

    def chart(self) -> Any:
        """The share over the places; the band is from the worst to the best seed."""
        from unrolled.charts import length_curve

        bands = {
            name: [(min(column), max(column)) for column in zip(*rows, strict=True)]
            for name, rows in self.found.items()
            if len(rows) > 1
        }
        return length_curve(
            self.places,
            {name: self.mean(name) for name in self.found},
            intervals=bands,
            y_title="share of right answers",
            x_title="places that every row is filled up to",
            title="What unmasked padding does",
        )


def padding(
    data: Tagged,
    *,
    classify: bool = True,
    factors: Sequence[int] = (1, 2, 4, 8),
    hidden: int = 32,
    updates: int = 50,
    seeds: Sequence[int] = (1, 2, 3),
    tell: Any = lambda _: None,
) -> Padding:
    """Every way at every amount of padding; `classify` asks of made-up sentences alone."""
    ways = {f"tagger, {name}": _way(name, last=False) for name in TAGGERS}
    if classify:
        ways |= {f"classifier, {name}": _way(name, last=True) for name in CLASSIFIERS}
    found: dict[str, list[list[float]]] = {}
    places = []
    for factor in factors:
        train, test, words, tags = numbered(data, factor=factor)
        places.append(train.words.size(1))
        for name, way in ways.items():
            for number, seed in enumerate(seeds):
                with one_thread(), torch.random.fork_rng(devices=[]):
                    torch.manual_seed(seed)
                    model = Reader(words, 4 if way.last else tags, hidden=hidden, last=way.last)
                    times = MORE if way.last else 1
                    learn(model, train, way, updates=times * updates, seed=seed)
                    honest, counted = right(model, test, way)
                _note(found, name, number, honest)
                if way.learns:
                    _note(found, COUNTED, number, counted)
                tell(f"padding: {name}, {places[-1]} places, seed {seed}")
    mean = float(torch.cat([train.lengths, test.lengths]).double().mean())
    return Padding(tuple(places), mean, found)


def _way(name: str, *, last: bool) -> Way:
    return Way(last, reads=name != "lengths", learns=name == "padding learned")


def _note(found: dict[str, list[list[float]]], name: str, seed: int, value: float) -> None:
    rows = found.setdefault(name, [])
    if seed == len(rows):
        rows.append([])
    rows[seed].append(value)
