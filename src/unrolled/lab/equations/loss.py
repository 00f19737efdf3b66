"""Losses, their gradients, and perplexity."""

import math

import numpy as np

from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import (
    Array,
    apart,
    draws,
    jacobian,
    one_hot,
    sigmoid,
    slope,
    softmax,
    surprise,
    surprise_at,
)
from unrolled.lab.net import Net, adjoints, gradients, loss_of, small_net, values

book = Book("Loss and gradients")


@book.equation(
    "F1",
    "000 eq 7–19, Fig 5–6",
    "a net of three layers: forward values, then adjoints from the loss back to each weight",
    tex=r"\frac{\partial L}{\partial w_1}=\frac{\partial L}{\partial h_3}"
    r"\frac{\partial h_3}{\partial z_3}\frac{\partial z_3}{\partial h_2}"
    r"\frac{\partial h_2}{\partial z_2}\frac{\partial z_2}{\partial h_1}"
    r"\frac{\partial h_1}{\partial z_1}\frac{\partial z_1}{\partial w_1}",
    code="unrolled.lab.net.gradients",
    how="finite differences",
    within=DIFFERENCES,
    rows=("Q3",),
)
def three_layers() -> Off:
    net = small_net()
    found = gradients(net)
    return Off(max(apart(found[name], _numeric(net, name)) for name in net.weights))


def _numeric(net: Net, name: str) -> Array:
    def loss(value: Array) -> float:
        return loss_of(net._replace(weights={**net.weights, name: value}))

    return slope(loss, net.weights[name])


@book.erratum(
    "E5",
    "000 eq 16, 18",
    "M",
    printed="eq 16 goes … ∂h₂/∂z₂ · ∂h₂/∂h₁ · ∂z₂/∂z₁ · ∂h₁/∂z₁ …; eq 18 is ∂L/∂z again and again",
    says="… ∂h₂/∂z₂ · ∂z₂/∂h₁ · ∂h₁/∂z₁ · ∂z₁/∂w₁: each variable once",
    printed_tex=r"\frac{\partial h_2}{\partial z_2}\frac{\partial h_2}{\partial h_1}"
    r"\frac{\partial z_2}{\partial z_1}\frac{\partial h_1}{\partial z_1}",
    tex=r"\frac{\partial h_2}{\partial z_2}\frac{\partial z_2}{\partial h_1}"
    r"\frac{\partial h_1}{\partial z_1}",
    code="unrolled.lab.net.gradients",
    within=DIFFERENCES,
)
def each_variable_once() -> Off:
    """A chain of single units, where every factor is a number."""
    x, w1, w2, w3, y = 0.7, 0.9, -1.3, 0.8, 1.0
    h1 = float(sigmoid(np.array(w1 * x)))
    h2 = float(sigmoid(np.array(w2 * h1)))
    h3 = float(sigmoid(np.array(w3 * h2)))
    to_h2 = -2 * (y - h3) * h3 * (1 - h3) * w3
    dh2_dz2, dz2_dh1, dh1_dz1 = h2 * (1 - h2), w2, h1 * (1 - h1)
    correct = to_h2 * dh2_dz2 * dz2_dh1 * dh1_dz1 * x
    dh2_dh1, dz2_dz1 = dh2_dz2 * dz2_dh1, dz2_dh1 * dh1_dz1
    printed = to_h2 * dh2_dz2 * dh2_dh1 * dz2_dz1 * dh1_dz1 * x
    zeros = {f"b{n}": np.zeros(1) for n in (1, 2, 3)}
    weights = {f"w{n}": np.array([[w]]) for n, w in enumerate((w1, w2, w3), 1)}
    net = Net({**weights, **zeros}, np.array([[x]]), np.array([[y]]))
    true = float(gradients(net)["w1"][0, 0])
    return Off(apart(correct, true), apart(printed, true), f"{printed:.2e} for {true:.2e}")


@book.equation(
    "F2",
    "000 eq 13",
    "mean squared error (1/M) Σ (y − ŷ)²; its gradient is (2/M)(ŷ − y)",
    tex=r"L=\frac{1}{M}\sum (y-\hat{y})^2",
    code="unrolled.lab.net.loss_of",
    how="finite differences",
    within=DIFFERENCES,
)
def squared_error() -> Off:
    net = small_net()
    guess, y = values(net)["h3"], net.y
    numeric = slope(lambda g: float(((y - g) ** 2).mean()), guess)
    off = apart(2 / y.size * (guess - y), numeric) + apart(adjoints(net)["h3"], numeric)
    return Off(off + apart(loss_of(net), ((y - guess) ** 2).mean()))


@book.equation(
    "F3",
    "000 eq 20–22; 002 eq 7–8; 004 Loss",
    "J = −(1/N) Σ_t log ŷ_t[target] over the N real tokens; of a uniform model log V",
    tex=r"J=-\frac{1}{N}\sum_{t}\log\hat{y}_{t}[x_{t+1}]",
    code="unrolled.nn.output.summed_nats",
    within=1e-6,
    rows=("N1",),
)
def cross_entropy() -> Off:
    import torch

    from unrolled.nn.output import summed_nats

    nothing = torch.zeros(7, 3, dtype=torch.float64)
    weight, bias = torch.zeros(11, 3, dtype=torch.float64), torch.zeros(11, dtype=torch.float64)
    total = float(summed_nats(nothing, weight, bias, torch.arange(7)))
    return Off(abs(total / 7 - math.log(11)))


@book.erratum(
    "E6",
    "000 eq 20–22",
    "S",
    printed="E_t as an expectation; 1/N before a sum over T; no sum over the classes",
    says="J_t = −Σ_k y_k log ŷ_k, divided by the number of real tokens",
    code="unrolled.tasks.language.network.LanguageNetwork.loss",
    within=1e-6,
)
def mean_over_tokens() -> Off:
    """A model that has learned nothing, two lines of unlike length: each token costs log V."""
    import torch

    from unrolled.tasks.language.network import LanguageNetwork
    from unrolled.tasks.language.settings import LanguageSettings
    from unrolled.text.batch import Batch

    network = LanguageNetwork(LanguageSettings(context="line", hidden_size=3), 9).eval()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
        batch = Batch.collate([[2, 5, 6, 7, 8, 3], [2, 5, 3]])
        loss = network.loss(batch)
    places = batch.tokens[:, 1:].numel()
    correct, printed = (loss.total.item() / n / math.log(9) for n in (loss.count, places))
    return Off(abs(correct - 1), abs(printed - 1), f"counted padding makes it {printed:.0%}")


@book.equation(
    "F4",
    "000 eq 25–36",
    "∂ŷ_k/∂q_l = ŷ_k (δ_kl − ŷ_l); every row sums to 0",
    tex=r"\frac{\partial\hat{y}_k}{\partial q_l}=\hat{y}_k(\delta_{kl}-\hat{y}_l)",
    code="unrolled.nn.output",
    how="finite differences",
    within=DIFFERENCES,
)
def softmax_jacobian() -> Off:
    q = draws(5)
    p = softmax(q)
    by_hand = np.diag(p) - np.outer(p, p)
    # ∂p_k/∂q = −p_k · ∂(−log p_k)/∂q
    package = np.stack([-p[k] * surprise_at(q, k)[1] for k in range(5)])
    off = apart(by_hand, jacobian(softmax, q)) + apart(by_hand, package)
    return Off(off + float(np.abs(by_hand.sum(axis=1)).max()))


@book.equation(
    "F5",
    "000 eq 37–40",
    "∂L/∂q = ŷ − y",
    tex=r"\frac{\partial L}{\partial q}=\hat{y}-y",
    code="unrolled.nn.output.summed_nats",
    how="finite differences",
    within=DIFFERENCES,
)
def logits_gradient() -> Off:
    q = draws(5)
    numeric = _nats_slope(q, 3)
    return Off(apart(softmax(q) - one_hot(3, 5), numeric) + apart(surprise_at(q, 3)[1], numeric))


def _nats_slope(q: Array, target: int) -> Array:
    return slope(lambda q: -float(np.log(softmax(q)[target])), q)


@book.erratum(
    "E8",
    "000 eq 37",
    "M",
    printed="−(y_l/ŷ_l) ŷ_l + Σ_{k≠l} (y_k/ŷ_k)(−ŷ_k ŷ_l)",
    says="−(y_l/ŷ_l) ŷ_l (1 − ŷ_l) + Σ_{k≠l} (−y_k/ŷ_k)(−ŷ_k ŷ_l)",
    printed_tex=r"-\frac{y_l}{\hat{y}_l}\hat{y}_l+"
    r"\sum_{k\ne l}\frac{y_k}{\hat{y}_k}(-\hat{y}_k\hat{y}_l)",
    tex=r"-\frac{y_l}{\hat{y}_l}\hat{y}_l(1-\hat{y}_l)"
    r"+\sum_{k\ne l}\left(-\frac{y_k}{\hat{y}_k}\right)(-\hat{y}_k\hat{y}_l)",
    code="unrolled.nn.output.summed_nats",
    within=DIFFERENCES,
)
def sign_of_the_others() -> Off:
    q, y = draws(5), one_hot(3, 5)
    p, others = softmax(q), 1 - np.eye(5)
    printed = -y / p * p + others @ (y / p * -p) * p
    correct = -y / p * p * (1 - p) + others @ (-y / p * -p) * p
    true = surprise_at(q, 3)[1]
    seen = f"∂L/∂q_0 is {printed[0]:+.3f} as printed, {true[0]:+.3f} in truth"
    return Off(apart(correct, true), apart(printed, true), seen)


@book.equation(
    "F6",
    "000 eq 41–45",
    "∂L/∂U = (ŷ − y) h_tᵀ, of the shape of U, V × h",
    tex=r"\frac{\partial L^t}{\partial U}=(\hat{y}^t-y^t)\,h_t^{\top}",
    code="unrolled.nn.output.summed_nats",
    how="finite differences",
    within=DIFFERENCES,
)
def output_matrix_gradient() -> Off:
    U, h = draws(5, 3), draws(3)
    by_hand = np.outer(softmax(U @ h) - one_hot(1, 5), h)
    numeric = slope(lambda U: -float(np.log(softmax(U @ h)[1])), U)
    return Off(apart(by_hand, numeric) + apart(surprise(U, h, 1)[1], numeric))


@book.erratum(
    "E9",
    "000 eq 45",
    "S",
    printed="(ŷ − y) · h_t; “t^t are one-hot”",
    says="the outer product (ŷ − y) h_tᵀ, V × h; y^t are one-hot",
    code="unrolled.nn.output.summed_nats",
)
def outer_product() -> Off:
    U, h = draws(5, 3), draws(3)
    d = softmax(U @ h) - one_hot(1, 5)
    try:
        size = np.dot(d, h).size
    except ValueError:
        size = 0  # the product is not defined
    correct = apart(np.outer(d, h), surprise(U, h, 1)[1])
    return Off(correct, abs(size - 15), "5 numbers times 3 is undefined")


book.remark(
    "E7",
    "000 eq 23, 28",
    "T",
    printed="∂q/∂V_ij; sums run from n = 0 to N",
    says="∂q/∂U_ij; N classes are counted once, 1 to N",
)
