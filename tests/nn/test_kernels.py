"""The kernels against the reference: values and gradients, for whatever comes in and goes out."""

import platform
import subprocess
import sys

import pytest
import torch
from kernel_checks import (
    BEST,
    SETS,
    by_reference,
    first_states,
    instructions,
    needs_kernels,
    outputs,
    random_upstream,
    same_bits,
    with_gradients,
    worst,
)
from networks import VARIANTS, every_variant, main_cells
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell, State, kernels, reference

pytestmark = [needs_kernels, pytest.mark.arithmetic, pytest.mark.slow]

ROUNDING = {torch.float32: 4e-6, torch.float64: 5e-14}
every_type = pytest.mark.parametrize("dtype", ROUNDING, ids=str)
BATCHES = {
    "one row": [5],
    "one step": [1],
    "rows of one step": [1, 1, 1],
    "rows of two steps": [2, 1, 2],
    "equal": [4, 4, 4],
    "ragged": [3, 7, 1, 7, 2, 5],
    "one long": [1, 2, 60, 1, 3],
    "many": [1 + k % 4 for k in range(37)],
}


def network(cell: Cell, E: int, H: int, dtype: torch.dtype, **options: object) -> Recurrent:
    return Recurrent(E, H, cell=cell, dtype=dtype, **options)


def check(net: Recurrent, x: Tensor, lengths: Tensor | None) -> None:
    """Every instruction set against the reference, for random states and upstream gradients."""
    state = first_states(net, len(x))
    call = (net, x.requires_grad_(), lengths, state)
    call = (*call, random_upstream(*call))
    expected = by_reference(*call)
    for name in SETS:
        with instructions(name):
            got = with_gradients(*call)
        error = worst(got, expected)
        assert error < ROUNDING[x.dtype], f"{name}: {error:.1e}"


def test_the_kernels_are_what_runs():
    net = network(LSTMCell(), 3, 4, torch.float32)
    assert net(torch.randn(2, 5, 3))[0].grad_fn.name() == "_LayerBackward"
    with reference():
        assert net(torch.randn(2, 5, 3))[0].grad_fn.name() != "_LayerBackward"


@every_type
@every_variant
def test_nan_goes_where_it_goes_by_the_equations(cell, dtype):
    """One NaN in x: the same numbers are NaN forward and back, the others are as near as ever."""
    net, x = network(cell, 3, 5, dtype), torch.randn(2, 6, 3, dtype=dtype)
    x[1, 3, 0] = torch.nan
    call = (net, x.requires_grad_(), None, first_states(net, 2))
    call = (*call, random_upstream(*call))
    expected = by_reference(*call)
    for name in SETS:
        with instructions(name):
            for got, right in zip(with_gradients(*call), expected, strict=True):
                torch.testing.assert_close(
                    got, right, rtol=0, atol=ROUNDING[dtype], equal_nan=True, msg=name
                )


@pytest.mark.row("F10")
@every_type
@every_variant
@pytest.mark.parametrize(("H", "E"), [(1, 7), (3, 1), (7, 33), (33, 65), (65, 3)])
def test_every_variant_and_size(cell, H, E, dtype):
    lengths = torch.tensor(BATCHES["ragged"])
    check(network(cell, E, H, dtype), torch.randn(6, 7, E, dtype=dtype), lengths)


@every_type
@every_variant
def test_enough_tokens_for_the_kernels_to_make_the_inputs_part(cell, dtype):
    lengths = torch.tensor([9, 1, 30, 17, 30, 2])  # 89
    for H, E in ((7, 33), (33, 5)):
        x = torch.randn(6, 30, E, dtype=dtype)
        check(network(cell, E, H, dtype, bidirectional=H == 7), x, lengths)


@every_variant
def test_gradients_of_weights_that_are_left_to_torch(cell, monkeypatch):
    monkeypatch.setattr(kernels, "OWN_UNITS", 0)
    for lengths in (torch.tensor([9, 1, 30, 17, 30, 2]), None):
        x = torch.randn(6, 30, 5, dtype=torch.float64)
        check(network(cell, 5, 7, torch.float64, bidirectional=True), x, lengths)


@main_cells
@pytest.mark.parametrize("tokens", [1023, 1024, 1025, 2500])
def test_more_tokens_than_are_summed_at_once(cell, tokens):
    x = torch.randn(2, tokens, 3, dtype=torch.float64)
    check(network(cell, 3, 5, torch.float64), x, torch.tensor([tokens, 1]))


@main_cells
@pytest.mark.parametrize("H", [96, 97])  # whole lines of the cache, and others
def test_more_to_keep_than_the_caches_hold(cell, H):
    x = torch.randn(48, 64, 5, dtype=torch.float64)
    check(network(cell, 5, H, torch.float64), x, torch.tensor([64, 57] * 24))


@every_variant
@pytest.mark.parametrize("batch", BATCHES)
def test_every_variant_and_batch(cell, batch):
    lengths = torch.tensor(BATCHES[batch])
    x = torch.randn(len(lengths), int(lengths.max()), 3, dtype=torch.float64)
    check(network(cell, 3, 7, torch.float64, bidirectional=True), x, lengths)


@every_variant
def test_layers_directions_and_no_bias(cell):
    x = torch.randn(4, 6, 3, dtype=torch.float64)
    for options in ({"bias": False}, {"layers": 3, "bidirectional": True, "bias": False}):
        check(network(cell, 3, 5, torch.float64, **options), x, torch.tensor([6, 1, 4, 2]))
        check(network(cell, 3, 5, torch.float64, **options), x, None)


@every_variant
@pytest.mark.parametrize("H", [5, 130])
def test_no_first_state_is_a_state_of_zeros(cell, H):
    net = network(cell, 3, H, torch.float64, layers=2, bidirectional=True)
    x, lengths = torch.randn(3, 40, 3, dtype=torch.float64), torch.tensor([7, 40, 25])
    zeros = tuple(torch.zeros_like(s) for s in first_states(net, 3))
    upstream = random_upstream(net, x, lengths, zeros)

    def run(state: State | None) -> list[Tensor]:
        y, last = net(x, lengths, state)
        gradients = torch.autograd.grad([y, *last], list(net.parameters()), upstream)
        return [y.detach(), *(s.detach() for s in last), *gradients]

    for name in SETS:
        with instructions(name):
            assert same_bits(run(None), run(zeros)), name


@every_variant
def test_the_last_steps_beyond_the_batch_are_steps_of_nobody(cell):
    net = network(cell, 3, 5, torch.float64, bidirectional=True)
    x, lengths = torch.randn(2, 9, 3, dtype=torch.float64), torch.tensor([4, 2])
    check(net, x, lengths)
    y, _ = net(x, lengths)
    assert not y[:, 4:].any()


def test_an_empty_batch_is_no_trouble():
    for cell in VARIANTS:
        net = network(cell, 3, 5, torch.float32, bidirectional=True)
        y, last = net(torch.zeros(0, 4, 3), torch.zeros(0, dtype=torch.int64))
        y.sum().backward()
        assert y.shape == (0, 4, 10)
        assert all(s.shape == (2, 0, 5) for s in last)
        assert not net.weight_hh_l0.grad.any()


# ------------------------------------------------------------------ how tensors lie in memory


@main_cells
def test_inputs_that_are_not_contiguous(cell):
    lengths = torch.tensor([5, 2, 4])
    turned = torch.randn(5, 3, 4, dtype=torch.float64).transpose(0, 1)
    strided = torch.randn(6, 10, 12, dtype=torch.float64)[::2, ::2, 1::3]
    spread = torch.randn(1, 5, 4, dtype=torch.float64).expand(3, 5, 4)
    for x in (turned, strided, spread):
        assert not x.is_contiguous()
        check(network(cell, 4, 7, torch.float64, bidirectional=True), x, lengths)
        check(network(cell, 4, 7, torch.float64), x, None)


@every_variant
def test_parameters_and_states_that_are_not_contiguous(cell):
    net = network(cell, 4, 7, torch.float64, first_state="learned")
    for parameter in net.parameters():
        wide = torch.randn(*parameter.shape[::-1], 2, dtype=torch.float64)[..., 1]
        parameter.data = wide.t() if parameter.dim() == 2 else wide
    assert not net.weight_hh_l0.is_contiguous()
    x, lengths = torch.randn(3, 5, 4, dtype=torch.float64), torch.tensor([5, 2, 4])
    check(net, x, lengths)
    with reference():
        expected, _ = net(x, lengths)
    assert worst([net(x, lengths)[0]], [expected]) < 1e-14  # from learned states, expanded


@main_cells
def test_lengths_are_read_as_they_were_whatever_becomes_of_them(cell):
    net, x = network(cell, 3, 5, torch.float64), torch.randn(3, 6, 3, dtype=torch.float64)
    x.requires_grad_()
    strided = torch.tensor([6, 99, 2, -4, 3, 0])[::2]
    spread = torch.tensor([4]).expand(3)
    for lengths in (strided, spread):
        check(net, x, lengths)
    lengths = torch.tensor([6, 2, 3])
    y, _ = net(x, lengths)
    upstream = torch.randn_like(y)
    (expected,) = torch.autograd.grad(y, x, upstream, retain_graph=True)
    lengths.fill_(1)
    (got,) = torch.autograd.grad(y, x, upstream)
    assert torch.equal(got, expected)


@main_cells
def test_gradients_that_are_not_contiguous(cell):
    net = network(cell, 3, 5, torch.float64, bidirectional=True)
    x = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    call = (net, x, torch.tensor([6, 2, 3]), first_states(net, 3))
    upstream = [u.transpose(0, 1).contiguous().transpose(0, 1) for u in random_upstream(*call)]
    assert worst(with_gradients(*call, upstream), by_reference(*call, upstream)) < 5e-14
    upstream = [torch.ones((), dtype=torch.float64).expand_as(u) for u in upstream]
    assert worst(with_gradients(*call, upstream), by_reference(*call, upstream)) < 5e-14


# ------------------------------------------------------------------ what is used downstream


@every_variant
def test_outputs_that_nobody_uses(cell):
    net = network(cell, 3, 5, torch.float64, layers=2, bidirectional=True)
    x = torch.randn(3, 6, 3, dtype=torch.float64, requires_grad=True)
    call = (net, x, torch.tensor([6, 1, 3]), first_states(net, 3))
    upstream = random_upstream(*call)
    for used in range(len(upstream)):
        alone = [u if k == used else None for k, u in enumerate(upstream)]
        assert worst(with_gradients(*call, alone), by_reference(*call, alone)) < 5e-14


def test_gradients_of_some_inputs_alone():
    net = network(GRUCell(), 3, 5, torch.float64)
    x, lengths = torch.randn(3, 6, 3, dtype=torch.float64), torch.tensor([6, 1, 3])
    everything = [x, *net.parameters()]
    for wanted in everything:
        for tensor in everything:
            tensor.requires_grad_(tensor is wanted)
        (got,) = torch.autograd.grad(net(x, lengths)[0].sin().sum(), wanted)
        with reference():
            (expected,) = torch.autograd.grad(net(x, lengths)[0].sin().sum(), wanted)
        assert worst([got], [expected]) < 5e-14


@main_cells
@pytest.mark.parametrize("frozen", ["_l0", "_l0_reverse"])
def test_directions_may_differ_in_what_is_frozen(cell, frozen):
    """Each direction needs as much room as is wanted of it."""
    net = network(cell, 33, 5, torch.float64, bidirectional=True)
    names = [name + frozen for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
    for name, parameter in net.named_parameters():
        parameter.requires_grad_(name not in names)
    x = torch.randn(9, 40, 33, dtype=torch.float64)
    wanted = [p for p in net.parameters() if p.requires_grad]
    upstream = torch.randn(9, 40, 10, dtype=torch.float64)
    with reference():
        expected = torch.autograd.grad(net(x)[0], wanted, upstream)
    for _ in range(3):  # memory that an earlier call has left
        assert worst(torch.autograd.grad(net(x)[0], wanted, upstream), expected) < 1e-12


def test_what_is_frozen_costs_no_product():
    B, T, E, H = 2, 4, 3, 224  # large enough for torch's products, which can be counted
    net = network(LSTMCell(), E, H, torch.float64)
    x = torch.randn(B, T, E, dtype=torch.float64, requires_grad=True)

    def products() -> int:
        y, _ = net(x)
        with FlopCounterMode(display=False) as counter:
            y.sum().backward()
        return int(counter.get_total_flops())

    everything, product = products(), 2 * B * T * 4 * H
    net.weight_ih_l0.requires_grad_(False)
    assert everything - products() == product * E
    net.weight_hh_l0.requires_grad_(False)
    assert everything - products() == product * (E + H)
    assert net.bias_ih_l0.grad is not None


def test_gradients_add_up_and_share_no_memory():
    net = network(LSTMCell(), 3, 5, torch.float64)
    x = torch.randn(3, 6, 3, dtype=torch.float64)
    net(x)[0].sin().sum().backward()
    once = [p.grad.clone() for p in net.parameters()]
    assert len({p.grad.data_ptr() for p in net.parameters()}) == len(once)
    net(x)[0].sin().sum().backward()
    assert same_bits([p.grad for p in net.parameters()], [2 * g for g in once])


@main_cells
def test_what_is_kept_has_the_size_of_the_real_tokens(cell):
    H, lengths = 5, torch.tensor([50, 1, 2, 1])
    net = network(cell, 3, H, torch.float32)
    x = torch.randn(4, 50, 3)
    y, _ = net(x, lengths)
    given = {t.data_ptr() for t in (x, *net.parameters())}
    kept = [t for t in y.grad_fn.saved_tensors if t is not None and t.data_ptr() not in given]
    assert {len(t) for t in kept} == {int(lengths.sum())}
    extra = 0 if cell == RNNCell() else 1
    assert sum(t.size(1) for t in kept) == (cell.gates + 1 + extra) * H


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have other ways")
def test_a_step_of_training_finds_its_memory_where_the_last_one_left_it():
    code = """
import resource, torch
from unrolled.nn import Recurrent, RNNCell
from unrolled.tasks.run import use_machine
use_machine(0)
net, x = Recurrent(128, 128, cell=RNNCell()), torch.randn(32, 64, 128, requires_grad=True)
def train(steps):
    for _ in range(steps):
        net(x)[0].sum().backward()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = train(10)
print((train(50) - before) / 50)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 60  # of 4 KB; it was 200 to 1,000


def test_a_changed_input_is_noticed_before_the_way_back():
    net, x = network(LSTMCell(), 3, 5, torch.float32), torch.randn(2, 4, 3)
    y, _ = net(x)
    x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.row("D4", "F10")
@every_variant
def test_finite_differences(cell):
    net = network(cell, 2, 3, torch.float64, bidirectional=True)
    x = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    state, lengths = first_states(net, 3), torch.tensor([4, 1, 3])
    parameters = list(net.parameters())

    def run(x: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        return tuple(outputs(net, x, lengths, tensors[: len(state)]))

    assert torch.autograd.gradcheck(run, (x, *state, *parameters), atol=1e-8, rtol=1e-6)


# ------------------------------------------------------------------ a single step, and no gradients


@every_type
@every_variant
def test_single_steps_without_gradients(cell, dtype):
    for rows, H, E in ((1, 33, 7), (5, 65, 33), (64, 7, 1), (65, 3, 65)):
        net = network(cell, E, H, dtype, layers=2, bidirectional=True, bias=rows != 5)
        x, state = torch.randn(rows, 3, E, dtype=dtype)[:, 1:2], first_states(net, rows)
        with torch.no_grad():
            with reference():
                expected = outputs(net, x, None, state)
            for name in SETS:
                with instructions(name):
                    assert worst(outputs(net, x, None, state), expected) < ROUNDING[dtype], name


@every_variant
def test_inference_gives_the_bits_of_training(cell):
    net = network(cell, 3, 33, torch.float32, layers=2, bidirectional=True)
    x, lengths, state = torch.randn(5, 7, 3), torch.tensor([7, 3, 1, 5, 7]), first_states(net, 5)
    trained = outputs(net, x, lengths, state)
    with torch.no_grad():
        assert same_bits(outputs(net, x, lengths, state), trained)
    with torch.inference_mode():
        assert same_bits(outputs(net, x, lengths, state), trained)


# ------------------------------------------------------------------ padding and neighbours


@every_variant
def test_what_stands_in_the_padding_reaches_nothing(cell):
    net = network(cell, 3, 7, torch.float64, layers=2, bidirectional=True)
    lengths = torch.tensor([6, 1, 4, 2])
    padding_mask = (torch.arange(6) >= lengths[:, None])[:, :, None]
    x, state = torch.randn(4, 6, 3, dtype=torch.float64), first_states(net, 4)
    upstream = random_upstream(net, x, lengths, state)

    def filled(junk: float) -> list[Tensor]:
        dirty = x.masked_fill(padding_mask, junk).requires_grad_()
        weights = [upstream[0].masked_fill(padding_mask, junk), *upstream[1:]]
        return with_gradients(net, dirty, lengths, state, weights)

    clean = filled(0.0)
    assert all(t.isfinite().all() for t in clean)
    for junk in (torch.nan, torch.inf, -torch.inf, 1e300):
        assert same_bits(filled(junk), clean)
    y, dx = clean[0], clean[1 + len(state)]
    assert not y.masked_select(padding_mask).any()
    assert not dx.masked_select(padding_mask).any()


@pytest.mark.parametrize("layers", [1, 2, 3])
@every_variant
def test_a_row_alone_is_the_row_in_its_batch(cell, layers):
    net = network(cell, 3, 9, torch.float64, layers=layers, bidirectional=True)
    lengths = torch.tensor([5, 1, 9, 2, 9, 3])
    x, state = torch.randn(6, 9, 3, dtype=torch.float64), first_states(net, 6)
    y, *last = outputs(net, x, lengths, state)
    for row, length in enumerate(lengths.tolist()):
        own = tuple(s[:, row : row + 1] for s in state)
        alone = outputs(net, x[row : row + 1, :length], None, own)
        expected = [y[row : row + 1, :length], *(s[:, row : row + 1] for s in last)]
        assert worst(alone, expected) < 1e-14


@every_variant
def test_alone_or_in_a_batch_the_kernels_give_the_same_bits(cell):
    net = network(cell, 7, 33, torch.float32, layers=2, bidirectional=True)
    lengths = torch.tensor([5, 1, 9, 2, 70, 3, 8, 1, 2])
    x, state = torch.randn(9, 70, 7), first_states(net, 9)
    y, *last = outputs(net, x, lengths, state)
    upstream = random_upstream(net, x, lengths, state)
    back = torch.autograd.grad([y, *last], state, upstream)
    for row, length in enumerate(lengths.tolist()):
        one = slice(row, row + 1)
        own = tuple(s[:, one] for s in state)
        alone = outputs(net, x[one, :length], None, own)
        assert same_bits(alone, [y[one, :length], *(s[:, one] for s in last)])
        weights = [upstream[0][one, :length], *(u[:, one] for u in upstream[1:])]
        alone_back = torch.autograd.grad(alone, own, weights)
        assert same_bits(alone_back, [g[:, one] for g in back])


@every_variant
def test_any_number_of_rows_and_steps_has_the_same_bits(cell):
    """Weights are packed for some sizes and not for others: 3 steps and more, 17 rows and more."""
    net = network(cell, 19, 35, torch.float32)
    x, state = torch.randn(20, 4, 19), first_states(net, 20)
    with torch.no_grad():
        y, *_ = outputs(net, x, None, state)
        for rows in (1, 2, 5, 16, 17):
            for steps in (1, 2, 3):
                own = tuple(s[:, :rows] for s in state)
                part, *_ = outputs(net, x[:rows, :steps], None, own)
                assert same_bits([part], [y[:rows, :steps]])


def test_the_best_instructions_are_the_ones_in_use():
    assert SETS[0] == "portable"
    assert SETS[-1] == BEST
