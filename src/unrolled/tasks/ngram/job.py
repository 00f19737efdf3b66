"""An n-gram model made ready: count, smooth, score. There are no epochs and nothing to resume."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.report import Report
from unrolled.ngrams.scratch import Scratch
from unrolled.store.files import clean_temporaries
from unrolled.tasks.ngram.data import StreamedText, cut_stream, encoded_text
from unrolled.tasks.ngram.model import NgramLanguageModel, count_model, with_unseen
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.tasks.shared.language_report import encode_known, evaluate_encoded, kept_for_names
from unrolled.text.tokens import END, UNK, EncodedLines
from unrolled.training.job import Fitted, Job, Reports
from unrolled.training.run_folder import RunFolder
from unrolled.training.watch import Watch


@dataclass
class Scored:
    """A text to be scored: its lines, as long as they are needed, and its ids."""

    lines: Iterable[str]
    source: Path | str
    encoded: EncodedLines | None = None


@dataclass
class NgramJob(Job[NgramLanguageModel]):
    """A text to count, and texts to score; they are streamed, so it is fitted once."""

    settings: NgramRun
    data: Mapping[str, StreamedText]
    texts: dict[str, Scored] = field(default_factory=dict)
    counted: dict[str, float] = field(default_factory=dict)

    def facts(self) -> dict[str, float]:
        """What was counted."""
        return self.counted

    def fit(self, run: RunFolder, watch: Watch) -> Fitted[NgramLanguageModel]:
        """Count the n-grams of the training text.

        The folder is written when all is done: a run that was killed is begun anew.
        """
        clean_temporaries(run.path)
        scratch = Scratch(self.settings.train.memory, run.path)
        lines, self.texts = self._parts()
        source = self.data["train"].path
        with watch.phase("counting"):
            encoder, ids = encoded_text(lines, self.settings, scratch, source=source)
            model = count_model(self.settings, encoder, ids, scratch)
        for text in self.texts.values():
            text.lines = kept_for_names(model, text.lines)
            text.encoded = encode_known(model, text.lines, source=text.source)
        if "dev" in self.texts.keys() - self.data.keys():
            held_out = len(self.texts["dev"].encoded or ())
            watch.remark(f"The last {held_out:,} lines are held out; --dev names other data.")
        encoded = {name: t.encoded for name, t in self.texts.items() if t.encoded is not None}
        model = with_unseen(model, encoded)
        self.counted = _facts(model, len(ids))
        run.record(self.counted)
        how = f"Counted with unrolled from {len(ids):,} tokens, line ends among them."
        return Fitted(model, model.made(how + _guessed(model)))

    def _parts(self) -> tuple[Iterable[str], dict[str, Scored]]:
        """The lines to count, and the texts to score: those given, or the last lines."""
        train = self.data["train"]
        texts = {name: Scored(t, t.path) for name, t in self.data.items() if name != "train"}
        if texts or not self.settings.train.holdout:
            return train, texts
        lines, held_out = cut_stream(train, self.settings.train.holdout)
        return lines, {"dev": Scored(held_out, f"{train.path} (its last lines)")}

    def reports(self, model: NgramLanguageModel) -> Reports:
        """A report of each text, or why there is none; and what is to be known of all."""
        reports: dict[str, Report] = {}
        notes = {"all": model.network.caution} if model.network.caution else {}
        for name, text in self.texts.items():
            assert text.encoded is not None
            lines = () if model.network.knows_unknown else text.lines
            try:
                reports[name] = evaluate_encoded(
                    model, text.encoded, source=f"the {name} text", lines=lines
                )
            except DataError as error:  # a token has no chance: no reason not to keep the model
                notes[name] = str(error)
        return Reports(reports, notes)


def ngram_job(settings: NgramRun, data: Mapping[str, StreamedText]) -> NgramJob:
    """Made ready; nothing is read yet."""
    if settings.model.smoothing == "arpa":
        raise ConfigError(
            'model.smoothing is "arpa", but that is for models read from an ARPA file, which '
            "nothing is counted for. Choose another one."
        )
    return NgramJob(settings, data)


def _guessed(model: NgramLanguageModel) -> str:
    """A sentence on discounts that are no estimates, if there are any."""
    found = enumerate(model.network.facts.discounts, 1)
    orders = [str(k) for k, discounts in found if discounts.fallback]
    told = f" Too few n-grams for the discounts of order {', '.join(orders)}: they are fixed ones."
    return told if orders else ""


def _facts(model: NgramLanguageModel, tokens: int) -> dict[str, float]:
    counts = model.encoder.vocabulary.counts
    return {
        "lines": counts[END],
        "tokens": tokens,
        "unknown": counts[UNK],
        "vocabulary": len(counts),
        "padding": 0.0,
    }
