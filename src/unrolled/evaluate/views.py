"""Pictures of a model and its data: what each shows, in numbers, in words and as a chart."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError
from unrolled.evaluate.bootstrap import Estimate, Floats, bootstrap
from unrolled.evaluate.labels import BINS
from unrolled.evaluate.measure import Measure, summed
from unrolled.evaluate.report import number
from unrolled.evaluate.shown import columns, visible
from unrolled.store.names import METRIC_ROWS
from unrolled.text.labels import Targets

MOST_LABELS = 30  # of a table of mistakes; the others are drawn as one
OTHERS = "(others)"
MOST_GROUPS = 8  # of examples by their length
MOST_TOKENS = 600  # whose surprise is drawn
Integers = NDArray[np.int64]


# ------------------------------------------------------------------ a run


class LossCurve(NamedTuple):
    """The loss of every step, and the cost on the dev data after every epoch."""

    steps: list[int]
    losses: list[float]
    dev_steps: list[int]
    dev_costs: list[float]
    same_unit: bool  # whether that cost is a loss, too

    def text(self) -> str:
        """A row an epoch; of a run without dev data, its last step."""
        if not self.dev_steps:
            last = [f"{self.steps[-1]:,}", number(self.losses[-1])]
            return columns([["step", "training loss"], last])
        rows = zip(self.dev_steps, self._until(), self.dev_costs, strict=True)
        lines = [[f"{step:,}", number(loss), number(cost)] for step, loss, cost in rows]
        return columns([["step", "training loss", "dev cost"], *lines])

    def _until(self) -> list[float]:
        """The mean loss of the steps since the evaluation before."""
        ends = np.searchsorted(self.steps, self.dev_steps, side="right")
        starts = [0, *ends[:-1]]
        losses = np.array(self.losses)
        pairs = zip(starts, ends, strict=True)
        return [float(losses[a:b].mean()) if b > a else float("nan") for a, b in pairs]

    def as_json(self) -> dict[str, Any]:
        """Every step."""
        return self._asdict()

    def chart(self) -> Any:
        """One picture where both have one unit, else one above the other."""
        from unrolled.charts import curves, loss_curve, stack

        if self.same_unit or not self.dev_steps:
            return loss_curve(
                self.steps, self.losses, dev_steps=self.dev_steps, dev_losses=self.dev_costs
            )
        dev = {"dev": (self.dev_steps, self.dev_costs)}
        title = "Cost on the dev data: the lowest is kept"
        below = curves(dev, x="step", y="dev cost", title=title)
        return stack(loss_curve(self.steps, self.losses, unit="nats"), below)


def loss_of_run(folder: Path, *, same_unit: bool) -> LossCurve:
    """What a run wrote down so far."""
    path = folder / METRIC_ROWS
    try:
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{folder} has no {METRIC_ROWS} that can be read, which a run that trains step by step "
            "writes. Name the folder of such a run."
        ) from error
    trained = [row for row in rows if "loss" in row]
    judged = [row for row in rows if row.get("dev_loss") is not None]
    if not trained:
        raise ConfigError(f"{path} holds no step yet. Wait for the first checkpoint, or train.")
    return LossCurve(
        [row["step"] for row in trained],
        [row["loss"] for row in trained],
        [row["step"] for row in judged],
        [row["dev_loss"] for row in judged],
        same_unit,
    )


# ------------------------------------------------------------------ labels


class Confusion(NamedTuple):
    """How often what is one label was given another: counts (K, K), a row a true label."""

    labels: list[str]
    counts: Integers

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Confusion":
        """From pairs of a true and a given label; the rarest are put together."""
        found = Counter(pairs)
        total: Counter[str] = Counter()
        for (true, said), count in found.items():
            total[true] += count
            total[said] += count
        kept = sorted(total, key=lambda label: (-total[label], label))[:MOST_LABELS]
        names = [*sorted(kept), *([OTHERS] if len(total) > len(kept) else [])]
        place = {name: k for k, name in enumerate(names)}
        counts = np.zeros((len(names), len(names)), np.int64)
        for (true, said), count in found.items():
            counts[place.get(true, len(names) - 1), place.get(said, len(names) - 1)] += count
        return cls(names, counts)

    def text(self) -> str:
        """A row a true label."""
        shown = [visible(label) for label in self.labels]
        rows = zip(shown, self.counts.tolist(), strict=True)
        return columns([["true \\ given", *shown], *([n, *map(str, row)] for n, row in rows)])

    def as_json(self) -> dict[str, Any]:
        """Labels and counts."""
        return {"labels": self.labels, "counts": self.counts.tolist()}

    def chart(self) -> Any:
        """Coloured by the share of each row."""
        from unrolled.charts import confusion

        return confusion(self.labels, self.counts, title="What was taken for what")


class Reliability(NamedTuple):
    """For each name and each bin of confidence: mean confidence, share right, how many."""

    bins: dict[str, list[tuple[float, float, int]]]

    @classmethod
    def of(cls, probabilities: Mapping[str, Floats], targets: Targets) -> "Reliability":
        """From what each says of N texts (N, K), over the bins of the calibration error."""
        return cls({name: _bins(own, targets) for name, own in probabilities.items()})

    def text(self) -> str:
        """A row a bin of each."""
        lines = [
            [name, number(confidence), number(right), f"{count:,}"]
            for name, rows in self.bins.items()
            for confidence, right, count in rows
        ]
        return columns([["", "confidence", "right", "count"], *lines])

    def as_json(self) -> dict[str, Any]:
        """The bins by name."""
        keys = ("confidence", "right", "count")
        return {
            name: [dict(zip(keys, row, strict=True)) for row in rows]
            for name, rows in self.bins.items()
        }

    def chart(self) -> Any:
        """Against the diagonal."""
        from unrolled.charts import Bins, reliability

        bins = {name: Bins(*zip(*rows, strict=True)) for name, rows in self.bins.items()}
        return reliability(bins, title="How often what is said with confidence is right")


def _bins(probabilities: Floats, targets: Targets) -> list[tuple[float, float, int]]:
    """Of answers; where labels are several, of every label's yes."""
    if targets.ndim == 2:
        known = targets[:, : probabilities.shape[1]]  # of the others nothing is said
        confidence, right = probabilities.ravel(), known.ravel().astype(np.float64)
    else:
        confidence = probabilities.max(axis=1)
        right = (probabilities.argmax(axis=1) == targets).astype(np.float64)
    bins = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
    return [
        (float(confidence[here].mean()), float(right[here].mean()), int(here.sum()))
        for here in (bins == k for k in range(BINS))
        if here.any()
    ]


# ------------------------------------------------------------------ over the length


class ByLength(NamedTuple):
    """A score of the examples of each length."""

    measure: str
    unit: str  # what lengths count
    lengths: list[float]  # the mean of each group
    counts: list[int]  # how many examples
    scores: list[Estimate]

    @classmethod
    def of(cls, measure: Measure, lengths: NDArray[np.integer], *, unit: str) -> "ByLength":
        """Examples in groups of similar length and about equal size."""
        cuts = np.unique(np.quantile(lengths, np.linspace(0, 1, MOST_GROUPS + 1)[1:-1]))
        group = np.searchsorted(cuts, lengths, side="left")
        rows = [np.flatnonzero(group == k) for k in range(len(cuts) + 1)]
        rows = [own for own in rows if len(own)]
        return cls(
            measure.score.name,
            unit,
            [float(lengths[own].mean()) for own in rows],
            [len(own) for own in rows],
            [_score_of(measure, own) for own in rows],
        )

    def text(self) -> str:
        """A row a group."""
        lines = [
            [
                f"{length:.1f}",
                f"{count:,}",
                f"{number(s.value)} [{number(s.low)}, {number(s.high)}]",
            ]
            for length, count, s in zip(self.lengths, self.counts, self.scores, strict=True)
        ]
        return columns([[f"{self.unit}, mean", "examples", self.measure], *lines])

    def as_json(self) -> dict[str, Any]:
        """A row a group."""
        rows = zip(self.lengths, self.counts, self.scores, strict=True)
        groups = [{"length": length, "count": n, **s._asdict()} for length, n, s in rows]
        return {"measure": self.measure, "unit": self.unit, "groups": groups}

    def chart(self) -> Any:
        """With a band for the 95 % intervals."""
        from unrolled.charts import length_curve

        return length_curve(
            self.lengths,
            {self.measure: [score.value for score in self.scores]},
            intervals={self.measure: [(score.low, score.high) for score in self.scores]},
            y_title=self.measure,
            x_title=self.unit,
            title=f"{self.measure} by length, with 95 % intervals",
        )


def _score_of(measure: Measure, rows: Integers) -> Estimate:
    counts = measure.counts[rows]
    of = {"": measure.of_sums}
    return bootstrap(lambda weights: summed(weights, counts), of, len(rows))[""]


# ------------------------------------------------------------------ a text


class Surprise(NamedTuple):
    """What each token of a text costs a language model, in nats."""

    tokens: list[str]
    nats: list[float]

    def text(self) -> str:
        """A row a token."""
        lines = [[visible(t), f"{n:.3f}"] for t, n in zip(self.tokens, self.nats, strict=True)]
        return columns([["token", "nats"], *lines])

    def as_json(self) -> dict[str, Any]:
        """Tokens and nats."""
        return self._asdict()

    def chart(self) -> Any:
        """The text, coloured."""
        from unrolled.charts import surprise

        return surprise(self.tokens, self.nats, title="What surprises the model")


def surprise_of(tokens: Sequence[str], nats: Sequence[float]) -> Surprise:
    """The beginning of a text, as much of it as a picture holds."""
    return Surprise(list(tokens[:MOST_TOKENS]), list(nats[:MOST_TOKENS]))
