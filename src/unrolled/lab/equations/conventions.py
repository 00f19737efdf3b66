"""Where the notes disagree, what was chosen, and the setting that chooses otherwise."""

from typing import NamedTuple


class Convention(NamedTuple):
    """One disagreement."""

    id: str
    topic: str
    positions: str
    setting: str  # what chooses
    default: str


CONVENTIONS = (
    Convention(
        "X1",
        "GRU update gate",
        "z writes: 000 eq 80, 003, 004; z keeps: 002, as torch and Keras",
        "model.update",
        "keep; convert_gru changes one into the other exactly",
    ),
    Convention(
        "X2",
        "GRU reset gate",
        "after the product: 000 eq 79, 002; before it: 003, 004",
        "model.reset",
        "after; there is no exact conversion",
    ),
    Convention(
        "X3",
        "names of LSTM gates",
        "input gate: i (001, 002, 004), g (000), Γ_u (003); candidate: g (001), C̃, c̃, k",
        "unrolled lab equations --glossary",
        "i, f, g, o in torch's order",
    ),
    Convention(
        "X4",
        "LSTM output",
        "o ⊙ tanh(c): 000 eq 76, 001, 002, 003 §1.3.3, 004; o ⊙ c: 000 eq 74, 003 §1.3.1",
        "model.output",
        "tanh",
    ),
    Convention("X5", "LSTM biases", "none: 001, 002; with: the others", "model.bias", "true"),
    Convention(
        "X6",
        "hidden non-linearity",
        "logistic: 000, 002, 004; tanh: 003, 004's code; ReLU: 003, 002 §2.4",
        "model.activation",
        "tanh",
    ),
    Convention(
        "X7",
        "row or column vectors",
        "columns: 000, 002, 003; rows: 001, 004's slides",
        "entry D7",
        "columns in text; batches are rows",
    ),
    Convention(
        "X8",
        "perplexity",
        "2^J (002), exp(J) (004)",
        "evaluate prints bits_per_character beside perplexity",
        "exp of nats",
    ),
    Convention(
        "X9",
        "divisor of the loss",
        "mean over T: 002, 004; 1/N: 000; sum: 003, 000 §15",
        "score prints the sum, evaluate the mean",
        "mean over real tokens",
    ),
    Convention(
        "X10",
        "first input and first state",
        "START: 000; a zero vector: 003; h₀ zero or learned: 000",
        "model.first_input, model.first_state",
        "start, zero",
    ),
    Convention(
        "X11",
        "n of an n-gram",
        "n previous words: 002 eq 1; n − 1: 004",
        "model.order",
        "n − 1 previous tokens",
    ),
    Convention(
        "X12", "sentence vector", "last state: 000; mean or max: 002", "model.pooling", "attention"
    ),
    Convention(
        "X13",
        "attention asks with",
        "s_{t−1}: 000 eq 86, 003; s_t: 004, 000 eq 87",
        "model.placement",
        "luong (s_t); bahdanau is s_{t−1}",
    ),
    Convention(
        "X14",
        "additive score",
        "one matrix on [s; h]: 000, 001; two matrices: 004",
        "model.attention",
        "additive and concat, the same function (entry L6)",
    ),
    Convention("X15", "scaled dot", "√n (000), √|k| (001)", "model.attention", "scaled: √d"),
    Convention("X16", "length normalisation", "1/t (000), 1/T^0.7 (003)", "--alpha", "0.7 of T^α"),
    Convention(
        "X17", "beam width", "5–10 (000), 3, 10, 3000 (003), 2 (000's example)", "--beam", "5"
    ),
    Convention(
        "X18",
        "combining directions",
        "concatenate or average: 000; concatenate: 002, 003",
        "model.combine",
        "concat",
    ),
    Convention(
        "X19",
        "start of the sum in back-propagation through time",
        "k = 0 (001), p = 0 (000), k = 1 (002)",
        "model.first_state",
        "from 1, and the term of h₀ where it is learned",
    ),
    Convention(
        "X20",
        "the scrambled sentence",
        "“small the cat is” (001), “small the is cat” (002)",
        "unrolled score --rank",
        "both are tested",
    ),
    Convention(
        "X21",
        "input of the decoder",
        "none: 002 eq 24, 003 for dates; (h, c, y): 002 eq 27; y_{t−1}: 000",
        "model.decoder_input",
        "token",
    ),
    Convention(
        "X22",
        "two directions in a language model",
        "for: 000, 002; a decoder must have one: 000 §15",
        "model.direction",
        "forward; bidirectional is refused, pair is two models",
    ),
    Convention(
        "X23",
        "when decoding stops",
        "at END, at T, or with n finished: 000; unsaid: 003",
        "--stop",
        "ahead: open ones may still win; best waits",
    ),
    Convention(
        "X24",
        "loss of the output",
        "softmax: 000, 002, 004; logistic: 003 eq 3",
        "several labels a line make it logistic",
        "by the labels",
    ),
)

# What each note calls each part; "–" where it has none.
NOTES = ("here", "000", "001", "002", "003", "004")
GLOSSARY = {
    "LSTM input gate": ("i", "g (eq 70, 73), i (eq 72)", "i, “set”", "i", "Γ_u", "i"),
    "LSTM forget gate": ("f", "f", "f, “keep”", "f", "Γ_f", "f"),
    "LSTM output gate": ("o", "o", "o", "o", "Γ_o", "o"),
    "LSTM candidate": ("g", "C̃", "g", "c̃", "c̃", "C̃, k in the listing"),
    "LSTM cell": ("c", "C", "c", "c", "c", "C, “carry”"),
    "LSTM output": ("h", "h", "h", "h", "a", "h"),
    "GRU update gate": ("z (keeps)", "z (writes)", "–", "z (keeps)", "Γ_u (writes)", "z (writes)"),
    "GRU reset gate": ("r (after)", "r (after)", "–", "r (after)", "Γ_r (before)", "r (before)"),
    "GRU candidate": ("n", "h̃", "–", "h̃", "c̃", "h̃"),
    "hidden state": ("h", "h", "h, s", "h", "a", "h, “state”"),
    "recurrent matrix": ("weight_hh, U", "W_h", "W", "W^(hh)", "W_aa", "W_h"),
    "input matrix": ("weight_ih, W", "W_e, W_x", "U", "W^(hx)", "W_ax", "W_e"),
    "output matrix": ("output weight", "U", "V", "W^(S)", "W_ya", "U"),
    "first k of the sum": ("1", "0", "0", "1", "–", "1"),
}
