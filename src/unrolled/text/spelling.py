"""A made language to spell out: letters in, sounds out, by rules and with exceptions.

A word is a root of one to three syllables with an ending; letters and sounds are parted by spaces,
as in a pronouncing dictionary. Sounds follow from letters and their neighbours:

    s h, c h, t h, n g      one sound each
    c, g                    soft before e, i and y, else hard
    a, e, i, o, u           long before a consonant and a last silent e, else short
    the same letter twice   one sound; e e and o o are long vowels of their own
    y                       a vowel at the end, else a consonant

A share of the roots is an exception: one of their sounds is another, in every word made of them, so
that a model can learn it from some words and know it in others.
"""

import numpy as np

from unrolled.errors import ConfigError

VOWELS, CONSONANTS = "aeiou", "bcdfghklmnprstvz"
BEGINS = (*CONSONANTS, "sh", "ch", "th", "bl", "br", "cl", "cr", "fl", "gr", "pr", "st", "tr")
ENDS = ("", *CONSONANTS.replace("h", ""), "sh", "ch", "th", "ng", "st", "nd", "ll", "ss", "tt")
MIDDLES = (*VOWELS, "ee", "oo")
SUFFIXES = ("", "", "s", "er", "ing", "y", "en")
TOGETHER = {"sh": "SH", "ch": "CH", "th": "TH", "ng": "NG", "ee": "IY", "oo": "UW"}
SHORT = {"a": "AE", "e": "EH", "i": "IH", "o": "AA", "u": "AH"}
LONG = {"a": "EY", "e": "IY", "i": "AY", "o": "OW", "u": "YU"}
WORDS_A_ROOT = 4  # about


def pronounced(word: str) -> list[str]:
    """The sounds of a word that follows the rules."""
    sounds, place = [], 0
    while place < len(word):
        letter, rest = word[place], word[place:]
        if rest[:2] in TOGETHER:
            sounds.append(TOGETHER[rest[:2]])
            place += 2
            continue
        if not (place and letter == word[place - 1]) and not (rest == "e" and len(word) > 2):
            sounds.append(_sound(letter, rest))
        place += 1
    return sounds


def _sound(letter: str, rest: str) -> str:
    if letter in VOWELS:
        long = len(rest) == 3 and rest[2] == "e" and rest[1] in CONSONANTS
        return (LONG if long else SHORT)[letter]
    soft = rest[1:2] in ("e", "i", "y")
    if letter == "c":
        return "S" if soft else "K"
    if letter == "g":
        return "JH" if soft else "G"
    if letter == "y":
        return "IY" if rest == "y" else "Y"
    return letter.upper()


def spelling_pairs(count: int, *, seed: int, exceptions: float = 0.1) -> list[tuple[str, str]]:
    """Different words and their sounds; `exceptions` is the share of roots that break the rules."""
    if count < 0:
        raise ConfigError(f"count is {count}, but must be 0 or more.")
    if not 0.0 <= exceptions <= 1.0:
        raise ConfigError(f"exceptions is {exceptions}, but must be in 0..1.")
    chance = np.random.default_rng(seed)
    pairs: dict[str, str] = {}
    while len(pairs) < count:
        root = _root(chance)
        odd = chance.random() < exceptions
        place, other = chance.integers(1 << 30), str(chance.choice(sorted(LONG.values())))
        for suffix in chance.choice(SUFFIXES, size=WORDS_A_ROOT):
            word = root + suffix
            if " ".join(word) not in pairs:
                sounds = pronounced(word)
                if odd:
                    sounds[place % len(pronounced(root))] = other
                pairs[" ".join(word)] = " ".join(sounds)
    return list(pairs.items())[:count]


def _root(chance: np.random.Generator) -> str:
    parts = []
    for _ in range(chance.integers(1, 4)):
        parts += [chance.choice(BEGINS), chance.choice(MIDDLES), chance.choice(ENDS)]
    silent = len(parts[-1]) == len(parts[-2]) == 1
    return "".join(parts) + ("e" if silent and chance.random() < 0.3 else "")
