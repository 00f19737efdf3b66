"""One to one, one to many, many to one, many to many: the same stack serves all."""

import pytest
import torch
from networks import build, random
from torch.nn import functional

from unrolled.nn import LSTMCell

pytestmark = pytest.mark.arithmetic

B, T, E, H = 3, 7, 4, 5
LENGTHS = torch.tensor([7, 3, 1])


def stack():
    return build(E, H, cell=LSTMCell())


def one_by_one(net, x, state=None):
    """Outputs and last state of rows of one length, each step by the cell's own equations."""
    h, c = state or (x.new_zeros(len(x), H), x.new_zeros(len(x), H))
    outputs = []
    for x_t in x.unbind(1):
        a = functional.linear(x_t, net.weight_ih_l0, net.bias_ih_l0)
        a = a + functional.linear(h, net.weight_hh_l0, net.bias_hh_l0)
        i, f, g, o = a.chunk(4, dim=1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    return torch.stack(outputs, dim=1), (h, c)


def assert_close(got, expected):
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-13)


@pytest.mark.row("E-c")
def test_one_to_one_is_a_single_step():
    net, x = stack(), random(B, 1, E)
    y, (h, c) = net(x)
    expected, last = one_by_one(net, x)
    assert_close(y, expected)
    assert_close((h[0], c[0]), last)


@pytest.mark.row("E-c")
def test_one_to_many_feeds_its_output_back():
    net, back = stack(), random(E, H)
    x, state = random(B, 1, E), None
    seen, outputs = [], []
    for _ in range(T):
        seen.append(x)
        y, state = net(x, state=state)
        x = y @ back.T
        outputs.append(y)
    expected, _ = one_by_one(net, torch.cat(seen, dim=1))
    assert_close(torch.cat(outputs, dim=1), expected)


@pytest.mark.row("E-c")
def test_many_to_one_reads_the_last_state_of_each_row():
    net, x = stack(), random(B, T, E)
    _, (h, _) = net(x, LENGTHS)
    for row, length in enumerate(LENGTHS):
        _, (last, _) = one_by_one(net, x[row : row + 1, :length])
        assert_close(h[-1, row], last[0])


@pytest.mark.row("E-c")
def test_many_to_many_of_equal_length_has_an_output_for_each_input():
    net, x = stack(), random(B, T, E)
    assert_close(net(x)[0], one_by_one(net, x)[0])


@pytest.mark.row("E-c")
def test_many_to_many_of_unequal_length_hands_the_state_over():
    encoder, decoder, x, z = stack(), stack(), random(B, T, E), random(B, 11, E)
    _, state = encoder(x, LENGTHS)
    y, _ = decoder(z, state=state)
    for row, length in enumerate(LENGTHS):
        _, handed = one_by_one(encoder, x[row : row + 1, :length])
        expected, _ = one_by_one(decoder, z[row : row + 1], handed)
        assert_close(y[row], expected[0])


def test_one_parameter_set_serves_every_length():
    """As many as one step needs, and the same at each: every length runs through them alone."""
    net = stack()
    assert sum(p.numel() for p in net.parameters()) == 4 * (H * (H + E) + 2 * H)
    for steps in (1, 5, 500):
        x, upstream = random(1, steps, E), random(1, steps, H)
        y, (expected, _) = net(x)[0], one_by_one(net, x)
        assert_close(y, expected)
        ways = [(upstream * way).sum() for way in (y, expected)]
        found, wanted = (torch.autograd.grad(way, list(net.parameters())) for way in ways)
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-11)
