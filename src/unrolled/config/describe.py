"""Settings in words: what each is, what it may be, and what it is when nothing is said."""

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from unrolled.config import option_name, sections
from unrolled.config.sections import Section

PAGE = """# Settings

Made by `make settings` from the lines that check them; `unrolled train TASK --help` shows them too.
A setting has one name, to be written in four ways:

| where | how |
|---|---|
| an option | `--hidden-size 200`; one that is true or false needs no value: `--bidirectional` |
| `--set` | `--set model.hidden_size=200`; the value is TOML, or a plain word |
| a TOML file (`--config`) | `hidden_size = 200` below `[model]`; `seed` stands at the top |
| Python | `unrolled.train("lm", settings={"model.hidden_size": 200}, …)` |

All settings in force are kept in `config.toml` of the model's folder. A dash is no value.
"""

NO_LIMIT = 2**31  # bounds from here on are there for the machine, not for people


class Setting(NamedTuple):
    """One setting of a task."""

    name: str  # dotted, as in --set
    default: str
    allowed: str
    about: str

    @property
    def section(self) -> str:
        """Its table in a TOML file; "" at the top."""
        return self.name.rpartition(".")[0]

    @property
    def option(self) -> str:
        """What it is called on the command line."""
        return option_name(self.name.rpartition(".")[2])


def settings_in_words(kind: type[Section], prefix: str = "") -> Iterator[Setting]:
    """Every setting that can be chosen, the sections one after the other."""
    inner = sections(kind)
    for name, field in kind.model_fields.items():
        if name in inner:
            yield from settings_in_words(inner[name], f"{prefix}{name}.")
        elif choices(field.annotation) != [field.default]:  # else there is nothing to choose
            allowed = in_words(field.annotation, field.metadata)
            yield Setting(prefix + name, shown(field.default), allowed, about(kind, name))


def about(kind: type[Section], name: str) -> str:
    """The description of a field, or of the one that it takes the place of."""
    fields: list[FieldInfo] = [
        base.model_fields[name]
        for base in kind.__mro__
        if issubclass(base, Section) and name in base.model_fields
    ]
    return next((field.description for field in fields if field.description), "")


def in_words(annotation: Any, bounds: list[Any]) -> str:
    """What a value may be."""
    plain = plain_type(annotation)
    if plain is bool:
        return "true or false"
    if found := choices(plain):
        return ", ".join(found)
    if plain is int:
        return _number("whole number", bounds)
    if plain is float:
        return _number("number", bounds)
    return "text" if plain is str else "whole numbers, with commas"


def plain_type(annotation: Any) -> Any:
    """The type of a value that is there."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (part for part in get_args(annotation) if part is not NoneType)
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def choices(annotation: Any) -> list[str]:
    """The words that a setting may be; none where it is no word of a list."""
    plain = plain_type(annotation)
    return [str(word) for word in get_args(plain)] if get_origin(plain) is Literal else []


def shown(value: Any) -> str:
    """A default as TOML would have it; a dash where there is none."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == ():
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _number(kind: str, bounds: list[Any]) -> str:
    limits = {name: _limit(bounds, name) for name in ("ge", "gt", "le", "lt")}
    if limits["ge"] and limits["le"]:
        return f"{kind} from {limits['ge']} to {limits['le']}"
    words = {"ge": "{} or more", "gt": "above {}", "le": "at most {}", "lt": "below {}"}
    told = [words[name].format(limit) for name, limit in limits.items() if limit]
    return ", ".join([kind, *told])


def _limit(bounds: list[Any], name: str) -> str:
    found = (getattr(bound, name, None) for bound in bounds)
    value = next((limit for limit in found if limit is not None), None)
    return "" if value is None or value >= NO_LIMIT else f"{value:,.10g}"


def settings_page(tasks: Mapping[str, type[Section]]) -> str:
    """The settings of each task as a page in Markdown."""
    return "\n".join([PAGE, *(_task_table(task, kind) for task, kind in tasks.items())])


def _task_table(task: str, kind: type[Section]) -> str:
    rows = (
        f"| `{s.name}` | {s.default} | {s.allowed} | {s.about} |" for s in settings_in_words(kind)
    )
    head = "| setting | default | what it may be | what it is |\n|---|---|---|---|"
    return f"## `unrolled train {task}`\n\n{head}\n" + "\n".join(rows) + "\n"
