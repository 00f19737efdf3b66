"""Settings: read TOML, override, check, write back.

A setting has the same name in a TOML file, in `--set section.key=value` and in Python. A misspelt
name or a value out of bounds is a ConfigError that says what is allowed; nothing is ignored.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import ValidationError

from unrolled.config.sections import RunSettings, Section
from unrolled.errors import (
    MOST_SHOWN,
    ConfigError,
    StorageError,
    UnrolledError,
    not_one_of,
    shown,
)

MAX_TOML = 100_000  # bytes
MAX_DOTS = 100  # in a line: parsing takes time that grows with their square

Kind = TypeVar("Kind", bound=Section)
Run = TypeVar("Run", bound=RunSettings)


ALIASES = {  # what people type
    "lr": "learning_rate",
    "hidden": "hidden_size",
    "embed": "embedding_size",
    "embedding": "embedding_size",
}
BATCH_SIZE = (
    "{0} {1} counts examples, but batches are measured in tokens, padding included, so that long "
    "and short ones take alike memory and time. Give --batch-tokens: examples times their usual "
    "length."
)


def sections(kind: type[Section]) -> dict[str, type[Section]]:
    """The sections of a settings class, by name."""
    found = {}
    for name, field in kind.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            found[name] = field.annotation
    return found


def settings_for(
    kind: type[Run], *, file: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> Run:
    """The defaults of a task's settings, then the file's values, then overrides by dotted name."""
    task = kind.model_fields["task"].default
    values = read_toml(file) if file else {}
    if values.get("task", task) != task:
        raise ConfigError(f"{file}: task is {shown(values['task'])}, but {task!r} was asked for.")
    for name, value in (overrides or {}).items():
        _put(values, name, value)
    return checked(kind, values)


def read_toml(file: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        with file.open("rb") as stream:
            return parse_toml(stream.read(MAX_TOML + 1))
    except OSError as error:
        raise StorageError(file, f"cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise ConfigError(f"{file}: {error}") from error


def parse_toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML text; ValueError for what is none, or larger than any settings are."""
    if len(data) > MAX_TOML:
        raise ValueError(f"has more than {MAX_TOML} bytes, but settings have fewer.")
    if any(line.count(b".") > MAX_DOTS for line in data.splitlines()):
        raise ValueError(f"has a line of more than {MAX_DOTS} dots, but no name of a setting has.")
    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not valid TOML: {str(error)[:MOST_SHOWN]}.") from error


def parse_overrides(items: Iterable[str]) -> dict[str, Any]:
    """`section.key=value` strings as a mapping; a value is TOML, or a plain word."""
    values = {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--set {shown(item)} is not of the form section.key=value.")
        values[name.strip()] = _toml_value(text.strip())
    return values


def parse_options(kind: type[RunSettings], options: Sequence[str]) -> dict[str, Any]:
    """`--hidden-size 200 --direct` as settings by their dotted names.

    An option is the last part of a setting's name; one without a value switches it on.
    """
    known = {
        key: f"{name}.{key}"
        for name, section in sections(kind).items()
        for key in section.model_fields
    }
    task = kind.model_fields["task"].default
    values = {}
    for option, text in _with_values(options):
        key = option.removeprefix("--").replace("-", "_")
        key = key if key in known else ALIASES.get(key, key)
        if key == "batch_size" and key not in known:
            raise ConfigError(BATCH_SIZE.format(option, text or "N"))
        if text is None and key.removeprefix("no_") in known:
            values[known[key.removeprefix("no_")]] = not key.startswith("no_")
            continue
        if not option.startswith("--") or key not in known:
            raise not_one_of(f"option of train {task}", option, map(option_name, known))
        values[known[key]] = _toml_value(str(text))
    return values


def _with_values(options: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Each option and what follows it, or None where the next option does."""
    waiting = [part for option in options for part in option.split("=", 1)]
    while waiting:
        option = waiting.pop(0)
        has_value = option.startswith("--") and waiting and not waiting[0].startswith("--")
        yield option, waiting.pop(0) if has_value else None


def option_name(key: str) -> str:
    """`--hidden-size` of hidden_size."""
    return f"--{key.replace('_', '-')}"


def checked(
    kind: type[Kind], values: Mapping[str, Any], *, shown_as: Callable[[str], str] = str
) -> Kind:
    """An instance of `kind`, or a ConfigError about the first thing that is wrong."""
    try:
        made = kind.model_validate(dict(values))
    except ValidationError as error:
        raise _config_error(kind, error, shown_as) from None
    except ValueError:  # a number of more digits than pydantic can show
        _refuse_long_numbers(values, shown_as)
        raise
    _refuse_long_numbers(made.model_dump(), shown_as)
    return made


def _refuse_long_numbers(values: Mapping[str, Any], shown_as: Callable[[str], str]) -> None:
    """Refuse whole numbers that TOML cannot hold."""
    for name, value in flat(values).items():
        for number in value if isinstance(value, list | tuple) else [value]:
            if isinstance(number, int) and not -(2**63) <= number < 2**63:
                raise ConfigError(
                    f"{shown_as(name)} is {shown(value)}, but whole numbers have at most 63 bits "
                    "here."
                )


def to_toml(settings: RunSettings) -> str:
    """The settings as TOML; reading it back gives an equal value."""
    return tomli_w.dumps(settings.model_dump(exclude_none=True))


def flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        inner = isinstance(value, Mapping)
        found |= flat(value, f"{prefix}{name}.") if inner else {prefix + name: value}
    return found


def _toml_value(text: str) -> Any:
    try:
        return parse_toml(f"value = {text}".encode())["value"]
    except ValueError:
        return text


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    if name.count(".") > MAX_DOTS:
        raise ConfigError(f"--set {shown(name)}: no setting has so many parts.")
    *sections, key = name.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {name}: {section} is a value, not a section.")
    values[key] = value


def _config_error(
    kind: type[Section], error: ValidationError, shown_as: Callable[[str], str]
) -> UnrolledError:
    first = error.errors(include_url=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, UnrolledError):
        return cause
    name = shown_as(".".join(str(part) for part in first["loc"])[:MOST_SHOWN])
    if first["type"] == "extra_forbidden":
        return _unknown_key(kind, [str(part) for part in first["loc"]])
    if first["type"] == "literal_error":
        return not_one_of(name, first["input"], re.findall(r"'([^']*)'", first["ctx"]["expected"]))
    allowed = first["msg"].replace("Input should", "must")
    return ConfigError(f"{name} is {shown(first['input'])}, but {allowed}.")


def _unknown_key(kind: type[Section], path: list[str]) -> ConfigError:
    for section in path[:-1]:
        kind = sections(kind)[section]
    where = f"setting in section {'.'.join(path[:-1])}" if path[:-1] else "setting"
    return not_one_of(where, path[-1], kind.model_fields)
