"""What the folder of a model of word vectors holds: words, which n-grams there are, the vectors."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.store.names import WEIGHTS
from unrolled.store.tensors import read_tensors
from unrolled.text.subwords import Subwords
from unrolled.text.vocabulary import parse_object

WORDS_FILE = "words.json"
SUBWORDS_FILE = "subwords.json"  # of a model that has them
VECTORS = "input"  # the name of their tensor


def vector_rows(folder: Path) -> NDArray[np.float32]:
    """The vectors (N, E), which stay in the file; ValueError if there are none."""
    tensors = read_tensors(folder / WEIGHTS, None, mapped=True)
    found = _table(tensors)
    if found is None or found.ndim != 2 or not found.size(1) or found.dtype != torch.float32:
        raise ValueError(f"{WEIGHTS}: there must be vectors, a row of 32-bit numbers a word")
    if VECTORS not in tensors and not found.isfinite().all():
        raise ValueError(f"{WEIGHTS}: the two vectors of a word have a sum beyond 32 bits")
    return found.numpy()


def _table(tensors: Mapping[str, Tensor]) -> Tensor | None:
    """The vectors of a model: its one table, or GloVe's two, summed."""
    if {"word", "context"} <= tensors.keys() and tensors["word"].shape == tensors["context"].shape:
        return tensors["word"] + tensors["context"]
    return tensors.get(VECTORS)


def parse_words(files: Mapping[str, bytes]) -> tuple[list[str], NDArray[np.int64]]:
    """The words of a model folder, each once, and their counts; ValueError if they are wrong."""
    if WORDS_FILE not in files:
        raise ValueError(f"{WORDS_FILE} is missing")
    value = parse_object(files[WORDS_FILE].decode(), keys={"words", "counts"})
    words, counts = value["words"], value["counts"]
    if not isinstance(words, list) or {*map(type, words)} != {str} or not all(words):
        raise ValueError(f"{WORDS_FILE}: the words must be a list of strings")
    if not _each_once(words):
        raise ValueError(f"{WORDS_FILE}: there must be words, each of them once")
    found = _whole_numbers(counts) if isinstance(counts, list) else None
    if found is None or len(found) != len(words) or found.min() < 0:
        raise ValueError(f"{WORDS_FILE}: there must be a count for each of {len(words)} words")
    return words, found


def _each_once(words: list[str]) -> bool:
    """Where no two hashes are alike, no two words are: a sort of numbers is faster than a set."""
    hashes = np.fromiter(map(hash, words), np.int64, len(words))
    hashes.sort()
    return bool((hashes[1:] != hashes[:-1]).all()) or len(set(words)) == len(words)


def _whole_numbers(values: list[Any]) -> NDArray[np.int64] | None:
    """The same numbers (N,); None where one is none, or 64 bits cannot hold it."""
    if {*map(type, values)} != {int}:
        return None
    with suppress(OverflowError):
        return np.array(values, np.int64)
    return None


def parse_subwords(files: Mapping[str, bytes]) -> Subwords:
    """Which n-grams a model has; ValueError if it is wrong."""
    value = parse_object(files[SUBWORDS_FILE].decode(), keys={"least", "most", "buckets"})
    if not all(type(number) is int and 0 < number < 2**31 for number in value.values()):
        raise ValueError(f"{SUBWORDS_FILE}: lengths and buckets must be positive numbers")
    found = Subwords(value["least"], value["most"], value["buckets"])
    if not found.least <= found.most <= 100:
        raise ValueError(f"{SUBWORDS_FILE}: {found.least} to {found.most} are no lengths")
    return found
