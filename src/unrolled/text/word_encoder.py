"""Words with their characters as ids: what taggers, and classifiers that see characters, read.

word ── zero_digits ──▶ form ── lowercase ──▶ word id        the form's characters ──▶ character ids

A word is looked up in lower case if `lowercase` says so; its characters keep their case, so nothing
is lost. A text's distinct forms are listed once, whatever the number of their occurrences.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np

from unrolled.text.vocabulary import SPECIALS, UNK, Vocabulary
from unrolled.text.words import Ids, Lengths, lengths_of

Words = Sequence[str]

WORDS_FILE, CHARACTERS_FILE = "vocab.json", "characters.json"
DIGIT = re.compile(r"\d")
CHARACTER_MIN_COUNT = 2  # a character seen once is unknown, so that the unknown one is learned
MAX_CHARACTERS = 64  # of a form; a longer one keeps its two ends


@dataclass(frozen=True, eq=False)
class EncodedWords:
    """Sentences as ids, one after the other, and their distinct forms as characters."""

    words: Ids  # (N,)
    forms: Ids  # (N,) which form each word has, in 0..U-1
    ends: Lengths  # (sentences,) where in words each sentence ends, exclusive
    characters: Ids  # (M,) of all forms
    form_ends: Lengths  # (U,) where in characters each form ends, exclusive

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Lengths:
        """How many words each sentence has: (sentences,)."""
        return np.diff(self.ends, prepend=0)

    @property
    def form_lengths(self) -> Lengths:
        """How many characters each form has: (U,)."""
        return np.diff(self.form_ends, prepend=0)

    @property
    def unknown(self) -> int:
        """How many words are UNK."""
        return int(np.count_nonzero(self.words == UNK))


class WordEncoder:
    """A vocabulary of words and one of characters."""

    def __init__(
        self,
        words: Vocabulary,
        characters: Vocabulary,
        *,
        lowercase: bool = False,
        zero_digits: bool = False,
    ) -> None:
        self.words, self.characters = words, characters
        self.lowercase, self.zero_digits = lowercase, zero_digits

    @classmethod
    def build(
        cls,
        sentences: Iterable[Words],
        *,
        lowercase: bool = False,
        zero_digits: bool = False,
        min_count: int = 1,
        max_size: int | None = None,
        more: Iterable[str] = (),
    ) -> "WordEncoder":
        """The words and characters of a text.

        `more` words are known too, with a count of 0, if they are as the settings would read them.
        """
        words: Counter[str] = Counter()
        characters: Counter[str] = Counter()
        for token, count in Counter(chain.from_iterable(sentences)).items():
            form = _form(token, zero_digits)
            words[_word(form, lowercase)] += count
            for character in form:
                characters[character] += count
        known = Vocabulary.build(words, min_count=min_count, max_size=max_size)
        as_read = (word for word in more if _word(_form(word, zero_digits), lowercase) == word)
        return cls(
            _with(known, as_read),
            Vocabulary.build(characters, min_count=CHARACTER_MIN_COUNT),
            lowercase=lowercase,
            zero_digits=zero_digits,
        )

    def form(self, token: str) -> str:
        """What the characters are read from."""
        return _form(token, self.zero_digits)

    def word(self, form: str) -> str:
        """What the vocabulary of words is asked for."""
        return _word(form, self.lowercase)

    def knows(self, token: str) -> bool:
        """Whether a token's word is in the vocabulary."""
        return self.word(self.form(token)) in self.words

    def encode(self, sentences: Sequence[Words]) -> EncodedWords:
        """The ids of sentences, each of one word or more, or of none."""
        places: dict[str, int] = {}
        forms = np.fromiter(
            (places.setdefault(token, len(places)) for token in chain.from_iterable(sentences)),
            np.int32,
        )
        distinct = [self.form(token) for token in places]
        word_ids = self.words.encode(map(self.word, distinct))  # (U,)
        shown = [_shortened(form) for form in distinct]
        return EncodedWords(
            words=word_ids[forms],
            forms=forms,
            ends=np.cumsum(lengths_of(sentences)),
            characters=self.characters.encode(chain.from_iterable(shown)),
            form_ends=np.cumsum(lengths_of(shown)),
        )

    def files(self) -> dict[str, bytes]:
        """What `from_files` needs, by file name."""
        return {
            WORDS_FILE: self.words.to_json().encode(),
            CHARACTERS_FILE: self.characters.to_json().encode(),
        }

    @classmethod
    def from_files(
        cls, files: Mapping[str, bytes], *, lowercase: bool, zero_digits: bool
    ) -> "WordEncoder":
        """What `files` gave; ValueError with the file and the reason if anything is wrong."""
        words = _vocabulary(files, WORDS_FILE)
        characters = _vocabulary(files, CHARACTERS_FILE)
        return cls(words, characters, lowercase=lowercase, zero_digits=zero_digits)


def _form(token: str, zero_digits: bool) -> str:
    return DIGIT.sub("0", token) if zero_digits else token


def _word(form: str, lowercase: bool) -> str:
    return form.lower() if lowercase else form


def _with(vocabulary: Vocabulary, more: Iterable[str]) -> Vocabulary:
    """The vocabulary and these words, which did not occur."""
    new = [word for word in dict.fromkeys(more) if word not in vocabulary and word not in SPECIALS]
    if not new:
        return vocabulary
    return Vocabulary([*vocabulary.tokens, *new], [*vocabulary.counts, *repeat(0, len(new))])


def _shortened(form: str) -> Sequence[str]:
    """A form's characters: at least one, the unknown one if need be, and not too many."""
    half = MAX_CHARACTERS // 2
    if len(form) > MAX_CHARACTERS:
        return form[:half] + form[-half:]
    return form or [SPECIALS[UNK]]


def _vocabulary(files: Mapping[str, bytes], name: str) -> Vocabulary:
    if name not in files:
        raise ValueError(f"{name} is missing")
    try:
        return Vocabulary.from_json(files[name].decode())
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
