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
)
from unrolled.lab.net import Net, gradients, loss_of, small_net

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

    def parts(w1: float) -> tuple[float, float, float]:
        h1 = float(sigmoid(np.array(w1 * x)))
        h2 = float(sigmoid(np.array(w2 * h1)))
        return h1, h2, float(sigmoid(np.array(w3 * h2)))

    h1, h2, h3 = parts(w1)
    to_h2 = -2 * (y - h3) * h3 * (1 - h3) * w3
    dh2_dz2, dz2_dh1, dh1_dz1 = h2 * (1 - h2), w2, h1 * (1 - h1)
    correct = to_h2 * dh2_dz2 * dz2_dh1 * dh1_dz1 * x
    dh2_dh1, dz2_dz1 = dh2_dz2 * dz2_dh1, dz2_dh1 * dh1_dz1
    printed = to_h2 * dh2_dz2 * dh2_dh1 * dz2_dz1 * dh1_dz1 * x
    true = slope(lambda w: (y - parts(float(w[0]))[2]) ** 2, np.array([w1]))[0]
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
    y, guess = draws(6, seed=1), draws(6, seed=2)
    numeric = slope(lambda g: float(((y - g) ** 2).mean()), guess)
    return Off(apart(2 / 6 * (guess - y), numeric))


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
    code="unrolled.nn.output.summed_nats",
)
def mean_over_tokens() -> Off:
    T, N = 12, 5  # steps with padding, real tokens, each of which costs 1 nat
    return Off(abs(N / N - 1), abs(N / T - 1), f"padding in the count makes 1 nat {N / T:.2f}")


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
    return Off(apart(by_hand, jacobian(softmax, q)) + float(np.abs(by_hand.sum(axis=1)).max()))


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
    return Off(apart(softmax(q) - one_hot(3, 5), _nats_slope(q, 3)))


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
    true = _nats_slope(q, 3)
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
    return Off(apart(by_hand, numeric) + float(by_hand.shape != U.shape))


@book.erratum(
    "E9",
    "000 eq 45",
    "S",
    printed="(ŷ − y) · h_t; “t^t are one-hot”",
    says="the outer product (ŷ − y) h_tᵀ, V × h; y^t are one-hot",
    code="unrolled.nn.output.summed_nats",
)
def outer_product() -> Off:
    d, h = draws(5), draws(3)
    try:
        size = np.dot(d, h).size
    except ValueError:
        size = 0  # the product is not defined
    return Off(abs(np.outer(d, h).size - 15), abs(size - 15), "5 numbers times 3 is undefined")


book.remark(
    "E7",
    "000 eq 23, 28",
    "T",
    printed="∂q/∂V_ij; sums run from n = 0 to N",
    says="∂q/∂U_ij; N classes are counted once, 1 to N",
)


# ------------------------------------------------------------------ other losses, perplexity


@book.equation(
    "F9",
    "003 eq 3",
    "logistic loss of each label: −y log ŷ − (1−y) log(1−ŷ); by its logit ŷ − y",
    tex=r"-y\log\hat{y}-(1-y)\log(1-\hat{y})",
    code="unrolled.tasks.classify.network",
    how="finite differences",
    within=DIFFERENCES,
)
def logistic_loss() -> Off:
    z, y = draws(6), np.array([1.0, 0, 0, 1, 1, 0])

    def loss(z: Array) -> float:
        p = sigmoid(z)
        return -float((y * np.log(p) + (1 - y) * np.log(1 - p)).sum())

    return Off(apart(sigmoid(z) - y, slope(loss, z)))


@book.erratum(
    "E48",
    "003 eq 3",
    "M",
    printed="the logistic loss, where exactly one of V tokens comes next; L = Σ J(t)",
    says="softmax cross-entropy for one of many, logistic loss for labels that are independent",
    printed_tex=r"\hat{y}=\sigma(z)",
    tex=r"\hat{y}=\mathrm{softmax}(z)",
    code="unrolled.nn.output.summed_nats",
)
def one_of_many() -> Off:
    z = draws(50)
    printed, correct = float(sigmoid(z).sum()), float(softmax(z).sum())
    return Off(abs(correct - 1), abs(printed - 1), f"50 next tokens have {printed:.1f} in all")


@book.equation(
    "N2",
    "002 eq 9; 004 Perplexity",
    "perplexity exp(J), J in nats: 10 for a uniform choice of 10",
    tex=r"\mathrm{PP}=\exp(J)=\prod_t P(x_t)^{-1/T}",
    code="unrolled.evaluate.perplexity.perplexity_scores",
    how="exact number",
    within=1e-9,
)
def perplexity_of_ten() -> Off:
    return Off(abs(_perplexity_of_ten() - 10.0))


def _perplexity_of_ten() -> float:
    from unrolled.evaluate.perplexity import Counted, perplexity_scores

    nats, tokens = np.full(4, 3 * math.log(10)), np.full(4, 3)
    return perplexity_scores(nats, tokens, Counted(4, 12, 0, 12, "word", "line"))[0].value


@book.erratum(
    "E37",
    "002 eq 9",
    "M",
    printed="perplexity = 2^J, J by the natural logarithm",
    says="exp(J); 2^J only where J is in bits",
    printed_tex=r"2^{J}",
    tex=r"e^{J}",
    code="unrolled.evaluate.perplexity.perplexity_scores",
)
def two_to_the_nats() -> Off:
    printed = 2 ** math.log(10)
    return Off(apart(_perplexity_of_ten(), 10), apart(printed, 10), f"{printed:.2f} instead of 10")
