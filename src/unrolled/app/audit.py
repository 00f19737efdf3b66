"""What `unrolled evaluate` shows of a sequence-to-sequence model beside its scores."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.app.output import note, print_columns, print_json
from unrolled.app.progress import busy
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    from unrolled.evaluate.audit import WidthRow
    from unrolled.models.translate import Search, TranslateModel


def print_audit(
    model: "TranslateModel",
    lines: Iterable[str],
    search: "Search",
    *,
    source: str,
    out: Path | None,
    json: bool,
) -> None:
    """For each width of the beam: what it costs, what it finds, and whose fault the rest is."""
    from unrolled.evaluate.audit import WIDTHS, audit_widths
    from unrolled.text.parallel import read_pairs

    def tell(row: "WidthRow") -> None:
        note(f"width {row.width}: {row.seconds:.1f} s")

    pairs = read_pairs(lines, source=source)
    with busy(f"searching {source} with beams of 1 to {WIDTHS[-1]}"):
        rows = audit_widths(model, pairs, search, watch=tell)
    if json:
        print_json([row.as_json() for row in rows])
    else:
        print_columns(
            [
                ["width", "seconds", "score", "BLEU", "right", "model error", "search error"],
                *(audit_cells(row) for row in rows),
            ]
        )
        print(f"score: mean log-probability of the outputs, length exponent {search.alpha:g}.")
    if out is not None:
        draw_audit(rows, out)


def audit_cells(row: "WidthRow") -> list[str]:
    """A row of the table."""
    shares = (row.blame.right, row.blame.model, row.blame.search)
    return [
        *(f"{row.width}", f"{row.seconds:.2f}", f"{row.score:.4f}", f"{row.bleu:.2f}"),
        *(f"{share:.1%}" for share in shares),
    ]


def draw_audit(rows: "list[WidthRow]", out: Path) -> None:
    """Score, BLEU and time over the width."""
    from unrolled.charts import save, width_curve

    chart = width_curve(
        [row.width for row in rows],
        [row.score for row in rows],
        [row.bleu for row in rows],
        [row.seconds for row in rows],
    )
    save(chart, out)


def print_bleu(
    model: "TranslateModel", lines: Iterable[str], number: int, search: "Search", *, source: str
) -> None:
    """BLEU of one output, from n-grams to brevity."""
    from unrolled.evaluate.bleu import as_text, explain
    from unrolled.text.parallel import read_pairs

    pairs = read_pairs(lines, source=source)
    if number > len(pairs):
        raise ConfigError(f"--explain-bleu is {number}, but {source} has {len(pairs)} pairs.")
    pair = pairs[number - 1]
    ((found, *_),) = model.translate([pair.source], search)
    print(f"source       {pair.source}")
    print(as_text(explain(found.text.split(), [pair.target.split()])))
