"""Pictures of a tagger and tagged sentences."""

from collections.abc import Callable

from unrolled.evaluate.shown import Shown
from unrolled.evaluate.views import ByLength, Confusion
from unrolled.tasks.tag.data import TaggedData
from unrolled.tasks.tag.model import TagModel
from unrolled.tasks.tag.report import predicted_tags, tagging_measures


def confusion(model: TagModel, data: TaggedData) -> Confusion:
    """Which tags were taken for which, word by word."""
    rows = zip(data.gold, predicted_tags(model, data), strict=True)
    return Confusion.of(pair for gold, said in rows for pair in zip(gold, said, strict=True))


def lengths(model: TagModel, data: TaggedData) -> ByLength:
    """The first score by how long sentences are."""
    measure, *_ = tagging_measures(predicted_tags(model, data), data)
    return ByLength.of(measure, data.encoded.lengths, unit="words in the sentence")


VIEWS: dict[str, Callable[[TagModel, TaggedData], Shown]] = {
    "confusion": confusion,
    "lengths": lengths,
}
