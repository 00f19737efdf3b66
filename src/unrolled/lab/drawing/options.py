"""`unrolled lab draw`: what can be drawn, and what can be asked. Nothing here imports torch."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from pydantic import Field

from unrolled.config.sections import Section
from unrolled.errors import ConfigError
from unrolled.evaluate.shown import Shown
from unrolled.lab.study import Tell

FIGURES = Literal[
    "folded",
    "step",
    "stack",
    "classifier",
    "tagger",
    "training",
    "generation",
    "cell",
    "rnn-to-lstm",
    "window",
    "topologies",
]


class DrawOptions(Section):
    """Of `lab draw`."""

    figure: FIGURES = Field(
        description="folded, step, stack, classifier, tagger, training, generation, cell, "
        "rnn-to-lstm, window or topologies."
    )
    text: str = Field("the rat ate", description="Words, or characters where there is no space.")
    cell: str | None = Field(None, description="rnn, gru or lstm; variants as in “gru before”.")
    layers: int | None = Field(None, ge=1, le=4, description="Layers of a stack.")
    both: bool = Field(False, description="A stack in two directions.")
    direct: bool = Field(False, description="A window with direct connections.")
    model: str | None = Field(
        None, description="A folder of a language model, to draw instead of a network of chance."
    )
    seed: int = Field(21, ge=0, lt=2**63, description="Where chance begins.")


class _Figure(NamedTuple):
    """One figure: how it is drawn, and which options it has beside text and seed."""

    draw: Callable[[DrawOptions], Any]
    options: frozenset[str]


def run_draw(options: DrawOptions, tell: Tell) -> Shown:
    figure = DRAWN[options.figure]
    given = {
        name for name in ("cell", "layers", "both", "direct", "model") if _given(options, name)
    }
    for name in sorted(given - figure.options):
        raise ConfigError(f"--{name} was given, but “{options.figure}” has no such option.")
    if "model" in given and len(given) > 1:
        raise ConfigError("--model was given: its own cell and layers are drawn. Leave out others.")
    shown: Shown = figure.draw(options)
    return shown


def _given(options: DrawOptions, name: str) -> bool:
    return getattr(options, name) not in (None, False)


def _reading(options: DrawOptions, *, cell: str = "rnn", layers: int = 1) -> Any:
    from unrolled.lab.drawing.reading import model_reading, small_reading

    if options.model is not None:
        from unrolled.tasks.folder import load

        return model_reading(load(options.model), options.text)
    return small_reading(
        options.text,
        options.cell or cell,
        layers=options.layers or layers,
        both=options.both,
        seed=options.seed,
    )


def _folded(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import folded, one_layer

    return folded(one_layer(_reading(options)))


def _step(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import step

    return step(_reading(options))


def _stack(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import stacked

    return stacked(_reading(options, layers=2))


def _classifier(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import classifier

    return classifier(_reading(options), options.seed)


def _tagger(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import tagger

    return tagger(_reading(options), options.seed)


def _training(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import one_layer, started, training

    return training(started(one_layer(_reading(options))))


def _generation(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.sequences import generation, one_layer, started

    return generation(started(one_layer(_reading(options))))


def _cell(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.cells import cell

    return cell(_reading(options, cell="lstm"))


def _rnn_to_lstm(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.cells import rnn_to_lstm

    return rnn_to_lstm(_reading(options, cell="lstm"))


def _window(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.window import model_window, small_window

    if options.model is None:
        return small_window(options.text, direct=options.direct, seed=options.seed)
    from unrolled.tasks.folder import load

    return model_window(load(options.model), options.text)


def _topologies(options: DrawOptions) -> Any:
    from unrolled.lab.drawing.topologies import topologies

    return topologies(_reading(options), options.seed)


CELL, CELL_OR_MODEL = frozenset({"cell"}), frozenset({"cell", "model"})
DRAWN: Mapping[str, _Figure] = {
    "folded": _Figure(_folded, CELL_OR_MODEL),
    "step": _Figure(_step, CELL_OR_MODEL),
    "stack": _Figure(_stack, frozenset({"cell", "model", "layers", "both"})),
    "classifier": _Figure(_classifier, CELL),
    "tagger": _Figure(_tagger, CELL),
    "training": _Figure(_training, CELL_OR_MODEL),
    "generation": _Figure(_generation, CELL_OR_MODEL),
    "cell": _Figure(_cell, CELL_OR_MODEL),
    "rnn-to-lstm": _Figure(_rnn_to_lstm, frozenset()),
    "window": _Figure(_window, frozenset({"direct", "model"})),
    "topologies": _Figure(_topologies, CELL),
}
