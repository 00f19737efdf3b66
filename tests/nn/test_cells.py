"""One step of each cell against its equations."""

import numpy as np
import pytest
import torch
from networks import VARIANTS, random, random_weights, step
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.cells import (
    ACTIVATIONS,
    CELLS,
    OUTPUTS,
    PEEPHOLES,
    RESETS,
    UPDATES,
    Cell,
    GRUCell,
    LSTMCell,
    RNNCell,
    State,
    Weights,
)

pytestmark = pytest.mark.arithmetic

B, E, H = 3, 5, 4
sigmoid, tanh = torch.sigmoid, torch.tanh


def random_state(cell: Cell) -> State:
    return tuple(random(B, H) for _ in range(cell.state_size))


def by_gate(weights: Weights, gates: int):
    """Functions from_input(k, x) and from_state(k, h): the parts of gate k, bias included."""
    parts = [w.chunk(gates) for w in weights[:4]]

    def from_input(k: int, x: Tensor) -> Tensor:
        return x @ parts[0][k].T + parts[2][k]

    def from_state(k: int, h: Tensor) -> Tensor:
        return h @ parts[1][k].T + parts[3][k]

    return from_input, from_state


@pytest.mark.row("D2", "D4", "D19")
@pytest.mark.parametrize(
    ("name", "phi"),
    [
        ("tanh", np.tanh),
        ("sigmoid", lambda a: 1 / (1 + np.exp(-a))),
        ("relu", lambda a: np.maximum(0, a)),
        ("leaky_relu", lambda a: np.maximum(0.01 * a, a)),
        ("identity", lambda a: a),
    ],
)
def test_rnn_follows_its_equation(name, phi):
    cell = RNNCell(name)
    weights, (h,), x = random_weights(cell), random_state(cell), random(B, E)
    wx, uh = by_gate(weights, 1)
    expected = torch.from_numpy(phi((wx(0, x) + uh(0, h)).numpy()))
    torch.testing.assert_close(step(cell, x, (h,), weights)[0], expected, rtol=0, atol=1e-14)


@pytest.mark.row("D9", "D11", "D12")
@pytest.mark.parametrize("peephole", PEEPHOLES)
@pytest.mark.parametrize("output", OUTPUTS)
def test_lstm_follows_its_equations(output, peephole):
    cell = LSTMCell(output, peephole)
    weights, (h, c), x = random_weights(cell), random_state(cell), random(B, E)
    wx, uh = by_gate(weights, 4)
    p_i = p_f = p_o = torch.zeros(H, dtype=torch.float64)
    if peephole == "output":
        (p_o,) = weights.peephole
    elif peephole == "full":
        p_i, p_f, p_o = weights.peephole
    i = sigmoid(wx(0, x) + uh(0, h) + p_i * c)
    f = sigmoid(wx(1, x) + uh(1, h) + p_f * c)
    c_next = f * c + i * tanh(wx(2, x) + uh(2, h))
    o = sigmoid(wx(3, x) + uh(3, h) + p_o * c_next)
    h_next = o * (tanh(c_next) if output == "tanh" else c_next)
    got_h, got_c = step(cell, x, (h, c), weights)
    torch.testing.assert_close(got_h, h_next, rtol=0, atol=1e-14)
    torch.testing.assert_close(got_c, c_next, rtol=0, atol=1e-14)


@pytest.mark.row("D15")
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("reset", RESETS)
def test_gru_follows_its_equations(reset, update):
    cell = GRUCell(reset, update)
    weights, (h,), x = random_weights(cell), random_state(cell), random(B, E)
    wx, uh = by_gate(weights, cell.gates)
    r = sigmoid(wx(0, x) + uh(0, h))
    z, last = sigmoid(wx(-2, x) + uh(-2, h)), cell.gates - 1
    n = {
        "after": tanh(wx(last, x) + r * uh(last, h)),
        "before": tanh(wx(last, x) + uh(last, r * h)),
        "none": tanh(wx(last, x) + uh(last, h)),
    }[reset]
    expected = z * h + (1 - z) * n if update == "keep" else (1 - z) * h + z * n
    torch.testing.assert_close(step(cell, x, (h,), weights)[0], expected, rtol=0, atol=1e-14)


@pytest.mark.row("D10")
@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_no_bias_equals_zero_bias(cell):
    weights, state, x = random_weights(cell), random_state(cell), random(B, E)
    zero = torch.zeros(cell.gates * H, dtype=torch.float64)
    without = step(cell, x, state, weights._replace(bias_ih=None, bias_hh=None))
    for s, expected in zip(
        without, step(cell, x, state, weights._replace(bias_ih=zero, bias_hh=zero)), strict=True
    ):
        torch.testing.assert_close(s, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_projection_takes_any_leading_shape(cell):
    weights, x = random_weights(cell), random(2, 3, 4, E)
    flat = cell.project(x.view(-1, E), weights).view(2, 3, 4, -1)
    torch.testing.assert_close(cell.project(x, weights), flat, rtol=0, atol=1e-14)


def integers(*shape: int) -> Tensor:
    """Sums and products of these are exact, so different orders of summation agree to the bit."""
    return torch.randint(-3, 4, shape, dtype=torch.float64)


@pytest.mark.row("D5")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_one_matrix_on_state_and_input_joined_is_the_same_recurrence(name):
    weights, h, x = Weights(integers(H, E), integers(H, H)), integers(B, H), integers(B, E)
    joined = torch.cat([weights.hh, weights.ih], dim=1)  # (H, H + E)
    expected = ACTIVATIONS[name](torch.cat([h, x], dim=1) @ joined.T)
    assert torch.equal(step(RNNCell(name), x, (h,), weights)[0], expected)


@pytest.mark.row("D7")
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_row_vectors_times_transposed_matrices_are_the_same_recurrence(name):
    W, U, h, x = integers(H, E), integers(H, H), integers(H), integers(E)
    column = ACTIVATIONS[name]((W @ x[:, None] + U @ h[:, None])[:, 0])
    row = step(RNNCell(name), x[None], (h[None],), Weights(W, U))[0][0]
    torch.testing.assert_close(row, column, rtol=1e-15, atol=0)  # two calls of one function


@pytest.mark.row("D6")
def test_plain_numpy_loop_gives_the_same_outputs():
    rng = np.random.default_rng(0)
    T, inputs, units = 100, 32, 64
    x, W = rng.random((T, inputs)), 0.1 * rng.standard_normal((units, inputs))
    U, b = 0.1 * rng.standard_normal((units, units)), rng.standard_normal(units)
    state, outputs = np.zeros(units), []
    for x_t in x:
        state = np.tanh(W @ x_t + U @ state + b)
        outputs.append(state)
    printed = np.stack(outputs, axis=0)
    assert printed.shape == (100, 64)

    weights = Weights(*map(torch.from_numpy, (W, U, b, np.zeros(units))))
    h: State = (torch.zeros(1, units, dtype=torch.float64),)
    for t in range(T):
        h = step(RNNCell("tanh"), torch.from_numpy(x[None, t]), h, weights)
        np.testing.assert_allclose(h[0][0].numpy(), printed[t], rtol=0, atol=1e-13)


@pytest.mark.row("D2")
@pytest.mark.parametrize(
    ("name", "low", "high"), [("tanh", -1, 1), ("sigmoid", 0, 1), ("relu", 0, torch.inf)]
)
def test_states_stay_in_the_range_of_their_activation(name, low, high):
    weights = random_weights(RNNCell(name))
    (h,) = step(RNNCell(name), 10 * random(50, E), (10 * random(50, H),), weights)
    assert low <= h.min()
    assert h.max() <= high


@pytest.mark.row("D19")
@pytest.mark.parametrize(
    ("name", "values", "slopes"),
    [
        ("tanh", [-1, 0, 1], [0, 1, 0]),
        ("sigmoid", [0, 0.5, 1], [0, 0.25, 0]),
        ("relu", [0, 0, 1000], [0, 0, 1]),
        ("leaky_relu", [-10, 0, 1000], [0.01, 0.01, 1]),
        ("identity", [-1000, 0, 1000], [1, 1, 1]),
    ],
)
def test_activations_are_safe_far_out(name, values, slopes):
    x = torch.tensor([-1000.0, 0.0, 1000.0], dtype=torch.float64, requires_grad=True)
    y = ACTIVATIONS[name](x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    assert y.tolist() == pytest.approx(values, abs=1e-15)
    assert slope.tolist() == pytest.approx(slopes, abs=1e-15)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: RNNCell("tan"), r"activation is 'tan', but must be one of .*mean 'tanh'\?"),
        (lambda: LSTMCell(output="tahn"), r"output is 'tahn', but must be one of linear, tanh\."),
        (lambda: LSTMCell(peephole="ful"), r"peephole is 'ful', .*Did you mean 'full'\?"),
        (lambda: GRUCell(reset="befor"), r"reset is 'befor', .*Did you mean 'before'\?"),
        (lambda: GRUCell(update="w"), r"update is 'w', but must be one of keep, write\."),
    ],
)
def test_unknown_variants_are_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_cells_are_values_listed_by_name():
    assert {name: CELLS[name]() for name in CELLS} == {
        "rnn": RNNCell("tanh"),
        "gru": GRUCell("after", "keep"),
        "lstm": LSTMCell("tanh", "none"),
    }
    assert LSTMCell("linear") != LSTMCell()
