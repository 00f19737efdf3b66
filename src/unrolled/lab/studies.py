"""The list of studies: what each is about, and what can be asked of it.

Nothing here imports torch: the list and its help must be quick. A study imports its own file when
it is run, and gives back something that can be shown.
"""

from collections.abc import Mapping
from itertools import islice
from typing import Literal

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.lab.drawing.options import DrawOptions, run_draw
from unrolled.lab.study import SEED, Study, Tell, three_seeds
from unrolled.lab.tagged_options import (
    DirectionOptions,
    PaddingOptions,
    run_directions,
    run_padding,
)


class EquationOptions(Section):
    """Of `lab equations`."""

    note: str | None = Field(None, description="Only the entries of this note: 000 to 004.")
    id: str | None = Field(None, description="Only this entry, all of it: F7, E37 …")
    glossary: bool = Field(False, description="What each note calls each gate, instead.")


def _equations(options: EquationOptions, tell: Tell) -> Shown:
    from unrolled.lab.equations.catalogue import entries, verdicts
    from unrolled.lab.equations.glossary import Glossary

    if options.glossary:
        return Glossary()
    return verdicts(entries(note=options.note, id=options.id), tell)


class BpttOptions(Section):
    """Of `lab bptt`."""

    text: str = Field(description="The characters that are read and predicted.")
    cell: str = Field("rnn", description="rnn, gru or lstm; variants as in “gru before write”.")
    hidden: int = Field(2, ge=1, le=64, description="Units of the network.")
    seed: int = SEED


def _bptt(options: BpttOptions, tell: Tell) -> Shown:
    from unrolled.lab.bptt import Shown, small_run

    run = small_run(options.text, options.cell, hidden=options.hidden, seed=options.seed)
    return Shown(run)


class GraphOptions(Section):
    """Of `lab graph`."""

    seed: int = Field(3, ge=0, lt=2**63, description="Where chance begins.")


def _graph(options: GraphOptions, tell: Tell) -> Shown:
    from unrolled.lab.graph import ShownGraph
    from unrolled.lab.net import small_net

    return ShownGraph(small_net(seed=options.seed))


class GradientOptions(Section):
    """Of `lab gradients`."""

    model: str | None = Field(
        None,
        description="A folder of a recurrent language model, to look at instead of fresh networks.",
        json_schema_extra={"argument": True},
    )
    text: str | None = Field(
        None, description="What the model is to read.", json_schema_extra={"argument": True}
    )
    hidden: int = Field(32, ge=2, le=256, description="Units of fresh networks.")
    steps: int = Field(101, ge=12, le=1001, description="Steps of fresh networks.")
    seed: int = SEED


def _gradients(options: GradientOptions, tell: Tell) -> Shown:
    if options.model is None:
        from unrolled.lab.gradients import gradients

        return gradients(hidden=options.hidden, steps=options.steps, seed=options.seed, tell=tell)
    if options.text is None:
        raise ConfigError("a model was given but no text. Give both: lab gradients MODEL TEXT.")
    from unrolled.lab.trained_gradients import text_gradients
    from unrolled.tasks.folder import load

    return text_gradients(load(options.model), options.text)


class MemoryOptions(Section):
    """Of `lab memory`."""

    task: Literal["copy", "adding", "agreement"] = Field(
        "copy", description="copy, adding or agreement."
    )
    longest: int = Field(100, ge=5, le=200, description="Steps to remember at most.")
    apart: bool = Field(
        False, description="Learn every distance by itself, without shorter sequences."
    )
    full: bool = Field(False, description="Three seeds and more updates, as in docs/lab.md.")
    seed: int = SEED


def _memory(options: MemoryOptions, tell: Tell) -> Shown:
    from unrolled.lab.memory import memory
    from unrolled.lab.memory_apart import DISTANCES, memory_apart

    seeds = three_seeds(options.seed) if options.full else (options.seed,)
    if options.apart:
        distances = [d for d in DISTANCES if d <= options.longest]
        few = sorted({distances[len(distances) // 2 - 1], distances[-1]})
        chosen = distances if options.full else few
        return memory_apart(options.task, distances=chosen, seeds=seeds, tell=tell)
    updates = 1000 if options.full else 400
    return memory(options.task, longest=options.longest, updates=updates, seeds=seeds, tell=tell)


class ClippingOptions(Section):
    """Of `lab clipping`."""

    threshold: float = Field(1.0, gt=0.0, description="The largest norm of the clipped gradient.")
    rate: float = Field(0.1, gt=0.0, le=10.0, description="The learning rate.")


def _clipping(options: ClippingOptions, tell: Tell) -> Shown:
    from unrolled.lab.clipping import clipping

    return clipping(threshold=options.threshold, rate=options.rate)


class LayerOptions(Section):
    """Of `lab layers`."""

    full: bool = Field(False, description="Five times the updates.")
    rate: float = Field(0.1, gt=0.0, le=10.0, description="The learning rate.")
    seed: int = SEED


def _layers(options: LayerOptions, tell: Tell) -> Shown:
    from unrolled.lab.layers import layers

    updates = 3000 if options.full else 600
    return layers(updates=updates, rate=options.rate, seed=options.seed, tell=tell)


class NoOptions(Section):
    """Of a study that has none."""


def _activations(options: NoOptions, tell: Tell) -> Shown:
    from unrolled.lab.activations import activation_curves

    return activation_curves()


class DepthOptions(Section):
    """Of `lab depth`."""

    full: bool = Field(False, description="Four depths, 60,000 characters, 40 epochs.")
    seed: int = SEED


def _depth(options: DepthOptions, tell: Tell) -> Shown:
    from unrolled.lab.depth import depth

    if options.full:
        return depth(
            layers=(1, 2, 3, 4),
            widths=(64, 128),
            epochs=40,
            characters=60_000,
            seed=options.seed,
            tell=tell,
        )
    return depth(seed=options.seed, tell=tell)


class MarkupOptions(Section):
    """Of `lab markup`."""

    kind: Literal["xml", "latex", "wiki", "poem"] | None = Field(
        None, description="xml, latex, wiki or poem; all of them where it is left out."
    )
    full: bool = Field(False, description="Twice the epochs, as in docs/lab.md.")
    seed: int = SEED


def _markup(options: MarkupOptions, tell: Tell) -> Shown:
    from unrolled.lab.markup import KINDS, markup

    kinds = (options.kind,) if options.kind else tuple(KINDS)
    return markup(kinds=kinds, epochs=16 if options.full else 8, seed=options.seed, tell=tell)


class AgreementOptions(Section):
    """Of `lab agreement`."""

    model: str = Field(description="A folder of a language model: lm, window or ngram.")
    file: str = Field(description="Minimal pairs: two or four columns, or NAME.text by NAME.gold.")
    encoding: str = Field("utf-8", description="The file's encoding.")
    limit: int | None = Field(None, ge=1, description="Pairs to read at most.")
    known: bool = Field(
        False, description="Leave out pairs that differ in a word the model does not know."
    )


def _agreement(options: AgreementOptions, tell: Tell) -> Shown:
    from unrolled.lab.agreement import judged, read_pairs
    from unrolled.tasks.folder import load

    pairs = read_pairs(options.file, encoding=options.encoding)
    model = load(options.model)
    return judged(model, islice(pairs, options.limit), tell, known=options.known)


STUDIES: Mapping[str, Study] = {
    "equations": Study(
        "Run every equation of the notes and show every erratum by a number.",
        EquationOptions,
        _equations,
    ),
    "bptt": Study(
        "Back-propagation through time of a text, factor by factor, to check by pencil.",
        BpttOptions,
        _bptt,
    ),
    "graph": Study(
        "The computation graph of a net of three layers: values and adjoints.",
        GraphOptions,
        _graph,
    ),
    "draw": Study("The figures of the notes, from networks that run.", DrawOptions, run_draw),
    "gradients": Study(
        "How much of a loss reaches states many steps back: fresh networks, or a model and a text.",
        GradientOptions,
        _gradients,
    ),
    "memory": Study(
        "What n-gram, window, RNN, GRU and LSTM remember, by distance.", MemoryOptions, _memory
    ),
    "clipping": Study(
        "The error surface of a one-unit network, down it with and without clipping.",
        ClippingOptions,
        _clipping,
    ),
    "layers": Study(
        "What of the gradient reaches the first of seven dense layers.", LayerOptions, _layers
    ),
    "activations": Study("Activation functions and their slopes.", NoOptions, _activations),
    "depth": Study(
        "Depth, width, dropout and the gap between training and held-out loss.",
        DepthOptions,
        _depth,
    ),
    "directions": Study("One direction against two, on tagging.", DirectionOptions, run_directions),
    "padding": Study(
        "What padding does to quality where nobody masks it.", PaddingOptions, run_padding
    ),
    "markup": Study(
        "What is opened and closed again in markup and couplets that models write.",
        MarkupOptions,
        _markup,
    ),
    "agreement": Study(
        "Minimal pairs by any language model, with intervals, by template and attractors.",
        AgreementOptions,
        _agreement,
    ),
}
