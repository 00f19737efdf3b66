"""The `unrolled` command: its list of commands, and how every run of it ends."""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException
from typer.main import get_command

from unrolled.app.commands.compare import compare_models
from unrolled.app.commands.demo import demo
from unrolled.app.commands.evaluate import evaluate_command
from unrolled.app.commands.export import export
from unrolled.app.commands.import_ import import_model
from unrolled.app.commands.info import info
from unrolled.app.commands.lab import lab_application
from unrolled.app.commands.plot import plot
from unrolled.app.commands.train import train
from unrolled.app.commands.use import use_command, uses
from unrolled.app.commands.vectors import vectors_application
from unrolled.app.help import TrainCommand, name_types
from unrolled.app.output import note
from unrolled.errors import Stopped, StorageError, UnrolledError, ending_signals

ABOUT = "Recurrent sequence models, from raw text to a trained model, on the machine you have."
MORE_OPTIONS = {"allow_extra_args": True, "ignore_unknown_options": True}  # a task's settings


def commands() -> dict[str, Callable[..., None]]:
    """Every command, in the order of the work; the tasks say what models can be used for."""
    return {
        "demo": demo,
        "train": train,
        "evaluate": evaluate_command(),
        "compare": compare_models,
        **{name: use_command(name) for name in uses()},
        "plot": plot,
        "info": info,
        "export": export,
        "import": import_model,
    }


def application() -> typer.Typer:
    """The command line of the tasks that there are."""
    app = typer.Typer(
        name="unrolled",
        help=ABOUT,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, function in commands().items():
        more: dict[str, Any] = (
            {"cls": TrainCommand, "context_settings": MORE_OPTIONS} if name == "train" else {}
        )
        app.command(name, **more)(function)
    app.add_typer(vectors_application())
    app.add_typer(lab_application())
    app.callback()(options)
    return app


def show_version(wanted: bool) -> None:
    """Print the version and leave."""
    if wanted:
        from importlib.metadata import version

        print(f"unrolled {version('unrolled')}")
        raise typer.Exit


def options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=show_version),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 is done, every other exit code is listed in errors.py."""
    try:
        with terminable(), connected(), writable():
            command = get_command(application())
            name_types(command)
            code = command(args=arguments, prog_name="unrolled", standalone_mode=False) or 0
        return complain("stopped.", code) if code == 128 + signal.SIGINT else code
    except KeyboardInterrupt:
        return complain("stopped.", 128 + signal.SIGINT)
    except UnrolledError as error:
        return complain(str(error), error.exit_code)
    except TyperException as error:
        return complain(wording(error), 2) if str(error) else 2
    except BrokenPipeError:  # the reader of our output has left: nothing to say, nowhere to say it
        return 0
    except OSError as error:
        refused = StorageError(error.filename or "the output", f"{error.strerror or error}.")
        return complain(str(refused), refused.exit_code)
    except (MemoryError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "allocate memory" not in str(error):
            raise
        return complain("there is not enough memory for this. Ask for less at once.", 5)


def complain(message: str, exit_code: int) -> int:
    """Say what is wrong on stderr, and hand the exit code on."""
    note(f"unrolled: {message}")
    return exit_code


def wording(error: TyperException) -> str:
    """What typer has against the command line, and where help is."""
    context = getattr(error, "ctx", None)
    problem = error.format_message().rstrip(".").replace("Input should", "it must")
    end = "" if problem.endswith("?") else "."
    return f"{problem}{end} See `{context.command_path if context else 'unrolled'} --help`."


@contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP end the work as Ctrl-C does: what was begun is cleared up."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number, "stopped.")

    others = [number for number in ending_signals() if number != signal.SIGINT]
    before = {number: signal.signal(number, stop) for number in others}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def connected() -> Iterator[None]:
    """Streams for those that the caller has closed (`>&-`): else the next file that is opened would
    be taken for one of them. Who reads, is refused; who has nowhere to print, at once.
    """
    unreadable, closed = "w", sys.stdout is None
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, unreadable))  # noqa: SIM115  as long as we live
    if closed:
        raise StorageError("<stdout>", "is closed, but results are printed there; redirect it.")
    yield


@contextmanager
def writable() -> Iterator[None]:
    """Standard output that shows what its encoding lacks, and whose failure is noticed here."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
        sys.stdout.flush()
    except UnrolledError:
        raise
    except SystemExit:  # typer's answer to a broken pipe
        abandon_output()
        raise BrokenPipeError from None
    except OSError as error:
        if error.filename is None:
            abandon_output()
        raise


def abandon_output() -> None:
    """Let what is still in the buffer go nowhere: Python would try again when it ends."""
    if sys.__stdout__ is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno())
