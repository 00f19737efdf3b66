"""Options that several commands share, so that they read the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[Path, typer.Argument(help="A model folder.", show_default=False)]
Input = Annotated[str, typer.Argument(help="A text file, .gz or .xz, or - for standard input.")]
Encoding = Annotated[str, typer.Option(help="The text's encoding.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
Minutes = typer.Option(help="Train this long; the schedule fits itself to it.", min=0.001)
Seed = typer.Option(
    help="Where chance begins: the same seed, the same result.", min=0, max=2**63 - 1
)
Threads = typer.Option(help="Cores to use; 0 is all.", min=0, max=1024)
