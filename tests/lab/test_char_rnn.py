from itertools import islice

import numpy as np
import pytest
import torch

from unrolled.lab.char_rnn import clip, init, loss_and_gradients, train, write

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

IDS = [0, 2, 1, 1, 3, 0, 2, 4, 4, 1]


@pytest.mark.row("F8", "I4")
def test_gradients_equal_finite_differences():
    w = {name: value * 5 for name, value in init(5, 4).items()}  # far from linear
    h = np.random.default_rng(1).standard_normal(4)
    _, gradients, _ = loss_and_gradients(w, IDS, h)
    for name, value in w.items():
        numeric = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            kept = value[place]
            value[place] = kept + 1e-6
            above = loss_and_gradients(w, IDS, h)[0]
            value[place] = kept - 1e-6
            below = loss_and_gradients(w, IDS, h)[0]
            value[place] = kept
            numeric[place] = (above - below) / 2e-6
        error = np.linalg.norm(gradients[name] - numeric)
        assert error / (np.linalg.norm(gradients[name]) + np.linalg.norm(numeric)) < 1e-6


def test_loss_and_last_state_equal_torchs_rnn():
    w = init(5, 4)
    rnn = torch.nn.RNN(5, 4, dtype=torch.float64)
    for name, value in (("weight_ih_l0", "W_xh"), ("weight_hh_l0", "W_hh"), ("bias_ih_l0", "b_h")):
        getattr(rnn, name).data = torch.from_numpy(w[value])
    rnn.bias_hh_l0.data.zero_()
    x = torch.eye(5, dtype=torch.float64)[IDS[:-1]]
    y, last = rnn(x)
    logits = y @ torch.from_numpy(w["W_hy"]).t() + torch.from_numpy(w["b_y"])
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(IDS[1:]), reduction="sum")
    ours, _, h = loss_and_gradients(w, IDS, np.zeros(4))
    assert ours == pytest.approx(loss.item(), rel=1e-12)
    np.testing.assert_allclose(h, last[0].detach().numpy(), rtol=1e-12)


def test_clipping_keeps_the_direction_and_small_gradients():
    gradients = {"a": np.array([3.0]), "b": np.array([4.0])}
    clipped = clip(gradients, 1.0)
    np.testing.assert_allclose([clipped["a"][0], clipped["b"][0]], [0.6, 0.8])
    assert clip(gradients, 6.0) == gradients


def test_it_learns_a_text_and_writes_it():
    text = "hello hello "
    alphabet = sorted(set(text))
    ids = [alphabet.index(character) for character in text * 20]
    w = init(len(alphabet), 24)
    losses = list(islice(train(w, ids), 400))
    assert losses[0] > 1.5
    assert np.mean(losses[-10:]) < 0.05
    written = "".join(alphabet[i] for i in write(w, alphabet.index("h"), 24))
    assert "hello hello" in written
