"""`unrolled lab markup`: what is opened is to be closed, in text that a model writes.

Made-up XML, LaTeX, wiki markup and Persian couplets, a document a line, each mark a word. A
recurrent network and an n-gram model learn them; then both write, and a stack counts what they
closed.
"""

import random
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.evaluate.shown import columns
from unrolled.store.files import write_file
from unrolled.tasks.run import train

LONGEST = 200  # words of a written document
WORDS = ("the", "rat", "ate", "some", "cheese", "and", "a", "cat", "saw", "it", "run")
TAGS = ("note", "list", "item", "title", "b")
ENVIRONMENTS = ("itemize", "quote", "center")
RHYMES = {"ار": ("بهار", "نگار", "یار", "قرار"), "ان": ("جان", "جهان", "نهان", "زمان")}
PERSIAN = ("دل", "من", "در", "باغ", "گل", "شب", "از", "تو", "آمد", "بی")


Mark = tuple[str, bool | None]  # a name; it opens, closes, or closes where it was opened


class Kind(NamedTuple):
    """A kind of document: how one is made, and which words open and close something."""

    made: Callable[[random.Random], str]
    mark: Callable[[str], Mark | None]


# ------------------------------------------------------------------ documents


def _words(chance: random.Random, words: Sequence[str] = WORDS) -> str:
    return " ".join(chance.choices(words, k=chance.randint(1, 3)))


def _nested(chance: random.Random, wrapped: Callable[[str], str], *, depth: int) -> str:
    """Words, or one to three pieces inside something that wraps them."""
    if not depth or chance.random() < 0.3:
        return _words(chance)
    inner = (_nested(chance, wrapped, depth=depth - 1) for _ in range(chance.randint(1, 2)))
    return wrapped(" ".join(inner))


def xml(chance: random.Random) -> str:
    """Elements in elements."""

    def wrapped(inner: str) -> str:
        tag = chance.choice(TAGS)
        return f"<{tag}> {inner} </{tag}>"

    return wrapped(_nested(chance, wrapped, depth=3))


def latex(chance: random.Random) -> str:
    """Environments, groups and formulas."""

    def wrapped(inner: str) -> str:
        name = chance.choice((*ENVIRONMENTS, "emph", "$"))
        if name == "$":
            return f"$ x $ {inner}"
        if name == "emph":
            return f"\\emph{{ {inner} }}"
        return f"\\begin{{{name}}} {inner} \\end{{{name}}}"

    return wrapped(_nested(chance, wrapped, depth=3))


def wiki(chance: random.Random) -> str:
    """A heading, links, templates and bold words."""
    marks = (("[[", "]]"), ("{{", "}}"), ("'''", "'''"))
    parts = [f"== {_words(chance)} =="]
    for _ in range(chance.randint(1, 3)):
        before, after = chance.choice(marks)
        parts.append(f"{_words(chance)} {before} {_words(chance)} {after}")
    return " ".join(parts)


def poem(chance: random.Random) -> str:
    """Couplets whose halves end in the same rhyme."""

    def couplet() -> str:
        rhyme = chance.choice(list(RHYMES.values()))
        first, second = chance.sample(rhyme, 2)
        return f"{_words(chance, PERSIAN)} {first} / {_words(chance, PERSIAN)} {second}"

    return " ؛ ".join(couplet() for _ in range(chance.randint(1, 2)))


# ------------------------------------------------------------------ what opens, what closes


def xml_marks(word: str) -> Mark | None:
    """Tags."""
    if word.startswith("<"):
        return word.strip("</>"), not word.startswith("</")
    return None


def latex_marks(word: str) -> Mark | None:
    """\\begin and \\end, braces, and dollars."""
    if word.startswith(("\\begin{", "\\end{")):
        return word.partition("{")[2], word.startswith("\\begin")
    return {"\\emph{": ("{", True), "}": ("{", False), "$": ("$", None)}.get(word)


def wiki_marks(word: str) -> Mark | None:
    """Double brackets and braces, and what is its own end."""
    marks: dict[str, Mark] = {"[[": ("[", True), "]]": ("[", False), "'''": ("'", None)}
    marks |= {"{{": ("{", True), "}}": ("{", False), "==": ("=", None)}
    return marks.get(word)


def poem_marks(word: str) -> Mark | None:
    """The rhyme of a first half asks for that of the second."""
    return next(((rhyme, None) for rhyme, words in RHYMES.items() if word in words), None)


KINDS: Mapping[str, Kind] = {
    "xml": Kind(xml, xml_marks),
    "latex": Kind(latex, latex_marks),
    "wiki": Kind(wiki, wiki_marks),
    "poem": Kind(poem, poem_marks),
}


class Closed(NamedTuple):
    """What was opened in a text, how much of it was closed, and whether nothing else was."""

    opened: int
    closed: int
    well_formed: bool


def closed(text: str, mark: Callable[[str], Mark | None]) -> Closed:
    """By a stack: only what was opened last can be closed."""
    stack: list[str] = []
    opened = shut = stray = 0
    for name, opens in filter(None, map(mark, text.split())):
        top = bool(stack) and stack[-1] == name
        if opens or (opens is None and not top):
            opened += 1
            stack.append(name)
        elif top:
            shut += 1
            stack.pop()
        else:
            stray += 1
    return Closed(opened, shut, not stack and not stray)


# ------------------------------------------------------------------ the study

NETWORK = {
    "model.context": "line",
    "model.embedding_size": 16,
    "model.hidden_size": 64,
    "model.tied": False,
    "model.dropout": 0.0,
    "train.learning_rate": 0.005,
    "train.batch_tokens": 128,  # many steps: what must match is learned late
    "train.threads": 1,
}
MODELS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "5-gram": ("ngram", {"model.order": 5}),
    "lstm": ("lm", NETWORK),
}


class Share(NamedTuple):
    """What one model made of one kind."""

    kind: str
    model: str
    closed: float  # of all that was opened
    well_formed: float  # of all documents
    example: str


@dataclass(frozen=True)
class Markup:
    """All shares."""

    shares: Sequence[Share]
    documents: int

    def text(self) -> str:
        """A table, and what each has written."""
        head = ["kind", "model", "closed", "well-formed"]
        rows = [[s.kind, s.model, f"{s.closed:.1%}", f"{s.well_formed:.1%}"] for s in self.shares]
        written = [f"{s.kind}, {s.model}: {s.example}" for s in self.shares]
        about = f"{self.documents} documents written by each model"
        return "\n".join([about, columns([head, *rows]), "", *written])

    def as_json(self) -> list[dict[str, Any]]:
        """An object a kind and model."""
        return [share._asdict() for share in self.shares]

    def chart(self) -> Any:
        """Bars by kind."""
        from unrolled.charts import grouped_shares

        groups: dict[str, dict[str, list[float]]] = {}
        for share in self.shares:
            groups.setdefault(share.model, {})[share.kind] = [share.closed]
        title = f"What is opened and closed again: {self.documents} documents each, one seed"
        return grouped_shares(groups, x_title="closed, of what was opened", title=title)


def markup(
    *,
    kinds: Sequence[str] = tuple(KINDS),
    documents: int = 8000,
    epochs: int = 8,
    written: int = 200,
    seed: int = 1,
    tell: Any = lambda _: None,
) -> Markup:
    """Every kind learned and written by both models."""
    shares = []
    for kind in kinds:
        chance = random.Random(seed)
        lines = [KINDS[kind].made(chance) for _ in range(documents)]
        with tempfile.TemporaryDirectory() as folder:
            text = Path(folder) / "text.txt"
            write_file(text, "".join(f"{line}\n" for line in lines).encode())
            for name, (task, settings) in MODELS.items():
                own = {**settings, **({"train.epochs": epochs} if task == "lm" else {})}
                model = train(task, train=text, out=Path(folder) / name, seed=seed, settings=own)
                texts = model.generate(tokens=LONGEST, count=written, seed=seed)
                shares.append(_share(kind, name, texts))
                tell(f"markup: {kind} by {name}")
    return Markup(shares, written)


def _share(kind: str, model: str, texts: Sequence[str]) -> Share:
    found = [closed(text, KINDS[kind].mark) for text in texts]
    opened = sum(each.opened for each in found)
    share = sum(each.closed for each in found) / max(1, opened)
    whole = sum(each.well_formed for each in found) / len(found)
    return Share(kind, model, share, whole, texts[0])
