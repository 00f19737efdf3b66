"""Options: those that several commands share, and those that sections of settings make."""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic.fields import FieldInfo

from unrolled.config import checked, option_name
from unrolled.config.describe import choices, plain_type
from unrolled.config.sections import Section
from unrolled.errors import ConfigError

Model = Annotated[Path, typer.Argument(help="A model folder.", show_default=False)]
Input = Annotated[str, typer.Argument(help="A text file, .gz or .xz, or - for standard input.")]
Encoding = Annotated[str, typer.Option(help="The text's encoding.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Out = Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .html; .json for numbers.")]


def _bounded(option: str, low: float, high: float) -> Callable[[Any], Any]:
    """A check of an option's value that says what is allowed."""

    def check(value: Any) -> Any:
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{option} is {value}, but must be from {low:,} to {high:,}.")
        return value

    return check


Minutes = typer.Option(
    help="Train this long; the schedule fits itself to it.",
    callback=_bounded("--minutes", 0.001, 525_600),
)
Seed = typer.Option(
    help="Where chance begins: the same seed, the same result.",
    callback=_bounded("--seed", 0, 2**63 - 1),
)
Threads = typer.Option(help="Cores to use; 0 is all.", callback=_bounded("--threads", 0, 1024))

Kind = TypeVar("Kind", bound=Section)


def parameters(sections: Iterable[type[Section]]) -> dict[str, Parameter]:
    """What the fields of sections are on the command line, by name: the first of a name counts.

    A field without a default is an argument, every other one an option that may be left out.
    """
    found: dict[str, Parameter] = {}
    for section in sections:
        for name, field in section.model_fields.items():
            found.setdefault(name, _parameter(name, field))
    return found


def _parameter(name: str, field: FieldInfo) -> Parameter:
    words, plain = choices(field.annotation), plain_type(field.annotation)
    about: Any
    default: Any = None
    typed: Any = str if words else plain
    if field.is_required():
        about, default = typer.Argument(help=field.description, show_default=False), Parameter.empty
    elif plain is bool:
        about, default = typer.Option(_flag(name, field), help=field.description), False
    else:
        about, typed = typer.Option(_flag(name, field), help=_help(field)), typed | None
    annotation: Any = Annotated[typed, about]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _flag(name: str, field: FieldInfo) -> str:
    return option_name(field.alias or name)


def _help(field: FieldInfo) -> str:
    default = "" if field.default in (None, "") else f" \\[default: {field.default}]"
    return f"{field.description or ''}{default}"


def chosen(kind: type[Kind], known: Iterable[str], given: Mapping[str, Any], *, noun: str) -> Kind:
    """A section of what was given, of the `known` options; those of other models are refused."""
    values = {
        name: given[name] for name in known if given[name] is not None and given[name] is not False
    }
    for name in values.keys() - kind.model_fields.keys():
        raise ConfigError(
            f"{option_name(name)} was given, but a {noun} has no such option. Leave it out."
        )
    named = {kind.model_fields[name].alias or name: value for name, value in values.items()}
    return checked(kind, named, shown_as=option_name)
