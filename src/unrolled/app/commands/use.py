"""A command for each use of the tasks: predict, score, generate, next, trace.

Its options are those of all tasks whose models can be used so. One that the model at hand does not
have is refused.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from inspect import Parameter, Signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from unrolled.app.options import Encoding, Input, Json, Model, Out, chosen, parameters
from unrolled.app.output import NUMBERS, draw, note, print_json, print_object, say
from unrolled.app.progress import busy
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS, AnyTask, task_named
from unrolled.tasks.task import Use

if TYPE_CHECKING:
    from unrolled.tasks.task import Answer

AT_ONCE = 256  # inputs answered together
MOST_PICTURES = 20  # answers in one picture
MOST_REMARKS = 20
LINES_NAMED = 10

Item = TypeVar("Item")


def uses() -> list[str]:
    """What models can do, each once."""
    return list(dict.fromkeys(name for task in TASKS.values() for name in task.uses))


def use_command(name: str) -> Callable[..., None]:
    """The function behind `unrolled NAME MODEL …`."""
    found = [task.uses[name] for task in TASKS.values() if name in task.uses]
    options = parameters(use.options for use in found)
    inputs = {} if found[0].by_line else parameters(use.input for use in found)

    def run(**given: Any) -> None:
        use_model(name, given, known=options)

    own: dict[str, tuple[Any, Any]] = {"model": (Model, Parameter.empty)}
    if found[0].by_line:
        own |= {"data": (Input, "-"), "encoding": (Encoding, "utf-8")}
    own |= {"out": (Out, None), "json": (Json, False)}
    shared = {
        key: Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in own.items()
    }
    every = {**shared, **inputs, **options}
    order = sorted(every.values(), key=lambda p: (p.name != "model", p.name in shared))
    run.__signature__ = Signature(order)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    run.__doc__ = " ".join(dict.fromkeys(use.help for use in found))
    return run


def use_model(name: str, given: dict[str, Any], *, known: Iterable[str]) -> None:
    """Load a model and print what it answers."""
    from unrolled.tasks.folder import load

    folder, out, json = given["model"], given["out"], given["json"]
    model = load(folder)
    task = task_named(model.settings.task)
    if name not in task.uses:
        able = " or ".join(f"`unrolled {other}`" for other in task.uses)
        raise ConfigError(
            f"{folder} holds a model of task {task.name!r}, which cannot {name}. Use {able}."
        )
    use = task.uses[name]
    options = chosen(use.options, known, given, noun=task.noun)
    if caution := model.caution(name):
        note(caution)
    source, blocks = asked(task, name, given, options)
    answers = model.answers(name, blocks, options, source=source)
    visible = sys.stdout.isatty() and use.by_line and not (json and use.document)
    with nullcontext() if visible else busy(f"{name}: {source}"):
        show(answers, use, source=source, out=out, json=json)


def asked(
    task: AnyTask, name: str, given: dict[str, Any], options: Any
) -> tuple[str, Iterator[Sequence[Any]]]:
    """Where the inputs come from, and they, some at a time: as they are typed, one by one."""
    use = task.uses[name]
    if not use.by_line:
        fields = {key: given[key] for key in use.input.model_fields if given[key] is not None}
        return str(given["model"]), iter([[use.input(**fields)]])
    from unrolled.text.corpus import read_lines

    data = given["data"]
    source = "<stdin>" if data == "-" else str(data)
    lines = read_lines(data, encoding=given["encoding"])
    at_once = 1 if data == "-" and sys.stdin.isatty() else AT_ONCE
    return source, in_blocks(task.inputs(lines, name, options, source=source), at_once)


def in_blocks(items: Iterable[Item], at_once: int) -> Iterator[list[Item]]:
    """Items, so many at a time."""
    waiting = iter(items)
    while block := list(islice(waiting, at_once)):
        yield block


def show(
    answers: "Iterable[Answer]", use: Use, *, source: str, out: Path | None, json: bool
) -> None:
    """Print the answers as they come, draw them, and say at the end what is to be known of them."""
    in_numbers = json or (out is None and not use.in_words)
    remarks: dict[str, list[int]] = {}
    values: list[Any] = []
    charts: list[Any] = []
    for answer in answers:
        for remark in answer.remarks:
            remarks.setdefault(remark, []).append(answer.row)
        if in_numbers or (out is not None and out.suffix == NUMBERS):
            values.append(answer.as_json())
        if out is not None and out.suffix != NUMBERS:
            charts.append(answer.chart())
            _check_pictures(len(charts))
        if in_numbers and use.document is None:
            print_object(values.pop() if out is None else values[-1])
        elif not in_numbers:
            say(answer.text())
    document = use.document or list
    if in_numbers and use.document is not None:
        print_json(document(values))
    if out is not None and out.suffix == NUMBERS:
        draw(document(values), out)
    elif charts and out is not None:
        from unrolled.charts import stack

        draw(stack(*charts) if len(charts) > 1 else charts[0], out)
    tell(remarks, source, by_line=use.by_line)


def tell(remarks: dict[str, list[int]], source: str, *, by_line: bool) -> None:
    """Each remark once, with the lines that it is about."""
    for remark, rows in list(remarks.items())[:MOST_REMARKS]:
        note(f"{source}, {_lines(rows)}: {remark}." if by_line else f"{remark}.")
    if len(remarks) > MOST_REMARKS:
        note(f"{source}: {len(remarks) - MOST_REMARKS} more remarks of this kind.")


def _lines(numbers: list[int]) -> str:
    named = ", ".join(map(str, numbers[:LINES_NAMED])) + (" …" * (len(numbers) > LINES_NAMED))
    return f"line {named}" if len(numbers) == 1 else f"{len(numbers):,} lines ({named})"


def _check_pictures(count: int) -> None:
    if count > MOST_PICTURES:
        raise ConfigError(
            f"there are more than {MOST_PICTURES} answers, but a picture holds at most that many. "
            "Give fewer lines, or leave --out away."
        )
