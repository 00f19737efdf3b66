"""GloVe: pairs are counted, weighted and learned from as the equations say."""

import json
import os
import signal

import numpy as np
import pytest
import torch

from unrolled import native
from unrolled.app.cli import main
from unrolled.config import settings_for
from unrolled.errors import ConfigError, ModelError, Stopped
from unrolled.nn import glove_kernels
from unrolled.nn.glove_kernels import HELD, UNIT, GloveState, Pairs, Tiles, Weighting
from unrolled.store.files import write_folder
from unrolled.store.tensors import tensor_bytes
from unrolled.tasks.embed import pairs as counting
from unrolled.tasks.embed.data import Corpus
from unrolled.tasks.embed.glove import GloveNetwork
from unrolled.tasks.embed.pairs import CLASSES, count_pairs, tiled
from unrolled.tasks.embed.settings import EmbedRun
from unrolled.tasks.folder import load
from unrolled.tasks.run import train
from unrolled.tasks.shared.word_vectors import WordVectors

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
compiled = pytest.mark.skipif(native.module is None, reason="there are no compiled kernels")
SETS = native.module.available() if native.module else []
TEXT = "the cat saw the dog and the dog saw a cat\nthe rat ate the cheese and the cat ate the rat\n"


def a_corpus(words=700, V=37, seed=0):
    random = np.random.default_rng(seed)
    ids = (V * random.random(words) ** 2).astype(np.int32)
    cuts = np.sort(random.choice(words, 20, replace=False))
    return Corpus(ids, np.concatenate([[0], cuts, [words]]).astype(np.int64)), V


def brute_force(corpus, window):
    counts = {}
    for first, last in zip(corpus.starts[:-1], corpus.starts[1:], strict=True):
        line = corpus.ids[first:last].tolist()
        for i, row in enumerate(line):
            for j, column in enumerate(line):
                if 0 < abs(i - j) <= window:
                    counts[row, column] = counts.get((row, column), 0.0) + 1 / abs(i - j)
    return counts


def as_counts(counted):
    keys, totals = counted.pairs.T
    return dict(zip(zip(keys >> 32, keys & 0xFFFFFFFF, strict=True), totals / UNIT, strict=True))


def without_kernels(monkeypatch):
    monkeypatch.setattr(glove_kernels, "_kernels", None)


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("at_once", [1 << 25, 100])
@pytest.mark.parametrize("window", [1, 5, 40])
def test_pairs_count_by_distance_within_a_line(monkeypatch, plain, at_once, window):
    if plain:
        without_kernels(monkeypatch)
    monkeypatch.setattr(counting, "WORDS_AT_ONCE", at_once)
    monkeypatch.setattr(counting, "PAIRS_AT_ONCE", 200)
    corpus, V = a_corpus()
    counted = count_pairs(corpus, V, window)
    expected = brute_force(corpus, window)
    assert as_counts(counted) == pytest.approx(expected, rel=1e-6 if window > 22 else 1e-12)
    assert np.all(np.diff(counted.pairs[:, 0]) > 0)
    assert counted.starts[-1] == len(counted)


@pytest.mark.parametrize("plain", [False, True])
def test_tiles_hold_every_pair_once_and_share_nothing(monkeypatch, plain):
    if plain:
        without_kernels(monkeypatch)
    monkeypatch.setattr(counting, "CACHE", 300)
    corpus, V = a_corpus()
    counted = count_pairs(corpus, V, 5)
    laid = tiled(counted, state_bytes=100)
    found = {}
    for shift in range(CLASSES):
        tiles = laid.stratum(shift)
        rows, columns = set(), set()
        for begin, end in zip(tiles.begin, tiles.end, strict=True):
            part = Pairs(*(values[begin:end] for values in laid.pairs))
            assert not rows & set(part.rows)
            assert not columns & set(part.columns)
            rows |= set(part.rows)
            columns |= set(part.columns)
            for row, column, log in zip(*part, strict=True):
                assert (row, column) not in found
                found[row, column] = np.exp(log)
    assert found == pytest.approx(as_counts(counted), rel=1e-6)


@pytest.mark.row("C10")
def test_the_weighting_is_0_at_0_and_1_from_x_max_on():
    logs = torch.log(torch.tensor([0.0, 1.0, 16.0, 100.0, 1e9], dtype=torch.float64))
    expected = [0.0, 100**-0.75, 0.16**0.75, 1.0, 1.0]
    assert Weighting(100.0, 0.75).of_logs(logs).tolist() == pytest.approx(expected, rel=1e-12)


def a_network(V=7, size=3):
    torch.manual_seed(2)
    network = GloveNetwork(V, size, Weighting(3.0, 0.75)).double()
    for weight in network.parameters():
        torch.nn.init.normal_(weight)
    return network


def some_pairs():
    rows = np.array([0, 0, 0, 0, 0, 2, 2, 5], np.int32)
    columns = np.array([1, 2, 3, 4, 6, 0, 2, 5], np.int32)
    logs = np.log([0.2, 1.0, 2.5, 3.0, 40.0, 0.7, 9.0, 1.5]).astype(np.float32)
    return Pairs(rows, columns, logs)


@pytest.mark.row("C9")
def test_gradients_are_those_of_finite_differences():
    network, pairs = a_network(), some_pairs()
    direction = [torch.randn_like(weight) for weight in network.parameters()]
    gradients = torch.autograd.grad(network.loss(pairs).total, list(network.parameters()))
    slope = sum((g * d).sum().item() for g, d in zip(gradients, direction, strict=True))

    @torch.no_grad()
    def moved(by):
        for weight, way in zip(network.parameters(), direction, strict=True):
            weight.add_(way, alpha=by)
        total = network.loss(pairs).total.item()
        for weight, way in zip(network.parameters(), direction, strict=True):
            weight.sub_(way, alpha=by)
        return total

    assert (moved(1e-5) - moved(-1e-5)) / 2e-5 == pytest.approx(slope, rel=1e-7)


def test_the_sign_of_a_bias_is_a_matter_of_writing():
    network, pairs = a_network(), some_pairs()
    rows, columns = torch.tensor(pairs.rows).long(), torch.tensor(pairs.columns).long()
    logs = torch.tensor(pairs.logs).double()
    scores = (network.word[rows] * network.context[columns]).sum(1)
    turned = -network.context_bias  # the note's b', with + bᵢ − b'ⱼ
    errors = scores + network.word_bias[rows] - turned[columns] - logs
    as_noted = (network.weighting.of_logs(logs) * errors**2).sum()
    torch.testing.assert_close(as_noted, network.loss(pairs).total)


def a_state(V=37, size=20, seed=1):
    torch.manual_seed(seed)
    state = GloveState.create(V, size)
    for contexts in (False, True):
        state.put(torch.randn(V, size) / 4, torch.randn(V) / 4, contexts=contexts)
    return state


def test_a_step_of_the_twin_is_adagrad_on_rate_times_half_the_gradient():
    network, pairs = a_network(), some_pairs()
    one = Pairs(*(values[5:6] for values in pairs))
    network.float()
    gradients = torch.autograd.grad(network.loss(one).total, list(network.parameters()))
    word, context, word_bias, context_bias = (gradient / 2 for gradient in gradients)
    state = GloveState.create(7, 3)
    state.put(network.word.detach(), network.word_bias.detach(), contexts=False)
    state.put(network.context.detach(), network.context_bias.detach(), contexts=True)
    tiles = Tiles(np.array([0]), np.array([1]))
    for _ in range(2):
        before = [value.clone() for c in (False, True) for value in state.get(contexts=c)]
        squares = state.words[2, 1, :3].clone()
        glove_kernels.train_tiles_plainly(state, one, tiles, network.weighting, rate=0.1)
        if torch.all(squares == 1):
            after = [value for c in (False, True) for value in state.get(contexts=c)]
            steps = [(b - a) / 0.1 for b, a in zip(before, after, strict=True)]
            for step, half in zip(steps, (word, word_bias, context, context_bias), strict=True):
                torch.testing.assert_close(step, half, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(state.words[2, 1, :3], 1 + (0.1 * word[2]) ** 2)
    assert state.words[2, 0, 4] == 1
    assert state.words[2, 1, 4] == np.float32(HELD)


@compiled
@pytest.mark.parametrize("isa", SETS)
@pytest.mark.parametrize("size", [1, 14, 15, 100])
def test_the_kernel_steps_as_its_twin(isa, size):
    corpus, V = a_corpus()
    laid = tiled(count_pairs(corpus, V, 5), state_bytes=1 << 15)
    ours, twin = a_state(V, size), a_state(V, size)
    before = native.module.name()
    native.module.use(isa)
    try:
        for shift in range(CLASSES):
            of = (laid.pairs, laid.stratum(shift), Weighting(4.0, 0.75))
            total = glove_kernels.train_tiles(ours, *of, rate=0.05, threads=2)
            expected = glove_kernels.train_tiles_plainly(twin, *of, rate=0.05)
            assert total == pytest.approx(expected, rel=1e-4, abs=1e-6)
    finally:
        native.module.use(before)
    torch.testing.assert_close(ours.words[:, 0], twin.words[:, 0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours.contexts, twin.contexts, rtol=1e-3, atol=1e-4)


@compiled
def test_the_number_of_threads_changes_no_bit():
    corpus, V = a_corpus(words=4000, V=90)
    laid = tiled(count_pairs(corpus, V, 5), state_bytes=1 << 15)
    states = [a_state(V), a_state(V), a_state(V)]
    for state, threads in zip(states, (1, 2, 3), strict=True):
        for shift in range(CLASSES):
            of = (laid.pairs, laid.stratum(shift), Weighting())
            glove_kernels.train_tiles(state, *of, rate=0.05, threads=threads)
    assert torch.equal(states[0].words, states[1].words)
    assert torch.equal(states[0].contexts, states[2].contexts)


@compiled
@pytest.mark.parametrize("wrong", ["tile", "columns"])
def test_what_does_not_fit_is_refused(wrong):
    pairs, tiles = some_pairs(), Tiles(np.array([0]), np.array([8]))
    if wrong == "tile":
        tiles = Tiles(np.array([0]), np.array([9]))
    else:
        pairs = pairs._replace(columns=pairs.columns[1:])
    with pytest.raises(ValueError, match=r"tile lies outside the 8 pairs|not equally many"):
        glove_kernels.train_tiles(a_state(), pairs, tiles, Weighting(), rate=0.1, threads=1)


SETTINGS = {
    "model.objective": "glove",
    "model.embedding_size": 10,
    "tokens.min_count": 1,
    "train.learning_rate": 0.05,
    "train.schedule": "constant",
}


@pytest.mark.row("C9")
@pytest.mark.row("C10")
def test_a_tiny_text_gives_finite_vectors_and_the_loss_falls(tmp_path):
    (tmp_path / "t").write_text(TEXT)
    out = tmp_path / "m"
    model = train("embed", train=tmp_path / "t", out=out, epochs=30, settings=SETTINGS)
    losses = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    means = [row["train_loss"] for row in losses if "train_loss" in row]
    assert means[-1] < means[0] / 2
    assert np.isfinite(model.vectors.vectors).all()
    summed = model.network.word + model.network.context
    np.testing.assert_array_equal(WordVectors.load(out).vectors, summed.detach().numpy())
    np.testing.assert_array_equal(load(out).vectors.vectors, model.vectors.vectors)


def test_a_stopped_run_ends_in_the_same_bytes(tmp_path):
    (tmp_path / "t").write_text(TEXT)
    common = {"train": tmp_path / "t", "epochs": 3, "settings": SETTINGS}
    train("embed", out=tmp_path / "whole", **common)

    def stop(status):
        if status.step == 20:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        train("embed", out=tmp_path / "parts", watch=stop, **common)
    train("embed", out=tmp_path / "parts", resume=True, **common)
    for name in ("model.safetensors", "words.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes()


def test_it_learns_without_kernels_and_is_judged(tmp_path, monkeypatch, capsys):
    without_kernels(monkeypatch)
    (tmp_path / "t").write_text(TEXT)
    out = tmp_path / "m"
    options = ["--objective=glove", "--min-count=1", "--embedding-size=4", "--epochs=2"]
    assert main(["train", "embed", f"--train={tmp_path / 't'}", f"--out={out}", *options]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(out), str(tmp_path / "t"), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    zero = scores["baselines"]["zero_vectors"][0]["value"]
    assert scores["scores"][0]["value"] < zero


def test_a_text_without_pairs_is_refused(tmp_path, capsys):
    (tmp_path / "t").write_text("a\nb\na\nb\n")
    options = ["--objective=glove", "--min-count=1", f"--out={tmp_path / 'm'}"]
    assert main(["train", "embed", f"--train={tmp_path / 't'}", *options]) == 3
    assert "has no two known words in a line: there is no pair" in capsys.readouterr().err


def test_what_suits_it_is_chosen_where_nobody_says():
    train = settings_for(EmbedRun, overrides={"model.objective": "glove"}).train
    assert (train.learning_rate, train.epochs, train.x_max) == (0.05, 15, 10.0)
    assert train.schedule == "constant"
    said = settings_for(EmbedRun, overrides={"model.objective": "glove", "train.epochs": 5}).train
    assert said.epochs == 5


def test_it_has_no_subwords():
    with pytest.raises(ConfigError, match=r"model\.subwords is true, but GloVe counts whole words"):
        settings_for(EmbedRun, overrides={"model.objective": "glove", "model.subwords": True})


def test_two_vectors_whose_sum_overflows_are_refused(tmp_path):
    table = torch.full((2, 3), 3e38)
    tensors = {"word": table, "context": table}
    words = json.dumps({"words": ["a", "b"], "counts": [1, 1]}).encode()
    write_folder(tmp_path / "m", {"words.json": words, "model.safetensors": tensor_bytes(tensors)})
    with pytest.raises(ModelError, match="the two vectors of a word have a sum beyond 32 bits"):
        WordVectors.load(tmp_path / "m")
