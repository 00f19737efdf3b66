"""The task `tag`: a tag for every word, or labelled spans."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.tag.settings import PredictOptions, TaggedInput, TagRun
from unrolled.tasks.task import Inputs, Task, Use, View
from unrolled.text.source import ArrivingLines, Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.tag.data import Sentences
    from unrolled.tasks.tag.job import TagJob
    from unrolled.tasks.tag.model import TagModel


class Tag(Task[TagRun, "Sentences", "TagModel"]):
    """Parts of speech, names, and whatever else a word can be marked with."""

    name = "tag"
    noun = "tagger"
    settings = TagRun
    uses: ClassVar[Mapping[str, Use]] = {
        "predict": Use("Tag the words of each line.", TaggedInput, PredictOptions),
        "similar": SIMILAR,
    }
    views: ClassVar[Mapping[str, View]] = {
        "loss": View("The loss of every step, the cost on the dev data.", of_run=True),
        "confusion": View("Which tags were taken for which."),
        "lengths": View("The score by the length of the sentence."),
    }
    examples = ("predict FOLDER text.txt", "evaluate FOLDER tagged.conllu")

    def read(self, source: Source, settings: TagRun, options: Section | None = None) -> "Sentences":
        from unrolled.tasks.tag.data import Sentences

        return Sentences.read(source, column=settings.tokens.column, data=settings.data)

    def inputs(self, lines: ArrivingLines, use: str, settings: TagRun, options: Any) -> Inputs:
        """A text a line, or (`tokens`, or by name and content) a word a line."""
        from unrolled.text.tagged_inputs import tagged_inputs

        found = tagged_inputs(
            lines,
            settings.data,
            column=settings.tokens.column,
            tokens=options.tokens,
            sentences=options.sentences,
        )
        return ((TaggedInput.model_construct(sentence=words), record) for words, record in found)

    def job(self, settings: TagRun, data: "Mapping[str, Sentences]") -> "TagJob":
        from unrolled.tasks.tag.job import tag_job

        return tag_job(settings, data)

    def model(self) -> "type[TagModel]":
        from unrolled.tasks.tag.model import TagModel

        return TagModel

    def evaluate(self, model: "TagModel", data: "Sentences", options: Any) -> Shown:
        from unrolled.tasks.tag.report import evaluate_tagged, prepared
        from unrolled.text.tagset import check_overlap

        check_overlap(model.tags, data.sentences, source=data.source)
        return evaluate_tagged(model, prepared(model, data.sentences))

    def view(self, name: str, model: "TagModel", data: "Sentences") -> Shown:
        from unrolled.tasks.tag.report import prepared
        from unrolled.tasks.tag.views import VIEWS

        return VIEWS[name](model, prepared(model, data.sentences))

    def measures(self, model: "TagModel", data: "Sentences") -> "list[Measure]":
        from unrolled.tasks.tag.report import predicted_tags, prepared, tagging_measures

        ready = prepared(model, data.sentences)
        return tagging_measures(predicted_tags(model, ready), ready)
