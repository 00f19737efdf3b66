"""A character model with a GRU in one file: NumPy alone, every gradient written out by hand.

    r = σ(W_r x_t + U_r h_{t−1} + b_r)                  x_t one-hot
    z = σ(W_z x_t + U_z h_{t−1} + b_z)
    n = tanh(W_n x_t + b_n + r ⊙ (U_n h_{t−1}))         reset after the product
    h_t = z ⊙ h_{t−1} + (1 − z) ⊙ n                     z keeps
    p_t = softmax(V h_t + d)            J = −Σ_t log p_t[x_{t+1}]

Back through time, from the last step to the first; what comes from the step after is dh:

    dq = p_t − one_hot(x_{t+1})
    dh += Vᵀ dq
    da_z = dh ⊙ (h_{t−1} − n) ⊙ z (1 − z)    da_n = dh ⊙ (1 − z) ⊙ (1 − n²)
    da_r = da_n ⊙ (U_n h_{t−1}) ⊙ r (1 − r)
    dh ← dh ⊙ z + U_rᵀ da_r + U_zᵀ da_z + U_nᵀ (da_n ⊙ r)          z is what carries

It is written to be read, not to be fast: `unrolled train lm` does the same work in earnest.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
Ids = Sequence[int]


class Step(NamedTuple):
    """What a step leaves behind for the way back."""

    gates: tuple[Array, Array, Array]  # r, z, n
    recurrent: Array  # U_n h_{t−1}
    h: Array
    p: Array


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(−a)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * a)))


def init(size: int, hidden: int, *, seed: int = 0) -> dict[str, Array]:
    """Small random weights for an alphabet of `size` characters."""
    draw = np.random.default_rng(seed).standard_normal
    return {
        "W": draw((3 * hidden, size)) * 0.1,
        "U": draw((3 * hidden, hidden)) * 0.1,
        "b": np.zeros(3 * hidden),
        "V": draw((size, hidden)) * 0.1,
        "d": np.zeros(size),
    }


def step(w: Weights, x: int, h: Array) -> Step:
    """One character in: gates, the next state and the chances of each next character."""
    x_r, x_z, x_n = np.split(w["W"][:, x] + w["b"], 3)
    u_r, u_z, u_n = np.split(w["U"] @ h, 3)
    r, z = sigmoid(x_r + u_r), sigmoid(x_z + u_z)
    n = np.tanh(x_n + r * u_n)
    h = z * h + (1.0 - z) * n
    q = w["V"] @ h + w["d"]
    e = np.exp(q - q.max())
    return Step((r, z, n), u_n, h, e / e.sum())


def loss_and_gradients(w: Weights, ids: Ids, h: Array) -> tuple[float, dict[str, Array], Array]:
    """J over ids, which are read but the last and predicted but the first; its gradients; h_T."""
    inputs, targets = ids[:-1], ids[1:]
    first, steps = h, []
    for x in inputs:
        steps.append(step(w, x, h))
        h = steps[-1].h
    loss = -sum(float(np.log(s.p[y])) for s, y in zip(steps, targets, strict=True))

    grad = {name: np.zeros_like(value) for name, value in w.items()}
    dh = np.zeros_like(h)
    for t in reversed(range(len(inputs))):
        (r, z, n), u_n, h_now, p = steps[t]
        h_before = steps[t - 1].h if t else first
        dq = p.copy()
        dq[targets[t]] -= 1.0
        dh = dh + w["V"].T @ dq
        da_z = dh * (h_before - n) * z * (1.0 - z)
        da_n = dh * (1.0 - z) * (1.0 - n**2)
        da_r = da_n * u_n * r * (1.0 - r)
        from_x = np.concatenate([da_r, da_z, da_n])
        from_h = np.concatenate([da_r, da_z, da_n * r])
        grad["V"] += np.outer(dq, h_now)
        grad["d"] += dq
        grad["W"][:, inputs[t]] += from_x
        grad["b"] += from_x
        grad["U"] += np.outer(from_h, h_before)
        dh = dh * z + w["U"].T @ from_h
    return loss, grad, h


def train(
    w: dict[str, Array], ids: Ids, *, steps: int = 25, rate: float = 0.1, limit: float = 5.0
) -> Iterator[float]:
    """Read ids again and again in pieces of `steps`, changing w; yields each piece's mean loss."""
    squares = {name: np.full_like(value, 1e-8) for name, value in w.items()}
    while True:
        h = np.zeros_like(w["V"][0])
        for start in range(0, len(ids) - 1, steps):
            piece = ids[start : start + steps + 1]
            loss, grad, h = loss_and_gradients(w, piece, h)
            norm = float(np.sqrt(sum((value**2).sum() for value in grad.values())))
            for name, value in grad.items():
                clipped = value * min(1.0, limit / norm)
                squares[name] += clipped**2  # Adagrad (Duchi et al. 2011)
                w[name] -= rate * clipped / np.sqrt(squares[name])
            yield loss / (len(piece) - 1)


def write(w: Weights, first: int, count: int, *, seed: int = 0) -> list[int]:
    """Draw `count` characters after `first`, each from what the model expects."""
    generator = np.random.default_rng(seed)
    x, h, written = first, np.zeros_like(w["V"][0]), []
    for _ in range(count):
        _, _, h, p = step(w, x, h)
        x = int(generator.choice(len(p), p=p))
        written.append(x)
    return written
