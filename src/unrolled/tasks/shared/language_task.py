"""What the tasks of trained language models share: plain text in, one face for every network."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.data import PlainTextRun
from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.shared.language_uses import EXAMPLES, LANGUAGE_USES, RUN_VIEWS, TEXT_VIEWS
from unrolled.tasks.task import Inputs, Task, View, text_inputs
from unrolled.text.source import ArrivingLines, Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.shared.language_model import LanguageModel
    from unrolled.tasks.shared.lines import Lines
    from unrolled.training.job import Job


class LanguageTask(Task[PlainTextRun, "Lines", "LanguageModel"]):
    """A language model that is trained step by step; a room adds its settings and its model."""

    uses = LANGUAGE_USES
    views: ClassVar[Mapping[str, View]] = {**RUN_VIEWS, **TEXT_VIEWS}
    examples = EXAMPLES

    def read(
        self, source: Source, settings: PlainTextRun, options: Section | None = None
    ) -> "Lines":
        from unrolled.tasks.shared.lines import Lines

        return Lines.read(source, settings.data)

    def inputs(
        self, lines: ArrivingLines, use: str, settings: PlainTextRun, options: Any
    ) -> Inputs:
        """A line each, unless the settings name a format or a column of records."""
        from unrolled.tasks.shared.lines import text_records

        return text_inputs(text_records(lines, settings.data))

    def job(self, settings: PlainTextRun, data: "Mapping[str, Lines]") -> "Job[LanguageModel]":
        from unrolled.tasks.shared.language_job import language_job

        return language_job(self.model(), settings, data)

    def evaluate(self, model: "LanguageModel", data: "Lines", options: Any) -> Shown:
        from unrolled.tasks.shared.language_report import evaluate_language

        return evaluate_language(model, data.lines, source=data.source)

    def view(self, name: str, model: "LanguageModel", data: "Lines") -> Shown:
        from unrolled.tasks.shared.language_report import LANGUAGE_VIEWS

        return LANGUAGE_VIEWS[name](model, data.lines, data.source)

    def measures(self, model: "LanguageModel", data: "Lines") -> "list[Measure]":
        from unrolled.tasks.shared.language_report import measured_language

        return measured_language(model, data.lines, source=data.source)
