"""What a model says is a number, or a sentence says that it is none."""

from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from unrolled.errors import NumericError
from unrolled.tasks.shared.finite import numbers

pytestmark = pytest.mark.arithmetic
KEPT = Path(__file__).parents[2] / "golden" / "kept"
GROWN = r"What the model says of .* is not a number: its states grow beyond what 32 bits hold"
USES = {
    "classify": [lambda m: m.predict("the cat"), lambda m: m.probabilities(["the cat"])],
    "tag": [
        lambda m: m.predict("the cat saw"),
        lambda m: m.probabilities("the cat saw"),
        lambda m: m.n_best("the cat saw"),
    ],
    "lm": [lambda m: m.score("the cat"), lambda m: m.next("the"), lambda m: m.surprise("the cat")],
    "window": [lambda m: m.score("the cat"), lambda m: m.next("the")],
}


@pytest.mark.parametrize("of", [np.array, torch.tensor])
def test_what_is_no_number_is_refused_and_the_rest_comes_back(of):
    right = of([1.0, -3e38, 0.0])
    assert numbers(right, of="a text", finite=True) is right
    endless = of([1.0, float("-inf")])
    assert numbers(endless, of="a text") is endless
    for values, finite in (([1.0, float("nan")], False), ([float("inf")], True)):
        with pytest.raises(NumericError, match=GROWN):
            numbers(of(values), of="a text", finite=finite)


@pytest.mark.parametrize(("name", "use"), [(name, use) for name in USES for use in USES[name]])
def test_no_task_answers_by_what_is_no_number(name, use):
    model = unrolled.load(KEPT / name)
    use(model)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.copy_(parameter.sign() * 3e38)
    with pytest.raises(NumericError, match=GROWN):
        use(model)
