"""Recurrent cells: the equations of one step."""

import numpy as np

from unrolled.lab.by_hand import Array, forward, random_weights, sigmoid
from unrolled.lab.equations.entry import Book, Off
from unrolled.lab.equations.tools import apart, chances, draws
from unrolled.nn.cells import Cell, GRUCell, LSTMCell, RNNCell

book = Book("Recurrent cells")
E, H = 3, 4


def by_package(cell: Cell, w: dict[str, Array], xs: Array, s: Array) -> Array:
    """The last state by unrolled.nn.cells, in float64."""
    import torch

    from unrolled.nn.cells import Weights

    named = Weights(**{name: torch.from_numpy(value) for name, value in w.items()})
    state = tuple(torch.from_numpy(part)[None] for part in np.split(s, cell.state_size))
    for x in xs:
        state = cell.step(cell.project(torch.from_numpy(x)[None], named), state, named)
    return torch.cat(state, dim=1)[0].numpy()


def follows(cell: Cell, own: Array, *, seed: int = 0) -> float:
    """How far the equations as they stand in an entry are from the package's."""
    w, x, s = example(cell, seed=seed)
    return apart(by_package(cell, w, x[None], s), own)


def example(cell: Cell, *, seed: int = 0) -> tuple[dict[str, Array], Array, Array]:
    """Weights, an input and a state."""
    w = random_weights(cell, E, H, seed=seed)
    return w, draws(E, seed=seed), draws(H * cell.state_size, seed=seed + 1)


def blocks(w: dict[str, Array], x: Array, h: Array) -> list[Array]:
    """W x + b + U h + b of each gate."""
    whole = w["ih"] @ x + w["bias_ih"] + w["hh"] @ h + w["bias_hh"]
    return [*whole.reshape(-1, H)]


# ------------------------------------------------------------------ the simple network


@book.equation(
    "D2",
    "000 Alg 1–2; 002 eq 5–6; 004 RNN language model",
    "h_t = σ(W_h h_{t−1} + W_e e_t + b₁), between 0 and 1",
    tex=r"h^{(t)}=\sigma(W_h h^{(t-1)}+W_e e^{(t)}+b_1)",
    code="unrolled.nn.cells.RNNCell(activation='sigmoid')",
    rows=("D1",),
)
def logistic_network() -> Off:
    w, x, h = example(RNNCell("sigmoid"))
    own = sigmoid(*blocks(w, x, h))
    outside = float(((own <= 0) | (own >= 1)).sum())
    return Off(follows(RNNCell("sigmoid"), own) + outside)


@book.equation(
    "D3",
    "003 eq 4; 004 NumPy listing",
    "h_t = tanh(W_h h_{t−1} + W_e x_t + b)",
    tex=r"a^{\langle t\rangle}=\tanh(W_{aa}a^{\langle t-1\rangle}+W_{ax}x^{\langle t\rangle}+b_a)",
    code="unrolled.nn.cells.RNNCell",
)
def tanh_network() -> Off:
    w, x, h = example(RNNCell())
    return Off(follows(RNNCell(), np.tanh(*blocks(w, x, h))))


@book.equation(
    "D5",
    "003 eq 2",
    "one matrix on state and input joined: W_a [a; x] = W_aa a + W_ax x",
    tex=r"W_a[a;x]=W_{aa}a+W_{ax}x",
    code="unrolled.nn.cells.RNNCell",
)
def joined_matrix() -> Off:
    w, x, h = example(RNNCell())
    W_a = np.hstack([w["hh"], w["ih"]])
    own = np.tanh(W_a @ np.concatenate([h, x]) + w["bias_ih"] + w["bias_hh"])
    return Off(follows(RNNCell(), own))


@book.equation(
    "D6",
    "004 three listings",
    "state = 0; for x: out = f(x, state); state = out. 100 steps of 64 units: (100, 64)",
    tex=r"s_0=0,\quad s_t=f(x_t,s_{t-1})",
    code="unrolled.lab.by_hand.forward",
    how="exact number",
)
def toy_loop() -> Off:
    w = random_weights(RNNCell(), 32, 64, scale=0.1)
    outputs, state = [], np.zeros(64)
    inputs = draws(100, 32)
    for x in inputs:
        state = np.tanh(w["ih"] @ x + w["hh"] @ state + w["bias_ih"] + w["bias_hh"])
        outputs.append(state)
    package = [step.after for step in forward(RNNCell(), w, inputs, np.zeros(64))]
    return Off(apart(np.stack(outputs), package) + float(np.stack(outputs).shape != (100, 64)))


@book.erratum(
    "E60",
    "004 NumPy listing",
    "M",
    printed="np.concatenate(outputs, axis=0), said to be (timesteps, features); weights in [0, 1)",
    says="np.stack: (100, 64); and weights about 0, or tanh is 1 nearly everywhere",
    code="unrolled.lab.by_hand.forward",
)
def stacked_outputs() -> Off:
    draw = np.random.default_rng(0).random
    w = {"ih": draw((64, 32)), "hh": draw((64, 64)), "bias_ih": draw(64), "bias_hh": np.zeros(64)}
    outputs = [s.after for s in forward(RNNCell(), w, draw((100, 32)), np.zeros(64))]
    joined, stacked = np.concatenate(outputs, axis=0).shape, np.stack(outputs).shape
    ones = float((np.stack(outputs) == 1.0).mean())
    seen = f"{joined}, and {ones:.0%} of the outputs are exactly 1"
    return Off(float(stacked != (100, 64)), float(joined != (100, 64)), seen)


@book.equation(
    "D7",
    "001 LSTM; 004 GRU slide",
    "row vectors: x U + h W is the same with transposed matrices",
    tex=r"x_t U + h_{t-1} W = (U^{\top}x_t^{\top}+W^{\top}h_{t-1}^{\top})^{\top}",
    code="unrolled.nn.cells",
)
def rows_or_columns() -> Off:
    w, x, h = example(RNNCell())
    own = np.tanh(x[None] @ w["ih"].T + h[None] @ w["hh"].T + w["bias_ih"] + w["bias_hh"])[0]
    return Off(follows(RNNCell(), own))


@book.equation(
    "D20",
    "003 Tables 1–2; 002 §2",
    "W_ax (n_a, n_x), W_aa (n_a, n_a), W_ya (n_y, n_a); a cell of G gates has G (h (h + d) + h)",
    tex=r"G\,(h(h+d)+h),\quad G=1,3,4",
    code="unrolled.nn.recurrent.Recurrent",
    how="exact number",
)
def parameter_counts() -> Off:
    """torch keeps two biases a gate where the notes have one: G h more."""
    import torch

    from unrolled.nn.recurrent import Recurrent

    wrong = 0
    for cell, G in ((RNNCell(), 1), (GRUCell(), 3), (LSTMCell(), 4)):
        stack = Recurrent(5, 7, cell=cell)
        wrong += stack.weight_ih_l0.shape != torch.Size([G * 7, 5])
        wrong += stack.weight_hh_l0.shape != torch.Size([G * 7, 7])
        count = sum(parameter.numel() for parameter in stack.parameters())
        wrong += count != G * (7 * (7 + 5) + 7) + G * 7
    return Off(float(wrong))


@book.erratum(
    "E1",
    "000 eq 1–4",
    "S",
    printed="h(t) = f(h(t−1); θ), x(2) processed with h(2), index set {1, 2, 4}",
    says="h(t) = f(h(t−1), x(t); θ), x(2) with h(1), 1 to 4",
    printed_tex=r"h^{(t)}=f(h^{(t-1)};\theta)",
    tex=r"h^{(t)}=f(h^{(t-1)},x^{(t)};\theta)",
    code="unrolled.nn.cells.Cell.step",
)
def the_state_reads_the_input() -> Off:
    """Two inputs must be told apart by the state."""
    w, _, h = example(RNNCell())
    states = [np.tanh(*blocks(w, x, h)) for x in (draws(E, seed=1), draws(E, seed=2))]
    without = [np.tanh(*blocks(w, np.zeros(E), h)) for _ in range(2)]
    return Off(
        float(apart(*states) == 0.0),
        float(apart(*without) == 0.0),
        "without x the state is the same for every input",
    )


@book.erratum(
    "E4",
    "000 Alg 1–2",
    "S",
    printed="x ∈ R^{1×V}, W_e ∈ R^{h×1}, U ∈ R^{1×V}, E ∈ R^{D×1}, e ∈ R^{D×V}",
    says="x ∈ R^V, W_e ∈ R^{h×V}, U ∈ R^{V×h}, E ∈ R^{D×V}, e ∈ R^D",
    code="unrolled.tasks.language.network.LanguageNetwork",
)
def shapes_of_the_algorithm() -> Off:
    """With an embedding between, W_e is h × D."""
    import torch

    from unrolled.tasks.language.network import LanguageNetwork
    from unrolled.tasks.language.settings import LanguageSettings

    V, D = 6, 3
    settings = LanguageSettings(cell="rnn", hidden_size=H, embedding_size=D, tied=False)
    network = LanguageNetwork(settings, V)
    weight = network.stack.get_parameter("weight_ih_l0")
    shapes = [network.embed(torch.tensor(4)), weight, network.output_weight]
    wrong = [tuple(a.shape) for a in shapes] != [(D,), (H, D), (V, H)]
    printed = (draws(D, 1) @ draws(1, V)).shape  # an outer product
    return Off(float(wrong), float(printed != (D,)), f"e has shape {printed}, not {(D,)}")


@book.erratum(
    "E13",
    "000 eq 64",
    "M",
    printed="h(t) = σ'(W_h h(t−1) + W_x x(t) + b)",
    says="h(t) = σ(…): the derivative belongs into eq 65",
    printed_tex=r"h^{(t)}=\sigma'(\dots)",
    tex=r"h^{(t)}=\sigma(\dots)",
    code="unrolled.nn.cells.RNNCell(activation='sigmoid')",
)
def no_derivative_forward() -> Off:
    w, x, h = example(RNNCell("sigmoid"))
    own = sigmoid(*blocks(w, x, h))
    printed = follows(RNNCell("sigmoid"), own * (1 - own))
    seen = f"no unit could ever pass {float((own * (1 - own)).max()):.2f}, at most 1/4"
    return Off(follows(RNNCell("sigmoid"), own), printed, seen)


@book.erratum(
    "E47",
    "003 eq 1",
    "M",
    printed="the same g (tanh or ReLU) for the state and for the output",
    says="the output is a distribution: softmax, or σ for a label",
    printed_tex=r"\hat{y}=g(W_{ya}a+b_y)",
    tex=r"\hat{y}=\mathrm{softmax}(W_{ya}a+b_y)",
    code="unrolled.nn.output.summed_nats",
)
def output_is_a_distribution() -> Off:
    z = draws(8)
    shown, printed = chances(z), np.tanh(z)
    seen = f"tanh gives “chances” from {printed.min():.2f} on that sum to {printed.sum():.2f}"
    return Off(abs(float(shown.sum()) - 1), abs(float(printed.sum()) - 1), seen)


@book.erratum(
    "E68",
    "004 leaky ReLU",
    "S",
    printed="leaky ReLU is max(αx, x)",
    says="for 0 ≤ α < 1 alone; beyond, it bends the other way",
    code="unrolled.nn.cells.RNNCell(activation='leaky_relu')",
    within=1e-6,
)
def leaky_slope() -> Off:
    x = np.array([-2.0, -1.0, 1.0, 2.0])

    def piecewise(a: float) -> Array:
        return np.where(x > 0, x, a * x)

    w = {name: np.zeros(4) for name in ("bias_ih", "bias_hh")} | {"ih": np.eye(4)}
    cell = RNNCell("leaky_relu")
    found = by_package(cell, {**w, "hh": np.zeros((4, 4))}, x[None], np.zeros(4))
    good = apart(np.maximum(0.01 * x, x), found) + apart(piecewise(0.01), found)
    bad = apart(np.maximum(1.5 * x, x), piecewise(1.5))
    return Off(good, bad, f"with α = 1.5, max(αx, x) at 2 is {max(3.0, 2.0):g}, not 2")
