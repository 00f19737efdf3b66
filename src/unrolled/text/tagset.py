"""The tags that a tagger chooses from: fixed when built and saved with the model.

Where tags mark spans, the model works with IOBES whatever the file had, and what it predicts is
written in the file's own scheme again.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short

import numpy as np

from unrolled.errors import DataError
from unrolled.text.conll import TaggedSentence, check_scheme
from unrolled.text.schemes import SCHEMES, find_scheme, is_span_tag, spans, write_spans
from unrolled.text.vocabulary import UNK, parse_object
from unrolled.text.word_encoder import WordEncoder
from unrolled.text.words import Ids

TAGS_FILE = "tags.json"
INNER_SCHEME = "iobes"
MAX_TAGS = 10_000
BROKEN_AT_MOST = 0.05  # share of the sentences


@dataclass(frozen=True)
class TagSet:
    """Tags in code point order, the scheme of their spans, each word's most frequent tag."""

    tags: tuple[str, ...]
    scheme: str | None  # None: the tags mark no spans
    most_frequent: tuple[int, ...]  # (V,) by word id: the commonest tag of the word, of all for UNK

    @classmethod
    def build(
        cls, sentences: Sequence[TaggedSentence], encoder: WordEncoder, scheme: str | None
    ) -> "TagSet":
        """The tags of the training sentences, checked against the scheme already."""
        inner = [inner_tags(sentence.tags, scheme) for sentence in sentences]
        names = tuple(sorted({tag for tags in inner for tag in tags}))
        return cls(names, scheme, _most_frequent_tags(sentences, inner, encoder, names))

    def __len__(self) -> int:
        return len(self.tags)

    def encode(self, sentences: Sequence[TaggedSentence]) -> Ids:
        """The tags of training sentences as ids (N,)."""
        ids = {tag: number for number, tag in enumerate(self.tags)}
        inner = (inner_tags(sentence.tags, self.scheme) for sentence in sentences)
        return np.fromiter((ids[tag] for tags in inner for tag in tags), np.int32)

    def decode(self, ids: Iterable[int]) -> list[str]:
        """A sentence's tags, in the scheme that was read."""
        tags = [self.tags[i] for i in ids]
        return tags if self.scheme is None else write_spans(spans(tags), len(tags), self.scheme)

    def to_json(self) -> str:
        """The same text for the same tags, always."""
        value = {"tags": self.tags, "scheme": self.scheme or "none", "usual": self.most_frequent}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str, *, words: int) -> "TagSet":
        """What `to_json` wrote for so many words; ValueError with the reason for anything else."""
        value = parse_object(text, keys={"tags", "scheme", "usual"})
        tags, most_frequent = value["tags"], value["usual"]
        if not isinstance(tags, list) or not 1 <= len(tags) <= MAX_TAGS:
            raise ValueError(f"the tags must be a list of 1 to {MAX_TAGS} strings")
        if any(type(tag) is not str or not tag for tag in tags) or tags != sorted(set(tags)):
            raise ValueError("the tags must be strings in code point order, each once")
        if value["scheme"] not in (*SCHEMES, "none"):
            raise ValueError(f"the scheme is {short(value['scheme'])}, but must be a known one")
        if not isinstance(most_frequent, list) or len(most_frequent) != words:
            raise ValueError(f"there must be one most frequent tag for each of {words} words")
        if any(type(tag) is not int or not 0 <= tag < len(tags) for tag in most_frequent):
            raise ValueError(f"a most frequent tag is outside 0..{len(tags) - 1}")
        scheme = None if value["scheme"] == "none" else value["scheme"]
        return cls(tuple(tags), scheme, tuple(most_frequent))


def inner_tags(tags: Sequence[str], scheme: str | None) -> Sequence[str]:
    """Tags as the model works with them."""
    return tags if scheme is None else write_spans(spans(tags), len(tags), INNER_SCHEME)


def span_scheme(
    sentences: Sequence[TaggedSentence], wanted: str, *, source: Path | str
) -> tuple[str | None, int]:
    """The scheme of a file, and how many of its sentences break it.

    A scheme that is named must be kept to the letter. One that is found ("auto") may be broken now
    and then, as real corpora do; such sentences are read as conlleval reads them.
    """
    if wanted == "none":
        return None, 0
    if wanted != "auto":
        return wanted, check_scheme(sentences, wanted, source=source)
    scheme = find_scheme([sentence.tags for sentence in sentences])
    if scheme is None:
        return None, 0
    return scheme, check_scheme(sentences, scheme, source=source, most=BROKEN_AT_MOST)


def check_tag_set(tags: TagSet, *, source: Path | str) -> None:
    """Refuse tags that leave nothing to choose, or too much."""
    if len(tags) < 2:
        raise DataError(
            source,
            f"every word has the tag {short(tags.tags[0])}, but a tagger chooses between 2 or "
            "more. Check the column of the tags.",
        )
    if len(tags) > MAX_TAGS:
        raise DataError(
            source,
            f"has {len(tags)} different tags, but at most {MAX_TAGS} are allowed. Check that the "
            "word stands first and the tag last.",
        )


def _most_frequent_tags(
    sentences: Sequence[TaggedSentence],
    inner: Sequence[Sequence[str]],
    encoder: WordEncoder,
    names: Sequence[str],
) -> tuple[int, ...]:
    """Each word's commonest tag, the first in order among equals."""
    ids = {tag: number for number, tag in enumerate(names)}
    words = encoder.encode([sentence.words for sentence in sentences]).words
    tags = np.fromiter((ids[tag] for row in inner for tag in row), np.int64)
    commonest = int(np.bincount(tags).argmax())
    most_frequent = np.full(len(encoder.words), commonest)
    pairs, counts = np.unique(words.astype(np.int64) * len(names) + tags, return_counts=True)
    for pair in pairs[np.lexsort((-pairs, counts))].tolist():  # the commonest comes last
        most_frequent[pair // len(names)] = pair % len(names)
    most_frequent[UNK] = commonest
    return tuple(most_frequent.tolist())


def check_overlap(tags: TagSet, sentences: Sequence[TaggedSentence], *, source: Path | str) -> None:
    """Refuse a file of tags of another kind, or with none in common with the training data."""
    if tags.scheme is not None:
        _check_mark_spans(sentences, source)
    found = {tag for sentence in sentences for tag in inner_tags(sentence.tags, tags.scheme)}
    if found.isdisjoint(tags.tags):
        raise DataError(
            source,
            f"has the tags {short(sorted(found))}, but the model knows others alone: "
            f"{short(list(tags.tags))}. Check the file, and for CoNLL-U tokens.column.",
        )


def _check_mark_spans(sentences: Sequence[TaggedSentence], source: Path | str) -> None:
    for sentence in sentences:
        for tag, line in zip(sentence.tags, sentence.lines, strict=True):
            if not is_span_tag(tag):
                raise DataError(
                    source,
                    f"the tag {short(tag)} marks no span, as those of the training data do: O, or "
                    "B-, I-, E- or S- and a label.",
                    line=line,
                )


def count_unseen(tags: TagSet, sentences: Sequence[TaggedSentence]) -> Counter[str]:
    """The tags of a file that the training data did not have, and how often they occur."""
    known = {*tags.tags}
    inner = (inner_tags(sentence.tags, tags.scheme) for sentence in sentences)
    return Counter(tag for row in inner for tag in row if tag not in known)
