"""One to one, one to many, many to one, many to many: the same stack serves all."""

import torch

from unrolled.nn import LSTMCell, Recurrent

B, T, E, H = 3, 7, 4, 5
STACK = Recurrent(E, H, cell=LSTMCell())


def test_one_to_one_is_a_single_step():
    y, _ = STACK(torch.randn(B, 1, E))
    assert y.shape == (B, 1, H)


def test_one_to_many_feeds_its_output_back():
    back = torch.nn.Linear(H, E)
    x, state, outputs = torch.randn(B, 1, E), None, []
    for _ in range(T):
        y, state = STACK(x, state=state)
        x = back(y)
        outputs.append(y)
    assert torch.cat(outputs, dim=1).shape == (B, T, H)


def test_many_to_one_reads_the_last_state():
    _, (h, _) = STACK(torch.randn(B, T, E), torch.tensor([7, 3, 1]))
    assert h[-1].shape == (B, H)


def test_many_to_many_of_equal_length():
    y, _ = STACK(torch.randn(B, T, E))
    assert y.shape == (B, T, H)


def test_many_to_many_of_unequal_length_hands_the_state_over():
    decoder = Recurrent(E, H, cell=LSTMCell())
    _, state = STACK(torch.randn(B, T, E), torch.tensor([7, 3, 1]))
    y, _ = decoder(torch.randn(B, 11, E), state=state)
    assert y.shape == (B, 11, H)


def test_one_parameter_set_serves_every_length():
    count = sum(p.numel() for p in STACK.parameters())
    for steps in (1, 5, 500):
        y, _ = STACK(torch.randn(1, steps, E))
        assert y.shape == (1, steps, H)
    assert sum(p.numel() for p in STACK.parameters()) == count
