"""Train an n-gram model: count, smooth, score, write. There are no epochs and nothing to resume."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch

from unrolled.config import NgramRun, to_toml
from unrolled.errors import ConfigError, DataError
from unrolled.evaluate.language import encode_known, evaluate_encoded, nameable
from unrolled.evaluate.report import Report
from unrolled.files import Content, clean_temporaries, write_into_folder
from unrolled.models.folder import CARD, METRICS, SETTINGS, WEIGHTS, load
from unrolled.models.language import LanguageModel
from unrolled.models.ngram import count_model, with_unseen
from unrolled.models.ngram_file import tensor_pieces
from unrolled.models.ngram_network import NgramNetwork
from unrolled.models.ngram_scratch import Scratch
from unrolled.text.corpus import read_lines
from unrolled.text.tokens import END, UNK, EncodedLines
from unrolled.training.card import card
from unrolled.training.checkpoint import DATA, RunFolder
from unrolled.training.checkpoint import METRICS as FACT_ROWS
from unrolled.training.ngram_text import Text, apart, encoded_text

OPEN = "Its vocabulary is open: other words are read as <unk>, which has a probability of its own."
CLOSED = "Its vocabulary is closed: any other word has no probability at all."
LINES = "A line is predicted from <s>, which has none, to </s>, which counts as a token."

Paths = Mapping[str, Path | str]  # of the train text, and of dev and test texts if there are any
Scored = dict[str, tuple[Iterable[str], Path | str]]  # texts to score and where they came from


def train_ngram(
    settings: NgramRun, paths: Paths, out: Path, *, encoding: str = "utf-8", resume: bool = False
) -> LanguageModel:
    """Count the n-grams of the training text and write the model to the folder `out`.

    It is scored on the dev and test texts. If there are none, the training text's last lines are
    kept back for that.
    """
    if settings.model.smoothing == "arpa":
        raise ConfigError(
            'model.smoothing is "arpa", but that is for models read from an ARPA file, which '
            "nothing is counted for. Choose another one."
        )
    run = RunFolder(out)
    with run.held():
        if run.is_begun:
            sources = paths if resume else {}
            texts = {name: list(read_lines(p, encoding=encoding)) for name, p in sources.items()}
            run.agree(settings, texts, resume=resume)
        else:
            clean_temporaries(out)
            model, files = _counted(settings, paths, encoding, out)
            write_into_folder(out, files)
            return model
    finished: LanguageModel = load(out)
    return finished


def save_ngram(model: LanguageModel, out: Path, *, made: str) -> None:
    """Write a model that was made elsewhere to a new folder; `made` tells how, for the card."""
    run = RunFolder(out)
    with run.held():
        run.agree(model.settings, {}, resume=False)
        clean_temporaries(out)
        write_into_folder(out, _model_files(model, {}, {}, made=made))


def _counted(
    settings: NgramRun, paths: Paths, encoding: str, folder: Path
) -> tuple[LanguageModel, dict[str, Content]]:
    """The model, and every file of its folder."""
    if settings.train.threads:
        torch.set_num_threads(settings.train.threads)
    scratch = Scratch(settings.train.memory, folder)
    texts = {name: Text(path, encoding) for name, path in paths.items()}
    lines, to_score = _parts(settings, texts)
    encoder, ids = encoded_text(lines, settings, scratch, source=paths["train"])
    model = count_model(settings, encoder, ids, scratch)
    to_score = {name: (nameable(model, text), path) for name, (text, path) in to_score.items()}
    encoded = {
        name: encode_known(model, text, source=source) for name, (text, source) in to_score.items()
    }
    model = with_unseen(model, encoded)
    reports, notes = _scores(model, encoded, to_score)
    made = f"Counted with unrolled from {len(ids):,} tokens, line ends among them.{_guessed(model)}"
    return model, {
        **_model_files(model, reports, notes, made=made),
        DATA: _json({name: text.fingerprint for name, text in texts.items()}),
        FACT_ROWS: json.dumps(_facts(model, len(ids))).encode() + b"\n",
    }


def _parts(settings: NgramRun, texts: Mapping[str, Text]) -> tuple[Iterable[str], Scored]:
    """The lines to count, and the texts to score."""
    train = texts["train"]
    scored: Scored = {name: (text, text.path) for name, text in texts.items() if name != "train"}
    if scored or not settings.train.holdout:
        return train, scored
    lines, held_out = apart(train, settings.train.holdout)
    return lines, {"dev": (held_out, f"{train.path} (its last lines)")}


def _scores(
    model: LanguageModel, texts: Mapping[str, EncodedLines], lines: Scored
) -> tuple[dict[str, Report], dict[str, str]]:
    """A report of each text, or why there is none; and what is to be known of all."""
    reports, notes = {}, {"all": model.network.caution} if model.network.caution else {}
    for name, encoded in texts.items():
        source, held = f"the {name} text", () if model.network.knows_unknown else lines[name][0]
        try:
            reports[name] = evaluate_encoded(model, encoded, source=source, lines=held)
        except DataError as error:  # a token has no chance at all: no reason not to keep the model
            notes[name] = str(error)
    return reports, notes


def _model_files(
    model: LanguageModel, reports: Mapping[str, Report], notes: Mapping[str, str], *, made: str
) -> dict[str, Content]:
    metrics = {**{name: report.as_json() for name, report in reports.items()}, "notes": notes}
    vocabulary = OPEN if model.network.knows_unknown else CLOSED
    told = " ".join([made, vocabulary, LINES, *notes.values()])
    return {
        SETTINGS: to_toml(model.settings).encode(),
        WEIGHTS: tensor_pieces(model.network.state_dict()),
        METRICS: _json(metrics),
        CARD: card(model, reports, made=told).encode(),
        **model.files(),
    }


def _guessed(model: LanguageModel) -> str:
    """A sentence on discounts that are no estimates, if there are any."""
    assert isinstance(model.network, NgramNetwork)
    found = enumerate(model.network.facts.discounts, 1)
    orders = [str(k) for k, discounts in found if discounts.fallback]
    told = f" Too few n-grams for the discounts of order {', '.join(orders)}: they are fixed ones."
    return told if orders else ""


def _facts(model: LanguageModel, tokens: int) -> dict[str, float]:
    counts = model.encoder.vocabulary.counts
    return {
        "lines": counts[END],
        "tokens": tokens,
        "unknown": counts[UNK],
        "vocabulary": len(counts),
        "padding": 0.0,
    }


def _json(value: object) -> bytes:
    return (json.dumps(value, indent=1) + "\n").encode()
