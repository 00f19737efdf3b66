"""Evaluate a sequence-to-sequence model: its outputs beside the baselines', and what went wrong."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from unrolled.evaluate.metrics import Score
from unrolled.evaluate.report import Report
from unrolled.evaluate.transduction import transduction_scores
from unrolled.models.translate import BATCH_TOKENS, DEFAULT, Search, TranslateModel
from unrolled.text.pair_batch import PairBatches
from unrolled.text.parallel import Pair, read_pairs
from unrolled.text.tokens import EncodedLines


@dataclass(frozen=True, eq=False)
class PairData:
    """Pairs to train or evaluate on, encoded once."""

    pairs: Sequence[Pair]
    source: EncodedLines
    target: EncodedLines

    @classmethod
    def of(cls, model: TranslateModel, pairs: Sequence[Pair]) -> "PairData":
        """Made ready for a model."""
        source = model.source.encode_lines([pair.source for pair in pairs])
        target = model.target.encode_lines([pair.target for pair in pairs])
        return cls(pairs, source, target)

    def batches(self, batch_tokens: int) -> PairBatches:
        """In batches of at most so many places a side."""
        return PairBatches(self.source, self.target, batch_tokens=batch_tokens)


def evaluate_translate(
    model: TranslateModel, lines: Iterable[str], *, source: Path | str, search: Search = DEFAULT
) -> Report:
    """Scores of a model on a file's lines."""
    return evaluate_pairs(model, read_pairs(lines, source=source), search)


def evaluate_pairs(
    model: TranslateModel, pairs: Sequence[Pair], search: Search = DEFAULT
) -> Report:
    """Scores of a model on pairs that are read already."""
    found = model.translate([pair.source for pair in pairs], search)
    best = [outputs[0] for outputs in found]
    said = {
        "model": [output.text for output in best],
        "copy": [pair.source for pair in pairs],
        "dictionary": model.word_for_word([pair.source for pair in pairs]),
    }
    scores = {name: output_scores(model, outputs, pairs, search) for name, outputs in said.items()}
    unfinished = sum(not output.finished for output in best)
    return Report(scores.pop("model"), scores, {"unfinished": unfinished})


def output_scores(
    model: TranslateModel, outputs: Sequence[str], pairs: Sequence[Pair], search: Search
) -> list[Score]:
    """BLEU, chrF, exact match and token accuracy of outputs."""
    tokens = model.settings.tokens
    looked = f"width:{search.width}|alpha:{search.alpha:g}|stop:{search.stop}"
    counted = f"examples:{len(pairs)}|level:{tokens.level}|{looked}"
    return transduction_scores(
        outputs,
        [pair.target for pair in pairs],
        counted=counted,
        first="exact_match" if tokens.level == "char" else "bleu",
        tokenize="none" if tokens.pretokenised else "13a",
        split=model.target.tokeniser.split,
    )


def dev_loss(model: TranslateModel, data: PairData) -> float:
    """Mean nats a target token."""
    with torch.inference_mode():
        losses = [model.network.loss(batch) for _, batch in data.batches(BATCH_TOKENS).in_order()]
    return sum(float(loss.nats) for loss in losses) / sum(loss.predictions for loss in losses)
