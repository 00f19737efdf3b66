"""Write word vectors as other tools read them.

    text     N E, then a line a word: word x1 … xE       word2vec, fastText (.vec), gensim
    binary   N E \\n, then word, a space, E little-endian float32, \\n       word2vec, gensim
    glove    as text, without the first line

Text has nine digits that count: a float32 comes back as it was.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError

Floats = NDArray[np.float32]


def text_lines(words: Sequence[str], vectors: Floats) -> Iterator[bytes]:
    """word2vec's text."""
    yield _header(vectors)
    yield from glove_lines(words, vectors)


def glove_lines(words: Sequence[str], vectors: Floats) -> Iterator[bytes]:
    """GloVe's text."""
    form = " %.9g" * vectors.shape[1] + "\n"
    for word, row in zip(words, vectors, strict=True):
        yield (_checked(word) + form % tuple(row.tolist())).encode()


def binary_rows(words: Sequence[str], vectors: Floats) -> Iterator[bytes]:
    """word2vec's binary form."""
    yield _header(vectors)
    for word, row in zip(words, vectors, strict=True):
        yield _checked(word).encode() + b" " + row.astype("<f4").tobytes() + b"\n"


def _header(vectors: Floats) -> bytes:
    return f"{vectors.shape[0]} {vectors.shape[1]}\n".encode()


def _checked(word: str) -> str:
    if word.split() != [word]:
        raise ConfigError(
            f"the word {word!r} is empty or holds white space, which no vector file can tell from "
            "the end of a word. Leave it out of the vectors."
        )
    return word


WRITERS: Mapping[str, Callable[[Sequence[str], Floats], Iterator[bytes]]] = {
    "text": text_lines,
    "binary": binary_rows,
    "glove": glove_lines,
}
