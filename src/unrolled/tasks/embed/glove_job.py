"""GloVe made ready for training: pairs counted and brought into tiles, a stratum a step."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import DataError, NumericError
from unrolled.nn import glove_kernels
from unrolled.nn.glove_kernels import GloveState, Tiles
from unrolled.nn.threads import threads
from unrolled.tasks.embed.data import Corpus, NumberedText
from unrolled.tasks.embed.glove import GloveNetwork
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.pairs import CLASSES, Tiled, count_pairs, tiled
from unrolled.tasks.embed.report import evaluate_text
from unrolled.tasks.embed.settings import EmbedTrain
from unrolled.training.job import Reports, StepJob
from unrolled.training.update import Step


@dataclass(frozen=True)
class GloveJob(StepJob[EmbedModel]):
    """Vectors, and the text whose pairs they are learned from."""

    unit = "pairs"
    model: EmbedModel
    corpus: Corpus
    texts: Mapping[str, NumberedText]
    left_out: int  # words of the text that are too rare
    source: Path | str

    @property
    def train(self) -> EmbedTrain:
        """The settings of training."""
        return self.model.settings.train

    @cached_property
    def state(self) -> GloveState:
        """Of this many words."""
        return GloveState.create(len(self.model.words), self.model.settings.model.embedding_size)

    @cached_property
    def tiled(self) -> Tiled:
        """All pairs of the text."""
        counted = count_pairs(self.corpus, len(self.model.words), self.model.settings.model.window)
        if not len(counted):
            raise DataError(self.source, "has no two known words in a line: there is no pair.")
        return tiled(counted, self.state.words[0].nbytes)

    def epoch(self, seed: int, epoch: int) -> Sequence[Tiles]:
        """The strata, in an order of the epoch's own."""
        order = np.random.default_rng((seed, epoch)).permutation(CLASSES).tolist()
        return [self.tiled.stratum(shift) for shift in order]

    def size(self, batch: Tiles) -> int:
        """How many pairs it holds."""
        return int((batch.end - batch.begin).sum())

    def dev(self) -> None:
        """Nothing is held out: the last epoch counts."""

    def update(self) -> "GloveUpdate":
        """The compiled trainer, or its twin."""
        assert isinstance(self.model.network, GloveNetwork)
        return GloveUpdate(self.model.network, self.tiled, self.state)

    def facts(self) -> dict[str, float]:
        """What there is to learn from."""
        return {
            "lines": len(self.corpus.starts) - 1,
            "tokens": len(self.corpus.ids),
            "unknown": self.left_out,
            "vocabulary": len(self.model.words),
            "pairs": len(self.tiled.pairs.rows),
            "padding": 0.0,
        }

    def reports(self, model: EmbedModel) -> Reports:
        """The loss on the dev and the test text, where they are given."""
        return Reports({name: evaluate_text(model, text) for name, text in self.texts.items()})


class GloveUpdate:
    """Batches are strata; a checkpoint keeps vectors, biases and the squares of their gradients."""

    def __init__(self, network: GloveNetwork, tiled: Tiled, state: GloveState) -> None:
        self.network, self.tiled, self.state = network, tiled, state
        with torch.no_grad():
            state.put(network.word, network.word_bias, contexts=False)
            state.put(network.context, network.context_bias, contexts=True)

    def begin(self) -> None:
        """There is nothing to make ready."""

    def step(self, batch: Tiles, rate: float) -> Step:
        """One stratum at one learning rate."""
        of = (self.state, self.tiled.pairs, batch, self.network.weighting)
        if glove_kernels.active():
            total = glove_kernels.train_tiles(*of, rate=rate, threads=threads())
        else:
            total = glove_kernels.train_tiles_plainly(*of, rate=rate)
        if not math.isfinite(total):
            raise self.gone_wrong("the loss", total)
        return Step(total, max(1, int((batch.end - batch.begin).sum())), 0.0)

    @torch.no_grad()
    def end(self) -> None:
        if not (self.state.words.isfinite().all() and self.state.contexts.isfinite().all()):
            raise NumericError("a vector is not finite")
        word, word_bias = self.state.get(contexts=False)
        context, context_bias = self.state.get(contexts=True)
        self.network.word.copy_(word)
        self.network.word_bias.copy_(word_bias)
        self.network.context.copy_(context)
        self.network.context_bias.copy_(context_bias)

    def gone_wrong(self, what: str, value: float) -> NumericError:
        return NumericError(f"{what} is {value}")

    def tensors(self) -> dict[str, Tensor]:
        """All that the next step depends on."""
        return {"state.words": self.state.words, "state.contexts": self.state.contexts}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        self.state.words.copy_(tensors["state.words"])
        self.state.contexts.copy_(tensors["state.contexts"])
