"""N-gram language models, made from counts or from an ARPA file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.ngrams.arpa import arpa_lines
from unrolled.ngrams.arpa_reader import read_table
from unrolled.ngrams.build import build
from unrolled.ngrams.query import unseen_shares
from unrolled.ngrams.scratch import Scratch
from unrolled.store.files import write_file
from unrolled.store.large_tensors import tensor_pieces
from unrolled.store.manifest import Content
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.tasks.shared.ngram_network import NgramFacts, NgramNetwork
from unrolled.text.source import Source
from unrolled.text.tokens import EncodedLines, TextEncoder, Vocabulary, WordTokeniser

OPEN = "Its vocabulary is open: other words are read as <unk>, which has a probability of its own."
CLOSED = "Its vocabulary is closed: any other word has no probability at all."
LINES = "A line is predicted from <s>, which has none, to </s>, which counts as a token."
FROM_ARPA = "Read with unrolled from an ARPA file."
SCORES = "These are scores, not probabilities; what reads the file will not know."


class NgramLanguageModel(LanguageModel):
    """The next token from the last order − 1, by counts."""

    network_type = NgramNetwork
    network: NgramNetwork

    def weights(self) -> Content:
        """The tensors as the bytes of a safetensors file, none of them copied."""
        return tensor_pieces(self.tensors())

    def made(self, how: str) -> str:
        """How it came about, and what there is to know of its vocabulary and its lines."""
        return " ".join([how, OPEN if self.network.knows_unknown else CLOSED, LINES])


def count_model(
    settings: NgramRun,
    encoder: TextEncoder,
    ids: NDArray[np.int32],
    scratch: Scratch | None = None,
) -> NgramLanguageModel:
    """The model of a text of ids (N,), each line closed by END."""
    table, discounts = build(ids, len(encoder.vocabulary), settings.model, scratch)
    facts = NgramFacts(tuple(len(level.words) for level in table.levels), tuple(discounts))
    return NgramLanguageModel(settings, encoder, NgramNetwork.of(settings.model, table, facts))


def with_unseen(model: NgramLanguageModel, texts: Mapping[str, EncodedLines]) -> NgramLanguageModel:
    """The same model, which also knows what share of each text's n-grams it has never seen."""
    network = model.network
    seen = np.array(model.encoder.vocabulary.counts) > 0
    shares = {name: unseen_shares(network.table, text.ids, seen) for name, text in texts.items()}
    known = NgramNetwork.of(network.settings, network.table, replace(network.facts, unseen=shares))
    return NgramLanguageModel(model.settings, model.encoder, known)


def write_arpa(model: NgramLanguageModel, path: Path | str) -> str:
    """Write an ARPA file, or replace one: it is whole or absent. What is to be known of it."""
    lines = arpa_lines(model.network.table, model.encoder.vocabulary.tokens)
    write_file(Path(path), (line.encode() for line in lines))
    return SCORES if model.settings.model.smoothing == "stupid" else ""


def read_arpa(source: Source) -> tuple[NgramLanguageModel, str]:
    """The model of an ARPA file, its words in the file's order, and how it came about."""
    table, tokens = read_table(source.path, encoding=source.encoding)
    settings = NgramRun.model_validate({"model": {"order": table.order, "smoothing": "arpa"}})
    encoder = TextEncoder(WordTokeniser(), Vocabulary(tokens, [0] * len(tokens)), level="word")
    facts = NgramFacts(tuple(len(level.words) for level in table.levels))
    model = NgramLanguageModel(settings, encoder, NgramNetwork.of(settings.model, table, facts))
    return model, model.made(f"{FROM_ARPA}{_never_found(tokens)}")


def _never_found(tokens: Sequence[str]) -> str:
    """What to say of words that no text has, being parted there."""
    count = sum(token.split() != [token] for token in tokens)
    if not count:
        return ""
    return (
        f" {count:,} of its words hold a no-break space or the like; texts are parted there, so "
        "these words are never found."
    )
