"""Evaluation reads a text as the model was trained, and names what no mean can be taken over."""

import math

import pytest
import torch

from unrolled.config import settings_for
from unrolled.errors import DataError
from unrolled.tasks import TASKS
from unrolled.tasks.shared.language_report import evaluate_language, mean_nats
from unrolled.text.tokens import TextEncoder

pytestmark = pytest.mark.arithmetic

LINES = ["the cat is small", "a dog ran", "", "the dog is a cat"]


def build(task, context):
    torch.manual_seed(1)
    overrides = {"model.hidden_size": 6, "model.context": context}
    settings = settings_for(TASKS[task].settings, overrides=overrides)
    model = TASKS[task].model().create(settings, TextEncoder.build(LINES, level="word"))
    model.network.eval()
    return model


@pytest.mark.parametrize("task", ["lm", "window"])
@pytest.mark.parametrize("context", ["line", "stream"])
def test_perplexity_is_that_of_the_surprise_at_each_token(task, context):
    model = build(task, context)
    report = evaluate_language(model, LINES, source="text")
    _, nats = model.surprise("\n".join(LINES))
    assert report.scores[0].value == pytest.approx(math.exp(sum(nats) / len(nats)), rel=1e-6)
    encoded = model.encoder.encode_lines(LINES)
    if context == "line":
        assert mean_nats(model, encoded) == pytest.approx(report.scores[1].value, rel=1e-6)
        assert -sum(s.log_probability for s in model.score(LINES)) == pytest.approx(sum(nats))


@pytest.mark.parametrize("task", ["lm", "window"])
@pytest.mark.parametrize(
    ("token", "message"),
    [
        ("ran", r"text, line 2: the model gives 'ran' after 'a dog' no chance at all, so the"),
        ("the", r"text, line 1: the model gives 'the' at the start no chance at all"),
        ("cat", r"line 1: .* 'cat' after 'the' no .* Score it with a model that is smoothed, or"),
    ],
)
@pytest.mark.parametrize("context", ["line", "stream"])
def test_an_impossible_token_is_named_with_its_place(task, context, token, message):
    model = build(task, context)
    (place,) = model.encoder.encode(token)
    model.network.bias.data[place] = -math.inf
    with pytest.raises(DataError, match=message):
        evaluate_language(model, LINES, source="text")
