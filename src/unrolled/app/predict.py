"""`unrolled predict MODEL [INPUT]`: labels, tags or other texts, in the order of the input."""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Encoding, Model, Seed
from unrolled.app.predict_classify import predict_classes
from unrolled.app.predict_tag import predict_tags
from unrolled.app.predict_translate import predict_outputs
from unrolled.app.progress import busy
from unrolled.app.search import Alpha, Beam, MaxLength, Nbest, Stop, chosen_search
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
    beam: Beam = None,
    alpha: Alpha = None,
    stop: Stop = None,
    nbest: Nbest = None,
    max_length: MaxLength = None,
    temperature: Annotated[
        float | None, typer.Option(help="Draw outputs at this temperature instead of searching.")
    ] = None,
    seed: Annotated[int | None, Seed] = None,
    encoding: Encoding = "utf-8",
    json: Json = False,
) -> None:
    """Label each line, tag its words, or translate it."""
    from unrolled.text.corpus import read_lines

    loaded = load_for("predict", model)
    lines = read_lines(data, encoding=encoding)
    typed = data == "-" and sys.stdin.isatty()  # then each line is answered when it is there
    given: dict[str, Any] = {"json": json, "at_once": 1 if typed else 256}
    options: dict[str, Any] = {"width": beam, "alpha": alpha, "stop": stop}
    options |= {"nbest": nbest, "max_length": max_length}
    drawing = {"temperature": temperature is not None, "seed": seed is not None}
    searching = {
        "beam": beam is not None,
        "alpha": alpha is not None,
        "stop": stop is not None,
        "nbest": nbest is not None,
    }
    writing = {**searching, "max-length": max_length is not None, **drawing}
    labelling = {"explain": explain, "out": out is not None}
    with nullcontext() if sys.stdout.isatty() else busy(f"predicting {data}"):
        if loaded.settings.task == "translate":
            refuse("a sequence-to-sequence model", tokens=tokens, **labelling)
            if temperature is not None:
                refuse("a model that draws its outputs (--temperature)", **searching)
            given |= {"temperature": temperature, "seed": seed}
            predict_outputs(loaded, lines, search=chosen_search(**options), **given)
        elif loaded.settings.task == "tag":
            refuse("a tagger", **writing, **labelling)
            predict_tags(loaded, lines, tokens=tokens, source=data, **given)
        else:
            refuse("a classifier", tokens=tokens, **writing)
            predict_classes(loaded, lines, explain=explain, out=out, source=data, **given)


def refuse(kind: str, **options: bool) -> None:
    """Options that another kind of model has."""
    for name, given in options.items():
        if given:
            raise ConfigError(f"--{name} was given, but {kind} has no such option. Leave it away.")
