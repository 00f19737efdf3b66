"""A character model in one file: NumPy alone, every gradient written out by hand.

    h_t = tanh(W_xh x_t + W_hh h_{t−1} + b_h)         x_t one-hot
    p_t = softmax(W_hy h_t + b_y)
    J   = −Σ_t log p_t[x_{t+1}]

Back-propagation through time, from the last step to the first, with dz = ∂J/∂(W_hy h + b_y):

    dz_t = p_t − one_hot(x_{t+1})
    dh_t = W_hyᵀ dz_t + W_hhᵀ da_{t+1}                through the output, and through the next step
    da_t = dh_t ⊙ (1 − h_t²)                          tanh' = 1 − tanh²
    dW_hy = Σ dz_t h_tᵀ    dW_hh = Σ da_t h_{t−1}ᵀ    dW_xh = Σ da_t x_tᵀ

It is written to be read, not to be fast: `unrolled train lm` does the same work in earnest.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Weights = Mapping[str, Array]
Ids = Sequence[int]


def init(size: int, hidden: int, *, seed: int = 0) -> dict[str, Array]:
    """Small random weights for an alphabet of `size` characters."""
    draw = np.random.default_rng(seed).standard_normal
    return {
        "W_xh": draw((hidden, size)) * 0.1,
        "W_hh": draw((hidden, hidden)) * 0.1,
        "W_hy": draw((size, hidden)) * 0.1,
        "b_h": np.zeros(hidden),
        "b_y": np.zeros(size),
    }


def step(w: Weights, x: int, h: Array) -> tuple[Array, Array]:
    """One character in: the next state (H,) and the chances of each next character (V,)."""
    h = np.tanh(w["W_xh"][:, x] + w["W_hh"] @ h + w["b_h"])  # a one-hot x picks a column
    z = w["W_hy"] @ h + w["b_y"]
    e = np.exp(z - z.max())
    return h, e / e.sum()


def loss_and_gradients(w: Weights, ids: Ids, h: Array) -> tuple[float, dict[str, Array], Array]:
    """J over ids, which are read but the last and predicted but the first; its gradients; h_T."""
    inputs, targets = ids[:-1], ids[1:]
    states, chances = [h], []
    for x in inputs:
        h, p = step(w, x, h)
        states.append(h)
        chances.append(p)
    loss = -sum(float(np.log(p[y])) for p, y in zip(chances, targets, strict=True))

    g = {name: np.zeros_like(value) for name, value in w.items()}
    from_next = np.zeros_like(h)  # W_hhᵀ da_{t+1}
    for t in reversed(range(len(inputs))):
        dz = chances[t].copy()
        dz[targets[t]] -= 1.0
        da = (w["W_hy"].T @ dz + from_next) * (1.0 - states[t + 1] ** 2)
        g["W_hy"] += np.outer(dz, states[t + 1])
        g["b_y"] += dz
        g["W_hh"] += np.outer(da, states[t])
        g["W_xh"][:, inputs[t]] += da
        g["b_h"] += da
        from_next = w["W_hh"].T @ da
    return loss, g, states[-1]


def clip(gradients: Mapping[str, Array], limit: float) -> dict[str, Array]:
    """If the norm of all gradients together is over the limit, scale them down to it."""
    norm = float(np.sqrt(sum((value**2).sum() for value in gradients.values())))
    scale = limit / norm if norm >= limit else 1.0
    return {name: value * scale for name, value in gradients.items()}


def train(
    w: dict[str, Array], ids: Ids, *, steps: int = 25, rate: float = 0.1, limit: float = 5.0
) -> Iterator[float]:
    """Read ids again and again in pieces of `steps`, changing w; yields each piece's mean loss."""
    squares = {name: np.full_like(value, 1e-8) for name, value in w.items()}
    while True:
        h = np.zeros_like(w["b_h"])
        for start in range(0, len(ids) - 1, steps):
            piece = ids[start : start + steps + 1]
            loss, gradients, h = loss_and_gradients(w, piece, h)
            for name, g in clip(gradients, limit).items():
                squares[name] += g * g  # Adagrad (Duchi et al. 2011)
                w[name] -= rate * g / np.sqrt(squares[name])
            yield loss / (len(piece) - 1)


def write(w: Weights, first: int, count: int, *, seed: int = 0) -> list[int]:
    """Draw `count` characters after `first`, each from what the model expects."""
    generator = np.random.default_rng(seed)
    x, h, written = first, np.zeros_like(w["b_h"]), []
    for _ in range(count):
        h, p = step(w, x, h)
        x = int(generator.choice(len(p), p=p))
        written.append(x)
    return written
