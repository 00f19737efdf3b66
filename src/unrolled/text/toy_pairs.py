"""Made pairs of source and target, for tests and studies of encoder-decoder models.

copy         a b c -> a b c
reverse      a b c -> c b a
dictionary   a b c -> x y z, each symbol by the same random dictionary: a translation word for word
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from unrolled.errors import ConfigError, not_one_of

Ids = NDArray[np.int64]

# What becomes of the source (T,), given the dictionary (V,).
KINDS: dict[str, Callable[[Ids, Ids], Ids]] = {
    "copy": lambda source, dictionary: source,
    "reverse": lambda source, dictionary: source[::-1],
    "dictionary": lambda source, dictionary: dictionary[source],
}


def toy_pairs(
    kind: str, count: int, *, symbols: int, lengths: tuple[int, int], seed: int
) -> list[tuple[str, str]]:
    """Pairs of words parted by spaces; lengths are uniform from the first to the last given.

    Source symbols are s0, s1, …; a dictionary's targets are t0, t1, …, in an order that depends on
    the seed's first draw alone: the same seed with another count has the same dictionary.
    """
    if kind not in KINDS:
        raise not_one_of("kind", kind, KINDS)
    _check(count, symbols, lengths)
    random = np.random.default_rng(seed)
    dictionary = random.permutation(symbols)  # (V,)
    letter = "t" if kind == "dictionary" else "s"
    sizes = random.integers(lengths[0], lengths[1], size=count, endpoint=True)
    sources = np.split(random.integers(symbols, size=int(sizes.sum())), np.cumsum(sizes)[:-1])
    made = sources if count else []
    return [(_text("s", ids), _text(letter, KINDS[kind](ids, dictionary))) for ids in made]


def _text(letter: str, ids: Ids) -> str:
    return " ".join(f"{letter}{id}" for id in ids.tolist())


def _check(count: int, symbols: int, lengths: tuple[int, int]) -> None:
    if count < 0:
        raise ConfigError(f"count is {count}, but must be 0 or more.")
    if symbols < 1:
        raise ConfigError(f"symbols is {symbols}, but must be 1 or more.")
    if not 0 <= lengths[0] <= lengths[1]:
        raise ConfigError(
            f"lengths is {lengths}, but must be the shortest and the longest, neither below 0."
        )
