"""The task `translate`: one sequence in, another out."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.tasks.task import Task, Use
from unrolled.tasks.translate.settings import (
    PredictOptions,
    ScoringOptions,
    TraceInput,
    TraceOptions,
    TranslateRun,
    checked_pair,
)
from unrolled.text.source import Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.translate.data import Pairs
    from unrolled.tasks.translate.job import TranslateJob
    from unrolled.tasks.translate.model import TranslateModel


class Translate(Task[TranslateRun, "Pairs", "TranslateModel"]):
    """Translation, spelling, commands, dates."""

    name = "translate"
    noun = "sequence-to-sequence model"
    settings = TranslateRun
    uses: ClassVar[Mapping[str, Use]] = {
        "predict": Use("Translate each line.", options=PredictOptions),
        "trace": Use(
            "Show attention weights and the tree of the beam, as a picture or as numbers.",
            input=TraceInput,
            options=TraceOptions,
            by_line=False,
            document=lambda answers: answers[0],
            in_words=False,
        ),
    }
    scoring = ScoringOptions
    examples = ("predict FOLDER texts.txt", "evaluate FOLDER pairs.tsv")

    def read(
        self, source: Source, settings: TranslateRun, options: Section | None = None
    ) -> "Pairs":
        from unrolled.tasks.translate.data import Pairs

        languages = settings.languages.pair
        if isinstance(options, ScoringOptions):
            given = checked_pair(options.source, options.target)
            languages = _languages_in_force(languages, given, source)
        return Pairs.read(source, languages)

    def job(self, settings: TranslateRun, data: "Mapping[str, Pairs]") -> "TranslateJob":
        from unrolled.tasks.translate.job import translate_job

        return translate_job(settings, data)

    def model(self) -> "type[TranslateModel]":
        from unrolled.tasks.translate.model import TranslateModel

        return TranslateModel

    def evaluate(self, model: "TranslateModel", data: "Pairs", options: Any) -> Shown:
        from unrolled.tasks.translate.report import evaluate_translation

        return evaluate_translation(model, data, options)

    def measures(self, model: "TranslateModel", data: "Pairs") -> "list[Measure]":
        from unrolled.tasks.translate.report import measured_pairs

        return measured_pairs(model, data.pairs)


def _languages_in_force(
    own: tuple[str, str] | None, given: tuple[str, str] | None, source: Source
) -> tuple[str, str] | None:
    """The languages of parallel files, or None for one file."""
    if given and own and given != own:
        raise ConfigError(
            f"--from {given[0]} --to {given[1]} was given, but the model was trained from {own[0]} "
            f"to {own[1]}. Leave the options out, or choose another model."
        )
    is_file = str(source.path) == "-" or Path(source.path).is_file()
    return given if given or is_file else own
