"""`unrolled lab gradients`: how much of a loss reaches a state that lies many steps back.

    ‖∂L_T/∂s_k‖ over the distance T − k, for networks as they are drawn, L_T = u · h_T, u random
    ≤ ‖u‖ ∏ σ_max(∂s_t/∂s_{t−1})            each step's largest singular value (Pascanu et al. 2013)
    = ‖u W^{T−k}‖ in a linear network        a line of slope log ρ(W), on a scale of logarithms

An LSTM's memory passes f ⊙ c on: with f = σ(b) half of it is left after log ½ / log f steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from unrolled.evaluate.shown import columns
from unrolled.lab.by_hand import Array, Gradients, forward, step_jacobian
from unrolled.lab.half_life import half_life
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell


class Kind(NamedTuple):
    """A network as it is drawn."""

    cell: Cell
    init: str = "uniform"
    forget_bias: float | None = None


KINDS: Mapping[str, Kind] = {
    "rnn sigmoid": Kind(RNNCell("sigmoid")),
    "rnn tanh": Kind(RNNCell("tanh")),
    "rnn tanh orthogonal": Kind(RNNCell("tanh"), "orthogonal"),
    "rnn relu identity": Kind(RNNCell("relu"), "identity"),
    "gru": Kind(GRUCell()),
    "lstm f=σ(1)": Kind(LSTMCell(), forget_bias=1.0),
    "lstm f=σ(4)": Kind(LSTMCell(), forget_bias=4.0),
    "lstm f=σ(0)": Kind(LSTMCell(), forget_bias=0.0),
    "rnn relu": Kind(RNNCell("relu")),
    "rnn leaky_relu": Kind(RNNCell("leaky_relu")),
    "rnn linear": Kind(RNNCell("identity")),
}
DRAWN = 7  # lines that a picture holds


def drawn_weights(kind: Kind, E: int, H: int, *, seed: int) -> Gradients:
    """The weights that unrolled.nn.Recurrent begins with, in float64."""
    import torch

    from unrolled.nn.recurrent import Recurrent

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        stack = Recurrent(E, H, cell=kind.cell, init=kind.init, forget_bias=kind.forget_bias)
    names = {"ih": "weight_ih_l0", "hh": "weight_hh_l0"}
    names |= {"bias_ih": "bias_ih_l0", "bias_hh": "bias_hh_l0"}
    return {
        name: stack.get_parameter(full).detach().double().numpy() for name, full in names.items()
    }


class Flow(NamedTuple):
    """What reaches each distance 0 … T − 1, and what bounds it."""

    norms: Array
    bounds: Array  # ‖u‖ times the product of each step's largest singular value
    radius: float  # log ρ(W), the slope of the linear case
    half_life: float  # of the forget gates as they are, else of the product of all factors
    dead: float  # share of units that never leave 0

    @property
    def slope(self) -> float:
        """Of log ‖·‖ over the distance, over its last half."""
        live = np.flatnonzero(self.norms > 0.0)[len(self.norms) // 2 :]
        if len(live) < 2:
            return -np.inf
        return float(np.polyfit(live, np.log(self.norms[live]), 1)[0])


def flow(kind: Kind, *, hidden: int, steps: int, seed: int) -> Flow:
    """One network as it is drawn, over random inputs."""
    E, draw = hidden, np.random.default_rng(seed).standard_normal
    w = drawn_weights(kind, E, hidden, seed=seed)
    run = forward(kind.cell, w, draw((steps, E)), np.zeros(hidden * kind.cell.state_size))
    row = np.concatenate([draw(hidden), np.zeros(hidden * (kind.cell.state_size - 1))])
    norms, bounds, bound = [], [], float(np.linalg.norm(row))
    for step in reversed(run):
        norms.append(float(np.linalg.norm(row)))
        bounds.append(bound)
        factor = step_jacobian(kind.cell, w, step)
        row, bound = row @ factor, bound * float(np.linalg.norm(factor, 2))
    states = np.stack([step.after[:hidden] for step in run])
    radius = float(np.log(np.abs(np.linalg.eigvals(w["hh"][-hidden:])).max()))
    return Flow(np.array(norms), np.array(bounds), radius, _half_life(kind, run), _dead(states))


def _half_life(kind: Kind, run: Sequence[Any]) -> float:
    """Of an LSTM's cell, by the geometric mean of its forget gates; else not a number."""
    if not isinstance(kind.cell, LSTMCell):
        return float("nan")
    mean = float(np.mean([np.log(step.parts[1]).mean() for step in run]))
    return half_life(mean - float(np.log1p(-np.exp(mean))))  # the bias whose σ has this logarithm


def _dead(states: Array) -> float:
    """The share of units that are 0 at every step: no gradient passes them (ReLU alone)."""
    return float((states == 0.0).all(axis=0).mean())


@dataclass(frozen=True)
class GradientFlows:
    """A flow a kind."""

    flows: Mapping[str, Flow]
    hidden: int

    def text(self) -> str:
        """A line a kind: at some distances, the slope, the bound, what is remembered."""
        T = len(next(iter(self.flows.values())).norms)
        at = [d for d in (1, 10, 20, 50, 100, 200) if d < T]
        head = ["network", *(f"at {d}" for d in at), "slope", "log ρ(W)", "bound", "half-life"]
        rows = [
            [
                name,
                *(f"{f.norms[d]:.1e}" for d in at),
                f"{f.slope:+.3f}",
                f"{f.radius:+.3f}" if name.startswith("rnn") else "",
                f"{f.bounds[-1]:.1e}",
                "" if np.isnan(f.half_life) else f"{f.half_life:.1f}",
                f"{f.dead:.0%}",
            ]
            for name, f in self.flows.items()
        ]
        return (
            f"‖∂L_T/∂s_k‖ by distance, networks of {self.hidden} units as they are drawn\n"
            + columns([[*head, "dead"], *rows])
        )

    def as_json(self) -> dict[str, Any]:
        """Every number."""
        return {
            name: {
                "norms": f.norms.tolist(),
                "bounds": f.bounds.tolist(),
                "slope": f.slope,
                "log_spectral_radius": f.radius,
                "half_life": f.half_life,
                "dead": f.dead,
            }
            for name, f in self.flows.items()
        }

    def chart(self) -> Any:
        """The norms of the first seven, on a scale of powers."""
        from unrolled.charts import gradient_curve

        shown = list(self.flows.items())[:DRAWN]
        T = len(shown[0][1].norms)
        at = [*range(0, T, max(1, T // 20))]
        return gradient_curve(
            at,
            {name: f.norms[at].tolist() for name, f in shown},
            x_title="distance (steps)",
            y_title="‖∂L_T/∂s_k‖",
            title="How much of the gradient is left",
        )


def gradients(
    *, hidden: int = 32, steps: int = 101, seed: int = 1, tell: Any = lambda _: None
) -> GradientFlows:
    """Each kind once."""
    flows = {}
    for name, kind in KINDS.items():
        flows[name] = flow(kind, hidden=hidden, steps=steps, seed=seed)
        tell(f"gradients: {name}")
    return GradientFlows(flows, hidden)
