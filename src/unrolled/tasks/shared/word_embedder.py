"""From words to vectors: an embedding of the word beside what its characters say.

characters "lstm"    the two last states of a BiLSTM over the characters (Ling et al. 2015,
                     arXiv:1508.02096; Lample et al. 2016, arXiv:1603.01360)
           "suffix"  the first and the last four characters through one layer: a few features that
                     cost almost nothing
           "none"    the word alone

While training, a word that occurs n times is read as unknown with probability α / (α + n), α being
`word_dropout` (Kiperwasser & Goldberg 2016, arXiv:1603.04351): so the unknown word is learned, and
from rare words above all. With α = 1 that is half of the words that occur once.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from unrolled.errors import not_one_of
from unrolled.nn.cells import LSTMCell
from unrolled.nn.recurrent import Recurrent
from unrolled.text.tokens import PAD, UNK
from unrolled.text.word_batch import WordBatch

LAST_CHARACTERS = 4


class WordEmbedder(nn.Module):
    """Vectors of words; `word_counts` (V,) are those of the training text, PAD and UNK included.

    Draws of a training step come from torch's generator, so a resumed run repeats them.
    """

    word_rates: Tensor

    def __init__(
        self,
        word_counts: Sequence[int],
        character_count: int,
        *,
        embedding_size: int,
        characters: str = "lstm",
        character_embedding_size: int = 25,
        character_hidden_size: int = 25,
        word_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if characters not in CHARACTER_READERS:
            raise not_one_of("model.characters", characters, CHARACTER_READERS)
        self.embedding = embedding(len(word_counts), embedding_size)
        make = CHARACTER_READERS[characters]
        self.characters = make(character_count, character_embedding_size, character_hidden_size)
        self.word_dropout = word_dropout
        counts = torch.tensor(word_counts, dtype=torch.float32, device="cpu")
        rates = word_dropout / (word_dropout + counts) if word_dropout else torch.zeros_like(counts)
        rates[: UNK + 1] = 0.0
        self.register_buffer("word_rates", rates, persistent=False)

    @property
    def output_size(self) -> int:
        """Features of a word."""
        size = self.embedding.embedding_dim
        return size if self.characters is None else size + self.characters.output_size

    def forward(self, batch: WordBatch) -> Tensor:
        """(B, T, output_size)."""
        vectors: Tensor = self.embedding(self._some_unknown(batch.words))  # (B, T, E)
        if self.characters is None:
            return vectors
        forms = self.characters(batch.forms, batch.form_lengths)  # (U, F)
        spelled = functional.embedding(batch.form_index, forms)  # (B, T, F)
        return torch.cat([vectors, spelled], dim=2)

    def _some_unknown(self, words: Tensor) -> Tensor:
        if not self.training or not self.word_dropout:
            return words
        return words.masked_fill(torch.rand(words.shape) < self.word_rates[words], UNK)

    @torch.no_grad()
    def use_vectors(self, rows: Tensor, vectors: Tensor, *, freeze: bool) -> None:
        """Put pretrained vectors (N, E) into these rows (N,); frozen, no row changes any more."""
        self.embedding.weight[rows] = vectors
        self.embedding.weight.requires_grad_(not freeze)


class CharacterStates(nn.Module):
    """The last states of an LSTM over the characters, one a direction."""

    output_size: int

    def __init__(self, characters: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = embedding(characters, embedding_size)
        self.stack = Recurrent(embedding_size, hidden_size, cell=LSTMCell(), bidirectional=True)
        self.output_size = 2 * hidden_size

    def forward(self, forms: Tensor, lengths: Tensor) -> Tensor:
        """forms (U, C), lengths (U,) -> (U, 2H)."""
        _, (h, _) = self.stack(self.embedding(forms), lengths=lengths)  # (2, U, H)
        return torch.cat([h[0], h[1]], dim=1)


class CharacterEnds(nn.Module):
    """tanh of a layer over the embeddings of the first and the last four characters."""

    output_size: int

    def __init__(self, characters: int, embedding_size: int, hidden_size: int) -> None:
        super().__init__()
        self.embedding = embedding(characters, embedding_size)
        self.output_size = 2 * hidden_size
        inputs = (1 + LAST_CHARACTERS) * embedding_size
        self.weight = nn.Parameter(_small(torch.empty(self.output_size, inputs)))
        self.bias = nn.Parameter(torch.zeros(self.output_size))

    def forward(self, forms: Tensor, lengths: Tensor) -> Tensor:
        """forms (U, C), lengths (U,) -> (U, 2H)."""
        places = lengths[:, None] - 1 - torch.arange(LAST_CHARACTERS, device=forms.device)
        last = forms.gather(1, places.clamp(min=0)).masked_fill(places < 0, PAD)  # (U, 4)
        ends = torch.cat([forms[:, :1], last], dim=1)  # (U, 5)
        features = self.embedding(ends).flatten(1)  # (U, 5E)
        return torch.tanh(functional.linear(features, self.weight, self.bias))


Reader = CharacterStates | CharacterEnds


def _no_characters(characters: int, embedding_size: int, hidden_size: int) -> None:
    return None


CHARACTER_READERS: Mapping[str, Callable[[int, int, int], Reader | None]] = {
    "lstm": CharacterStates,
    "suffix": CharacterEnds,
    "none": _no_characters,
}


def embedding(rows: int, size: int) -> nn.Embedding:
    """Rows of about unit length: each number uniform in ±√(3 / size)."""
    # given a weight, it draws none: on the meta device that would import torch's compiler
    return nn.Embedding(rows, size, _weight=_small(torch.empty(rows, size)))


def _small(weight: Tensor) -> Tensor:
    bound = (3.0 / weight.size(1)) ** 0.5
    return weight if weight.is_meta else weight.uniform_(-bound, bound)
