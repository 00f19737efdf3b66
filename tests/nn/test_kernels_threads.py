"""The kernels on several threads: the same numbers, whichever way the work is split.

What the kernels themselves sum, they sum in the same order: y, the last states and all gradients
have the same bits for every number of threads. The gradients of large weights are torch's matrix
product: it gives the same bits for the same number of threads, which is all that is asked of it
here.
"""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from kernel_checks import (
    SETS,
    by_reference,
    first_states,
    instructions,
    needs_kernels,
    outputs,
    random_upstream,
    same_bits,
    threads,
    with_gradients,
    worst,
)
from networks import VARIANTS, every_variant
from torch import Tensor

from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell, State

pytestmark = [needs_kernels, pytest.mark.arithmetic, pytest.mark.slow]

# Sizes that csrc/plan.cpp splits by rows; by units, as there is one row; by units, as the weights
# are too large for a core's own cache; and more threads than rows.
CASES = {
    "by rows": (9, 33, [7, 2, 5, 7, 1, 3, 4, 4, 6]),
    "one row": (1, 200, [6]),
    "large": (3, 640, [4, 1, 3]),
    "fewer rows than threads": (2, 17, [5, 3]),
}
every_case = pytest.mark.parametrize("case", CASES)
HEAVY: list[Cell] = [LSTMCell(peephole="full"), GRUCell("before"), GRUCell()]

Call = tuple[Recurrent, Tensor, Tensor, State, list[Tensor]]


def call_of(case: str, cell: Cell, **options: object) -> Call:
    rows, H, lengths = CASES[case]
    net = Recurrent(5, H, cell=cell, **options)
    x = torch.randn(rows, max(lengths), 5, requires_grad=True)
    call = (net, x, torch.tensor(lengths), first_states(net, rows))
    return (*call, random_upstream(*call))


@every_case
@pytest.mark.parametrize("cell", HEAVY, ids=str)
def test_any_number_of_threads_agrees_with_the_reference(case, cell):
    call = call_of(case, cell)
    expected = by_reference(*call)
    for count in (1, 2, 3):
        with threads(count):
            assert worst(with_gradients(*call), expected) < 6e-6


@every_variant
def test_both_splits_of_every_variant(cell):
    for case in ("by rows", "one row"):
        call = call_of(case, cell)
        expected = by_reference(*call)
        with threads(2):
            for name in SETS:
                with instructions(name):
                    assert worst(with_gradients(*call), expected) < 6e-6, (case, name)


@pytest.mark.parametrize("bidirectional", [False, True])
@every_case
def test_the_same_threads_give_the_same_bits(case, bidirectional):
    call = call_of(case, LSTMCell(), bidirectional=bidirectional)
    for count in (1, 2):
        with threads(count):
            assert same_bits(with_gradients(*call), with_gradients(*call))


@pytest.mark.parametrize("bidirectional", [False, True])
@every_case
@pytest.mark.parametrize("cell", [*HEAVY, RNNCell()], ids=str)
def test_what_the_kernels_sum_has_the_same_bits_for_any_number_of_threads(
    case, cell, bidirectional
):
    net, x, lengths, state, upstream = call_of(case, cell, bidirectional=bidirectional)

    def own() -> list[Tensor]:
        """y, the last states and the gradients of the first."""
        everything = with_gradients(net, x, lengths, state, upstream)
        count = 1 + len(state)
        return everything[:count] + everything[count + 1 : count + 1 + len(state)]

    alone = own()
    for count in (2, 3):
        with threads(count):
            assert same_bits(own(), alone)


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", [*HEAVY, RNNCell()], ids=str)
def test_a_training_step_has_the_same_bits_for_any_number_of_threads(cell, bidirectional):
    net = Recurrent(21, 33, cell=cell, bidirectional=bidirectional)
    x, lengths = torch.randn(6, 400, 21, requires_grad=True), [400, 1, 399, 250, 17, 400]
    call = (net, x, torch.tensor(lengths), first_states(net, 6))
    call = (*call, random_upstream(*call))
    alone = with_gradients(*call)
    for count in (1, 2, 3):
        with threads(count):
            assert same_bits(with_gradients(*call), alone)


@pytest.mark.parametrize("cell", VARIANTS[::4], ids=str)
@torch.no_grad()
def test_single_steps_have_the_same_bits_for_any_number_of_threads(cell):
    net = Recurrent(7, 200, cell=cell)
    for rows in (1, 9):
        x, state = torch.randn(rows, 1, 7), first_states(net, rows)
        alone = outputs(net, x, None, state)
        for count in (2, 3):
            with threads(count):
                assert same_bits(outputs(net, x, None, state), alone)


def test_callers_on_several_threads_do_not_disturb_each_other():
    calls = [call_of("by rows", cell, bidirectional=True) for cell in VARIANTS]
    with ThreadPoolExecutor(1) as pool:
        expected = list(pool.map(lambda call: with_gradients(*call), calls))
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            got = pool.map(lambda call: with_gradients(*call), calls)
            assert all(same_bits(g, e) for g, e in zip(got, expected, strict=True))
