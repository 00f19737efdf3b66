"""All books of equations, and their verdicts as a table, as JSON, as a page and as documents."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from unrolled.errors import not_one_of
from unrolled.evaluate.shown import columns
from unrolled.lab.equations import (
    attention,
    automata,
    cells,
    claims,
    decoding,
    embeddings,
    gates,
    other_losses,
    remedies,
    text,
    through_time,
)
from unrolled.lab.equations.entry import NOTES, Book, Entry, Result

BOOKS: tuple[Book, ...] = (
    text.book,
    cells.book,
    gates.book,
    other_losses.book,  # that of loss
    through_time.book,
    remedies.book,  # that of vanishing
    embeddings.book,
    attention.book,
    decoding.book,
    automata.book,
    claims.book,
)


def entries(*, note: str | None = None, id: str | None = None) -> list[Entry]:
    """All of them, or those of a note, or one."""
    every = [entry for book in BOOKS for entry in book]
    if note is not None and note not in NOTES:
        raise not_one_of("--note", note, NOTES)
    if id is not None and id not in {entry.id for entry in every}:
        raise not_one_of("--id", id, (entry.id for entry in every))
    kept = [entry for entry in every if note is None or note in entry.notes]
    return [entry for entry in kept if id is None or id == entry.id]


@dataclass(frozen=True)
class Verdicts:
    """What the checks found."""

    results: Sequence[Result]

    @property
    def failed(self) -> list[str]:
        """The ids of those that do not hold."""
        return [result.entry.id for result in self.results if not result.holds]

    def text(self) -> str:
        """A line an entry; of a single one, all there is to say."""
        if len(self.results) == 1:
            return alone(self.results[0])
        head = ["id", "verdict", "off by", "allowed", "as printed"]
        table = columns([head, *map(_numbers, self.results)]).split("\n")
        places = ["what", *(f"{r.entry.place}: {r.entry.says}" for r in self.results)]
        lines = [f"{row}  {what}" for row, what in zip(table, places, strict=True)]
        return "\n".join([*lines, "", self.summary()])

    def summary(self) -> str:
        """How many hold, in how long."""
        checked = [result for result in self.results if result.off is not None]
        seconds = sum(result.seconds for result in self.results)
        failed = f", {len(self.failed)} FAIL: {', '.join(self.failed)}" if self.failed else ""
        return (
            f"{len(self.results)} entries, {len(checked)} with a check, "
            f"{len(checked) - len(self.failed)} hold{failed}. {seconds:.1f} s."
        )

    def as_json(self) -> list[dict[str, Any]]:
        """An object an entry."""
        return [as_object(result) for result in self.results]

    def chart(self) -> Any:
        """How far the printed forms of the errata are off, on a scale of powers."""
        from unrolled.charts import deviations
        from unrolled.errors import ConfigError

        shown = [r for r in self.results if r.off is not None and r.off.printed is not None]
        if not shown:
            raise ConfigError("no erratum is among these entries. Draw all, or write a .html page.")
        return deviations(
            [r.entry.id for r in shown],
            [r.off.printed or 0.0 for r in shown if r.off],
            [r.off.correct for r in shown if r.off],
            title="How far the errata are off, as printed and corrected",
        )


def verdicts(chosen: Iterable[Entry], tell: Callable[[str], None] = lambda _: None) -> Verdicts:
    """Run the checks."""
    results = []
    for entry in chosen:
        results.append(entry.result())
        tell(f"{entry.id}: {results[-1].verdict}")
    return Verdicts(results)


def _numbers(result: Result) -> list[str]:
    off = result.off
    if off is None:
        return [result.entry.id, result.verdict, "", "", ""]
    printed = "" if off.printed is None else f"{off.printed:.2g}"
    numbers = [f"{off.correct:.1e}", f"{result.entry.within:.0e}", printed]
    return [result.entry.id, result.verdict, *numbers]


def alone(result: Result) -> str:
    """Every field of one entry."""
    lines = [f"{name:<11}  {value}" for name, value in as_object(result).items() if value != ""]
    return "\n".join(lines)


def as_object(result: Result) -> dict[str, Any]:
    """One entry for programs."""
    entry, off = result.entry, result.off
    fields = ("id", "place", "kind", "says", "tex", "printed", "printed_tex", "code", "how")
    found: dict[str, Any] = {name: getattr(entry, name) for name in fields}
    found["verdict"] = result.verdict
    if off is not None:
        found |= {"off": off.correct, "within": entry.within}
        found |= {} if off.printed is None else {"printed_off": off.printed}
        found |= {"seen": off.seen} if off.seen else {}
    return found
