"""Back-propagation through time."""

import numpy as np

from unrolled.lab.by_hand import (
    ACTIVATIONS,
    Array,
    Gradients,
    double_sum,
    every_cell,
    forward,
    random_weights,
    recursion,
    step_back,
    step_jacobian,
)
from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import apart, draws, jacobian, slope
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell

book = Book("Back-propagation through time")
E, H, T = 3, 4, 5


class Case:
    """A short run with a loss at every step: L_t = u_t · h_t."""

    def __init__(self, cell: Cell, *, seed: int = 1) -> None:
        self.cell = cell
        self.w = random_weights(cell, E, H, seed=seed)
        self.xs = draws(T, E, seed=seed)
        self.first = 0.5 * draws(H * cell.state_size, seed=seed)
        self.u = draws(T, H, seed=seed)
        rest = np.zeros((T, H * (cell.state_size - 1)))
        self.slopes = [*np.hstack([self.u, rest])]
        self.steps = forward(cell, self.w, self.xs, self.first)

    def loss(self, name: str, value: Array) -> float:
        w, xs, first = self.w, self.xs, self.first
        if name == "x":
            xs = value
        elif name == "first":
            first = value
        else:
            w = {**w, name: value}
        states = [step.after[:H] for step in forward(self.cell, w, xs, first)]
        return float((np.stack(states) * self.u).sum())

    def numeric(self, name: str) -> Array:
        value = {"x": self.xs, "first": self.first, **self.w}[name]
        return slope(lambda value: self.loss(name, value), value)

    def worst(self, found: Gradients) -> float:
        """The largest distance from finite differences, over all that was found."""
        return max(apart(value, self.numeric(name)) for name, value in found.items())


@book.equation(
    "F7",
    "000 eq 46–56; 001; 002 eq 10–14; 003 eq 7–9; 004",
    "dL/dW = Σ_t Σ_{k≤t} ∂L_t/∂h_t (∏ ∂h_j/∂h_{j−1}) ∂⁺h_k/∂W, and the same by one recursion",
    tex=r"\frac{dL}{dW}=\sum_t\sum_{k\le t}\frac{\partial L_t}{\partial h_t}"
    r"\left(\prod_{j=k+1}^{t}\frac{\partial h_j}{\partial h_{j-1}}\right)"
    r"\frac{\partial^{+}h_k}{\partial W}",
    code="unrolled.lab.by_hand.double_sum and recursion",
    how="finite differences",
    within=DIFFERENCES,
)
def double_sum_and_recursion() -> Off:
    case = Case(RNNCell())
    found = recursion(case.cell, case.w, case.steps, case.slopes)
    whole = double_sum(case.cell, case.w, case.steps, case.slopes)
    same = max(apart(whole[name], found[name]) for name in whole)
    return Off(max(same, case.worst(whole)))


@book.equation(
    "F8",
    "000 eq 57–59; 003 eq 5–6",
    "with dz_t = dh_t ⊙ φ'(z_t): dW_e = Σ dz_t x_tᵀ, db = Σ dz_t, dx_t = W_eᵀ dz_t",
    tex=r"dz=da\odot(1-a^2),\;dW=dz\,a_{prev}^{\top},\;dx=W^{\top}dz",
    code="unrolled.lab.by_hand.recursion",
    how="finite differences",
    within=DIFFERENCES,
)
def inputs_and_biases() -> Off:
    case = Case(RNNCell("sigmoid"))
    found = recursion(case.cell, case.w, case.steps, case.slopes)
    return Off(case.worst({name: found[name] for name in ("ih", "bias_ih", "x", "first")}))


def _every_variant(kind: type[Cell]) -> Off:
    worst = 0.0
    for cell in every_cell().values():
        if isinstance(cell, kind):
            case = Case(cell)
            worst = max(worst, case.worst(recursion(cell, case.w, case.steps, case.slopes)))
    return Off(worst)


@book.equation(
    "F10",
    "003 §1.3.2",
    "the LSTM backward by hand: dc += dh o (1 − tanh² c); di, df, dg, do; six variants",
    tex=r"dc\mathrel{+}=dh\odot o\odot(1-\tanh^2 c)",
    code="unrolled.lab.by_hand.recursion",
    how="finite differences",
    within=DIFFERENCES,
)
def lstm_backward() -> Off:
    return _every_variant(LSTMCell)


@book.equation(
    "F11",
    "002 §3",
    "the GRU backward by hand, reset after, before and none, z keeping and writing",
    tex=r"dz=dh\odot(h_{t-1}-\tilde{h}),\;d\tilde{h}=dh\odot(1-z)",
    code="unrolled.lab.by_hand.recursion",
    how="finite differences",
    within=DIFFERENCES,
)
def gru_backward() -> Off:
    return _every_variant(GRUCell)


@book.equation(
    "F12",
    "004 Backpropagation for RNNs; 000 eq 66",
    "∂J⁽⁴⁾/∂h⁽¹⁾ = ∂J⁽⁴⁾/∂h⁽⁴⁾ · ∂h⁽⁴⁾/∂h⁽³⁾ · ∂h⁽³⁾/∂h⁽²⁾ · ∂h⁽²⁾/∂h⁽¹⁾",
    tex=r"\frac{\partial J^{(4)}}{\partial h^{(1)}}=\frac{\partial J^{(4)}}{\partial h^{(4)}}"
    r"\frac{\partial h^{(4)}}{\partial h^{(3)}}\frac{\partial h^{(3)}}{\partial h^{(2)}}"
    r"\frac{\partial h^{(2)}}{\partial h^{(1)}}",
    code="unrolled.lab.by_hand.step_jacobian; unrolled lab bptt",
    how="finite differences",
    within=DIFFERENCES,
)
def product_of_factors() -> Off:
    case = Case(RNNCell())
    row = case.u[3]
    for step in (3, 2, 1):
        row = row @ step_jacobian(case.cell, case.w, case.steps[step])

    def loss(h: Array) -> float:
        return float(forward(case.cell, case.w, case.xs[1:4], h)[-1].after @ case.u[3])

    return Off(apart(row, slope(loss, case.steps[0].after)))


@book.erratum(
    "E14",
    "000 eq 66–67",
    "S",
    printed="the product over j < t < i",
    says="over j < t ≤ i, as eq 68 has it: the last step is a factor too",
    printed_tex=r"\prod_{j<t<i}\frac{\partial h^{(t)}}{\partial h^{(t-1)}}",
    tex=r"\prod_{j<t\le i}\frac{\partial h^{(t)}}{\partial h^{(t-1)}}",
    code="unrolled.lab.by_hand.step_jacobian",
    within=DIFFERENCES,
)
def the_last_factor() -> Off:
    case = Case(RNNCell())
    J = [step_jacobian(case.cell, case.w, step) for step in case.steps]
    true = jacobian(
        lambda h: forward(case.cell, case.w, case.xs[1:4], h)[-1].after, case.steps[0].after
    )
    return Off(apart(J[3] @ J[2] @ J[1], true), apart(J[2] @ J[1], true))


def _one_unit(steps: int = 3) -> tuple[list[float], list[float], float]:
    """States h_0 … h_T of h = tanh(w h + x), their slopes ∂h_t/∂h_{t−1}, and w."""
    w, h = 0.8, [0.3]
    for x in draws(steps, seed=4):
        h.append(float(np.tanh(w * h[-1] + x)))
    return h, [float((1 - value**2) * w) for value in h[1:]], w


@book.erratum(
    "E10",
    "000 eq 47–48; 002 eq 11, 14",
    "M",
    printed="∂h_t/∂W = ∂h_t/∂W + ∂h_t/∂h_{t−1} ∂h_{t−1}/∂W: one symbol for two things",
    says="total d and immediate ∂⁺: dh_t/dW = ∂⁺h_t/∂W + ∂h_t/∂h_{t−1} dh_{t−1}/dW",
    printed_tex=r"\frac{\partial h_t}{\partial W}=\frac{\partial h_t}{\partial W}+"
    r"\frac{\partial h_t}{\partial h_{t-1}}\frac{\partial h_{t-1}}{\partial W}",
    tex=r"\frac{dh_t}{dW}=\frac{\partial^{+}h_t}{\partial W}+"
    r"\frac{\partial h_t}{\partial h_{t-1}}\frac{dh_{t-1}}{dW}",
    code="unrolled.lab.by_hand.recursion",
    within=DIFFERENCES,
)
def total_and_immediate() -> Off:
    """Three steps of one unit; eq 48 with the symbol read as total counts h₁'s part twice."""
    h, slopes, w = _one_unit()
    immediate = [(1 - h[t] ** 2) * h[t - 1] for t in (1, 2, 3)]
    total = [immediate[0]]
    for t in (1, 2):
        total.append(immediate[t] + slopes[t] * total[-1])
    printed = immediate[2] + slopes[2] * total[1] + slopes[2] * slopes[1] * total[0]

    unit = {"ih": np.eye(1), "hh": np.array([[w]]), "bias_ih": np.zeros(1), "bias_hh": np.zeros(1)}
    steps = forward(RNNCell(), unit, draws(3, seed=4)[:, None], np.array([0.3]))
    last = [np.zeros(1), np.zeros(1), np.ones(1)]
    true = float(recursion(RNNCell(), unit, steps, last)["hh"][0, 0])
    seen = f"dh₃/dw is {true:.4f}; eq 48 with totals gives {printed:.4f}"
    return Off(apart(total[2], true), apart(printed, true), seen)


@book.erratum(
    "E50",
    "003 eq 8–9",
    "M",
    printed="∂L/∂W by the term one step back in place of the sum; eq 9 shortens it further",
    says="the sum over all k ≤ t, or one recursion in which ∂L/∂a(t) gathers the future",
    printed_tex=r"\frac{\partial L}{\partial W}=\sum_t\frac{\partial L_t}{\partial a_t}"
    r"\frac{\partial a_t}{\partial a_{t-1}}\frac{\partial^{+}a_{t-1}}{\partial W}",
    tex=r"\frac{\partial L}{\partial W}=\sum_t\sum_{k\le t}\dots",
    code="unrolled.lab.by_hand.double_sum",
    within=DIFFERENCES,
)
def all_earlier_steps() -> Off:
    case = Case(RNNCell())
    J = [step_jacobian(case.cell, case.w, step) for step in case.steps]
    printed = sum(
        step_back(case.cell, case.w, case.steps[t - 1], case.slopes[t] @ J[t]).weights["hh"]
        for t in range(1, T)
    )
    correct = double_sum(case.cell, case.w, case.steps, case.slopes)["hh"]
    true = case.numeric("hh")
    return Off(apart(correct, true), apart(np.asarray(printed), true))


@book.erratum(
    "E49",
    "003 eq 5–6",
    "M",
    printed="the derivative of tanh as 1 − tanh(·)",
    says="1 − tanh²(·), times the incoming gradient; then dW = dz a_prevᵀ, dx = W_axᵀ dz",
    printed_tex=r"1-\tanh(z)",
    tex=r"1-\tanh^2(z)",
    code="unrolled.lab.by_hand.ACTIVATIONS",
    within=DIFFERENCES,
)
def derivative_of_tanh() -> Off:
    z = np.array([0.7])
    true = slope(lambda z: float(np.tanh(z[0])), z)
    printed, correct = 1 - np.tanh(z), ACTIVATIONS["tanh"][1](z, np.tanh(z))
    seen = f"at 0.7: {printed[0]:.3f} as printed, {true[0]:.3f} in truth"
    return Off(apart(correct, true), apart(printed, true), seen)


@book.erratum(
    "E11",
    "000 eq 55–59; 001",
    "S",
    printed="the sum runs over n, from p = 0, for one t",
    says="over p from 1, plus the term of h₀ where it is learned, and over all t",
    code="unrolled.lab.by_hand.recursion",
    within=DIFFERENCES,
)
def where_the_sum_begins() -> Off:
    """h₀ is constant: it has no part in dL/dW. One t alone is not the whole loss."""
    case = Case(RNNCell())
    last = [np.zeros(H)] * (T - 1) + [case.slopes[-1]]
    one = double_sum(case.cell, case.w, case.steps, last)["hh"]
    whole = double_sum(case.cell, case.w, case.steps, case.slopes)["hh"]
    true = case.numeric("hh")
    return Off(apart(whole, true), apart(one, true), "the last t alone")
