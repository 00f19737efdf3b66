"""A tagger as a scikit-learn estimator: fit, predict, cross_val_score, GridSearchCV."""

from collections.abc import Iterable, Mapping, Sequence
from reprlib import repr as short
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from unrolled.errors import ConfigError
from unrolled.evaluate.spans import right_words, span_counts
from unrolled.tasks.shared.estimator import TaskEstimator, drawing_apart
from unrolled.tasks.shared.texts import several, text_list
from unrolled.tasks.tag.data import Sentences
from unrolled.tasks.tag.job import tag_job
from unrolled.tasks.tag.model import TagModel
from unrolled.tasks.tag.settings import TagRun
from unrolled.text.conll import TaggedSentence
from unrolled.text.corpus import SURROGATE
from unrolled.training.in_memory import fit_in_memory

SOURCE = "<sentences>"


class Tagger(TaskEstimator, run=TagRun, model_type=TagModel):
    """A recurrent tagger, trained in memory.

    The parameters are the settings of `unrolled train tag`, without the names of their sections.
    The same seed, sentences and tags give the same model. Sentences are lists of words.
    """

    def fit(self, sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[str]]) -> Self:
        """Learn from words and their tags, the best epoch being chosen on a share `holdout`."""
        settings = self.settings()
        assert isinstance(settings, TagRun)
        read = [
            TaggedSentence([*words], [*given], [number] * len(words))
            for number, (words, given) in enumerate(_checked(sentences, tags), start=1)
            if len(words)
        ]
        with drawing_apart(settings):
            job = tag_job(settings, {"train": Sentences(read, SOURCE, {})})
            fit_in_memory(job)
        self.model_: TagModel = job.model
        self.take_files({})
        return self

    def take_files(self, files: Mapping[str, bytes]) -> None:
        """Nothing is kept beside the model: its tags are the classes."""
        self.classes_ = np.array(self.model_.tags.tags)

    def predict(self, sentences: Iterable[Sequence[str]]) -> list[list[str]]:
        """The tags of each sentence's words."""
        check_is_fitted(self, "model_")
        return [tagged.tags for tagged in self.model_.tag(sentences)]

    def predict_proba(self, sentences: Iterable[Sequence[str]]) -> list[NDArray[np.float32]]:
        """P(tag | sentence) of each word, a matrix (T, K) a sentence; columns are `classes_`."""
        check_is_fitted(self, "model_")
        return [self.model_.probabilities(words) for words in several(sentences, "sentences")]

    def score(self, sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[str]]) -> float:
        """F1 of spans where the tags mark spans, else the share of words with the right tag."""
        pairs = _checked(sentences, tags)
        gold = [[*given] for _, given in pairs]
        predicted = self.predict([words for words, _ in pairs])
        if self.model_.tags.scheme is None:
            return float(right_words(gold, predicted).mean())
        return span_counts(gold, predicted).f1


def _checked(
    sentences: Iterable[Sequence[str]], tags: Iterable[Sequence[str]]
) -> list[tuple[Sequence[str], Sequence[str]]]:
    """Sentences beside their tags, as many tags as words."""
    words, given = [*several(sentences, "sentences")], [*several(tags, "tags")]
    if len(words) != len(given):
        raise ConfigError(
            f"there are {len(words)} sentences but {len(given)} lists of tags; give one for each."
        )
    for number, (sentence, own) in enumerate(zip(words, given, strict=True)):
        if isinstance(sentence, str) or isinstance(own, str) or len(sentence) != len(own):
            raise ConfigError(
                f"sentence {number} is {short(sentence)} with the tags {short(own)}, but must be a "
                "list of words with a list of as many tags."
            )
    return [
        (text_list(sentence, name=f"sentences[{number}]"), _checked_tags(own, number))
        for number, (sentence, own) in enumerate(zip(words, given, strict=True))
    ]


def _checked_tags(tags: Sequence[str], number: int) -> list[str]:
    """Tags that can be kept in a folder."""
    found = text_list(tags, name=f"tags[{number}]")
    for tag in found:
        if not tag or SURROGATE.search(tag):
            raise ConfigError(
                f"tags[{number}] has {short(tag)} in it, but a tag must be a text of at least one "
                "character."
            )
    return found
