"""What `unrolled predict` prints for a classifier: a label and its probability for each line.

--json prints one JSON object a line, so that results stream as the input does.
"""

import json as json_text
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unrolled.models.classify import ClassifyModel, Explanation, Prediction

LINES_AT_ONCE = 256
MOST_PICTURES = 20  # texts in one picture
BETWEEN = "|"  # parts the labels of one text


def predict_classes(
    model: "ClassifyModel",
    lines: Iterable[str],
    *,
    json: bool = False,
    explain: bool = False,
    out: Path | None = None,
    source: Path | str = "<input>",
    at_once: int = LINES_AT_ONCE,
) -> None:
    """Print a result for each line, in the order of the lines; `out` is a picture of the reasons.

    at_once 1 answers each line as soon as it is there.
    """
    if explain or out is not None:
        _print_explanations(model, lines, json=json, out=out)
        return
    for text, prediction in _predicted(model, lines, source, at_once):
        if json:
            _print_object({"text": text, **_plain(prediction, several=model.labels.several)})
        else:
            probabilities = (f"{p:.4f}" for p in prediction.probabilities)
            print(
                BETWEEN.join(prediction.labels), BETWEEN.join(probabilities), sep="\t", flush=True
            )


def _predicted(
    model: "ClassifyModel", lines: Iterable[str], source: Path | str, at_once: int
) -> "Iterator[tuple[str, Prediction]]":
    waiting = enumerate(lines, 1)
    while block := list(islice(waiting, at_once)):
        numbers, texts = [number for number, _ in block], [text for _, text in block]
        yield from zip(texts, model.predict(texts, source=source, lines=numbers), strict=True)


def _plain(prediction: "Prediction", *, several: bool) -> dict[str, Any]:
    if several:
        pairs = zip(prediction.labels, prediction.probabilities, strict=True)
        return {"labels": dict(pairs)}
    return {"label": prediction.labels[0], "probability": prediction.probabilities[0]}


def _print_explanations(
    model: "ClassifyModel", lines: Iterable[str], *, json: bool, out: Path | None
) -> None:
    drawn: list[Explanation] = []
    for line in lines:
        explanation = model.explain(line)
        if json:
            _print_object({"text": line, **_reasons(explanation)})
        else:
            _print_reasons(explanation)
        if out is not None:
            drawn.append(explanation)
            _check_pictures(len(drawn))
    if drawn and out is not None:
        _draw(drawn, out)


def _reasons(explanation: "Explanation") -> dict[str, Any]:
    return {**explanation._asdict(), "shares": explanation.shares}


def _print_reasons(explanation: "Explanation") -> None:
    """The label, then a row a token: its attention if there is any, its share of the gradient."""
    print(explanation.label, f"{explanation.probability:.4f}", sep="\t")
    attention = explanation.attention
    print(*([] if attention is None else ["attention"]), "gradient", "token", sep="\t")
    for number, token in enumerate(explanation.tokens):
        weight = [] if attention is None else [f"{attention[number]:.4f}"]
        print(*weight, f"{explanation.shares[number]:+.4f}", token, sep="\t")
    print(flush=True)


def _draw(explanations: "Iterable[Explanation]", out: Path) -> None:
    from unrolled.charts import save, stack, token_shares

    charts = []
    for reason in explanations:
        title = f"{reason.label} ({reason.probability:.1%})"
        if reason.attention is not None:
            charts.append(
                token_shares(reason.tokens, reason.attention, name="attention", title=title)
            )
        name = "share of gradient × input"
        charts.append(token_shares(reason.tokens, reason.shares, name=name, title=title))
    save(stack(*charts), out)


def _check_pictures(count: int) -> None:
    from unrolled.errors import ConfigError

    if count > MOST_PICTURES:
        raise ConfigError(
            f"there are more than {MOST_PICTURES} texts, but a picture holds at most that many. "
            "Give fewer lines, or leave --out away."
        )


def _print_object(value: dict[str, Any]) -> None:
    print(json_text.dumps(value, ensure_ascii=False, allow_nan=False), flush=True)
