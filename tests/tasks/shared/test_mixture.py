"""The n-gram model beside a language model: its numbers, the mixture, and what a folder keeps."""

import dataclasses
import json

import numpy as np
import pytest
import torch

from unrolled.app.cli import main
from unrolled.errors import ConfigError, ModelError
from unrolled.evaluate.report import saved_reports
from unrolled.evaluate.score import named
from unrolled.ngrams.build import build
from unrolled.ngrams.query import line_nats
from unrolled.ngrams.settings import NgramSettings
from unrolled.tasks.run import train
from unrolled.tasks.shared import ngram_beside
from unrolled.tasks.shared.mixture import best_weight, mixed_nats
from unrolled.tasks.shared.ngram_beside import NgramBeside
from unrolled.text.tokens import END

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
SMALL = {"model.hidden_size": 8, "train.batch_tokens": 64, "train.steps": 16}


def lines(count, seed):
    chance = np.random.default_rng(seed)
    words = ["the", "cat", "sat", "on", "a", "mat", "and", "dog"]
    return [" ".join(chance.choice(words, size=chance.integers(1, 8))) for _ in range(count)]


def text_of(count, seed, V=9):
    """Ids of lines, each closed by END."""
    chance = np.random.default_rng(seed)
    rows = [[*chance.integers(4, V, size=chance.integers(1, 9)), END] for _ in range(count)]
    return np.concatenate(rows).astype(np.int32)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for seed, (name, count) in enumerate({"train": 80, "dev": 20, "test": 20}.items()):
        (folder / f"{name}.txt").write_text("\n".join(lines(count, seed)) + "\n")
    return {name: folder / f"{name}.txt" for name in ("train", "dev", "test")}


@pytest.fixture(scope="module", params=["stream", "line", "zero"])
def trained(request, files, tmp_path_factory):
    own = {"stream": {}, "line": {"model.context": "line"}}.get(
        request.param, {"model.context": "line", "model.first_input": "zero"}
    )
    out = tmp_path_factory.mktemp("models") / "lm"
    return train("lm", out=out, settings={**SMALL, **own}, epochs=1, **files), out


def test_the_report_has_the_numbers_of_the_ngram_task(trained, files, tmp_path):
    """The same tokens, counted by the task of that name."""
    _, out = trained
    train("ngram", out=tmp_path / "ngram", settings={"model.order": 5}, **files)
    for split in ("dev", "test"):
        theirs = named(saved_reports(tmp_path / "ngram")[split].scores, "cross_entropy")
        ours = named(saved_reports(out)[split].baselines["ngram"], "cross_entropy")
        assert ours.value == pytest.approx(theirs.value, rel=1e-6)  # kept in single precision
        assert "order:5|smoothing:mkn" in ours.signature


def test_the_mixture_in_the_report_is_that_of_the_probabilities(trained, files):
    model, out = trained
    encoded = model.encoder.encode_lines(files["test"].read_text().splitlines())
    in_lines = model.settings.model.context == "line"
    own = model.network.nats_in_lines(encoded) if in_lines else model.stream_nats(encoded)
    other, weight = model.beside.network.nats_in_lines(encoded), float(model.beside.weight)
    expected = -np.log(weight * np.exp(-own) + (1 - weight) * np.exp(-other)).mean()
    got = named(saved_reports(out)["test"].variants["with_ngram"], "cross_entropy").value
    assert got == pytest.approx(expected, rel=1e-9)
    mixed = model.mixed()
    nats = mixed.network.nats_in_lines(encoded) if in_lines else mixed.stream_nats(encoded)
    assert nats.mean() == pytest.approx(expected, rel=1e-6)


def test_no_other_weight_is_better_on_the_dev_text(trained, files):
    model, out = trained
    dev = named(saved_reports(out)["dev"].variants["with_ngram"], "cross_entropy").value
    encoded = model.encoder.encode_lines(files["dev"].read_text().splitlines())
    in_lines = model.settings.model.context == "line"
    own = model.network.nats_in_lines(encoded) if in_lines else model.stream_nats(encoded)
    other = model.beside.network.nats_in_lines(encoded)
    tried = [mixed_nats(own, other, w).mean() for w in np.linspace(0.001, 0.999, 500)]
    assert dev <= min(tried) + 1e-6


def test_a_mixed_step_is_a_distribution_and_the_mean_of_both(trained):
    model, _ = trained
    model.beside.weight.fill_(0.3)
    mixed, text = model.mixed(), "the cat"
    token, state = mixed._after(text)
    log_p, _ = mixed.network.step(token, state)
    assert log_p.exp().sum().item() == pytest.approx(1.0, abs=1e-5)
    own = model.network.step(*model._after(text))[0]
    begun = [model.network.first, *model._ids(text)]
    ids = torch.tensor([[2 if k == 0 else i for k, i in enumerate(begun)]])
    other = model.beside.network.step(ids[:, -1], model.beside.network.read(ids[:, :-1]))[0]
    expected = 0.3 * own.exp() + 0.7 * other.exp()
    assert log_p.exp().numpy() == pytest.approx(expected.numpy(), abs=1e-6)


def test_the_sum_of_steps_is_the_score_of_a_line(trained):
    model, _ = trained
    if model.settings.model.context == "stream":
        pytest.skip("its lines are scored from the end of another")
    mixed = model.mixed()
    ids = [*mixed._ids("the cat sat"), END]
    token, state = torch.tensor([mixed.network.first]), mixed.network.read(torch.zeros(1, 0).long())
    total = 0.0
    for wanted in ids:
        log_p, state = mixed.network.step(token, state)
        total += log_p[0, wanted].item()
        token = torch.tensor([wanted])
    assert mixed.score(["the cat sat"])[0].log_probability == pytest.approx(total, abs=1e-4)


def test_the_command_mixes_where_it_is_asked_to(trained, files, capsys):
    _, out = trained
    for use in (["score", str(files["test"])], ["next", "the cat"]):
        answers = []
        for more in ([], ["--mix"]):
            assert main([use[0], str(out), use[1], "--json", *more]) == 0
            answers.append(json.loads(capsys.readouterr().out))
        assert answers[0] != answers[1]
    assert main(["generate", str(out), "--mix", "--tokens=5", "--seed=1"]) == 0


def test_a_model_without_one_says_so(trained):
    model, _ = trained
    with pytest.raises(ConfigError, match="no n-gram model beside this one"):
        dataclasses.replace(model, beside=None).mixed()


@pytest.mark.parametrize(("most", "order", "prune"), [(10**6, 5, ()), (600, 4, ()), (160, 3, None)])
def test_a_table_that_is_too_large_gets_a_lower_order_then_fewer_ngrams(
    monkeypatch, most, order, prune
):
    ids = text_of(120, 1)
    monkeypatch.setattr(ngram_beside, "MOST_NGRAMS", most)
    beside = NgramBeside.fitted(ids, "word", 9)
    found = beside.shape
    assert len(found.sizes) == order
    assert sum(found.sizes) <= most + 9
    assert found.prune == prune if prune is not None else any(found.prune)
    table, _ = build(ids, 9, NgramSettings(order=order, smoothing="mkn", prune=found.prune))
    expected, got = line_nats(table, ids), line_nats(beside.network.table, ids)
    assert got == pytest.approx(expected, rel=1e-5)


def test_a_hostile_table_is_refused(trained):
    model, _ = trained
    tensors = {name: value.clone() for name, value in model.tensors().items()}
    tensors["beside.begin_1"][-1] = 10**6
    with pytest.raises(ModelError, match="do not fit together"):
        model.load_tensors(tensors)


@pytest.mark.parametrize("text", ["{}", '{"ngrams": [3], "prune": []}', '{"ngrams": 1}'])
def test_a_wrong_description_is_named(text):
    with pytest.raises(ValueError, match=r"baseline\.json: "):
        NgramBeside.from_files({"baseline.json": text.encode()}, vocabulary_size=9)


@pytest.mark.parametrize("seed", range(5))
def test_the_best_weight_is_found(seed):
    chance = np.random.default_rng(seed)
    first, second = chance.gamma(2.0, size=400), chance.gamma(2.0, size=400)
    weight = best_weight(first, second)
    tried = {w: mixed_nats(first, second, w).sum() for w in np.linspace(0.001, 0.999, 999)}
    assert weight == pytest.approx(min(tried, key=tried.get), abs=2e-3)
