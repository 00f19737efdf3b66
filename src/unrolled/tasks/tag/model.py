"""Taggers: a tag for every word, or labelled spans."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.errors import ConfigError, whole
from unrolled.nn.crf import CRF, Moves
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import several, text_list
from unrolled.tasks.shared.transfer import check_width
from unrolled.tasks.shared.word_embedder import WordEmbedder
from unrolled.tasks.tag.answers import MAX_WORDS, TaggedAnswer, TaggedWords
from unrolled.tasks.tag.network import TagNetwork
from unrolled.tasks.tag.settings import PredictOptions, TagRun
from unrolled.tasks.task import Blocks
from unrolled.text.schemes import legal_moves
from unrolled.text.tagset import INNER_SCHEME, TAGS_FILE, TagSet
from unrolled.text.vectors import WordVectors
from unrolled.text.vocabulary import END, SPECIALS
from unrolled.text.word_batch import WordBatch, WordBatches
from unrolled.text.word_encoder import EncodedWords, WordEncoder
from unrolled.text.words import JOINER, Ids, WordTokeniser

BATCH_TOKENS = 1024  # more would leave the caches
SENTENCES_AT_ONCE = 1024
MAX_CRF_TAGS = 1000

Sentence = str | Sequence[str]  # plain text, or its words


@dataclass(frozen=True)
class TagModel(NetworkModel):
    """A trained tagger."""

    settings: TagRun
    encoder: WordEncoder
    tags: TagSet
    network: TagNetwork

    @classmethod
    def create(cls, settings: TagRun, encoder: WordEncoder, tags: TagSet) -> Self:
        """A model with fresh weights, drawn from torch's generator."""
        model = settings.model
        embedder = WordEmbedder(
            encoder.words.counts,
            len(encoder.characters),
            embedding_size=model.embedding_size,
            characters=model.characters,
            character_embedding_size=model.character_embedding_size,
            character_hidden_size=model.character_hidden_size,
            word_dropout=model.word_dropout,
        )
        crf = _crf(tags) if uses_crf(settings, tags) else None
        return cls(settings, encoder, tags, TagNetwork(model, embedder, tags=len(tags), crf=crf))

    @classmethod
    def restore(cls, settings: TagRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        tokens = settings.tokens
        encoder = WordEncoder.from_files(
            files, lowercase=tokens.lowercase, zero_digits=tokens.zero_digits
        )
        if TAGS_FILE not in files:
            raise ValueError(f"{TAGS_FILE} is missing")
        try:
            tags = TagSet.from_json(files[TAGS_FILE].decode(), words=len(encoder.words))
        except ValueError as error:
            raise ValueError(f"{TAGS_FILE}: {error}") from error
        return cls.create(settings, encoder, tags)

    def files(self) -> dict[str, bytes]:
        """Vocabularies and tags."""
        return {**self.encoder.files(), TAGS_FILE: self.tags.to_json().encode()}

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {
            "parameters": self.parameter_count(),
            "vocabulary": len(self.encoder.words),
            "tags": len(self.tags),
        }

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {"predict": self._predicted, "similar": partial(similar_answers, self)}

    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The mean of what is known of the words of each text (N, F)."""
        self.network.eval()
        words = [self.words_of(text)[:MAX_WORDS] or [SPECIALS[END]] for text in text_list(texts)]
        found = np.zeros((len(words), self.network.weight.size(1)), np.float32)
        batches = WordBatches(self.encoder.encode(words), batch_tokens=BATCH_TOKENS)
        for rows, batch in batches.in_order():
            found[rows] = self.network.means(batch).numpy()
        return found

    def _predicted(
        self, blocks: Blocks, options: PredictOptions, source: Path | str
    ) -> Iterator[TaggedAnswer]:
        row, marks_spans = 0, self.tags.scheme is not None
        for block in blocks:
            for tagged in self.tag_words([self.words_of(given.sentence) for given in block]):
                row += 1
                yield TaggedAnswer(tagged, row, marks_spans)

    def use_vectors(self, vectors: WordVectors) -> int:
        """Begin with pretrained vectors; returns how many words have one."""
        check_width(vectors, self.settings.model.embedding_size)
        places, rows = vectors.rows_for(self.encoder.words.tokens)
        self.network.embedder.use_vectors(
            torch.from_numpy(places),
            torch.from_numpy(vectors.vectors[rows]),
            freeze=self.settings.model.freeze_vectors,
        )
        return len(places)

    @overload
    def predict(self, sentences: str) -> list[str]: ...  # type: ignore[overload-overlap]  # a string is strings, too

    @overload
    def predict(self, sentences: Iterable[Sentence]) -> list[list[str]]: ...

    def predict(self, sentences: str | Iterable[Sentence]) -> list[str] | list[list[str]]:
        """The tags of a text's words, or of those of each of several sentences.

        A plain text is parted into words first; a list of words is a sentence as it stands.
        """
        given = [sentences] if isinstance(sentences, str) else sentences
        found = [tagged.tags for tagged in self.tag(given)]
        return found[0] if isinstance(sentences, str) else found

    def tag(
        self, sentences: Iterable[Sentence], *, at_once: int = SENTENCES_AT_ONCE
    ) -> Iterator[TaggedWords]:
        """Words and tags of each sentence, in order, `at_once` sentences at a time."""
        waiting = enumerate(several(sentences, "sentences"))
        while some := list(islice(waiting, at_once)):
            named = [self.words_of(given, name=f"sentences[{place}]") for place, given in some]
            yield from self.tag_words(named)

    def tag_words(self, sentences: Sequence[Sequence[str]]) -> Iterator[TaggedWords]:
        """The same for sentences that are all there and parted; one without words stays one.

        A sentence of more than MAX_WORDS words is tagged in pieces, and comes out whole.
        """
        pieces = [piece for words in sentences for piece in _pieces(words)]
        encoded = self.encoder.encode(pieces)
        ids, start = self.best_tags(encoded).tolist(), 0
        for words in sentences:
            end = start + len(words)
            yield TaggedWords([*words], self.tags.decode(ids[start:end]))
            start = end

    def best_tags(self, encoded: EncodedWords) -> Ids:
        """The best tag ids of all words (N,), in their order; every sentence has a word."""
        self.network.eval()
        found = np.zeros(len(encoded.words), dtype=np.int32)
        starts = encoded.ends - encoded.lengths
        for rows, batch in WordBatches(encoded, batch_tokens=BATCH_TOKENS).in_order():
            real = batch.mask.numpy()  # (B, T)
            places = starts[rows][:, None] + np.arange(real.shape[1])  # (B, T)
            found[places[real]] = self.network.best_tags(batch).numpy()[real]
        return found

    def words_of(self, sentence: Sentence, *, name: str = "sentence") -> list[str]:
        """The words of a plain text as the model's splitter parts it; other words as they are."""
        if not isinstance(sentence, str):
            return text_list(sentence, name=name)
        tokens = WordTokeniser(self.settings.tokens.splitter).split(sentence)
        return [token[1:] if token[0] == JOINER and len(token) > 1 else token for token in tokens]

    def probabilities(self, sentence: Sentence) -> NDArray[np.float32]:
        """P(tag | sentence) of each word (T, K); the columns are `tags.tags`."""
        batch = self._batch_of(sentence)
        return np.asarray(self.network.probabilities(batch)[0])

    def n_best(self, sentence: Sentence, *, n: int = 5) -> list[tuple[list[str], float]]:
        """At most n tag sequences, the likeliest first, with their probabilities."""
        if whole("n", n) < 1:
            raise ConfigError(f"n is {n}, but must be at least 1.")
        paths, log_p = self.network.best_sequences(self._batch_of(sentence), n=n)
        found = zip(paths[0].tolist(), log_p[0].exp().tolist(), strict=True)
        return [(self.tags.decode(path), p) for path, p in found if p > 0.0]

    def _batch_of(self, sentence: Sentence) -> WordBatch:
        words = self.words_of(sentence)
        if not 1 <= len(words) <= MAX_WORDS:
            raise ConfigError(
                f"the sentence has {len(words)} words, but may have 1 to {MAX_WORDS}."
            )
        self.network.eval()
        batches = WordBatches(self.encoder.encode([words]), batch_tokens=BATCH_TOKENS)
        return batches.build(np.zeros(1, dtype=np.int64))


def uses_crf(settings: TagRun, tags: TagSet) -> bool:
    """Whether tags are chosen together: as the settings say, or where they mark spans."""
    decoder = settings.model.decoder
    return decoder == "crf" or (decoder == "auto" and tags.scheme is not None)


def _crf(tags: TagSet) -> CRF:
    if len(tags) > MAX_CRF_TAGS:
        raise ConfigError(
            f"there are {len(tags)} tags, but a CRF, which weighs every pair of them, may have "
            f'{MAX_CRF_TAGS}. Set model.decoder to "softmax".'
        )
    if tags.scheme is None:
        return CRF(len(tags))
    moves = legal_moves(tags.tags, INNER_SCHEME)
    return CRF(len(tags), moves=Moves(*map(torch.from_numpy, moves)))


def _pieces(words: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(words), MAX_WORDS):
        yield words[start : start + MAX_WORDS]
