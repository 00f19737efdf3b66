"""Everything of a run that is a tensor, out of its places and back into them."""

from pathlib import Path

import torch
from torch import Tensor, nn

from unrolled.errors import ModelError

Carry = tuple[Tensor, ...] | None  # the state that the next batch of a stream begins with


def run_tensors(
    network: nn.Module, optimizer: torch.optim.Optimizer, carry: Carry
) -> dict[str, Tensor]:
    """Weights, optimiser state, carried state and random state, by name."""
    tensors = {f"model.{name}": value for name, value in network.state_dict().items()}
    for index, state in optimizer.state_dict()["state"].items():
        for key, value in state.items():
            if value is not None:
                tensors[f"optimizer.{index}.{key}"] = value
    for index, part in enumerate(carry or ()):
        tensors[f"carry.{index}"] = part
    tensors["random"] = torch.get_rng_state()
    return tensors


def restore_tensors(
    tensors: dict[str, Tensor],
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    *,
    source: Path,
) -> Carry:
    """Put a checkpoint's tensors back where they came from; returns the carried state."""
    try:
        network.load_state_dict(_under(tensors, "model."))
        optimizer.load_state_dict(
            {
                "state": _optimizer_state(tensors),
                "param_groups": optimizer.state_dict()["param_groups"],
            }
        )
        torch.set_rng_state(tensors["random"])
        carry = _under(tensors, "carry.")
        return tuple(carry[str(index)] for index in range(len(carry))) or None
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise ModelError(
            source, f"does not fit the model: {error}; train again in another --out."
        ) from error


def _optimizer_state(tensors: dict[str, Tensor]) -> dict[int, dict[str, Tensor]]:
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _under(tensors, "optimizer.").items():
        index, key = name.split(".", 1)
        state.setdefault(int(index), {})[key] = value
    return state


def _under(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors below a name, each in memory of its own, aligned as torch aligns it."""
    return {
        name.removeprefix(prefix): value.clone()
        for name, value in tensors.items()
        if name.startswith(prefix)
    }
