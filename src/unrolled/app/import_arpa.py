"""`unrolled import FILE.arpa --out DIR`: a model that another tool made, as a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from unrolled.app.options import Encoding
from unrolled.app.progress import busy


def import_arpa(
    data: Annotated[str, typer.Argument(help="An ARPA file, .gz or .xz, or - for standard input.")],
    out: Annotated[Path, typer.Option(help="The folder to make.", show_default=False)],
    encoding: Encoding = "utf-8",
) -> None:
    """Make a model folder from an ARPA file of n-grams."""
    from unrolled.models.ngram import read_arpa
    from unrolled.training.ngram import save_ngram

    with busy(f"reading {data}"):
        model = read_arpa(data, encoding=encoding)
        save_ngram(model, out, made="Read with unrolled from an ARPA file.")
    for name, value in model.about().items():
        print(f"{name}  {value}")
