"""Ways to keep some of the training data for development: the end of a text, or a draw."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

Item = TypeVar("Item")


def kept_from(count: int, share: float) -> int:
    """How many of `count` items stay when the last share of them is cut off; neither part is empty
    where there are two.
    """
    return min(count - 1, max(1, round(count * (1.0 - share))))


def cut_last(items: Sequence[Item], share: float) -> tuple[Sequence[Item], Sequence[Item]]:
    """All but the last share, and the last share; at least two items."""
    kept = kept_from(len(items), share)
    return items[:kept], items[kept:]


def draw_stratified(labels: Sequence[Hashable], share: float, seed: int) -> list[int]:
    """Which items to keep back, in order: a share, the same of each label, never a label's last.

    Files are often sorted by label, so the last items would not do.
    """
    drawn: dict[Hashable, list[int]] = defaultdict(list)
    for number in np.random.default_rng(seed).permutation(len(labels)).tolist():
        drawn[labels[number]].append(number)
    places = {  # of each but the first of its label, how far back it stands among its like
        number: (rank + 0.5) / len(group)
        for group in drawn.values()
        for rank, number in enumerate(group)
        if rank > 0
    }
    count = max(1, round(len(labels) * share))
    return sorted(sorted(places, key=lambda number: -places[number])[:count])


def draw_groups(groups: Sequence[str], share: float, seed: int) -> set[str]:
    """Which groups to keep back, whole: a share of the different ones; empty if none can be."""
    names = sorted(set(groups))
    count = round(len(names) * share) or 1
    if count >= len(names):
        return set()
    drawn = np.random.default_rng(seed).permutation(len(names))[:count]
    return {names[number] for number in drawn.tolist()}
