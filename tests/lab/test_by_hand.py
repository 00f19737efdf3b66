"""Back-propagation by hand, in every variant: equal to autograd, to the kernels, to differences."""

import numpy as np
import pytest
import torch

from unrolled.errors import ConfigError
from unrolled.lab.bptt import (
    Shown,
    by_torch,
    differences,
    distance,
    missing_by_truncation,
    sizes,
    small_run,
    ways,
)
from unrolled.lab.by_hand import double_sum, every_cell, forward, recursion, step_jacobian
from unrolled.lab.equations.tools import apart, jacobian
from unrolled.lab.graph import ShownGraph
from unrolled.lab.net import adjoints, graph, small_net, values

pytestmark = pytest.mark.arithmetic

TEXT = "hello there"
EVERY = [*every_cell()]


def test_every_variant_of_every_cell_is_there():
    assert len(EVERY) == 5 + 6 + 6


@pytest.mark.row("F7", "F8", "F10", "F11")
@pytest.mark.parametrize("variant", EVERY)
def test_five_ways_give_one_gradient(variant):
    found = ways(small_run(TEXT, variant, hidden=3, seed=1))
    assert len(found) == 4
    assert max(found.values()) < 1e-6
    assert found["double sum over t and k"] < 1e-12
    assert found["linear recursion"] < 1e-12
    assert found["the layer as it runs"] < 1e-12


@pytest.mark.row("G1")
@pytest.mark.parametrize("variant", EVERY)
def test_a_factor_is_the_jacobian_of_its_step(variant):
    run = small_run(TEXT, variant, hidden=3, seed=2)
    step = run.steps()[4]
    numeric = jacobian(lambda s: forward(run.cell, run.weights, [step.x], s)[0].after, step.before)
    assert apart(step_jacobian(run.cell, run.weights, step), numeric) < 1e-6


@pytest.mark.parametrize("variant", EVERY)
def test_gradients_of_inputs_and_of_the_first_state(variant):
    run = small_run(TEXT, variant, hidden=3, seed=1)
    found = recursion(run.cell, run.weights, run.steps(), run.slopes())
    product = Shown(run).product() @ run.jacobians()[0]
    last = [0 * row for row in run.slopes()]
    last[-1] = run.slopes()[-1]
    alone = recursion(run.cell, run.weights, run.steps(), last)
    assert found["x"].shape == run.inputs.shape
    assert apart(alone["first"], product) < 1e-12


def test_the_check_would_notice_a_missing_term():
    run = small_run(TEXT, "lstm", hidden=3, seed=1)
    true, found = differences(run), by_torch(run, compiled=True)
    found["hh"] = found["hh"] * 1.00001
    assert distance(found, true) > 1e-6


def test_truncation_leaves_out_what_is_farther_back():
    run = small_run("abcdefgh", "rnn identity", hidden=3, seed=1)
    missing = missing_by_truncation(run)
    assert missing[7] == pytest.approx(0.0, abs=1e-14)
    assert missing[1] > 0.01
    steps, slopes = run.steps(), run.slopes()
    one = double_sum(run.cell, run.weights, steps, slopes, truncated=1)["hh"]
    alone = sum(
        recursion(run.cell, run.weights, steps[t : t + 1], slopes[t : t + 1])["hh"]
        for t in range(7)
    )
    np.testing.assert_allclose(one, alone, rtol=1e-12)


@pytest.mark.row("G11", "Q8")
def test_the_heat_map_is_that_of_autograd():
    """‖∂L_t/∂h_k‖ by torch, a row at a time; nothing of a loss reaches a later state."""
    run = small_run("abcab", "gru", hidden=3, seed=1)
    table = sizes(run)
    assert (np.triu(table, 1) == 0.0).all()
    from unrolled.nn.cells import Weights

    w = Weights(**{name: torch.from_numpy(value) for name, value in run.weights.items()})
    state, states = (torch.zeros(1, 3, dtype=torch.float64),), []
    for x in torch.from_numpy(run.inputs):
        state = run.cell.step(run.cell.project(x[None], w), (state[0].requires_grad_(),), w)
        states.append(state[0])
    for t, h in enumerate(states):
        logits = h @ torch.from_numpy(run.output).t()
        nats = torch.nn.functional.cross_entropy(logits, torch.tensor(run.targets[t : t + 1]))
        grads = torch.autograd.grad(nats, states[: t + 1], retain_graph=True)
        np.testing.assert_allclose(table[t, : t + 1], [float(g.norm()) for g in grads], rtol=1e-10)


@pytest.mark.parametrize(
    ("text", "cell", "message"),
    [
        ("a", "rnn", "the text has 1 characters, but must have 2 to 200"),
        ("ab", "cnn", "--cell is 'cnn'"),
    ],
)
def test_what_cannot_be_run(text, cell, message):
    with pytest.raises(ConfigError, match=message):
        small_run(text, cell, hidden=2, seed=1)


@pytest.mark.row("F12")
def test_factors_are_printed_and_multiply_to_the_product():
    shown = Shown(small_run("abca", "rnn", hidden=2, seed=1))
    found = shown.as_json()
    row = np.array(shown.run.slopes()[-1])
    for factor in reversed(found["factors"]):
        row = row @ np.array(factor)
    np.testing.assert_allclose(found["product"], row)
    text = shown.text()
    assert text.count("∂s_") == 2 * len(found["factors"]) + 2
    assert f"{row[0]:+.6f}" in text


# ------------------------------------------------------------------ the net of three layers


@pytest.mark.row("F1")
def test_values_and_adjoints_equal_autograd():
    net = small_net()
    tensors = {name: torch.tensor(value, requires_grad=True) for name, value in net.weights.items()}
    h, kept = torch.tensor(net.X, requires_grad=True), {}
    kept["h0"] = h
    for n in "123":
        kept[f"z{n}"] = h @ tensors[f"w{n}"].t() + tensors[f"b{n}"]
        h = kept[f"h{n}"] = torch.sigmoid(kept[f"z{n}"])
    loss = ((torch.tensor(net.y) - h) ** 2).mean()
    every = {**kept, **tensors}
    grads = dict(zip(every, torch.autograd.grad(loss, list(every.values())), strict=True))
    found, forward_values = adjoints(net), values(net)
    for name, grad in grads.items():
        np.testing.assert_allclose(found[name], grad.numpy(), rtol=1e-12)
    for name, value in kept.items():
        np.testing.assert_allclose(forward_values[name], value.detach().numpy(), rtol=1e-12)
    assert float(forward_values["L"]) == pytest.approx(loss.item())


@pytest.mark.row("Q3")
def test_the_graph_has_every_node_once_and_made_of_earlier_ones():
    nodes = graph(small_net())
    names = [node.name for node in nodes]
    assert len({*names}) == len(names) == 15
    for place, node in enumerate(nodes):
        assert {*node.inputs} <= {*names[:place]}
    shown = ShownGraph(small_net())
    assert all(name in shown.text() for name in names)
    drawn = str(shown.chart().to_dict())
    assert all(f"'text': '{name}'" in drawn for name in names)
