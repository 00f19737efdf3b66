"""The bridge to the compiled trainer of word vectors; shapes are compared here, once for all."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.native import module as _kernels

LANES = 16  # numbers that a row's length is a multiple of
MASK = 2**64 - 1


def active() -> bool:
    """Whether there are compiled kernels."""
    return _kernels is not None


@dataclass(frozen=True)
class Chances:
    """By what words are skipped and negatives drawn: all (V,)."""

    keep: NDArray[np.float32]  # the chance of a word to be read
    alias_share: NDArray[np.float32]  # the noise distribution as an alias table
    alias_other: NDArray[np.int32]


@dataclass(frozen=True)
class Paths:
    """The way to each word through a binary tree: those of word w lie from starts[w] on."""

    starts: NDArray[np.int64]  # (V + 1,)
    nodes: NDArray[np.int32]
    turns: NDArray[np.float32]  # 1 or 0


@dataclass(frozen=True)
class Grams:
    """Rows of sub-words, whose mean with a word's own is its vector: word w's from starts[w] on."""

    starts: NDArray[np.int64]  # (V + 1,)
    rows: NDArray[np.int32]
    inputs: int  # rows there are: V, and those of sub-words


@dataclass(frozen=True)
class Step:
    """What one run of lines is trained with."""

    window: int
    words: int  # of a block
    shared: int  # negatives that a block shares
    negatives: int
    cbow: bool
    rate: float
    key: int  # of all that is drawn


class Matrices:
    """Input and output vectors with rows as the kernels want them, and the copies of threads."""

    def __init__(self, vectors: Tensor, outputs: Tensor, *, copies: int) -> None:
        self.inputs, self.dimension = vectors.shape
        stride = -(-self.dimension // LANES) * LANES
        self.rows = _zeros(self.inputs + len(outputs), stride)
        self.copies = _zeros(copies, *self.rows.shape) if copies > 1 else None
        self.put(vectors, outputs)

    def put(self, vectors: Tensor, outputs: Tensor) -> None:
        """Begin from these (I, E), (V, E)."""
        self.input[:] = vectors
        self.output[:] = outputs
        if self.copies is not None:
            self.copies[:] = self.rows

    @property
    def input(self) -> Tensor:
        """(I, E)"""
        return self.rows[: self.inputs, : self.dimension]

    @property
    def output(self) -> Tensor:
        """(V, E)"""
        return self.rows[self.inputs :, : self.dimension]


def _zeros(*shape: int) -> Tensor:
    """Beginning on a cache line, in large pages: those numpy asks for, and torch does not."""
    size = math.prod(shape)
    memory = torch.from_numpy(np.zeros(size + LANES, np.float32))
    begin = -memory.data_ptr() % (4 * LANES) // 4
    return memory[begin : begin + size].view(shape)


def train_lines(
    matrices: Matrices,
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    lines: tuple[int, int],
    chances: Chances,
    step: Step,
    *,
    threads: int,
    paths: Paths | None = None,
    grams: Grams | None = None,
) -> tuple[float, int]:
    """Learn from these lines: the summed loss in nats, and how many predictions it sums.

    With `paths` by a hierarchical softmax, else by negative sampling; with `grams` of sub-words.
    """
    V = len(matrices.rows) - matrices.inputs
    first, last = lines
    if not 0 <= first <= last < len(starts) or int(starts[last]) > len(ids):
        raise ValueError(f"lines {first} to {last} are not among those that there are")
    if any(len(values) != V for values in (chances.keep, chances.alias_share, chances.alias_other)):
        raise ValueError("the chances are not those of as many words as there are vectors")
    if matrices.copies is not None and len(matrices.copies) != threads:
        raise ValueError(f"there are {len(matrices.copies)} copies for {threads} threads")
    if paths is not None and (len(paths.starts) != V + 1 or paths.nodes.max() >= V):
        raise ValueError("the paths are not those of as many words as there are vectors")
    if grams is None and matrices.inputs != V:
        raise ValueError(f"there are {matrices.inputs} vectors for {V} words")
    if grams is not None and (
        len(grams.starts) != V + 1
        or grams.inputs != matrices.inputs
        or not 0 <= grams.rows.min(initial=0) <= grams.rows.max(initial=0) < grams.inputs
    ):
        raise ValueError("the sub-words are not those of as many words as there are vectors")
    loss, count = np.zeros(threads), np.zeros(threads, np.int64)
    touched = np.zeros((threads, len(matrices.rows)), np.uint8)
    run = _kernels.EmbedRun(
        ids=ids.ctypes.data,
        starts=starts.ctypes.data,
        first_line=first,
        last_line=last,
        rows=matrices.rows.data_ptr(),
        copies=0 if matrices.copies is None else matrices.copies.data_ptr(),
        touched=touched.ctypes.data,
        keep=chances.keep.ctypes.data,
        alias_share=chances.alias_share.ctypes.data,
        alias_other=chances.alias_other.ctypes.data,
        code_starts=0 if paths is None else paths.starts.ctypes.data,
        nodes=0 if paths is None else paths.nodes.ctypes.data,
        turns=0 if paths is None else paths.turns.ctypes.data,
        gram_starts=0 if grams is None else grams.starts.ctypes.data,
        grams=0 if grams is None else grams.rows.ctypes.data,
        V=V,
        inputs=matrices.inputs,
        stride=matrices.rows.shape[1],
        dimension=matrices.dimension,
        window=step.window,
        words=step.words,
        shared=step.shared,
        negatives=step.negatives,
        cbow=int(step.cbow),
        parts=threads,
        rate=step.rate,
        key=step.key & MASK,
        loss=loss.ctypes.data,
        count=count.ctypes.data,
    )
    _kernels.embed_train(run)
    return float(loss.sum()), int(count.sum())
