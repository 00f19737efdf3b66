"""What a program may give a model: one text, several, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

import unrolled
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS
from unrolled.tasks.shared.texts import text_list

KEPT = Path(__file__).parents[2] / "golden" / "kept"
METHODS = ("predict", "score")


@pytest.mark.parametrize("task", [name for name in TASKS if (KEPT / name).exists()])
def test_one_text_has_one_answer_and_what_is_no_text_is_named(task):
    model = unrolled.load(KEPT / task)
    (ask,) = (getattr(model, method) for method in METHODS if hasattr(model, method))
    texts = ["the cat sat", "a dog"]
    both = ask(texts)
    for text, answer in zip(texts, both, strict=True):
        assert type(ask(text)) is type(answer)
        assert str(ask(text))[:20] == str(answer)[:20]  # what follows may be rounded otherwise
    assert len(ask(np.array(texts))) == 2
    assert ask([]) == []
    with pytest.raises(TypeError, match=r"\[1\] is None, but must be"):
        ask(["the cat", None])


NO_TEXT = [None, 3, 1.5, b"the cat", ["the", None], [["a", 3]], Ellipsis, {"a": 1}.values()]
TEXTS = ("predict", "score", "sentence_vectors", "translate", "probabilities", "tag")
ONE_TEXT = ("next", "generate", "surprise", "explain", "knows", "n_best")


@pytest.mark.parametrize("task", [name for name in TASKS if (KEPT / name).exists()])
@pytest.mark.parametrize("wrong", NO_TEXT, ids=repr)
def test_what_is_no_text_is_named_wherever_a_text_is_asked_for(task, wrong):
    model = unrolled.load(KEPT / task)
    for method in [name for name in (*TEXTS, *ONE_TEXT) if hasattr(model, name)]:
        with pytest.raises(TypeError, match="but must be"):
            list(getattr(model, method)(wrong))  # what comes by and by, too


@pytest.mark.parametrize("task", [name for name in TASKS if (KEPT / name).exists()])
def test_no_texts_have_no_vectors(task):
    model = unrolled.load(KEPT / task)
    if hasattr(model, "sentence_vectors"):
        assert model.sentence_vectors([]).shape[0] == 0
        assert model.sentence_vectors("the cat").shape[0] == 1


NO_NUMBER = ["x", 2.5, [1], True, 1 + 1j, Ellipsis]


@pytest.mark.parametrize("wrong", NO_NUMBER, ids=repr)
@pytest.mark.parametrize("name", ["tokens", "count", "top_k", "seed"])
def test_what_counts_is_a_whole_number(name, wrong):
    model = unrolled.load(KEPT / "lm")
    with pytest.raises(TypeError, match=f"^{name} is .*, but must be a whole number.$"):
        model.generate("the", **{"tokens": 2, name: wrong})
    few = {"tokens": np.int64(2), "count": np.int32(1), "top_k": np.int64(3), "seed": np.int64(1)}
    assert model.generate("the", **few)


@pytest.mark.parametrize("name", ["width", "nbest", "max_length", "alpha"])
def test_a_search_takes_numbers(name):
    model = unrolled.load(KEPT / "translate")
    with pytest.raises(TypeError, match=f"^{name} is 'x', but must be a "):
        model.predict("the cat", **{name: "x"})
    with pytest.raises(ConfigError, match=f"^{name} is 10{{29}}"):
        model.predict("the cat", **{name: 10**30})
    with pytest.raises(ConfigError, match="the option of predict is 'beam', but must be one of"):
        model.predict("the cat", beam=3)


def test_texts_are_strings():
    assert text_list("one") == ["one"]
    assert text_list(text for text in ("a", "b")) == ["a", "b"]
    with pytest.raises(TypeError, match=r"texts\[0\] is 3, but must be a string."):
        text_list([3])
    for wrong in (None, 3, b"abc"):
        with pytest.raises(TypeError, match="but must be a string or several"):
            text_list(wrong)


NO_PATH = [None, 3, 2.5, ["a"], b"model", Ellipsis]


@pytest.mark.parametrize("wrong", NO_PATH, ids=repr)
@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("folder", unrolled.load),
        ("folder", unrolled.Classifier.load),
        ("train", lambda path: unrolled.train("ngram", train=path, out="x")),
        ("out", lambda path: unrolled.train("ngram", train=KEPT / "data/lines.txt", out=path)),
    ],
)
def test_what_is_no_path_is_named(name, ask, wrong):
    with pytest.raises(TypeError, match=f"^{name} is .*, but must be a path.$"):
        ask(wrong)
    for no_name in ("a\0b", "\ud800"):
        with pytest.raises(ConfigError, match=f"^{name} is .*, but no file can be called so.$"):
            ask(no_name)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"settings": [("model.order", 2)]}, "^settings is .*, but must map names to values.$"),
        ({"watch": 3}, "^watch is 3, but must be a function of a status.$"),
        ({"encoding": None}, "^encoding is None, but must be a string.$"),
        ({"encoding": "\ud800"}, "^encoding is .*, but must be one that"),
    ],
)
def test_what_training_is_told_is_checked(given, message, tmp_path):
    with pytest.raises((TypeError, ConfigError), match=message):
        unrolled.train("ngram", train=KEPT / "data/lines.txt", out=tmp_path / "x", **given)
