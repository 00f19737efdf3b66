"""`unrolled trace MODEL TEXT`: what a sequence-to-sequence model looks at, and what it weighs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unrolled.app.models import load_for
from unrolled.app.options import Model
from unrolled.app.output import note, print_json
from unrolled.app.progress import busy
from unrolled.app.search import Alpha, Beam, MaxLength, chosen_search
from unrolled.errors import ConfigError

if TYPE_CHECKING:
    from unrolled.charts import BeamNode
    from unrolled.decode.tree import Node
    from unrolled.models.translate import Alignment, Search, TranslateModel

LINK = 0.3  # a weight from which on two words are linked
VIEWS = ("attention", "links", "beam")


def trace(
    model: Model,
    text: Annotated[str, typer.Argument(help="The text to read.", show_default=False)],
    output: Annotated[
        str | None, typer.Option(help="An output to look at instead of the model's own.")
    ] = None,
    view: Annotated[str, typer.Option(help="The picture: attention, links or beam.")] = "attention",
    threshold: Annotated[
        float, typer.Option(help="Weights from here on are links.", min=0.01, max=1.0)
    ] = LINK,
    out: Annotated[
        Path | None, typer.Option(help="Where to draw: .png, .svg, .html; .json for numbers.")
    ] = None,
    beam: Beam = None,
    alpha: Alpha = None,
    max_length: MaxLength = None,
) -> None:
    """Show attention weights and the tree of the beam, as a picture or as numbers."""
    from unrolled.errors import not_one_of

    if view not in VIEWS:
        raise not_one_of("view", view, VIEWS)
    if not text.strip():
        raise ConfigError("the text is empty, but there must be a word to look at.")
    loaded: TranslateModel = load_for("trace", model)
    search = chosen_search(width=beam, alpha=alpha, max_length=max_length)
    with busy(f"tracing with {model}"):
        show(loaded, text, output, search, view=view, threshold=threshold, out=out)


def show(
    loaded: "TranslateModel",
    text: str,
    output: str | None,
    search: "Search",
    *,
    view: str,
    threshold: float,
    out: Path | None,
) -> None:
    """Numbers, or an output and its picture."""
    found = output if output is not None else loaded.translate([text], search)[0][0].text
    alignment = loaded.attention(text, found)
    nodes = search_tree(loaded, text, search)
    if out is None or out.suffix == ".json":
        write_json({"source": text, "output": found, **plain(loaded, alignment, nodes)}, out)
        return
    print(found)
    draw(loaded, alignment, nodes, view=view, threshold=threshold, out=out)
    note(f"Drawn: {out}.")


def search_tree(model: "TranslateModel", text: str, search: "Search") -> "list[Node]":
    """All that the beam looked at for a text."""
    from unrolled.decode.beam import BeamStep
    from unrolled.decode.tree import beam_tree

    steps: list[BeamStep] = []
    model.beam_steps(text, search, steps.append)
    return beam_tree(steps, alpha=search.alpha)


def plain(model: "TranslateModel", alignment: "Alignment", nodes: "list[Node]") -> dict[str, Any]:
    """Weights and tree as plain values."""
    weights = alignment.weights
    return {
        "source_tokens": alignment.source,
        "output_tokens": alignment.target,
        "attention": None if weights is None else weights.round(6).tolist(),
        "beam": [{**node._asdict(), "token": label(model, node)} for node in nodes],
    }


def label(model: "TranslateModel", node: "Node") -> str:
    """The token of a node, as text."""
    return "" if node.token is None else model.target.shown([node.token])[0]


def write_json(value: dict[str, Any], out: Path | None) -> None:
    """To a file, or to standard output."""
    if out is None:
        print_json(value)
        return
    from json import dumps

    from unrolled.files import write_file

    write_file(out, (dumps(value, ensure_ascii=False, indent=1) + "\n").encode())


def draw(
    model: "TranslateModel",
    alignment: "Alignment",
    nodes: "list[Node]",
    *,
    view: str,
    threshold: float,
    out: Path,
) -> None:
    """One picture."""
    from unrolled.charts import alignment_links, attention_map, beam_tree, save

    if view == "beam":
        save(beam_tree(drawn_nodes(model, nodes), title="What the beam weighed"), out)
        return
    if alignment.weights is None:
        raise ConfigError(
            f'--view is {view}, but the model has no attention. Take "beam", or train one with '
            "model.attention."
        )
    title = "What it looks at (across) where it writes (down)"
    if view == "attention":
        chart = attention_map(*alignment_of(alignment), title=title, threshold=threshold)
    else:
        chart = alignment_links(*alignment_of(alignment), threshold=threshold)
    save(chart, out)


def alignment_of(alignment: "Alignment") -> tuple[Any, list[str], list[str]]:
    """Weights and tokens in the order that charts take them."""
    return alignment.weights, alignment.source, alignment.target


def drawn_nodes(model: "TranslateModel", nodes: "list[Node]") -> "list[BeamNode]":
    """The nodes with their texts and how deep they lie."""
    from unrolled.charts import BeamNode

    depths: dict[int, int] = {}
    for node in nodes:
        depths[node.id] = 0 if node.parent is None else depths[node.parent] + 1
    return [
        BeamNode(
            id=node.id,
            parent=node.parent,
            depth=depths[node.id],
            label=label(model, node),
            log_probability=node.log_probability,
            score=node.score,
            state=node.state,
        )
        for node in nodes
    ]
