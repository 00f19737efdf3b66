"""One update: the optimisers, the learning rate, and clipping by global norm."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from unrolled.config.sections import TrainSettings

Parameters = Iterable[nn.Parameter] | Iterable[dict[str, Any]]  # or groups of them


class Adagrad(torch.optim.Optimizer):
    """w ← w − rate · g / (√Σ g² + ε), Σ over all steps so far (Duchi et al. 2011).

    Of a gradient that knows some rows alone the others are not touched: theirs would be 0, and so
    would be their steps. Such a gradient is not decayed.
    """

    def __init__(self, parameters: Parameters, *, lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """One step of every weight that has a gradient."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is not None:
                    self._change(weight, weight.grad, group["lr"], group["weight_decay"])

    def _change(self, weight: Tensor, gradient: Tensor, rate: float, decay: float) -> None:
        sums = self.state[weight].setdefault("sum", torch.zeros_like(weight))
        if not gradient.is_sparse:
            gradient = gradient.add(weight, alpha=decay) if decay else gradient
            sums.addcmul_(gradient, gradient)
            weight.addcdiv_(gradient, sums.sqrt().add_(EPSILON), value=-rate)
            return
        gradient = gradient.coalesce()
        rows, numbers = gradient.indices()[0], gradient.values()
        own = sums[rows].addcmul_(numbers, numbers)
        sums[rows] = own
        weight[rows] = weight[rows].addcdiv_(numbers, own.sqrt().add_(EPSILON), value=-rate)


OPTIMIZERS: dict[str, Callable[[Parameters, TrainSettings], torch.optim.Optimizer]] = {
    "sgd": lambda parameters, train: torch.optim.SGD(
        parameters, lr=train.learning_rate, weight_decay=train.weight_decay, fused=True
    ),
    "adam": lambda parameters, train: torch.optim.Adam(
        parameters, lr=train.learning_rate, weight_decay=train.weight_decay, fused=True
    ),
    "adamw": lambda parameters, train: torch.optim.AdamW(
        parameters, lr=train.learning_rate, weight_decay=train.weight_decay, fused=True
    ),
    "adagrad": lambda parameters, train: Adagrad(
        parameters, lr=train.learning_rate, weight_decay=train.weight_decay
    ),
}

EPSILON = 1e-10  # keeps Adagrad from dividing by 0, as torch does
JUST_BELOW = 1.0 - 2.0**-20  # what rounding may add to a norm, and more

LEAST_SHARE = 1e-4  # of the rate that a linear schedule leaves, as word2vec does


def learning_rate(train: TrainSettings, *, share: float, epoch: int, plateau: float) -> float:
    """The rate in force: train.learning_rate times what the schedule leaves of it."""
    return train.learning_rate * rate_share(train, share=share, epoch=epoch, plateau=plateau)


def rate_share(train: TrainSettings, *, share: float, epoch: int, plateau: float) -> float:
    """What part of train.learning_rate is in force.

    share is how much of the run is over, in 0..1; plateau the factor that flat epochs have earned.
    Cosine: Loshchilov & Hutter 2017, arXiv:1608.03983, without restarts. Decay: Zaremba et al.
    2014, arXiv:1409.2329, a factor an epoch after the first `decay_after`.
    """
    if train.schedule == "cosine":
        return 0.5 * (1.0 + math.cos(math.pi * min(share, 1.0)))
    if train.schedule == "decay":
        return train.decay ** max(0, epoch + 1 - train.decay_after)
    if train.schedule == "linear":
        return max(1.0 - share, LEAST_SHARE)
    return plateau  # 1 for ever where the schedule is constant


def clip_gradients(gradients: Sequence[Tensor], limit: float) -> float:
    """Scale gradients so that their norm taken together is at most `limit`; return what it was.

    Pascanu et al. 2013, arXiv:1211.5063, algorithm 1: if ‖g‖ ≥ θ, g ← θ g / ‖g‖. Below the limit
    nothing is touched.
    """
    norm = global_norm(gradients)
    if math.isfinite(norm) and norm >= limit:
        for gradient in gradients:
            gradient.mul_(JUST_BELOW * limit / norm)
    return norm


def global_norm(gradients: Sequence[Tensor]) -> float:
    """The Euclidean norm of all gradients as one vector.

    Row by row first: one float32 sum over millions of squares would be wrong in the sixth digit.
    A square that overflows float32 is taken again in float64.
    """
    norm = _norm(gradients, None)
    return norm if math.isfinite(norm) else _norm(gradients, torch.float64)


def _norm(gradients: Sequence[Tensor], dtype: torch.dtype | None) -> float:
    parts = map(numbers, gradients)
    rows = [torch.linalg.vector_norm(part, dim=-1, dtype=dtype).flatten() for part in parts]
    return float(torch.linalg.vector_norm(torch.cat(rows), dtype=torch.float64))


def numbers(gradient: Tensor) -> Tensor:
    """The numbers of a gradient; of one that knows some rows alone, those rows."""
    return gradient.coalesce().values() if gradient.is_sparse else gradient
