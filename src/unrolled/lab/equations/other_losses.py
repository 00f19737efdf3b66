"""Losses of several labels and of one, and perplexity: the rest of the book of losses."""

import math

import numpy as np

from unrolled.lab.equations.entry import DIFFERENCES, Off
from unrolled.lab.equations.loss import book as book
from unrolled.lab.equations.tools import Array, apart, chances, draws, sigmoid, slope


@book.equation(
    "F9",
    "003 eq 3",
    "logistic loss of each label: −y log ŷ − (1−y) log(1−ŷ); by its logit ŷ − y",
    tex=r"-y\log\hat{y}-(1-y)\log(1-\hat{y})",
    code="unrolled.tasks.classify.network.ClassifyNetwork.nats",
    how="finite differences",
    within=DIFFERENCES,
)
def logistic_loss() -> Off:
    z, y = draws(6), np.array([1.0, 0, 0, 1, 1, 0])

    def loss(z: Array) -> float:
        p = sigmoid(z)
        return -float((y * np.log(p) + (1 - y) * np.log(1 - p)).sum())

    numeric = slope(loss, z)
    nats, gradient = _labels_surprise(z, y)
    off = apart(sigmoid(z) - y, numeric) + apart(gradient, numeric)
    return Off(off + apart(nats, loss(z)))


def _labels_surprise(z: Array, y: Array) -> tuple[float, Array]:
    """The loss of several labels and its gradient by their logits, by the package."""
    import torch

    from unrolled.tasks.classify.network import ClassifyNetwork
    from unrolled.tasks.classify.settings import ClassifySettings
    from unrolled.text.labels import Labels

    labels = Labels(tuple("abcdef"), (1,) * 6, 6, multi_label=True)
    settings = ClassifySettings(kind="mean", embedding_size=2)
    network = ClassifyNetwork(settings, labels, [1] * 9, 0).double()
    logits = torch.from_numpy(z[None]).requires_grad_()
    nats = network.nats(logits, torch.from_numpy(y[None])).sum()
    (gradient,) = torch.autograd.grad(nats, logits)
    return nats.item(), gradient[0].numpy()


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
    printed, correct = float(sigmoid(z).sum()), float(chances(z).sum())
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
