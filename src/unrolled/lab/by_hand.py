"""Back-propagation through time, every derivative by hand, in every variant of every cell.

A state s is h, or h and c one after the other. With the loss L = Σ_t L_t, where L_t looks at h_t:

    double sum   dL/dW = Σ_t Σ_{k≤t} ∂L_t/∂s_t · (∏_{j=k+1..t} ∂s_j/∂s_{j−1}) · ∂⁺s_k/∂W
    recursion    ds_t = ∂L_t/∂s_t + ds_{t+1} · ∂s_{t+1}/∂s_t        dL/dW = Σ_k ds_k · ∂⁺s_k/∂W

∂⁺ is the derivative at one step alone, the state before it held fast. The double sum takes T²/2
products and the recursion T, for the same number. Weights are named as in nn/cells.py.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell

Array = NDArray[np.float64]
Weights = Mapping[str, Array]  # ih (G·H, E), hh (G·H, H), bias_ih, bias_hh (G·H,), peephole
Gradients = dict[str, Array]


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(−a)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * a)))


def _leaky(a: Array) -> Array:
    return np.maximum(a, 0.01 * a)


Slopes = Callable[[Array, Array], Array]  # of a and φ(a)
ACTIVATIONS: dict[str, tuple[Callable[[Array], Array], Slopes]] = {
    "tanh": (np.tanh, lambda a, y: 1.0 - y**2),
    "sigmoid": (sigmoid, lambda a, y: y * (1.0 - y)),
    "relu": (lambda a: np.maximum(a, 0.0), lambda a, y: (a > 0.0) * np.ones_like(a)),
    "leaky_relu": (_leaky, lambda a, y: np.where(a > 0.0, 1.0, 0.01) * np.ones_like(a)),
    "identity": (lambda a: a, lambda a, y: np.ones_like(a)),
}


class Step(NamedTuple):
    """What a step leaves behind for the way back."""

    x: Array
    before: Array  # s_{t−1}
    after: Array  # s_t
    parts: tuple[Array, ...]  # gates and what else the cell needs


class Back(NamedTuple):
    """What a step gives for ds_t: ds_t · ∂s_t/∂s_{t−1}, ds_t · ∂⁺s_t/∂W and ds_t · ∂s_t/∂x_t."""

    before: Array
    weights: Gradients
    x: Array


# ------------------------------------------------------------------ one step, there and back


def _rnn(cell: RNNCell, w: Weights, x: Array, h: Array) -> Step:
    a = w["ih"] @ x + w["bias_ih"] + w["hh"] @ h + w["bias_hh"]
    return Step(x, h, ACTIVATIONS[cell.activation][0](a), (a,))


def _rnn_back(cell: RNNCell, w: Weights, step: Step, dh: Array) -> Back:
    da = dh * ACTIVATIONS[cell.activation][1](step.parts[0], step.after)
    return _linear_back(w, step, da, da)


def _lstm(cell: LSTMCell, w: Weights, x: Array, s: Array) -> Step:
    h, c = np.split(s, 2)
    a_i, a_f, a_g, a_o = np.split(w["ih"] @ x + w["bias_ih"] + w["hh"] @ h + w["bias_hh"], 4)
    p_i, p_f, p_o = _peepholes(cell, w, c)
    i, f, g = sigmoid(a_i + p_i * c), sigmoid(a_f + p_f * c), np.tanh(a_g)
    new = f * c + i * g
    o = sigmoid(a_o + p_o * new)
    out = np.tanh(new) if cell.output == "tanh" else new
    return Step(x, s, np.concatenate([o * out, new]), (i, f, g, o, out))


def _lstm_back(cell: LSTMCell, w: Weights, step: Step, ds: Array) -> Back:
    (dh, dc), (i, f, g, o, out) = np.split(ds, 2), step.parts
    c, new = np.split(step.before, 2)[1], np.split(step.after, 2)[1]
    p_i, p_f, p_o = _peepholes(cell, w, c)
    da_o = dh * out * o * (1.0 - o)
    dc = dc + dh * o * (1.0 - out**2 if cell.output == "tanh" else 1.0) + p_o * da_o
    da_i, da_f, da_g = dc * g * i * (1.0 - i), dc * c * f * (1.0 - f), dc * i * (1.0 - g**2)
    da = np.concatenate([da_i, da_f, da_g, da_o])
    back = _linear_back(w, step, da, da)
    d_peep = {"none": [], "output": [da_o * new], "full": [da_i * c, da_f * c, da_o * new]}
    if cell.peepholes:
        back.weights["peephole"] = np.stack(d_peep[cell.peephole])
    to_c = dc * f + p_i * da_i + p_f * da_f
    return back._replace(before=np.concatenate([back.before, to_c]))


def _peepholes(cell: LSTMCell, w: Weights, c: Array) -> tuple[Array, Array, Array]:
    none = np.zeros_like(c)
    if cell.peephole == "full":
        return w["peephole"][0], w["peephole"][1], w["peephole"][2]
    return none, none, (w["peephole"][0] if cell.peephole == "output" else none)


def _gru(cell: GRUCell, w: Weights, x: Array, h: Array) -> Step:
    from_x, H = w["ih"] @ x + w["bias_ih"], len(h)
    from_h = w["hh"] @ h + w["bias_hh"]
    z = sigmoid((from_x + from_h)[-2 * H : -H])
    r = np.ones(H) if cell.reset == "none" else sigmoid((from_x + from_h)[:H])
    if cell.reset == "before":
        n = np.tanh(from_x[-H:] + w["hh"][-H:] @ (r * h) + w["bias_hh"][-H:])
    else:
        n = np.tanh(from_x[-H:] + r * from_h[-H:])
    keep = z if cell.update == "keep" else 1.0 - z
    return Step(x, h, keep * h + (1.0 - keep) * n, (r, z, n, from_h[-H:]))


def _gru_back(cell: GRUCell, w: Weights, step: Step, dh: Array) -> Back:
    r, z, n, from_h = step.parts
    h, H, sign = step.before, len(dh), 1.0 if cell.update == "keep" else -1.0
    keep = z if cell.update == "keep" else 1.0 - z
    da_z = sign * dh * (h - n) * z * (1.0 - z)
    da_n = dh * (1.0 - keep) * (1.0 - n**2)
    if cell.reset == "none":
        da = np.concatenate([da_z, da_n])
        back = _linear_back(w, step, da, da)
    elif cell.reset == "after":
        da_r = da_n * from_h * r * (1.0 - r)
        da = np.concatenate([da_r, da_z, da_n])
        back = _linear_back(w, step, da, np.concatenate([da_r, da_z, da_n * r]))
    else:
        d_rh = w["hh"][-H:].T @ da_n
        da_r = d_rh * h * r * (1.0 - r)
        da = np.concatenate([da_r, da_z, da_n])
        back = _linear_back(w, step, da, np.concatenate([da_r, da_z, 0.0 * da_n]))
        back.weights["hh"][-H:] = np.outer(da_n, r * h)
        back.weights["bias_hh"][-H:] = da_n
        back = back._replace(before=back.before + d_rh * r)
    return back._replace(before=back.before + dh * keep)


def _linear_back(w: Weights, step: Step, da_x: Array, da_h: Array) -> Back:
    """Through W x + b and U h + b, with the gradients of the two sums."""
    h = step.before[: w["hh"].shape[1]]
    weights = {
        "ih": np.outer(da_x, step.x),
        "hh": np.outer(da_h, h),
        "bias_ih": da_x.copy(),
        "bias_hh": da_h.copy(),
    }
    return Back(w["hh"].T @ da_h, weights, w["ih"].T @ da_x)


_WAYS = {RNNCell: (_rnn, _rnn_back), LSTMCell: (_lstm, _lstm_back), GRUCell: (_gru, _gru_back)}


def step_back(cell: Cell, w: Weights, step: Step, ds: Array) -> Back:
    """One step of the way back."""
    back: Back = _WAYS[type(cell)][1](cell, w, step, ds)  # type: ignore[operator]
    return back


# ------------------------------------------------------------------ through time


def forward(cell: Cell, w: Weights, xs: Iterable[Array], s: Array) -> list[Step]:
    """All steps from the first state on."""
    steps: list[Step] = []
    for x in xs:
        step: Step = _WAYS[type(cell)][0](cell, w, x, s)  # type: ignore[operator]
        steps.append(step)
        s = step.after
    return steps


def step_jacobian(cell: Cell, w: Weights, step: Step) -> Array:
    """∂s_t/∂s_{t−1}, a row an output: each row is the way back of one unit vector."""
    return np.stack([step_back(cell, w, step, unit).before for unit in np.eye(len(step.after))])


def _add(total: Gradients, more: Gradients) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def recursion(cell: Cell, w: Weights, steps: Sequence[Step], slopes: Sequence[Array]) -> Gradients:
    """dL/dW, dL/dx_t (as "x") and dL/ds_0 (as "first"); slopes are ∂L_t/∂s_t."""
    total: Gradients = {}
    ds, dx = np.zeros_like(slopes[0]), []
    for step, slope in zip(reversed(steps), reversed(slopes), strict=True):
        back = step_back(cell, w, step, ds + slope)
        _add(total, back.weights)
        ds = back.before
        dx.append(back.x)
    return {**total, "x": np.stack(dx[::-1]), "first": ds}


def double_sum(
    cell: Cell,
    w: Weights,
    steps: Sequence[Step],
    slopes: Sequence[Array],
    *,
    truncated: int | None = None,
) -> Gradients:
    """The same dL/dW term by term; truncated: of each t only the last so many steps k."""
    jacobians = [step_jacobian(cell, w, step) for step in steps]
    total: Gradients = {}
    for t, slope in enumerate(slopes):
        row = slope
        for k in range(t, -1, -1):
            if truncated is not None and t - k >= truncated:
                break
            _add(total, step_back(cell, w, steps[k], row).weights)
            row = row @ jacobians[k]
    return total


def every_cell() -> dict[str, Cell]:
    """Each variant of each cell, by a name."""
    cells: list[Cell] = [RNNCell(activation) for activation in ACTIVATIONS]
    cells += [LSTMCell(o, p) for o in ("tanh", "linear") for p in ("none", "output", "full")]
    cells += [GRUCell(r, u) for r in ("after", "before", "none") for u in ("keep", "write")]
    return {_name(cell): cell for cell in cells}


def _name(cell: Cell) -> str:
    kind = type(cell).__name__.removesuffix("Cell").lower()
    return " ".join([kind, *(str(value) for value in vars(cell).values())])


def random_weights(cell: Cell, E: int, H: int, *, seed: int = 0, scale: float = 0.7) -> Gradients:
    """Normal weights of a cell."""
    draw, G = np.random.default_rng(seed).standard_normal, cell.gates
    shapes = {"ih": (G * H, E), "hh": (G * H, H), "bias_ih": (G * H,), "bias_hh": (G * H,)}
    if cell.peepholes:
        shapes["peephole"] = (cell.peepholes, H)
    return {name: scale * draw(shape) for name, shape in shapes.items()}
