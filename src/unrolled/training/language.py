"""A language model made ready for training: vocabulary, batches, development text."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from unrolled.errors import DataError
from unrolled.evaluate.language import encode_known, evaluate_encoded, mean_nats
from unrolled.evaluate.report import Report
from unrolled.models.folder import model_files
from unrolled.models.language import LanguageModel, Settings
from unrolled.models.next_token import NextToken
from unrolled.text.batch import Batch
from unrolled.text.tokens import SPECIALS, EncodedLines, TextEncoder
from unrolled.training.resume import Texts

MAX_LINE_TOKENS = 20_000  # of a line that is trained on by itself


@dataclass(frozen=True)
class LanguageJob:
    """What the training loop needs of a language model."""

    model: LanguageModel
    train: EncodedLines
    dev: EncodedLines
    test: EncodedLines | None = None

    @property
    def network(self) -> NextToken:
        return self.model.network

    def epoch(self, seed: int, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch, the same for the same arguments."""
        return self.model.batches(self.train).epoch(seed, epoch)

    def facts(self, seed: int) -> dict[str, float]:
        """What there is to learn from, and how much of the first epoch's batches is padding."""
        return {
            "lines": len(self.train),
            "tokens": len(self.train.ids),
            "unknown": self.train.unknown,
            "vocabulary": len(self.model.encoder.vocabulary),
            "padding": self.model.batches(self.train).padding_share(seed, 0),
        }

    def dev_loss(self) -> float:
        """Mean nats a token on the development text."""
        return mean_nats(self.model, self.dev)

    def best_files(self, dev_loss: float) -> dict[str, bytes]:
        """A model folder of the network as it stands."""
        metrics = json.dumps({"dev_loss": dev_loss}).encode()
        card = (
            "# A language model under training\n\nThe best so far by its loss on held-out text.\n"
        )
        return model_files(self.model, self.network.state_dict(), metrics=metrics, card=card)

    def reports(self, model: LanguageModel) -> dict[str, Report]:
        """Scores of a finished model on the dev text and, where there is one, the test text."""
        texts = {"dev": self.dev, "test": self.test}
        return {
            name: evaluate_encoded(model, text, source=f"the {name} text")
            for name, text in texts.items()
            if text is not None
        }


def language_job(
    settings: Settings, texts: Texts, sources: Mapping[str, Path | str]
) -> LanguageJob:
    """Build the vocabulary from the training lines alone, then encode every text with it.

    `sources` says where the texts came from; errors name it.
    """
    if not any(line.strip() for line in texts["train"]):
        raise DataError(sources["train"], "holds no text, but there must be some to learn from.")
    if "dev" not in texts:
        lines, held_out = hold_out(texts["train"], settings.train.holdout, source=sources["train"])
        texts = {**texts, "train": lines, "dev": held_out}
        sources = {**sources, "dev": f"{sources['train']} (its last lines)"}
    model = LanguageModel.create(settings, build_encoder(settings, texts["train"]))
    _check_vocabulary(model.encoder, sources["train"])
    encoded = {
        name: encode_known(model, lines, source=sources[name]) for name, lines in texts.items()
    }
    if settings.model.context == "line":
        _check_lengths(encoded["train"], sources["train"])
    return LanguageJob(model, **encoded)


def build_encoder(settings: Settings, lines: Sequence[str]) -> TextEncoder:
    """The tokeniser and the vocabulary that the settings ask for."""
    return TextEncoder.learn(lines, settings.tokens)


def hold_out(
    lines: Sequence[str], share: float, *, source: Path | str
) -> tuple[Sequence[str], Sequence[str]]:
    """Cut off the last share of the lines; a single line is cut within, at a space if it can be."""
    if len(lines) > 1:
        kept = min(len(lines) - 1, max(1, round(len(lines) * (1.0 - share))))
        return lines[:kept], lines[kept:]
    text = lines[0] if lines else ""
    place = round(len(text) * (1.0 - share))
    place = text.rfind(" ", 0, place + 1) if " " in text[:place] else place
    head, tail = text[:place].rstrip(), text[place:].strip()
    if not head or not tail:
        raise DataError(
            source, "holds too little text to keep some for development. Give more, or name --dev."
        )
    return [head], [tail]


def _check_vocabulary(encoder: TextEncoder, source: Path | str) -> None:
    ordinary = len(encoder.vocabulary) - len(SPECIALS)
    if ordinary < 2:
        raise DataError(
            source,
            f"gives a vocabulary of {ordinary} at level {encoder.level}, but a model chooses "
            "between 2 or more. Check tokens.level, tokens.min_count and the text.",
        )


def _check_lengths(encoded: EncodedLines, source: Path | str) -> None:
    longest = int(encoded.lengths.argmax())
    if encoded.lengths[longest] > MAX_LINE_TOKENS:
        raise DataError(
            source,
            f"has {encoded.lengths[longest]} tokens, but a line that is trained on by itself may "
            f'have {MAX_LINE_TOKENS}. Set model.context to "stream", or break the line.',
            line=longest + 1,
        )
