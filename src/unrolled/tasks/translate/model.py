"""Sequence-to-sequence models as a user meets them: texts in, other texts out."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unrolled.decode.beam import BeamStep, beam_search
from unrolled.decode.hypothesis import Hypothesis
from unrolled.decode.sample import Sampling
from unrolled.decode.sequences import greedy, sample_sequences
from unrolled.decode.tree import beam_tree
from unrolled.errors import ConfigError, not_one_of, whole
from unrolled.nn.output import begin_with_shares
from unrolled.tasks.shared.network_model import Answering, NetworkModel
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import one_text, text_list
from unrolled.tasks.task import Blocks
from unrolled.tasks.translate.answers import (
    MAX_SOURCE,
    NOTHING,
    Alignment,
    Trace,
    Translated,
    Translation,
    joined,
)
from unrolled.tasks.translate.network import DecoderState, TranslateNetwork
from unrolled.tasks.translate.search import DEFAULT, SEARCHED, Search, chosen_search
from unrolled.tasks.translate.settings import PredictOptions, TraceOptions, TranslateRun
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch, PairBatches, SourceBatches
from unrolled.text.sentences import split_sentences
from unrolled.text.tokens import END, PAD, START, UNK, EncodedLines, TextEncoder

BATCH_TOKENS = 2048  # source tokens read at once
MANY_TOKENS = 1000  # whose shares a softmax begins with; fewer are learned sooner without
NEVER_WRITTEN = (PAD, START)
ROOM = 10  # tokens that an output may be longer than any that was trained on


class FromTraining(nn.Module):
    """What the training pairs leave beside the weights: a baseline, and a bound.

    dictionary   the target token that each source token goes with best (V,)
    longest      how many tokens the longest target has
    """

    dictionary: Tensor
    longest: Tensor

    def __init__(self, source_size: int) -> None:
        super().__init__()
        self.register_buffer("dictionary", torch.full((source_size,), UNK))
        self.register_buffer("longest", torch.zeros((), dtype=torch.int64))


@dataclass(frozen=True)
class TranslateModel(NetworkModel):
    """A trained encoder and decoder."""

    settings: TranslateRun
    source: TextEncoder
    target: TextEncoder
    network: TranslateNetwork
    from_training: FromTraining

    @classmethod
    def create(cls, settings: TranslateRun, source: TextEncoder, target: TextEncoder) -> Self:
        """A model with fresh weights, drawn from torch's generator."""
        target_size = None if settings.tokens.joint else len(target.vocabulary)
        network = TranslateNetwork(settings.model, len(source.vocabulary), target_size)
        if len(target.vocabulary) >= MANY_TOKENS:
            begin_with_shares(network.bias, target.vocabulary.counts)
        return cls(settings, source, target, network, FromTraining(len(source.vocabulary)))

    @classmethod
    def build(cls, settings: TranslateRun, sources: Sequence[str], targets: Sequence[str]) -> Self:
        """The same, its vocabularies those of training pairs."""
        if settings.tokens.joint:
            both = TextEncoder.learn([*sources, *targets], settings.tokens)
            return cls.create(settings, both, both)
        source, target = (TextEncoder.learn(side, settings.tokens) for side in (sources, targets))
        return cls.create(settings, source, target)

    @classmethod
    def restore(cls, settings: TranslateRun, files: Mapping[str, bytes]) -> Self:
        """The model that a folder's files describe, its weights still to be read."""
        source = _restored(settings, files, "source-")
        target = source if settings.tokens.joint else _restored(settings, files, "target-")
        return cls.create(settings, source, target)

    def files(self) -> dict[str, bytes]:
        """The vocabularies and, where there are any, the tokenisers."""
        sides = {"source-": self.source, "target-": self.target}
        if self.settings.tokens.joint:
            del sides["target-"]
        return {
            prefix + name: content
            for prefix, side in sides.items()
            for name, content in side.files().items()
        }

    def about(self) -> dict[str, Any]:
        """Sizes that a user would ask for, by name."""
        return {
            "parameters": self.parameter_count(),
            "source vocabulary": len(self.source.vocabulary),
            "target vocabulary": len(self.target.vocabulary),
        }

    def parts(self) -> Sequence[tuple[str, nn.Module]]:
        """The network, and what the training pairs left."""
        return [("", self.network), ("", self.from_training)]

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {
            "predict": self._predicted,
            "trace": self._traced,
            "similar": partial(similar_answers, self),
        }

    @torch.inference_mode()
    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """What the decoder begins with (N, H), of its last layer."""
        self.network.eval()
        encoded = self.source.encode_lines([self._shortened(text) for text in text_list(texts)])
        found = np.zeros((len(encoded), self.settings.model.hidden_size), np.float32)
        for rows, batch in SourceBatches(encoded, batch_tokens=BATCH_TOKENS).in_order():
            found[rows] = self.network.encode(batch).stack[0][-1].numpy()
        return found

    def _predicted(
        self, blocks: Blocks, options: PredictOptions, source: Path | str
    ) -> Iterator[Translated]:
        row, search = 0, chosen_search(options)
        for block in blocks:
            texts = [given.text for given in block]
            parts = [split_sentences(text) if options.sentences else [text] for text in texts]
            short = [[self._shortened(part) for part in of_text] for of_text in parts]
            found = iter(self._found([part for some in short for part in some], row, options))
            for text, own, read in zip(texts, parts, short, strict=True):
                row += 1
                outputs = joined([next(found) for _ in own])
                unknown = bool(text.strip()) and not any(map(self.knows, read))
                yield Translated(text, row, outputs, search.nbest > 1, unknown, own != read)

    def _shortened(self, text: str) -> str:
        """A text that is not longer than a search can be for."""
        if len(text) <= MAX_SOURCE:
            return text
        tokens = self.source.tokeniser.split(text)
        if len(tokens) <= MAX_SOURCE:
            return text
        return self.source.tokeniser.join(tokens[:MAX_SOURCE])

    def _found(
        self, texts: Sequence[str], before: int, options: PredictOptions
    ) -> list[list[Translation]]:
        """Outputs that are searched for or drawn; each block of texts draws on its own."""
        if options.temperature is None:
            return self.translate(texts, chosen_search(options))
        seed = None if options.seed is None else options.seed + before
        sampling = Sampling(temperature=options.temperature)
        drawn = self.sample(texts, sampling, seed=seed, max_length=options.max_length)
        return [[each] for each in drawn]

    def _traced(self, blocks: Blocks, options: TraceOptions, source: Path | str) -> Iterator[Trace]:
        for block in blocks:
            for given in block:
                yield self.trace(given.text, given.output, options)

    def trace(self, text: str, output: str | None, options: TraceOptions) -> Trace:
        """What the model looks at where it writes an output, its own or another, and its beam."""
        if not text.strip():
            raise ConfigError("the text is empty, but there must be a word to look at.")
        search, steps = chosen_search(options), list[BeamStep]()
        found = self.translate([text], search)[0][0].text if output is None else output
        self.beam_steps(text, search, steps.append)
        nodes = beam_tree(steps, alpha=search.alpha)
        labels = ["" if n.token is None else self.target.shown([n.token])[0] for n in nodes]
        return Trace(text, found, self.attention(text, found), nodes, labels, options)

    @overload
    def predict(self, texts: str, **search: Any) -> str: ...

    @overload
    def predict(self, texts: Iterable[str], **search: Any) -> list[str]: ...

    def predict(self, texts: str | Iterable[str], **search: Any) -> str | list[str]:
        """The best output for a text, or for each of several; an empty text gives an empty one.

        Options are those of `Search`: predict(texts, width=1, alpha=0.0).
        """
        for name in search.keys() - SEARCHED:
            raise not_one_of("the option of predict", name, SEARCHED)
        outputs = self.translate(texts, Search(**search))
        found = [best.text for best, *_ in outputs]
        return found[0] if isinstance(texts, str) else found

    def translate(
        self, texts: str | Iterable[str], search: Search = DEFAULT
    ) -> list[list[Translation]]:
        """The nbest outputs for each text, best first; an empty text gives one empty output."""

        def look(state: DecoderState, first: Tensor, limits: Tensor) -> list[list[Hypothesis]]:
            given: dict[str, Any] = {"end": END, "limits": limits, "banned": NEVER_WRITTEN}
            given["alpha"] = search.alpha
            if search.width == 1 and search.nbest == 1:
                return [[found] for found in greedy(self.network, state, first, **given)]
            given |= {"width": search.width, "stop": search.stop, "nbest": search.nbest}
            return beam_search(self.network, state, first, **given)

        return self._outputs(texts, look, search)

    def sample(
        self,
        texts: Sequence[str],
        sampling: Sampling,
        *,
        seed: int | None = None,
        max_length: int | None = None,
    ) -> list[Translation]:
        """An output for each text, drawn from the model's own distribution (ancestral sampling)."""
        generator = torch.Generator()
        generator.seed() if seed is None else generator.manual_seed(whole("seed", seed))

        def draw(state: DecoderState, first: Tensor, limits: Tensor) -> list[list[Hypothesis]]:
            found = sample_sequences(
                self.network,
                state,
                first,
                end=END,
                limits=limits,
                sampling=sampling,
                generator=generator,
            )
            return [[each] for each in found]

        search = Search(max_length=max_length)
        return [found[0] for found in self._outputs(texts, draw, search)]

    def beam_steps(
        self, text: str, search: Search, watch: Callable[[BeamStep], None]
    ) -> list[Hypothesis]:
        """Search for one text and hand each step of the search to `watch`."""
        encoded = self.source.encode_lines([text])
        (_, batch), *_ = SourceBatches(encoded, batch_tokens=BATCH_TOKENS).in_order()
        with torch.inference_mode():
            state = self.network.encode(batch)
        return beam_search(
            self.network,
            state,
            torch.full((1,), START),
            end=END,
            limits=self._limits(batch, search.max_length),
            width=search.width,
            alpha=search.alpha,
            stop=search.stop,
            nbest=search.nbest,
            banned=NEVER_WRITTEN,
            watch=watch,
        )[0]

    def _outputs(
        self,
        texts: str | Iterable[str],
        look: Callable[[DecoderState, Tensor, Tensor], list[list[Hypothesis]]],
        search: Search,
    ) -> list[list[Translation]]:
        texts = text_list(texts)
        found: list[list[Translation]] = [[NOTHING] for _ in texts]
        real = [number for number, text in enumerate(texts) if text.strip()]
        lines = [texts[number] for number in real]
        if not lines:
            return found
        batches = SourceBatches(self.source.encode_lines(lines), batch_tokens=BATCH_TOKENS)
        for rows, batch in batches.in_order():
            with torch.inference_mode():
                state = self.network.encode(batch)
            first = torch.full((len(rows),), START)
            hypotheses = look(state, first, self._limits(batch, search.max_length))
            for row, kept in zip(rows.tolist(), hypotheses, strict=True):
                found[real[row]] = [self._worded(lines[row], each, search) for each in kept]
        return found

    def _limits(self, batch: Batch, max_length: int | None) -> Tensor:
        """How many tokens may be written for each source: a matter of the model and itself."""
        if max_length is not None:
            return torch.full_like(batch.lengths, max_length)
        return torch.maximum(self.from_training.longest, 2 * batch.lengths) + ROOM

    def _worded(self, text: str, found: Hypothesis, search: Search) -> Translation:
        tokens = self.target.vocabulary.decode(np.array(found.tokens, dtype=np.int64))
        if search.copy and UNK in found.tokens:
            tokens = self._copied(text, found.tokens, tokens)
        return Translation(
            self.target.tokeniser.join(tokens),
            found.log_probability,
            found.score,
            found.finished,
            tokens,
        )

    def _copied(self, text: str, ids: list[int], tokens: list[str]) -> list[str]:
        """For unknown tokens those of the source that attention looked at most."""
        weights = self._weights(self.source.encode(text), ids)
        words = self.source.tokeniser.split(text)
        if weights is None or not words:
            return tokens
        looked = weights[: len(tokens), : len(words)].argmax(axis=1)
        return [
            words[place] if token == UNK else word
            for token, word, place in zip(ids, tokens, looked, strict=True)
        ]

    def attention(self, text: str, output: str) -> Alignment:
        """What the model looks at where it writes this output for this text."""
        source = self.source.encode(one_text(text))
        target = self.target.encode(one_text(output, name="output"))
        return Alignment(
            self.source.shown([*source, END]),
            self.target.shown([*target, END]),
            self._weights(source, target),
        )

    def _weights(
        self,
        source: Sequence[int] | NDArray[np.integer],
        target: Sequence[int] | NDArray[np.integer],
    ) -> NDArray[np.float64] | None:
        pair = PairBatch(Batch.collate([[*source, END]]), Batch.collate([[START, *target, END]]))
        weights = self.network.alignment(pair)
        return None if weights is None else weights[0].double().numpy()

    def knows(self, text: str) -> bool:
        """Whether any token of a text is in the source vocabulary."""
        return bool((self.source.encode(one_text(text)) != UNK).any())

    @property
    def has_dictionary(self) -> bool:
        """Whether it was made: special tokens go with themselves in it."""
        return bool(self.from_training.dictionary[PAD] == PAD)

    def word_for_word(self, texts: Sequence[str]) -> list[str]:
        """Each token of a text replaced by the one that it goes with most: a baseline."""
        table = self.from_training.dictionary.clamp(0, len(self.target.vocabulary) - 1).numpy()
        return [self.target.decode(table[self.source.encode(text)]) for text in texts]

    def log_probabilities(self, source: EncodedLines, target: EncodedLines) -> NDArray[np.float64]:
        """log P(target | source) of each pair (pairs,), END among what is predicted."""
        found = np.empty(len(source))
        for rows, batch in PairBatches(source, target, batch_tokens=BATCH_TOKENS).in_order():
            nats = self.network.target_nats(batch).double()
            each = torch.repeat_interleave(torch.arange(len(rows)), batch.target.lengths - 1)
            sums = torch.zeros(len(rows), dtype=torch.float64).index_add_(0, each, nats)
            found[rows] = -sums.numpy()
        return found


def _restored(settings: TranslateRun, files: Mapping[str, bytes], prefix: str) -> TextEncoder:
    tokens = settings.tokens
    own = {
        name.removeprefix(prefix): content
        for name, content in files.items()
        if name.startswith(prefix)
    }
    try:
        return TextEncoder.from_files(
            own, level=tokens.level, splitter=tokens.splitter, lowercase=tokens.lowercase
        )
    except ValueError as error:
        raise ValueError(f"{prefix}{error}") from error
