"""A tagger made ready for training: vocabularies, tags, batches, development sentences."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from unrolled.config.tag import TagRun
from unrolled.errors import DataError
from unrolled.evaluate.report import Report
from unrolled.evaluate.tagging import TaggedData, dev_loss, evaluate_tagged
from unrolled.models.folder import model_files
from unrolled.models.tag import TagModel
from unrolled.models.tag_network import TagNetwork
from unrolled.text.conll import TaggedSentence, read_tagged
from unrolled.text.tagset import TagSet, agreed_scheme, check_overlap, check_tag_set, count_unseen
from unrolled.text.vectors import WordVectors, read_vectors
from unrolled.text.word_batch import TagBatch, TagBatches
from unrolled.text.word_encoder import WordEncoder
from unrolled.training.resume import Texts

Sentences = Sequence[TaggedSentence]
MAX_SENTENCE = 20_000  # words of a sentence that is trained on


@dataclass(frozen=True)
class TagJob:
    """What the training loop needs of a tagger."""

    model: TagModel
    train: Sentences
    dev: TaggedData
    test: TaggedData | None = None
    vectors_found: int = 0
    broken: int = 0  # training sentences whose tags break their scheme

    @property
    def network(self) -> TagNetwork:
        return self.model.network

    @cached_property
    def batches(self) -> TagBatches:
        """The training sentences."""
        encoded = self.model.encoder.encode([sentence.words for sentence in self.train])
        tags = self.model.tags.encode(self.train)
        return TagBatches(encoded, tags, batch_tokens=self.model.settings.train.batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[TagBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def facts(self, seed: int) -> dict[str, float]:
        """What there is to learn from, and how well the other files fit to it."""
        encoded = self.batches.encoded
        return {
            "lines": len(encoded),
            "tokens": len(encoded.words),
            "unknown": encoded.unknown,
            "vocabulary": len(self.model.encoder.words),
            "tags": len(self.model.tags),
            "padding": self.batches.padding_share(seed, 0),
            **({"broken_sentences": self.broken} if self.broken else {}),
            **({"vectors_found": self.vectors_found} if self.vectors_found else {}),
            **self._overlap("dev", self.dev),
            **(self._overlap("test", self.test) if self.test is not None else {}),
        }

    def _overlap(self, name: str, data: TaggedData) -> dict[str, float]:
        """How many words and tags of a file the training data did not have."""
        unseen = count_unseen(self.model.tags, data.sentences)
        return {
            f"{name}_tokens": len(data.unknown),
            f"{name}_unknown": int(data.unknown.sum()),
            f"{name}_unseen_tags": len(unseen),
            f"{name}_tokens_of_unseen_tags": unseen.total(),
        }

    def dev_loss(self) -> float:
        """One less the F1 of spans or the accuracy on the development sentences."""
        return dev_loss(self.model, self.dev)

    def best_files(self, dev_loss: float) -> dict[str, bytes]:
        """A model folder of the network as it stands."""
        metrics = json.dumps({"dev_loss": dev_loss}).encode()
        card = "# A tagger under training\n\nThe best so far by its score on held-out sentences.\n"
        return model_files(self.model, self.network.state_dict(), metrics=metrics, card=card)

    def reports(self, model: TagModel) -> dict[str, Report]:
        """Scores of a finished model on the dev data and, where there are any, the test data."""
        files = {"dev": self.dev, "test": self.test}
        return {name: evaluate_tagged(model, data) for name, data in files.items() if data}


def tag_job(settings: TagRun, texts: Texts, sources: Mapping[str, Path | str]) -> TagJob:
    """Read the files, and build vocabularies and tags from the training sentences alone."""
    tokens = settings.tokens
    read = {
        name: read_tagged(lines, source=sources[name], column=tokens.column)
        for name, lines in texts.items()
    }
    scheme, broken = agreed_scheme(read["train"], tokens.scheme, source=sources["train"])
    for name in read.keys() - {"train"}:
        if scheme is not None:
            agreed_scheme(read[name], "auto", source=sources[name])
    return job_of(settings, read, scheme, sources, broken=broken)


def job_of(
    settings: TagRun,
    read: Mapping[str, Sentences],
    scheme: str | None,
    sources: Mapping[str, Path | str],
    *,
    broken: int = 0,
) -> TagJob:
    """The job of sentences that are read already; without a `dev` some are held out."""
    train, dev = read["train"], read.get("dev")
    if dev is None:
        train, dev = hold_out(train, settings.train.holdout, source=sources["train"])
    _check_lengths(train, sources["train"])
    vectors = _vectors(settings, train)
    encoder = build_encoder(settings, train, vectors)
    tags = TagSet.build(train, encoder, scheme)
    check_tag_set(tags, source=sources["train"])
    model = TagModel.create(settings, encoder, tags)
    found = 0 if vectors is None else model.use_vectors(vectors)
    for name in read.keys() - {"train"}:
        check_overlap(tags, read[name], source=sources[name])
    test = TaggedData.of(model, read["test"]) if "test" in read else None
    return TagJob(model, train, TaggedData.of(model, dev), test, found, broken)


def build_encoder(
    settings: TagRun, sentences: Sentences, vectors: WordVectors | None
) -> WordEncoder:
    """Vocabularies of the training sentences, and of the words that have pretrained vectors."""
    tokens = settings.tokens
    return WordEncoder.build(
        (sentence.words for sentence in sentences),
        lowercase=tokens.lowercase,
        zero_digits=tokens.zero_digits,
        min_count=tokens.min_count,
        max_size=tokens.max_size,
        more=() if vectors is None else vectors.words,
    )


def _vectors(settings: TagRun, sentences: Sentences) -> WordVectors | None:
    model = settings.model
    if model.vectors is None:
        return None
    words = {word for sentence in sentences for word in sentence.words}
    wanted = words | {word.lower() for word in words}
    return read_vectors(model.vectors, wanted=wanted, most=model.vector_words)


def hold_out(
    sentences: Sentences, share: float, *, source: Path | str
) -> tuple[Sentences, Sentences]:
    """Cut off the last share of the sentences."""
    if len(sentences) < 2:
        raise DataError(
            source,
            f"sentences are held out for development, but there is {len(sentences) or 'none'} to "
            "learn from. Give 2 or more, or name --dev.",
        )
    kept = min(len(sentences) - 1, max(1, round(len(sentences) * (1.0 - share))))
    return sentences[:kept], sentences[kept:]


def _check_lengths(sentences: Sentences, source: Path | str) -> None:
    for sentence in sentences:
        if len(sentence.words) > MAX_SENTENCE:
            raise DataError(
                source,
                f"the sentence that begins here has {len(sentence.words)} words, but one that is "
                f"trained on may have {MAX_SENTENCE}. Put blank lines between sentences.",
                line=sentence.lines[0],
            )
