"""The registry as documents (docs/equations.md, docs/errata.md) and as one page of HTML."""

from collections.abc import Sequence
from html import escape

from unrolled.lab.equations.catalogue import BOOKS, as_object
from unrolled.lab.equations.conventions import CONVENTIONS, GLOSSARY
from unrolled.lab.equations.conventions import NOTES as COLUMNS
from unrolled.lab.equations.entry import KINDS, NOTES, Entry, Result
from unrolled.lab.equations.mathml import mathml

EQUATIONS_HEAD = """# Equations

Every equation of the five notes that can be run, with the check that shows it.
`unrolled lab equations` runs them all, `unrolled lab equations --id F7` shows one, and the tests
run the same registry. This page is made from it (`unrolled lab equations --out docs/equations.md`):
change `src/unrolled/lab/equations/`, not the page.
"""
ERRATA_HEAD = """# Errata

What is wrong in the notes, as printed and as it should be. Where it is mathematics, both forms are
computed: the corrected one agrees with the truth (finite differences, an identity, an exact
number), the printed one is off by the number shown. This page is made from the registry
(`unrolled lab equations --out docs/errata.md`): change `src/unrolled/lab/equations/`, not the page.
"""
STYLE = """body{font:16px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em;color:#222}
section{border-top:1px solid #ddd;padding:.6em 0}h3{margin:.2em 0}.holds{color:#0072b2}
.FAILS{color:#d55e00;font-weight:bold}.stated{color:#595959}dt{color:#595959}
dd{margin:0 0 .4em 1.5em}math{margin:.5em 0;font-size:1.15em}table{border-collapse:collapse}
td,th{padding:.2em .8em;text-align:left;border-bottom:1px solid #ddd}"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


# ------------------------------------------------------------------ Markdown


def equations_document() -> str:
    """docs/equations.md; it holds no number that a processor could round otherwise."""
    parts = [EQUATIONS_HEAD, _notes_list()]
    for book in BOOKS:
        chosen = [entry for entry in book if not entry.kind]
        if chosen:
            parts += [f"## {book.title}\n", *map(_equation, chosen)]
    return "\n".join([*parts, _conventions(), _glossary()])


def _notes_list() -> str:
    return "".join(f"- **{note}** {title}\n" for note, title in NOTES.items())


def _equation(entry: Entry) -> str:
    rows = f" Also {', '.join(entry.rows)}." if entry.rows else ""
    return (
        f"### {entry.id}\n\n{entry.says}.\n\n$${entry.tex}$$\n\n"
        f"{entry.place}. Checked by {entry.how}, within {entry.within:.0e}; `{entry.code}`.{rows}\n"
    )


def errata_document(results: Sequence[Result]) -> str:
    """docs/errata.md, with two digits of each printed form's distance."""
    parts = [ERRATA_HEAD]
    for result in sorted(results, key=lambda result: int(result.entry.id[1:])):
        parts.append(_erratum(result))
    return "\n".join(parts)


def _erratum(result: Result) -> str:
    entry, off = result.entry, result.off
    lines = [f"### {entry.id} · {entry.place} · {KINDS[entry.kind]}\n"]
    lines.append(f"Printed: {entry.printed}." + _inline(entry.printed_tex))
    lines.append(f"\nCorrect: {entry.says}." + _inline(entry.tex))
    if off is not None and off.printed is not None:
        seen = f": {off.seen}" if off.seen else ""
        within = f"the corrected form at most {entry.within:.0e}"
        lines.append(f"\nThe printed form is off by {off.printed:.2g}, {within}{seen}.")
    return "\n".join(lines) + "\n"


def _inline(tex: str) -> str:
    return f" ${tex}$" if tex else ""


def _conventions() -> str:
    head = "## Conventions\n\nWhere the notes disagree, and what chooses.\n\n"
    rows = ["| id | topic | positions | chosen by | default |", "|---|---|---|---|---|"]
    rows += [
        "| " + " | ".join(part.replace("|", "\\|") for part in row) + " |" for row in CONVENTIONS
    ]
    return head + "\n".join(rows) + "\n"


def _glossary() -> str:
    head = "## Glossary\n\nWhat each note calls each part.\n\n"
    rows = ["| part | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    rows += ["| " + " | ".join([part, *names]) + " |" for part, names in GLOSSARY.items()]
    return head + "\n".join(rows) + "\n"


# ------------------------------------------------------------------ HTML


def page(results: Sequence[Result]) -> str:
    """One page with every equation typeset; it has no script and needs no network."""
    sections = "\n".join(map(_section, results))
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(part)}</td>' for part in row)}</tr>" for row in CONVENTIONS
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>Equations of the notes</title><style>{STYLE}</style></head><body>\n"
        f"<h1>Equations of the notes</h1>\n{sections}\n"
        f"<h2>Conventions</h2><table>{rows}</table>\n</body></html>\n"
    )


def _section(result: Result) -> str:
    entry, facts = result.entry, as_object(result)
    shown = {"printed": entry.printed, "code": entry.code, "check": entry.how}
    shown |= {
        name: str(facts[name]) for name in ("off", "within", "printed_off", "seen") if name in facts
    }
    pairs = "".join(
        f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in shown.items() if text
    )
    wrong = f"<p>printed</p>{mathml(entry.printed_tex)}" if entry.printed_tex else ""
    right = mathml(entry.tex) if entry.tex else ""
    return (
        f'<section id="{entry.id}"><h3>{entry.id} <small>{escape(entry.place)}</small> '
        f'<span class="{result.verdict}">{result.verdict}</span></h3>'
        f"<p>{escape(entry.says)}</p>{right}{wrong}<dl>{pairs}</dl></section>"
    )
