"""The task `tree`: networks over trees."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from unrolled.config.sections import Section
from unrolled.evaluate.shown import Shown
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.task import Inputs, Task, Use, View
from unrolled.tasks.tree.settings import PredictOptions, TreeInput, TreeRun
from unrolled.text.source import ArrivingLines, Source

if TYPE_CHECKING:
    from unrolled.evaluate.measure import Measure
    from unrolled.tasks.tree.data import Trees
    from unrolled.tasks.tree.job import TreeJob
    from unrolled.tasks.tree.model import TreeModel


class TreeTask(Task[TreeRun, "Trees", "TreeModel"]):
    """A label at every node of a tree or at its root, or the vector of a sentence."""

    name = "tree"
    noun = "network over trees"
    settings = TreeRun
    uses: ClassVar[Mapping[str, Use]] = {
        "predict": Use("Label the nodes of each tree.", options=PredictOptions),
        "trace": Use(
            "Draw the tree with labels, the order of merging and errors.",
            input=TreeInput,
            by_line=False,
            document=lambda answers: answers[0],
            in_words=False,
        ),
        "similar": SIMILAR,
    }
    views: ClassVar[Mapping[str, View]] = {
        "loss": View("The loss of every step, the cost on the dev data.", of_run=True),
    }
    examples = ("predict FOLDER texts.txt", "evaluate FOLDER trees.txt")

    def read(self, source: Source, settings: TreeRun, options: Section | None = None) -> "Trees":
        from unrolled.tasks.tree.data import Trees

        return Trees.read(source, settings)

    def remarks(self, data: "Trees") -> Sequence[str]:
        """How many trees were left out."""
        if not data.left_out:
            return ()
        return (f"{data.left_out:,} trees with a neutral root are left out",)

    def settled(self, settings: TreeRun, train: "Trees") -> TreeRun:
        """With what the training data say where the settings left it open."""
        from unrolled.tasks.tree.data import settled

        return settled(settings, train)

    def inputs(self, lines: ArrivingLines, use: str, settings: TreeRun, options: Any) -> Inputs:
        """A bracketed tree or a text a line, or the texts of a table."""
        from unrolled.tasks.tree.inputs import tree_inputs

        return tree_inputs(lines, settings)

    def job(self, settings: TreeRun, data: "Mapping[str, Trees]") -> "TreeJob":
        from unrolled.tasks.tree.job import tree_job

        return tree_job(settings, data)

    def model(self) -> "type[TreeModel]":
        from unrolled.tasks.tree.model import TreeModel

        return TreeModel

    def evaluate(self, model: "TreeModel", data: "Trees", options: Any) -> Shown:
        from unrolled.tasks.tree.report import evaluate_trees

        return evaluate_trees(model, model.ready_to_judge(data))

    def measures(self, model: "TreeModel", data: "Trees") -> "list[Measure]":
        from unrolled.tasks.tree.report import tree_measures

        return tree_measures(model, model.ready_to_judge(data))

    def sentence(self, facts: Mapping[str, float]) -> str:
        """What a model learned from."""
        return (
            f"Learned from {facts['lines']:,} trees, {facts['tokens']:,} words in "
            f"{facts['nodes']:,} nodes; {facts['unknown']:,} words unknown; vocabulary "
            f"{facts['vocabulary']:,}."
        )
