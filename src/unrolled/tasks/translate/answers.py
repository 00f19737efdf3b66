"""What a sequence-to-sequence model answers: outputs for a text, and what it looked at."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.decode.tree import Node
from unrolled.errors import ConfigError
from unrolled.tasks.translate.settings import TraceOptions

MAX_SOURCE = 2000  # tokens of a text that is searched for
CUT_OFF = "Cut off before an end was written"
TOO_LONG = f"Longer than {MAX_SOURCE:,} tokens, and answered from the first of them"
UNREADABLE = "Of no token is known to the model, so the output says little"


class Translation(NamedTuple):
    """One output for a text."""

    text: str
    log_probability: float  # of its tokens and its end
    score: float  # what the search ranked it by
    finished: bool  # False: no end was written within the limit
    tokens: list[str]


NOTHING = Translation("", 0.0, 0.0, True, [])


def joined(found: list[list[Translation]]) -> list[Translation]:
    """The best outputs of a text's sentences as one; those of a whole text as they are."""
    if len(found) == 1:
        return found[0]
    best = [outputs[0] for outputs in found]
    whole = Translation(
        " ".join(output.text for output in best if output.text),
        sum(output.log_probability for output in best),
        sum(output.score for output in best),
        all(output.finished for output in best),
        [token for output in best for token in output.tokens],
    )
    return [whole]


class Alignment(NamedTuple):
    """How much each target token looked at each source token; END is the last of both."""

    source: list[str]
    target: list[str]
    weights: NDArray[np.float64] | None  # (T, S); None: the model has no attention


class Translated(NamedTuple):
    """The answer for one text: its outputs, the best first."""

    given: str
    row: int
    found: list[Translation]
    ranked: bool  # whether several outputs were asked for
    unknown: bool  # whether no token of the text is known
    shortened: bool = False  # whether only its beginning was read

    @property
    def remarks(self) -> tuple[str, ...]:
        """What makes the output doubtful."""
        reasons = (
            (TOO_LONG, self.shortened),
            (CUT_OFF, not self.found[0].finished),
            (UNREADABLE, self.unknown),
        )
        return tuple(reason for reason, holds in reasons if holds)

    def text(self) -> str:
        """The output; of several, each has its line number, its rank and its score before it."""
        if not self.ranked:
            return self.found[0].text
        rows = enumerate(self.found, 1)
        return "\n".join(f"{self.row}\t{rank}\t{o.score:.4f}\t{o.text}" for rank, o in rows)

    def as_json(self) -> dict[str, Any]:
        """The text and its outputs."""
        names = ("text", "log_probability", "score", "finished")
        outputs = [{name: getattr(output, name) for name in names} for output in self.found]
        return {"source": self.given, "outputs": outputs}

    def beside(self) -> dict[str, Any]:
        """The best output."""
        return {"output": self.found[0].text}

    def chart(self) -> Any:
        """There is none."""
        raise ConfigError("there is no picture of outputs; `unrolled trace` draws one of a text.")


class Trace(NamedTuple):
    """What the model looked at where it wrote, and the tree of its search."""

    given: str
    output: str
    alignment: Alignment
    nodes: list[Node]
    labels: list[str]  # the token of each node, as text
    options: TraceOptions

    @property
    def row(self) -> int:
        """The only input."""
        return 1

    @property
    def remarks(self) -> tuple[str, ...]:
        """None."""
        return ()

    def text(self) -> str:
        """The output."""
        return self.output

    def as_json(self) -> dict[str, Any]:
        """Weights and tree as plain values."""
        weights = self.alignment.weights
        nodes = zip(self.nodes, self.labels, strict=True)
        return {
            "source": self.given,
            "output": self.output,
            "source_tokens": self.alignment.source,
            "output_tokens": self.alignment.target,
            "attention": None if weights is None else weights.round(6).tolist(),
            "beam": [{**node._asdict(), "token": label} for node, label in nodes],
        }

    def chart(self) -> Any:
        """The picture that the options ask for."""
        from unrolled.charts import alignment_links, attention_map, beam_tree

        view, threshold = self.options.view, self.options.threshold
        if view == "beam":
            return beam_tree(self._drawn_nodes(), title="What the beam weighed")
        source, target, weights = self.alignment
        if weights is None:
            raise ConfigError(
                f'--view is {view}, but the model has no attention. Take "beam", or train one with '
                "model.attention."
            )
        if view == "links":
            return alignment_links(weights, source, target, threshold=threshold)
        title = "What it looks at (across) where it writes (down)"
        return attention_map(weights, source, target, title=title, threshold=threshold)

    def _drawn_nodes(self) -> list[Any]:
        """The nodes with their texts and how deep they lie."""
        from unrolled.charts import BeamNode

        depths: dict[int, int] = {}
        for node in self.nodes:
            depths[node.id] = 0 if node.parent is None else depths[node.parent] + 1
        return [
            BeamNode(
                id=node.id,
                parent=node.parent,
                depth=depths[node.id],
                label=label,
                log_probability=node.log_probability,
                score=node.score,
                state=node.state,
            )
            for node, label in zip(self.nodes, self.labels, strict=True)
        ]
