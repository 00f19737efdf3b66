"""Tokens, n-grams and windows."""

import math
from itertools import pairwise, product
from typing import Any

import numpy as np

from unrolled.lab.equations.entry import DIFFERENCES, Book, Off
from unrolled.lab.equations.tools import Array, apart, draws, one_hot, slope, softmax
from unrolled.text.vocabulary import one_hot as encoded

book = Book("Text, n-grams and windows")


@book.equation(
    "A2",
    "000 eq 5–6; 003 §2.1",
    "a one-hot vector has one 1: V = {i, we, go, school}, “we” is 0 1 0 0",
    tex=r"x \in \{0,1\}^{V},\; \sum_i x_i = 1",
    code="unrolled.text.vocabulary.one_hot",
    how="exact number",
)
def one_hot_of_we() -> Off:
    return Off(apart(encoded([1], 4), [[0, 1, 0, 0]]))


@book.equation(
    "A3",
    "003 §2.1",
    "two different one-hots: product 0, distance √2, whichever they are",
    tex=r"x^{\top}y = 0,\quad \lVert x-y\rVert = \sqrt{2}",
    code="unrolled.text.vocabulary.one_hot",
)
def one_hots_are_alike() -> Off:
    rows = encoded(range(9), 9).astype(float)
    products = rows @ rows.T - np.eye(9)
    distances = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    wanted = math.sqrt(2) * (1 - np.eye(9))
    return Off(float(np.abs(products).max() + np.abs(distances - wanted).max()))


@book.equation(
    "A4",
    "000 Alg 2; 002 Fig 5; 003 §2.2.1",
    "an embedding is a column of E: E x for one-hot x",
    tex=r"e^{(t)} = E\,x^{(t)}",
    code="unrolled.tasks.language.network.LanguageNetwork.embed",
)
def embedding_is_a_column() -> Off:
    import torch

    from unrolled.tasks.language.network import LanguageNetwork
    from unrolled.tasks.language.settings import LanguageSettings

    network = LanguageNetwork(LanguageSettings(hidden_size=3), 5).double()
    E = network.embedding.weight.detach().numpy().T
    columns = network.embed(torch.arange(5)).detach().numpy()
    return Off(max(apart(E @ one_hot(k, 5), columns[k]) for k in range(5)))


@book.erratum(
    "E3",
    "000 eq 6",
    "M",
    printed="“i go school” has the third row [0 0 0 3]",
    says="[0 0 0 1]: the id says where the 1 stands, not how large it is",
    printed_tex=r"[0\;0\;0\;3]",
    tex=r"[0\;0\;0\;1]",
    code="unrolled.text.vocabulary.one_hot",
)
def third_row() -> Off:
    rows = encoded([0, 2, 3], 4).astype(float)
    printed = np.array([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 3]])
    E = draws(2, 4)  # the product with E is to be school's embedding
    true = E[:, 3]
    return Off(
        apart(E @ rows[2], true),
        apart(E @ printed[2], true),
        f"E x is {np.linalg.norm(E @ printed[2]) / np.linalg.norm(true):.3g} times school's vector",
    )


@book.erratum(
    "E24",
    "000 §9.2",
    "M",
    printed="boughs [PAD] [END]: ids … 13, 2, 1",
    says="boughs [END] [PAD]: ids … 13, 1, 2; padding stands behind the end",
    code="unrolled.text.batch.Batch.collate",
)
def padding_after_the_end() -> Off:
    """A prefix mask by length must hide the padding and nothing else."""
    from unrolled.text.batch import Batch
    from unrolled.text.tokens import END, PAD

    batch = Batch.collate([[5, 6, 13, END], [5, 6, 13, 7, END]])
    mask, printed = batch.mask[0].numpy(), np.array([5, 6, 13, PAD, END])
    wrong = [int(((row == PAD) == mask).sum()) for row in (batch.tokens[0].numpy(), printed)]
    return Off(wrong[0], wrong[1], f"{wrong[1]} of 5 places are masked wrongly, END among them")


# ------------------------------------------------------------------ n-grams


@book.equation(
    "B1",
    "000 eq 60; 002 eq 1; 004 Language Modeling",
    "P(x₁ … x_T) = ∏ P(x_t | x_<t), each factor a distribution",
    tex=r"P(x_1,\dots,x_T)=\prod_{t=1}^{T}P(x_t\mid x_1,\dots,x_{t-1})",
    code="unrolled.tasks.language.network.LanguageNetwork.token_nats",
)
def chain_rule() -> Off:
    """All sequences of three of five tokens, and their product of steps."""
    import torch

    from unrolled.tasks.language.network import LanguageNetwork
    from unrolled.tasks.language.settings import LanguageSettings
    from unrolled.text.batch import Batch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        settings = LanguageSettings(context="line", hidden_size=3, tied=False)
        network = LanguageNetwork(settings, 5).double().eval()
        torch.nn.init.normal_(network.output_weight, std=2.0)  # far from equal chances
    rows = [[network.first, *tokens] for tokens in product(range(5), repeat=3)]
    nats, _ = network.token_nats(Batch.collate(rows))
    by_row = nats.view(-1, 3).sum(dim=1)
    return Off(abs(float(by_row.neg().exp().sum()) - 1.0))


@book.equation(
    "B5",
    "002 eq 2–3; 004 example",
    "P(w | ctx) = count(ctx, w) / count(ctx): 400 of 1000 is 0.4, 100 is 0.1",
    tex=r"P(w\mid c)=\frac{\mathrm{count}(c,w)}{\mathrm{count}(c)}",
    code="unrolled.ngrams.smoothing._mle",
    how="exact number",
)
def maximum_likelihood() -> Off:
    lines = ["their books"] * 400 + ["their exams"] * 100 + ["their pens"] * 500
    p = bigrams(lines, "their", smoothing="mle")
    return Off(apart([p["books"], p["exams"]], [0.4, 0.1]))


def bigrams(lines: list[str], context: str, *, order: int = 2, **model: Any) -> dict[str, float]:
    """What the package's bigram model, or one of another order, expects after some words."""
    import torch

    from unrolled.config import settings_for
    from unrolled.tasks.ngram.model import count_model
    from unrolled.tasks.ngram.settings import NgramRun
    from unrolled.text.tokens import TextEncoder

    overrides = {"model.order": order, **{f"model.{name}": value for name, value in model.items()}}
    encoder = TextEncoder.build(lines, level="word")
    ids = encoder.encode_lines(lines).ids
    network = count_model(settings_for(NgramRun, overrides=overrides), encoder, ids, None).network
    tokens = torch.from_numpy(encoder.vocabulary.encode(context.split()).astype(np.int64))
    before = torch.tensor([[network.first, *tokens[:-1].tolist()]])
    log_p, _ = network.step(tokens[-1:], network.read(before))
    return dict(zip(encoder.vocabulary.tokens, log_p[0].exp().tolist(), strict=True))


@book.erratum(
    "E34",
    "002 eq 2–3",
    "M",
    printed="P(w₂ | w₁) = count(w₁, w₂) / count(w₁)",
    says="the denominator counts w₁ as a context; with END every word is one",
    printed_tex=r"\frac{\mathrm{count}(w_1,w_2)}{\mathrm{count}(w_1)}",
    tex=r"\frac{\mathrm{count}(w_1,w_2)}{\sum_w \mathrm{count}(w_1,w)}",
    code="unrolled.ngrams.counts.count_ngrams",
)
def count_as_a_context() -> Off:
    text = ["a", "b", "a"]
    printed = sum(a == "a" for a, _ in pairwise(text)) / text.count("a")
    correct = sum(bigrams([" ".join(text)], "a", smoothing="mle").values())
    return Off(abs(correct - 1), abs(printed - 1), f"after “a” in “a b a” it sums to {printed}")


@book.erratum(
    "E35",
    "002 eq 1, §1.2",
    "S",
    printed="an n-gram model looks at n previous words; “the students opened their” is three words",
    says="at n − 1; it is four words",
    code="unrolled.ngrams.settings.NgramSettings",
)
def words_in_the_phrase() -> Off:
    """The first of the four words tells what follows: 5-grams see it, 4-grams do not."""
    phrase = "the students opened their"
    lines = [f"{phrase} books", "some students opened their exams"] * 3
    words = len(phrase.split())

    def seen(order: int) -> float:
        return bigrams(lines, phrase, order=order, smoothing="mle")["books"]

    wrong = abs(seen(words) - 0.5) + abs(seen(words + 1) - 1.0)
    return Off(wrong, abs(words - 3), f"{words} words")


@book.equation(
    "B6",
    "002 §1.2; 004 Sparsity",
    "add-δ: (c + δ) / (N + δ V) sums to 1, and tends to 1/V as δ grows",
    tex=r"P(w\mid c)=\frac{\mathrm{count}(c,w)+\delta}{\mathrm{count}(c)+\delta V}",
    code="unrolled.ngrams.smoothing._add",
    within=1e-8,
)
def add_delta() -> Off:
    lines = ["a b", "a b", "a c", "b"]
    p, far = (bigrams(lines, "a", smoothing="add", delta=delta) for delta in (0.5, 1e9))
    possible = [value for value in far.values() if value > 0]
    return Off(abs(sum(p.values()) - 1) + max(abs(v - 1 / len(possible)) for v in possible))


@book.erratum(
    "E42",
    "002 §1.2; 004 Sparsity",
    "M",
    printed="“add a small δ to the count”; “just condition on fewer words”",
    says="the denominator gains δ V; a backed-off distribution needs discounts and weights",
    printed_tex=r"\frac{\mathrm{count}(c,w)+\delta}{\mathrm{count}(c)}",
    tex=r"\frac{\mathrm{count}(c,w)+\delta}{\mathrm{count}(c)+\delta V}",
    code="unrolled.ngrams.smoothing._add",
)
def delta_in_the_numerator_alone() -> Off:
    counts, delta = np.array([3.0, 1.0, 1.0]), 1.0
    printed = float(((counts + delta) / counts.sum()).sum())
    correct = sum(bigrams(["a b", "a b", "a b", "a c", "a d"], "a", smoothing="add").values())
    return Off(abs(correct - 1), abs(printed - 1), f"the printed chances sum to {printed:g}")


# ------------------------------------------------------------------ windows


@book.equation(
    "B14",
    "002 eq 4, Fig 1–2; 004 Fixed-window model",
    "ŷ = softmax(W² tanh(W¹ x + b¹) + W³ x + b³)",
    tex=r"\hat{y}=\mathrm{softmax}(W^{(2)}\tanh(W^{(1)}x+b^{(1)})+W^{(3)}x+b^{(3)})",
    code="unrolled.tasks.window.network.WindowNetwork",
    how="finite differences",
    within=DIFFERENCES,
    rows=("B13",),
)
def window_model() -> Off:
    """By hand: with d = ŷ − y, ∂J/∂x = W¹ᵀ((W²ᵀd) ⊙ (1 − h²)) + W³ᵀ d."""
    network, package, loss = _window_of_two()
    hidden = network.hidden
    parts = (hidden.weight, hidden.bias, network.weight, network.direct, network.bias)
    W1, b1, W2, W3, b3 = (part.detach().numpy() for part in parts)
    x = network.embedding.weight[[3, 4]].detach().numpy().ravel()

    def nats(x: Array) -> float:
        return -float(np.log(softmax(W2 @ np.tanh(W1 @ x + b1) + W3 @ x + b3)[2]))

    h = np.tanh(W1 @ x + b1)
    d = softmax(W2 @ h + W3 @ x + b3) - one_hot(2, 5)
    by_hand = W1.T @ ((W2.T @ d) * (1 - h**2)) + W3.T @ d
    off = apart(by_hand, slope(nats, x)) + apart(by_hand, package)
    return Off(off + apart(loss, nats(x)))


def _window_of_two() -> tuple[Any, Array, float]:
    """A network of the package that has read tokens 3 and 4 and is asked for 2; ∂J/∂x and J."""
    import torch

    from unrolled.tasks.window.network import WindowNetwork
    from unrolled.tasks.window.settings import WindowSettings
    from unrolled.text.batch import Batch

    settings = WindowSettings(window=2, embedding_size=3, hidden_size=4, direct=True, tied=False)
    network = WindowNetwork(settings, 5).double().eval()
    with torch.no_grad():
        for place, parameter in enumerate(network.parameters()):
            parameter.copy_(torch.from_numpy(draws(*parameter.shape, seed=place)))
    loss = network.loss(Batch.collate([[4, 2]]), (torch.tensor([[0, 3]]),))
    (gradient,) = torch.autograd.grad(loss.total, network.embedding.weight)
    return network, gradient[[3, 4]].numpy().ravel(), loss.total.item()


book.remark(
    "E53",
    "003 §2.1",
    "T",
    printed="the vocabulary of the two sentences holds “am”; vectors have 7 places",
    says="“want” instead of “am”; I want a glass of orange juice apple are 8 words",
)
book.remark(
    "E58",
    "001 Language Models with RNN",
    "C",
    printed="o_t denotes the probability of the sentence",
    says="o_t is the distribution of the next word; the sentence's is the product (B1)",
)
