"""One sequence for each row, token after token: the likeliest each time (greedy), or drawn."""

import math
from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import count
from typing import NamedTuple

import torch
from torch import Tensor

from unrolled.decode.hypothesis import (
    Hypothesis,
    check_alpha,
    check_limits,
    normalised,
    not_a_number,
)
from unrolled.decode.sample import Sampling
from unrolled.decode.stepper import State, Stepper


def greedy(
    model: Stepper[State],
    state: State,
    first: Tensor,
    *,
    end: int,
    limits: Tensor,
    banned: Collection[int] = (),
    alpha: float = 0.0,
) -> list[Hypothesis]:
    """Take the likeliest token, feed it back, and so on until END: one hypothesis a row.

    first (N,) is read first; limits (N,) is how many tokens each row may have, END among them. Of
    tokens that are equally likely the first is taken. It is beam search of width 1, and cheaper.
    """
    sampling = Sampling(temperature=0.0, banned=banned)
    return sample_sequences(
        model, state, first, end=end, limits=limits, sampling=sampling, alpha=alpha
    )


@torch.inference_mode()
def sample_sequences(
    model: Stepper[State],
    state: State,
    first: Tensor,
    *,
    end: int,
    limits: Tensor,
    sampling: Sampling,
    generator: torch.Generator | None = None,
    alpha: float = 0.0,
) -> list[Hypothesis]:
    """Draw a token, feed it back, and so on until END: one hypothesis a row.

    first (N,) is read first; limits (N,) is how many tokens each row may have, END among them. The
    log-probability is the model's own, whatever the temperature. A row that has ended costs nothing
    more; so what is drawn for one row depends on when the others end.
    """
    check_alpha(alpha)
    check_limits(limits)
    total = torch.zeros(len(first), dtype=torch.float64)
    lengths = torch.zeros(len(first), dtype=torch.long)
    columns = []
    for drawn in _draw(
        model, state, first, end=end, limits=limits, sampling=sampling, generator=generator
    ):
        total[drawn.rows] += drawn.log_p
        lengths[drawn.rows] += 1
        columns.append(torch.full_like(first, end).index_copy_(0, drawn.rows, drawn.tokens))
    tokens = torch.stack(columns, dim=1) if columns else first[:, None]  # (N, T)
    rows = zip(tokens.tolist(), total.tolist(), lengths.tolist(), strict=True)
    return [_hypothesis(ids[:length], log_p, end, alpha) for ids, log_p, length in rows]


class _Drawn(NamedTuple):
    """What one step adds to the rows that are still open; each (n,)."""

    rows: Tensor
    tokens: Tensor
    log_p: Tensor


def _draw(
    model: Stepper[State],
    state: State,
    token: Tensor,
    *,
    end: int,
    limits: Tensor,
    sampling: Sampling,
    generator: torch.Generator | None,
) -> Iterator[_Drawn]:
    rows, banned = torch.arange(len(token)), torch.tensor([*sampling.banned], dtype=torch.long)
    sampling = replace(sampling, banned=())  # they are ruled out in place, without a copy
    for length in count(1):
        if not len(rows):
            return
        log_p, state = model.step(token, state)  # (n, V)
        token = sampling.draw(log_p.index_fill_(1, banned, -math.inf), generator)  # (n,)
        own = log_p.gather(1, token[:, None])[:, 0].double()  # (n,)
        yield _Drawn(rows, token, own)
        open_rows = ((token != end) & (own > -math.inf) & (limits[rows] > length)).nonzero()[:, 0]
        if len(open_rows) < len(rows):
            rows, token = rows[open_rows], token[open_rows]
            state = model.select(state, open_rows)


def _hypothesis(tokens: list[int], log_p: float, end: int, alpha: float) -> Hypothesis:
    """The sequence of these tokens, END among them if it came."""
    if math.isnan(log_p):
        raise not_a_number()
    if log_p == -math.inf:
        return Hypothesis([], log_p, log_p, finished=False)
    finished = tokens[-1] == end
    score = normalised(log_p, len(tokens), alpha)
    return Hypothesis(tokens[: len(tokens) - finished], log_p, score, finished)
