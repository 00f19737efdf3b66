"""What a network over trees is asked about: bracketed trees or texts, as they come."""

from collections.abc import Iterator
from typing import Any

from unrolled.tasks.task import Inputs, TextInput
from unrolled.tasks.tree.data import FORMATS, TreeMaker
from unrolled.tasks.tree.settings import TreeRun
from unrolled.text.brackets import read_trees, write_tree
from unrolled.text.columns import text_wanted
from unrolled.text.formats import HEAD, recognise
from unrolled.text.records import LineRecord
from unrolled.text.source import ArrivingLines
from unrolled.text.texts import read_texts
from unrolled.text.trees import WordTree


class TreeGiven(TextInput):
    """A tree, and the text that it was made of or is written as."""

    tree: Any  # WordTree


def tree_inputs(lines: ArrivingLines, settings: TreeRun) -> Inputs:
    """Each tree and its record."""
    data = settings.data
    layout = recognise(lines.head(HEAD), name=lines.name, among=FORMATS, wanted=data.format)
    if layout.format == "trees":
        return _bracketed(lines)
    maker = TreeMaker.of(settings, lines.name)
    if maker.given and not data.text_column:
        maker = maker._replace(how="right")
    found = read_texts(lines, layout, text_wanted(data.text_column), source=lines.name)
    return ((_given(maker.tree(text, None, record.line), text), record) for text, record in found)


def _bracketed(lines: ArrivingLines) -> Inputs:
    found: Iterator[WordTree] = read_trees(lines, source=lines.name)
    for tree in found:
        text = write_tree(tree)
        yield _given(tree, text), LineRecord(text, tree.line)


def _given(tree: WordTree, text: str) -> TreeGiven:
    return TreeGiven.model_construct(text=text, tree=tree)
