"""`unrolled score MODEL [INPUT]`: log-probability and perplexity of each line, then of all."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Encoding, Input, Json, Model
from unrolled.app.output import note, print_json
from unrolled.app.progress import busy

if TYPE_CHECKING:
    from unrolled.models.language import LanguageModel, LineScore

LINES_AT_ONCE = 256


def score(
    model: Model,
    data: Input = "-",
    rank: Annotated[bool, typer.Option("--rank", help="Likeliest line first.")] = False,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Say how likely each line is: log-probability, perplexity, tokens, unknown tokens, text."""
    from unrolled.text.corpus import read_lines

    lines = read_lines(data, encoding=encoding)
    typed = data == "-" and sys.stdin.isatty()  # then each line is answered when it is there
    source = "<stdin>" if data == "-" else data
    loaded = load_for("score", model)
    if loaded.network.caution:
        note(loaded.network.caution)
    scores = scored(loaded, lines, source=source, at_once=1 if typed else LINES_AT_ONCE)
    shown = sys.stdout.isatty() and not (json or rank)  # the lines themselves are a sign of life
    with nullcontext() if shown else busy(f"scoring {source}"):
        if rank:
            scores = iter(sorted(scores, key=lambda line: -line.log_probability))
        found = list(scores) if json else []
        total = summed(found if json else printed(scores), source)
    if json:
        print_json({"lines": [as_json(line) for line in found], "all": as_json(total)})
    else:
        print(*fields(total), total.text, sep="\t")


def scored(
    model: "LanguageModel", lines: Iterable[str], *, source: str, at_once: int
) -> "Iterator[LineScore]":
    """Scores in input order, a block of lines at a time; says why one is infinite."""
    lines, number = iter(lines), 0
    while block := list(islice(lines, at_once)):
        for line in model.score(block):
            number += 1
            if line.log_probability == -inf:
                note(f"{source}, line {number}: {reason(model, line.text)}.")
            yield line


def reason(model: "LanguageModel", text: str) -> str:
    """Why a line has no chance; what tells it is imported only then."""
    from unrolled.evaluate.language import why_impossible

    return why_impossible(model, text)


def printed(scores: "Iterable[LineScore]") -> "Iterator[LineScore]":
    """The scores, each printed as it passes."""
    for line in scores:
        print(*fields(line), line.text, sep="\t", flush=True)
        yield line


def summed(scores: "Iterable[LineScore]", source: str) -> "LineScore":
    """All lines as if they were one."""
    from unrolled.errors import DataError
    from unrolled.models.language import LineScore

    count, log_probability, tokens, unknown = 0, 0.0, 0, 0
    for line in scores:
        count, log_probability = count + 1, log_probability + line.log_probability
        tokens, unknown = tokens + line.tokens, unknown + line.unknown
    if not count:
        raise DataError(source, "holds no line to score.")
    return LineScore(f"all {count} lines", log_probability, tokens, unknown)


def fields(score: "LineScore") -> tuple[str, str, int, int]:
    """The columns before the text."""
    return f"{score.log_probability:.4f}", f"{score.perplexity:.4f}", score.tokens, score.unknown


def as_json(score: "LineScore") -> dict[str, Any]:
    """A score as plain values."""
    return {**score._asdict(), "perplexity": score.perplexity}
