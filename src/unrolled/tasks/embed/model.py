"""Word vectors as a model: what its folder keeps, and what it answers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from unrolled.nn.glove_kernels import Weighting
from unrolled.tasks.embed.data import Words
from unrolled.tasks.embed.glove import GloveNetwork
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.settings import EmbedRun
from unrolled.tasks.embed.trees import paths_of
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.word_vectors import WORDS_FILE, WordVectors, parse_words


@dataclass(frozen=True)
class EmbedModel(NetworkModel):
    """Words and their vectors."""

    settings: EmbedRun
    words: Words
    network: EmbedNetwork | GloveNetwork

    @classmethod
    def create(cls, settings: EmbedRun, words: Words) -> Self:
        """With vectors that are still chance."""
        return cls(settings, words, cls.network_of(settings, words, settings.model.embedding_size))

    @staticmethod
    def network_of(settings: EmbedRun, words: Words, size: int) -> EmbedNetwork | GloveNetwork:
        """Vectors of this size, with the tree of the words where there is one."""
        model = settings.model
        if model.objective == "glove":
            weighting = Weighting(settings.train.x_max, settings.train.weight_power)
            return GloveNetwork(len(words), size, weighting)
        paths = paths_of(model.tree, words.counts) if model.output == "hierarchical" else None
        cbow = model.objective == "cbow"
        return EmbedNetwork(len(words), size, cbow=cbow, output=model.output, paths=paths)

    @classmethod
    def restore(cls, settings: EmbedRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its tensors still to be read."""
        words, counts = parse_words(files)
        return cls.create(settings, Words(words, counts))

    def files(self) -> dict[str, bytes]:
        """The words and their counts."""
        value = {"words": self.words.words, "counts": self.words.counts.tolist()}
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return {WORDS_FILE: text.encode("utf-8", "replace")}

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {"words": len(self.words), "dimensions": self.settings.model.embedding_size}

    @property
    def predictor(self) -> EmbedNetwork:
        """The network of skip-gram and CBOW; GloVe's predicts no word."""
        assert isinstance(self.network, EmbedNetwork)
        return self.network

    @cached_property
    def vectors(self) -> WordVectors:
        """To be asked for neighbours and analogies."""
        return WordVectors(self.words.words, self.network.vectors().numpy())

    def answering(self) -> Mapping[str, Answering]:
        """Its uses are those of word vectors, whatever file they come from."""
        return {}
