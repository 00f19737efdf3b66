"""What a classifier says of a text: labels with their probabilities, and the reasons."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

BETWEEN = "|"  # parts the labels of one text


class Prediction(NamedTuple):
    """What a model says of a text: one label, or those of several that it has."""

    labels: tuple[str, ...]
    probabilities: tuple[float, ...]  # of these labels


class Explanation(NamedTuple):
    """How much each token speaks for a label.

    attention   the weights of the model's own attention, which sum to 1; None where it has none
    gradient    gradient × input: Σ_e x_te ∂z/∂x_te of the token's vector x_t, z being the log-odds
                of the label (Simonyan et al. 2014, arXiv:1312.6034; Denil et al. 2015,
                arXiv:1412.6815). A token below 0 speaks against it.
    """

    label: str
    probability: float
    tokens: list[str]
    attention: list[float] | None
    gradient: list[float]

    @property
    def shares(self) -> list[float]:
        """The gradient column scaled so that its absolute values sum to 1."""
        total = sum(map(abs, self.gradient)) or 1.0
        return [value / total for value in self.gradient]


class Explains(Protocol):
    """A model that can say why."""

    def explain(self, text: str) -> Explanation: ...


@dataclass(frozen=True)
class Labelled:
    """The answer for one text; its reasons are looked for when they are asked for."""

    model: Explains
    row: int
    given: str
    prediction: Prediction
    explained: bool
    multi_label: bool
    every: Prediction | None = None  # all labels, where they are asked for
    remarks: tuple[str, ...] = ()

    @cached_property
    def explanation(self) -> Explanation:
        """Each token's part in it."""
        return self.model.explain(self.given)

    def text(self) -> str:
        """The label and its probability; or all of them, or that and then a row a token."""
        if self.explained:
            return reasons(self.explanation)
        if self.every is not None:
            pairs = zip(*self.every, strict=True)
            return "\t".join(f"{label}\t{p:.4f}" for label, p in pairs)
        probabilities = (f"{p:.4f}" for p in self.prediction.probabilities)
        return "\t".join([BETWEEN.join(self.prediction.labels), BETWEEN.join(probabilities)])

    def as_json(self) -> dict[str, Any]:
        """The text, its labels or its reasons."""
        if self.explained:
            reason = self.explanation
            return {"text": self.given, **reason._asdict(), "shares": reason.shares}
        return {"text": self.given, **self._labels(), **self._every()}

    def _labels(self) -> dict[str, Any]:
        labels, probabilities = self.prediction
        if self.multi_label:
            return {"labels": dict(zip(labels, probabilities, strict=True))}
        return {"label": labels[0], "probability": probabilities[0]}

    def _every(self) -> dict[str, Any]:
        if self.every is None:
            return {}
        return {"probabilities": dict(zip(*self.every, strict=True))}

    def beside(self) -> dict[str, Any]:
        """The labels and their probabilities."""
        labels, probabilities = self.prediction
        if not self.multi_label:
            return {"predicted_label": labels[0], "probability": probabilities[0]}
        shown = BETWEEN.join(f"{p:.4f}" for p in probabilities)
        return {"predicted_labels": BETWEEN.join(labels), "probabilities": shown}

    def chart(self) -> Any:
        """The tokens' shares: of the attention if there is any, and of the gradient."""
        from unrolled.charts import stack, token_shares

        reason = self.explanation
        title = f"{reason.label} ({reason.probability:.1%})"
        columns = {"attention": reason.attention, "share of gradient × input": reason.shares}
        return stack(
            *(
                token_shares(reason.tokens, shares, name=name, title=title)
                for name, shares in columns.items()
                if shares is not None
            )
        )


def reasons(explanation: Explanation) -> str:
    """The label, then a row a token: its attention if there is any, its share of the gradient."""
    attention, shares = explanation.attention, explanation.shares
    head = [] if attention is None else ["attention"]
    rows = [[explanation.label, f"{explanation.probability:.4f}"], [*head, "gradient", "token"]]
    for number, token in enumerate(explanation.tokens):
        weight = [] if attention is None else [f"{attention[number]:.4f}"]
        rows.append([*weight, f"{shares[number]:+.4f}", token])
    return "\n".join(["\t".join(row) for row in rows] + [""])
