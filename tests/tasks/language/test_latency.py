"""A list of next words comes while one types."""

import statistics
import time

import pytest
import torch

from unrolled.tasks.language.model import RecurrentLanguageModel
from unrolled.tasks.language.settings import LanguageRun
from unrolled.text.tokens import TextEncoder

LIMIT = 0.05  # seconds of the processor


@pytest.fixture
def one_thread():
    """Others would be counted while they wait."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.row("I7")
def test_ten_of_ten_thousand_words_after_twenty_take_less_than_50_milliseconds(one_thread):
    encoder = TextEncoder.build([f"w{n} w{n}" for n in range(10_000)], level="word")
    settings = LanguageRun.model_validate({"model": {"hidden_size": 200, "layers": 2}})
    model = RecurrentLanguageModel.create(settings, encoder)
    text = " ".join(f"w{n}" for n in range(20))
    taken = []
    for _ in range(15):
        begun = time.process_time()
        assert len(model.next(text, top=10)) == 10
        taken.append(time.process_time() - begun)
    assert statistics.median(taken) < LIMIT
