"""What the parts of an encoder and decoder bring: tables to stdout, figures to docs/.

    python benchmarks/translation_studies.py [STUDY ...]

STUDY: extensions, reversal, attention, alignment, interpretation; without any, all. Made pairs,
small models, one thread; every figure is a function of the seeds, which the tables name.
"""

import argparse
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from unrolled import charts
from unrolled.lab.alignment import alignments, diagonals
from unrolled.lab.interpretation import delayed_copy
from unrolled.lab.translation import (
    attention_models,
    extensions,
    gradient_shortcut,
    length_curves,
    source_reversal,
)

DOCS = Path(__file__).parents[1] / "docs"
SEEDS = (1, 2, 3)
LENGTHS = (
    4,
    6,
    8,
    10,
    12,
    14,
    16,
    18,
    20,
    22,
    24,
    26,
    28,
)  # of 2 there are too few to draw any that are new
PLACES = 20  # of the source whose gradients are drawn
GROWING = (5, 10, 20, 40)


def row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def header(*names: str) -> None:
    row(*names)
    row(*["---"] * len(names))


def spread(values: Iterable[float], digits: int = 3) -> str:
    """The mean, and in brackets the lowest and the highest."""
    known = [*values]
    low, mean, high = min(known), float(np.mean(known)), max(known)
    return f"{mean:.{digits}f} ({low:.{digits}f}–{high:.{digits}f})"


def show_extensions() -> None:
    header("model", "parameters", "exact match", "token accuracy", "nats per token")
    for name, outcomes in extensions(seeds=SEEDS).items():
        exact, accuracy, nats, parameters, updates = zip(*outcomes, strict=True)
        row(name, parameters[0], spread(exact), spread(accuracy), spread(nats))
    print(f"\n{updates} updates with seeds {SEEDS}.")


def show_reversal() -> None:
    seeds = (1, 2, 3, 4, 5)
    header("source", *[f"seed {seed}" for seed in seeds], "mean")
    for name, updates in source_reversal(seeds=seeds).items():
        known = [number for number in updates if number is not None]
        row(name, *updates, f"{np.mean(known):.0f}")


def show_attention() -> None:
    curves: dict[str, list[Sequence[float]]] = {}
    norms: dict[str, list[Sequence[float]]] = {}
    first: dict[tuple[str, int], list[float]] = {}
    for seed in SEEDS:
        stages = {"at first": attention_models(epochs=None, seed=seed)}
        stages["trained"] = attention_models(seed=seed)
        for name, values in length_curves(stages["trained"], LENGTHS).items():
            curves.setdefault(name, []).append(values)
        for stage, models in stages.items():
            for length in GROWING:
                for name, each in gradient_shortcut(models, length).items():
                    first.setdefault((f"{name}, {stage}", length), []).append(each[0])
                    if length == PLACES:
                        norms.setdefault(f"{name}, {stage}", []).append(each.tolist())
    _show_lengths(curves)
    _show_gradients(norms, first)


def _show_lengths(curves: dict[str, list[Sequence[float]]]) -> None:
    header("length of the source", *curves)
    for place, length in enumerate(LENGTHS):
        row(length, *[spread([run[place] for run in runs]) for runs in curves.values()])
    chart = charts.length_curve(
        LENGTHS,
        {name: np.mean(runs, axis=0).tolist() for name, runs in curves.items()},
        intervals={
            name: list(zip(np.min(runs, axis=0), np.max(runs, axis=0), strict=True))
            for name, runs in curves.items()
        },
        y_title="token accuracy",
        title=f"Reversal, trained on 2 to 24 symbols: mean and range of {len(SEEDS)} seeds",
    )
    charts.save(chart, DOCS / "attention-length.png")


def _show_gradients(
    norms: dict[str, list[Sequence[float]]], first: dict[tuple[str, int], list[float]]
) -> None:
    print()
    header("‖∂L/∂h₁‖, length of the source", *map(str, GROWING))
    for name in norms:
        row(name, *[f"{np.exp(np.mean(np.log(first[name, length]))):.1e}" for length in GROWING])
    print()
    header(f"‖∂L/∂hᵢ‖, {PLACES} places", "first", "last", "first / last")
    means = {name: np.exp(np.mean(np.log(runs), axis=0)) for name, runs in norms.items()}
    for name, values in means.items():
        row(name, f"{values[0]:.1e}", f"{values[-1]:.1e}", f"{values[0] / values[-1]:.1e}")
    chart = charts.gradient_curve(
        range(1, PLACES + 1),
        {name: values.tolist() for name, values in means.items()},
        title="The last target token's gradient at each source state (reversal)",
    )
    charts.save(chart, DOCS / "attention-gradient.png")


def show_alignment() -> None:
    header("task", *[f"seed {seed}" for seed in SEEDS])
    for kind, shares in diagonals(seeds=SEEDS).items():
        row(kind, *[f"{share:.3f}" for share in shares])
    print()
    runs = [alignments(seed=seed) for seed in SEEDS]
    kinds = list(runs[0]["attention"].recall)
    header("links", "error rate", *[f"recall {kind}" for kind in kinds])
    for name in runs[0]:
        recalls = [spread([run[name].recall[kind] for run in runs]) for kind in kinds]
        row(name, spread([run[name].error_rate for run in runs]), *recalls)


def show_interpretation() -> None:
    runs = [delayed_copy(seed=seed) for seed in SEEDS]
    header("delay", *map(str, runs[0]))
    row("words said right", *[spread([run[delay] for run in runs]) for delay in runs[0]])


STUDIES: dict[str, Callable[[], None]] = {
    "extensions": show_extensions,
    "reversal": show_reversal,
    "attention": show_attention,
    "alignment": show_alignment,
    "interpretation": show_interpretation,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(STUDIES))
    asked = parser.parse_args().studies or list(STUDIES)
    torch.set_num_threads(1)
    for name in asked:
        if name not in STUDIES:
            parser.error(f"there is no study {name!r}; there are {', '.join(STUDIES)}")
        begin = time.perf_counter()
        print(f"\n## {name}\n")
        STUDIES[name]()
        print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
