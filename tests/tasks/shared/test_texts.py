"""What a program may give a model: one text, several, and nothing else."""

from pathlib import Path

import numpy as np
import pytest

import unrolled
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


def test_texts_are_strings():
    assert text_list("one") == ["one"]
    assert text_list(text for text in ("a", "b")) == ["a", "b"]
    with pytest.raises(TypeError, match=r"texts\[0\] is 3, but must be a string."):
        text_list([3])
    for wrong in (None, 3, b"abc"):
        with pytest.raises(TypeError, match="but must be a string or several"):
            text_list(wrong)
