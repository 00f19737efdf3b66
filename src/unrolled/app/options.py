"""Options: those that several commands share, and those that sections of settings make."""

from collections.abc import Callable, Iterable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from pydantic.fields import FieldInfo

from unrolled.config import checked, option_name, sections
from unrolled.config.describe import choices, plain_type
from unrolled.config.sections import RunSettings, Section
from unrolled.errors import ConfigError
from unrolled.tasks import AnyTask
from unrolled.tasks.task import NoOptions

Model = Annotated[Path, typer.Argument(help="A model folder.", show_default=False)]
Input = Annotated[
    str,
    typer.Argument(help="A file as train reads it, or plain text; .gz, .xz; - is standard input."),
]
Encoding = Annotated[str, typer.Option(help="The text's encoding.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
WithInput = Annotated[
    bool, typer.Option("--with-input", help="Write each answer beside its input, as that stood.")
]
Out = Annotated[Path | None, typer.Option(help="Draw it: .png, .svg or .html; .json for numbers.")]


def _bounded(option: str, low: float, high: float) -> Callable[[Any], Any]:
    """A check of an option's value that says what is allowed."""

    def check(value: Any) -> Any:
        if value is not None and not low <= value <= high:
            raise ConfigError(f"{option} is {value}, but must be from {low:,} to {high:,}.")
        return value

    return check


Minutes = typer.Option(
    help="Time for the whole run; the schedule follows the clock, so the bytes of two runs differ.",
    callback=_bounded("--minutes", 0.001, 525_600),
)
Seed = typer.Option(
    help="Where chance begins: the same seed, the same result.",
    callback=_bounded("--seed", 0, 2**63 - 1),
)
Threads = typer.Option(help="Cores to use; 0 is all.", callback=_bounded("--threads", 0, 1024))

ARGUMENT = {"argument": True}  # of a field that may be left out and yet is no option

Kind = TypeVar("Kind", bound=Section)
Settings = TypeVar("Settings", bound=RunSettings)
DATA = "data"  # the section of how files are read


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
    elif field.json_schema_extra == ARGUMENT:
        about, plain = typer.Argument(help=field.description, show_default=False), plain | None
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


def data_parameters(tasks: Iterable[AnyTask]) -> dict[str, Parameter]:
    """What tasks' settings say of how files are read, as options."""
    found = (sections(task.settings).get(DATA) for task in tasks)
    return parameters(section for section in found if section is not None)


def with_data(
    settings: Settings, known: Iterable[str], given: Mapping[str, Any], *, noun: str
) -> Settings:
    """A model's settings with the options that say how a file is to be read."""
    own = getattr(settings, DATA, NoOptions())
    values = chosen(type(own), known, given, noun=noun).model_dump(exclude_unset=True)
    return settings.model_copy(update={DATA: own.model_copy(update=values)}) if values else settings


def without_format(settings: Settings) -> Settings:
    """Settings as they are for inputs, which need not be written as the training data were."""
    data = getattr(settings, DATA, None)
    if data is None:
        return settings
    return settings.model_copy(update={DATA: data.model_copy(update={"format": None})})


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
