"""Ancestral sampling: draw a token, feed it back, draw the next."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from unrolled.decode.hypothesis import not_a_number
from unrolled.decode.stepper import State, Stepper
from unrolled.decode.topk import likeliest
from unrolled.errors import ConfigError, NumericError, number, whole

COLDEST, HOTTEST = 1e-4, 1e4  # temperatures; beyond them, float32 leaves nothing to draw


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Which tokens may be drawn, and how boldly.

    temperature 0 takes the likeliest token; top_k keeps the K likeliest (Fan et al. 2018,
    arXiv:1805.04833); top_p the smallest set that holds this share of the probability (Holtzman et
    al. 2020, arXiv:1904.09751). They act in this order: banned, temperature, top_k, top_p.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    banned: Collection[int] = ()

    def __post_init__(self) -> None:
        number("temperature", self.temperature)
        if self.temperature != 0.0 and not COLDEST <= self.temperature <= HOTTEST:
            raise ConfigError(
                f"temperature is {self.temperature}, but must be 0 or in {COLDEST:g}..{HOTTEST:g}."
            )
        if self.top_k is not None and whole("top_k", self.top_k) < 1:
            raise ConfigError(f"top_k is {self.top_k}, but must be at least 1.")
        if self.top_p is not None and not 0.0 < number("top_p", self.top_p) <= 1.0:
            raise ConfigError(f"top_p is {self.top_p}, but must be in (0, 1].")

    def filtered(self, log_p: Tensor) -> Tensor:
        """Log-probabilities (N, V), not normalised, that are −inf where nothing may be drawn."""
        if self.banned:
            log_p = log_p.index_fill(1, torch.tensor(list(self.banned)), -math.inf)
        if self.temperature not in (0.0, 1.0):
            log_p = log_p / self.temperature
        if self.top_k is not None and self.top_k < log_p.size(1):
            least = log_p.topk(self.top_k).values[:, -1:]  # (N, 1)
            log_p = log_p.masked_fill(log_p < least, -math.inf)
        if self.top_p is not None and self.top_p < 1.0:
            log_p = _nucleus(log_p, self.top_p)
        return log_p

    def draw(self, log_p: Tensor, generator: torch.Generator | None) -> Tensor:
        """One token a row: (N, V) -> (N,)."""
        allowed = self.filtered(log_p)
        largest = allowed.amax(dim=1)
        if bool(largest.isnan().any()):
            raise not_a_number()
        if self.temperature == 0.0:
            return likeliest(allowed)
        if bool((largest == -math.inf).any()):
            raise NumericError(
                "No token has a chance to come next, so nothing can be drawn. Allow more of them, "
                "or train the model again."
            )
        return torch.multinomial(allowed.softmax(dim=1), 1, generator=generator)[:, 0]


def sample(
    model: Stepper[State],
    state: State,
    token: Tensor,
    *,
    sampling: Sampling,
    generator: torch.Generator | None = None,
) -> Iterator[Tensor]:
    """Draw forever: feed token (N,), yield the next tokens (N,), and so on."""
    while True:
        log_p, state = model.step(token, state)  # (N, V)
        token = sampling.draw(log_p, generator)
        yield token


def _nucleus(log_p: Tensor, share: float) -> Tensor:
    ordered, tokens = log_p.sort(dim=1, descending=True)
    p = ordered.softmax(dim=1)
    beyond = p.cumsum(dim=1) - p >= share  # what comes before already holds the share
    beyond[:, 0] = False  # also of a share that rounds to nothing
    return torch.full_like(log_p, -math.inf).scatter(
        1, tokens, ordered.masked_fill(beyond, -math.inf)
    )
