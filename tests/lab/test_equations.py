"""The registry of equations and errata: every check holds, and the documents say what it says."""

import re
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.errors import ConfigError
from unrolled.lab.equations import entry as entries_module
from unrolled.lab.equations.catalogue import BOOKS, entries, verdicts
from unrolled.lab.equations.entry import Entry, Off, Result
from unrolled.lab.equations.mathml import mathml
from unrolled.lab.equations.pages import equations_document, errata_document, page

pytestmark = pytest.mark.arithmetic

DOCS = Path(__file__).parents[2] / "docs"
ALL = {entry.id: entry for entry in entries()}
NUMBERS = (3, 5, 8, 10, 13, 15, 16, 18, 20, 21, 22, 24, 30, 31, 34, 36, 37, 39, 42, 43, 44, 45, 47)
MATHEMATICS = [f"E{n}" for n in (*NUMBERS, 48, 49, 50, 51, 52, 60, 61, 62, 65)]  # of kind M


@pytest.fixture(scope="module")
def found():
    return {result.entry.id: result for result in verdicts(entries()).results}


def test_every_check_holds(found):
    wrong = {name: result.off for name, result in found.items() if not result.holds}
    assert not wrong


def test_no_id_is_there_twice():
    assert len(ALL) == len(entries())


def test_every_erratum_is_there():
    assert {name for name in ALL if ALL[name].kind} == {f"E{n}" for n in range(1, 71)}


@pytest.mark.parametrize("name", MATHEMATICS)
def test_wrong_mathematics_fails_as_printed_and_passes_corrected(found, name):
    entry, off = ALL[name], found[name].off
    assert entry.kind == "M"
    assert off.printed > 1e-3 > off.correct
    assert off.correct <= entry.within <= 1e-6
    assert entry.printed != entry.says


def test_kind_m_is_complete():
    assert {name for name in ALL if ALL[name].kind == "M"} == set(MATHEMATICS)


def test_an_equation_has_a_check_and_code_that_is_there():
    for entry in ALL.values():
        assert entry.notes, entry.id
        if not entry.kind:
            assert entry.check is not None
            assert entry.tex
        for name in re.findall(r"unrolled\.[\w.]+\w", entry.code):
            assert _exists(name), f"{entry.id}: {name}"


def _exists(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            thing = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(thing, part):
                return False
            thing = getattr(thing, part)
        return True
    return False


PACKAGE = f"{Path(unrolled.__file__).parents[1]}/"


@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].check])
def test_a_check_runs_the_code_that_it_names(name):
    """Or it would hold with the code broken. What another check has run before is run again."""
    named = re.findall(r"unrolled\.[a-z_.]*[a-z_]", ALL[name].code)
    wanted = {"/".join(path.split(".")) for path in named}
    ran = set()

    def note(frame, event, argument):
        ran.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        ALL[name].check()
    finally:
        sys.setprofile(None)
    files = {file.removeprefix(PACKAGE).removesuffix(".py") for file in ran if PACKAGE in file}
    for path in wanted:
        assert any(path.startswith(file) for file in files if file), (path, sorted(files))


@pytest.mark.parametrize(
    ("off", "holds"),
    [
        (Off(0.0), True),
        (Off(1e-10, 0.5), True),
        (Off(1e-3), False),
        (Off(1e-10, 1e-10), False),  # what is printed is right, too
        (Off(float("nan")), False),
        (Off(0.0, float("nan")), False),
        (None, True),
    ],
)
def test_what_holds(off, holds):
    assert Result(Entry("E0", "000", "", within=1e-9), off, 0.0).holds is holds


def test_a_broken_derivative_is_noticed(monkeypatch):
    import unrolled.lab.by_hand as by_hand

    monkeypatch.setitem(by_hand.ACTIVATIONS, "tanh", (np.tanh, lambda a, y: 1.0 - y))
    assert verdicts([ALL["F7"]]).failed == ["F7"]


# ------------------------------------------------------------------ documents


def test_the_documents_are_those_that_the_registry_makes(found):
    how = "make them by: unrolled lab equations --out docs/equations.md, and --out docs/errata.md"
    assert (DOCS / "equations.md").read_text(encoding="utf-8") == equations_document(), how
    errata = errata_document([result for result in found.values() if result.entry.kind])
    assert (DOCS / "errata.md").read_text(encoding="utf-8") == errata, how


class Tags(HTMLParser):
    """Notices what is not closed."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_and_has_no_script(found):
    reader = Tags()
    made = page(list(found.values()))
    reader.feed(made)
    assert not reader.open
    assert not reader.seen & {"script", "link", "img", "iframe"}
    assert made.count("<section") == len(ALL)
    assert "http" not in made.replace("http-equiv", "")


def test_what_is_written_in_tex_becomes_mathml():
    assert mathml(r"\frac{a_1}{2}") == (
        '<math display="block"><mrow><mfrac><mrow><msub><mi>a</mi><mn>1</mn></msub></mrow>'
        "<mrow><mn>2</mn></mrow></mfrac></mrow></math>"
    )
    assert "<munderover><mo>∑</mo>" in mathml(r"\sum_{i}^{n}x")
    for entry in ALL.values():
        for tex in filter(None, (entry.tex, entry.printed_tex)):
            reader = Tags()
            reader.feed(mathml(tex))
            assert not reader.open, entry.id


@pytest.mark.parametrize("tex", [r"\nothing", "{a"])
def test_tex_that_is_not_known_is_refused(tex):
    with pytest.raises(ValueError, match=r"not known|missing"):
        mathml(tex)


# ------------------------------------------------------------------ choosing


def test_entries_are_chosen_by_note_and_id():
    assert {note for entry in entries(note="003") for note in entry.notes} >= {"003"}
    assert [entry.id for entry in entries(id="E37")] == ["E37"]
    assert all("003" in entry.place for entry in entries(note="003"))
    with pytest.raises(ConfigError, match="--note is '005'"):
        entries(note="005")
    with pytest.raises(ConfigError, match="--id is 'E99'"):
        entries(id="E99")


def test_every_book_has_a_title():
    assert len({book.title for book in BOOKS}) == len(BOOKS)
    assert entries_module.NOTES.keys() == {"000", "001", "002", "003", "004"}
