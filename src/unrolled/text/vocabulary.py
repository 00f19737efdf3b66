"""Tokens and their ids: a bijection onto 0..V-1, fixed when built and saved with the model."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unrolled.errors import ConfigError

PAD, UNK, START, END = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<s>", "</s>")
CONTROLS = {SPECIALS[PAD], SPECIALS[START], SPECIALS[END]}  # in a text, these words are unknown
MAX_SIZE = 5_000_000  # ordinary tokens
MAX_COUNT = 2**63 - 1
MOST_PARTS = {1_000_000: "[{", 2_000_000: ":", 4 * MAX_SIZE: ","}  # of a JSON file of a model


class Vocabulary:
    """All tokens a model knows, the special ones first, with their counts in the training text.

    The count of `<unk>` is that of all tokens left out, the count of `</s>` that of the lines.
    """

    def __init__(self, tokens: Sequence[str], counts: Sequence[int]) -> None:
        _check_tokens(tokens)
        _check_counts(counts, len(tokens))
        self.tokens = tuple(tokens)
        self.counts = tuple(counts)
        self._ids = {token: i for i, token in enumerate(tokens) if token not in CONTROLS}

    @classmethod
    def build(
        cls,
        counts: Mapping[str, int],
        *,
        ends: int = 0,
        min_count: int = 1,
        max_size: int | None = None,
    ) -> "Vocabulary":
        """The commonest tokens, ties in code point order; `max_size` leaves the specials out."""
        for name, value in (("min_count", min_count), ("max_size", max_size)):
            if value is not None and value < 1:
                raise ConfigError(f"tokens.{name} is {value}, but must be at least 1.")
        ordinary = [
            (token, n) for token, n in counts.items() if n >= min_count and token not in SPECIALS
        ]
        ordinary.sort(key=lambda pair: (-pair[1], pair[0]))
        kept = ordinary[:max_size]
        if len(kept) > MAX_SIZE:
            raise ConfigError(
                f"the text has {len(kept)} different tokens, but at most {MAX_SIZE} are allowed; "
                "set tokens.max_size, or a larger tokens.min_count."
            )
        unknown = sum(counts.values()) - sum(n for _, n in kept)
        return cls(
            [*SPECIALS, *(token for token, _ in kept)], [0, unknown, 0, ends, *(n for _, n in kept)]
        )

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        """Whether a token of a text has an id of its own; control tokens have none there."""
        return token in self._ids

    def encode(self, tokens: Iterable[str]) -> NDArray[np.int32]:
        """Ids (N,) of the tokens of a text; what is not known becomes UNK."""
        return np.fromiter(map(self._ids.get, tokens, repeat(UNK)), np.int32)

    def decode(self, ids: ArrayLike) -> list[str]:
        """The tokens of ids (N,)."""
        return [self.tokens[i] for i in _checked_ids(ids, len(self)).tolist()]

    def to_json(self) -> str:
        """The same text for the same vocabulary, always."""
        value = {"tokens": self.tokens, "counts": self.counts}
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        # half a surrogate pair is no Unicode text: escaped, the file stays valid UTF-8
        return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(text, keys={"tokens", "counts"})
        return cls(value["tokens"], value["counts"])


def one_hot(ids: ArrayLike, size: int) -> NDArray[np.float32]:
    """One row (size,) for each id, 1 at the id and 0 elsewhere: (...) -> (..., size)."""
    places = _checked_ids(ids, size)
    rows = np.zeros((*places.shape, size), dtype=np.float32)
    np.put_along_axis(rows, places[..., None], 1.0, axis=-1)
    return rows  # (..., size)


def parse_object(text: str, *, keys: set[str]) -> dict[str, Any]:
    """A JSON object with exactly these keys, each once; ValueError with the reason otherwise."""
    _check_parts(text)
    try:
        value = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this is not valid JSON: {error}") from error
    if not isinstance(value, dict) or set(value) != keys:
        seen = sorted(value) if isinstance(value, dict) else type(value).__name__
        raise ValueError(f"the keys must be {sorted(keys)}, but found {short(seen)}")
    return value


def _check_parts(text: str) -> None:
    """Refuse a text of which far more memory would be made than a model's file has need of."""
    for most, letters in MOST_PARTS.items():
        if sum(map(text.count, letters)) > most:
            raise ValueError(f"there are more than {most} of {' and '.join(letters)} in it")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key appears twice in one object")
    return value


def _checked_ids(ids: ArrayLike, size: int) -> NDArray[np.int64]:
    array = np.asarray(ids, dtype=np.int64)
    if array.size and (array.min() < 0 or array.max() >= size):
        wrong = array[(array < 0) | (array >= size)][0]
        raise ValueError(f"token id {wrong} is outside 0..{size - 1}")
    return array


def _check_tokens(tokens: Sequence[str]) -> None:
    if not isinstance(tokens, list | tuple) or any(type(token) is not str for token in tokens):
        raise ValueError("the tokens must be a list of strings")
    if tuple(tokens[: len(SPECIALS)]) != SPECIALS:
        raise ValueError(f"the first tokens must be {SPECIALS}, but are {short(list(tokens[:4]))}")
    if len(tokens) > MAX_SIZE + len(SPECIALS):
        raise ValueError(f"there are {len(tokens)} tokens, but at most {MAX_SIZE} are allowed")
    if len(set(tokens)) != len(tokens):
        seen: set[str] = set()
        twice = next(token for token in tokens if token in seen or seen.add(token))  # type: ignore[func-returns-value]
        raise ValueError(f"the token {short(twice)} appears twice")


def _check_counts(counts: Sequence[int], size: int) -> None:
    if not isinstance(counts, list | tuple) or len(counts) != size:
        seen = len(counts) if isinstance(counts, list | tuple) else type(counts).__name__
        raise ValueError(f"there must be one count for each of {size} tokens, but found {seen}")
    for count in counts:
        if type(count) is not int or not 0 <= count <= MAX_COUNT:
            raise ValueError(f"a count is {short(count)}, but must be a whole number from 0 on")
