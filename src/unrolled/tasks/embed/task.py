"""The task `embed`: word vectors from plain text."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.embed.settings import EmbedRun
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.task import Task, Use, View
from unrolled.text.source import Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.embed.data import NumberedText
    from unrolled.tasks.embed.glove_job import GloveJob
    from unrolled.tasks.embed.job import EmbedJob
    from unrolled.tasks.embed.model import EmbedModel


class Embed(Task[EmbedRun, "NumberedText", "EmbedModel"]):
    """Skip-gram, CBOW, GloVe: words that stand among the same words get vectors that are alike."""

    name = "embed"
    noun = "table of word vectors"
    settings = EmbedRun
    uses: ClassVar[Mapping[str, Use]] = {"similar": SIMILAR}
    views: ClassVar[Mapping[str, View]] = {"loss": View("The loss of every step.", of_run=True)}
    examples = ("vectors neighbours FOLDER word", "vectors analogy FOLDER man king woman")

    def read(
        self, source: Source, settings: EmbedRun, options: Section | None = None
    ) -> "NumberedText":
        from unrolled.tasks.embed.data import read_text

        return read_text(source, settings.tokens)

    def job(self, settings: EmbedRun, data: "Mapping[str, NumberedText]") -> "EmbedJob | GloveJob":
        from unrolled.tasks.embed.job import embed_job

        return embed_job(settings, data)

    def model(self) -> "type[EmbedModel]":
        from unrolled.tasks.embed.model import EmbedModel

        return EmbedModel

    def evaluate(self, model: "EmbedModel", data: "NumberedText", options: Any) -> Shown:
        from unrolled.tasks.embed.report import evaluate_text

        return evaluate_text(model, data)

    def measures(self, model: "EmbedModel", data: "NumberedText") -> "list[Measure]":
        from unrolled.tasks.embed.report import text_measures

        return text_measures(model, data)

    def sentence(self, facts: Mapping[str, float]) -> str:
        return (
            f"Learned from {facts['lines']:,} lines, {facts['tokens']:,} words; "
            f"{facts['unknown']:,} more are too rare. Vocabulary {facts['vocabulary']:,}."
        )
