"""Judge word vectors on a text: the loss of their own objective, beside that of vectors of zero."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from unrolled.errors import DataError
from unrolled.evaluate.bootstrap import ratio
from unrolled.evaluate.measure import Measure, ratio_measure
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score, signature
from unrolled.nn.embed_kernels import Step
from unrolled.tasks.embed.blocks import blocks, kept_words
from unrolled.tasks.embed.data import Corpus, NumberedText
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.glove_report import glove_measures
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.network import EmbedNetwork

Floats = NDArray[np.float64]
NEGATIVES = 64  # drawn a block of words


def evaluate_text(model: EmbedModel, text: NumberedText) -> Report:
    """The mean loss of a prediction, in nats; of a pair, for GloVe."""
    if model.settings.model.objective == "glove":
        measures = glove_measures(model, text)
        return Report.of({name: [measure.score] for name, measure in measures.items()})
    corpus = _known(model, text)
    lost, counts = _losses(model, corpus, model.predictor)
    zero, _ = _losses(model, corpus, _without_knowledge(model))
    return Report.of(
        {
            "model": [_score(model, corpus, lost, counts).score],
            "zero_vectors": [_score(model, corpus, zero, counts).score],
        }
    )


def text_measures(model: EmbedModel, text: NumberedText) -> list[Measure]:
    """The same with what it is made of, line by line."""
    if model.settings.model.objective == "glove":
        return [glove_measures(model, text)["model"]]
    corpus = _known(model, text)
    return [_score(model, corpus, *_losses(model, corpus, model.predictor))]


def _without_knowledge(model: EmbedModel) -> EmbedNetwork:
    """Vectors of zero: every decision is a toss-up."""
    network = model.network_of(model.settings, model.words, 1)
    assert isinstance(network, EmbedNetwork)
    nn.init.zeros_(network.input)
    return network


def _known(model: EmbedModel, text: NumberedText) -> Corpus:
    corpus = text.encoded(model.words.words)
    if not np.any(np.diff(corpus.starts) > 1):
        raise DataError(text.source, "has no two known words in a line; there is nothing to judge.")
    return corpus


def _score(model: EmbedModel, corpus: Corpus, lost: Floats, counts: Floats) -> Measure:
    counted = {
        "examples": len(corpus.starts) - 1,
        "tokens": len(corpus.ids),
        "labels": len(model.words),
        "objective": model.settings.model.objective,
        "output": model.settings.model.output,
        "negatives": model.settings.train.negatives,
        "window": model.settings.model.window,
    }
    recipe = signature(counted, resampled="lines")
    score = Score.of("loss", ratio(lost, counts), recipe, higher_is_better=False)
    return ratio_measure(score, lost, counts)


@torch.no_grad()
def _losses(model: EmbedModel, corpus: Corpus, network: EmbedNetwork) -> tuple[Floats, Floats]:
    """The loss and the number of predictions of each line that has any: (lines,) both.

    No word is skipped; windows and negatives are drawn by place, so every model meets the same.
    """
    train = model.settings.train
    chances = chances_of(model.words.counts, subsample=0.0, noise_power=train.noise_power)
    step = Step(
        window=model.settings.model.window,
        words=NEGATIVES,
        shared=NEGATIVES,
        negatives=train.negatives,
        cbow=network.cbow,
        rate=0.0,
        key=key_of(0, 0),
    )
    lines = len(corpus.starts) - 1
    kept = kept_words(corpus.ids, corpus.starts, (0, lines), chances, step.key)
    line = np.searchsorted(corpus.starts, kept.places, side="right") - 1
    lost, count = np.zeros(lines), np.zeros(lines)
    at = 0
    for block in blocks(kept, chances, step):
        own = line[at : at + len(block.words)]
        at += len(own)
        np.add.at(lost, own, network.losses(block).double().numpy())
        pairs = block.pairs_of.numpy()
        np.add.at(count, own, pairs > 0 if network.cbow else pairs)
    any_at_all = count > 0
    return lost[any_at_all], count[any_at_all]
