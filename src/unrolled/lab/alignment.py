"""What attention looks at, beside what there is to see.

On a copied or reversed text the gold alignment is one of the diagonals. `fertile_pairs` makes texts
with every kind of link, and knows them:

one-one     s0 -> t0             one-many   f0 -> t0a t0b      (a fertile word)
many-one    m0 n0 -> c0          none       z0 -> nothing      (a spurious word)
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unrolled.lab.translation import PLAIN, Toy, trained
from unrolled.tasks.translate.model import TranslateModel

UNITS = {  # the words of each side; a number is put behind the letter
    "one-one": (["s{}"], ["t{}"]),
    "one-many": (["f{}"], ["t{}a", "t{}b"]),
    "many-one": (["m{}", "n{}"], ["c{}"]),
    "none": (["z{}"], []),
}
Link = tuple[int, int]  # place in the target, place in the source
LOOKING: Mapping[str, Any] = {
    **PLAIN,
    "model.bidirectional": True,
    "model.attention": "general",
    "train.batch_tokens": 384,
}


class Aligned(NamedTuple):
    """A pair and its links, by their kind."""

    source: str
    target: str
    links: dict[str, set[Link]]


class Found(NamedTuple):
    """How well links agree with the gold ones."""

    error_rate: float
    recall: dict[str, float]  # of the links of each kind


def alignment_error_rate(
    sure: Collection[Hashable], possible: Collection[Hashable], found: Collection[Hashable]
) -> float:
    """AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|), A found, S sure, P possible or sure.

    Och & Ney 2003, "A Systematic Comparison of Various Statistical Alignment Models", eq. 20. It is
    0 where all sure links are found and none beyond the possible ones.
    """
    found, sure = set(found), set(sure)
    possible = sure | set(possible)
    if not found and not sure:
        return 0.0
    return 1.0 - (len(found & sure) + len(found & possible)) / (len(found) + len(sure))


def fertile_pairs(count: int, *, symbols: int, units: tuple[int, int], seed: int) -> list[Aligned]:
    """Texts of units of all four kinds, `symbols` of each kind, from the fewest to the most."""
    random = np.random.default_rng(seed)
    kinds = list(UNITS)
    made: list[Aligned] = []
    while len(made) < count:
        size = int(random.integers(*units, endpoint=True))
        drawn = random.integers([len(kinds), symbols], size=(size, 2)).tolist()
        pair = _joined([(kinds[kind], number) for kind, number in drawn])
        if pair.target:
            made.append(pair)
    return made


def _joined(units: Iterable[tuple[str, int]]) -> Aligned:
    source: list[str] = []
    target: list[str] = []
    links: dict[str, set[Link]] = {kind: set() for kind in UNITS}
    for kind, number in units:
        read, written = UNITS[kind]
        links[kind] |= {
            (len(target) + t, len(source) + s)
            for t in range(len(written))
            for s in range(len(read))
        }
        source += [word.format(number) for word in read]
        target += [word.format(number) for word in written]
    return Aligned(" ".join(source), " ".join(target), links)


def word_weights(model: TranslateModel, source: str, target: str) -> NDArray[np.float64]:
    """What each target word looked at, (T, S), the line ends left out."""
    weights = model.attention(source, target).weights
    assert weights is not None
    return weights[:-1, :-1]


def diagonal_share(model: TranslateModel, lines: Sequence[tuple[str, str]], kind: str) -> float:
    """The share of target words that look most at their own source word."""
    looked = [word_weights(model, *line).argmax(axis=1) for line in lines]
    own = [np.arange(len(places)) for places in looked]
    own = [places[::-1] for places in own] if kind == "reverse" else own
    return float((np.concatenate(looked) == np.concatenate(own)).mean())


def diagonals(
    *, pairs: int = 1700, epochs: int = 12, seeds: Sequence[int] = (1, 2, 3)
) -> dict[str, list[float]]:
    """That share for copies and reversals that were not trained on, a value a seed."""
    return {
        kind: [_diagonal(kind, pairs, epochs, seed) for seed in seeds]
        for kind in ("copy", "reverse")
    }


def _diagonal(kind: str, pairs: int, epochs: int, seed: int) -> float:
    toy = Toy(kind, symbols=12, lengths=(3, 10), pairs=pairs, held_out=100)
    lines, changes = toy.made(seed), {**LOOKING, "train.epochs": epochs}
    model = trained(lines, changes, held_out=toy.held_out, seed=seed).model
    return diagonal_share(model, lines[: toy.held_out], kind)


def alignments(
    *, threshold: float = 0.3, pairs: int = 2000, epochs: int = 15, seed: int = 1
) -> dict[str, Found]:
    """Links of attention from a threshold on, and of a straight line, against the gold ones."""
    made = fertile_pairs(pairs, symbols=4, units=(2, 6), seed=seed)
    made = list({pair.source: pair for pair in made}.values())
    lines, held_out = [(pair.source, pair.target) for pair in made], 100
    changes = {**LOOKING, "train.epochs": epochs}
    model = trained(lines, changes, held_out=held_out, seed=seed).model
    gold = made[:held_out]
    weights = [word_weights(model, pair.source, pair.target) for pair in gold]
    attention = [set(_links(table >= threshold)) for table in weights]
    straight = [set(_links(_straight(*table.shape))) for table in weights]
    return {"attention": compared(gold, attention), "straight line": compared(gold, straight)}


def compared(gold: Sequence[Aligned], found: Sequence[set[Link]]) -> Found:
    """The error rate over all pairs, every gold link being sure."""
    by_kind = {
        kind: {(n, *link) for n, pair in enumerate(gold) for link in pair.links[kind]}
        for kind in UNITS
        if kind != "none"
    }
    there = {(n, *link) for n, links in enumerate(found) for link in links}
    sure = set().union(*by_kind.values())
    recall = {kind: len(own & there) / max(1, len(own)) for kind, own in by_kind.items()}
    return Found(alignment_error_rate(sure, sure, there), recall)


def _links(chosen: NDArray[np.bool_]) -> list[Link]:
    return [(int(t), int(s)) for t, s in np.argwhere(chosen)]


def _straight(T: int, S: int) -> NDArray[np.bool_]:
    """Each target place linked to the source place as far along: (T, S)."""
    places = np.floor((np.arange(T) + 0.5) * S / T).astype(np.int64)
    chosen: NDArray[np.bool_] = np.arange(S) == places[:, None]
    return chosen
