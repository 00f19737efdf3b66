r"""TeX to MathML, as far as the equations of the notes need it: no script, no network.

Known are scripts (^ and _), \frac, \sqrt, accents, text in \mathrm, \text and the like, and the
signs of SIGNS; anything else is an error, so that no page shows half an equation.
"""

import re
from html import escape

SIGNS = {
    "alpha": "α", "beta": "β", "delta": "δ", "varepsilon": "ε",
    "theta": "θ", "lambda": "λ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "Gamma": "Γ",
    "partial": "∂", "sum": "∑", "prod": "∏", "odot": "⊙", "otimes": "⊗", "bigoplus": "⨁",
    "bigotimes": "⨂", "cdot": "·", "times": "×", "le": "≤", "ge": "≥", "ne": "≠", "in": "∈",
    "to": "→", "dots": "…", "mid": "∣", "lVert": "‖", "rVert": "‖", "langle": "⟨", "rangle": "⟩",
    "top": "⊤", "approx": "≈", "supseteq": "⊇", "propto": "∝", "leftarrow": "←",
    "Rightarrow": "⇒", "ell": "ℓ", "{": "{", "}": "}", "arg": "arg", "max": "max", "min": "min",
    "log": "log", "exp": "exp", "tanh": "tanh", "cos": "cos", "quad": "\u2003",
    "qquad": "\u2003\u2003", ";": "\u2005", ",": "\u2009", "left": "", "right": "",
}  # fmt: skip
SHOWN = {"'": "′", "-": "−"}
WORDS = {"arg", "max", "min", "log", "exp", "tanh", "cos"}
LARGE = {"∑", "∏", "⨁", "⨂"}
ACCENTS = {"hat": "^", "tilde": "~", "overrightarrow": "→", "overleftarrow": "←"}
TEXTS = {"mathrm", "text", "mathrel", "mathbb"}
BLACKBOARD = {"R": "ℝ", "N": "ℕ"}

TOKEN = re.compile(r"\\([A-Za-z]+|.)|([0-9]+(?:\.[0-9]+)?)|(\S)|\s+")


def mathml(tex: str) -> str:
    """A <math> element."""
    tokens = [match.group(0) for match in TOKEN.finditer(tex) if match.group(0).strip()]
    row = _row(tokens, until="")
    return f'<math display="block"><mrow>{row}</mrow></math>'


def _row(tokens: list[str], until: str) -> str:
    """Elements up to a closing token, which is taken too."""
    parts: list[str] = []
    while tokens and tokens[0] != until:
        if tokens[0] in ("^", "_"):
            parts.append(_scripted(parts.pop() if parts else "<mrow></mrow>", tokens))
        else:
            parts.append(_element(tokens))
    if until:
        if not tokens:
            raise ValueError(f"{until!r} is missing")
        tokens.pop(0)
    return "".join(parts)


def _scripted(base: str, tokens: list[str]) -> str:
    found: dict[str, str] = {}
    while tokens and tokens[0] in ("^", "_"):
        which = tokens.pop(0)
        found[which] = _element(tokens)
    under = any(f">{sign}<" in base for sign in LARGE)
    names = {"_": "munder" if under else "msub", "^": "mover" if under else "msup"}
    tag = names.get("".join(found), "munderover" if under else "msubsup")
    ordered = [found[which] for which in ("_", "^") if which in found]
    return f"<{tag}>{base}{''.join(ordered)}</{tag}>"


def _element(tokens: list[str]) -> str:
    token = tokens.pop(0)
    if token == "{":
        return f"<mrow>{_row(tokens, until='}')}</mrow>"
    if token.startswith("\\"):
        return _command(token[1:], tokens)
    if token[0].isdigit():
        return f"<mn>{token}</mn>"
    if token.isalpha():
        return f"<mi>{escape(token)}</mi>"
    return f"<mo>{SHOWN.get(token, escape(token))}</mo>"


def _command(name: str, tokens: list[str]) -> str:
    if name == "frac":
        return f"<mfrac>{_element(tokens)}{_element(tokens)}</mfrac>"
    if name == "sqrt":
        return f"<msqrt>{_element(tokens)}</msqrt>"
    if name in ACCENTS:
        return f'<mover accent="true">{_element(tokens)}<mo>{ACCENTS[name]}</mo></mover>'
    if name in TEXTS:
        return f"<mtext>{escape(_words(name, tokens))}</mtext>"
    if name not in SIGNS:
        raise ValueError(f"\\{name} is not known")
    sign = escape(SIGNS[name])
    kind = "mi" if name in WORDS or SIGNS[name].isalpha() else "mo"
    return f"<{kind}>{sign}</{kind}>" if sign.strip() else f"<mtext>{sign}</mtext>"


def _words(name: str, tokens: list[str]) -> str:
    tokens.pop(0)
    end = tokens.index("}")
    word = "".join(tokens[:end])
    del tokens[: end + 1]
    return BLACKBOARD.get(word, word) if name == "mathbb" else word
