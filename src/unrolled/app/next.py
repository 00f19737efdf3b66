"""`unrolled next MODEL TEXT`: the next-token list."""

from typing import Annotated

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Json, Model
from unrolled.app.output import print_json


def next_tokens(
    model: Model,
    text: Annotated[str, typer.Argument(help="What stands before.", show_default=False)],
    top: Annotated[int, typer.Option(help="How many to list.")] = 10,
    json: Json = False,
) -> None:
    """List the likeliest next tokens with their probabilities."""
    suggestions = load_for("next", model).next(text, top=top)
    if json:
        print_json({"next": [suggestion._asdict() for suggestion in suggestions]})
        return
    for token, probability in suggestions:
        print(f"{probability:.4f}", visible(token), sep="\t")


def visible(token: str) -> str:
    """The token; in quotes and escaped where it could not be seen."""
    return token if token.isprintable() and token.strip() == token != "" else repr(token)
