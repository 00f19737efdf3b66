"""Begin with word vectors that were learned elsewhere, frozen or to be trained on."""

from collections.abc import Sequence

import torch
from torch import nn

from unrolled.errors import ConfigError
from unrolled.tasks.shared.word_vectors import pretrained
from unrolled.text.vectors import WordVectors
from unrolled.text.vocabulary import SPECIALS
from unrolled.text.words import JOINER


def check_width(vectors: WordVectors, size: int) -> None:
    """Refuse vectors of another length than a model's embeddings."""
    if vectors.width != size:
        raise ConfigError(
            f"model.embedding_size is {size}, but the vectors have {vectors.width} numbers. Set it "
            f"to {vectors.width}."
        )


def begin_with_vectors(
    embedding: nn.Embedding,
    tokens: Sequence[str],
    path: str | None,
    *,
    level: str,
    freeze: bool,
    tied: bool = False,
) -> int:
    """Put the vectors of a file or folder into the rows of an embedding; how many tokens have one.

    A token takes the vector of its exact form, else that of its form in lower case; one that has
    neither keeps the small random vector it began with. Frozen, no row changes in training.
    """
    if path is None:
        return 0
    _check(level, freeze=freeze, tied=tied)
    words = [_plain(token) for token in tokens[len(SPECIALS) :]]
    wanted = {form for word in words for form in (word, word.lower())}
    vectors = pretrained(path, wanted=wanted, most=0)
    check_width(vectors, embedding.embedding_dim)
    places, rows = vectors.rows_for(words)
    with torch.no_grad():
        chosen = torch.from_numpy(places + len(SPECIALS))
        embedding.weight[chosen] = torch.from_numpy(vectors.vectors[rows])
    embedding.weight.requires_grad_(not freeze)
    return len(places)


def _plain(token: str) -> str:
    """A token as the vectors' text had it: without the mark that no space stands before it."""
    return token.removeprefix(JOINER) or token


def _check(level: str, *, freeze: bool, tied: bool) -> None:
    if level != "word":
        raise ConfigError(
            f'model.vectors names vectors of words, but tokens.level is "{level}". Set it to '
            '"word", or leave the vectors out.'
        )
    if freeze and tied:
        raise ConfigError(
            "model.freeze_vectors is true and so is model.tied: the softmax would be frozen with "
            "the embedding. Set model.tied to false."
        )
