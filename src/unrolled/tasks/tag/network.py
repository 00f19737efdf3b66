"""The network of a tagger: words to vectors, a recurrent stack over them, tags.

Huang et al. 2015 (arXiv:1508.01991) with characters as Lample et al. 2016 (arXiv:1603.01360) read
them. Each word's tag by itself (softmax), or the tags of a sentence together (CRF).
"""

import torch
from torch import Tensor, nn

from unrolled.nn.crf import CRF
from unrolled.nn.dropout import Dropout
from unrolled.nn.output import Loss, summed_nats
from unrolled.nn.pooling import pool
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.stack import recurrent_stack
from unrolled.tasks.shared.word_embedder import WordEmbedder
from unrolled.tasks.tag.settings import TagSettings
from unrolled.text.word_batch import TagBatch, WordBatch


class TagNetwork(nn.Module):
    """Scores every tag of every word; with a `crf` whole sequences of tags."""

    def __init__(
        self, settings: TagSettings, embedder: WordEmbedder, *, tags: int, crf: CRF | None
    ) -> None:
        super().__init__()
        self.embedder, self.crf = embedder, crf
        self.dropout = Dropout(settings.dropout, variational=settings.variational)
        self.stack = recurrent_stack(settings, embedder.output_size)
        bound = self.stack.output_size**-0.5
        weight = torch.empty(tags, self.stack.output_size)
        self.weight = nn.Parameter(weight if weight.is_meta else weight.uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(tags))

    def loss(self, batch: TagBatch, carry: None = None) -> Loss:
        """−log P of the right tags; a prediction is a word's tag, padding is none."""
        sentences = batch.sentences
        hidden, real = self._hidden(sentences), sentences.mask  # (B, T, H), (B, T)
        if self.crf is None:
            nats = summed_nats(hidden[real], self.weight, self.bias, batch.tags[real])
        else:
            scores = self._scores(hidden)
            nats = self.crf.summed_nats(scores, batch.tags, sentences.lengths)
        return Loss(nats, int(sentences.lengths.sum()), None)

    @torch.inference_mode()
    def best_tags(self, sentences: WordBatch) -> Tensor:
        """The best tag of each word, or the tags of the best sequence: (B, T)."""
        scores = self._asked(sentences)  # (B, T, K)
        if self.crf is None:
            return scores.argmax(dim=2)
        return self.crf.decode(scores, sentences.lengths)[0]

    @torch.inference_mode()
    def probabilities(self, sentences: WordBatch) -> Tensor:
        """P(tag | sentence) of each word: (B, T, K), 0 in the padding."""
        scores = self._asked(sentences)
        if self.crf is not None:
            return self.crf.marginals(scores, sentences.lengths)
        return scores.softmax(dim=2).masked_fill_(~sentences.mask[:, :, None], 0.0)

    @torch.inference_mode()
    def best_sequences(self, sentences: WordBatch, *, n: int) -> tuple[Tensor, Tensor]:
        """The n best sequences (B, n, T) and their log-probabilities (B, n); −∞: there is none."""
        scores, lengths = self._asked(sentences), sentences.lengths
        crf = self.crf or no_transitions(scores.size(2))
        paths, best = crf.n_best(scores, lengths, n=n)
        first = paths[:, 0]
        return paths, best - best[:, :1] - crf.nats(scores, first, lengths)[:, None]

    @torch.inference_mode()
    def means(self, sentences: WordBatch) -> Tensor:
        """The mean of the words' states: (B, H)."""
        return pool(self._hidden(sentences), sentences.lengths, how="mean")

    def _hidden(self, sentences: WordBatch) -> Tensor:
        vectors = self.dropout(self.embedder(sentences))  # (B, T, E)
        hidden, _ = self.stack(vectors, lengths=sentences.lengths)
        dropped: Tensor = self.dropout(hidden)
        return dropped  # (B, T, H)

    def _asked(self, sentences: WordBatch) -> Tensor:
        scores = self._scores(self._hidden(sentences))  # (B, T, K)
        return numbers(scores, of="a sentence", finite=True)

    def _scores(self, hidden: Tensor) -> Tensor:
        return nn.functional.linear(hidden, self.weight, self.bias)  # (B, T, K)


def no_transitions(tags: int) -> CRF:
    """A CRF in which every tag may follow every other alike: a softmax, seen as sequences."""
    crf = CRF(tags)
    for parameter in crf.parameters():
        nn.init.zeros_(parameter)
    return crf
