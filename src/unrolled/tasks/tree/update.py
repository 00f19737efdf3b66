"""How a batch changes a network over trees: words that it does not have cost nothing.

With Adagrad (Duchi et al. 2011) a row without a gradient stays as it is, so only the rows of the
batch's words are touched: the same numbers as with all of them.
"""

from typing import Any

from unrolled.config.sections import TrainSettings
from unrolled.tasks.tree.model import TreeModel
from unrolled.training.update import GradientUpdate


class TreeUpdate(GradientUpdate):
    """Gradients of words by their rows, where the optimiser takes them; they are not decayed."""

    def __init__(self, model: TreeModel, train: TrainSettings) -> None:
        network = model.network
        network.sparse = train.optimizer == "adagrad"
        others = [p for p in network.parameters() if p is not network.embedding]
        groups: list[dict[str, Any]] = [
            {"params": others},
            {"params": [network.embedding], "weight_decay": 0.0},
        ]
        super().__init__(model, train, parameters=groups)
