"""Word vectors as a model: what its folder keeps, and what it answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.tasks.embed.data import Words
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.settings import EmbedRun
from unrolled.tasks.embed.trees import paths_of
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.word_vectors import WORDS_FILE, WordVectors, parse_words
from unrolled.text.numbered import NumberedWords


@dataclass(frozen=True)
class EmbedModel(NetworkModel):
    """Words and their vectors."""

    settings: EmbedRun
    words: Words
    network: EmbedNetwork

    @classmethod
    def create(cls, settings: EmbedRun, words: Words) -> Self:
        """With vectors that are still chance."""
        return cls(settings, words, cls.network_of(settings, words, settings.model.embedding_size))

    @staticmethod
    def network_of(settings: EmbedRun, words: Words, size: int) -> EmbedNetwork:
        """Vectors of this size, with the tree of the words where there is one."""
        model = settings.model
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

    @cached_property
    def vectors(self) -> WordVectors:
        """To be asked for neighbours and analogies."""
        return WordVectors(self.words.words, self.network.input.detach().numpy())

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use; others are those of vectors, whatever file they come from."""
        return {"similar": partial(similar_answers, self)}

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The mean of the words' vectors at length 1 (N, E); zeros where no word is known."""
        tokens = self.settings.tokens
        words = NumberedWords(tokens.splitter, lowercase=tokens.lowercase)
        found = np.zeros((len(texts), self.settings.model.embedding_size), np.float32)
        for row, line in enumerate(words.read_as([" ".join(text.split()) for text in texts])):
            known = [self.vectors[word] for word in line.split() if word in self.vectors]
            units = [vector / max(float(np.linalg.norm(vector)), 1e-30) for vector in known]
            found[row] = np.mean(units, axis=0) if units else 0.0
        return found
