"""`unrolled lab clipping`: the error surface of a one-unit network, and two ways down it.

    h_t = w · σ(h_{t−1}) + b        L(w, b) = (σ(h_T) − target)²

After many steps the surface has a wall, where the gradient is so large that one step of plain
descent leaves the valley for good. With the gradient's norm held to a threshold it does not
(Pascanu et al. 2013, arXiv:1211.5063, fig. 6).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unrolled.evaluate.shown import columns
from unrolled.lab.by_hand import Array, sigmoid

STEPS, TARGET, START = 50, 0.7, 0.4  # of the recurrence; h_0
WIDTH, HEIGHT = 61, 61  # places of the surface


class Point(NamedTuple):
    """Where a descent is."""

    w: float
    b: float
    loss: float
    norm: float  # of the gradient


def loss(w: Array, b: Array) -> Array:
    """L at every place."""
    h = np.full(np.broadcast(w, b).shape, START)
    for _ in range(STEPS):
        h = w * sigmoid(h) + b
    return np.asarray((sigmoid(h) - TARGET) ** 2)


def gradient(w: float, b: float) -> tuple[float, float]:
    """∂L/∂w and ∂L/∂b, carried forward with the state."""
    h, dw, db = START, 0.0, 0.0
    for _ in range(STEPS):
        s = float(sigmoid(np.array(h)))
        slope = w * s * (1.0 - s)
        h, dw, db = w * s + b, s + slope * dw, 1.0 + slope * db
    s = float(sigmoid(np.array(h)))
    outer = 2.0 * (s - TARGET) * s * (1.0 - s)
    return outer * dw, outer * db


def descent(
    start: tuple[float, float], *, rate: float, updates: int, threshold: float | None
) -> list[Point]:
    """Plain descent, its gradient scaled down to the threshold where it is longer."""
    w, b = start
    path = []
    for _ in range(updates + 1):
        dw, db = gradient(w, b)
        norm = float(np.hypot(dw, db))
        path.append(Point(w, b, float(loss(np.array(w), np.array(b))), norm))
        scale = 1.0 if threshold is None or norm < threshold else threshold / norm
        w, b = w - rate * scale * dw, b - rate * scale * db
    return path


@dataclass(frozen=True)
class Clipping:
    """Both descents from one start, and the surface between them."""

    plain: list[Point]
    clipped: list[Point]
    threshold: float

    def text(self) -> str:
        """Where each begins and ends, and its longest step."""
        head = ["", "loss at first", "in the end", "largest ‖g‖", "w", "b"]
        rows = [
            [
                name,
                f"{path[0].loss:.4f}",
                f"{path[-1].loss:.4f}",
                f"{max(point.norm for point in path):.2e}",
                f"{path[-1].w:.3f}",
                f"{path[-1].b:.3f}",
            ]
            for name, path in self.paths().items()
        ]
        return columns([head, *rows])

    def paths(self) -> dict[str, list[Point]]:
        """By name."""
        return {"without clipping": self.plain, f"clipped at {self.threshold:g}": self.clipped}

    def as_json(self) -> dict[str, Any]:
        """Every point."""
        return {name: [point._asdict() for point in path] for name, path in self.paths().items()}

    def chart(self) -> Any:
        """The surface in colour, darker is higher, and both ways over it."""
        from unrolled.charts import surface

        (w_low, w_high), (b_low, b_high) = self._window()
        w, b = np.linspace(w_low, w_high, WIDTH), np.linspace(b_low, b_high, HEIGHT)
        heights = loss(w[None, :], b[:, None])
        paths = {
            name: [(p.w, p.b) for p in path if _within(p, (w_low, w_high), (b_low, b_high))]
            for name, path in self.paths().items()
        }
        return surface(
            w,
            b,
            heights,
            paths=paths,
            x_title="w",
            y_title="b",
            z_title="loss",
            title=f"The error surface of one unit over {STEPS} steps",
        )

    def _window(self) -> tuple[tuple[float, float], tuple[float, float]]:
        return (3.4, 7.0), (-4.4, -1.5)


def _within(point: Point, w: tuple[float, float], b: tuple[float, float]) -> bool:
    return w[0] <= point.w <= w[1] and b[0] <= point.b <= b[1]


def clipping(
    *,
    start: tuple[float, float] = (5.5, -2.5),
    rate: float = 0.1,
    updates: int = 150,
    threshold: float = 1.0,
) -> Clipping:
    """Both descents."""
    plain = descent(start, rate=rate, updates=updates, threshold=None)
    clipped = descent(start, rate=rate, updates=updates, threshold=threshold)
    return Clipping(plain, clipped, threshold)
