"""LSTM and GRU: the equations of their gates."""

import math

import numpy as np

from unrolled.lab.by_hand import random_weights, sigmoid
from unrolled.lab.equations.cells import E, H, blocks, by_package, example, follows
from unrolled.lab.equations.entry import Book, Off
from unrolled.lab.equations.tools import Array, apart, draws
from unrolled.nn.cells import GRUCell, LSTMCell

book = Book("Gates")


@book.equation(
    "D9",
    "000 eq 69–76; 001; 002 §4; 003 §1.3.3; 004",
    "i, f, o = σ(·), c̃ = tanh(·), c = f ⊙ c + i ⊙ c̃, h = o ⊙ tanh(c)",
    tex=r"c_t=f_t\odot c_{t-1}+i_t\odot\tilde{c}_t,\quad h_t=o_t\odot\tanh(c_t)",
    code="unrolled.nn.cells.LSTMCell",
    rows=("D10",),
)
def lstm() -> Off:
    w, x, s = example(LSTMCell())
    h, c = np.split(s, 2)
    a_i, a_f, a_g, a_o = blocks(w, x, h)
    new = sigmoid(a_f) * c + sigmoid(a_i) * np.tanh(a_g)
    return Off(follows(LSTMCell(), np.concatenate([sigmoid(a_o) * np.tanh(new), new])))


@book.erratum(
    "E20",
    "000 eq 74–75",
    "M",
    printed="the output is C ⊙ o, and o is computed from h(t), which is computed from o",
    says="h = o ⊙ tanh(C) (eq 76), o from h(t−1)",
    printed_tex=r"C^{(t)}\odot o^{(t)},\quad o^{(t)}=\sigma(\dots+W^o h^{(t)})",
    tex=r"h^{(t)}=o^{(t)}\odot\tanh(C^{(t)}),\quad o^{(t)}=\sigma(\dots+W^o h^{(t-1)})",
    code="unrolled.nn.cells.LSTMCell",
)
def output_of_the_cell() -> Off:
    """A cell that has counted to 5: h must stay within −1 and 1."""
    c, o = np.full(H, 5.0), np.full(H, 0.9)
    shown = _held(c, steps=1, show=math.log(0.9 / 0.1))[:H]
    printed, correct = o * c, o * np.tanh(c)
    beyond = max(0.0, float(np.abs(shown).max()) - 1.0)
    return Off(
        apart(shown, correct) + beyond,
        float(np.abs(printed).max()) - 1.0,
        f"|h| is {printed.max():g}, beyond 1",
    )


@book.erratum(
    "E52",
    "003 §1.3.1 against §1.3.3",
    "M",
    printed="a = Γ_o ⊙ c, later a = Γ_o ⊙ tanh(c) with the tanh “of the previous state”",
    says="with tanh, and of the cell as it is now",
    printed_tex=r"a^{\langle t\rangle}=\Gamma_o\odot\tanh(c^{\langle t-1\rangle})",
    tex=r"a^{\langle t\rangle}=\Gamma_o\odot\tanh(c^{\langle t\rangle})",
    code="unrolled.nn.cells.LSTMCell",
)
def current_cell() -> Off:
    w, x, s = example(LSTMCell())
    h, c = np.split(s, 2)
    a_i, a_f, a_g, a_o = blocks(w, x, h)
    new, o = sigmoid(a_f) * c + sigmoid(a_i) * np.tanh(a_g), sigmoid(a_o)
    correct, printed = (np.concatenate([o * np.tanh(cell), new]) for cell in (new, c))
    return Off(follows(LSTMCell(), correct), follows(LSTMCell(), printed))


@book.erratum(
    "E61",
    "004 Listing 6.25",
    "M",
    printed="the output is activation(C_t, x, state): it sees C_t, and nothing is gated",
    says="h = o ⊙ tanh(c); an output gate that sees c is the variant peephole = output",
    printed_tex=r"h_t=\tanh(W_o x_t+U_o h_{t-1}+V_o c_t)",
    tex=r"h_t=\sigma(W_o x_t+U_o h_{t-1}+p_o\odot c_t)\odot\tanh(c_t)",
    code="unrolled.nn.cells.LSTMCell(peephole='output')",
)
def gated_output() -> Off:
    cell = LSTMCell(peephole="output")
    w, x, s = example(cell)
    h, c = np.split(s, 2)
    a_i, a_f, a_g, a_o = blocks(w, x, h)
    new = sigmoid(a_f) * c + sigmoid(a_i) * np.tanh(a_g)
    inner = a_o + w["peephole"][0] * new
    correct = np.concatenate([sigmoid(inner) * np.tanh(new), new])
    printed = np.concatenate([np.tanh(inner), new])
    return Off(follows(cell, correct), follows(cell, printed))


@book.equation(
    "D14",
    "000 §11; 001; 002 §4; 003 §1.3.3; 004",
    "f = 1 and i = 0 keep a cell for 1000 steps, exactly; f = 0 erases it in one",
    tex=r"f=1,\,i=0:\;c_t=c_0\qquad f=0,\,i=0:\;c_1=0",
    code="unrolled.nn.cells.LSTMCell",
    how="exact number",
)
def gates_by_hand() -> Off:
    w = random_weights(LSTMCell(), E, H)
    s = np.concatenate([draws(H), draws(H, seed=9)])
    found = []
    for forget, steps in ((1e4, 1000), (-1e4, 1)):
        w["bias_ih"][:H], w["bias_ih"][H : 2 * H] = -1e4, forget
        found.append(by_package(LSTMCell(), w, draws(steps, E), s)[H:])
    return Off(apart(found[0], s[H:]) + float(np.abs(found[1]).max()))


@book.equation(
    "D13",
    "004 GRU slide",
    "an LSTM with σ round its cell forgets: with f = 1, i = 0 every start ends at 0.659",
    tex=r"c_t=\sigma(f\odot c_{t-1}+i\odot\tilde{c}_t)\to 0.659",
    code="unrolled.lab.equations.gates.sigmoid_round_the_cell",
    how="exact number",
    within=1e-3,
)
def forgets_everything() -> Off:
    ends = sigmoid_round_the_cell(np.linspace(-50, 50, 11), 1000)
    return Off(float(np.abs(ends - 0.659).max()))


def sigmoid_round_the_cell(c: Array, steps: int) -> Array:
    """The cell as the slide prints it, with its forget gate open and its input gate shut."""
    for _ in range(steps):
        c = sigmoid(1.0 * c + 0.0)
    return c


@book.erratum(
    "E62",
    "004 GRU slide (a)",
    "M",
    printed="C_t = σ(f ⊙ C_{t−1} + i ⊙ C̃_t)",
    says="no σ: C_t = f ⊙ C_{t−1} + i ⊙ C̃_t",
    printed_tex=r"C_t=\sigma(f\odot C_{t-1}+i\odot\tilde{C}_t)",
    tex=r"C_t=f\odot C_{t-1}+i\odot\tilde{C}_t",
    code="unrolled.nn.cells.LSTMCell",
)
def no_sigmoid_round_the_cell() -> Off:
    """Two memories, −2 and 2, after 100 steps of remembering."""
    start = np.array([-2.0, 2.0, -2.0, 2.0])
    kept, ends = _held(start, steps=100)[H:], sigmoid_round_the_cell(start, 100)
    return Off(apart(kept, start), apart(ends, start), f"−2 and 2 both end at {ends[0]:.3f}")


def _held(c: Array, *, steps: int, show: float = 0.0) -> Array:
    """h and c of the package's LSTM with f = 1, i = 0 and o = σ(show), begun at this c."""
    w = {name: 0.0 * value for name, value in random_weights(LSTMCell(), E, H).items()}
    w["bias_ih"] = np.repeat([-1e4, 1e4, 0.0, show], H)
    return by_package(LSTMCell(), w, draws(steps, E), np.concatenate([np.zeros(H), c]))


# ------------------------------------------------------------------ GRU


def _gru(w: dict[str, Array], x: Array, h: Array, *, before: bool) -> tuple[Array, ...]:
    x_r, x_z, x_n = (w["ih"] @ x + w["bias_ih"]).reshape(3, H)
    h_r, h_z, h_n = (w["hh"] @ h + w["bias_hh"]).reshape(3, H)
    r, z = sigmoid(x_r + h_r), sigmoid(x_z + h_z)
    inner = w["hh"][2 * H :] @ (r * h) + w["bias_hh"][2 * H :] if before else r * h_n
    return z, np.tanh(x_n + inner)


@book.equation(
    "D15",
    "000 eq 77–80",
    "z writes, reset after the product: h = (1−z) ⊙ h + z ⊙ tanh(r ⊙ (U h) + W x)",
    tex=r"h_t=(1-z)\odot h_{t-1}+z\odot\tilde{h},\;\tilde{h}=\tanh(r\odot(Uh_{t-1})+Wx_t)",
    code="unrolled.nn.cells.GRUCell(reset='after', update='write')",
)
def gru_write_after() -> Off:
    cell = GRUCell("after", "write")
    w, x, h = example(cell)
    z, n = _gru(w, x, h, before=False)
    return Off(follows(cell, (1 - z) * h + z * n))


@book.equation(
    "D16",
    "002 §3",
    "z keeps, reset after the product: h = z ⊙ h + (1−z) ⊙ h̃",
    tex=r"h_t=z\odot h_{t-1}+(1-z)\odot\tilde{h}",
    code="unrolled.nn.cells.GRUCell",
)
def gru_keep_after() -> Off:
    w, x, h = example(GRUCell())
    z, n = _gru(w, x, h, before=False)
    return Off(follows(GRUCell(), z * h + (1 - z) * n))


@book.equation(
    "D17",
    "003 §1.2; 004",
    "z writes, reset before the product: h̃ = tanh(W [r ⊙ h; x])",
    tex=r"\tilde{h}=\tanh(W_c[\Gamma_r\odot c^{\langle t-1\rangle},x^{\langle t\rangle}]+b_c)",
    code="unrolled.nn.cells.GRUCell(reset='before', update='write')",
    rows=("D18",),
)
def gru_write_before() -> Off:
    cell = GRUCell("before", "write")
    w, x, h = example(cell)
    z, n = _gru(w, x, h, before=True)
    simplified, (v, *rest) = GRUCell("none", "write"), example(GRUCell("none", "write"))
    z0, n0 = (np.asarray(a) for a in blocks(v, *rest))
    plain = (1 - sigmoid(z0)) * rest[1] + sigmoid(z0) * np.tanh(n0)
    return Off(follows(cell, (1 - z) * h + z * n) + follows(simplified, plain))


@book.erratum(
    "E21",
    "000 eq 77–79",
    "M",
    printed="one W for x and for h in z, r and h̃; r without σ",
    says="W for x and U for h, each gate's own; r = σ(…), within 0 and 1",
    printed_tex=r"r=b^r+W^r x+W^r h",
    tex=r"r=\sigma(b^r+W^r x+U^r h)",
    code="unrolled.nn.cells.GRUCell(reset='after', update='write')",
)
def reset_is_a_gate() -> Off:
    """Where x and h have other sizes, one W cannot even be multiplied: so of equal ones."""
    w = random_weights(GRUCell("after", "write"), H, H)
    x, h = draws(H), draws(H, seed=1)
    z, n = _gru(w, x, h, before=False)
    true = by_package(GRUCell("after", "write"), w, x[None], h)
    W_r, W_z, W_n = w["ih"].reshape(3, H, H)
    b_r, b_z, b_n = w["bias_ih"].reshape(3, H)
    r = b_r + W_r @ x + W_r @ h
    z_printed = sigmoid(b_z + W_z @ x + W_z @ h)
    n_printed = np.tanh(b_n + r * (W_n @ h) + W_n @ x)
    printed = (1 - z_printed) * h + z_printed * n_printed
    seen = f"r goes from {r.min():.2f} to {r.max():.2f}"
    return Off(apart((1 - z) * h + z * n, true), apart(printed, true), seen)


@book.erratum(
    "E51",
    "003 §1.2",
    "M",
    printed="the gate Γ_u should be 1 at “cat” and at “was”: it decides when to apply the memory",
    says="1 at “cat”, 0 until after “was”: it decides when to write; the memory is always seen",
    printed_tex=r"\Gamma_u(\text{cat})=\Gamma_u(\text{was})=1",
    tex=r"\Gamma_u(\text{cat})=1,\;\Gamma_u(\text{was})=0",
    code="unrolled.nn.cells.GRUCell(update='write')",
)
def when_to_write() -> Off:
    """One unit reads cat, which, ate, was: is “singular” (1) still there at the end?"""
    candidates = np.array([40.0, -0.3, 0.4, -0.6])  # tanh(40) is 1

    def memory(gates: list[int]) -> float:
        z = np.where(gates, 1e4, -1e4)
        w = {"ih": np.stack([np.zeros(4), z, candidates]), "hh": np.zeros((3, 1))}
        w |= {"bias_ih": np.zeros(3), "bias_hh": np.zeros(3)}
        return float(by_package(GRUCell(update="write"), w, np.eye(4), np.zeros(1))[0])

    correct, printed = memory([1, 0, 0, 0]), memory([1, 0, 0, 1])
    return Off(
        abs(correct - 1), abs(printed - 1), f"after “was” the memory is {printed:.2f}, not 1"
    )


book.remark(
    "E19",
    "000 eq 70–73",
    "T",
    printed="the input gate is g in eq 70 and 73 and i in eq 72",
    says="one name; in note 001 g is the tanh candidate (see the glossary)",
)
