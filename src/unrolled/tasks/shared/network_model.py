"""What models that are networks share: their tensors, and how uses find their methods."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from unrolled.store.manifest import Content
from unrolled.store.tensors import tensor_bytes
from unrolled.tasks.task import Answer, Blocks

Answering = Callable[[Blocks, Any, Path | str], Iterator[Answer]]


class NetworkModel(ABC):
    """A model whose folder keeps the tensors of a network, and of modules that lie beside it."""

    network: nn.Module

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The modules whose tensors are kept, each with what its names begin with."""
        return [("", self.network)]

    def tensors(self) -> dict[str, Tensor]:
        """Weights and what lies beside them, by their names on disk."""
        return {
            prefix + name: value
            for prefix, module in self.parts()
            for name, value in module.state_dict().items()
        }

    def load_tensors(self, tensors: Mapping[str, Tensor], *, assign: bool = False) -> None:
        """Take over what `tensors` gave; `assign`: as they are, not copied."""
        if unknown := sorted(tensors.keys() - self.tensors().keys()):
            raise ValueError(f"tensor {unknown[0]} is not one of the model's")
        for prefix, module in self.parts():
            own = {name: tensors[prefix + name] for name in module.state_dict()}
            module.load_state_dict(own, assign=assign)

    def weights(self) -> Content:
        """The tensors as the bytes of a safetensors file."""
        return tensor_bytes(self.tensors())

    def parameter_count(self) -> int:
        """How many numbers training may change."""
        return sum(parameter.numel() for parameter in self.network.parameters())

    def caution(self, use: str) -> str:
        """What a reader of its answers must know, if anything."""
        return ""

    @abstractmethod
    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""

    def answers(
        self, use: str, blocks: Blocks, options: Any, *, source: Path | str = "<input>"
    ) -> Iterator[Answer]:
        """Answers in the order of the inputs; errors name the source."""
        return self.answering()[use](blocks, options, source)
