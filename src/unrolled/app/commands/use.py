"""A command for each use of the tasks: predict, score, generate, next, trace.

Its options are those of all tasks whose models can be used so. One that the model at hand does not
have is refused.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from unrolled.app.options import (
    Encoding,
    Input,
    Json,
    Model,
    Out,
    WithInput,
    chosen,
    data_parameters,
    parameters,
    with_data,
    without_format,
)
from unrolled.app.output import NUMBERS, draw, note, print_json, print_object, say
from unrolled.app.progress import busy
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS, task_named
from unrolled.tasks.task import Beside, Inputs, Use
from unrolled.text.records import Record
from unrolled.text.source import ArrivingLines, Source

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
    able = [task for task in TASKS.values() if name in task.uses]
    found = [task.uses[name] for task in able]
    options = parameters(use.options for use in found)
    by_line = found[0].by_line
    reading = data_parameters(able) if by_line else {}
    inputs = {} if by_line else parameters(use.input for use in found)

    def run(**given: Any) -> None:
        use_model(name, given, known=options, reading=reading)

    own: dict[str, tuple[Any, Any]] = {"model": (Model, Parameter.empty)}
    if by_line:
        own |= {"data": (Input, "-"), "encoding": (Encoding, "utf-8")}
        own |= {"with_input": (WithInput, False)}
    own |= {"out": (Out, None), "json": (Json, False)}
    shared = {
        key: Parameter(key, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for key, (annotation, default) in own.items()
    }
    every = {**shared, **inputs, **options, **reading}
    order = sorted(every.values(), key=lambda p: (p.name != "model", p.name in shared))
    run.__signature__ = Signature(order)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in order}
    run.__doc__ = " ".join(dict.fromkeys(use.help for use in found))
    return run


def use_model(
    name: str, given: dict[str, Any], *, known: Iterable[str], reading: Iterable[str]
) -> None:
    """Load a model and print what it answers."""
    from unrolled.tasks.folder import load

    folder, json = given["model"], given["json"]
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
    if use.by_line:
        settings = with_data(without_format(model.settings), reading, given, noun=task.noun)
        lines = Source(given["data"], given["encoding"]).arriving()
        asked = Asked.of(task.inputs(lines, name, settings, options), lines)
    else:
        fields = {key: given[key] for key in use.input.model_fields if given[key] is not None}
        asked = Asked(str(folder), [[use.input(**fields)]], {})
    answers = model.answers(name, asked.blocks, options, source=asked.source)
    visible = sys.stdout.isatty() and use.by_line and not (json and use.document)
    with nullcontext() if visible else busy(f"{name}: {asked.source}"):
        show(answers, use, asked, out=given["out"], json=json, beside=given.get("with_input"))


class Asked(NamedTuple):
    """Where inputs come from, they, some at a time, and the records of those not yet answered."""

    source: str
    blocks: Iterable[Sequence[Any]]
    records: dict[int, Record]

    @classmethod
    def of(cls, inputs: Inputs, lines: ArrivingLines, at_once: int = AT_ONCE) -> Self:
        """Inputs in blocks, cut where the next line is still on its way."""
        records: dict[int, Record] = {}

        def noted() -> Iterator[Any]:
            for row, (given, record) in enumerate(inputs, 1):
                records[row] = record
                yield given

        def waits() -> bool:
            return lines.must_wait and not lines.is_whole

        return cls(str(lines.name), in_blocks(noted(), at_once, waits), records)


def in_blocks(
    items: Iterable[Item], at_once: int, waits: Callable[[], bool] = lambda: False
) -> Iterator[list[Item]]:
    """Items, at most so many at a time, and no more than there are without waiting."""
    block: list[Item] = []
    for item in items:
        block.append(item)
        if len(block) >= at_once or waits():
            yield block
            block = []
    if block:
        yield block


def show(
    answers: "Iterable[Answer]",
    use: Use,
    asked: Asked,
    *,
    out: Path | None = None,
    json: bool = False,
    beside: bool | None = False,
) -> None:
    """Print the answers as they come, draw them, and say at the end what is to be known of them."""
    in_numbers = json or (out is None and not use.in_words)
    remarks: dict[str, list[int]] = {}
    values: list[Any] = []
    charts: list[Any] = []
    for number, answer in enumerate(answers):
        record = asked.records.pop(answer.row, None)
        for remark in answer.remarks:
            remarks.setdefault(remark, []).append(record.line if record else answer.row)
        if in_numbers or (out is not None and out.suffix == NUMBERS):
            values.append(_with_input(answer, record) if beside else answer.as_json())
        if out is not None and out.suffix != NUMBERS:
            charts.append(answer.chart())
            _check_pictures(len(charts))
        if in_numbers and use.document is None:
            print_object(values.pop() if out is None else values[-1])
        elif beside and not in_numbers:
            print_beside(answer, record, first=number == 0)
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
    tell(remarks, asked.source, by_line=use.by_line)


def print_beside(answer: "Answer", record: Record | None, *, first: bool) -> None:
    """A record with its answer; what answers all of them is no record, and is a note."""
    if record is None:
        note(answer.text())
        return
    if not isinstance(answer, Beside):
        raise ConfigError("--with-input was given, but these answers have no columns of their own.")
    values = answer.beside()
    if first and (heading := record.heading(list(values))):
        say(heading)
    say(record.beside(values))


def _with_input(answer: "Answer", record: Record | None) -> Any:
    value = answer.as_json()
    return {"input": record.as_json(), **value} if record and isinstance(value, dict) else value


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
