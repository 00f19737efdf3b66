"""`unrolled lab activations`: activation functions and their derivatives."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from unrolled.evaluate.shown import columns
from unrolled.lab.by_hand import ACTIVATIONS, Array

X = np.linspace(-5.0, 5.0, 51)


@dataclass(frozen=True)
class Curves:
    """φ and φ' of each, over X."""

    values: dict[str, Array]
    slopes: dict[str, Array]

    def text(self) -> str:
        """Values and slopes at whole numbers."""
        at = [int(np.flatnonzero(np.isclose(X, x))[0]) for x in (-4, -2, -1, 0, 1, 2, 4)]
        head = ["", *(f"{X[i]:g}" for i in at), "largest slope"]
        rows = []
        for name, y in self.values.items():
            rows.append([name, *(f"{y[i]:.3f}" for i in at), ""])
            slope = self.slopes[name]
            rows.append(["  slope", *(f"{slope[i]:.3f}" for i in at), f"{slope.max():g}"])
        return columns([head, *rows])

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return {
            "x": X.tolist(),
            "values": {name: y.tolist() for name, y in self.values.items()},
            "slopes": {name: y.tolist() for name, y in self.slopes.items()},
        }

    def chart(self) -> Any:
        """Functions above, derivatives below."""
        from unrolled.charts import curves, stack

        panels = [("φ(x)", self.values, "Activations"), ("φ'(x)", self.slopes, "Derivatives")]
        return stack(
            *(
                curves({name: (X, y) for name, y in lines.items()}, x="x", y=y_title, title=title)
                for y_title, lines, title in panels
            )
        )


def activation_curves() -> Curves:
    """Those of the RNN cell but the identity."""
    names = [name for name in ACTIVATIONS if name != "identity"]
    values = {name: ACTIVATIONS[name][0](X) for name in names}
    slopes = {name: ACTIVATIONS[name][1](X, values[name]) for name in names}
    return Curves(values, slopes)
