"""Sequences that share their beginnings, kept as the tree that they are."""

import torch
from torch import Tensor


class Paths:
    """For each step, which hypothesis of the step before each one continues, and with what token.

    Hypotheses have places 0..K − 1 in their sentence; memory is B·K a step, and no history is
    copied when hypotheses change places.
    """

    def __init__(self, sentences: int, width: int) -> None:
        self.shape = (sentences, width)
        self.parents: list[Tensor] = []
        self.tokens: list[Tensor] = []

    def append(self, live: Tensor, parents: Tensor, tokens: Tensor) -> None:
        """One step (n, K) of the sentences that are still live (n,)."""
        for steps, new in ((self.parents, parents), (self.tokens, tokens)):
            steps.append(torch.zeros(self.shape, dtype=torch.int32).index_copy_(0, live, new.int()))

    def trace(self, sentences: Tensor, lengths: Tensor, places: Tensor) -> list[list[int]]:
        """The tokens of hypotheses (R,): of a sentence, with so many tokens, at a place at last."""
        found = torch.zeros(len(places), len(self.tokens), dtype=torch.int32)  # (R, T)
        places = places.clone()
        for step in range(len(self.tokens) - 1, -1, -1):
            reach = (lengths > step).nonzero()[:, 0]
            at = (sentences[reach], places[reach])
            found[reach, step] = self.tokens[step][at]
            places[reach] = self.parents[step][at].long()
        pairs = zip(found.tolist(), lengths.tolist(), strict=True)
        return [tokens[:length] for tokens, length in pairs]
