"""The Python interface: the words of the command, as functions."""

import subprocess
import sys

import pytest
import torch

import unrolled

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

TEXT = "the cat sat on a mat\na dog ran to the house\nit was not very big\n" * 20


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("api")
    (folder / "train.txt").write_text(TEXT)
    (folder / "dev.txt").write_text(TEXT[:200])
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return unrolled.train(
        "lm",
        train=folder / "train.txt",
        dev=str(folder / "dev.txt"),
        out=folder / "lm",
        epochs=30,
        seed=3,
        threads=1,
        settings={"model.hidden_size": 16, "model.cell": "gru", "train.learning_rate": 0.02},
    )


def test_training_returns_the_model_that_is_in_the_folder(model, folder):
    assert isinstance(model, unrolled.LanguageModel)
    assert model.settings.train.epochs == 30
    assert model.settings.seed == 3
    assert unrolled.load(folder / "lm").score(["the cat"]) == model.score(["the cat"])


def test_it_prefers_what_it_has_read(model):
    known, turned = model.score(["the cat sat on a mat", "mat a on sat cat the"])
    assert known.log_probability > turned.log_probability + 5.0
    assert known.tokens == 7
    assert model.next("the cat", top=1)[0].token == "sat"
    assert model.generate("it was", tokens=3, temperature=0) == ["it was not very big"]


def test_generation_repeats_with_its_seed(model):
    several = model.generate("the", tokens=12, count=3, seed=5)
    assert len(several) == 3
    assert several == model.generate("the", tokens=12, count=3, seed=5)
    assert several != model.generate("the", tokens=12, count=3, seed=6)


def test_a_watch_sees_every_step(folder):
    seen = []
    unrolled.train(
        "lm",
        train=folder / "train.txt",
        out=folder / "watched",
        epochs=2,
        threads=1,
        settings={"model.hidden_size": 8, "train.batch_tokens": 128},
        watch=lambda status: seen.append((status.epoch, status.step, status.share)),
    )
    assert [step for _, step, _ in seen] == [1, 2, 3, 4, 4, 5, 6, 7, 8, 8]  # twice: with dev_loss
    assert seen[-1] == (2, 8, 1.0)


def test_errors_are_unrolled_errors_and_name_what_is_wrong(folder):
    with pytest.raises(
        unrolled.UnrolledError, match=r"epochs is 1 and minutes is 2, but a run ends"
    ):
        unrolled.train("lm", train="a", out="b", epochs=1, minutes=2)
    with pytest.raises(unrolled.UnrolledError, match="task is 'tagg', but must be one of"):
        unrolled.train("tagg", train="a", out="b")
    with pytest.raises(OSError, match=r"none\.txt: there is no such file"):
        unrolled.train("lm", train="none.txt", out=folder / "none")
    with pytest.raises(unrolled.UnrolledError, match="no such folder"):
        unrolled.load(folder / "none")


def test_public_names_are_listed_and_load_late():
    assert dir(unrolled) == sorted([*unrolled.__all__, "__version__"])
    for name in dir(unrolled):
        assert getattr(unrolled, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Classifyer'"):
        _ = unrolled.Classifyer
    code = "import sys, unrolled; dir(unrolled); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_layers_are_there_by_the_same_name():
    rnn = unrolled.nn.LSTM(4, 6, batch_first=True, bidirectional=True)
    lengths = torch.tensor([5, 2])
    y, (h, _) = rnn(torch.randn(2, 5, 4), lengths=lengths)
    assert y.shape == (2, 5, 12)
    assert h.shape == (2, 2, 6)
    assert not y[1, 2:].any()
