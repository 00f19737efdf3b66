"""Spans as tags: IOB1, IOB2 and IOBES, read, told apart, checked, converted.

    words    Mary  Ann  met  IBM  Japan       spans: PER, ORG and LOC side by side
    IOB1     I-PER I-PER O   I-ORG I-LOC      B- only where a span follows one of its own type
    IOB2     B-PER I-PER O   B-ORG B-LOC      B- begins every span
    IOBES    B-PER E-PER O   S-ORG S-LOC      E- ends a span of several words, S- is one of a word

Ramshaw & Marcus 1995; Tjong Kim Sang & Veenstra 1999; Ratinov & Roth 2009 (as BILOU).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:  # help and the list of tasks stand on this file, and numpy is slow to import
    import numpy as np
    from numpy.typing import NDArray

OUTSIDE = "O"
Tags = Sequence[str]


class Span(NamedTuple):
    """The words start to end, exclusive, and what they are."""

    start: int
    end: int
    label: str


def split_tag(tag: str) -> tuple[str, str]:
    """Prefix and label: B and PER of B-PER, O and nothing of O."""
    prefix, _, label = tag.partition("-")
    return prefix, label


def is_span_tag(tag: str) -> bool:
    """Whether a tag is O, or one of B, I, E and S, alone or with a label."""
    prefix, label = split_tag(tag)
    return tag == OUTSIDE or (prefix in ("B", "I", "E", "S") and (label != "" or tag == prefix))


def join_tag(prefix: str, label: str) -> str:
    """What `split_tag` parts."""
    return f"{prefix}-{label}" if label else prefix


@lru_cache(maxsize=100_000)
def _span_part(tag: str) -> tuple[str, str]:
    return split_tag(tag) if is_span_tag(tag) else (OUTSIDE, "")


def spans(tags: Tags) -> list[Span]:
    """The spans of tags in any of the schemes, or in none.

    Where tags break the rules this finds what conlleval finds (Tjong Kim Sang & Buchholz 2000):
    an I- or E- that continues nothing begins a span, as does one of another label.
    """
    found, start = [], 0
    before, label_before = OUTSIDE, ""
    for place, tag in enumerate([*tags, OUTSIDE]):  # the extra O closes a span at the end
        prefix, label = _span_part(tag)
        fresh = prefix in "BS" or before in "OES" or label != label_before
        if before != OUTSIDE and (fresh or prefix == OUTSIDE):
            found.append(Span(start, place, label_before))
        if prefix != OUTSIDE and fresh:
            start = place
        before, label_before = prefix, label
    return found


def write_spans(found: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Tags of a sentence of so many words, in a scheme."""
    tags, before = [OUTSIDE] * length, Span(-1, -1, "")
    for span in found:
        tags[span.start : span.end] = WRITERS[scheme](span, before)
        before = span
    return tags


def _iob1(span: Span, before: Span) -> list[str]:
    touches = before.end == span.start and before.label == span.label
    return [join_tag("B" if touches else "I", span.label), *_inner(span, 1)]


def _iob2(span: Span, before: Span) -> list[str]:
    return [join_tag("B", span.label), *_inner(span, 1)]


def _iobes(span: Span, before: Span) -> list[str]:
    if span.end - span.start == 1:
        return [join_tag("S", span.label)]
    return [join_tag("B", span.label), *_inner(span, 2), join_tag("E", span.label)]


def _inner(span: Span, edges: int) -> list[str]:
    return [join_tag("I", span.label)] * (span.end - span.start - edges)


WRITERS: dict[str, Callable[[Span, Span], list[str]]] = {
    "iob1": _iob1,
    "iob2": _iob2,
    "iobes": _iobes,
}
SCHEMES = tuple(WRITERS)
EDGE = ("", "")  # what stands before the first tag and after the last


def may_follow(scheme: str, before: str, after: str) -> bool:
    """Whether a tag may come right after another; "" is the edge of the sentence."""
    (first, label), (second, next_label) = (
        split_tag(tag) if tag else EDGE for tag in (before, after)
    )
    same = label == next_label
    if scheme == "iobes":
        is_open, goes_on = first in ("B", "I"), second in ("I", "E")
        return is_open == goes_on and (same or not is_open)
    if scheme == "iob2":
        return second != "I" or (first in ("B", "I") and same)
    return second != "B" or (first in ("B", "I") and same)


def first_break(tags: Tags, scheme: str) -> int | None:
    """The place of the first tag that breaks the scheme; the length if the end does."""
    allowed = ("B", "I", "E", "S") if scheme == "iobes" else ("B", "I")
    for place, (before, after) in enumerate(pairwise(["", *tags, ""])):
        prefix = split_tag(after)[0]
        known = after in ("", OUTSIDE) or (is_span_tag(after) and prefix in allowed)
        if not known or not may_follow(scheme, before, after):
            return place
    return None


def find_scheme(sentences: Sequence[Tags]) -> str | None:
    """The scheme of a corpus, None if its tags are no spans.

    Of IOB1 and IOB2 it is the one that fewer sentences break; real corpora have a few that break
    both.
    """
    distinct = set().union(*sentences) if sentences else set()
    prefixes = {split_tag(tag)[0] for tag in distinct - {OUTSIDE}}
    if not prefixes or not all(map(is_span_tag, distinct)):
        return None
    if prefixes & {"E", "S"}:
        return "iobes"
    return min(("iob2", "iob1"), key=lambda scheme: len(broken_sentences(sentences, scheme)))


def broken_sentences(sentences: Sequence[Tags], scheme: str) -> list[int]:
    """Which sentences break a scheme."""
    return [row for row, tags in enumerate(sentences) if first_break(tags, scheme) is not None]


class LegalMoves(NamedTuple):
    """Which of K tags may follow one another, begin and end a sentence."""

    between: "NDArray[np.bool_]"  # (K, K) from row to column
    first: "NDArray[np.bool_]"  # (K,)
    last: "NDArray[np.bool_]"  # (K,)


def legal_moves(tags: Tags, scheme: str) -> LegalMoves:
    """What a scheme allows between these tags."""

    import numpy as np

    def allowed(before: Tags, after: Tags) -> "NDArray[np.bool_]":
        return np.array([[may_follow(scheme, a, b) for b in after] for a in before])

    return LegalMoves(allowed(tags, tags), allowed([""], tags)[0], allowed(tags, [""])[:, 0])
