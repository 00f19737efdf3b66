"""A counted n-gram model as a network: its tensors are the levels of the table.

Nothing is trained here. Its state is the last order − 1 tokens of the line, <s> before the first of
them and <pad> before that; a line's end is the next line's start.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from unrolled.errors import ModelError
from unrolled.ngrams.query import Places, distributions, line_nats, log_probabilities
from unrolled.ngrams.settings import NgramSettings
from unrolled.ngrams.table import ZERO, Discounts, Floats, Level, NgramTable
from unrolled.tasks.shared.next_token import NextToken, State
from unrolled.text.batch import Batch
from unrolled.text.tokens import END, PAD, START, UNK, EncodedLines
from unrolled.text.vocabulary import parse_object

FACTS = "ngrams.json"
IMPOSSIBLE = 0.9 * ZERO  # below this, a log-probability stands for −∞
SCORES = (
    "Stupid backoff gives scores, not probabilities: they do not sum to one, so their perplexity "
    "compares with no other model's."
)

ROUNDING = 1e-9  # by which a sum of probabilities may be above 1


@dataclass(frozen=True)
class NgramFacts:
    """What is known of a table beside its numbers."""

    sizes: tuple[int, ...]  # distinct n-grams of each order
    discounts: tuple[Discounts, ...] = ()  # of each order
    unseen: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # share by text and order

    def to_json(self) -> bytes:
        """As the model folder keeps it."""
        value = {
            "ngrams": self.sizes,
            "discounts": [found.values for found in self.discounts],
            "fallback": [found.fallback for found in self.discounts],
            "unseen": self.unseen,
        }
        return (json.dumps(value, indent=1) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes) -> Self:
        """What `to_json` wrote; ValueError with the reason for anything else."""
        value = parse_object(data.decode(), keys={"ngrams", "discounts", "fallback", "unseen"})
        match value:
            case {
                "ngrams": [*sizes],
                "discounts": [*discounts],
                "fallback": [*fallback],
                "unseen": dict(unseen),
            } if (
                all(type(size) is int and 0 <= size < 2**40 for size in sizes)
                and all(map(_are_shares, (*discounts, *unseen.values())))
                and all(type(flag) is bool for flag in fallback)
                and len(discounts) == len(fallback)
            ):
                pairs = zip(map(tuple, discounts), fallback, strict=True)
                shares = {name: tuple(values) for name, values in unseen.items()}
                return cls(tuple(sizes), tuple(Discounts(*pair) for pair in pairs), shares)
        raise ValueError(f"{FACTS} does not describe n-grams")


def _are_shares(values: Any) -> bool:
    return isinstance(values, list) and all(type(x) in (int, float) and 0 <= x <= 3 for x in values)


class NgramNetwork(NextToken):
    """Counts made probabilities: each level of the table as tensors."""

    def __init__(self, settings: NgramSettings, facts: NgramFacts) -> None:
        super().__init__()
        self.settings, self.facts = settings, facts
        self.missing = math.log(settings.stupid_factor) if settings.smoothing == "stupid" else 0.0
        for k, size in enumerate(facts.sizes, 1):
            self.register_buffer(f"words_{k}", torch.zeros(size, dtype=torch.int32))
            self.register_buffer(f"log_p_{k}", torch.zeros(size, dtype=torch.float64))
            if k < len(facts.sizes):
                self.register_buffer(f"log_b_{k}", torch.zeros(size, dtype=torch.float64))
                self.register_buffer(f"begin_{k}", torch.zeros(size + 1, dtype=torch.int64))
        self.register_load_state_dict_post_hook(_check_levels)  # type: ignore[no-untyped-call]

    @classmethod
    def of(cls, settings: NgramSettings, table: NgramTable, facts: NgramFacts) -> Self:
        """The network of a table; it uses the table's arrays as they are."""
        with torch.device("meta"):
            network = cls(settings, facts)
        tensors = {
            f"{name}_{k}": torch.from_numpy(array)
            for k, level in enumerate(table.levels, 1)
            for name, array in level._asdict().items()
        }
        wanted = network.state_dict().keys()
        network.load_state_dict({name: tensors[name] for name in wanted}, assign=True)
        return network.eval()

    @classmethod
    def from_settings(
        cls, settings: NgramSettings, vocabulary_size: int, files: Mapping[str, bytes]
    ) -> Self:
        if FACTS not in files:
            raise ValueError(f"{FACTS} is missing")
        facts = NgramFacts.from_json(files[FACTS])
        if len(facts.sizes) != settings.order or facts.sizes[0] != vocabulary_size:
            raise ValueError(
                f"{FACTS} tells of {len(facts.sizes)} orders and {facts.sizes[:1]} tokens, but the "
                f"settings call for order {settings.order} and the vocabulary has {vocabulary_size}"
            )
        return cls(settings, facts)

    def files(self) -> dict[str, bytes]:
        return {FACTS: self.facts.to_json()}

    def about(self) -> dict[str, float]:
        """Distinct n-grams of each order, and the share of other texts' n-grams that it lacks."""
        lacking = "unseen or pruned" if any(self.settings.prune) else "unseen"
        return {
            **{f"{k}-grams": size for k, size in enumerate(self.facts.sizes, 1)},
            **{
                f"{k}-grams of {name} {lacking}": round(share, 4)
                for name, shares in self.facts.unseen.items()
                for k, share in enumerate(shares, 1)
            },
        }

    @property
    def recipe(self) -> str:
        settings = self.settings
        own = {
            "delta": settings.add_delta if settings.smoothing == "add" else None,
            "factor": settings.stupid_factor if settings.smoothing == "stupid" else None,
            "normalised": "no" if settings.smoothing == "stupid" else None,
            "prune": ",".join(map(str, settings.prune)) or None,
            "vocabulary": "open" if self.knows_unknown else "closed",
        }
        pairs = {"order": settings.order, "smoothing": settings.smoothing, **own}
        return "".join(f"|{key}:{value}" for key, value in pairs.items() if value is not None)

    @property
    def caution(self) -> str:
        return SCORES if self.settings.smoothing == "stupid" else ""

    @property
    def knows_unknown(self) -> bool:
        return bool(self.table.levels[0].log_p[UNK] > IMPOSSIBLE)

    @property
    def table(self) -> NgramTable:
        """The buffers as a table; nothing is copied."""
        none = {"log_b": np.zeros(0), "begin": np.zeros(0, np.int64)}
        arrays = {name: tensor.numpy() for name, tensor in self.named_buffers()}
        levels = (
            Level(**{name: arrays.get(f"{name}_{k}", none.get(name)) for name in Level._fields})  # type: ignore[arg-type]
            for k in range(1, len(self.facts.sizes) + 1)
        )
        return NgramTable(tuple(levels), self.missing)

    @property
    def first(self) -> int:
        return START

    def nats_in_lines(self, encoded: EncodedLines, *, backward: bool = False) -> Floats:
        nats = line_nats(self.table, encoded.ids)
        nats[nats > -IMPOSSIBLE] = np.inf
        return nats

    def token_nats(
        self, batch: Batch, carry: State | None = None, *, backward: bool = False
    ) -> tuple[Tensor, State]:
        B, C = len(batch.lengths), self.settings.order - 1
        known = torch.full((B, C), PAD) if carry is None else carry[0]
        rows = torch.cat([known, batch.tokens], dim=1)  # (B, C + T)
        wanted = torch.cat([torch.zeros(B, C + 1, dtype=torch.bool), batch.mask[:, 1:]], dim=1)
        places = torch.arange(C) + (batch.lengths - 1).clamp(min=0)[:, None]  # (B, C)
        nats = self._row_nats(rows.numpy(), wanted.numpy())
        return torch.from_numpy(nats), (in_line(rows.gather(1, places)),)

    def _row_nats(self, rows: Places, wanted: NDArray[np.bool_]) -> Floats:
        """Surprise at the wanted tokens of rows (B, T); a line begins after END."""
        tokens = np.insert(rows, 0, PAD, axis=1).reshape(-1)
        asked = np.insert(wanted, 0, False, axis=1).reshape(-1)
        after_ends = np.flatnonzero(tokens == END) + 1
        tokens, asked = np.insert(tokens, after_ends, START), np.insert(asked, after_ends, False)
        nats = -log_probabilities(self.table, tokens)[asked]
        nats[nats > -IMPOSSIBLE] = np.inf
        return nats

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        contexts = in_line(torch.cat([state[0], token[:, None]], dim=1)[:, 1:])  # (N, C)
        log_p = torch.from_numpy(distributions(self.table, contexts.numpy()))  # (N, V)
        log_p.masked_fill_(log_p < IMPOSSIBLE, -math.inf)
        if self.settings.smoothing == "stupid":  # scores, which a step makes probabilities of
            log_p -= log_p.logsumexp(dim=1, keepdim=True)
        return log_p, (contexts,)

    def select(self, state: State, rows: Tensor) -> State:
        return (state[0][rows],)

    def read(self, tokens: Tensor) -> State:
        C = self.settings.order - 1
        known = torch.cat([torch.full((len(tokens), C), PAD), tokens], dim=1)
        return (in_line(known[:, known.size(1) - C :]),)


def in_line(contexts: Tensor) -> Tensor:
    """Contexts (N, C) without what lies before the last line's start, which END stands for too."""
    edge = (contexts == END) | (contexts == START)
    kept = edge.flip(1).cumsum(1).flip(1) - edge.long() == 0  # no edge after it
    contexts = contexts.masked_fill(contexts == END, START)
    return contexts.masked_fill(~kept, PAD)


def _check_levels(network: NgramNetwork, keys: Any) -> None:
    """Refuse tensors that lead out of the table: they may come from anyone."""
    levels = network.table.levels
    for k, level in enumerate(levels, 1):
        above = len(levels[k].words) if k < len(levels) else 0
        begin, words = level.begin, level.words
        leads_out = len(begin) and (
            begin[0] != 0 or begin[-1] != above or bool((begin[1:] < begin[:-1]).any())
        )
        if leads_out or (len(words) and (words.min() < 0 or words.max() >= len(levels[0].words))):
            raise ModelError(
                "model.safetensors",
                f"the {k}-grams do not fit together; restore it from a copy or train again.",
            )
        if (level.log_p > ROUNDING).any() or (level.log_b > -ZERO).any():
            raise ModelError(
                "model.safetensors",
                f"the {k}-grams have probabilities above 1, or weights beyond 1e99; restore it "
                "from a copy or train again.",
            )
