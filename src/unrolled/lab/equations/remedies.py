"""What helps against vanishing and exploding: the rest of that book."""

import numpy as np

from unrolled.lab.by_hand import forward, random_weights, step_jacobian
from unrolled.lab.equations.entry import DIFFERENCES, Off
from unrolled.lab.equations.tools import apart, draws, jacobian
from unrolled.lab.equations.vanishing import E, H
from unrolled.lab.equations.vanishing import book as book
from unrolled.nn.cells import LSTMCell, RNNCell


@book.equation(
    "G6",
    "000 Alg 3; 002 Alg 1",
    "if ‖g‖ ≥ θ then g ← θ g / ‖g‖",
    tex=r"\hat{g}\leftarrow\frac{\theta}{\lVert\hat{g}\rVert}\hat{g}",
    code="unrolled.training.optimise.clip_gradients",
    within=1e-6,
)
def clipping() -> Off:
    import torch

    from unrolled.training.optimise import clip_gradients

    given = [torch.from_numpy(draws(4, 3)), torch.from_numpy(draws(5))]
    before = [g.clone() for g in given]
    clip_gradients(given, 0.5)
    flat, was = (np.concatenate([g.numpy().ravel() for g in gs]) for gs in (given, before))
    cosine = flat @ was / np.linalg.norm(flat) / np.linalg.norm(was)
    small = [torch.from_numpy(0.01 * draws(4))]
    kept = small[0].clone()
    clip_gradients(small, 0.5)
    changed = float((small[0] != kept).sum())
    return Off(abs(np.linalg.norm(flat) - 0.5) + abs(cosine - 1.0) + changed)


@book.equation(
    "G8",
    "002 §2.4",
    "W = I with ReLU keeps the gradient through active units; with σ it is ≤ 0.25^T",
    tex=r"\prod_{t=1}^{50}\mathrm{diag}(\mathrm{ReLU}'(z_t))I=I,\quad"
    r"\left\lVert\prod_{t=1}^{50}\mathrm{diag}(\sigma'(z_t))I\right\rVert\le 0.25^{50}",
    code="unrolled.nn.recurrent.Recurrent(init='identity')",
    how="exact number and inequality",
)
def identity_start() -> Off:
    from unrolled.nn.recurrent import Recurrent

    norms = {}
    for activation in ("relu", "sigmoid"):
        w = random_weights(RNNCell(activation), E, H, scale=0.0)
        stack = Recurrent(E, H, cell=RNNCell(activation), init="identity").double()
        w["hh"] = stack.get_parameter("weight_hh_l0").detach().numpy()
        product = np.eye(H)
        for step in forward(RNNCell(activation), w, draws(50, E), np.ones(H)):
            product = step_jacobian(RNNCell(activation), w, step) @ product
        norms[activation] = float(np.linalg.norm(product, 2))
    return Off(abs(norms["relu"] - 1.0) + max(0.0, norms["sigmoid"] / 0.25**50 - 1.0))


@book.equation(
    "G14",
    "000 §11; 001; 002 §3–4; 004",
    "∂c_t/∂c_{t−1} is diag(f_t) where the way through h is cut",
    tex=r"\frac{\partial c_t}{\partial c_{t-1}}\supseteq\mathrm{diag}(f_t)",
    code="unrolled.lab.by_hand.step_jacobian",
    how="finite differences",
    within=DIFFERENCES,
)
def carried_gradient() -> Off:
    """All of ∂c_t/∂c_{t−1} at a fixed h is diag(f); with U = 0 also over many steps."""
    cell = LSTMCell()
    w = random_weights(cell, E, H)
    xs, s = draws(3, E), draws(2 * H)
    step = forward(cell, w, xs[:1], s)[0]
    own = step_jacobian(cell, w, step)[H:, H:]
    cut = {**w, "hh": 0 * w["hh"]}
    steps = forward(cell, cut, xs, s)
    product = np.diag(np.prod([step.parts[1] for step in steps], axis=0))
    true = jacobian(lambda s: forward(cell, cut, xs, s)[-1].after, s)[H:, H:]
    return Off(max(apart(own, np.diag(step.parts[1])), apart(product, true)))


@book.equation(
    "R3",
    "000 §11",
    "an LSTM does not remember by default: f = σ(b), half-life log ½ / log f: 1 step at b = 0",
    tex=r"f=\sigma(b),\quad t_{1/2}=\frac{\log 1/2}{\log f}",
    code="unrolled.lab.half_life.half_life",
    how="exact number",
    within=1e-3,
)
def half_lives() -> Off:
    from unrolled.lab.half_life import half_life

    return Off(apart([half_life(b) for b in (0.0, 1.0, 3.0)], [1.0, 2.2127, 14.267]))


@book.erratum(
    "E41",
    "002 §2.3–2.4",
    "C",
    printed="overflow is NaN; gradients are set back to a small number; W = I cures on its own",
    says="overflow is inf, NaN comes of inf − inf; rescaled to the threshold; I helps ReLU alone",
    code="unrolled.training.optimise.clip_gradients",
    within=1e-6,
)
def overflow_is_infinite() -> Off:
    import torch

    from unrolled.training.optimise import clip_gradients

    gradient = torch.tensor([30.0, 40.0], dtype=torch.float64)
    clip_gradients([gradient], 5.0)
    rescaled = apart(gradient, [3.0, 4.0])
    with np.errstate(over="ignore", invalid="ignore"):
        over = np.float64(1e308) * 10
        then = over - over
    wrong = float(np.isnan(over)) + float(not np.isnan(then))
    return Off(wrong + rescaled, float(not np.isnan(over)), "1e308 · 10 is inf; inf − inf is NaN")


book.remark(
    "E17",
    "000 Alg 3",
    "T",
    printed="ĝ ← ∂E/θ",
    says="ĝ ← ∂E/∂θ",
)
book.remark(
    "E67",
    "004 MNIST slides",
    "T",
    printed="seven layers, the output being the 6th",
    says="counted from 0: layers 0 to 6 (`unrolled lab layers` counts from 1)",
)
book.remark(
    "E69",
    "001",
    "C",
    printed="vanishing gradients “can be solved by” LSTM; plain networks are “unable to learn”",
    says="mitigated: with f < 1 they still fade as ∏ f; harder, not impossible (`lab gradients`)",
)
