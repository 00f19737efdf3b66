"""What gates do when set by hand, and how the variants of a cell relate to one another."""

import numpy as np
import pytest
import torch
from networks import random, random_weights, step
from torch import Tensor

from unrolled.errors import ConfigError
from unrolled.nn.cells import (
    OUTPUTS,
    RESETS,
    UPDATES,
    Cell,
    GRUCell,
    LSTMCell,
    State,
    Weights,
    convert_gru,
)

pytestmark = pytest.mark.arithmetic

B, E, H = 3, 5, 4
sigmoid, tanh = torch.sigmoid, torch.tanh


def random_state(cell: Cell) -> State:
    return tuple(random(B, H) for _ in range(cell.state_size))


def gated(i: float, f: float, o: float) -> Weights:
    """LSTM weights whose gates depend on their biases alone; the candidate sees x and h."""
    weights = random_weights(LSTMCell())
    ih, hh = weights.ih.clone(), weights.hh.clone()
    for gate in (0, 1, 3):
        ih[gate * H : (gate + 1) * H] = 0
        hh[gate * H : (gate + 1) * H] = 0
    bias = torch.tensor([i, f, 0.0, o], dtype=torch.float64).repeat_interleave(H)
    return Weights(ih, hh, bias, torch.zeros_like(bias))


OPEN, SHUT = 1000.0, -1000.0


@pytest.mark.row("D14")
@pytest.mark.parametrize("output", OUTPUTS)
def test_open_forget_and_shut_input_gate_keep_the_cell_exactly_for_1000_steps(output):
    cell, weights = LSTMCell(output), gated(i=SHUT, f=OPEN, o=0.0)
    start = state = random_state(cell)
    for _ in range(1000):
        state = step(cell, random(B, E), state, weights)
    assert torch.equal(state[1], start[1])


@pytest.mark.row("D14")
def test_shut_forget_gate_erases_the_cell_in_one_step():
    x, state = random(B, E), random_state(LSTMCell())
    h, c = step(LSTMCell(), x, state, gated(i=SHUT, f=SHUT, o=OPEN))
    assert torch.equal(c, torch.zeros_like(c))
    assert torch.equal(h, torch.zeros_like(h))
    weights, (h, c) = gated(i=OPEN, f=SHUT, o=OPEN), state
    _, written = step(LSTMCell(), x, state, weights)
    _, same = step(LSTMCell(), x, (h, c + 5.0), weights)
    assert torch.equal(written, same)  # nothing of the old is left, whatever is written
    assert written.abs().min() > 0


def test_shut_output_gate_hides_the_cell():
    h, c = step(LSTMCell(), random(B, E), random_state(LSTMCell()), gated(i=OPEN, f=OPEN, o=SHUT))
    assert torch.equal(h, torch.zeros_like(h))
    assert c.abs().min() > 0


def test_a_sigmoid_round_the_cell_would_forget():
    """Why c' = f ⊙ c + i ⊙ g has no squashing: with f = 1, i = 0 it would run to a fixed point."""
    cell, weights = LSTMCell(), gated(i=SHUT, f=OPEN, o=0.0)
    start = kept = squashed = random_state(cell)
    for x in random(100, B, E):
        kept = step(cell, x, kept, weights)
        h, c = step(cell, x, squashed, weights)
        squashed = h, sigmoid(c)
    assert torch.equal(kept[1], start[1])
    torch.testing.assert_close(squashed[1], torch.full_like(c, 0.659046), rtol=0, atol=1e-6)


@pytest.mark.row("D11")
def test_linear_output_may_exceed_one_and_tanh_may_not():
    weights, x = gated(i=OPEN, f=OPEN, o=OPEN), random(B, E)
    state = (random(B, H), torch.full((B, H), 7.0, dtype=torch.float64))
    assert step(LSTMCell("linear"), x, state, weights)[0].min() > 5
    assert step(LSTMCell("tanh"), x, state, weights)[0].max() <= 1


@pytest.mark.row("D12")
@pytest.mark.parametrize("peephole", ["output", "full"])
def test_zero_peepholes_give_the_plain_lstm(peephole):
    cell = LSTMCell(peephole=peephole)
    weights, state, x = random_weights(cell), random_state(cell), random(B, E)
    got = step(cell, x, state, weights._replace(peephole=torch.zeros_like(weights.peephole)))
    expected = step(LSTMCell(), x, state, weights._replace(peephole=None))
    torch.testing.assert_close(got, expected, rtol=0, atol=1e-14)  # not the same operations


@pytest.mark.row("D16")
@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize(("source", "target"), [("keep", "write"), ("write", "keep")])
def test_update_conventions_convert_exactly(reset, source, target):
    source, target = GRUCell(reset, source), GRUCell(reset, target)
    weights, state, x = random_weights(source), random_state(source), random(B, E)
    converted = convert_gru(weights, source=source, target=target)
    got, expected = step(target, x, state, converted), step(source, x, state, weights)
    torch.testing.assert_close(got[0], expected[0], rtol=0, atol=1e-14)
    back = convert_gru(converted, source=target, target=source)
    assert all(torch.equal(a, b) for a, b in zip(back[:4], weights[:4], strict=True))


def test_conversion_to_the_same_variant_changes_nothing():
    weights = random_weights(GRUCell())
    assert convert_gru(weights, source=GRUCell(), target=GRUCell()) is weights


@pytest.mark.parametrize("target", ["before", "none"])
def test_conversion_between_resets_is_refused_with_the_reason(target):
    with pytest.raises(ConfigError, match=rf"reset is 'after' .* but '{target}'.*U_n \(r ⊙ h\)"):
        convert_gru(random_weights(GRUCell()), source=GRUCell(), target=GRUCell(target))


def keras_gru(x, h, kernel, recurrent, bias):
    """Keras' GRU with reset_after=False, written out: gates z, r, h side by side, z keeps."""
    (wz, wr, wh), (uz, ur, uh) = (np.split(matrix, 3, axis=1) for matrix in (kernel, recurrent))
    bz, br, bh = np.split(bias, 3)
    for now in x:
        z = 1 / (1 + np.exp(-(now @ wz + h @ uz + bz)))
        r = 1 / (1 + np.exp(-(now @ wr + h @ ur + br)))
        h = z * h + (1 - z) * np.tanh(now @ wh + (r * h) @ uh + bh)
    return h


@pytest.mark.row("D17")
@pytest.mark.parametrize("update", UPDATES)
def test_reset_before_is_keras_without_reset_after(update):
    T, keeps = 6, GRUCell("before")
    kernel, recurrent, bias = random(E, 3 * H), random(H, 3 * H), random(3 * H)
    x, h = random(T, B, E), random(B, H)
    arrays = (part.numpy() for part in (x, h, kernel, recurrent, bias))
    order = [1, 0, 2]  # theirs: z, r, h

    def ours(matrix):
        parts = matrix.chunk(3, dim=-1)
        return torch.cat([parts[gate] for gate in order], dim=-1).t().contiguous()

    weights = Weights(ours(kernel), ours(recurrent), ours(bias), torch.zeros(3 * H).double())
    cell = GRUCell("before", update)
    weights, state = convert_gru(weights, source=keeps, target=cell), (h,)
    for inputs in x:
        state = step(cell, inputs, state, weights)
    np.testing.assert_allclose(state[0].numpy(), keras_gru(*arrays), rtol=0, atol=1e-14)


def both_resets(weights: Weights) -> tuple[Tensor, Tensor]:
    state, x = random_state(GRUCell()), random(B, E)
    weights = weights._replace(bias_hh=None, bias_ih=None)
    return tuple(step(GRUCell(reset), x, state, weights)[0] for reset in ("before", "after"))


def test_resets_agree_for_a_diagonal_matrix_and_differ_otherwise():
    weights = random_weights(GRUCell())
    before, after = both_resets(weights)
    assert (before - after).abs().max() > 1e-2
    diagonal = weights.hh.clone()
    diagonal[2 * H :] = torch.diag(random(H))
    before, after = both_resets(weights._replace(hh=diagonal))
    torch.testing.assert_close(before, after, rtol=0, atol=1e-14)


@pytest.mark.row("D18")
@pytest.mark.parametrize("update", UPDATES)
def test_without_reset_is_reset_before_with_an_open_gate(update):
    cell = GRUCell("before", update)
    weights, state, x = random_weights(cell), random_state(cell), random(B, E)
    bias = weights.bias_ih.clone()
    bias[:H] = OPEN
    expected = step(cell, x, state, weights._replace(bias_ih=bias))
    simple = Weights._make(None if w is None else w[H:] for w in weights)
    got = step(GRUCell("none", update), x, state, simple)
    torch.testing.assert_close(got[0], expected[0], rtol=0, atol=1e-14)
