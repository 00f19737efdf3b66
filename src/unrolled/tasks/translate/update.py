"""How a batch changes a translator: the matrix between two states takes shorter steps.

"general" attention scores sᵀ W h: Q · D weights in one sum, where a unit sums over a row. Adam and
its like move every weight by the learning rate, whatever its gradient, so one step moves that score
some √Q times as far as a unit, and attention looks at one place for good before it has seen which.
"""

from typing import Any

from unrolled.config.sections import TrainSettings
from unrolled.nn.attention import General
from unrolled.tasks.translate.model import TranslateModel
from unrolled.training.update import GradientUpdate


class TranslateUpdate(GradientUpdate):
    """Gradients; W of "general" attention takes 1/√Q of the rate, Q the size of a query."""

    def __init__(self, model: TranslateModel, train: TrainSettings) -> None:
        between = {
            module.weight: module.weight.size(0) ** -0.5
            for module in model.network.modules()
            if isinstance(module, General) and train.optimizer != "sgd"
        }
        others = [p for p in model.network.parameters() if p not in between]
        groups: list[dict[str, Any]] = [{"params": others}]
        groups += [{"params": [weight], "share": share} for weight, share in between.items()]
        super().__init__(model, train, parameters=groups)
