"""The n-gram model that is kept beside a trained language model.

It is what the model must beat, and what it can be mixed with: modified Kneser–Ney on the very
tokens that the model learned from, of order 6 for characters and 3 to 5 for words and byte pairs.

A folder keeps at most MOST_NGRAMS of them, 32 megabytes. Words get the highest order that fits;
where none does, or there are characters, n-grams that were seen seldom are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.ngrams.build import table_of
from unrolled.ngrams.counts import Grams, count_ngrams
from unrolled.ngrams.scratch import Scratch
from unrolled.ngrams.settings import MAX_ORDER, NgramSettings
from unrolled.ngrams.table import Level, NgramTable
from unrolled.tasks.shared.ngram_network import NgramFacts, NgramNetwork
from unrolled.text.vocabulary import parse_object

FILE = "baseline.json"
MOST_NGRAMS = 2_000_000  # of 16 bytes each
MOST_TOKENS = 20_000_000  # the last ones of a text that are counted
ORDERS = {"char": (6, 6), "word": (3, 5), "bpe": (3, 5)}  # the lowest and the highest
KEPT = {"words": torch.int32, "log_p": torch.float32, "log_b": torch.float32, "begin": torch.int32}
Ids = NDArray[np.int32]


class Shape(NamedTuple):
    """What a folder says of the table before it is read."""

    sizes: tuple[int, ...]  # n-grams of each order
    prune: tuple[int, ...]

    def to_json(self) -> bytes:
        """The same bytes for the same table."""
        return (json.dumps({"ngrams": self.sizes, "prune": self.prune}) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes, *, vocabulary_size: int) -> Self:
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(data.decode(), keys={"ngrams", "prune"})
        match value:
            case {"ngrams": [*sizes], "prune": [*prune]} if (
                all(type(n) is int and 0 <= n <= MOST_NGRAMS + vocabulary_size for n in sizes)
                and all(type(n) is int and n >= 0 for n in prune)
                and 1 <= len(sizes) <= MAX_ORDER
                and sizes[0] == vocabulary_size
            ):
                return cls(tuple(sizes), tuple(prune))
        raise ValueError("it does not describe n-grams")

    @property
    def settings(self) -> NgramSettings:
        """What they were made with."""
        return NgramSettings(order=len(self.sizes), smoothing="mkn", prune=self.prune)


class NgramBeside(nn.Module):
    """The table in the form that a folder keeps, and how much the network counts in a mixture."""

    weight: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("weight", torch.ones((), dtype=torch.float64))
        for k, size in enumerate(shape.sizes, 1):
            for name, dtype in KEPT.items():
                if k < len(shape.sizes) or name in ("words", "log_p"):
                    places = size + 1 if name == "begin" else size
                    self.register_buffer(f"{name}_{k}", torch.zeros(places, dtype=dtype))
        self.register_load_state_dict_post_hook(_check)  # type: ignore[no-untyped-call]

    @classmethod
    def fitted(cls, ids: Ids, level: str, vocabulary_size: int) -> Self:
        """On a text of ids (N,), each line closed by END."""
        table, prune = fitting_table(ids[-MOST_TOKENS:], vocabulary_size, *ORDERS[level])
        beside = cls(Shape(tuple(len(own.words) for own in table.levels), prune))
        for k, own in enumerate(table.levels, 1):
            for name, values in own._asdict().items():
                if len(values):
                    getattr(beside, f"{name}_{k}").copy_(torch.from_numpy(values))
        return beside

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], *, vocabulary_size: int) -> Self | None:
        """A table still to be read; None where the folder has none."""
        if FILE not in files:
            return None
        try:
            return cls(Shape.from_json(files[FILE], vocabulary_size=vocabulary_size))
        except ValueError as error:
            raise ValueError(f"{FILE}: {error}") from error

    def files(self) -> dict[str, bytes]:
        """What says how large it is."""
        return {FILE: self.shape.to_json()}

    @cached_property
    def network(self) -> NgramNetwork:
        """The model that it is; tables that do not fit together are refused."""
        arrays = {name: tensor.numpy() for name, tensor in self.named_buffers()}
        table = NgramTable(tuple(_level(arrays, k) for k in range(1, len(self.shape.sizes) + 1)))
        return NgramNetwork.of(self.shape.settings, table, NgramFacts(self.shape.sizes))


def _check(beside: NgramBeside, keys: Any) -> None:
    """Refuse tensors that lead out of the table: they may come from anyone."""
    vars(beside).pop("network", None)
    assert beside.network is not None


def _level(arrays: Mapping[str, NDArray[Any]], k: int) -> Level:
    """In the numbers that look-ups want."""
    nothing = np.zeros(0)
    return Level(
        arrays[f"words_{k}"],
        arrays[f"log_p_{k}"].astype(np.float64),
        arrays.get(f"log_b_{k}", nothing).astype(np.float64),
        arrays.get(f"begin_{k}", nothing).astype(np.int64),
    )


def fitting_table(
    ids: Ids, vocabulary_size: int, lowest: int, highest: int
) -> tuple[NgramTable, tuple[int, ...]]:
    """The table of a text that is not too large to keep, and what was left out of it."""
    scratch = Scratch()
    grams = count_ngrams(ids, highest, vocabulary_size, scratch)
    for order, prune in _choices(lowest, highest):
        if _amount(grams[:order], prune) <= MOST_NGRAMS + vocabulary_size:
            break
    settings = NgramSettings(order=order, smoothing="mkn", prune=prune)
    return table_of(grams[:order], settings, scratch)[0], prune


def _choices(lowest: int, highest: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Orders and counts up to which n-grams are left out, what keeps most first."""
    for order in range(highest, lowest - 1, -1):
        yield order, ()
    for count in (2**n for n in range(31)):
        for whole in (2, 1):  # orders that are kept whole
            yield lowest, (0,) * whole + (count,) * (lowest - whole)


def _amount(grams: Sequence[Grams], prune: Sequence[int]) -> int:
    """How many n-grams are left."""
    cutoffs = [*prune, *[0] * (len(grams) - len(prune))]
    pairs = zip(grams, cutoffs, strict=True)
    return sum(int(np.count_nonzero(own.count > cutoff)) for own, cutoff in pairs)
