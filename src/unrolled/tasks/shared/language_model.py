"""Language models as a user meets them: text in, scores, suggestions and text out.

Each room has its own network under the same face; see next_token.py for what is asked of it.
"""

import math
from abc import ABC
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.decode.sample import Sampling, sample
from unrolled.errors import ConfigError, whole
from unrolled.tasks.shared.finite import numbers
from unrolled.tasks.shared.language_answers import (
    LineScore,
    Suggestion,
    Written,
    answer_lines,
    no_chance,
)
from unrolled.tasks.shared.language_uses import GenerateOptions, NextOptions, PromptInput
from unrolled.tasks.shared.mixture import MixedNetwork
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.next_token import STEPS_AT_ONCE, NextToken, State
from unrolled.tasks.shared.ngram_beside import NgramBeside
from unrolled.tasks.shared.texts import one_text, text_list
from unrolled.tasks.task import Blocks, TextInput
from unrolled.text.batch import StreamBatches
from unrolled.text.tokens import END, PAD, START, UNK, EncodedLines, TextEncoder

MAX_GENERATED = 10_000_000  # tokens that one call may ask for, over all its texts
CONTROL = (PAD, UNK, START)  # never suggested, never written
ROWS_AT_ONCE = 512  # texts written side by side


@dataclass(frozen=True)
class LanguageModel(NetworkModel, ABC):
    """A trained language model: scores, ranks, suggests and writes text."""

    network_type: ClassVar[type[NextToken]]

    settings: Any  # LanguageRun, WindowRun or NgramRun
    encoder: TextEncoder
    network: NextToken
    beside: NgramBeside | None = None  # what it must beat, and can be mixed with

    @classmethod
    def create(cls, settings: Any, encoder: TextEncoder) -> Self:
        """A model with fresh weights, drawn from torch's generator."""
        network = cls.network_type(settings.model, len(encoder.vocabulary))
        return cls(settings, encoder, network)

    @classmethod
    def restore(cls, settings: Any, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        tokens = settings.tokens
        encoder = TextEncoder.from_files(
            files, level=tokens.level, splitter=tokens.splitter, lowercase=tokens.lowercase
        )
        size = len(encoder.vocabulary)
        network = cls.network_type.from_settings(settings.model, size, files)
        beside = NgramBeside.from_files(files, vocabulary_size=size)
        return cls(settings, encoder, network, beside)

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The network, and the n-gram model beside it."""
        return [("", self.network), *([("beside.", self.beside)] if self.beside else [])]

    def mixed(self) -> Self:
        """This model and its n-gram model as one, weighed on the development text."""
        if self.beside is None:
            raise ConfigError(
                "there is no n-gram model beside this one to mix it with: it was trained without "
                "baselines, by an older version, or is one itself. Leave --mix out."
            )
        network = MixedNetwork(self.network, self.beside.network, float(self.beside.weight))
        return replace(self, network=network)

    def _asked(self, options: Any) -> Self:
        return self.mixed() if options.mix else self

    def files(self) -> dict[str, bytes]:
        """The vocabulary and, where there are any, the tokeniser and the network's own."""
        beside = self.beside.files() if self.beside else {}
        return {**self.encoder.files(), **self.network.files(), **beside}

    def about(self) -> dict[str, float]:
        """How large the network is, and how many tokens there are."""
        return {**self.network.about(), "vocabulary": len(self.encoder.vocabulary)}

    def caution(self, use: str) -> str:
        """What a reader of its scores must know, if anything."""
        return self.network.caution if use == "score" else ""

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {
            "score": lambda blocks, options, source: answer_lines(
                self._asked(options).scored(blocks), rank=options.rank, source=source
            ),
            "generate": lambda blocks, options, source: self._asked(options)._written(
                blocks, options, source
            ),
            "next": lambda blocks, options, source: self._asked(options)._suggested(
                blocks, options, source
            ),
        }

    def stream_nats(self, encoded: EncodedLines) -> NDArray[np.float64]:
        """Surprise at every token (N,) of a text read in one go: the state crosses line ends."""
        return torch.cat(list(self._stream(encoded, columns=1))).double().numpy()

    def stream_total(self, encoded: EncodedLines, *, columns: int) -> float:
        """Surprise at a whole text that is cut into columns, which are read side by side."""
        return sum(float(nats.double().sum()) for nats in self._stream(encoded, columns=columns))

    def _stream(self, encoded: EncodedLines, *, columns: int) -> Iterator[Tensor]:
        first, carry = self.network.first, None
        data = StreamBatches(encoded, columns=columns, steps=STEPS_AT_ONCE, first=first)
        for batch in data.in_order():
            nats, carry = self.network.token_nats(batch, carry)
            yield numbers(nats, of="a text")

    def line_nats(self, encoded: EncodedLines, *, backward: bool = False) -> NDArray[np.float64]:
        """Surprise at every line (lines,), each read by itself."""
        nats = self.network.nats_in_lines(encoded, backward=backward)
        return np.asarray(np.add.reduceat(nats, encoded.starts))

    @overload
    def score(self, texts: str) -> LineScore: ...  # type: ignore[overload-overlap]  # a string is strings, too

    @overload
    def score(self, texts: Iterable[str]) -> list[LineScore]: ...

    def score(self, texts: str | Iterable[str]) -> LineScore | list[LineScore]:
        """Log-probability of a text, or of each of several, from its first token to its end."""
        found = self._scores(text_list(texts))
        return found[0] if isinstance(texts, str) else found

    def _scores(self, texts: Sequence[str]) -> list[LineScore]:
        if not texts:
            return []
        encoded = self.encoder.encode_lines(texts)
        unknown = np.add.reduceat(encoded.ids == UNK, encoded.starts)
        columns = (-self.line_nats(encoded), encoded.lengths, unknown)
        return list(map(LineScore, texts, *(column.tolist() for column in columns)))

    def scored(self, blocks: Iterable[Sequence[TextInput]]) -> Iterator[tuple[LineScore, str]]:
        """The score of each text, and why it is impossible, if it is."""
        for block in blocks:
            for line in self.score([given.text for given in block]):
                impossible = line.log_probability == -math.inf
                yield line, self.why_impossible(line.text) if impossible else ""

    def why_impossible(self, text: str) -> str:
        """What is to be said of a line that has no chance at all."""
        encoded = self.encoder.encode_lines([text])
        return no_chance(self.encoder, encoded, self.network.nats_in_lines(encoded), [text])[1]

    def _suggested(
        self, blocks: Blocks, options: NextOptions, source: Path | str
    ) -> Iterator[Suggestion]:
        for block in blocks:
            for given in block:
                yield from self.next(given.text, top=options.top)

    def _written(
        self, blocks: Blocks, options: GenerateOptions, source: Path | str
    ) -> Iterator[Written]:
        for block in blocks:
            for given in block:
                yield from self._continuations(given, options)

    def _continuations(self, given: PromptInput, options: GenerateOptions) -> Iterator[Written]:
        unknown = self.encoder.encode_lines(given.prompt.split("\n")).unknown
        remark = f"Tokens of the prompt that the model does not know: {unknown}"
        texts = self.generate(given.prompt, **options.model_dump(exclude={"mix"}))
        for number, text in enumerate(texts):
            yield Written(text, number, (remark,) if unknown and not number else ())

    def surprise(self, text: str) -> tuple[list[str], list[float]]:
        """Each token of a text, line ends among them, and the nats it costs."""
        encoded = self.encoder.encode_lines(one_text(text).split("\n"))
        in_lines = self.settings.model.context == "line"
        nats = self.network.nats_in_lines(encoded) if in_lines else self.stream_nats(encoded)
        return self.encoder.vocabulary.decode(encoded.ids), nats.tolist()

    def next(self, text: str, *, top: int = 10) -> list[Suggestion]:
        """The likeliest tokens after a text, best first; control tokens are left out."""
        if whole("top", top) < 1:
            raise ConfigError(f"top is {top}, but must be at least 1.")
        log_p = self.network.next_log_p(self._tokens(one_text(text)))  # (1, V)
        log_p = numbers(log_p, of="what follows a text")
        log_p = Sampling(banned=CONTROL).filtered(log_p)
        best, tokens = log_p[0].topk(min(top, log_p.size(1) - len(CONTROL)))
        names = self.encoder.vocabulary.decode(tokens.numpy())
        return [Suggestion(name, p) for name, p in zip(names, best.exp().tolist(), strict=True)]

    def generate(
        self,
        prompt: str = "",
        *,
        tokens: int = 200,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        count: int = 1,
        seed: int | None = None,
    ) -> list[str]:
        """Texts that continue the prompt, each of at most `tokens` further tokens.

        A model of lines stops where it draws the end of the line; a model of a stream writes on.
        """
        _check_amount(tokens, count)
        sampling = Sampling(temperature=temperature, top_k=top_k, top_p=top_p, banned=CONTROL)
        token, state = self._after(one_text(prompt, name="prompt"))
        generator, writer = _generator(seed), self.network.writer()
        written: list[list[int]] = []
        while len(written) < count:
            rows = torch.zeros(min(ROWS_AT_ONCE, count - len(written)), dtype=torch.long)
            start = self.network.select(state, rows)
            drawn = sample(writer, start, token[rows], sampling=sampling, generator=generator)
            steps = list(self._until_end(islice(drawn, tokens)))
            written += torch.stack(steps, dim=1).tolist()  # (rows, tokens)
        return self._continued(prompt, written)

    def _after(self, text: str) -> tuple[Tensor, State]:
        """The last token of a prefix (1,), and the state before it is read."""
        tokens = self._tokens(text)
        return tokens[:, -1], self.network.read(tokens[:, :-1])

    def _tokens(self, text: str) -> Tensor:
        """What is read before the next token, what stands before a text among it: (1, T)."""
        return torch.tensor([[self.network.first, *self._ids(text)]])

    def _ids(self, text: str) -> list[int]:
        """A text that may have several lines: END between them, none after the last."""
        ids: list[int] = self.encoder.encode_lines(text.split("\n")).ids[:-1].tolist()
        return ids

    def _until_end(self, drawn: Iterator[Tensor]) -> Iterator[Tensor]:
        if self.settings.model.context == "stream":
            yield from drawn
            return
        ended: Tensor | bool = False
        for tokens in drawn:
            yield tokens
            ended = ended | (tokens == END)
            if bool(torch.as_tensor(ended).all()):
                return

    def _continued(self, prompt: str, written: list[list[int]]) -> list[str]:
        """The prompt as it was given, and what each row adds to it."""
        if self.settings.model.context == "line":
            written = [ids[: ids.index(END)] if END in ids else ids for ids in written]
        start = self._ids(prompt)
        known = len(self.encoder.decode(start))
        return [prompt + self.encoder.decode([*start, *ids])[known:] for ids in written]


def _check_amount(tokens: int, count: int) -> None:
    for name, value in (("tokens", tokens), ("count", count)):
        if whole(name, value) < 1:
            raise ConfigError(f"{name} is {value}, but must be at least 1.")
    if tokens * count > MAX_GENERATED:
        raise ConfigError(
            f"{tokens} tokens times {count} texts are asked for, but one call makes at most "
            f"{MAX_GENERATED} tokens. Ask for fewer, or in several calls."
        )


def _generator(seed: int | None) -> torch.Generator | None:
    if seed is None:
        return None
    number = whole("seed", seed)
    if not 0 <= number < 2**63:
        raise ConfigError(f"seed is {number}, but must be in 0..2^63 − 1.")
    return torch.Generator().manual_seed(number)
