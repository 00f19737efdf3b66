"""How a run of lines changes word vectors: by the compiled trainer, or by its twin in torch."""

import math
from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor

from unrolled.errors import NumericError
from unrolled.nn import embed_kernels
from unrolled.nn.embed_kernels import Chances, Matrices
from unrolled.nn.embed_kernels import Step as Options
from unrolled.nn.threads import threads
from unrolled.tasks.embed.blocks import blocks, kept_words
from unrolled.tasks.embed.data import Corpus
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.settings import EmbedRun, EmbedTrain
from unrolled.training.update import Step

MOST_AGAIN = 0.25  # times that one negative is expected for every word of a block


class Batch(NamedTuple):
    """A run of lines, and the key of what is drawn for it."""

    lines: tuple[int, int]
    key: int


def block_words(chances: Chances, *, train: EmbedTrain) -> int:
    """How many words a block has: fewer where the same negative would come again and again.

    Gradients of a block are summed at one place. In a small vocabulary many of them are of one row,
    and their sum would lead too far.
    """
    largest = float(np.bincount(chances.alias_other, 1.0 - chances.alias_share).max())
    share = (largest + 1.0) / len(chances.alias_share)  # of the most frequent negative, at most
    return max(1, min(train.block, int(MOST_AGAIN / share)))


class Learner(Protocol):
    """Vectors under training."""

    def learn(self, lines: tuple[int, int], options: Options) -> tuple[float, int]:
        """The summed loss of these lines, and of how many predictions."""
        ...

    def vectors(self) -> tuple[Tensor, Tensor]:
        """Input and output (V, E), as they stand."""
        ...

    def put(self, vectors: Tensor, outputs: Tensor) -> None:
        """Begin from these."""
        ...


class CompiledLearner:
    """The kernels' way: on copies, one a thread, unless runs may differ."""

    def __init__(
        self, network: EmbedNetwork, corpus: Corpus, chances: Chances, *, deterministic: bool
    ) -> None:
        self.corpus, self.chances, self.threads = corpus, chances, threads()
        self.paths, self.grams = network.paths, network.grams
        copies = self.threads if deterministic else 1
        with torch.no_grad():
            self.matrices = Matrices(network.input, network.output, copies=copies)

    def learn(self, lines: tuple[int, int], options: Options) -> tuple[float, int]:
        ids, starts = self.corpus.ids, self.corpus.starts
        return embed_kernels.train_lines(
            self.matrices,
            ids,
            starts,
            lines,
            self.chances,
            options,
            threads=self.threads,
            paths=self.paths,
            grams=self.grams,
        )

    def vectors(self) -> tuple[Tensor, Tensor]:
        return self.matrices.input, self.matrices.output

    def put(self, vectors: Tensor, outputs: Tensor) -> None:
        self.matrices.put(vectors, outputs)


class PlainLearner:
    """The twin: a step of gradient descent a block, on the sum of its losses."""

    def __init__(self, network: EmbedNetwork, corpus: Corpus, chances: Chances) -> None:
        self.network, self.corpus, self.chances = network, corpus, chances

    def learn(self, lines: tuple[int, int], options: Options) -> tuple[float, int]:
        total, count, weights = 0.0, 0, [self.network.input, self.network.output]
        kept = kept_words(self.corpus.ids, self.corpus.starts, lines, self.chances, options.key)
        for block in blocks(kept, self.chances, options):
            loss = self.network.loss(block, alike=True)
            gradients = torch.autograd.grad(loss.total, weights)
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight.sub_(gradient, alpha=options.rate)
            total, count = total + loss.total.item(), count + loss.count
        return total, count

    def vectors(self) -> tuple[Tensor, Tensor]:
        return self.network.input.detach(), self.network.output.detach()

    def put(self, vectors: Tensor, outputs: Tensor) -> None:
        with torch.no_grad():
            self.network.input.copy_(vectors)
            self.network.output.copy_(outputs)


class EmbedUpdate:
    """Batches are runs of lines; all that a checkpoint needs are the two matrices."""

    def __init__(
        self, settings: EmbedRun, network: EmbedNetwork, corpus: Corpus, chances: Chances
    ) -> None:
        self.settings, self.network, self.corpus, self.chances = settings, network, corpus, chances
        self.words = block_words(chances, train=settings.train)
        if settings.model.output == "hierarchical":
            self.words = 1  # the root is on every way: its steps cannot be summed
        self.learner: Learner | None = None

    def begin(self) -> None:
        """Made only now, when it is settled how many threads there are."""
        self._learner()

    def _learner(self) -> Learner:
        if self.learner is None:
            deterministic = self.settings.train.deterministic
            self.learner = (
                CompiledLearner(
                    self.network, self.corpus, self.chances, deterministic=deterministic
                )
                if embed_kernels.active() and self.settings.model.output != "softmax"
                else PlainLearner(self.network, self.corpus, self.chances)
            )
        return self.learner

    def step(self, batch: Batch, rate: float) -> Step:
        """One run of lines at one learning rate."""
        train, model = self.settings.train, self.settings.model
        options = Options(
            window=model.window,
            words=self.words,
            shared=train.shared_negatives,
            negatives=train.negatives,
            cbow=model.objective == "cbow",
            rate=rate,
            key=batch.key,
        )
        total, count = self._learner().learn(batch.lines, options)
        if not math.isfinite(total):
            raise self.gone_wrong("the loss", total)
        return Step(total, max(count, 1), 0.0)

    def end(self) -> None:
        vectors, outputs = self._learner().vectors()
        if not (vectors.isfinite().all() and outputs.isfinite().all()):
            raise NumericError("a vector is not finite")
        with torch.no_grad():
            self.network.input.copy_(vectors)
            self.network.output.copy_(outputs)

    def gone_wrong(self, what: str, value: float) -> NumericError:
        return NumericError(f"{what} is {value}")

    def tensors(self) -> dict[str, Tensor]:
        """Both matrices."""
        vectors, outputs = self._learner().vectors()
        return {"model.input": vectors, "model.output": outputs}

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            self.network.input.copy_(tensors["model.input"])
            self.network.output.copy_(tensors["model.output"])
        self.learner = None
