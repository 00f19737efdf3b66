"""The task `classify`: text classifiers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.classify.settings import ClassifyRun, PredictOptions
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.task import Task, Use, View
from unrolled.text.source import Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.classify.data import Examples
    from unrolled.tasks.classify.job import ClassifyJob
    from unrolled.tasks.classify.model import ClassifyModel


class Classify(Task[ClassifyRun, "Examples", "ClassifyModel"]):
    """A label, or several, for each text."""

    name = "classify"
    noun = "classifier"
    settings = ClassifyRun
    uses: ClassVar[Mapping[str, Use]] = {
        "predict": Use("Label each line.", options=PredictOptions),
        "similar": SIMILAR,
    }
    views: ClassVar[Mapping[str, View]] = {
        "loss": View("The loss of every step, the cost on the dev data.", of_run=True),
        "confusion": View("What was taken for what."),
        "calibration": View("How often what is said with confidence is right."),
        "lengths": View("The score by the length of the text."),
    }
    examples = ("predict FOLDER texts.txt", "evaluate FOLDER labelled.tsv")

    def read(
        self, source: Source, settings: ClassifyRun, options: Section | None = None
    ) -> "Examples":
        from unrolled.tasks.classify.data import Examples

        return Examples.read(source, settings.data)

    def remarks(self, data: "Examples") -> Sequence[str]:
        """Which columns were read, where they are not the usual ones."""
        from unrolled.text.labelled import STANDARD

        if data.columns is None or data.columns in STANDARD:
            return ()
        text, label = data.columns
        return (f"texts are read from column {text}, labels from column {label}",)

    def settled(self, settings: ClassifyRun, train: "Examples") -> ClassifyRun:
        """With the columns of the training data, where they are not the usual ones."""
        from unrolled.text.labelled import Labelled, check_labels

        found = Labelled(train.examples, train.columns)
        check_labels(found, train.source)
        return settings.model_copy(update={"data": found.settled(settings.data)})

    def job(self, settings: ClassifyRun, data: "Mapping[str, Examples]") -> "ClassifyJob":
        from unrolled.tasks.classify.job import classify_job

        return classify_job(settings, data)

    def model(self) -> "type[ClassifyModel]":
        from unrolled.tasks.classify.model import ClassifyModel

        return ClassifyModel

    def evaluate(self, model: "ClassifyModel", data: "Examples", options: Any) -> Shown:
        from unrolled.tasks.classify.data import LabelledData
        from unrolled.tasks.classify.report import evaluate_labelled

        return evaluate_labelled(model, LabelledData.of(model.labels, model.reader, data))

    def view(self, name: str, model: "ClassifyModel", data: "Examples") -> Shown:
        from unrolled.tasks.classify.data import LabelledData
        from unrolled.tasks.classify.views import VIEWS

        return VIEWS[name](model, LabelledData.of(model.labels, model.reader, data))

    def measures(self, model: "ClassifyModel", data: "Examples") -> "list[Measure]":
        from unrolled.tasks.classify.data import LabelledData
        from unrolled.tasks.classify.report import measured_labels

        return measured_labels(model, LabelledData.of(model.labels, model.reader, data))
