"""The compiled module. `forward` is given tensors and looks at them; all else is given addresses,
which it trusts, and writes its results there.

Classes come twice, for float32 and float64, and take the fields of csrc/recurrent.hpp by name: what
is left out is null or 0.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]

def name() -> str: ...
def available() -> list[str]: ...
def use(name: str) -> None: ...
def keep_buffers(bytes: int) -> None: ...
def read_tensors(tensor: type, parameter: type, table: object) -> None: ...

# ------------------------------------------------------------------ recurrent layers

class RnnCell:
    def __init__(self, *, activation: str) -> None: ...

class LstmCell:
    def __init__(self, *, output: str, peephole: str) -> None: ...

class GruCell:
    def __init__(self, *, reset: str, update: str) -> None: ...

class _Packed:
    def __init__(self, *, input_weights: int, weights: int, G: int, H: int, E: int) -> None: ...
    @property
    def set_name(self) -> str: ...

class Packed32(_Packed): ...
class Packed64(_Packed): ...

class _Forward:
    def __init__(
        self,
        *,
        reverse: bool = ...,
        weights: int = ...,
        input_bias: int = ...,
        state_bias: int = ...,
        peephole: int = ...,
        first_h: int = ...,
        first_c: int = ...,
        gates: int = ...,
        inner: int = ...,
        cells: int = ...,
        before: int = ...,
        y: int = ...,
        y_row: int = ...,
        y_step: int = ...,
        last_h: int = ...,
        last_c: int = ...,
        input: int = ...,
        x_row: int = ...,
        x_step: int = ...,
        input_weights: int = ...,
        E: int = ...,
        packed: _Packed | None = ...,
    ) -> None: ...

class Forward32(_Forward): ...
class Forward64(_Forward): ...

class _Backward:
    def __init__(
        self,
        *,
        reverse: bool = ...,
        weights: int = ...,
        peephole: int = ...,
        first_c: int = ...,
        gates: int = ...,
        inner: int = ...,
        cells: int = ...,
        before: int = ...,
        dy: int = ...,
        y_row: int = ...,
        y_step: int = ...,
        dlast_h: int = ...,
        dlast_c: int = ...,
        dfirst_h: int = ...,
        dfirst_c: int = ...,
        input: int = ...,
        x_row: int = ...,
        x_step: int = ...,
        input_weights: int = ...,
        E: int = ...,
        dinput: int = ...,
        dinput_weights: int = ...,
        dweights: int = ...,
        dinput_bias: int = ...,
        dstate_bias: int = ...,
        dpeephole: int = ...,
        dgates: int = ...,
        dinner: int = ...,
        gate_step: int = ...,
        inner_step: int = ...,
    ) -> None: ...

class Backward32(_Backward): ...
class Backward64(_Backward): ...

def are_plain(tensors: list[Tensor | None]) -> bool: ...
def forward(
    cell: RnnCell | LstmCell | GruCell,
    x: Tensor,
    tensors: list[Tensor | None],
    *,
    y: Tensor,
    last: list[Tensor],
    kept: list[Tensor | None],
    packed: list[_Packed],
    directions: int,
    B: int,
    steps: int,
    threads: int,
    lengths: Sequence[int],
) -> bool: ...
def backward(
    cell: RnnCell | LstmCell | GruCell,
    directions: Sequence[_Backward],
    *,
    B: int,
    H: int,
    steps: int,
    threads: int,
    lengths: Sequence[int],
) -> None: ...

class _Steps:
    def __init__(
        self, cell: RnnCell | LstmCell | GruCell, layers: Sequence[_Forward], *, H: int
    ) -> None: ...
    def run(
        self, *, N: int, threads: int, x: int, h: int, c: int, next_h: int, next_c: int
    ) -> None: ...

class Steps32(_Steps): ...
class Steps64(_Steps): ...

# ------------------------------------------------------------------ softmax and chain

class _Softmax:
    def __init__(
        self, *, z: int, bias: int, targets: int, nats: int, N: int, V: int, smoothing: float
    ) -> None: ...

class Softmax32(_Softmax): ...
class Softmax64(_Softmax): ...

def softmax(rows: _Softmax, *, threads: int) -> None: ...

class _Chain:
    def __init__(
        self,
        *,
        scores: int,
        transitions: int,
        lengths: int,
        B: int,
        steps: int,
        K: int,
        log_z: int = ...,
        nodes: int = ...,
        edges: int = ...,
        paths: int = ...,
        best: int = ...,
    ) -> None: ...

class Chain32(_Chain): ...
class Chain64(_Chain): ...

def chain_sums(chain: _Chain, *, threads: int) -> None: ...
def chain_best(chain: _Chain, *, threads: int) -> None: ...

# ------------------------------------------------------------------ n-grams and words

class Ngrams:
    def __init__(
        self,
        words: Sequence[Ints],
        log_p: Sequence[Doubles],
        log_b: Sequence[Doubles],
        begin: Sequence[Longs],
        missing: float,
    ) -> None: ...
    def nats(self, ids: Ints, out: Doubles, threads: int) -> None: ...

class NgramCounter:
    def __init__(self, ids: Ints, V: int) -> None: ...
    def by_token_before(self, free: Longs, places: Ints) -> None: ...
    def level(
        self,
        below_words: Ints,
        below_count: Longs,
        here: Ints,
        places: Ints,
        above: Ints | None,
        words: Ints,
        count: Longs,
        suffix: Ints,
        begin: Longs,
    ) -> tuple[int, int]: ...

def interpolated(
    count: Longs,
    raw: Longs,
    suffix: Ints | None,
    begin: Longs,
    lower: Doubles,
    cutoff: int,
    discounts: Sequence[float],
    p: Doubles,
    left: Doubles,
) -> None: ...

class WordIndex:
    def __init__(self) -> None: ...
    def add(self, word: bytes) -> int: ...
    def read(self, lines: list[str] | list[bytes], unknown: int) -> tuple[Ints, Longs]: ...
    def read_letters(self, text: bytes, table: NDArray[np.uint32]) -> tuple[Ints, Longs]: ...
    def words(self) -> list[bytes]: ...

class EmbedRun:
    def __init__(self, **fields: float) -> None: ...

def embed_train(run: EmbedRun) -> None: ...

class _TreeCall:
    def __init__(self, **fields: int) -> None: ...

class TreeCall32(_TreeCall): ...
class TreeCall64(_TreeCall): ...

def tree_forward(call: _TreeCall, *, threads: int) -> None: ...
def tree_backward(call: _TreeCall, *, threads: int) -> None: ...

class _GreedyCall:
    def __init__(self, **fields: int) -> None: ...

class GreedyCall32(_GreedyCall): ...
class GreedyCall64(_GreedyCall): ...

def tree_greedy(call: _GreedyCall, *, threads: int) -> None: ...

class GloveRun:
    def __init__(self, **fields: float) -> None: ...

def glove_train(run: GloveRun) -> None: ...

class PairCounter:
    def __init__(self, ids: Ints, starts: Longs, V: int, window: int) -> None: ...
    def rows(self, first: int, pairs: Longs, threads: int) -> tuple[int, int]: ...

def order_pairs(
    pairs: Longs,
    starts: Longs,
    block: Ints,
    order: Ints,
    classes: int,
    blocks: int,
    begin: Longs,
    rows: Ints,
    columns: Ints,
    logs: NDArray[np.float32],
    threads: int,
) -> None: ...
