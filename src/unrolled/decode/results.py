"""The best hypotheses of each sentence so far, as tensors; objects are made once, at the end."""

import math

import torch
from torch import Tensor

from unrolled.decode.hypothesis import Hypothesis, normalised
from unrolled.decode.paths import Paths


class Table:
    """The nbest best of each sentence, best first, of all that were added."""

    def __init__(self, sentences: int, nbest: int, *, alpha: float) -> None:
        self.alpha = alpha
        self.log_p = torch.full((sentences, nbest), -math.inf, dtype=torch.float64)  # −inf: empty
        self.scores = self.log_p.clone()
        self.lengths = torch.zeros(sentences, nbest, dtype=torch.long)
        self.places = torch.zeros(sentences, nbest, dtype=torch.long)  # among the K of its step
        self.added = torch.zeros(sentences, dtype=torch.long)

    def add(self, sentences: Tensor, log_p: Tensor, length: int) -> None:
        """Hypotheses of these sentences, one for each place (n, K); −inf where there is none.

        All have the same length. Of equal scores the one that was there first is the better.
        """
        if not bool((log_p > -math.inf).any()):
            return
        self.added[sentences] += (log_p > -math.inf).sum(dim=1)
        new = {
            "scores": normalised(log_p, length, self.alpha),
            "log_p": log_p,
            "lengths": torch.full(log_p.shape, length),
            "places": torch.arange(log_p.size(1)).expand_as(log_p),
        }
        known = {name: getattr(self, name)[sentences] for name in new}
        both = {name: torch.cat([known[name], new[name]], dim=1) for name in new}  # (n, nbest + K)
        order = both["scores"].sort(dim=1, descending=True, stable=True).indices
        for name, values in both.items():
            table: Tensor = getattr(self, name)
            table[sentences] = values.gather(1, order[:, : table.size(1)])


def hypotheses(finished: Table, cut: Table, paths: Paths) -> list[list[Hypothesis]]:
    """The nbest best of each sentence: finished ones first. One that is empty where there is none.

    The empty one stands for a sentence in which no sequence is possible at all.
    """
    B, nbest = finished.log_p.shape
    log_p = torch.cat([finished.log_p, cut.log_p], dim=1)  # (B, 2 · nbest)
    possible = log_p > -math.inf
    order = possible.int().sort(dim=1, descending=True, stable=True).indices[:, :nbest]
    many = possible.sum(dim=1).clamp(1, nbest)  # (B,)
    sentences, ranks = (torch.arange(nbest) < many[:, None]).nonzero().unbind(dim=1)  # (R,)
    at = order[sentences, ranks]
    lengths, places, scores = (
        torch.cat([getattr(finished, name), getattr(cut, name)], dim=1)[sentences, at]
        for name in ("lengths", "places", "scores")
    )
    log_p, is_finished = log_p[sentences, at], possible[sentences, at] & (at < nbest)
    found: list[list[Hypothesis]] = [[] for _ in range(B)]
    columns = (sentences, log_p, scores, is_finished)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    tokens = paths.trace(sentences, lengths, places)
    for ids, (sentence, total, score, ended) in zip(tokens, rows, strict=True):
        found[sentence].append(Hypothesis(ids[: len(ids) - ended], total, score, ended))
    return found
