"""Texts that a program gives: one or many, and a word about what is none."""

from collections.abc import Iterable
from reprlib import repr as short
from typing import TypeVar

Item = TypeVar("Item")


def text_list(texts: str | Iterable[str], *, name: str = "texts") -> list[str]:
    """One text or several as a list; a TypeError names what is no text, and where it stands."""
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable) or isinstance(texts, bytes):
        raise TypeError(f"{name} is {short(texts)}, but must be a string or several strings.")
    return [one_text(text, name=f"{name}[{place}]") for place, text in enumerate(texts)]


def several(items: Iterable[Item], name: str) -> Iterable[Item]:
    """The items as they are; a TypeError says what is one thing and not many."""
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise TypeError(f"{name} is {short(items)}, but must be several of them.")
    return items


def one_text(text: object, *, name: str = "text") -> str:
    """A text as Python's own string; a TypeError names what is none."""
    if not isinstance(text, str):
        raise TypeError(f"{name} is {short(text)}, but must be a string.")
    return str(text)  # numpy's strings are strings, too
