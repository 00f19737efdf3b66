"""What shows each thing the notes describe: rows.py [--missing]

Writes docs/notes.md from docs/rows.tsv (id, place, words, command), from the marks on tests
(`@pytest.mark.row("K3")`) and from the registry of equations. With --missing it prints instead the
rows that nothing shows yet.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from unrolled.lab.equations.catalogue import entries

ROOT = Path(__file__).parents[1]
ROWS = ROOT / "docs" / "rows.tsv"
PAGE = ROOT / "docs" / "notes.md"
HEAD = """# What the notes describe, and what shows it

The five notes describe 224 things. Each has a row here, with the test that shows it (marked with
its id), the entry of the registry of equations ([equations.md](equations.md)), or a command. What
has none is not shown yet. `make rows` makes this page from `docs/rows.tsv`, from the marks on the
tests and from the registry.
"""
GROUPS = {
    "A": "Representing and batching sequences",
    "B": "Count-based and window language models",
    "C": "Word embeddings",
    "D": "Recurrent cells",
    "E": "Architectures and heads",
    "F": "Loss and gradients",
    "G": "Vanishing, exploding, remedies",
    "H": "Training practice",
    "I": "Language modelling and generation",
    "J": "Tasks",
    "K": "Sequence to sequence",
    "L": "Attention",
    "M": "Decoding",
    "N": "Metrics",
    "O": "Recursive networks",
    "P": "Formal languages",
    "Q": "Figures",
    "R": "Claims to test rather than repeat",
}


def rows() -> list[list[str]]:
    """Id, place, words and command of each."""
    return [line.split("\t") for line in ROWS.read_text(encoding="utf-8").splitlines()]


@cache
def marked() -> dict[str, list[str]]:
    """The tests that carry each id, as file::function."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                for row in marks_of(node):
                    found[row].append(f"{path.relative_to(ROOT)}::{node.name}")
    return found


def marks_of(node: ast.FunctionDef) -> Iterator[str]:
    """The ids in its `@pytest.mark.row(…)`."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.row":
            yield from (ast.literal_eval(argument) for argument in decorator.args)


def registered() -> dict[str, list[str]]:
    """The entries of the registry that show each row; errata are no rows."""
    found: dict[str, list[str]] = defaultdict(list)
    for entry in entries():
        if not entry.kind:
            for row in (entry.id, *entry.rows):
                found[row].append(entry.id)
    return found


def shown_by() -> dict[str, list[str]]:
    """All that shows each row, in words."""
    tests, equations = marked(), registered()
    return {
        row: [
            *(f"`{test}`" for test in tests.get(row, [])),
            *(f"entry {entry}" for entry in equations.get(row, [])),
            *([command] if command else []),
        ]
        for row, _, _, command in rows()
    }


def page() -> str:
    """docs/notes.md."""
    shown = shown_by()
    count = sum(bool(evidence) for evidence in shown.values())
    parts = [HEAD, f"{count} of {len(shown)} are shown.\n"]
    for group, title in GROUPS.items():
        parts.append(f"## {group}. {title}\n\n| id | what | where | shown by |\n|---|---|---|---|")
        for row, place, words, _ in rows():
            if row.startswith(group):
                parts.append(f"| {row} | {words} | {place} | {'<br>'.join(shown[row]) or '–'} |")
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    shown = shown_by()
    missing = [row for row in rows() if not shown[row[0]]]
    if "--missing" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
    for row, place, words, _ in missing:
        print(f"{row:<4} {place}: {words}")
    print(f"{len(missing)} of {len(rows())} rows are not shown yet")


if __name__ == "__main__":
    main()
