"""Word vectors as a model: what its folder keeps, and what it answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from unrolled.nn.embed_kernels import Grams
from unrolled.nn.glove_kernels import Weighting
from unrolled.tasks.embed.data import Words
from unrolled.tasks.embed.glove import GloveNetwork
from unrolled.tasks.embed.network import EmbedNetwork
from unrolled.tasks.embed.settings import EmbedModelSettings, EmbedRun
from unrolled.tasks.embed.trees import paths_of
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import text_list
from unrolled.tasks.shared.vector_folder import SUBWORDS_FILE, WORDS_FILE, parse_words
from unrolled.tasks.shared.word_vectors import WordVectors
from unrolled.text.numbered import NumberedWords
from unrolled.text.subwords import Subwords
from unrolled.text.word_parts import WordParts


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
        grams = grams_of(subwords_of(model), words.words) if model.subwords else None
        return EmbedNetwork(
            len(words), size, cbow=cbow, output=model.output, paths=paths, grams=grams
        )

    @classmethod
    def restore(cls, settings: EmbedRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its tensors still to be read."""
        words, counts = parse_words(files)
        return cls.create(settings, Words(words, counts))

    def files(self) -> dict[str, bytes]:
        """The words and their counts."""
        value = {"words": self.words.words, "counts": self.words.counts.tolist()}
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        files = {WORDS_FILE: text.encode("utf-8", "replace")}
        if self.settings.model.subwords:
            files[SUBWORDS_FILE] = json.dumps(asdict(subwords_of(self.settings.model))).encode()
        return files

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
        words, vectors = self.words.words, self.network.vectors().numpy()
        if not self.settings.model.subwords:
            return WordVectors(words, vectors)
        subwords = subwords_of(self.settings.model)
        parts = WordParts.of(subwords, words, self.predictor.input.detach().numpy())
        return WordVectors(words, vectors, parts)

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use; others are those of vectors, whatever file they come from."""
        return {"similar": partial(similar_answers, self)}

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The mean of the words' vectors at length 1 (N, E); zeros where no word is known."""
        tokens, texts = self.settings.tokens, text_list(texts)
        words = NumberedWords(tokens.splitter, lowercase=tokens.lowercase)
        found = np.zeros((len(texts), self.settings.model.embedding_size), np.float32)
        lines = words.read_as([" ".join(text.split()) for text in texts]) if texts else []
        for row, line in enumerate(lines):
            known = [self.vectors[word] for word in sorted(line.split()) if word in self.vectors]
            wide = np.asarray(known, np.float64)  # holds the squares of all that float32 can be
            wide = numbers(wide, of="a text", finite=True)
            units = [vector / (float(np.linalg.norm(vector)) or 1.0) for vector in wide]
            found[row] = np.mean(units, axis=0) if units else 0.0
        return found


def subwords_of(model: EmbedModelSettings) -> Subwords:
    """The n-grams that a word's vector is made of."""
    return Subwords(model.least_ngram, model.most_ngram, model.buckets)


def grams_of(subwords: Subwords, words: Sequence[str]) -> Grams:
    """Rows behind those of the words, one for each number that any n-gram of them has."""
    numbers, starts = subwords.of(words)
    used, places = np.unique(numbers, return_inverse=True)
    rows = (len(words) + places).astype(np.int32)
    return Grams(starts.astype(np.int64), rows, len(words) + len(used))
