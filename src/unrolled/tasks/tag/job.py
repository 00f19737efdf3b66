"""A tagger made ready for training: vocabularies, tags, batches, development sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from unrolled.config.sections import TrainSettings
from unrolled.errors import DataError
from unrolled.tasks.shared.batch_size import with_batch_tokens
from unrolled.tasks.shared.lines import in_training, with_dev
from unrolled.tasks.shared.word_vectors import pretrained
from unrolled.tasks.tag.data import Sentences, TaggedData
from unrolled.tasks.tag.model import TagModel
from unrolled.tasks.tag.report import dev_measure, evaluate_tagged, prepared
from unrolled.tasks.tag.settings import TagRun
from unrolled.text.conll import TaggedSentence
from unrolled.text.tagset import TagSet, check_overlap, check_tag_set, count_unseen, span_scheme
from unrolled.text.vectors import WordVectors
from unrolled.text.word_batch import TagBatch, TagBatches
from unrolled.text.word_encoder import WordEncoder
from unrolled.training.clock import Dev
from unrolled.training.job import HELD_OUT, Reports, StepJob

MAX_SENTENCE = 20_000  # words of a sentence that is trained on


@dataclass(frozen=True)
class TagJob(StepJob[TagModel]):
    """A tagger, the sentences to learn from and those to be judged on."""

    model: TagModel
    sentences: Sequence[TaggedSentence]
    dev_data: TaggedData
    test_data: TaggedData | None = None
    vectors_found: int = 0
    broken: int = 0  # training sentences whose tags break their scheme
    in_training: Mapping[str, float] = field(default_factory=dict)  # sentences of other files

    @property
    def train(self) -> TrainSettings:
        """The settings of training."""
        return self.model.settings.train

    @cached_property
    def batches(self) -> TagBatches:
        """The training sentences."""
        encoded = self.model.encoder.encode([sentence.words for sentence in self.sentences])
        tags = self.model.tags.encode(self.sentences)
        return TagBatches(encoded, tags, batch_tokens=self.train.batch_tokens)

    def epoch(self, seed: int, epoch: int) -> Sequence[TagBatch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.batches.epoch(seed, epoch)

    def size(self, batch: TagBatch) -> int:
        """How many words it holds."""
        return int(batch.sentences.lengths.sum())

    def facts(self) -> dict[str, float]:
        """What there is to learn from, and how well the other files fit to it."""
        encoded = self.batches.encoded
        return {
            "lines": len(encoded),
            "tokens": len(encoded.words),
            "unknown": encoded.unknown,
            "vocabulary": len(self.model.encoder.words),
            "tags": len(self.model.tags),
            "padding": self.batches.padding_share(self.seed, 0),
            HELD_OUT: len(self.dev_data.sentences),
            **({"broken_sentences": self.broken} if self.broken else {}),
            **({"vectors_found": self.vectors_found} if self.vectors_found else {}),
            **self._overlap("dev", self.dev_data),
            **(self._overlap("test", self.test_data) if self.test_data is not None else {}),
            **self.in_training,
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

    def dev(self) -> Dev:
        """F1 of spans or accuracy on the development sentences."""
        return dev_measure(self.model, self.dev_data)

    def resized(self, settings: TagRun) -> Self:
        """The same sentences for a model of other settings, without vectors."""
        settings = with_batch_tokens(settings, sum(len(s.words) for s in self.sentences))
        return replace(self, model=TagModel.create(settings, self.model.encoder, self.model.tags))

    def scoring_seconds(self, dev_seconds: float) -> float:
        """The test sentences are read as the dev sentences are; scoring tags takes its time."""
        test = len(self.test_data.unknown) if self.test_data else 0
        return 2.0 * dev_seconds * (1.0 + test / max(1, len(self.dev_data.unknown)))

    def reports(self, model: TagModel) -> Reports:
        """Scores of a finished model on the dev data and, where there are any, the test data."""
        files = {"dev": self.dev_data, "test": self.test_data}
        return Reports({name: evaluate_tagged(model, data) for name, data in files.items() if data})


def tag_job(settings: TagRun, data: Mapping[str, Sentences]) -> TagJob:
    """Vocabularies and tags come from the training sentences alone."""
    train, source = data["train"].sentences, data["train"].source
    scheme, broken = span_scheme(train, settings.tokens.scheme, source=source)
    given = {name: split for name, split in data.items() if name != "train"}
    for split in given.values():
        if scheme is not None:
            span_scheme(split.sentences, "auto", source=split.source)
    data = with_dev(data, settings.train.holdout, settings.seed)
    train = data["train"].sentences
    _check_lengths(train, source)
    vectors = _vectors(settings, data["train"])
    encoder = build_encoder(settings, train, vectors)
    tags = TagSet.build(train, encoder, scheme)
    check_tag_set(tags, source=source)
    settings = with_batch_tokens(settings, sum(len(sentence.words) for sentence in train))
    model = TagModel.create(settings, encoder, tags)
    found = 0 if vectors is None else model.use_vectors(vectors)
    for split in given.values():
        check_overlap(tags, split.sentences, source=split.source)
    ready = {name: prepared(model, data[name].sentences) for name in data if name != "train"}
    files = {"train": data["train"], **given}
    seen = in_training(files, lambda split: (" ".join(s.words) for s in split.sentences))
    return TagJob(model, train, ready["dev"], ready.get("test"), found, broken, seen)


def build_encoder(
    settings: TagRun, sentences: Sequence[TaggedSentence], vectors: WordVectors | None
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


def _vectors(settings: TagRun, data: Sentences) -> WordVectors | None:
    model = settings.model
    if model.vectors is None:
        return None
    words = {word for sentence in data.sentences for word in sentence.words}
    wanted = words | {word.lower() for word in words}
    most, encoding = model.vector_words, data.encoding
    return pretrained(model.vectors, wanted=wanted, most=most, encoding=encoding)


def _check_lengths(sentences: Sequence[TaggedSentence], source: Path | str) -> None:
    for sentence in sentences:
        if len(sentence.words) > MAX_SENTENCE:
            raise DataError(
                source,
                f"the sentence that begins here has {len(sentence.words)} words, but one that is "
                f"trained on may have {MAX_SENTENCE}. Put blank lines between sentences.",
                line=sentence.lines[0],
            )
