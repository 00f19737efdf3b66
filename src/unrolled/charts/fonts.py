"""Which letters of a picture no font here can draw."""

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any
from xml.sax.saxutils import escape

from unrolled.charts.base import SANS

NOWHERE = "\U0010fffd"  # a letter that no font has
LETTER = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="24" height="24">'
    '<text x="4" y="18" font-size="14" font-family="{font}">{letter}</text></svg>'
)
MOST_LETTERS = 2000
SYMBOLS = {"So", "Sk", "Sm"}


def missing_scripts(spec: Any) -> list[str]:
    """The scripts of a chart's texts that would be drawn as empty boxes, by name."""
    letters = dict.fromkeys(
        letter for text in _texts(spec) for letter in text if not letter.isascii()
    )
    missing = [letter for letter in list(letters)[:MOST_LETTERS] if not _is_drawn(letter)]
    return list(dict.fromkeys(map(script, missing)))


def script(letter: str) -> str:
    """What a letter's script is called: the first word of its name, as Unicode has it."""
    if unicodedata.category(letter) in SYMBOLS:
        return "emoji and other symbols"
    name = unicodedata.name(letter, "")
    return "CJK" if name.startswith("CJK") else name.split(" ")[0].split("-")[0].capitalize()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


@cache
def _is_drawn(letter: str) -> bool:
    """Whether it looks unlike a letter that cannot be drawn; marks and such have no look."""
    if unicodedata.category(letter)[0] in "MCZ":
        return True
    return _picture(letter) != _picture(NOWHERE)


@cache
def _picture(letter: str) -> bytes:
    from vl_convert import svg_to_png

    return svg_to_png(LETTER.format(font=SANS, letter=escape(letter)), scale=1)
