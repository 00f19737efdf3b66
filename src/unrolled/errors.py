"""Every error a user can cause. Each says: what, the value seen, what is allowed, what to do.

UnrolledError
  ConfigError    a setting or an option is wrong     exit 2   names the setting
  DataError      an input file is wrong              exit 3   names file, line and column
  ModelError     a model folder is wrong or damaged  exit 4   names the folder and the file
  StorageError   the disk or a file refuses          exit 5   names the path
  NumericError   a number is no longer finite        exit 6   names step and tensor
  Stopped        a signal ended the work             exit 128 + signal, a checkpoint is saved
"""

import signal
from collections.abc import Iterable
from difflib import get_close_matches
from numbers import Real
from operator import index
from pathlib import Path

MOST_SHOWN = 200  # characters of a value in a message
LONGEST_PATH = 1000  # a name that the system refuses may be of any length


class UnrolledError(Exception):
    """Base class: the command prints these without a traceback and exits with `exit_code`."""

    exit_code = 1


class ConfigError(UnrolledError, ValueError):
    """A setting has a value that cannot work."""

    exit_code = 2


class DataError(UnrolledError, ValueError):
    """An input cannot be used; the place is named as exactly as it is known."""

    exit_code = 3

    def __init__(
        self,
        path: Path | str,
        problem: str,
        *,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        place = _cut(str(path), LONGEST_PATH)
        if line is not None:
            place += f", line {line}"
        if column is not None:
            place += f", column {column}"
        super().__init__(f"{place}: {problem}")
        self.path, self.line, self.column = path, line, column


class ModelError(UnrolledError):
    """A model folder is not what it should be."""

    exit_code = 4

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(f"{_cut(str(path), LONGEST_PATH)}: {problem}")
        self.path = path


class StorageError(UnrolledError, OSError):
    """A file cannot be read or written for a reason outside its content."""

    exit_code = 5

    def __init__(self, path: Path | str, problem: str) -> None:
        super().__init__(f"{_cut(str(path), LONGEST_PATH)}: {problem}")
        self.path = path


class NumericError(UnrolledError, ArithmeticError):
    """A loss, gradient or weight is not finite any more."""

    exit_code = 6


class Stopped(UnrolledError):  # noqa: N818  it is no mistake
    """A signal ended the work; what was reached is saved."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + signal_number


def ending_signals() -> list[int]:
    """Those that ask a program to end; not SIGHUP where it is ignored, as under nohup."""
    hang_up: int | None = getattr(signal, "SIGHUP", None)  # unknown to Windows
    ending: list[int] = [signal.SIGINT, signal.SIGTERM]
    if hang_up is not None and signal.getsignal(hang_up) is not signal.SIG_IGN:
        ending.append(hang_up)
    return ending


def shown(value: object) -> str:
    """A value from outside, for a message: escaped, and cut where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, or a list too deep
        text = f"a {type(value).__name__} that is too long to show"
    return _cut(text, MOST_SHOWN)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def whole(name: str, value: object) -> int:
    """A whole number, numpy's among them; a TypeError names what is none."""
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]  # it is the one who knows
    except TypeError as error:
        raise TypeError(f"{name} is {shown(value)}, but must be a whole number.") from error


def number(name: str, value: object) -> float:
    """A number; a TypeError names what is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} is {shown(value)}, but must be a number.")
    return float(value)


def not_one_of(setting: str, value: object, allowed: Iterable[str]) -> ConfigError:
    """ConfigError for a name outside a fixed set, with the nearest spelling if there is one."""
    names = sorted(allowed)
    bare = {name.lstrip("-"): name for name in names}  # dashes make all options alike
    text = value.lstrip("-") if isinstance(value, str) else ""
    near = get_close_matches(text[:MOST_SHOWN], bare, n=1)
    hint = f" Did you mean {bare[near[0]]!r}?" if near else ""
    return ConfigError(f"{setting} is {shown(value)}, but must be one of {', '.join(names)}.{hint}")
