"""N-gram language models, made from counts or from an ARPA file."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unrolled.config import NgramRun
from unrolled.errors import StorageError
from unrolled.models.language import LanguageModel
from unrolled.models.ngram_arpa import arpa_lines
from unrolled.models.ngram_arpa_reader import read_table
from unrolled.models.ngram_counts import count_ngrams
from unrolled.models.ngram_network import NgramFacts, NgramNetwork
from unrolled.models.ngram_query import unseen_shares
from unrolled.models.ngram_scratch import Scratch
from unrolled.models.ngram_table import build_table
from unrolled.text.tokens import EncodedLines, TextEncoder, Vocabulary, WordTokeniser


def count_model(
    settings: NgramRun,
    encoder: TextEncoder,
    ids: NDArray[np.int32],
    scratch: Scratch | None = None,
) -> LanguageModel:
    """The model of a text of ids (N,), each line closed by END."""
    grams = count_ngrams(ids, settings.model.order, len(encoder.vocabulary), scratch)
    table, discounts = build_table(grams, settings.model, scratch)
    facts = NgramFacts(tuple(len(level.words) for level in table.levels), tuple(discounts))
    return LanguageModel(settings, encoder, NgramNetwork.of(settings.model, table, facts))


def with_unseen(model: LanguageModel, texts: dict[str, EncodedLines]) -> LanguageModel:
    """The same model, which also knows what share of each text's n-grams it has never seen."""
    network = model.network
    assert isinstance(network, NgramNetwork)
    seen = np.array(model.encoder.vocabulary.counts) > 0
    shares = {name: unseen_shares(network.table, text.ids, seen) for name, text in texts.items()}
    known = NgramNetwork.of(network.settings, network.table, replace(network.facts, unseen=shares))
    return LanguageModel(model.settings, model.encoder, known)


def write_arpa(model: LanguageModel, path: Path | str) -> None:
    """Write an ARPA file, or replace one: it is whole or absent."""
    assert isinstance(model.network, NgramNetwork)
    path = Path(path)
    staged = path.with_name(f".tmp-{path.name}")
    try:
        with open(staged, "w", encoding="utf-8", newline="\n") as stream:
            stream.writelines(arpa_lines(model.network.table, model.encoder.vocabulary.tokens))
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(staged, path)
    except OSError as error:
        raise StorageError(path, f"cannot be written: {error.strerror}. Check the disk.") from error
    finally:
        staged.unlink(missing_ok=True)


def read_arpa(path: Path | str, *, encoding: str = "utf-8") -> LanguageModel:
    """The model of an ARPA file: words parted by white space, in the order of the file."""
    table, tokens = read_table(path, encoding=encoding)
    settings = NgramRun.model_validate({"model": {"order": table.order, "smoothing": "arpa"}})
    encoder = TextEncoder(WordTokeniser(), Vocabulary(tokens, [0] * len(tokens)), level="word")
    facts = NgramFacts(tuple(len(level.words) for level in table.levels))
    return LanguageModel(settings, encoder, NgramNetwork.of(settings.model, table, facts))
