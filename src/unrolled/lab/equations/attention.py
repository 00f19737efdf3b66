"""Attention, and sequences from sequences."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import Array, apart, draws, slope
from unrolled.nn.attention import Attention

book = Book("Attention and translation")
S, Q = 5, 4


def _attend(score: str, h: Tensor, s: Tensor, **options: int) -> tuple[Tensor, Tensor, Any]:
    """Context and weights of queries s (T, Q) over states h (S, Q), and the score used."""
    attention = _drawn(score, s.size(1), h.size(1), **options)
    memory = attention.remember(h[None], torch.zeros(1, len(h), dtype=torch.bool))
    context, weights = attention(s[None], memory)
    return context[0].detach(), weights[0].detach(), attention.score


def _drawn(score: str, query_size: int, key_size: int, **options: int) -> Attention:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Attention(score, query_size, key_size, **options).double()


def _states() -> tuple[Tensor, Tensor]:
    return torch.from_numpy(draws(S, Q)), torch.from_numpy(draws(3, Q, seed=1))


@book.equation(
    "L1",
    "001; 004 Attention",
    "weights α = softmax(score(s, h_i)): none below 0, sum 1, 0 on padding",
    tex=r"\alpha_{t,i}=\frac{\exp(\mathrm{score}(s_t,h_i))}{\sum_j\exp(\mathrm{score}(s_t,h_j))}",
    code="unrolled.nn.attention.Attention",
)
def weights_sum_to_one() -> Off:
    h, s = _states()
    attention, padding = _drawn("additive", Q, Q, size=6), torch.arange(S)[None] >= S - 2
    weights = attention(s[None], attention.remember(h[None], padding))[1].detach()
    wrong = (weights < 0).sum() + (weights[:, :, S - 2 :] != 0).sum()
    return Off(float((weights.sum(dim=2) - 1).abs().max()) + float(wrong))


@book.equation(
    "L2",
    "000 eq 85; 004",
    "c = Σ α_i h_i, between the least and the largest h",
    tex=r"c_t=\sum_{i=1}^{n}\alpha_{t,i}h_i",
    code="unrolled.nn.attention.Attention",
)
def context_vector() -> Off:
    h, s = _states()
    context, weights, _ = _attend("dot", h, s)
    outside = ((context < h.amin(0)) | (context > h.amax(0))).sum()
    return Off(apart(context, weights @ h) + float(outside))


@book.equation(
    "L6",
    "000 eq 87; 001 MLP; 004 variants",
    "vᵀ tanh(W₁ h + W₂ s), and vᵀ tanh(W [s; h]) with W = [W₂ W₁]: the same",
    tex=r"v^{\top}\tanh(W_1h+W_2s)=v^{\top}\tanh(W[s;h])",
    code="unrolled.nn.attention.Additive and Concat",
    rows=("L5",),
)
def additive_and_concat() -> Off:
    h, s = _states()
    _, _, score = _attend("additive", h, s, size=6)
    W2, W1, v = (p.detach() for p in (score.query, score.key, score.vector))
    own = torch.tanh(h[None] @ W1.T + s[:, None] @ W2.T) @ v
    joined = torch.cat([s[:, None].expand(-1, S, -1), h[None].expand(3, -1, -1)], dim=2)
    W = torch.cat([W2, W1], dim=1)
    concat = torch.tanh(joined @ W.T) @ v
    other = _drawn("concat", Q, Q, size=6).score
    other.load_state_dict({"weight": W, "vector": v})
    package, same = (a(s[None], a.keys(h[None]))[0].detach() for a in (score, other))
    return Off(apart(own, package) + apart(concat, package) + apart(same, package))


@book.equation(
    "L7",
    "000 §16.4; 001; 004",
    "sᵀ W h with W of shape (size of s, size of h); W = I is the dot product",
    tex=r"s^{\top}Wh,\;W\in\mathbb{R}^{d_s\times d_h}",
    code="unrolled.nn.attention.General",
    rows=("L9",),
)
def bilinear() -> Off:
    h, s = torch.from_numpy(draws(S, 6)), torch.from_numpy(draws(3, Q, seed=1))
    _, _, score = _attend("general", h, s)
    own = s @ score.weight.detach() @ h.T
    return Off(apart(own, score(s[None], score.keys(h[None]))[0].detach()))


@book.equation(
    "L10",
    "000 §16.4; 001",
    "sᵀh / √d has variance 1 where s and h have it",
    tex=r"\frac{s^{\top}h}{\sqrt{d}}",
    code="unrolled.nn.attention.Scaled",
    within=0.05,
)
def scaled_dot() -> Off:
    return Off(abs(float(_scaled(draws(4000, 64), draws(4000, 64, seed=1)).var()) - 1.0))


def _scaled(s: Array, h: Array) -> Array:
    """The package's score of each s with its own h (N,)."""
    score = _drawn("scaled", s.shape[1], h.shape[1]).score
    found = score(torch.from_numpy(s)[:, None], score.keys(torch.from_numpy(h)[:, None]))
    return np.asarray(found.detach().numpy().ravel())


@book.erratum(
    "E33",
    "000 §16.4",
    "S",
    printed="dot / √n, n the length of the source (eq 82); location-based among the scores",
    says="/ √d, d the size of a key; location-based gives the weights without looking at h_i",
    code="unrolled.nn.attention.Scaled",
    within=0.1,
)
def size_not_length() -> Off:
    d, n = 64, 7
    s, h = draws(4000, d), draws(4000, d, seed=1)
    correct, dots = float(_scaled(s, h).var()), (s * h).sum(axis=1)
    printed = float((dots / math.sqrt(n)).var())
    return Off(abs(correct - 1), abs(printed - 1), f"the variance is {printed:.0f}, not 1")


@book.erratum(
    "E59",
    "001 Attention Score Functions (2)",
    "S",
    printed="√|k|, “size of the vector”",
    says="√d_k, the number of its places, not its norm",
    code="unrolled.nn.attention.Scaled",
    within=0.1,
)
def places_not_norm() -> Off:
    d = 64
    s, h = draws(4000, d), 3 * draws(4000, d, seed=1)
    dots = (s * h).sum(axis=1)
    correct = float(_scaled(s, h).var()) / 9  # h has variance 9
    printed = float((dots / np.sqrt(np.linalg.norm(h, axis=1))).var()) / 9
    return Off(abs(correct - 1), abs(printed - 1), f"by √norm the variance is {printed:.1f}")


@book.erratum(
    "E63",
    "004 Attention in equations",
    "S",
    printed="e^t ∈ R^h, α^t ∈ R^h, [a; s] ∈ R^h",
    says="R^N, R^N, R^{2h}: a score for each of N states",
    code="unrolled.nn.attention.Attention",
)
def shapes_of_attention() -> Off:
    h, s = _states()
    context, weights, _ = _attend("dot", h, s)
    joined = torch.cat([context, s], dim=1).size(1)
    wrong = float(weights.size(1) != S) + float(joined != 2 * Q)
    printed = float(weights.size(1) != Q) + float(joined != Q)
    return Off(wrong, printed, f"α has {S} places for {S} states of size {Q}")


@book.erratum(
    "E64",
    "004 variants",
    "S",
    printed="W ∈ R^{d₁×d₂} with sᵀ W h; (U_s)ᵀ(V h)",
    says="h ∈ R^{d₁}, s ∈ R^{d₂}: W ∈ R^{d₂×d₁}; (U s)ᵀ(V h)",
    code="unrolled.nn.attention.General",
)
def which_size_first() -> Off:
    weight = _drawn("general", 4, 6).score.get_parameter("weight")  # s of 4, h of 6
    correct, printed = (float(tuple(weight.shape) != shape) for shape in ((4, 6), (6, 4)))
    return Off(correct, printed, "sᵀ (4) times W (6, 4) is undefined")


@book.erratum(
    "E32",
    "000 eq 86–87",
    "S",
    printed="weights by s_{t−1}, the score by s_t; α called a score; v a matrix",
    says="one of them (Bahdanau: s_{t−1}; Luong: s_t); α is a weight; v is a vector",
    code="model.placement",
)
def which_state_asks() -> Off:
    """The two placements look elsewhere: mixing them gives neither."""
    h, s = _states()
    _, before, _ = _attend("dot", h, s[:1])
    _, after, _ = _attend("dot", h, s[1:2])
    return Off(apart(before, _attend("dot", h, s[:1])[1]), apart(before, after))


@book.erratum(
    "E57",
    "003 eq 23, §3.2",
    "S",
    printed="t' is bound by the sum and free beside it; the decoder takes s(t), c(t)",
    says="the sum runs over t''; it takes s(t−1), c(t−1) and the context",
    code="unrolled.nn.attention.Attention",
)
def free_and_bound() -> Off:
    """Read literally, the sum over t' of exp(e_t') stands for one weight: all are the same."""
    h, s = _states()
    _, weights, score = _attend("dot", h, s)
    e = score(s[None], score.keys(h[None]))[0].detach().numpy()[0]
    correct, literal = np.exp(e) / np.exp(e).sum(), np.full(S, 1.0)
    return Off(apart(weights[0], correct), apart(weights[0], literal), "Σ_t' e_t' / Σ_t' e_t'")


@book.equation(
    "L3",
    "000 eq 84–87; 003 §3.2",
    "gradients pass through weights and values: ∂c/∂h by differences",
    tex=r"s_t=f(s_{t-1},y_{t-1},c_t),\quad c_t=\sum_i\alpha(s_{t-1},h_i)h_i",
    code="unrolled.nn.attention.Attention",
    how="finite differences",
    within=DIFFERENCES,
)
def through_attention() -> Off:
    h, s = _states()
    attention = _drawn("additive", Q, Q, size=6)
    nothing = torch.zeros(1, S, dtype=torch.bool)

    def value(h: Tensor) -> Tensor:
        context, _ = attention(s[None], attention.remember(h[None], nothing))
        return torch.as_tensor(context.square().sum())

    given = h.clone().requires_grad_()
    (grad,) = torch.autograd.grad(value(given), given)
    numeric = slope(lambda a: value(torch.from_numpy(a)).item(), h.numpy())
    return Off(apart(grad, numeric))
