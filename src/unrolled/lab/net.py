"""A net of three layers as a computation graph: values forward, adjoints backward.

    z₁ = X w₁ᵀ + b₁   h₁ = σ(z₁)   z₂ = h₁ w₂ᵀ + b₂   h₂ = σ(z₂)   z₃ = h₂ w₃ᵀ + b₃   h₃ = σ(z₃)
    L = (1/M) Σ (y − h₃)²

The adjoint of a node is ∂L/∂node. Each is made of the adjoint after it and of one local derivative.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Net(NamedTuple):
    """Weights w1, b1 … w3, b3, inputs (M, E) and what is wanted (M, 1)."""

    weights: Mapping[str, Array]
    X: Array
    y: Array


class Node(NamedTuple):
    """One value of the graph: what it is made of, and by what."""

    name: str
    inputs: tuple[str, ...]
    rule: str
    value: Array
    adjoint: Array


def small_net(*, seed: int = 3) -> Net:
    """Two inputs, layers of 3, 2 and 1 units, two examples; weights of one decimal."""
    draw = np.random.default_rng(seed).standard_normal
    sizes = (2, 3, 2, 1)
    weights: dict[str, Array] = {}
    for layer in (1, 2, 3):
        weights[f"w{layer}"] = draw((sizes[layer], sizes[layer - 1])).round(1)
        weights[f"b{layer}"] = draw(sizes[layer]).round(1)
    return Net(weights, np.array([[1.0, 0.5], [-0.5, 2.0]]), np.array([[1.0], [0.0]]))


def values(net: Net) -> dict[str, Array]:
    """Forward: the value of every node."""
    found: dict[str, Array] = {"h0": net.X}
    for layer in (1, 2, 3):
        w, b = net.weights[f"w{layer}"], net.weights[f"b{layer}"]
        found[f"z{layer}"] = found[f"h{layer - 1}"] @ w.T + b
        found[f"h{layer}"] = 1.0 / (1.0 + np.exp(-found[f"z{layer}"]))
    found["L"] = np.array(((net.y - found["h3"]) ** 2).mean())
    return found


def loss_of(net: Net) -> float:
    """L."""
    return float(values(net)["L"])


def adjoints(net: Net) -> dict[str, Array]:
    """Backward: ∂L/∂node for every node and every weight, each from the one after it."""
    v = values(net)
    found = {"L": np.array(1.0), "h3": 2.0 / net.y.size * (v["h3"] - net.y)}
    for layer in (3, 2, 1):
        h, below = v[f"h{layer}"], v[f"h{layer - 1}"]
        dz = found[f"h{layer}"] * h * (1.0 - h)
        found[f"z{layer}"] = dz
        found[f"w{layer}"] = dz.T @ below
        found[f"b{layer}"] = dz.sum(axis=0)
        found[f"h{layer - 1}"] = dz @ net.weights[f"w{layer}"]
    return found


def gradients(net: Net) -> dict[str, Array]:
    """The adjoints of the weights alone."""
    found = adjoints(net)
    return {name: found[name] for name in net.weights}


def graph(net: Net) -> list[Node]:
    """Every node in the order of the forward pass."""
    v, d = {**values(net), **net.weights, "y": net.y}, adjoints(net)
    d["y"] = 2.0 / net.y.size * (net.y - v["h3"])
    nodes = [Node("h0", (), "the inputs X", v["h0"], d["h0"])]
    for n in (1, 2, 3):
        nodes += [
            Node(f"{kind}{n}", (), "a weight", v[f"{kind}{n}"], d[f"{kind}{n}"]) for kind in "wb"
        ]
        made = (f"h{n - 1}", f"w{n}", f"b{n}")
        nodes.append(Node(f"z{n}", made, f"h{n - 1} w{n}ᵀ + b{n}", v[f"z{n}"], d[f"z{n}"]))
        nodes.append(Node(f"h{n}", (f"z{n}",), f"σ(z{n})", v[f"h{n}"], d[f"h{n}"]))
    nodes.append(Node("y", (), "what is wanted", v["y"], d["y"]))
    nodes.append(Node("L", ("h3", "y"), "mean (y − h3)²", v["L"], d["L"]))
    return nodes
