"""Word vectors made ready for training: a vocabulary, a corpus of ids, runs of lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from unrolled.tasks.embed.data import Corpus, NumberedText
from unrolled.tasks.embed.draws import chances_of, key_of
from unrolled.tasks.embed.glove_job import GloveJob
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.report import evaluate_text
from unrolled.tasks.embed.settings import EmbedRun, EmbedTrain
from unrolled.tasks.embed.update import Batch, EmbedUpdate
from unrolled.training.job import Reports, StepJob


@dataclass(frozen=True)
class EmbedJob(StepJob[EmbedModel]):
    """Vectors, and the text to learn from; the others are to be judged on."""

    unit = "words"
    model: EmbedModel
    corpus: Corpus
    texts: Mapping[str, NumberedText]
    left_out: int  # words of the text that are too rare

    @property
    def train(self) -> EmbedTrain:
        """The settings of training."""
        return self.model.settings.train

    def epoch(self, seed: int, epoch: int) -> Sequence[Batch]:
        """Runs of lines, always in the order of the text: it is chance that makes epochs differ."""
        key = key_of(seed, epoch)
        return [Batch(run, key) for run in self.corpus.runs(self.train.batch_tokens)]

    def size(self, batch: Batch) -> int:
        """How many words it holds."""
        return self.corpus.size(batch.lines)

    def dev(self) -> None:
        """Nothing is held out: the last epoch counts."""

    def update(self) -> EmbedUpdate:
        """The compiled trainer, or its twin."""
        train, words = self.train, self.model.words
        chances = chances_of(words.counts, subsample=train.subsample, noise_power=train.noise_power)
        return EmbedUpdate(self.model.settings, self.model.predictor, self.corpus, chances)

    def facts(self) -> dict[str, float]:
        """What there is to learn from."""
        return {
            "lines": len(self.corpus.starts) - 1,
            "tokens": len(self.corpus.ids),
            "unknown": self.left_out,
            "vocabulary": len(self.model.words),
            "padding": 0.0,
        }

    def reports(self, model: EmbedModel) -> Reports:
        """The loss on the dev and the test text, where they are given."""
        return Reports({name: evaluate_text(model, text) for name, text in self.texts.items()})


def embed_job(settings: EmbedRun, data: Mapping[str, NumberedText]) -> EmbedJob | GloveJob:
    """The vocabulary comes from the training text alone."""
    text = data["train"]
    words = text.vocabulary(settings.tokens)
    corpus = text.encoded(words.words)
    others = {name: given for name, given in data.items() if name != "train"}
    model = EmbedModel.create(settings, words)
    left_out = len(text.numbers) - len(corpus.ids)
    if settings.model.objective == "glove":
        return GloveJob(model, corpus, others, left_out, text.source)
    return EmbedJob(model, corpus, others, left_out)
