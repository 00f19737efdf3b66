"""The bridge to the compiled trainer of GloVe vectors; shapes are compared here, once for all.

A word's state is its vector and what AdaGrad has summed: the squares of rate times gradient, as in
the authors' program, so that steps shrink later than by the gradient's own. Biases are part of the
product: behind the vector a word has (bias, 1), a context (1, bias), and the 1 has a square so
large that no step moves it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.native import module as _kernels

LANES = 16  # numbers that a row's length is a multiple of
HELD = 1e30  # the square of what no step shall move
UNIT = 232_792_560  # parts of one that distances up to 22 divide, as glove_count.hpp has it

Ids = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float32]


def active() -> bool:
    """Whether there are compiled kernels."""
    return _kernels is not None


class Weighting(NamedTuple):
    """f(X) = (X / most)^power, at most 1; at X = 0 it is 0, so there is no logarithm of 0."""

    most: float = 100.0
    power: float = 0.75

    def of_logs(self, logs: Tensor) -> Tensor:
        """f of counts that have these logarithms."""
        return torch.exp(self.power * (logs - float(np.log(self.most))).clamp(max=0.0))


class Pairs(NamedTuple):
    """Pairs of a word and a context; those of a word lie together, each context once."""

    rows: Ids  # (N,)
    columns: Ids
    logs: Floats  # of how often they come together


class Tiles(NamedTuple):
    """Where the pairs of each tile begin and end, (n,) both; no two share a row or a column."""

    begin: Longs
    end: Longs


@dataclass(frozen=True)
class GloveState:
    """Words and contexts under training, each (V, 2, stride): vectors, then squares."""

    words: Tensor
    contexts: Tensor
    size: int  # of a vector

    @classmethod
    def create(cls, words: int, size: int) -> "GloveState":
        """All zeros, but for what belongs to biases and squares, which begin with 1."""
        state = torch.zeros(2, words, 2, -(-(size + 2) // LANES) * LANES)
        state[:, :, 1] = 1.0
        for of, one in ((0, size + 1), (1, size)):
            state[of, :, 0, one] = 1.0
            state[of, :, 1, one] = HELD
        return cls(state[0], state[1], size)

    def put(self, vectors: Tensor, biases: Tensor, *, contexts: bool) -> None:
        """Begin from these: (V, E) and (V,)."""
        of = self.contexts if contexts else self.words
        of[:, 0, : self.size] = vectors
        of[:, 0, self.size + int(contexts)] = biases

    def get(self, *, contexts: bool) -> tuple[Tensor, Tensor]:
        """Vectors and biases, as they stand."""
        of = self.contexts if contexts else self.words
        return of[:, 0, : self.size], of[:, 0, self.size + int(contexts)]


def train_tiles(
    state: GloveState,
    pairs: Pairs,
    tiles: Tiles,
    weighting: Weighting,
    *,
    rate: float,
    threads: int,
) -> float:
    """Learn from the pairs of these tiles; the summed loss."""
    _check(state, pairs, tiles)
    loss = np.zeros(len(tiles.begin))
    run = _kernels.GloveRun(
        rows=pairs.rows.ctypes.data,
        columns=pairs.columns.ctypes.data,
        logs=pairs.logs.ctypes.data,
        begin=tiles.begin.ctypes.data,
        end=tiles.end.ctypes.data,
        words=state.words.data_ptr(),
        contexts=state.contexts.data_ptr(),
        stride=state.words.shape[2],
        tiles=len(tiles.begin),
        threads=threads,
        rate=rate,
        log_most=float(np.log(weighting.most)),
        power=weighting.power,
        loss=loss.ctypes.data,
    )
    _kernels.glove_train(run)
    return float(loss.sum())


def _check(state: GloveState, pairs: Pairs, tiles: Tiles) -> None:
    number = len(pairs.rows)
    if len(pairs.columns) != number or len(pairs.logs) != number:
        raise ValueError("rows, columns and logarithms are not equally many")
    if len(tiles.begin) != len(tiles.end) or state.words.shape != state.contexts.shape:
        raise ValueError("what belongs together has unequal sizes")
    if np.any(tiles.begin < 0) or np.any(tiles.end > number):
        raise ValueError(f"a tile lies outside the {number} pairs")


def train_tiles_plainly(
    state: GloveState, pairs: Pairs, tiles: Tiles, weighting: Weighting, *, rate: float
) -> float:
    """The kernel's twin in torch: the same steps in the same order."""
    total = 0.0
    weights = weighting.of_logs(torch.from_numpy(pairs.logs))
    for begin, end in zip(tiles.begin.tolist(), tiles.end.tolist(), strict=True):
        for pair in range(begin, end):
            row = state.words[int(pairs.rows[pair])]
            column = state.contexts[int(pairs.columns[pair])]
            total += _learn(row, column, float(pairs.logs[pair]), weights[pair], rate=rate)
    return total


def _learn(row: Tensor, column: Tensor, log: float, weight: Tensor, *, rate: float) -> float:
    """One step by a pair, of which both states are (2, stride)."""
    error = row[0] @ column[0] - log
    pull = rate * weight * error
    for state, by in ((row, pull * column[0]), (column, pull * row[0])):
        state.copy_(torch.stack([state[0] - by / state[1].sqrt(), state[1] + by**2]))
    return float(weight * error**2)


def counter(ids: Ids, starts: Longs, V: int, window: int) -> "_kernels.PairCounter":
    """What counts the pairs of lines of ids, row by row."""
    return _kernels.PairCounter(ids, starts, V, window)


def order(
    counted: Longs,
    starts: Longs,
    block: Ids,
    rows: Ids,
    *,
    classes: int,
    begin: Longs,
    pairs: Pairs,
    threads: int,
) -> None:
    """Fill in the counted pairs (N, 2), bucket by bucket with rows in this order, and its begin."""
    blocks = (len(begin) - 1) // classes
    flat = counted.reshape(-1)
    _kernels.order_pairs(flat, starts, block, rows, classes, blocks, begin, *pairs, threads)
