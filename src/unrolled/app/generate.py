"""`unrolled generate MODEL`: write text."""

from typing import Annotated

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Json, Model, Seed
from unrolled.app.output import note, print_json
from unrolled.app.progress import busy


def generate(
    model: Model,
    prompt: Annotated[str, typer.Option(help="Text to continue.")] = "",
    tokens: Annotated[int, typer.Option(help="At most this many further tokens.")] = 200,
    temperature: Annotated[float, typer.Option(help="0 takes the likeliest token.")] = 1.0,
    top_k: Annotated[int | None, typer.Option(help="Draw from the K likeliest.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Draw from this share of chance.")] = None,
    count: Annotated[int, typer.Option(help="How many texts.")] = 1,
    seed: Annotated[int | None, Seed] = None,
    json: Json = False,
) -> None:
    """Write text that continues the prompt."""
    loaded = load_for("generate", model)
    encoded = loaded.encoder.encode_lines(prompt.split("\n"))
    if encoded.unknown:
        note(f"Tokens of the prompt that the model does not know: {encoded.unknown}.")
    with busy("writing"):
        texts = loaded.generate(
            prompt,
            tokens=tokens,
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            count=count,
            seed=seed,
        )
    if json:
        print_json({"texts": texts})
    else:
        print("\n---\n".join(texts))
