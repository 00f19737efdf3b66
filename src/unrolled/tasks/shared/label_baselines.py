"""What a model of labels must beat, kept with it so that any new data can be scored beside them.

majority         the share of each label among the training examples, whatever the text
mean_embedding   softmax of the mean of the tokens' embeddings. W · mean(e_t) = mean(W e_t): one
                 score a token and label is all there is to keep
linear           logistic regression on n-grams of tokens, tf-idf weighted: (1 + ln tf) · idf,
                 rows of length 1, the label's questions asked one by one

The two learned ones are tables of numbers; linear_baseline.py and the rooms' jobs fit them.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from reprlib import repr as short
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.text.labels import Labels
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import END, START, UNK
from unrolled.text.vocabulary import parse_object
from unrolled.text.words import Ids, Lengths

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BASELINES_FILE = "baselines.json"
MAX_NUMBERS = 8_000_000  # in a table: 32 megabytes
MAX_FEATURES = 200_000
ORDERS = {"char": 5, "word": 2, "bpe": 2}  # the longest n-gram of each token level
Floats = NDArray[np.float64]
Keys = NDArray[np.int64]


class TokenRows(Protocol):
    """Texts as ids, one after the other."""

    @property
    def rows(self) -> Ragged: ...

    @property
    def ids(self) -> Ids: ...

    @property
    def lengths(self) -> Lengths: ...

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class BaselineSizes:
    """How large the tables are, which a model folder says before they are read."""

    features: int  # n-grams of the linear model
    order: int  # tokens of the longest of them
    tokens: int  # the commonest, of the mean-embedding model; the others are unknown to it

    def to_json(self) -> str:
        """The same text for the same sizes."""
        return json.dumps(self.__dict__) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(text, keys={"features", "order", "tokens"})
        for name, most in (("features", MAX_FEATURES), ("order", 8), ("tokens", MAX_NUMBERS)):
            if type(value[name]) is not int or not 1 <= value[name] <= most:
                raise ValueError(f"{name} is {short(value[name])}, but must be in 1..{most}")
        return cls(**value)


class Baselines(nn.Module):
    """The tables; zero until they are fitted or read."""

    keys: Tensor
    idf: Tensor
    linear_weight: Tensor
    linear_bias: Tensor
    mean_weight: Tensor
    mean_bias: Tensor

    def __init__(self, labels: Labels, sizes: BaselineSizes, *, vocabulary_size: int) -> None:
        super().__init__()
        self.labels, self.sizes, self.vocabulary_size = labels, sizes, vocabulary_size
        K, F = len(labels), sizes.features
        self.register_buffer("keys", torch.zeros(F, dtype=torch.int64))
        self.register_buffer("idf", torch.zeros(F))
        self.register_buffer("linear_weight", torch.zeros(K, F))
        self.register_buffer("linear_bias", torch.zeros(K))
        self.register_buffer("mean_weight", torch.zeros(sizes.tokens, K))
        self.register_buffer("mean_bias", torch.zeros(K))

    @torch.no_grad()
    def keep_linear(self, keys: Keys, idf: Floats, weight: Floats, bias: Floats) -> None:
        """Take over a fitted linear model: keys and idf (F,), weight (K, F), bias (K,)."""
        self.keys.copy_(torch.from_numpy(keys))
        self.idf.copy_(torch.from_numpy(idf))
        self.linear_weight.copy_(torch.from_numpy(weight))
        self.linear_bias.copy_(torch.from_numpy(bias))

    @torch.no_grad()
    def keep_mean(self, embedding: Tensor, weight: Tensor, bias: Tensor) -> None:
        """Take over a fitted mean-embedding model: (V, E), (K, E) and (K,)."""
        self.mean_weight.copy_(embedding[: self.sizes.tokens] @ weight.t())
        self.mean_bias.copy_(bias)

    def files(self) -> dict[str, bytes]:
        """What says how large they are."""
        return {BASELINES_FILE: self.sizes.to_json().encode()}

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], labels: Labels, *, vocabulary_size: int
    ) -> Self | None:
        """Tables still to be read; None where the folder has none."""
        if BASELINES_FILE not in files:
            return None
        try:
            sizes = BaselineSizes.from_json(files[BASELINES_FILE].decode())
        except ValueError as error:
            raise ValueError(f"{BASELINES_FILE}: {error}") from error
        if not UNK < sizes.tokens <= vocabulary_size or vocabulary_size**sizes.order >= 2**63:
            raise ValueError(
                f"{BASELINES_FILE}: {sizes.tokens} tokens and n-grams of {sizes.order} do not go "
                f"with a vocabulary of {vocabulary_size}"
            )
        return cls(labels, sizes, vocabulary_size=vocabulary_size)

    def probabilities(self, texts: TokenRows) -> dict[str, Floats]:
        """What each of them says of texts: (N, K) by name."""
        return {
            "majority": majority(self.labels, texts),
            "mean_embedding": self._choose(self._mean_logits(texts), softmax=True),
            "linear": self._choose(self._linear_logits(texts), softmax=False),
        }

    def _mean_logits(self, texts: TokenRows) -> Floats:
        ids = np.where(texts.ids < self.sizes.tokens, texts.ids, UNK)
        weight = self.mean_weight.double().numpy()
        total = np.zeros((len(texts), len(self.labels)))
        flat, rows = texts.rows.places()
        np.add.at(total, rows, weight[ids[flat]])
        return np.asarray(total / texts.lengths[:, None] + self.mean_bias.double().numpy())

    def _linear_logits(self, texts: TokenRows) -> Floats:
        grams = n_grams(texts, order=self.sizes.order, size=self.vocabulary_size)
        features = tf_idf(grams, self.keys.numpy(), self.idf.double().numpy())
        weight = self.linear_weight.double().numpy()
        return np.asarray(features @ weight.T + self.linear_bias.double().numpy())

    def _choose(self, logits: Floats, *, softmax: bool) -> Floats:
        if softmax and not self.labels.multi_label:
            return np.asarray(torch.from_numpy(logits).softmax(dim=1).numpy())
        yes = np.asarray(torch.from_numpy(logits).sigmoid().numpy())
        return yes if self.labels.multi_label else yes / yes.sum(axis=1, keepdims=True)


def majority(labels: Labels, texts: TokenRows) -> Floats:
    """The same for every text: (N, K)."""
    return np.broadcast_to(labels.shares, (len(texts), len(labels)))


@dataclass(frozen=True)
class Grams:
    """All n-grams of texts, each as one number."""

    keys: Keys  # (M,)
    rows: Keys  # (M,) the text of each
    texts: int


def n_grams(texts: TokenRows, *, order: int, size: int) -> Grams:
    """Every run of 1 to `order` tokens, START and END of each text among them.

    A run is a number in base `size`. No token is 0, so runs of unlike length are unlike numbers.
    """
    flat, rows = texts.rows.places()
    ids = texts.ids[flat].astype(np.int64)
    ends = np.cumsum(texts.lengths)
    ids = np.insert(ids, ends, END)
    rows = np.insert(rows, ends, np.arange(len(texts)))
    starts = np.concatenate([[0], (ends + np.arange(1, len(texts) + 1))[:-1]])
    ids, rows = np.insert(ids, starts, START), np.insert(rows, starts, np.arange(len(texts)))
    keys, key_rows, key = [ids], [rows], ids
    for n in range(1, order):
        key = key[:-1] * size + ids[n:]
        inside = rows[:-n] == rows[n:]
        keys.append(key[inside])
        key_rows.append(rows[n:][inside])
    return Grams(np.concatenate(keys), np.concatenate(key_rows), len(texts))


def safe_order(level: str, size: int) -> int:
    """The longest n-gram of a level whose number still fits into 63 bits."""
    return max(n for n in range(1, ORDERS[level] + 1) if size**n < 2**63)


def tf_idf(grams: Grams, keys: Keys, idf: Floats) -> "csr_array":
    """Texts (N, F) as weighted n-grams; `keys` (F,) are sorted, and others are passed over."""
    from scipy.sparse import csr_array

    places = np.minimum(np.searchsorted(keys, grams.keys), len(keys) - 1)
    known = keys[places] == grams.keys
    where = grams.rows[known].astype(np.int32), places[known].astype(np.int32)
    table = csr_array((np.ones(len(where[0])), where), shape=(grams.texts, len(keys)))
    table.sum_duplicates()
    table.data = (1.0 + np.log(table.data)) * idf[table.indices]
    lengths = np.sqrt(np.add.reduceat(np.append(table.data**2, 0.0), table.indptr[:-1]))
    lengths[np.diff(table.indptr) == 0] = 1.0  # reduceat gives an empty row its neighbour's value
    table.data /= np.repeat(lengths, np.diff(table.indptr))
    return table
