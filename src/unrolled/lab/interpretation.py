"""Simultaneous interpretation: one word out for each word in, some words late.

A network that reads forward and speaks at every step can repeat what it heard `delay` words ago for
as long as its state holds it. It cannot say what it has not heard: with a delay of −1 it is at
chance.
"""

from collections.abc import Sequence

import numpy as np

from unrolled.tasks.tag.estimator import Tagger

WAIT = "-"  # said while there is nothing to say yet, and after the last word


def delayed(words: Sequence[str], delay: int) -> list[str]:
    """What is said at each word."""
    places = range(-delay, len(words) - delay)
    return [words[place] if 0 <= place < len(words) else WAIT for place in places]


def delayed_copy(
    delays: Sequence[int] = (-1, 0, 1, 2, 4),
    *,
    symbols: int = 8,
    length: int = 20,
    sentences: int = 400,
    epochs: int = 15,
    seed: int = 1,
) -> dict[int, float]:
    """The share of words said right at each delay, waiting left out, on sentences never seen."""
    random = np.random.default_rng(seed)
    drawn = random.integers(symbols, size=(sentences, length)).tolist()
    heard = [[chr(ord("a") + symbol) for symbol in row] for row in drawn]
    held_out = sentences // 4
    found = {}
    for delay in delays:
        tagger = Tagger(
            characters="none",
            word_dropout=0.0,
            bidirectional=False,
            cell="gru",
            hidden_size=64,
            embedding_size=16,
            dropout=0.0,
            decoder="softmax",
            scheme="none",
            learning_rate=0.01,
            epochs=epochs,
            seed=seed,
        )
        said = [delayed(words, delay) for words in heard]
        tagger.fit(heard[held_out:], said[held_out:])
        predicted = np.array(tagger.predict(heard[:held_out]))
        wanted = np.array(said[:held_out])
        found[delay] = float((predicted == wanted)[wanted != WAIT].mean())
    return found
