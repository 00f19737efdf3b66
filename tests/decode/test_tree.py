import math

import pytest
import torch
from toy_steppers import Hashed, started

from unrolled.decode.beam import beam_search
from unrolled.decode.tree import beam_tree
from unrolled.errors import ConfigError

pytestmark = pytest.mark.arithmetic


def watched(seed, *, sources=(4,), limit=7, V=5, **options):
    """The model, its hypotheses, and the steps that a watcher saw."""
    model, steps = Hashed(V, seed), []
    state, first = started(model, sources)
    limits = torch.full((len(sources),), limit)
    options = {"end": 0, "limits": limits, "width": 3, "nbest": 3, **options}
    found = beam_search(model, state, first, watch=steps.append, **options)
    assert found == beam_search(model, state, first, **options)  # watching changes nothing
    return model, found[0], steps


def tokens_to(nodes, node):
    path = []
    while node.parent is not None:
        path.insert(0, node.token)
        node = nodes[node.parent]
    return path


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("options", [{}, {"banned": (0,)}, {"stop": "limit"}])
def test_the_tree_is_what_the_search_did(seed, options):
    model, found, steps = watched(seed, **options)
    nodes = beam_tree(steps, alpha=0.7)
    assert [node.id for node in nodes] == [*range(len(nodes))]
    for node in nodes[1:]:
        path = tokens_to(nodes, node)
        assert node.parent < node.id
        assert node.log_probability == pytest.approx(model.forced(4, path), rel=1e-13)
        assert node.score == node.log_probability / len(path) ** 0.7
        assert node.state in ("best", "pruned", "finished" if path[-1] == 0 else "open")
    best = [node.token for node in nodes if node.state == "best"]
    assert best == found[0].tokens + [0] * found[0].finished
    ended = {
        tuple(tokens_to(nodes, node))
        for node in nodes
        if node.token == 0 and node.state in ("finished", "best")
    }
    assert {(*each.tokens, 0) for each in found if each.finished} <= ended


def test_the_best_of_what_was_pruned_is_in_it():
    model, _, steps = watched(1, limit=2, stop="limit")
    nodes = beam_tree(steps, alpha=0.0)
    kept = [node for node in nodes if node.parent == 0 and node.state != "pruned"]
    beginnings = [tokens_to(nodes, node) for node in kept if node.token != 0]
    candidates = sorted(
        (model.forced(4, [*tokens, v]) for tokens in beginnings for v in range(5)), reverse=True
    )
    pruned = [n for n in nodes if n.state == "pruned" and len(tokens_to(nodes, n)) == 2]
    assert [n.log_probability for n in pruned] == pytest.approx(candidates[3:6], rel=1e-14)


def test_steps_are_plain_arrays_of_the_live_sentences():
    _, _, steps = watched(2, sources=(4, 5, 6), V=40)
    for step in steps:
        n = len(step.sentences)
        assert step.width == 3
        assert step.parents.shape == step.tokens.shape == step.log_p.shape == (n, 6)
        assert step.ended.shape == (n, 6)
        assert (step.parents < 3).all()
        assert (step.ended == ((step.tokens == 0) & (step.log_p > -math.inf))).all()
    assert steps[0].sentences.tolist() == [0, 1, 2]


def test_no_step_is_the_root_alone():
    assert [node[:3] for node in beam_tree([], alpha=0.7)] == [(0, None, None)]


def test_a_tree_of_several_sentences_is_refused():
    _, _, steps = watched(2, sources=(4, 5))
    with pytest.raises(ConfigError, match="A step has 2 sentences, but a tree shows one"):
        beam_tree(steps, alpha=0.7)
