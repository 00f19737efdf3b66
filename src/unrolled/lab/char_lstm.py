"""A character model with an LSTM in one file: NumPy alone, every gradient written out by hand.

    [a_i a_f a_g a_o] = W x_t + U h_{t−1} + b          x_t one-hot
    i, f, o = σ(a_i), σ(a_f), σ(a_o)    g = tanh(a_g)
    c_t = f ⊙ c_{t−1} + i ⊙ g           h_t = o ⊙ tanh(c_t)
    p_t = softmax(V h_t + d)            J = −Σ_t log p_t[x_{t+1}]

Back through time, from the last step to the first; what comes from the step after is dh and dc:

    dz = p_t − one_hot(x_{t+1})
    dh += Vᵀ dz
    dc += dh ⊙ o ⊙ (1 − tanh²(c_t))                    through the output
    da_o = dh ⊙ tanh(c_t) ⊙ o (1 − o)
    da_i = dc ⊙ g ⊙ i (1 − i)    da_f = dc ⊙ c_{t−1} ⊙ f (1 − f)    da_g = dc ⊙ i ⊙ (1 − g²)
    dh ← Uᵀ da    dc ← dc ⊙ f                          to the step before: f is what carries

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

    gates: tuple[Array, Array, Array, Array]  # i, f, g, o
    c: Array
    h: Array
    p: Array


def sigmoid(a: Array) -> Array:
    """1 / (1 + exp(−a)), without overflow."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * a)))


def init(size: int, hidden: int, *, seed: int = 0) -> dict[str, Array]:
    """Small random weights for an alphabet of `size` characters; the forget gates begin open."""
    draw = np.random.default_rng(seed).standard_normal
    b = np.zeros(4 * hidden)
    b[hidden : 2 * hidden] = 1.0
    return {
        "W": draw((4 * hidden, size)) * 0.1,
        "U": draw((4 * hidden, hidden)) * 0.1,
        "b": b,
        "V": draw((size, hidden)) * 0.1,
        "d": np.zeros(size),
    }


def step(w: Weights, x: int, h: Array, c: Array) -> Step:
    """One character in: gates, the next state and the chances of each next character."""
    a_i, a_f, a_g, a_o = np.split(w["W"][:, x] + w["U"] @ h + w["b"], 4)
    i, f, g, o = sigmoid(a_i), sigmoid(a_f), np.tanh(a_g), sigmoid(a_o)
    c = f * c + i * g
    h = o * np.tanh(c)
    z = w["V"] @ h + w["d"]
    e = np.exp(z - z.max())
    return Step((i, f, g, o), c, h, e / e.sum())


def loss_and_gradients(
    w: Weights, ids: Ids, h: Array, c: Array
) -> tuple[float, dict[str, Array], Array, Array]:
    """J over ids, read but the last and predicted but the first; its gradients; h_T and c_T."""
    inputs, targets = ids[:-1], ids[1:]
    first, steps = (h, c), []
    for x in inputs:
        steps.append(step(w, x, h, c))
        h, c = steps[-1].h, steps[-1].c
    loss = -sum(float(np.log(s.p[y])) for s, y in zip(steps, targets, strict=True))

    grad = {name: np.zeros_like(value) for name, value in w.items()}
    dh, dc = np.zeros_like(h), np.zeros_like(c)
    for t in reversed(range(len(inputs))):
        (i, f, g, o), c_now, h_now, p = steps[t]
        h_before, c_before = (steps[t - 1].h, steps[t - 1].c) if t else first
        dz = p.copy()
        dz[targets[t]] -= 1.0
        dh = dh + w["V"].T @ dz
        dc = dc + dh * o * (1.0 - np.tanh(c_now) ** 2)
        da_i, da_f = dc * g * i * (1.0 - i), dc * c_before * f * (1.0 - f)
        da_g, da_o = dc * i * (1.0 - g**2), dh * np.tanh(c_now) * o * (1.0 - o)
        da = np.concatenate([da_i, da_f, da_g, da_o])
        grad["V"] += np.outer(dz, h_now)
        grad["d"] += dz
        grad["W"][:, inputs[t]] += da
        grad["U"] += np.outer(da, h_before)
        grad["b"] += da
        dh, dc = w["U"].T @ da, dc * f
    return loss, grad, h, c


def train(
    w: dict[str, Array], ids: Ids, *, steps: int = 25, rate: float = 0.1, limit: float = 5.0
) -> Iterator[float]:
    """Read ids again and again in pieces of `steps`, changing w; yields each piece's mean loss."""
    squares = {name: np.full_like(value, 1e-8) for name, value in w.items()}
    while True:
        h, c = np.zeros_like(w["V"][0]), np.zeros_like(w["V"][0])
        for start in range(0, len(ids) - 1, steps):
            piece = ids[start : start + steps + 1]
            loss, grad, h, c = loss_and_gradients(w, piece, h, c)
            norm = float(np.sqrt(sum((value**2).sum() for value in grad.values())))
            for name, value in grad.items():
                clipped = value * min(1.0, limit / norm)
                squares[name] += clipped**2  # Adagrad (Duchi et al. 2011)
                w[name] -= rate * clipped / np.sqrt(squares[name])
            yield loss / (len(piece) - 1)


def write(w: Weights, first: int, count: int, *, seed: int = 0) -> list[int]:
    """Draw `count` characters after `first`, each from what the model expects."""
    generator = np.random.default_rng(seed)
    x, written = first, []
    h, c = np.zeros_like(w["V"][0]), np.zeros_like(w["V"][0])
    for _ in range(count):
        _, c, h, p = step(w, x, h, c)
        x = int(generator.choice(len(p), p=p))
        written.append(x)
    return written
