"""`unrolled predict MODEL [INPUT]`: labels or tags, in the order of the input, as it is read."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Encoding, Model
from unrolled.app.predict_classify import predict_classes
from unrolled.app.predict_tag import predict_tags
from unrolled.app.progress import busy
from unrolled.errors import ConfigError

Json = Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")]


def predict(
    model: Model,
    data: Annotated[str, typer.Argument(help="A text file, .gz or .xz, or - for stdin.")] = "-",
    explain: Annotated[
        bool, typer.Option("--explain", help="Show each token's share (classifiers).")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Draw the shares: .png, .svg, .html (classifiers).")
    ] = None,
    tokens: Annotated[
        bool, typer.Option("--tokens", help="The input has a word a line (taggers).")
    ] = False,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Label each line, or tag its words."""
    from unrolled.text.corpus import read_lines

    loaded = load_for("predict", model)
    lines = read_lines(data, encoding=encoding)
    typed = data == "-" and sys.stdin.isatty()  # then each line is answered when it is there
    given: dict[str, Any] = {"json": json, "source": data, "at_once": 1 if typed else 256}
    with nullcontext() if sys.stdout.isatty() else busy(f"predicting {data}"):
        if loaded.settings.task == "tag":
            refuse("a tagger", explain=explain, out=out is not None)
            predict_tags(loaded, lines, tokens=tokens, **given)
        else:
            refuse("a classifier", tokens=tokens)
            predict_classes(loaded, lines, explain=explain, out=out, **given)


def refuse(kind: str, **options: bool) -> None:
    """Options that another kind of model has."""
    for name, given in options.items():
        if given:
            raise ConfigError(f"--{name} was given, but {kind} has no such option. Leave it away.")
