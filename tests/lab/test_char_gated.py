"""The one-file GRU and LSTM: their gradients, their twins in the package, and that they learn."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from unrolled.lab import char_gru, char_lstm, char_rnn

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

IDS = [0, 2, 1, 1, 3, 0, 2, 4, 4, 1]
H = 4
MODELS = {"gru": (char_gru, torch.nn.GRU, 1), "lstm": (char_lstm, torch.nn.LSTM, 2)}


def example(name):
    module, layer, states = MODELS[name]
    w = {key: value * 5 for key, value in module.init(5, H).items()}
    state = np.random.default_rng(1).standard_normal((states, H))
    return module, layer, w, state


@pytest.mark.row("I4")
@pytest.mark.parametrize("name", MODELS)
def test_gradients_equal_finite_differences(name):
    module, _, w, state = example(name)
    _, gradients, *_ = module.loss_and_gradients(w, IDS, *state)
    for key, value in w.items():
        numeric = np.zeros_like(value)
        for place in np.ndindex(value.shape):
            kept, found = value[place], []
            for step in (1e-6, -1e-6):
                value[place] = kept + step
                found.append(module.loss_and_gradients(w, IDS, *state)[0])
            value[place] = kept
            numeric[place] = (found[0] - found[1]) / 2e-6
        error = np.linalg.norm(gradients[key] - numeric)
        assert error / (np.linalg.norm(gradients[key]) + np.linalg.norm(numeric)) < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_loss_and_last_state_equal_torchs(name):
    module, layer, w, state = example(name)
    twin = layer(5, H, dtype=torch.float64)
    for key, ours in (("weight_ih_l0", "W"), ("weight_hh_l0", "U"), ("bias_ih_l0", "b")):
        getattr(twin, key).data = torch.from_numpy(w[ours])
    twin.bias_hh_l0.data.zero_()
    first = tuple(torch.from_numpy(part)[None] for part in state)
    x = torch.eye(5, dtype=torch.float64)[IDS[:-1]]
    y, last = twin(x, first if len(first) > 1 else first[0])
    logits = y @ torch.from_numpy(w["V"]).t() + torch.from_numpy(w["d"])
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(IDS[1:]), reduction="sum")
    ours, _, *end = module.loss_and_gradients(w, IDS, *state)
    assert ours == pytest.approx(loss.item(), rel=1e-12)
    for part, true in zip(end, last if len(first) > 1 else [last], strict=True):
        np.testing.assert_allclose(part, true[0].detach().numpy(), rtol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_it_learns_a_text_and_writes_it(name):
    module = MODELS[name][0]
    text = "hello hello "
    alphabet = sorted(set(text))
    ids = [alphabet.index(character) for character in text * 20]
    w = module.init(len(alphabet), 16)
    losses = list(islice(module.train(w, ids), 300))
    assert losses[0] > 1.5
    assert np.mean(losses[-10:]) < 0.1
    written = "".join(alphabet[i] for i in module.write(w, alphabet.index("h"), 24))
    assert "hello hello" in written


@pytest.mark.parametrize("module", [char_rnn, char_gru, char_lstm])
def test_it_is_short_and_needs_numpy_alone(module):
    source = Path(module.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 150
    assert "unrolled." not in source.replace("`unrolled", "")
    assert "torch" not in source
