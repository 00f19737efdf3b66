"""Judge GloVe vectors on a text: how far they are from the logarithms of its own counts."""

import numpy as np
import torch

from unrolled.errors import DataError
from unrolled.evaluate.bootstrap import ratio
from unrolled.evaluate.measure import Measure, ratio_measure
from unrolled.evaluate.score import Score, signature
from unrolled.nn.glove_kernels import UNIT, Pairs
from unrolled.tasks.embed.data import Corpus, NumberedText
from unrolled.tasks.embed.glove import GloveNetwork
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.pairs import Counted, count_pairs

AT_ONCE = 1 << 18  # pairs


def glove_measures(model: EmbedModel, text: NumberedText) -> dict[str, Measure]:
    """The mean loss of a pair, by the model and by vectors and biases of zero."""
    corpus = text.encoded(model.words.words)
    counted = count_pairs(corpus, len(model.words), model.settings.model.window)
    if not len(counted):
        raise DataError(text.source, "has no two known words in a line; there is nothing to judge.")
    assert isinstance(model.network, GloveNetwork)
    zero = GloveNetwork(len(model.words), 1, model.network.weighting)
    for weight in zero.parameters():
        torch.nn.init.zeros_(weight)
    networks = {"model": model.network, "zero_vectors": zero}
    return {name: _measure(model, corpus, counted, each) for name, each in networks.items()}


@torch.no_grad()
def _measure(model: EmbedModel, corpus: Corpus, counted: Counted, network: GloveNetwork) -> Measure:
    """Words are what is resampled, each with all its pairs."""
    lost = np.zeros(len(model.words))
    for start in range(0, len(counted), AT_ONCE):
        keys, totals = counted.pairs[start : start + AT_ONCE].T
        rows, columns = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32)
        pairs = Pairs(rows, columns, np.log(totals / UNIT).astype(np.float32))
        lost += np.bincount(rows, network.losses(pairs).double().numpy(), len(lost))
    counts = np.diff(counted.starts).astype(np.float64)
    recipe = signature(
        {
            "examples": len(corpus.starts) - 1,
            "tokens": len(corpus.ids),
            "labels": len(model.words),
            "objective": "glove",
            "pairs": len(counted),
            "window": model.settings.model.window,
            "x_max": model.settings.train.x_max,
        },
        resampled="words",
    )
    some = counts > 0
    score = Score.of("loss", ratio(lost[some], counts[some]), recipe, higher_is_better=False)
    return ratio_measure(score, lost[some], counts[some])
