"""What the checks are made of: NumPy in float64, and differences."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
STEP = 1e-6


def draws(*shape: int, seed: int = 0, scale: float = 1.0) -> Array:
    """Normal numbers; the same for a seed."""
    return scale * np.random.default_rng([seed, *shape]).standard_normal(shape)


def sigmoid(x: Array) -> Array:
    """The logistic function."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def softmax(z: Array) -> Array:
    """exp(z) / Σ exp(z), over the last axis."""
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


def surprise(U: Array, h: Array, target: int) -> tuple[float, Array]:
    """−log softmax(U h)[target] and its gradient by U, by the package."""
    import torch

    from unrolled.nn.output import summed_nats

    weight = torch.from_numpy(U).requires_grad_()
    bias = torch.zeros(len(U), dtype=torch.float64)
    nats = summed_nats(torch.from_numpy(h)[None], weight, bias, torch.tensor([target]))
    (gradient,) = torch.autograd.grad(nats, weight)
    return nats.item(), gradient.numpy()


def surprise_at(q: Array, target: int) -> tuple[float, Array]:
    """The same of scores q (V,), and its gradient by them."""
    nats, gradient = surprise(q[:, None], np.ones(1), target)
    return nats, gradient[:, 0]


def chances(q: Array) -> Array:
    """softmax(q) by the package: exp of minus each surprise."""
    return np.exp([-surprise_at(q, target)[0] for target in range(len(q))])


def one_hot(index: int, size: int) -> Array:
    """A vector of zeros with a single 1."""
    return np.asarray(np.eye(size)[index])


def apart(a: ArrayLike, b: ArrayLike) -> float:
    """‖a − b‖ / (‖a‖ + ‖b‖): 0 where equal, 1 where opposite."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    whole = np.linalg.norm(a) + np.linalg.norm(b)
    return float(np.linalg.norm(a - b) / whole) if whole else 0.0


def slope(f: Callable[[Array], float], x: Array) -> Array:
    """The gradient of f at x by central differences, of the shape of x."""
    return jacobian(lambda x: np.array([f(x)]), x).reshape(x.shape)


def jacobian(f: Callable[[Array], Array], x: Array) -> Array:
    """∂f/∂x at x by central differences: a row an output, a column an input."""
    columns = []
    for place in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[place] = STEP
        columns.append((f(x + step).ravel() - f(x - step).ravel()) / (2.0 * STEP))
    return np.stack(columns, axis=1)
