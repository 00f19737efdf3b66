"""Batches of words with their characters.

The characters of a batch stand in it once for each distinct form, not once for each word: half of
a text's words are a few short ones, and what reads characters reads each of them once.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unrolled.text.buckets import Buckets, Places
from unrolled.text.ragged import padded
from unrolled.text.word_encoder import EncodedWords
from unrolled.text.words import Ids


@dataclass(frozen=True)
class WordBatch:
    """Sentences of unequal length, padded on the right, and their distinct forms."""

    words: Tensor  # (B, T) int64
    lengths: Tensor  # (B,) int64, each in 0..T
    forms: Tensor  # (U, C) int64, the characters of each form, padded on the right
    form_lengths: Tensor  # (U,) int64, each in 1..C
    form_index: Tensor  # (B, T) int64, the row of forms that each word has; 0 in the padding

    @property
    def mask(self) -> Tensor:
        """(B, T) bool, True where there is a word."""
        places = torch.arange(self.words.size(1), device=self.words.device)
        return places < self.lengths[:, None]


class WordBatches(Buckets[WordBatch]):
    """Sentences of similar length in each batch, at most `batch_tokens` places."""

    def __init__(self, encoded: EncodedWords, *, batch_tokens: int) -> None:
        super().__init__(encoded.lengths, batch_tokens=batch_tokens)
        self.encoded = encoded
        self._starts = encoded.ends - encoded.lengths
        self._form_lengths = encoded.form_lengths
        self._form_starts = encoded.form_ends - self._form_lengths

    def build(self, rows: Places) -> WordBatch:
        """The batch of these sentences (B,), in this order."""
        starts, lengths = self._starts[rows], self.lengths[rows]
        forms = padded(self.encoded.forms, starts, lengths, fill=-1)  # (B, T)
        here, index = np.unique(forms, return_inverse=True)
        beside = int(here[:1].sum() < 0)  # 1 if the padding is the first of the distinct values
        here, index = here[beside:], np.maximum(index.reshape(forms.shape) - beside, 0)
        return WordBatch(
            torch.from_numpy(padded(self.encoded.words, starts, lengths)),
            torch.from_numpy(lengths),
            torch.from_numpy(self._characters(here)),
            torch.from_numpy(self._form_lengths[here]),
            torch.from_numpy(index),
        )

    def _characters(self, forms: Places) -> Places:
        """The characters of these forms: (U, C)."""
        if not len(forms):
            return np.zeros((0, 1), dtype=np.int64)
        return padded(self.encoded.characters, self._form_starts[forms], self._form_lengths[forms])


@dataclass(frozen=True)
class TagBatch:
    """Sentences and the tag of each word."""

    sentences: WordBatch
    tags: Tensor  # (B, T) int64, 0 in the padding


class TagBatches(Buckets[TagBatch]):
    """The same with tags (N,), one for each word."""

    def __init__(self, encoded: EncodedWords, tags: Ids, *, batch_tokens: int) -> None:
        super().__init__(encoded.lengths, batch_tokens=batch_tokens)
        self.encoded = encoded
        self._words = WordBatches(encoded, batch_tokens=batch_tokens)
        self._starts, self._tags = encoded.ends - encoded.lengths, tags

    def build(self, rows: Places) -> TagBatch:
        """The batch of these sentences (B,), in this order."""
        tags = padded(self._tags, self._starts[rows], self.lengths[rows])
        return TagBatch(self._words.build(rows), torch.from_numpy(tags))
