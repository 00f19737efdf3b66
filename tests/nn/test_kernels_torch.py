"""The kernels and the rest of torch: second derivatives, transforms, tracing and compilation."""

import os
import shutil
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from kernel_checks import first_states, needs_kernels, random_upstream, with_gradients, worst
from networks import VARIANTS, build, every_variant, main_cells, random
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from unrolled.errors import ConfigError
from unrolled.nn import Cell, GRUCell, LSTMCell, Recurrent, RNNCell, Weights, kernels, reference
from unrolled.nn.compiled import name_of

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

LENGTHS = torch.tensor([5, 1, 3, 4])


def example(cell: Cell, **options: object) -> tuple[Recurrent, Tensor]:
    return build(3, 6, cell=cell, **options), random(4, 5, 3).requires_grad_()


# ------------------------------------------------------------------ second derivatives


def gradient(net: Recurrent, x: Tensor) -> Tensor:
    """Of a loss in which the layer is a part only, so that the rest could hide a missing term."""
    loss = net(x, LENGTHS)[0].sum() + x.pow(3).sum()
    return torch.autograd.grad(loss, x, create_graph=True)[0]


@needs_kernels
@every_variant
def test_second_derivatives_are_those_of_the_reference(cell):
    net, x = example(cell, bidirectional=True)
    inputs = [x, *net.parameters()]
    expected: list[Tensor] = []
    for way in (reference, nullcontext):
        with way():
            got = torch.autograd.grad(gradient(net, x).pow(2).sum(), inputs, allow_unused=True)
        seen = [torch.zeros(0) if g is None else g for g in got]
        expected = expected or seen
        assert worst(seen, expected) < 1e-11


@needs_kernels
def test_weights_made_of_x_get_no_gradient_twice():
    """A second derivative must not follow x through the weights that it was made into."""
    cell, x = LSTMCell(), random(4, 5, 3).requires_grad_()
    base = build(3, 6, cell=cell)

    def loss(x: Tensor) -> Tensor:
        made = {"weight_ih_l0": base.weight_ih_l0 * x.mean()}
        y = torch.func.functional_call(base, made, (x,))[0]
        (g,) = torch.autograd.grad(y.sin().sum(), x, create_graph=True)
        return g.pow(2).sum()

    with reference():
        expected = torch.autograd.grad(loss(x), x)
    assert worst(torch.autograd.grad(loss(x), x), expected) < 1e-11


@needs_kernels
@main_cells
def test_first_derivatives_with_create_graph_are_right(cell):
    net, x = example(cell)
    with reference():
        expected = gradient(net, x)
    assert worst([gradient(net, x)], [expected]) < 1e-13


@every_variant
def test_the_reference_has_second_derivatives(cell):
    if cell in (RNNCell("relu"), RNNCell("leaky_relu")):
        pytest.skip("its second derivatives are 0 but at the kink")
    net = build(2, 2, cell=cell)
    x = random(2, 3, 2).requires_grad_()
    with reference():
        assert torch.autograd.gradgradcheck(lambda x: net(x, torch.tensor([3, 2]))[0], (x,))


# ------------------------------------------------------------------ where torch's operators run


@needs_kernels
@main_cells
@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own use of it
def test_forward_mode_and_functional_transforms(cell):
    net, x = example(cell)
    run = lambda x: net(x)[0]  # noqa: E731
    x, direction = x.detach(), random(4, 5, 3)
    with reference():
        expected = torch.func.jvp(run, (x,), (direction,))[1]
        slopes = torch.func.grad(lambda x: run(x).sin().sum())(x)
    assert worst([torch.func.jvp(run, (x,), (direction,))[1]], [expected]) < 1e-13
    assert worst([torch.func.grad(lambda x: run(x).sin().sum())(x)], [slopes]) < 1e-13
    many = random(2, 4, 5, 3)
    with reference():  # elsewhere torch.lstm and its like would run, and they know no vmap
        assert worst([torch.vmap(run)(many)], [torch.stack([run(m) for m in many])]) < 1e-13
    with torch.autograd.forward_ad.dual_level(), torch.no_grad():
        y = run(torch.autograd.forward_ad.make_dual(x, direction))
        assert worst([torch.autograd.forward_ad.unpack_dual(y).tangent], [expected]) < 1e-13


@needs_kernels
def test_autocast_leaves_the_kernels_aside():
    x = torch.randn(2, 5, 3)
    weights = [Weights(torch.randn(12, 3), torch.randn(12, 4))]
    call = (GRUCell(), weights, x, (torch.zeros(1, 2, 4),))
    assert kernels.can_run(*call)
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.can_run(*call)


@needs_kernels
@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")
def test_traced_layers_give_the_same_numbers():
    net, x = example(LSTMCell())
    net.requires_grad_(False)
    traced = torch.jit.trace(lambda x: net(x)[0], x.detach(), check_trace=False)
    other = random(4, 5, 3)
    assert worst([traced(other)], [net(other)[0]]) < 1e-13


def test_other_types_and_cells_run_without_kernels():
    class Mine(GRUCell):
        """A cell of one's own."""

    net, x = build(3, 4, cell=Mine()), random(2, 5, 3)
    same = build(3, 4, cell=GRUCell())
    same.load_state_dict(net.state_dict())
    assert worst([net(x)[0]], [same(x)[0]]) < 1e-13
    shapes = Recurrent(3, 4, cell=GRUCell(), device="meta")(torch.empty(2, 5, 3, device="meta"))
    assert shapes[0].shape == (2, 5, 4)
    with pytest.raises(ConfigError, match=r"x is of torch.float64, but the weights are of"):
        Recurrent(3, 4, cell=GRUCell())(x)


@main_cells
def test_checkpointed_layers_have_the_same_gradients(cell):
    net, x = example(cell)
    inputs = [x, *net.parameters()]
    expected = torch.autograd.grad(net(x, LENGTHS)[0].sin().sum(), inputs)
    y = checkpoint(lambda x: net(x, LENGTHS)[0], x, use_reentrant=False)
    assert worst(torch.autograd.grad(y.sin().sum(), inputs), expected) == 0


# ------------------------------------------------------------------ torch.compile


def operators(net: Recurrent, *call: object) -> set[str]:
    """The names of what a compiled net calls, when all of it is one graph."""
    seen: set[str] = set()

    def backend(graph: torch.fx.GraphModule, _: object) -> object:
        seen.update(str(node.target) for node in graph.graph.nodes)
        return graph.forward

    torch.compile(net, backend=backend, fullgraph=True)(*call)
    return seen


@pytest.fixture
def _fresh():
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def check_compiled(net: Recurrent, x: Tensor, lengths: Tensor | None, **options: object) -> None:
    compiled = torch.compile(net, fullgraph=True, **options)
    call = (x, lengths, first_states(net, len(x)))
    upstream = random_upstream(net, *call)
    expected = with_gradients(net, *call, upstream)

    def run(x: Tensor, lengths: Tensor | None, state: tuple[Tensor, ...]) -> object:
        return compiled(x, lengths, state)

    run.parameters = net.parameters  # type: ignore[attr-defined]
    assert worst(with_gradients(run, *call, upstream), expected) == 0  # type: ignore[arg-type]


@needs_kernels
@pytest.mark.graph
@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("cell", [*VARIANTS[::5], LSTMCell(peephole="full")], ids=str)
def test_a_compiled_stack_is_one_graph_of_kernels_with_the_same_bits(cell):
    net, x = example(cell, layers=2, bidirectional=True, bias=cell != GRUCell())
    assert "unrolled.layer" in operators(net, x, LENGTHS)
    torch.compiler.reset()
    check_compiled(net, x, LENGTHS, backend="aot_eager")


@needs_kernels
@pytest.mark.graph
@pytest.mark.usefixtures("_fresh")
def test_a_compiled_stack_takes_other_sizes_and_no_lengths():
    net, x = example(LSTMCell(peephole="output"))
    for rows in (x, random(7, 9, 3).requires_grad_(), random(2, 4, 3).requires_grad_()):
        lengths = torch.randint(1, rows.size(1) + 1, (len(rows),))
        check_compiled(net, rows, lengths, backend="aot_eager", dynamic=True)
        check_compiled(net, rows, None, backend="aot_eager", dynamic=True)
    with torch.no_grad():
        compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
        assert worst([compiled(x, LENGTHS)[0]], [net(x, LENGTHS)[0]]) == 0


@needs_kernels
@pytest.mark.graph
@pytest.mark.usefixtures("_fresh")
def test_a_compiled_stack_refuses_wrong_lengths_when_it_runs():
    net, x = example(GRUCell())
    compiled = torch.compile(net, backend="aot_eager", fullgraph=True)
    compiled(x, LENGTHS)
    with pytest.raises(ConfigError, match=r"lengths\[2\] is 6, but must be in 1\.\.5"):
        compiled(x, torch.tensor([5, 1, 6, 4]))


RULES = ("test_schema", "test_autograd_registration")
GRAPH_RULES = ("test_faketensor", "test_aot_dispatch_dynamic")


@needs_kernels
@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_the_operator_keeps_torchs_rules(cell):
    """All rules for every second variant; those that make graphs take long, the others get two."""
    net, x = example(cell, bidirectional=True, bias=cell.state_size == 2)
    tensors = [t.detach().requires_grad_() for t in (*net.parameters(), *first_states(net, 4))]
    graphs = VARIANTS.index(cell) % 2 == 0
    rules = (*RULES, *GRAPH_RULES) if graphs else RULES
    for lengths in (LENGTHS, torch.full((4,), 5))[: 2 - graphs]:
        layer, call = torch.ops.unrolled.layer.default, (x, lengths, tensors, name_of(cell), 2)
        torch.library.opcheck(layer, (*call, True), test_utils=rules)
        torch.library.opcheck(layer, (*call, False), test_utils="test_schema")
        y, *others = layer(*call, True)
        last, kept = others[: cell.state_size], others[cell.state_size :]
        upstream = [torch.randn_like(y), *map(torch.randn_like, last)]
        way_back = torch.ops.unrolled.layer_backward.default
        plain = [t.detach() for t in tensors]
        back = (x.detach(), lengths, plain, kept, upstream, name_of(cell), 2)
        torch.library.opcheck(way_back, back, test_utils=rules)


@pytest.mark.skipif(
    "UNROLLED_SLOW" not in os.environ or not shutil.which("c++"),
    reason="needs a compiler and half a minute: set UNROLLED_SLOW=1",
)
@needs_kernels
@pytest.mark.graph
@pytest.mark.usefixtures("_fresh")
@pytest.mark.filterwarnings("ignore")  # torch's own
def test_a_stack_compiled_by_inductor():
    net, x = example(LSTMCell(), layers=2, bidirectional=True)
    check_compiled(net, x, LENGTHS)


@pytest.mark.graph
@pytest.mark.usefixtures("_fresh")
@torch.no_grad()
def test_compiled_without_kernels_it_gives_the_same_numbers(monkeypatch):
    net, x = example(GRUCell("before"), bidirectional=True)
    expected = net(x, LENGTHS)[0]
    monkeypatch.setattr(kernels, "_kernels", None)
    compiled = torch.compile(net, backend="eager")
    assert worst([compiled(x, LENGTHS)[0]], [expected]) < 1e-13
    with pytest.raises(RuntimeError, match=r"lengths must be in 1\.\.5"):
        compiled(x, torch.tensor([9, 1, 3, 4]))


@needs_kernels
@pytest.mark.graph
def test_exported_graphs_hold_torchs_operators_alone():
    net, x = example(LSTMCell())
    exported = torch.export.export(net, (x.detach(),))
    assert not [n for n in exported.graph.nodes if "unrolled" in str(n.target)]
    assert worst([exported.module()(x)[0]], [net(x)[0]]) < 1e-13


def test_neither_import_nor_training_loads_the_compiler():
    script = (
        "import sys, torch, unrolled.nn as nn\n"
        "net = nn.Recurrent(3, 4, cell=nn.LSTMCell())\n"
        "net(torch.randn(2, 5, 3), torch.tensor([5, 2]))[0].sum().backward()\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
