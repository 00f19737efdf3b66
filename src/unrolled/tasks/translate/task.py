"""The task `translate`: one sequence in, another out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.task import Inputs, Task, Use, View, text_inputs
from unrolled.tasks.translate.settings import (
    PredictOptions,
    ScoringOptions,
    TraceInput,
    TraceOptions,
    TranslateRun,
    checked_pair,
)
from unrolled.text.source import ArrivingLines, Source
from unrolled.text.texts import arriving_texts

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
        "similar": SIMILAR,
    }
    views: ClassVar[Mapping[str, View]] = {
        "loss": View("The loss of every step and on the dev data.", of_run=True, same_unit=True),
        "lengths": View("The score by the length of the source."),
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
        return Pairs.read(source, languages, settings.data)

    def remarks(self, data: "Pairs") -> Sequence[str]:
        """What was passed over, and which columns were read if they had to be found."""
        return data.found.remarks()

    def settled(self, settings: TranslateRun, train: "Pairs") -> TranslateRun:
        """With the columns of the training data, where they had to be found."""
        return settings.model_copy(update={"data": train.found.settled(settings.data)})

    def inputs(
        self, lines: ArrivingLines, use: str, settings: TranslateRun, options: Any
    ) -> Inputs:
        """The sources of a file, a text a line."""
        from unrolled.text.parallel import side_columns

        wanted, _ = side_columns(settings.data)
        return text_inputs(arriving_texts(lines, wanted, written=settings.data.format))

    def job(self, settings: TranslateRun, data: "Mapping[str, Pairs]") -> "TranslateJob":
        from unrolled.tasks.translate.job import translate_job

        return translate_job(settings, data)

    def model(self) -> "type[TranslateModel]":
        from unrolled.tasks.translate.model import TranslateModel

        return TranslateModel

    def evaluate(self, model: "TranslateModel", data: "Pairs", options: Any) -> Shown:
        from unrolled.tasks.translate.report import evaluate_translation

        return evaluate_translation(model, data, options)

    def view(self, name: str, model: "TranslateModel", data: "Pairs") -> Shown:
        from unrolled.tasks.translate.report import by_length

        return by_length(model, data.pairs)

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
