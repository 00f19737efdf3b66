"""Options of sequence-to-sequence models that commands share: the pair, and the search."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.errors import ConfigError

if TYPE_CHECKING:
    from unrolled.models.translate import Search, TranslateModel

From = Annotated[
    str | None, typer.Option("--from", help="Parallel files: the ending of the source.")
]
To = Annotated[str | None, typer.Option("--to", help="Parallel files: the ending of the target.")]
Beam = Annotated[int | None, typer.Option(help="Hypotheses kept at each step; 1 is greedy.")]
Alpha = Annotated[
    float | None, typer.Option(help="Length exponent: 0 sums log-probabilities, 1 takes the mean.")
]
Stop = Annotated[str | None, typer.Option(help="When to stop: ahead, best, count or limit.")]
Nbest = Annotated[int | None, typer.Option(help="Outputs for each text.")]
MaxLength = Annotated[int | None, typer.Option(help="Tokens that an output may have.")]


def chosen_search(**options: Any) -> "Search":
    """The search that the given options ask for, defaults for the rest."""
    from unrolled.models.translate import Search

    return Search(**{name: value for name, value in options.items() if value is not None})


def pair_lines(
    model: "TranslateModel",
    data: str,
    *,
    encoding: str,
    languages: tuple[str | None, str | None],
) -> Iterable[str]:
    """The lines of one file with a tab between the sides, or of two parallel files."""
    from unrolled.text.corpus import read_lines
    from unrolled.text.parallel import read_parallel

    own = model.settings.languages.pair
    given = checked_pair(languages)
    if given and own and given != own:
        raise ConfigError(
            f"--from {given[0]} --to {given[1]} was given, but the model was trained from {own[0]} "
            f"to {own[1]}. Leave the options out, or choose another model."
        )
    pair = given or own
    if pair and (given or not (data == "-" or Path(data).is_file())):
        return read_parallel(data, *pair, encoding=encoding)
    return read_lines(data, encoding=encoding)


def checked_pair(languages: tuple[str | None, str | None]) -> tuple[str, str] | None:
    """Both languages or none."""
    source, target = languages
    if source and target:
        return source, target
    if source or target:
        raise ConfigError(
            f"--from is {source!r} and --to is {target!r}, but they belong together: give both, as "
            "in --from de --to en, or neither."
        )
    return None
