"""The task `ngram`: counted n-gram language models."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.tasks.shared.language_uses import EXAMPLES, LANGUAGE_USES, TEXT_VIEWS
from unrolled.tasks.task import Format, Inputs, Task, text_inputs
from unrolled.text.source import ArrivingLines, Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.ngram.data import StreamedText
    from unrolled.tasks.ngram.job import NgramJob
    from unrolled.tasks.ngram.model import NgramLanguageModel


class Ngram(Task[NgramRun, "StreamedText", "NgramLanguageModel"]):
    """Counted, not trained: the text streams by, however long it is."""

    name = "ngram"
    noun = "counted n-gram language model"
    settings = NgramRun
    uses = LANGUAGE_USES
    views = TEXT_VIEWS
    examples = EXAMPLES

    def read(
        self, source: Source, settings: NgramRun, options: Section | None = None
    ) -> "StreamedText":
        from unrolled.tasks.ngram.data import StreamedText

        return StreamedText(source, settings.data)

    def inputs(self, lines: ArrivingLines, use: str, settings: NgramRun, options: Any) -> Inputs:
        """A line each, unless the settings name a format or a column of records."""
        from unrolled.tasks.shared.lines import text_records

        return text_inputs(text_records(lines, settings.data))

    def job(self, settings: NgramRun, data: "Mapping[str, StreamedText]") -> "NgramJob":
        from unrolled.tasks.ngram.job import ngram_job

        return ngram_job(settings, data)

    def model(self) -> "type[NgramLanguageModel]":
        from unrolled.tasks.ngram.model import NgramLanguageModel

        return NgramLanguageModel

    def evaluate(self, model: "NgramLanguageModel", data: "StreamedText", options: Any) -> Shown:
        from unrolled.tasks.shared.language_report import evaluate_language

        return evaluate_language(model, data, source=data.path)

    def view(self, name: str, model: "NgramLanguageModel", data: "StreamedText") -> Shown:
        from unrolled.tasks.shared.language_report import LANGUAGE_VIEWS

        return LANGUAGE_VIEWS[name](model, data, data.path)

    def measures(self, model: "NgramLanguageModel", data: "StreamedText") -> "list[Measure]":
        from unrolled.tasks.shared.language_report import measured_language

        return measured_language(model, data, source=data.path)

    def formats(self) -> "Mapping[str, Format[NgramLanguageModel]]":
        from unrolled.tasks.ngram.model import read_arpa, write_arpa

        return {"arpa": Format(write_arpa, read_arpa)}
