"""Byte-level byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909; over bytes as in GPT-2).

Every byte has a symbol, so nothing is ever unknown and every text comes back as it was.
The `tokenizers` library does the work. Its reader panics on crafted files, so it reads none: the
file is checked here, and vocabulary and merges are handed over.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain
from reprlib import repr as short
from typing import TYPE_CHECKING, Any

import numpy as np

from unrolled.errors import ConfigError, DataError
from unrolled.text.vocabulary import MAX_SIZE, SPECIALS, Vocabulary, parse_object
from unrolled.text.words import Ids, IdsOfLines, Lengths, in_chunks, lengths_of

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BYTES = 256
MAX_MERGES = 2 * MAX_SIZE
MIN_FREQUENCY = 2  # joining a pair that occurs once saves nothing

# tokenizer.json but for vocabulary and merges, in the form that the library also reads
FRAME: dict[str, Any] = {
    "version": "1.0",
    "truncation": None,
    "padding": None,
    "added_tokens": [],
    "normalizer": None,
    "pre_tokenizer": {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": True,
    },
    "post_processor": None,
    "decoder": {
        "type": "ByteLevel",
        "add_prefix_space": True,
        "trim_offsets": True,
        "use_regex": True,
    },
}
MODEL: dict[str, Any] = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}


class BpeTokeniser:
    """Pieces of words, the commonest the longest; each is written in the 256 byte symbols."""

    def __init__(self, vocab: Mapping[str, int], merges: Sequence[Sequence[str]]) -> None:
        _check_vocab(vocab)
        _check_merges(merges, vocab)
        self.tokens = tuple(sorted(vocab, key=vocab.__getitem__))  # in the order of their ids
        self._merges = [(left, right) for left, right in merges]
        self._native = _native({token: i for i, token in enumerate(self.tokens)}, self._merges)

    @classmethod
    def train(cls, lines: Iterable[str], size: int, *, min_count: int = 1) -> "BpeTokeniser":
        """Learn at most `size` tokens; a pair is joined if it occurs at least `min_count` times."""
        if not BYTES <= size <= MAX_SIZE:
            raise ConfigError(
                f"tokens.max_size is {size}, but with tokens.level = bpe it must be from {BYTES} "
                f"(one token for each byte) to {MAX_SIZE}."
            )
        from tokenizers.trainers import BpeTrainer

        trainer = BpeTrainer(
            vocab_size=size,
            min_frequency=max(min_count, MIN_FREQUENCY),
            initial_alphabet=sorted(byte_symbols()),
            special_tokens=[],
            show_progress=False,
        )
        untrained = _native({}, [])
        with panic_guard():
            untrained.train_from_iterator(map(_checked_text, lines), trainer=trainer)
            model = json.loads(untrained.to_str())["model"]
        return cls(model["vocab"], model["merges"])

    def split(self, text: str) -> list[str]:
        with panic_guard():
            encoded = self._native.encode(_checked_text(text), add_special_tokens=False)
        return list(encoded.tokens)

    def join(self, tokens: Sequence[str]) -> str:
        """The text of the tokens; bytes that form no character give U+FFFD."""
        with panic_guard():
            return str(self._native.decoder.decode(list(tokens)))

    def ids(self, lines: Sequence[str]) -> list[list[int]]:
        """Positions in `tokens` of the tokens of each line."""
        with panic_guard():
            checked = [_checked_text(line) for line in lines]
            batch = self._native.encode_batch_fast(checked, add_special_tokens=False)
        return [line.ids for line in batch]

    def vocabulary(
        self, lines: Sequence[str], *, min_count: int = 1, max_size: int | None = None
    ) -> Vocabulary:
        """All tokens in the order of their ids; what to leave out was settled in training."""
        counts = np.zeros(len(self.tokens), dtype=np.int64)
        for chunk in in_chunks(lines):
            ids = np.fromiter(chain.from_iterable(self.ids(chunk)), np.int64)
            counts += np.bincount(ids, minlength=len(self.tokens))
        special_counts = [0, 0, 0, len(lines)]
        return Vocabulary([*SPECIALS, *self.tokens], [*special_counts, *counts.tolist()])

    def reader(self, vocabulary: Vocabulary) -> IdsOfLines:
        """A function from lines to the vocabulary's ids."""
        if vocabulary.tokens[len(SPECIALS) :] != self.tokens:
            raise ValueError("the vocabulary's tokens are not those of the byte pair encoding")

        def ids_of(lines: Sequence[str]) -> tuple[Ids, Lengths]:
            pieces = self.ids(lines)
            flat = np.fromiter(chain.from_iterable(pieces), np.int32)
            return flat + np.int32(len(SPECIALS)), lengths_of(pieces)

        return ids_of

    def to_json(self) -> str:
        vocab = {token: i for i, token in enumerate(self.tokens)}
        value = {**FRAME, "model": {**MODEL, "vocab": vocab, "merges": self._merges}}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "BpeTokeniser":
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(text, keys={*FRAME, "model"})
        model = value.pop("model")
        _check_same(value, FRAME)
        keys = {*MODEL, "vocab", "merges"}
        if not isinstance(model, dict) or set(model) != keys:
            raise ValueError(f"the model must have the keys {sorted(keys)}, but is {short(model)}")
        vocab, merges = model.pop("vocab"), model.pop("merges")
        _check_same(model, MODEL)
        return cls(vocab, merges)


@contextmanager
def panic_guard() -> Iterator[None]:
    """Turn any failure of native code into ValueError: a Rust panic is no Exception."""
    try:
        yield
    except (ConfigError, DataError):
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ValueError(f"the tokenizers library refused: {str(error)[:200]}") from error
        raise


@cache
def byte_symbols() -> frozenset[str]:
    """The 256 characters that stand for the bytes: printable Latin-1, then from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    return frozenset(map(chr, [*printable, *range(0x100, 0x100 + BYTES - len(printable))]))


def _native(vocab: dict[str, int], merges: list[tuple[str, str]]) -> "Tokenizer":
    from tokenizers import Tokenizer, decoders, pre_tokenizers
    from tokenizers.models import BPE

    with panic_guard():
        tokenizer = Tokenizer(BPE(vocab=vocab, merges=merges))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
        tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _checked_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            "<text>",
            f"the character U+{ord(text[error.start]):04X} is half of a surrogate pair, which no "
            "file can hold; remove it.",
            column=error.start + 1,
        ) from error
    return text


def _check_same(seen: dict[str, Any], expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if json.dumps(seen[key], sort_keys=True) != json.dumps(value, sort_keys=True):
            raise ValueError(f"{key} must be {value}, but is {short(seen[key])}")


def _check_vocab(vocab: Mapping[str, int]) -> None:
    if not isinstance(vocab, dict) or not BYTES <= len(vocab) <= MAX_SIZE:
        seen = len(vocab) if isinstance(vocab, dict) else type(vocab).__name__
        raise ValueError(f"the vocabulary must have {BYTES} to {MAX_SIZE} tokens, but is {seen}")
    if any(type(i) is not int for i in vocab.values()) or set(vocab.values()) != set(
        range(len(vocab))
    ):
        raise ValueError(f"the vocabulary's ids must be 0 to {len(vocab) - 1}, each once")
    missing = byte_symbols() - vocab.keys()
    if missing:
        raise ValueError(f"the vocabulary lacks the byte symbol {min(missing)!r}")
    for token in vocab:
        if not token or not byte_symbols().issuperset(token):
            raise ValueError(f"the token {short(token)} is not written in byte symbols")


def _check_merges(merges: Sequence[Sequence[str]], vocab: Mapping[str, int]) -> None:
    if not isinstance(merges, list) or len(merges) > MAX_MERGES:
        raise ValueError(f"the merges must be a list of at most {MAX_MERGES} pairs")
    for pair in merges:
        if not isinstance(pair, list) or [type(part) for part in pair] != [str, str]:
            raise ValueError(f"a merge must be a pair of strings, but is {short(pair)}")
        if any(part not in vocab for part in (*pair, "".join(pair))):
            raise ValueError(f"the merge {short(pair)} uses or makes a token that is not known")
    if len(set(map(tuple, merges))) != len(merges):
        raise ValueError("a merge appears twice")
