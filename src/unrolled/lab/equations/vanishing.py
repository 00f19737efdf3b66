"""Vanishing and exploding gradients, and their remedies."""

import math

import numpy as np

from unrolled.lab.by_hand import Array, forward, random_weights, sigmoid, step_jacobian
from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import apart, draws, jacobian
from unrolled.nn.cells import RNNCell

book = Book("Vanishing and exploding gradients")
E, H = 3, 4


def _run(
    activation: str, *, T: int = 4, seed: int = 0, scale: float = 0.7
) -> tuple[Array, Array, Array]:
    """U, all z_t and ∂h_T/∂h_0 by differences, of a small network."""
    cell = RNNCell(activation)
    w, xs = random_weights(cell, E, H, seed=seed, scale=scale), draws(T, E, seed=seed)
    start = 0.5 * draws(H, seed=seed)
    z = np.stack([step.parts[0] for step in forward(cell, w, xs, start)])
    true = jacobian(lambda h: forward(cell, w, xs, h)[-1].after, start)
    return w["hh"], z, true


def _slope(z: Array) -> Array:
    return sigmoid(z) * (1 - sigmoid(z))


@book.equation(
    "G1",
    "000 eq 65; 002 eq 12–13; 004",
    "∂h_t/∂h_{t−1} = diag(σ'(z_t)) W_h",
    tex=r"\frac{\partial h_t}{\partial h_{t-1}}=\mathrm{diag}(\sigma'(z_t))\,W_h",
    code="unrolled.lab.by_hand.step_jacobian",
    how="finite differences",
    within=DIFFERENCES,
)
def step_matrix() -> Off:
    U, z, true = _run("sigmoid", T=1)
    cell = RNNCell("sigmoid")
    w = random_weights(cell, E, H)
    step = forward(cell, w, draws(1, E), 0.5 * draws(H))[0]
    own = np.diag(_slope(z[0])) @ U
    return Off(max(apart(own, true), apart(step_jacobian(cell, w, step), true)))


@book.erratum(
    "E36",
    "002 eq 12",
    "M",
    printed="∂h_t/∂h_k = ∏ Wᵀ diag(f'(h_{j−1}))",
    says="∏_{j=t..k+1} diag(f'(z_j)) W: at the pre-activation of step j, W not transposed",
    printed_tex=r"\prod_{j=k+1}^{t}W^{\top}\mathrm{diag}[f'(h_{j-1})]",
    tex=r"\prod_{j=t}^{k+1}\mathrm{diag}[f'(z_j)]\,W",
    code="unrolled.lab.by_hand.step_jacobian",
    within=DIFFERENCES,
)
def where_the_slope_is_taken() -> Off:
    U, z, true = _run("sigmoid")
    states = [0.5 * draws(H), *sigmoid(z)]
    correct, printed = np.eye(H), np.eye(H)
    for t in range(len(z)):
        correct = np.diag(_slope(z[t])) @ U @ correct
        printed = printed @ U.T @ np.diag(_slope(states[t]))
    return Off(apart(correct, true), apart(printed, true))


@book.erratum(
    "E39",
    "002 after eq 16",
    "M",
    printed="∂σ(W h)/∂h = Wᵀ ∂σ(h)/∂h = Wᵀ ∂h/∂h",
    says="diag(σ'(W h)) W; and ∂σ(h)/∂h is no ∂h/∂h",
    printed_tex=r"W^{\top}\frac{\partial\sigma(h)}{\partial h}",
    tex=r"\mathrm{diag}(\sigma'(Wh))\,W",
    code="unrolled.lab.by_hand.step_jacobian",
    within=DIFFERENCES,
)
def slope_at_the_product() -> Off:
    W, h = draws(H, H), draws(H)
    true = jacobian(lambda h: sigmoid(W @ h), h)
    correct, printed = np.diag(_slope(W @ h)) @ W, W.T @ np.diag(_slope(h))
    return Off(apart(correct, true), apart(printed, true), f"W alone: {apart(W.T, true):.2f}")


@book.erratum(
    "E15",
    "000 eq 67",
    "M",
    printed="W_h^{(i−j)} pulled out of the product of the diagonals",
    says="matrices do not commute: ∏ diag(σ'(z_t)) W_h stays a product, but in the linear case",
    printed_tex=r"W_h^{(i-j)}\prod_{j<t\le i}\mathrm{diag}(\sigma'(z_t))",
    tex=r"\prod_{j<t\le i}\mathrm{diag}(\sigma'(z_t))\,W_h",
    code="unrolled.lab.by_hand.step_jacobian",
    within=DIFFERENCES,
)
def matrices_do_not_commute() -> Off:
    U, z, true = _run("sigmoid")
    correct, diagonals = np.eye(H), np.eye(H)
    for row in z:
        correct = np.diag(_slope(row)) @ U @ correct
        diagonals = np.diag(_slope(row)) @ diagonals
    printed = np.linalg.matrix_power(U, len(z)) @ diagonals
    return Off(apart(correct, true), apart(printed, true))


@book.equation(
    "G2",
    "000 eq 68; 002 eq 15–16",
    "‖∂h_t/∂h_k‖ ≤ (β_W β_h)^{t−k}; β_h is 1/4 for the logistic function, 1 for tanh",
    tex=r"\left\lVert\frac{\partial h_t}{\partial h_k}\right\rVert\le(\beta_W\beta_h)^{t-k}",
    code="unrolled.lab.by_hand.step_jacobian",
    how="inequality",
)
def norm_bound() -> Off:
    """1000 random networks: the largest share by which the bound is passed."""
    worst = 0.0
    for seed in range(1000):
        activation, slope = (("sigmoid", 0.25), ("tanh", 1.0))[seed % 2]
        cell = RNNCell(activation)
        w = random_weights(cell, E, H, seed=seed, scale=0.2 + seed / 500)
        product = np.eye(H)
        for step in forward(cell, w, draws(5, E, seed=seed), np.zeros(H)):
            product = step_jacobian(cell, w, step) @ product
        bound = (np.linalg.norm(w["hh"], 2) * slope) ** 5
        worst = max(worst, float(np.linalg.norm(product, 2) / bound) - 1.0)
    return Off(max(worst, 0.0))


@book.erratum(
    "E38",
    "002 eq 15",
    "C",
    printed="‖f'‖ can only be as large as 1 given the sigmoid",
    says="as large as 1/4; 1 is tanh's. So ‖W‖ < 4 already makes gradients vanish",
    code="unrolled.lab.by_hand.ACTIVATIONS",
)
def quarter() -> Off:
    highest = float(_slope(np.linspace(-5, 5, 10_001)).max())
    return Off(abs(highest - 0.25), abs(highest - 1.0), f"the largest slope is {highest:g}")


@book.erratum(
    "E16",
    "000 after eq 68",
    "M",
    printed="if the largest eigenvalue is ≤ 1 the gradient shrinks exponentially",
    says="if the largest singular value times max |σ'| is < 1; eigenvalues rule only the limit",
    printed_tex=r"\max_i\lambda_i\le 1",
    tex=r"\sigma_{\max}(W_h)\cdot\max|\sigma'|<1",
    code="unrolled.lab.by_hand.step_jacobian",
)
def eigenvalues_do_not_bound() -> Off:
    """Both eigenvalues 0.9, yet ten steps grow; λ = 1 does not shrink either."""
    W = np.array([[0.9, 5.0], [0.0, 0.9]])
    V = 0.9 * W / np.linalg.norm(W, 2)  # largest singular value 0.9
    grown, shrunk, stays = (
        float(np.linalg.norm(linear_product(matrix, 10), 2)) for matrix in (W, V, np.eye(2))
    )
    seen = f"with both λ = 0.9 the norm after 10 steps is {grown:.1f}; with λ = 1 it is {stays:g}"
    return Off(max(0.0, shrunk - 0.9**10), grown - 0.9**10, seen)


def linear_product(W: Array, steps: int) -> Array:
    """∏ ∂h_t/∂h_{t−1} of a network without activation whose recurrent matrix is W."""
    H = len(W)
    w = {"ih": np.zeros((H, 1)), "hh": W, "bias_ih": np.zeros(H), "bias_hh": np.zeros(H)}
    cell, found = RNNCell("identity"), np.eye(H)
    for step in forward(cell, w, np.zeros((steps, 1)), np.ones(H)):
        found = step_jacobian(cell, w, step) @ found
    return found


@book.equation(
    "G3",
    "004 proof sketch",
    "in a linear network the gradient is W^ℓ: log ‖·‖ over ℓ is a line of slope log ρ(W)",
    tex=r"\log\lVert W^{\ell}\rVert\approx\ell\log\rho(W)",
    code="unrolled.lab.by_hand.step_jacobian",
    within=0.02,
)
def linear_slope() -> Off:
    worst = 0.0
    for seed in range(5):
        W = draws(6, 6, seed=seed, scale=0.5)
        rho = math.log(float(np.abs(np.linalg.eigvals(W)).max()))
        logs = [_log_norm(W, n) for n in (400, 800)]
        worst = max(worst, abs((logs[1] - logs[0]) / 400 - rho) / abs(rho))
    return Off(worst)


def _log_norm(W: Array, power: int) -> float:
    """log ‖W^power‖, scaled on the way."""
    total, P, ten = 0.0, np.eye(len(W)), linear_product(W, 10)
    for _ in range(power // 10):
        P = ten @ P
        size = float(np.linalg.norm(P))
        total, P = total + math.log(size), P / size
    return total


@book.erratum(
    "E65",
    "004 proof sketch",
    "M",
    printed="they vanish if the eigenvalues are less than 1; the row is written in eigenvectors",
    says="if |λ_i| < 1; a row vector needs left eigenvectors, and W must be diagonalisable",
    printed_tex=r"\lambda_i<1,\quad c=\sum_i a_i q_i",
    tex=r"|\lambda_i|<1,\quad c=\sum_i a_i p_i^{\top},\;p_i^{\top}W=\lambda_i p_i^{\top}",
    code="unrolled.lab.by_hand.step_jacobian",
)
def absolute_eigenvalues() -> Off:
    """λ = −2 is less than 1 and explodes; and the row g W³ written in both kinds of vectors."""
    W, g = np.array([[0.5, 1.0], [0.0, -2.0]]), np.array([1.0, 1.0])
    values, right = np.linalg.eig(W)
    left = np.linalg.inv(right)
    true = g @ linear_product(W, 3)
    by_left = (g @ right * values**3) @ left
    by_right = (np.linalg.solve(right, g) * values**3) @ right.T
    grown = float(np.linalg.norm(linear_product(W, 10), 2))
    seen = f"eigenvalues 0.5 and −2: the norm after 10 steps is {grown:.0f}"
    return Off(apart(by_left, true), apart(by_right, true), seen)
