"""The bridge to the kernels refuses what does not fit, and leaves nothing to chance."""

import os
import subprocess
import sys

import pytest
import torch
from kernel_checks import SETS, instructions, needs_kernels, same_bits, worst
from networks import VARIANTS, every_variant, main_cells
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell, kernels
from unrolled.nn.cells import Weights
from unrolled.nn.compiled import name_of
from unrolled.nn.kernels import Call, Kept
from unrolled.nn.rows import PaddedRows, find_rows

pytestmark = [needs_kernels, pytest.mark.arithmetic]

B, T, E, H = 2, 3, 4, 5


def layer(cell: Cell, **shapes: tuple[int, ...]) -> list[Tensor | None]:
    """A direction's weights and a first state, some of them of other shapes."""
    G = cell.gates
    right = {
        "ih": (G * H, E),
        "hh": (G * H, H),
        "bias_ih": (G * H,),
        "bias_hh": (G * H,),
        "peephole": (cell.peepholes, H) if cell.peepholes else None,
        "h": (1, B, H),
        "c": (1, B, H) if cell.state_size == 2 else None,
    }
    fields = [*Weights._fields, "h", "c"]
    drawn = [right.get(name) and torch.randn(shapes.get(name, right[name])) for name in fields]
    return drawn if cell.state_size == 2 else drawn[:-1]


def call_of(cell: Cell, rows: PaddedRows | None = None) -> Call:
    return Call(cell, rows or PaddedRows(B, T, torch.device("cpu")), 1)


WRONG = [
    ("ih", (20, 3), r"ih is of shape \(20, 3\), but must be \(20, 4\)"),
    ("hh", (19, 5), r"hh is of shape \(19, 5\), but must be \(20, 5\)"),
    ("hh", (20,), r"hh is of shape \(20,\), but must be \(G·H, H\)"),
    ("bias_ih", (5,), r"bias_ih is of shape \(5,\), but must be \(20,\)"),
    ("bias_hh", (40,), r"bias_hh is of shape \(40,\), but must be \(20,\)"),
    ("peephole", (1, 5), r"peephole is of shape \(1, 5\), but must be \(3, 5\)"),
    ("h", (1, 1, 5), r"first h is of shape \(1, 1, 5\), but must be \(1, 2, 5\)"),
    ("c", (2, 2, 5), r"first c is of shape \(2, 2, 5\), but must be \(1, 2, 5\)"),
]


@pytest.mark.parametrize(("name", "shape", "message"), WRONG)
def test_tensors_of_other_shapes_are_refused_both_ways(name, shape, message):
    cell, x = LSTMCell(peephole="full"), torch.randn(B, T, E)
    tensors = layer(cell, **{name: shape})
    with pytest.raises(ConfigError, match=message):
        call_of(cell).forward(x, tensors, save=False)
    with pytest.raises(ConfigError, match=message):
        call_of(cell).backward(x, tensors, [], [], [True] * (1 + len(tensors)))


def test_batches_that_are_not_the_rows_are_refused():
    cell, cpu = GRUCell(), torch.device("cpu")
    x, tensors = torch.randn(B, T, E), layer(cell)
    for rows, message in (
        (PaddedRows(B, T + 1, cpu), r"x is of shape \(2, 3, 4\), but must be \(2, 4, E\)"),
        (PaddedRows(B, T, cpu, [3, 2, 1]), "There are 3 lengths, but 2 rows"),
        (PaddedRows(B, T, cpu, [3, 4]), r"A length is not in 1\.\.3"),
        (PaddedRows(B, T, cpu, [0, 3]), r"A length is not in 1\.\.3"),
    ):
        with pytest.raises(ConfigError, match=message):
            call_of(cell, rows).forward(x, tensors, save=False)
    with pytest.raises(ConfigError, match=r"x is of shape \(2, 3\), but must be \(B, T, E\)"):
        call_of(cell).forward(x[:, :, 0], tensors, save=False)


def test_states_peepholes_and_types_that_do_not_fit_are_refused():
    cell, x = LSTMCell(peephole="output"), torch.randn(B, T, E)
    tensors = layer(cell)
    with pytest.raises(ConfigError, match="first state has 1 tensors, but must have 2"):
        call_of(cell).forward(x, tensors[:-1], save=False)
    without = [t for t in tensors]
    without[Weights._fields.index("peephole")] = None
    with pytest.raises(ConfigError, match="peephole is missing"):
        call_of(cell).forward(x, without, save=False)
    with pytest.raises(ConfigError, match=r"ih is torch\.float32 on cpu, but must be .*float64"):
        call_of(cell).forward(x.double(), tensors, save=False)


KEPT = [
    ("gates", lambda t: t[:-1], r"kept\.gates is of shape \(5, 20\), but must be \(6, 20\)"),
    ("cells", lambda t: t[:, 1:], r"kept\.cells is of shape \(6, 4\), but must be \(6, 5\)"),
    ("before", lambda t: None, r"kept\.before is None, but must be of shape \(6, 5\)"),
    ("before", lambda t: t.double(), r"kept\.before is torch\.float64"),
]


@pytest.mark.parametrize(("name", "change", "message"), KEPT)
def test_what_was_not_kept_is_refused(name, change, message):
    cell, x, tensors = LSTMCell(), torch.randn(B, T, E), layer(LSTMCell())
    y, last, (kept,) = call_of(cell).forward(x, tensors, save=True)
    wanted = [True] * (1 + len(tensors))
    broken = kept._replace(**{name: change(getattr(kept, name))})
    with pytest.raises(ConfigError, match=message):
        call_of(cell).backward(x, tensors, [broken], [y, *last], wanted)


def test_gradients_from_downstream_that_do_not_fit_are_refused():
    cell, x, tensors = LSTMCell(), torch.randn(B, T, E), layer(LSTMCell())
    y, last, kept = call_of(cell).forward(x, tensors, save=True)
    wanted = [True] * (1 + len(tensors))
    for upstream, message in (
        ([y[:, :-1], *last], r"gradient of y is of shape \(2, 2, 5\), but must be \(2, 3, 5\)"),
        ([y, last[0][:, :1], last[1]], r"gradient of h is of shape \(1, 1, 5\)"),
        ([y, last[0]], "there are 2 gradients, but there must be 1 and 3"),
    ):
        with pytest.raises(ConfigError, match=message):
            call_of(cell).backward(x, tensors, kept, upstream, wanted)
    with pytest.raises(ConfigError, match="kept is of 0 directions"):
        call_of(cell).backward(x, tensors, [], [y, *last], wanted)


def test_anybody_may_call_the_operators_with_anything():
    cell, x, lengths = GRUCell(), torch.randn(B, T, E), torch.tensor([3, 1])
    tensors = [t for t in layer(cell) if t is not None]
    names = name_of(cell)
    y, h, *kept = torch.ops.unrolled.layer(x, lengths, tensors, names, 1, True)
    back = torch.ops.unrolled.layer_backward
    back(x, lengths, tensors, kept, [y, h], names, 1)
    with pytest.raises(ConfigError, match="gates is of shape"):
        back(x, lengths, tensors, [t[:2] for t in kept], [y, h], names, 1)
    with pytest.raises(ConfigError, match="gradient of y is of shape"):
        back(x, lengths, tensors, kept, [h, h], names, 1)
    with pytest.raises(ConfigError, match="hh is of shape"):
        torch.ops.unrolled.layer(
            x, lengths, [tensors[0], tensors[1][:7], *tensors[2:]], names, 1, True
        )


def test_the_sizes_of_a_graph_are_those_of_a_call_that_could_run():
    """Where a tensor has no memory, only sizes are worked out; x may be None in the schema."""
    cell, lengths = LSTMCell(), torch.tensor([3, 1], device="meta")
    x = torch.randn(B, T, E, device="meta")
    tensors = [t.to("meta") for t in layer(cell) if t is not None]
    forward, back = torch.ops.unrolled.layer, torch.ops.unrolled.layer_backward
    y, h, c, *kept = forward(x, lengths, tensors, name_of(cell), 1, True)
    assert [t.shape for t in (y, h, c)] == [(B, T, H), (1, B, H), (1, B, H)]
    for wrong_x, wrong_tensors, message in (
        (None, tensors, "x is None of NoneType, but must be a tensor"),
        (x[0], tensors, r"x is of shape \(3, 4\), but must be \(B, T, E\)"),
        (x, tensors[:1], "there are 1 tensors for 1 directions"),
        (x, [tensors[0], tensors[2], *tensors[2:]], r"weight_hh is of shape \(20,\)"),
    ):
        with pytest.raises(ConfigError, match=message):
            forward(wrong_x, lengths, wrong_tensors, name_of(cell), 1, True)
        with pytest.raises(ConfigError, match=message):
            back(wrong_x, lengths, wrong_tensors, kept, [y, h, c], name_of(cell), 1)


# ------------------------------------------------------------------ biases


@every_variant
@pytest.mark.parametrize("absent", ["bias_ih", "bias_hh"])
def test_each_bias_may_be_absent_by_itself(cell, absent):
    x, lengths = torch.randn(B, 40, E), torch.tensor([40, 11])
    place = Weights._fields.index(absent)
    for own_units in (0, 128):
        zeros = layer(cell)
        zeros[place] = torch.zeros_like(zeros[place])
        without = [*zeros]
        without[place] = None
        results = []
        for tensors in (zeros, without):
            call = call_of(cell, find_rows(x, lengths))
            y, last, kept = call.forward(x, tensors, save=True)
            wanted = [True, *(t is not None for t in tensors)]
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(kernels, "OWN_UNITS", own_units)
                gradients = call.backward(x, tensors, kept, [y, *last], wanted)
            results.append([y, *last, *(g for i, g in enumerate(gradients) if i != 1 + place)])
        got, expected = ([t for t in each if t is not None] for each in reversed(results))
        assert same_bits(got, expected)


@main_cells
@pytest.mark.parametrize("size", [5, 130])
def test_gradients_of_both_biases_have_memory_of_their_own(cell, size):
    net = Recurrent(3, size, cell=cell, bidirectional=True)
    loss = net(torch.randn(2, 6, 3))[0].sin().sum()
    gradients = torch.autograd.grad(loss, list(net.parameters()))
    assert len({g.data_ptr() for g in gradients}) == len(gradients)


def test_a_bias_alone_is_not_copied():
    net, x = Recurrent(3, 5, cell=LSTMCell()), torch.randn(2, 6, 3)
    both = torch.autograd.grad(net(x)[0].sum(), [net.bias_ih_l0, net.bias_hh_l0])
    for bias, expected in zip((net.bias_ih_l0, net.bias_hh_l0), both, strict=True):
        assert torch.equal(torch.autograd.grad(net(x)[0].sum(), bias)[0], expected)


# ------------------------------------------------------------------ lazy tensors


def test_tensors_that_torch_has_yet_to_work_out():
    cell = LSTMCell()
    tensors, x = layer(cell), torch.randn(B, T, E)
    lazy = torch.complex(torch.zeros(B, T, E), -x).conj().imag  # the same numbers, negated lazily
    assert lazy.is_neg()
    nothing = torch._efficientzerotensor((B, T, E))
    for odd, plain in ((lazy, x), (nothing, torch.zeros(B, T, E))):
        y, last, kept = call_of(cell).forward(odd, tensors, save=True)
        expected, *_ = call_of(cell).forward(plain, tensors, save=True)
        assert torch.equal(y, expected)
        wanted = [True] * (1 + len(tensors))
        upstream = [torch._efficientzerotensor(y.shape), *last]
        got = call_of(cell).backward(odd, tensors, kept, upstream, wanted)
        right = call_of(cell).backward(plain, tensors, kept, [torch.zeros_like(y), *last], wanted)
        assert all(torch.equal(a, b) for a, b in zip(got, right, strict=True) if a is not None)


def test_a_prepared_step_of_lazy_tensors():
    net = Recurrent(E, H, cell=GRUCell())
    x, state = torch.randn(B, E), net.start(B)
    lazy = torch.complex(torch.zeros(B, E), -x).conj().imag
    assert torch.equal(net.prepared().step(lazy, state)[0], net.prepared().step(x, state)[0])


# ------------------------------------------------------------------ softmax and chain


def test_softmax_refuses_what_does_not_fit():
    z, bias, targets = torch.randn(4, 7), torch.randn(7), torch.tensor([0, 6, 3, 3])
    run = kernels.softmax_cross_entropy_
    for call, message in (
        ((z, bias[1:], targets), r"bias is of shape \(6,\), but must be \(7,\)"),
        ((z, bias.double(), targets), r"bias is torch\.float64"),
        ((z, bias, targets[1:]), r"targets is torch\.int64 of shape \(3,\), .* \(4,\)"),
        ((z, bias, targets.int()), r"targets is torch\.int32"),
        ((z[0], bias, targets), r"z is of shape \(7,\), but must be \(N, V\)"),
        ((z.t(), torch.randn(4), torch.zeros(7, dtype=torch.int64)), "is not contiguous"),
    ):
        with pytest.raises(ConfigError, match=message):
            run(*call, 0.0)
    with pytest.raises(IndexError, match=r"a target is not in 0\.\.6"):
        run(z, bias, torch.tensor([0, 7, 0, 0]), 0.0)


def test_what_was_checked_is_what_is_used(monkeypatch):
    """Another thread may change the targets and the lengths once the lock is released."""
    seen = {}

    class Spy:
        def __getattr__(self, name: str) -> object:
            def record(*arguments: object, **fields: object) -> object:
                seen.update(fields)
                return real(*arguments, **fields)

            real = getattr(kernels_module, name)
            return record if name in ("Softmax32", "Chain32") else real

    kernels_module = kernels._kernels
    monkeypatch.setattr(kernels, "_kernels", Spy())
    targets = torch.tensor([1, 0])
    kernels.softmax_cross_entropy_(torch.randn(2, 3), torch.randn(3), targets, 0.0)
    assert seen["targets"] != targets.data_ptr()
    lengths = torch.tensor([2, 1])
    kernels.chain_log_z(torch.randn(2, 2, 3), torch.randn(3, 3), lengths)
    assert seen["lengths"] != lengths.data_ptr()


# ------------------------------------------------------------------ the compiled module itself


def test_fields_and_sizes_that_are_not_known_are_refused():
    native = kernels._kernels
    with pytest.raises(TypeError, match="no field of this name"):
        native.Forward32(weight=1)
    with pytest.raises(TypeError, match="weights must be an address"):
        native.Forward32(weights=-1)
    with pytest.raises(TypeError, match="packed must be packed weights"):
        native.Forward32(packed=3)
    with pytest.raises(ValueError, match="activation has no variant 'swish'"):
        native.RnnCell(activation="swish")
    cell, sizes = native.RnnCell(activation="tanh"), {"threads": 1, "lengths": []}
    for B, H, steps in ((2**31, 4, 1), (1, 2**20 + 1, 1), (-1, 4, 1), (1, 4, -1)):
        with pytest.raises(ValueError, match="sizes out of range"):
            native.backward(cell, [native.Backward32()], B=B, H=H, steps=steps, **sizes)
    with pytest.raises(ValueError, match="one or two directions"):
        native.backward(cell, [native.Backward32()] * 3, B=0, H=4, steps=1, **sizes)
    with pytest.raises(ValueError, match=r"lengths must be in 1\.\.steps"):
        native.backward(cell, [native.Backward32()], B=1, H=4, steps=1, threads=1, lengths=[2])


def ran(sizes: tuple[int, ...] = (2, 3, 4, 5), **changes: object) -> bool:
    """Whether the compiled call of one layer runs, with some of its arguments changed."""
    native, (B, T, E, H) = kernels._kernels, sizes
    given = {
        "x": torch.ones(B, T, E),
        "tensors": [torch.ones(H, E), torch.ones(H, H), None, None, None, None],
        "y": torch.ones(B, T, H),
        "last": [torch.ones(1, B, H)],
        "kept": [],
        "packed": [],
        "directions": 1,
        "B": B,
        "steps": T,
        "threads": 1,
        "lengths": [],
    }
    return native.forward(native.RnnCell(activation="tanh"), **given | changes)


def test_the_compiled_call_looks_at_its_tensors_itself():
    x, zeros = torch.ones(2, 3, 4), torch._efficientzerotensor((4, 3, 4))
    assert ran()
    wrong = {
        "x": [x.mT, x.half(), x.long(), x.to("meta"), x.to_sparse(), x[0], x[:1], x[:, :2], 3],
        "x that does not lie so": [zeros[2:], torch.complex(x, x).conj().imag],
        "y": [torch.ones(2, 3, 4), torch.ones(2, 3, 5).double(), torch.ones(2, 5, 3).mT, 3],
        "last": [[], [torch.ones(1, 2, 4)], [torch.ones(1, 2, 5)] * 2, [torch.ones(1, 5, 2).mT]],
        "kept": [[None], [torch.ones(6, 5), None, None, torch.ones(5, 5)]],
        "tensors": [[], [torch.ones(5, 4), torch.ones(5)], [torch.ones(5, 4), *[None] * 5]],
        "directions": [0, 2, 3, -1],
        "B": [3],
        "steps": [2],
        "lengths": [[1], [0, 3], [1, 4]],
    }
    for name, values in wrong.items():
        for value in values:
            assert not ran(**{name.split()[0]: value}), (name, value)
    with pytest.raises(ValueError, match="sizes out of range"):
        ran((2**31, 1, 0, 0))


@pytest.mark.skipif(len(SETS) < 2, reason="this machine has one set of kernels")
@pytest.mark.parametrize("cell", [*VARIANTS[::4]], ids=str)
def test_packed_weights_run_on_the_set_they_were_packed_for(cell):
    net = Recurrent(7, 33, cell=cell, layers=2)
    x, state = torch.randn(3, 90, 7), net.start(3)
    for packs, other in (SETS[0], SETS[-1]), (SETS[-1], SETS[0]):
        with instructions(packs):
            prepared = net.prepared()
            expected = [prepared.step(x[:, 0], state)[0], prepared.run(x)[0]]
        with instructions(other):
            got = [prepared.step(x[:, 0], state)[0], prepared.run(x)[0]]
            assert worst([net(x)[0]], [got[1].clone()]) < 1e-5
        assert same_bits(got, expected)
        assert prepared._packed[0][0].set_name == packs


def run_python(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other limits")
def test_memory_that_runs_out_is_an_error_and_the_next_call_runs():
    done = run_python("""
import resource, torch
from unrolled.nn import Recurrent, LSTMCell
torch.set_num_threads(2)
small, x = Recurrent(8, 8, cell=LSTMCell()), torch.randn(4, 20, 8)
large, z = Recurrent(8, 4096, cell=LSTMCell()), torch.randn(4, 20, 8)  # 256 MB to pack
expected = small(x)[0]
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (100 << 20), resource.RLIM_INFINITY))
try:
    with torch.no_grad():
        large(z)
except MemoryError:
    print("out of memory", torch.equal(small(x)[0], expected))
""")
    assert (done.returncode, done.stdout) == (0, "out of memory True\n"), done.stderr


def test_buffers_need_not_be_kept():
    code = """
import resource, torch
from unrolled.nn import Recurrent, LSTMCell
torch.set_num_threads(1)
net, x = Recurrent(64, 512, cell=LSTMCell()), torch.randn(1, 8, 64)
def faults(calls):
    with torch.no_grad():
        for _ in range(calls):
            net(x)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
before = faults(5)
print((faults(20) - before) / 20)
"""
    kept, none = (float(run_python(code, UNROLLED_KEEP_BUFFERS=n).stdout) for n in ("64", "0"))
    assert kept < 5
    assert none >= kept
    wrong = run_python("import unrolled.native", UNROLLED_KEEP_BUFFERS="much")
    assert "UNROLLED_KEEP_BUFFERS is 'much', but must be a number of megabytes" in wrong.stderr


def test_every_variant_has_its_native_cell():
    assert {type(kernels.native_cell(cell)).__name__ for cell in VARIANTS} == {
        "RnnCell",
        "LstmCell",
        "GruCell",
    }
    assert kernels.can_run(RNNCell(), [], torch.zeros(1, 1, 1), None)
    assert Kept._fields == ("gates", "inner", "cells", "before")
