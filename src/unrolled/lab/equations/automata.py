"""Formal languages."""

from collections.abc import Callable, Mapping
from itertools import pairwise, product

import numpy as np

from unrolled.lab.equations.entry import Book, Off
from unrolled.lab.equations.tools import Array, apart, draws

book = Book("Formal languages")

Machine = tuple[Array, dict[str, Array], Array]  # first weights, moves by letter, final weights


def strings(alphabet: str, longest: int) -> list[str]:
    """Every string up to a length."""
    return ["".join(letters) for n in range(longest + 1) for letters in product(alphabet, repeat=n)]


def accepts_ab_star(text: str) -> bool:
    """The finite automaton of ab*: states start, seen, dead."""
    moves = {("start", "a"): "seen", ("seen", "b"): "seen"}
    state = "start"
    for letter in text:
        state = moves.get((state, letter), "dead")
    return state == "seen"


@book.equation(
    "P1",
    "000 §8",
    "a finite automaton accepts ab*: a, ab, abb, not ε, b, aba",
    tex=r"ab^{*}",
    code="unrolled.lab.equations.automata.accepts_ab_star",
    how="every string up to length 8",
)
def regular() -> Off:
    wrong = [
        text
        for text in strings("ab", 8)
        if accepts_ab_star(text) != (text[:1] == "a" and set(text[1:]) <= {"b"})
    ]
    return Off(float(len(wrong)))


def accepts_by_stack(text: str, *, ordered: bool) -> bool:
    """Push a, pop on b, accept an empty stack; ordered: no a after a b."""
    stack: list[str] = []
    for place, letter in enumerate(text):
        if letter == "a":
            if ordered and "b" in text[:place]:
                return False
            stack.append("a")
        elif not stack:
            return False
        else:
            stack.pop()
    return not stack


@book.erratum(
    "E22",
    "000 §8",
    "M",
    printed="push a, pop on b, accept if the stack is empty: said to accept aⁿbⁿ",
    says="that is balanced a and b (abab too); a state must forbid an a after a b",
    printed_tex=r"\{w : \text{balanced}\}",
    tex=r"\{a^n b^n\}",
    code="unrolled.lab.equations.automata.accepts_by_stack",
)
def equal_blocks() -> Off:
    texts = strings("ab", 10)
    true = {"a" * n + "b" * n for n in range(6)}
    wrong = [
        [text for text in texts if accepts_by_stack(text, ordered=ordered) != (text in true)]
        for ordered in (True, False)
    ]
    seen = f"the printed machine accepts {', '.join(wrong[1][:3])} and {len(wrong[1]) - 3} more"
    return Off(float(len(wrong[0])), float(len(wrong[1])), seen)


@book.equation(
    "P3",
    "000 §8",
    "parentheses need a stack: Dyck-2 by a stack is Dyck-2 by erasing () and []",
    tex=r"S\to\varepsilon\mid(S)S\mid[S]S",
    code="unrolled.lab.equations.automata.balanced",
    how="every string up to length 8",
)
def parentheses() -> Off:
    return Off(float(sum(balanced(text) != _erased(text) for text in strings("()[]", 8))))


def balanced(text: str) -> bool:
    """Whether every bracket is closed by its own kind, in order."""
    stack: list[str] = []
    for letter in text:
        if letter in "([":
            stack.append(")" if letter == "(" else "]")
        elif not stack or stack.pop() != letter:
            return False
    return not stack


def _erased(text: str) -> bool:
    while "()" in text or "[]" in text:
        text = text.replace("()", "").replace("[]", "")
    return not text


def path_sum(start: Array, moves: Mapping[str, Array], end: Array, text: str) -> float:
    """The weight of a string: over all paths of states."""
    states, total = range(len(start)), 0.0
    for path in product(states, repeat=len(text) + 1):
        weight = start[path[0]] * end[path[-1]]
        for letter, (a, b) in zip(text, pairwise(path), strict=True):
            weight *= moves[letter][a, b]
        total += float(weight)
    return total


def _automaton(states: int = 3) -> Machine:
    moves = {letter: draws(states, states, seed=n, scale=0.5) for n, letter in enumerate("ab")}
    return draws(states), moves, draws(states, seed=1)


def weight(start: Array, moves: Mapping[str, Array], end: Array, text: str) -> float:
    """The same by the forward algorithm, which is a linear recurrent network."""
    h = start
    for letter in text:
        h = h @ moves[letter]
    return float(h @ end)


@book.equation(
    "P5",
    "000 eq 63",
    "weight of a string: Σ over paths of λ(q₀) ∏ τ(q_{i−1}, x_i, q_i) ρ(q_t), by one pass forward",
    tex=r"W(x)=\bigoplus_{\pi}\lambda(q_0)\otimes\bigotimes_i\tau(q_{i-1},x_i,q_i)\otimes\rho(q_t)",
    code="unrolled.lab.equations.automata.weight",
)
def weighted_automaton() -> Off:
    machine = _automaton()
    texts = strings("ab", 4)
    return Off(apart([weight(*machine, t) for t in texts], [path_sum(*machine, t) for t in texts]))


@book.equation(
    "P6",
    "000 §8",
    "the Hankel matrix H[u, v] = f(uv) of 3 states has rank 3, and gives the automaton back",
    tex=r"H_{u,v}=f(uv),\quad\mathrm{rank}(H)=\text{states}",
    code="unrolled.lab.equations.automata.learned",
    within=1e-6,
)
def hankel() -> Off:
    machine = _automaton()
    parts = strings("ab", 3)
    H = np.array([[weight(*machine, u + v) for v in parts] for u in parts])
    rank = int(np.linalg.matrix_rank(H, tol=1e-9 * np.linalg.norm(H, 2)))
    texts = strings("ab", 6)
    again = learned(lambda text: weight(*machine, text), parts, rank=3)
    found = [weight(*again, t) for t in texts]
    return Off(float(rank != 3) + apart(found, [weight(*machine, t) for t in texts]))


def learned(f: Callable[[str], float], parts: list[str], *, rank: int) -> Machine:
    """An automaton of `rank` states from the values of f alone (Balle et al. 2014)."""
    H = np.array([[f(u + v) for v in parts] for u in parts])
    U, s, Vt = np.linalg.svd(H)
    P, S = U[:, :rank] * s[:rank], Vt[:rank]  # H = P S, rows of P are states after u
    back, front = np.linalg.pinv(S), np.linalg.pinv(P)
    moves = {
        letter: front @ np.array([[f(u + letter + v) for v in parts] for u in parts]) @ back
        for letter in "ab"
    }
    nothing = parts.index("")
    return P[nothing], moves, S[:, nothing]


book.remark(
    "E23",
    "000 §8, eq 63",
    "C",
    printed="Turing complete “given enough data”; stack automata give the deterministic languages",
    says="with unbounded precision and time, and nothing is said of learning; deterministic "
    "pushdown automata do; a string's weight sums over paths; finite Hankel rank ⇔ automaton",
)
