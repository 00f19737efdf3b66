"""LSTM, GRU and RNN against torch.nn's: weights, outputs, states, gradients, call forms."""

from contextlib import nullcontext

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.nn import GRU, LSTM, RNN, GRUCell, LSTMCell, Recurrent, RNNCell, reference

pytestmark = pytest.mark.arithmetic

KINDS = {
    "lstm": (LSTM, nn.LSTM, {}),
    "gru": (GRU, nn.GRU, {}),
    "tanh": (RNN, nn.RNN, {"nonlinearity": "tanh"}),
    "relu": (RNN, nn.RNN, {"nonlinearity": "relu"}),
}
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}
B, T, E, H = 5, 7, 6, 8
LENGTHS = torch.tensor([4, 7, 1, 7, 2])


def twins(kind: str, *args: object, **options: object) -> tuple[nn.Module, nn.Module]:
    """Our module and torch's, each drawn from the same seed."""
    ours, theirs, settings = KINDS[kind]
    torch.manual_seed(1)
    mine = ours(*args, **settings, **options)
    torch.manual_seed(1)
    return mine, theirs(*args, **settings, **options)


def parts(result: tuple) -> list[Tensor]:
    y, last = result
    return [y, *((last,) if isinstance(last, Tensor) else last)]


def gradients(outputs: list[Tensor], inputs: list[Tensor]) -> list[Tensor]:
    """Of a random weighting of the outputs: all ones would hide swapped rows."""
    generator = torch.Generator().manual_seed(2)
    loss = sum((o * torch.randn(o.shape, generator=generator).to(o)).sum() for o in outputs)
    return list(torch.autograd.grad(loss, inputs))


def assert_same(got: list[Tensor], expected: list[Tensor]) -> None:
    for g, e in zip(got, expected, strict=True):
        tolerance = TOLERANCE[e.dtype] * max(1.0, e.abs().max().item())
        torch.testing.assert_close(g, e, rtol=0, atol=tolerance)


def first_states(net: nn.Module, rows: int, dtype: torch.dtype) -> list[Tensor]:
    shape = (net.layers * net.directions, rows, H)
    return [torch.randn(shape, dtype=dtype, requires_grad=True) for _ in range(net.cell.state_size)]


def as_hx(states: list[Tensor]) -> Tensor | tuple[Tensor, ...]:
    return tuple(states) if len(states) == 2 else states[0]


@pytest.mark.row("D3", "D9", "E-f")
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_dense_and_packed_batches_equal_torch(kind, layers, bidirectional, dtype):
    mine, theirs = twins(
        kind, E, H, layers, batch_first=True, bidirectional=bidirectional, dtype=dtype
    )
    x = torch.randn(B, T, E, dtype=dtype, requires_grad=True)
    states = first_states(mine, B, dtype)
    got, expected = parts(mine(x, as_hx(states))), parts(theirs(x, as_hx(states)))
    assert_same(got, expected)
    assert_same(
        gradients(got, [x, *states, *mine.parameters()]),
        gradients(expected, [x, *states, *theirs.parameters()]),
    )

    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    packed_y, last = theirs(packed, as_hx(states))
    expected = parts((pad_packed_sequence(packed_y, batch_first=True)[0], last))
    got = parts(mine(x, as_hx(states), lengths=LENGTHS))
    assert_same(got, expected)
    assert_same(
        gradients(got, [x, *states, *mine.parameters()]),
        gradients(expected, [x, *states, *theirs.parameters()]),
    )


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_gives_the_same_weights_under_the_same_names(kind, bias):
    mine, theirs = twins(kind, E, H, 3, bidirectional=True, bias=bias)
    ours, expected = mine.state_dict(), theirs.state_dict()
    assert list(ours) == list(expected)
    assert all(torch.equal(ours[name], expected[name]) for name in expected)


@pytest.mark.parametrize("kind", KINDS)
def test_state_dicts_load_both_ways(kind):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    x = torch.randn(T, B, E)
    mine.reset_parameters()
    theirs.load_state_dict(mine.state_dict())
    assert_same(parts(mine(x)), parts(theirs(x)))
    theirs.reset_parameters()
    mine.load_state_dict(theirs.state_dict())
    assert_same(parts(mine(x)), parts(theirs(x)))


@pytest.mark.row("D10")
@pytest.mark.parametrize("kind", KINDS)
def test_without_bias_equals_torch(kind):
    mine, theirs = twins(kind, E, H, 2, bias=False, bidirectional=True)
    x = torch.randn(T, B, E)
    assert_same(parts(mine(x)), parts(theirs(x)))
    packed = pack_padded_sequence(x, LENGTHS, enforce_sorted=False)
    packed_y, last = theirs(packed)
    expected = parts((pad_packed_sequence(packed_y)[0], last))
    assert_same(parts(mine(x, lengths=LENGTHS)), expected)


@pytest.mark.parametrize("steps", [1, T])
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_time_first_and_single_rows_and_single_steps_have_torchs_shapes(kind, batch_first, steps):
    mine, theirs = twins(kind, E, H, 2, batch_first=batch_first, bidirectional=True)
    x = torch.randn((B, steps, E) if batch_first else (steps, B, E))
    hx = as_hx(first_states(mine, B, torch.float32))
    assert_same(parts(mine(x, hx)), parts(theirs(x, hx)))

    row = torch.randn(steps, E)
    hx = as_hx([s[:, 0] for s in first_states(mine, 1, torch.float32)])
    assert_same(parts(mine(row, hx)), parts(theirs(row, hx)))
    assert_same(parts(mine(row)), parts(theirs(row)))


@pytest.mark.parametrize("kind", KINDS)
def test_packed_input_gives_packed_output(kind):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    packed = pack_padded_sequence(torch.randn(T, B, E), LENGTHS, enforce_sorted=False)
    (y, last), (expected_y, expected_last) = mine(packed), theirs(packed)
    padded, lengths = pad_packed_sequence(y)
    assert torch.equal(lengths, LENGTHS)
    expected = parts((pad_packed_sequence(expected_y)[0], expected_last))
    assert_same(parts((padded, last)), expected)


def test_positional_arguments_stand_where_torch_has_them():
    for kind, positional in {
        "lstm": (E, H, 2, False, True, 0.5, True),
        "gru": (E, H, 2, False, True, 0.5, True),
    }.items():
        mine, theirs = twins(kind, *positional)
        for name in ("num_layers", "bias", "batch_first", "dropout", "bidirectional"):
            assert getattr(mine, name) == getattr(theirs, name)
    mine = RNN(E, H, 2, "relu", False, True, 0.5, True)
    theirs = nn.RNN(E, H, 2, "relu", False, True, 0.5, True)
    for name in ("nonlinearity", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
        assert getattr(mine, name) == getattr(theirs, name)
    mine.flatten_parameters()


def test_dropout_with_one_layer_is_accepted_without_effect():
    with pytest.warns(UserWarning, match="num_layers greater than 1"):  # torch.nn's own
        net = LSTM(E, H, 1, dropout=0.5).train()
    x = torch.randn(T, B, E)
    assert torch.equal(net(x)[0], net(x)[0])


@pytest.mark.parametrize("bias", [True, False])
def test_projected_states_equal_torch(bias):
    options = {"proj_size": 3, "bidirectional": True, "bias": bias, "batch_first": True}
    mine, theirs = twins("lstm", E, H, 2, dtype=torch.float64, **options)
    x = torch.randn(B, T, E, dtype=torch.float64, requires_grad=True)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    packed_y, last = theirs(packed)
    ragged = parts((pad_packed_sequence(packed_y, batch_first=True)[0], last))
    expected = gradients(ragged, [x, *theirs.parameters()])
    for way in (nullcontext, reference):
        with way():
            dense, with_lengths = parts(mine(x)), parts(mine(x, lengths=LENGTHS))
        assert_same(dense, parts(theirs(x)))
        assert_same(with_lengths, ragged)
        assert_same(gradients(with_lengths, [x, *mine.parameters()]), expected)


def test_projected_variants_run_as_the_equations_say():
    net = LSTM(E, H, 2, proj_size=3, peephole="full", first_state="learned", dtype=torch.float64)
    x = torch.randn(T, B, E, dtype=torch.float64)
    h = [torch.zeros(B, 3, dtype=torch.float64) for _ in range(2)]
    c = [torch.zeros(B, H, dtype=torch.float64) for _ in range(2)]
    for t, inputs in enumerate(x):
        for layer, weights in enumerate(net._weights(k)[0] for k in range(2)):
            projected = net.cell.project(inputs, weights)
            h[layer], c[layer] = net.cell.step(projected, (h[layer], c[layer]), weights)
            inputs = h[layer]
        assert_same([net(x)[0][t]], [h[1]])


@pytest.mark.parametrize(
    ("net", "cell"),
    [
        (LSTM(E, H, output="linear", peephole="full"), LSTMCell("linear", "full")),
        (GRU(E, H, reset="before", update="write"), GRUCell("before", "write")),
        (RNN(E, H, nonlinearity="leaky_relu"), RNNCell("leaky_relu")),
    ],
    ids=["lstm", "gru", "rnn"],
)
def test_variants_are_those_of_recurrent(net, cell):
    same = Recurrent(E, H, cell=cell)
    same.load_state_dict(net.state_dict())
    x = torch.randn(B, T, E)
    y, last = same(x, LENGTHS)
    got = parts(net(x.transpose(0, 1), lengths=LENGTHS))
    assert all(torch.equal(g, e) for g, e in zip(got, [y.transpose(0, 1), *last], strict=True))


def test_large_weights_cannot_undo_the_held_cell():
    """In float64, where rounding does not grow as far as the weights make it grow in float32."""
    mine, theirs = twins("lstm", E, H, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        for a, b in zip(mine.parameters(), theirs.parameters(), strict=True):
            a.mul_(50), b.mul_(50)
    x = torch.randn(B, T, E, dtype=torch.float64)
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    assert_same(list(mine(x, lengths=LENGTHS)[1]), list(theirs(packed)[1]))
