"""How a batch changes a model: by gradients, clipped, through an optimiser of torch's."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from unrolled.config.sections import TrainSettings
from unrolled.errors import NumericError
from unrolled.training.optimise import OPTIMIZERS, Parameters, clip_gradients, numbers

Carry = tuple[Tensor, ...] | None  # the state that the next batch of a stream begins with


@dataclass(frozen=True)
class Step:
    """What one batch gave."""

    total: float  # the summed loss
    count: int  # of the predictions that it sums
    gradient_norm: float  # before it was clipped


class Update(Protocol):
    """How a batch changes a model; a compiled trainer or several processes may take its place.

    NumericError says what is no longer finite.
    """

    def begin(self) -> None:
        """Steps follow."""
        ...

    def step(self, batch: Any, rate: float) -> Step: ...

    def end(self) -> None:
        """An epoch is over: the model is to be judged, its weights being finite."""
        ...

    def gone_wrong(self, what: str, value: float) -> NumericError:
        """An error that names the value, and the first weight that is not finite."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """All that a checkpoint keeps."""
        ...

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what `tensors` gave; KeyError, RuntimeError, ValueError if it does not fit."""
        ...


class Trainable(Protocol):
    """A model that gradients change: its network has `loss(batch, carry)`."""

    @property
    def network(self) -> nn.Module: ...

    def tensors(self) -> dict[str, Tensor]: ...

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None: ...


class GradientUpdate:
    """Backward pass, clipping by global norm, one step of the optimiser.

    A group of parameters may name the `share` of the learning rate that it takes.
    """

    def __init__(
        self, model: Trainable, train: TrainSettings, *, parameters: Parameters | None = None
    ) -> None:
        self.model, self.clip = model, train.clip
        parameters = model.network.parameters() if parameters is None else parameters
        self.optimizer = OPTIMIZERS[train.optimizer](parameters, train)
        self.carry: Carry = None

    def begin(self) -> None:
        self.model.network.train()

    def end(self) -> None:
        self.model.network.eval()
        self.carry = None
        if wrong := self._not_finite():
            raise NumericError(f"weight {wrong} is not finite")

    def step(self, batch: Any, rate: float) -> Step:
        """One batch at one learning rate."""
        loss = self.model.network.loss(batch, self.carry)  # type: ignore[operator]
        total = loss.total.item()
        if not math.isfinite(total):
            raise self.gone_wrong("the loss", total)
        self.optimizer.zero_grad(set_to_none=True)
        (loss.total / loss.count).backward()
        norm = self._clip()
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group.get("share", 1.0)
        self.optimizer.step()
        self.carry = loss.carry
        return Step(total, loss.count, norm)

    def _clip(self) -> float:
        named = self.model.network.named_parameters()
        gradients = {name: weight.grad for name, weight in named if weight.grad is not None}
        norm = clip_gradients([*gradients.values()], self.clip)
        if not math.isfinite(norm):
            wrong = (name for name, g in gradients.items() if not numbers(g).isfinite().all())
            raise self.gone_wrong(f"the gradient of {next(wrong, 'the whole')}", norm)
        return norm

    def gone_wrong(self, what: str, value: float) -> NumericError:
        wrong = self._not_finite()
        weight = f" (weight {wrong} is not finite)" if wrong else ""
        return NumericError(f"{what} is {value}{weight}")

    def _not_finite(self) -> str | None:
        """The first weight with a value that is none, if there is one."""
        weights = self.model.network.named_parameters()
        return next((name for name, weight in weights if not weight.isfinite().all()), None)

    def tensors(self) -> dict[str, Tensor]:
        """Model, optimiser state, carried state and random state, by name."""
        tensors = {f"model.{name}": value for name, value in self.model.tensors().items()}
        for index, state in self.optimizer.state_dict()["state"].items():
            for key, value in state.items():
                if value is not None:
                    tensors[f"optimizer.{index}.{key}"] = value
        for index, part in enumerate(self.carry or ()):
            tensors[f"carry.{index}"] = part
        tensors["random"] = torch.get_rng_state()
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Back to where a checkpoint was."""
        self.model.load_tensors(_under(tensors, "model."))
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": _by_index(tensors), "param_groups": groups})
        torch.set_rng_state(tensors["random"])
        carry = _under(tensors, "carry.")
        self.carry = tuple(carry[str(index)] for index in range(len(carry))) or None


def _by_index(tensors: Mapping[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under(tensors, "optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    return state


def _under(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors below a name, each in memory of its own, aligned as torch aligns it."""
    return {
        name.removeprefix(prefix): value.clone()
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
