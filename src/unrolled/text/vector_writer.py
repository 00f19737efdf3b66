"""Write word vectors as other tools read them.

    text      N E, then a line a word: word x1 … xE       word2vec, fastText (.vec), gensim
    binary    N E \\n, then word, a space, E little-endian float32, \\n       word2vec, gensim
    glove     as text, without the first line
    fasttext  as fasttext_vectors.py has it, with the n-grams if there are some (.bin)

Text has nine digits that count: a float32 comes back as it was.
"""

import struct
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, shown
from unrolled.text.fasttext_vectors import ARGUMENTS, DICTIONARY, ENTRY, LINE_END, MAGIC, MATRIX
from unrolled.text.vectors import WordVectors

Floats = NDArray[np.float32]

ROWS_AT_ONCE = 1 << 14
NOTHING_PRUNED = -1


def text_lines(table: WordVectors) -> Iterator[bytes]:
    """word2vec's text."""
    yield _header(table)
    yield from glove_lines(table)


def glove_lines(table: WordVectors) -> Iterator[bytes]:
    """GloVe's text."""
    form = " %.9g" * table.width + "\n"
    for word, row in zip(table.words, table.vectors, strict=True):
        yield (_checked(word) + form % tuple(row.tolist())).encode()


def binary_rows(table: WordVectors) -> Iterator[bytes]:
    """word2vec's binary form."""
    yield _header(table)
    for word, row in zip(table.words, table.vectors, strict=True):
        yield _checked(word).encode() + b" " + row.astype("<f4").tobytes() + b"\n"


def fasttext_pieces(table: WordVectors) -> Iterator[bytes]:
    """fastText's binary form, version 12: of its settings those that say what vectors are made of.

    Nothing is known of counts: the words have falling ones, as they are ordered by them. Nor are
    there output vectors: the model can be asked, but not trained on.
    """
    words, width = len(table.words), table.width
    subwords = table.parts.subwords if table.parts else None
    least, most = (subwords.least, subwords.most) if subwords else (0, 0)
    buckets = subwords.buckets if subwords else 0
    yield struct.pack("<2i", MAGIC, 12)
    yield ARGUMENTS.pack(width, 5, 5, 1, 5, 1, 2, 2, buckets, least, most, 100, 1e-4)
    yield DICTIONARY.pack(words, words, 0, words * (words + 1) // 2, NOTHING_PRUNED)
    for row, word in enumerate(table.words):
        yield _checked(word).encode() + b"\0" + ENTRY.pack(words - row, 0)
    yield MATRIX.pack(False, words + buckets, width)
    yield from _packed(_own_rows(table))
    for begin in range(0, buckets, ROWS_AT_ONCE):
        yield from _packed(_gram_rows(table, begin, min(begin + ROWS_AT_ONCE, buckets)))
    yield MATRIX.pack(False, 0, width)


def _own_rows(table: WordVectors) -> Floats:
    """What a word has beside its n-grams, of which a line's end has none."""
    if table.parts is None:
        return table.vectors
    rows = table.parts.without_words(table.words, table.vectors)
    if (line_end := LINE_END.decode()) in table.words:
        row = list(table.words).index(line_end)
        rows[row] = table.vectors[row]
    return rows


def _gram_rows(table: WordVectors, begin: int, end: int) -> Floats:
    """Of the n-grams with these numbers; zeros where one is not known."""
    assert table.parts is not None
    first, last = np.searchsorted(table.parts.used, [begin, end])
    rows = np.zeros((end - begin, table.width), np.float32)
    rows[table.parts.used[first:last] - begin] = table.parts.vectors[first:last]
    return rows


def _packed(rows: Floats) -> Iterator[bytes]:
    for begin in range(0, len(rows), ROWS_AT_ONCE):
        yield rows[begin : begin + ROWS_AT_ONCE].astype("<f4").tobytes()


def _header(table: WordVectors) -> bytes:
    return f"{len(table.words)} {table.width}\n".encode()


def _checked(word: str) -> str:
    if word.split() != [word]:
        raise ConfigError(
            f"the word {shown(word)} is empty or holds white space, which no vector file can tell "
            "from the end of a word. Leave it out of the vectors."
        )
    return word


WRITERS: Mapping[str, Callable[[WordVectors], Iterator[bytes]]] = {
    "text": text_lines,
    "binary": binary_rows,
    "glove": glove_lines,
    "fasttext": fasttext_pieces,
}
