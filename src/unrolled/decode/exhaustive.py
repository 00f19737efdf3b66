"""All sequences, tried: what a search would find if it pruned nothing. For small cases only."""

import math
from collections.abc import Collection

import torch
from torch import Tensor

from unrolled.decode.hypothesis import Hypothesis, check_alpha, normalised
from unrolled.decode.stepper import State, Stepper
from unrolled.errors import ConfigError

MAX_SEQUENCES = 1_000_000


@torch.inference_mode()
def exhaustive(
    model: Stepper[State],
    state: State,
    first: Tensor,
    *,
    end: int,
    limit: int,
    alpha: float = 0.0,
    nbest: int | None = None,
    banned: Collection[int] = (),
) -> list[Hypothesis]:
    """Every possible sequence of one sentence, best first, in the order of beam search.

    first (1,) is read first, by a state of one row. A sequence ends with END or is cut at the
    limit, END counted; finished ones come first. Those of probability 0 are left out.
    """
    check_alpha(alpha)
    if limit < 1:
        raise ConfigError(f"limit is {limit}, but must be at least 1: END counts as a token.")
    never = torch.tensor([*banned], dtype=torch.long)
    tokens, total = first[:, None], torch.zeros(1, dtype=torch.float64)  # (N, t), (N,)
    finished: list[Hypothesis] = []
    while tokens.size(1) <= limit and len(tokens):
        log_p, state = model.step(tokens[:, -1], state)  # (N, V)
        _check_amount(log_p.size(1), limit)
        totals = total[:, None] + log_p.index_fill_(1, never, -math.inf)  # (N, V)
        rows, token = (totals > -math.inf).nonzero().unbind(dim=1)  # (N',)
        tokens = torch.cat([tokens[rows], token[:, None]], dim=1)  # (N', t + 1)
        total, ends = totals[rows, token], token == end
        finished += _made(tokens[ends], total[ends], alpha=alpha, finished=True)
        tokens, total, state = tokens[~ends], total[~ends], model.select(state, rows[~ends])
    cut = _made(tokens, total, alpha=alpha, finished=False)
    return (_ranked(finished) + _ranked(cut))[:nbest]


def _check_amount(V: int, limit: int) -> None:
    if V**limit > MAX_SEQUENCES:
        raise ConfigError(
            f"There are {V}^{limit} sequences of {limit} out of {V} tokens, but at most "
            f"{MAX_SEQUENCES} are tried. Lower the limit, or use beam search."
        )


def _made(tokens: Tensor, total: Tensor, *, alpha: float, finished: bool) -> list[Hypothesis]:
    """Hypotheses of equal length from tokens (N, 1 + length), the first of which was given."""
    scores = normalised(total, max(1, tokens.size(1) - 1), alpha)
    own = tokens[:, 1 : tokens.size(1) - finished]
    rows = zip(own.tolist(), total.tolist(), scores.tolist(), strict=True)
    return [Hypothesis(ids, log_p, score, finished) for ids, log_p, score in rows]


def _ranked(found: list[Hypothesis]) -> list[Hypothesis]:
    return sorted(found, key=lambda hypothesis: -hypothesis.score)
