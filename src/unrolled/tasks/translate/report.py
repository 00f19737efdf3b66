"""Evaluate a sequence-to-sequence model: its outputs beside the baselines', and what went wrong."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch

from unrolled.errors import ConfigError
from unrolled.evaluate.bleu import BleuSteps, as_text, explain
from unrolled.evaluate.measure import Measure
from unrolled.evaluate.perplexity import safe_exp
from unrolled.evaluate.report import Report
from unrolled.evaluate.score import Score
from unrolled.evaluate.shown import Shown
from unrolled.evaluate.translation import bleu_orders, bleu_tokens, translation_measures
from unrolled.evaluate.views import ByLength
from unrolled.tasks.translate.audit import audit_widths
from unrolled.tasks.translate.data import PairData, Pairs
from unrolled.tasks.translate.model import BATCH_TOKENS, TranslateModel
from unrolled.tasks.translate.search import DEFAULT, Search, chosen_search
from unrolled.tasks.translate.settings import ScoringOptions
from unrolled.text.parallel import Pair
from unrolled.training.clock import Dev


def evaluate_translation(model: TranslateModel, data: Pairs, options: ScoringOptions) -> Shown:
    """Scores; or whose fault wrong outputs are, or BLEU of one of them step by step."""
    search = chosen_search(options)
    if options.explain_bleu is not None:
        return explained_bleu(model, data, options.explain_bleu, search)
    if options.audit:
        return audit_widths(model, data.pairs, search, output_scores)
    return evaluate_pairs(model, data.pairs, search)


def evaluate_pairs(
    model: TranslateModel, pairs: Sequence[Pair], search: Search = DEFAULT
) -> Report:
    """Scores of a model on pairs."""
    sources = [pair.source for pair in pairs]
    best = [outputs[0] for outputs in model.translate(sources, search)]
    said = {"model": [output.text for output in best], "copy": sources}
    if model.has_dictionary:
        said["dictionary"] = model.word_for_word(sources)
    scores = {name: output_scores(model, outputs, pairs, search) for name, outputs in said.items()}
    return Report.of(scores, {"unfinished": sum(not output.finished for output in best)})


def output_scores(
    model: TranslateModel, outputs: Sequence[str], pairs: Sequence[Pair], search: Search
) -> list[Score]:
    """BLEU, chrF, exact match, token accuracy and error rates of outputs."""
    return [measure.score for measure in output_measures(model, outputs, pairs, search)]


def measured_pairs(model: TranslateModel, pairs: Sequence[Pair]) -> list[Measure]:
    """The same of what a model makes of pairs, with what the scores are made of."""
    found = model.translate([pair.source for pair in pairs])
    return output_measures(model, [outputs[0].text for outputs in found], pairs, DEFAULT)


def by_length(model: TranslateModel, pairs: Sequence[Pair]) -> ByLength:
    """The first score by how long the sources are."""
    measure, *_ = measured_pairs(model, pairs)
    lengths = model.source.encode_lines([pair.source for pair in pairs]).lengths - 1
    return ByLength.of(measure, lengths, unit="tokens in the source")


def output_measures(
    model: TranslateModel, outputs: Sequence[str], pairs: Sequence[Pair], search: Search
) -> list[Measure]:
    """Measures of outputs that a search found."""
    tokens = model.settings.tokens
    counted = {
        "examples": len(pairs),
        "level": tokens.level,
        "width": search.width,
        "alpha": f"{search.alpha:g}",
        "stop": search.stop,
    }
    return translation_measures(
        outputs,
        [pair.target for pair in pairs],
        counted=counted,
        first="exact_match" if tokens.level == "char" else "bleu",
        tokenize=bleu_tokeniser(model),
        split=model.target.tokeniser.split,
    )


def bleu_tokeniser(model: TranslateModel) -> str:
    """How sacrebleu is to cut a model's outputs: not at all where they are cut already."""
    return "none" if model.settings.tokens.pretokenised else "13a"


def dev_measure(model: TranslateModel, data: PairData) -> Dev:
    """Perplexity a target token; the cost is its logarithm."""
    with torch.inference_mode():
        losses = [model.network.loss(batch) for _, batch in data.batches(BATCH_TOKENS).in_order()]
    nats = sum(float(loss.total) for loss in losses) / sum(loss.count for loss in losses)
    return Dev("perplexity", safe_exp(nats), nats)


class ExplainedBleu(NamedTuple):
    """BLEU of one output, from n-grams to brevity."""

    source: str
    steps: BleuSteps

    def text(self) -> str:
        """As a page to read."""
        return f"source       {self.source}\n{as_text(self.steps)}"

    def as_json(self) -> dict[str, Any]:
        """The parts of the formula."""
        bleu = self.steps.bleu
        precisions = [{"n": p.n, "right": p.clipped, "all": p.total} for p in bleu.precisions]
        return {
            "source": self.source,
            "output": " ".join(self.steps.candidate),
            "references": [" ".join(tokens) for tokens in self.steps.references],
            "precisions": precisions,
            "brevity_penalty": bleu.brevity_penalty,
            "bleu": bleu.value,
            "smoothed": bleu.smoothed,
        }

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("--out was given, but it draws the audit. Add --audit.")


def explained_bleu(
    model: TranslateModel, data: Pairs, number: int, search: Search
) -> ExplainedBleu:
    """BLEU of the pair of that number, counted from 1, of the tokens that reports count."""
    if number > len(data.pairs):
        raise ConfigError(
            f"--explain-bleu is {number}, but {data.source} has {len(data.pairs)} pairs."
        )
    pair = data.pairs[number - 1]
    ((found, *_),) = model.translate([pair.source], search)
    cut = bleu_tokens(bleu_tokeniser(model))
    said, true = cut(found.text), cut(pair.target)
    return ExplainedBleu(pair.source, explain(said, [true], orders=bleu_orders([true])))
