"""Word embeddings: objectives and comparisons."""

import numpy as np

from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import (
    Array,
    apart,
    draws,
    one_hot,
    sigmoid,
    slope,
    softmax,
    surprise_at,
)

book = Book("Word embeddings")
V, D = 7, 4


@book.equation(
    "C3",
    "003 eq 14",
    "p(t | c) = exp(θ_tᵀ e_c) / Σ_j exp(θ_jᵀ e_c); its loss has the gradient Θᵀ(ŷ − y)",
    tex=r"p(t\mid c)=\frac{\exp(\theta_t^{\top}e_c)}{\sum_j\exp(\theta_j^{\top}e_c)}",
    code="unrolled.nn.output.summed_nats",
    how="finite differences",
    within=DIFFERENCES,
)
def full_softmax() -> Off:
    theta, e = draws(V, D), draws(D)
    by_hand = theta.T @ (softmax(theta @ e) - one_hot(2, V))
    numeric = slope(lambda e: -float(np.log(softmax(theta @ e)[2])), e)
    package = theta.T @ surprise_at(theta @ e, 2)[1]
    return Off(apart(by_hand, numeric) + apart(package, numeric))


@book.erratum(
    "E43",
    "003 §2.2.1",
    "M",
    printed="L = Σ y log ŷ",
    says="L = −Σ y log ŷ, 0 or more and least where ŷ = y",
    printed_tex=r"L=\sum_j y_j\log\hat{y}_j",
    tex=r"L=-\sum_j y_j\log\hat{y}_j",
    code="unrolled.nn.output.summed_nats",
)
def minus_sign() -> Off:
    """A step down the slope must make the right word likelier."""
    z, target = draws(V), 3
    rise = -surprise_at(z, target)[1]  # ∂(y log ŷ)/∂z
    before = softmax(z)[target]
    printed, correct = (softmax(z + sign * rise)[target] for sign in (-1, 1))
    seen = f"a step down the printed loss takes p from {before:.3f} to {printed:.3f}"
    return Off(max(0.0, before - correct), before - printed, seen)


@book.erratum(
    "E44",
    "003 eq 14",
    "M",
    printed="θ_e, “word c's column in the lookup table”, called CBOW",
    says="θ_t: the target's own vector, of a second matrix; CBOW averages several contexts",
    printed_tex=r"p(t\mid c)\propto\exp(e_t^{\top}e_c)",
    tex=r"p(t\mid c)\propto\exp(\theta_t^{\top}e_c)",
)
def two_matrices() -> Off:
    """With one matrix the score of (t, c) is that of (c, t): succession cannot be learned."""
    E = draws(V, D)
    order = np.zeros((V, V))
    order[0, 1], order[1, 0] = 1.0, -1.0  # 1 follows 0, never the other way round

    def best(scores: list[Array]) -> float:
        """How near sums of such scores can come to the order."""
        basis = np.stack([s.ravel() for s in scores])
        fit, *_ = np.linalg.lstsq(basis.T, order.ravel(), rcond=None)
        return apart(basis.T @ fit, order.ravel())

    one = [
        np.outer(E[:, i], E[:, j]) + np.outer(E[:, j], E[:, i]) for i in range(D) for j in range(D)
    ]
    two = [np.outer(a, b) for a in np.eye(V) for b in np.eye(V)]
    return Off(best(two), best(one), "with one matrix “a b” scores as “b a” does")


@book.equation(
    "C6",
    "003 §2.2.2, eq 15",
    "negative sampling: −log σ(θ_tᵀe) − Σ_k log σ(−θ_kᵀe); k + 1 rows of θ get a gradient",
    tex=r"-\log\sigma(\theta_t^{\top}e_c)-\sum_k\log\sigma(-\theta_k^{\top}e_c)",
    code="unrolled.lab.equations.embeddings.negative_sampling",
    how="finite differences",
    within=DIFFERENCES,
)
def negative_sampling() -> Off:
    theta, e, target, noise = draws(V, D), draws(D), 1, [4, 5]

    def loss(theta: Array) -> float:
        return -float(np.log(sigmoid(theta[target] @ e)) + np.log(sigmoid(-theta[noise] @ e)).sum())

    by_hand = np.zeros_like(theta)
    by_hand[target] = (sigmoid(theta[target] @ e) - 1) * e
    by_hand[noise] = sigmoid(theta[noise] @ e)[:, None] * e
    rows = int((np.abs(by_hand).sum(axis=1) > 0).sum())
    return Off(apart(by_hand, slope(loss, theta)) + abs(rows - 3))


@book.equation(
    "C8",
    "003 eq 16",
    "noise P(w) ∝ f(w)^{3/4}: counts 16 : 1 are drawn 8 : 1",
    tex=r"P(w)=\frac{f(w)^{3/4}}{\sum_j f(w_j)^{3/4}}",
    code="unrolled.lab.equations.embeddings.noise",
    how="exact number",
)
def noise() -> Off:
    p = np.array([16.0, 1.0]) ** 0.75
    p /= p.sum()
    return Off(abs(p[0] / p[1] - 8.0) + abs(p.sum() - 1.0))


def _glove(theta: Array, e: Array, b: Array, c: Array, X: Array) -> float:
    weight = np.minimum(1.0, (X / 10.0) ** 0.75)
    return float((weight * (theta @ e.T + b[:, None] + c[None] - np.log(X)) ** 2).sum())


@book.equation(
    "C9",
    "003 eq 17",
    "GloVe: Σ f(X_ij)(θ_iᵀe_j + b_i + b'_j − log X_ij)², f(X) = min(1, (X/x_max)^{3/4})",
    tex=r"\sum_{ij}f(X_{ij})(\theta_i^{\top}e_j+b_i+b'_j-\log X_{ij})^2",
    code="unrolled.lab.equations.embeddings._glove",
    how="finite differences",
    within=DIFFERENCES,
    rows=("C10",),
)
def glove() -> Off:
    theta, e, b, c = draws(V, D), draws(V, D, seed=1), draws(V), draws(V, seed=1)
    X = np.random.default_rng(0).integers(1, 30, (V, V)).astype(float)
    residual = np.minimum(1.0, (X / 10.0) ** 0.75) * (
        theta @ e.T + b[:, None] + c[None] - np.log(X)
    )
    by_hand = 2 * residual @ e
    nothing = min(1.0, (0.0 / 10.0) ** 0.75)
    return Off(apart(by_hand, slope(lambda t: _glove(t, e, b, c, X), theta)) + nothing)


@book.erratum(
    "E45",
    "003 eq 17",
    "M",
    printed="+ b_i − b'_j; X_ij is “i in the context of j”, then X_ct; of f only f(0) = 0",
    says="+ b_i + b'_j: the same optimum, but exported biases have the other sign",
    printed_tex=r"\theta_i^{\top}e_j+b_i-b'_j-\log X_{ij}",
    tex=r"\theta_i^{\top}e_j+b_i+b'_j-\log X_{ij}",
    code="unrolled.lab.equations.embeddings._glove",
)
def sign_of_the_bias() -> Off:
    """Counts that biases alone explain: log X_ij = b_i + b'_j. Which reads them back?"""
    b, c, nothing = draws(V), draws(V, seed=1), np.zeros((V, D))
    X = np.exp(b[:, None] + c[None])
    correct, printed = (_glove(nothing, nothing, b, sign * c, X) for sign in (1, -1))
    return Off(correct, printed, f"at the true biases the printed loss is {printed:.1f}, not 0")


# ------------------------------------------------------------------ comparisons


def cosine(u: Array, v: Array) -> float:
    """uᵀv / (‖u‖ ‖v‖)."""
    return float(u @ v / (np.linalg.norm(u) * np.linalg.norm(v)))


@book.equation(
    "C11",
    "003 eq 12",
    "cosine similarity, within −1 and 1, whatever the lengths",
    tex=r"\cos(u,v)=\frac{u^{\top}v}{\lVert u\rVert\,\lVert v\rVert}",
    code="unrolled.nn.attention.Cosine",
)
def cosine_similarity() -> Off:
    import torch

    from unrolled.nn.attention import Cosine

    def package(u: Array, v: Array) -> float:
        score, (s, h) = Cosine(D, D), (torch.from_numpy(a)[None, None] for a in (u, v))
        return float(score(s, score.keys(h)))

    u, v = draws(D), draws(D, seed=1)
    off = abs(package(u, v) - cosine(u, v)) + abs(package(3 * u, 0.2 * v) - cosine(u, v))
    return Off(off + abs(package(u, u) - 1) + max(0.0, abs(package(u, v)) - 1.0))


@book.equation(
    "C12",
    "003 eq 13",
    "−‖u − v‖₂ as a similarity: symmetric, largest where u = v",
    tex=r"-\lVert u-v\rVert_2",
    code="numpy.linalg.norm",
)
def distance() -> Off:
    u, v = draws(D), draws(D, seed=1)
    a, b = -np.linalg.norm(u - v), -np.linalg.norm(v - u)
    return Off(abs(float(a - b)) + max(0.0, float(a)) + float(np.linalg.norm(u - u)))


WORDS = {  # Table 3: royal, gender, food, temperature
    "man": [0.01, 0.97, 0.02, 0.01],
    "woman": [0.01, -0.99, 0.01, 0.02],
    "king": [0.98, 0.97, 0.02, 0.01],
    "queen": [0.99, -0.98, 0.02, 0.01],
    "juice": [0.0, 0.01, 0.95, 0.2],
}


@book.equation(
    "C13",
    "003 eq 11, Table 3",
    "king − man + woman is nearest to queen, the three given words left out",
    tex=r"\arg\max_w\;\mathrm{sim}(e_w,\,e_{king}-e_{man}+e_{woman})",
    code="unrolled.lab.equations.embeddings.analogy",
    how="exact number",
    within=1e-5,
)
def analogy() -> Off:
    e = {word: np.array(vector) for word, vector in WORDS.items()}
    point = e["king"] - e["man"] + e["woman"]
    others = [word for word in e if word not in ("king", "man", "woman")]
    best = max(others, key=lambda word: cosine(e[word], point))
    return Off(float(best != "queen") + abs(cosine(e["queen"], point) - 0.99990))


@book.erratum(
    "E46",
    "003 §2.1.1",
    "C",
    printed="analogies hold only in the original space, not after PCA or t-SNE",
    says="PCA is linear: differences survive but for the variance it drops; t-SNE keeps none",
    code="sklearn.decomposition.PCA",
    within=1e-9,
)
def after_a_projection() -> Off:
    """king − man = queen − woman, rotated by PCA and bent as a neighbour map bends."""
    E = draws(20, D)
    E[0] = E[1] + E[2] - E[3]
    centred = E - E.mean(axis=0)
    axes = np.linalg.svd(centred)[2]
    linear, bent = centred @ axes[:3].T, np.tanh(2 * centred @ axes[:2].T)
    gaps = [
        float(np.linalg.norm(M[0] - M[1] - M[2] + M[3]) / np.linalg.norm(M[0] - M[3]))
        for M in (linear, bent)
    ]
    return Off(gaps[0], gaps[1], f"the parallelogram opens by {gaps[1]:.0%} in the bent map")


book.remark(
    "E54",
    "003 §2.2.2",
    "C",
    printed="negative sampling is there to cure over-frequent words; samples come from the corpus",
    says="to avoid the full softmax; they come from the noise distribution (C8)",
)
book.remark(
    "E55",
    "003 §2.2.4",
    "C",
    printed="training embeddings “is supervised”; reference and equations of debiasing are missing",
    says="self-supervised; Bolukbasi et al. 2016",
)
