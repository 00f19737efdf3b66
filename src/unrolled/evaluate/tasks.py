"""How the models of each task are evaluated on lines of text."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from unrolled.evaluate.classify import evaluate_classify
from unrolled.evaluate.language import evaluate_language
from unrolled.evaluate.report import Report
from unrolled.evaluate.tagging import evaluate_tagging
from unrolled.evaluate.translate import evaluate_translate

EVALUATE: dict[str, Callable[..., Report]] = {
    "lm": evaluate_language,
    "ngram": evaluate_language,
    "classify": evaluate_classify,
    "tag": evaluate_tagging,
    "translate": evaluate_translate,
    "window": evaluate_language,
}


def evaluate(model: Any, lines: Iterable[str], *, source: Path | str, **options: Any) -> Report:
    """The model's scores on a file's lines, beside the baselines'; a task may have options."""
    return EVALUATE[model.settings.task](model, lines, source=source, **options)
