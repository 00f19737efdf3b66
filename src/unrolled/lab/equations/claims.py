"""Claims and words: what of the notes no single equation shows."""

from unrolled.lab.equations.entry import Book, Off
from unrolled.lab.equations.tools import apart

book = Book("Claims and words")

book.remark(
    "E2",
    "000 §2, §4, §6",
    "T",
    printed="“Figure 1”, “Figure 2”, “Figure 6”",
    says="figures 2, 3 and 7: off by one",
)
book.remark(
    "E12",
    "000 §7.1",
    "T",
    printed="both directions “receive input from the same vector ŷ(t)”",
    says="from x(t); both feed ŷ(t)",
)


@book.erratum(
    "E18",
    "000 §7; 002 eq 19",
    "M",
    printed="ŷ_t = g(U [→h_t; ←h_t] + c) “for predicting the next word”",
    says="a state that has read x_{t+1} cannot be asked for x_{t+1}: one direction, or two models",
    printed_tex=r"\hat{y}_t=g(U[\overrightarrow{h}_t;\overleftarrow{h}_t]+c)",
    tex=r"\hat{y}_t=g(U\overrightarrow{h}_t+c)",
    code="unrolled.tasks.language.settings: model.bidirectional is refused",
)
def no_look_ahead() -> Off:
    """How much the output at t moves when x_{t+1}, which it is to predict, is another."""
    import torch

    from unrolled.nn.cells import LSTMCell
    from unrolled.nn.recurrent import Recurrent
    from unrolled.tasks.language.settings import LanguageSettings

    try:
        LanguageSettings(bidirectional=True)
        return Off(1.0, 1.0, "a language model in two directions is not refused")
    except ValueError:
        moved = []
    for bidirectional in (False, True):
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(0)
            stack = Recurrent(3, 4, cell=LSTMCell(), bidirectional=bidirectional).double()
            x = torch.randn(1, 6, 3, dtype=torch.float64)
            other = x.clone()
            other[:, 4:] += 1.0
            before, after = (stack(each)[0][:, 3] for each in (x, other))
            moved.append(apart(before, after))
    return Off(moved[0], moved[1], f"the output at t moves by {moved[1]:.0%} with x at t + 1")


book.remark(
    "E25",
    "000 §9.2",
    "C",
    printed="Keras and TensorFlow “still lack” batches of unequal lengths",
    says="outdated: both have lengths and masks; here A9 holds for every layer",
)
book.remark(
    "E26",
    "000 §9.3.1 against §10",
    "C",
    printed="the last output “contains full information”",
    says="§10 of the same note says why not; model.pooling offers mean, max and attention",
)
book.remark(
    "E27",
    "000 §9.4.1",
    "T",
    printed="“the second black”; “senators back/VBP at the bill”",
    says="“the second back”; “back/VBP the bill”",
)
book.remark(
    "E28",
    "000 §14",
    "T",
    printed="lstm.forward(x); the code of figure 23 is missing",
    says="call the module: lstm(x)",
)


@book.erratum(
    "E40",
    "002 §2, §2.2",
    "C",
    printed="memory grows with the words of the corpus; “1000 recurrent layers”; sharing defeats "
    "the curse of dimensionality",
    says="with the steps unrolled (times the batch); 1000 hidden units; distributed vectors do",
    code="unrolled.nn.recurrent.Recurrent",
)
def size_does_not_depend_on_length() -> Off:
    """1000 units have 1000 × 1000 recurrent weights, in one layer."""
    from unrolled.nn.cells import RNNCell
    from unrolled.nn.recurrent import Recurrent

    stack = Recurrent(10, 1000, cell=RNNCell(), device="meta")
    weights = dict(stack.named_parameters())["weight_hh_l0"].numel()
    return Off(abs(weights - 1_000_000), abs(stack.layers - 1000), "1,000,000 weights, 1 layer")


book.remark(
    "E66",
    "004 Stacking",
    "C",
    printed="Google Translate “currently” has seven LSTM layers",
    says="at best once; nothing here repeats it",
)
