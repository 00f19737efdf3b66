"""Recurrent: parameters and their start, dropout, and what it refuses."""

import pytest
import torch
from networks import build, every_variant, main_cells, random

from unrolled.errors import ConfigError
from unrolled.nn import Dropout, GRUCell, LSTMCell, Recurrent, RNNCell

pytestmark = pytest.mark.arithmetic

# --- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "gates"),
    [(RNNCell(), 1), (GRUCell(reset="none"), 2), (GRUCell(), 3), (LSTMCell(), 4)],
    ids=str,
)
def test_parameter_shapes_and_counts(cell, gates):
    d, h = 5, 7
    shapes = {n: tuple(p.shape) for n, p in Recurrent(d, h, cell=cell).named_parameters()}
    assert shapes == {
        "weight_ih_l0": (gates * h, d),
        "weight_hh_l0": (gates * h, h),
        "bias_ih_l0": (gates * h,),
        "bias_hh_l0": (gates * h,),
    }
    without_bias = Recurrent(d, h, cell=cell, bias=False)
    assert sum(p.numel() for p in without_bias.parameters()) == gates * h * (h + d)


@pytest.mark.parametrize(("peephole", "rows"), [("output", 1), ("full", 3)])
def test_peepholes_and_learned_starts_are_parameters(peephole, rows):
    net = Recurrent(
        5,
        7,
        cell=LSTMCell(peephole=peephole),
        layers=2,
        bidirectional=True,
        combine="mean",
        first_state="learned",
    )
    values = net.state_dict()
    assert values["peephole_l1_reverse"].shape == (rows, 7)
    assert values["weight_ih_l1"].shape == (28, 7)
    assert values["h0"].shape == values["c0"].shape == (4, 7)


@pytest.mark.row("D8")
@main_cells
def test_a_learned_start_begins_at_zero_and_is_used_by_every_row(cell):
    learned = Recurrent(3, 4, cell=cell, layers=2, first_state="learned", dtype=torch.float64)
    x = random(3, 5, 3)
    zero = tuple(torch.zeros(2, 3, 4, dtype=torch.float64) for _ in range(cell.state_size))
    assert torch.equal(learned(x)[0], learned(x, state=zero)[0])
    with torch.no_grad():
        for name in ("h0", "c0")[: cell.state_size]:
            getattr(learned, name).normal_()
    rows = tuple(
        getattr(learned, name)[:, None].repeat(1, 3, 1) for name in ("h0", "c0")[: cell.state_size]
    )
    assert torch.equal(learned(x)[0], learned(x, state=rows)[0])


def test_a_learned_start_works_on_the_single_precision_path():
    net = Recurrent(3, 4, cell=LSTMCell(), bidirectional=True, first_state="learned")
    y, last = net(torch.randn(2, 5, 3), torch.tensor([5, 2]))
    (y.sum() + last[1].sum()).backward()
    assert net.h0.grad.abs().min() > 0
    assert net.c0.grad.abs().min() > 0


@every_variant
@pytest.mark.parametrize("init", ["orthogonal", "identity"])
def test_recurrent_matrices_start_orthogonal_or_as_identity(cell, init):
    net = Recurrent(3, 6, cell=cell, layers=2, bidirectional=True, init=init, dtype=torch.float64)
    eye = torch.eye(6, dtype=torch.float64)
    blocks = []
    for name, value in net.state_dict().items():
        if name.startswith("weight_hh"):
            blocks += value.chunk(cell.gates)
        elif name.startswith("bias"):
            assert not value.any()
        elif name.startswith("weight_ih"):
            assert 0.3 < value.abs().max() <= 6**-0.5
    assert len(blocks) == 4 * cell.gates
    for block in blocks:
        torch.testing.assert_close(block @ block.T, eye, rtol=0, atol=1e-12)
        assert torch.equal(block, eye) is (init == "identity")


@pytest.mark.row("G8")
@pytest.mark.parametrize(
    ("activation", "least", "most"), [("relu", 1, 1), ("sigmoid", 0, 0.25**50)]
)
def test_identity_start_preserves_the_gradient_through_active_relu_units(activation, least, most):
    net = Recurrent(3, 6, cell=RNNCell(activation), init="identity", dtype=torch.float64)
    start = random(1, 1, 6).abs().requires_grad_()
    _, (h,) = net(torch.zeros(1, 50, 3, dtype=torch.float64), state=(start,))
    upstream = torch.randn_like(h)
    (gradient,) = torch.autograd.grad((h * upstream).sum(), start)
    ratio = float(gradient.norm() / upstream.norm())
    assert least <= ratio <= most


# --- dropout -------------------------------------------------------------------------------------


@pytest.mark.row("H3")
@pytest.mark.parametrize("variational", [False, True])
def test_dropout_scales_what_it_keeps_and_is_off_at_evaluation(variational):
    drop = Dropout(0.25, variational=variational)
    x = torch.ones(50, 7, 40)
    y = drop(x)
    assert y.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert abs(float((y == 0).double().mean()) - 0.25) < 0.05
    assert torch.equal(drop.eval()(x), x)
    assert "p=0.25" in repr(drop)


@pytest.mark.parametrize("variational", [False, True])
def test_variational_mask_is_one_for_all_steps_of_a_row(variational):
    y = Dropout(0.5, variational=variational)(torch.ones(3, 7, 40))
    assert torch.equal(y, y[:, :1].expand_as(y)) is variational
    assert not torch.equal(y[0], y[1])


@main_cells
def test_dropout_acts_between_layers_only_and_only_in_training(cell):
    net = build(3, 8, cell=cell, layers=2, dropout=0.9)
    x = random(4, 6, 3)
    y, (h, *_) = net(x)
    assert (y != 0).all()
    plain, (plain_h, *_) = net.eval()(x)
    assert torch.equal(h[0], plain_h[0])
    assert not torch.equal(y, plain)
    assert torch.equal(net(x)[0], plain)


# --- messages ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layers": 0}, r"layers is 0, but must be at least 1\."),
        ({"dropout": 0.2}, r"dropout is 0\.2, but layers is 1 .*Set layers to 2 or more"),
        ({"dropout": 1.0, "layers": 2}, r"dropout is 1\.0, but must be in \[0, 1\)\."),
        ({"combine": "men"}, r"combine is 'men', .*Did you mean 'mean'\?"),
        ({"first_state": "learnt"}, r"first_state is 'learnt', .*Did you mean 'learned'\?"),
        ({"init": "xavier"}, r"init is 'xavier', but must be one of identity, orthogonal, uniform"),
    ],
)
def test_wrong_settings_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        Recurrent(3, 4, cell=LSTMCell(), **options)


def test_wrong_sizes_are_refused():
    with pytest.raises(ConfigError, match=r"input_size is 0, but must be at least 1\."):
        Recurrent(0, 4, cell=LSTMCell())
    with pytest.raises(ConfigError, match=r"hidden_size is -1, but must be at least 1\."):
        Recurrent(3, -1, cell=LSTMCell())


@pytest.mark.parametrize("shape", [(2, 5, 4), (5, 3), (2, 0, 3)])
def test_wrong_input_shapes_are_refused(shape):
    with pytest.raises(ConfigError, match=r"x has shape \(.*\), but must be \(B, T, 3\)"):
        Recurrent(3, 4, cell=LSTMCell())(torch.zeros(shape))


@pytest.mark.parametrize("shapes", [[(1, 2, 4)], [(1, 2, 4), (1, 1, 4)], [(2, 2, 4)] * 2])
def test_wrong_states_are_refused(shapes):
    state = tuple(torch.zeros(shape) for shape in shapes)
    message = r"tensors, of the shapes .*, but must have \(1, 2, 4\) and \(1, 2, 4\)"
    with pytest.raises(ConfigError, match=message):
        Recurrent(3, 4, cell=LSTMCell())(torch.zeros(2, 5, 3), state=state)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        (torch.tensor([5, 0]), r"lengths\[1\] is 0, but must be in 1\.\.5, the steps of x\."),
        (torch.tensor([6, 5]), r"lengths\[0\] is 6, but must be in 1\.\.5, the steps of x\."),
        (
            torch.tensor([5]),
            r"lengths is int64 of shape \(1,\), but must be integers of shape \(2,\)",
        ),
        (torch.tensor([5.0, 1.0]), r"lengths is float32 of shape \(2,\), but must be integers"),
    ],
)
def test_wrong_lengths_are_refused(lengths, message):
    with pytest.raises(ConfigError, match=message):
        Recurrent(3, 4, cell=LSTMCell())(torch.zeros(2, 5, 3), lengths)


def test_repr_names_the_variant():
    net = Recurrent(3, 4, cell=GRUCell("before"), layers=2, bidirectional=True)
    assert "3, 4, cell=GRUCell(reset='before', update='keep'), layers=2, bidirectional" in repr(net)
