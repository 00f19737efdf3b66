"""Bracketed trees, in and out: one a line, or over several lines as the Penn treebank has them.

    (3 (2 It) (4 (2 is) (4 good)))        a label at every node
    ( (S (NP (PRP It)) (VP is good)) )    Penn's: chains, many children, an empty outer bracket
    ( ( It is ) good )                    no labels

What stands right behind an opening bracket is the node's label; behind a space it is a word. A
bracket without a label around one node is nothing. A line that begins with a bracket begins a tree,
unless it is indented. A bracket that is a word is written -LRB- or -RRB-.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from unrolled.errors import DataError, shown
from unrolled.text.trees import Label, WordTree

PART = re.compile(r"[()]|[^ \t\r\n\f\v()]+")
WRITTEN = {"(": "-LRB-", ")": "-RRB-"}
NO_LABEL = re.compile(r"[\s()]+")


Check = Callable[[str], str]  # what is wrong with a label; "": nothing


def _any_label(label: str) -> str:
    return ""


def read_trees(
    lines: Iterable[str], *, source: Path | str, check: Check = _any_label
) -> Iterator[WordTree]:
    """The trees of lines; what is wrong is named with line and column."""
    reader = _Reader(source, check)
    for number, line in enumerate(lines, 1):
        yield from reader.line(line, number)
    reader.end()


def read_tree(
    text: str, *, source: Path | str = "<tree>", line: int = 1, check: Check = _any_label
) -> WordTree:
    """The one tree of a text."""
    reader = _Reader(source, check)
    found = list(reader.line(" ".join(text.splitlines()), line))
    reader.end()
    if len(found) != 1:
        raise DataError(source, f"holds {len(found)} trees, but must hold one.", line=line)
    return found[0]


class _Reader:
    """Reads bracket by bracket; what is open is on a stack of our own."""

    def __init__(self, source: Path | str, check: Check) -> None:
        self.source, self.check = source, check
        self.begin()

    def begin(self) -> None:
        """A new tree."""
        self.words: list[str] = []
        self.parents: list[int] = []
        self.labels: list[Label] = []
        self.open: list[tuple[Label, list[int], int, int]] = []  # label, children, line, column
        self.bare = -1  # the last node, if it is a word without brackets of its own

    def error(self, problem: str, line: int, column: int) -> DataError:
        return DataError(self.source, problem, line=line, column=column)

    def line(self, text: str, number: int) -> Iterator[WordTree]:
        """The trees that end in a line."""
        if self.open and text[:1] == "(":
            raise self._not_closed(f"when line {number} begins another")
        after = -1  # where a label would begin
        for found in PART.finditer(text):
            part, column = found[0], found.start() + 1
            if part == "(":
                self.open.append((None, [], number, column))
                after = column
            elif part == ")":
                yield from self._closed(number, column)
            elif not self.open:
                raise self.error(
                    f"{shown(part)} stands outside of any tree, but all words must be in brackets: "
                    "(label word).",
                    number,
                    column,
                )
            elif found.start() == after:
                if wrong := self.check(part):
                    raise self.error(wrong, number, column)
                self.open[-1] = (part, *self.open[-1][1:])
            else:
                self.words.append(part)
                self.bare = self._put([], None)

    def end(self) -> None:
        """No line follows."""
        if self.open:
            raise self._not_closed("at the end")

    def _not_closed(self, when: str) -> DataError:
        _, _, line, column = self.open[-1]
        others = f", nor are {len(self.open) - 1} around it" if len(self.open) > 1 else ""
        problem = f"this bracket is not closed {when}{others}. Add what is missing: )."
        return self.error(problem, line, column)

    def _closed(self, number: int, column: int) -> Iterator[WordTree]:
        if not self.open:
            raise self.error("this bracket closes none. Take it away.", number, column)
        label, children, line, opened = self.open.pop()
        if not children:
            raise self._nothing(label, line, opened)
        only = children[0] if len(children) == 1 else -1
        if only >= 0 and (only == self.bare or label is None):
            # a word in brackets of its own, or brackets around nothing but a node
            self.labels[only] = label if only == self.bare else self.labels[only]
            self.bare = -1
            self._hang(only)
        else:
            self._put(children, label)
        if not self.open:
            yield WordTree(tuple(self.words), np.array(self.parents), tuple(self.labels), line)
            self.begin()

    def _nothing(self, label: Label, line: int, column: int) -> DataError:
        if label is None:
            return self.error("the tree or node that begins here is empty.", line, column)
        return self.error(
            f"the node with label {shown(label)} has neither word nor node in it. Write "
            f"({label[:20]} word); a label that is a word is written ( {label[:20]} ).",
            line,
            column,
        )

    def _put(self, children: list[int], label: Label) -> int:
        """A node behind its children."""
        node = len(self.parents)
        for child in children:
            self.parents[child] = node
        self.parents.append(-1)
        self.labels.append(label)
        self._hang(node)
        return node

    def _hang(self, node: int) -> None:
        """A child of what is open."""
        if self.open:
            self.open[-1][1].append(node)


def write_tree(tree: WordTree) -> str:
    """The tree on one line, which `read_tree` reads again."""
    first = np.arange(len(tree)) - tree.sizes + 1  # of each node, where its leftmost leaf stands
    opened: list[list[int]] = [[] for _ in range(len(tree))]
    for node in reversed(range(len(tree))):
        opened[first[node]].append(node)
    words, parts = iter(tree.words), list[str]()
    for node, leaf in enumerate((tree.arities == 0).tolist()):
        if not leaf:
            parts[-1] += ")"
            continue
        around = "".join(_opening(tree.labels[n]) for n in opened[node][:-1])
        parts.append(around + _leaf(next(words), tree.labels[node], alone=len(tree) == 1))
    return " ".join(parts)


def _opening(label: Label) -> str:
    return "( " if label is None else f"({_label(label)} "


def _leaf(word: str, label: Label, *, alone: bool) -> str:
    word = "".join(WRITTEN.get(letter, letter) for letter in word)
    if label is None:
        return f"( {word})" if alone else word
    return f"({_label(label)} {word})"


def _label(label: str) -> str:
    return NO_LABEL.sub("_", label)


def written(word: str) -> str:
    """A word as treebanks write it: a bracket by its name."""
    return WRITTEN.get(word, word)


def is_tree_like(lines: Iterable[str]) -> bool:
    """Whether every line that is neither blank nor indented begins with a bracket."""
    starts = [line[0] for line in lines if line.strip() and not line[0].isspace()]
    return bool(starts) and all(start == "(" for start in starts)
