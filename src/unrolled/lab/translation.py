"""What each part of an encoder and decoder brings, measured on made pairs.

extensions         one shared stack, then separate weights, three inputs, depth, both directions, a
                   reversed source (Cho et al. 2014, arXiv:1406.1078; Sutskever et al. 2014,
                   arXiv:1409.3215), and attention
source_reversal    how many updates a source read backwards saves where nothing else is done for
                   the distance between a word and its counterpart
length_curves      the bottleneck: one vector for sources of all lengths, beside attention
gradient_shortcut  how much of the last word's gradient reaches each state of the encoder

All is a function of the seed. No held-out pair was trained on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from unrolled.config import settings_for
from unrolled.config.sections import TrainSettings
from unrolled.errors import ConfigError
from unrolled.tasks.translate.data import PairData, Pairs
from unrolled.tasks.translate.job import TranslateJob, translate_job
from unrolled.tasks.translate.model import TranslateModel
from unrolled.tasks.translate.network import TranslateNetwork
from unrolled.tasks.translate.search import Search
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.text.batch import Batch
from unrolled.text.pair_batch import PairBatch, PairBatches
from unrolled.text.parallel import Pair
from unrolled.text.toy_pairs import toy_pairs
from unrolled.training.clock import Dev
from unrolled.training.in_memory import fit_in_memory

GREEDY = Search(width=1)
Settings = Mapping[str, Any]
Lines = Sequence[tuple[str, str]]  # a source and its target each

PLAIN: Settings = {
    "tokens.level": "word",
    "model.hidden_size": 48,
    "model.bidirectional": False,
    "model.attention": "none",
    "model.tied": False,
    "model.dropout": 0.0,
    "model.label_smoothing": 0.0,
    "train.learning_rate": 0.01,
    "train.batch_tokens": 256,
}
THREE = {"model.decoder_input": "all"}
EXTENSIONS: dict[str, Settings] = {
    "one shared stack, no input": {"model.shared": True, "model.decoder_input": "none"},
    "I: separate weights": {"model.decoder_input": "none"},
    "with the token before": {"model.decoder_input": "token"},
    "II: three inputs": THREE,
    "II and III: two layers": {**THREE, "model.layers": 2},
    "II and IV: both directions": {**THREE, "model.bidirectional": True},
    "II and V: reversed source": {**THREE, "model.reverse_source": True},
    "II and attention": {**THREE, "model.attention": "general"},
}
# h is all that a GRU carries, so ∂L/∂h_i is the whole of what passes through place i
LONG: Settings = {"model.cell": "gru", "model.hidden_size": 64, "train.batch_tokens": 512}
ATTENTIONS: dict[str, Settings] = {
    "with attention": {**LONG, "model.attention": "general"},
    "without attention": LONG,
}


class Toy(NamedTuple):
    """Pairs to learn from; the first `held_out` different ones are kept for scoring."""

    kind: str
    symbols: int
    lengths: tuple[int, int]
    pairs: int
    held_out: int = 200

    def made(self, seed: int) -> Lines:
        """All of them, each once."""
        made = toy_pairs(
            self.kind, self.pairs, symbols=self.symbols, lengths=self.lengths, seed=seed
        )
        return list(dict.fromkeys(made))


SHORT_COPY = Toy("copy", symbols=8, lengths=(2, 6), pairs=1700)
LONG_REVERSE = Toy("reverse", symbols=10, lengths=(2, 24), pairs=2200)


# ------------------------------------------------------------------ training


def job_for(lines: Lines, changes: Settings, *, held_out: int, seed: int) -> TranslateJob:
    """A small model with fresh weights, and the pairs it is to learn."""
    settings = settings_for(TranslateRun, overrides={**PLAIN, **changes, "seed": seed})
    pairs = [Pair(*line, number) for number, line in enumerate(lines, 1)]
    splits = {"train": pairs[held_out:], "dev": pairs[:held_out]}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        data = {name: Pairs(split, "<toy>", {}) for name, split in splits.items()}
        return translate_job(settings, data)


def trained(lines: Lines, changes: Settings, *, held_out: int, seed: int) -> TranslateJob:
    """The same, after training."""
    job = job_for(lines, changes, held_out=held_out, seed=seed)
    fit_in_memory(job)
    return job


def accuracies(outputs: Sequence[str], lines: Lines) -> tuple[float, float]:
    """The share of tokens that are right, and that of lines: see evaluate/translation.py.

    Without the intervals that are there, which would cost more than the models here.
    """
    pairs = [(a.split(), b.split()) for a, (_, b) in zip(outputs, lines, strict=True)]
    right = sum(a == b for said, true in pairs for a, b in zip(said, true, strict=False))
    places = sum(max(len(said), len(true)) for said, true in pairs)
    return right / places, sum(said == true for said, true in pairs) / len(pairs)


def _greedy(model: TranslateModel, lines: Lines) -> tuple[float, float]:
    return accuracies(model.predict([source for source, _ in lines], width=1), lines)


# ------------------------------------------------------------------ the extensions


class Outcome(NamedTuple):
    """What a trained model does on held-out pairs."""

    exact_match: float
    token_accuracy: float
    nats: float  # a target token
    parameters: int
    updates: int


def extensions(
    toy: Toy = SHORT_COPY,
    *,
    kinds: Mapping[str, Settings] = EXTENSIONS,
    epochs: int = 20,
    seeds: Sequence[int] = (1, 2, 3),
) -> dict[str, list[Outcome]]:
    """Each kind of model after equally many updates on the same pairs, an outcome a seed."""
    return {
        name: [_outcome(toy, {**changes, "train.epochs": epochs}, seed=seed) for seed in seeds]
        for name, changes in kinds.items()
    }


def _outcome(toy: Toy, changes: Settings, *, seed: int) -> Outcome:
    lines = toy.made(seed)
    job = trained(lines, changes, held_out=toy.held_out, seed=seed)
    accuracy, exact = _greedy(job.model, lines[: toy.held_out])
    epochs = job.model.settings.train.epochs
    updates = sum(len(job.epoch(seed, epoch)) for epoch in range(epochs))
    return Outcome(exact, accuracy, job.dev().cost, job.model.about()["parameters"], updates)


# ------------------------------------------------------------------ the reversed source


@dataclass
class UntilAccurate:
    """A job whose epochs are empty once enough of the held-out tokens are right."""

    job: TranslateJob
    goal: float
    updates: int = 0
    reached: bool = False

    @property
    def model(self) -> TranslateModel:
        return self.job.model

    @property
    def train(self) -> TrainSettings:
        return self.job.train

    @property
    def seed(self) -> int:
        return self.job.seed

    def epoch(self, seed: int, epoch: int) -> Sequence[PairBatch]:
        """The job's own batches, counted."""
        batches = [] if self.reached else self.job.epoch(seed, epoch)
        self.updates += len(batches)
        return batches

    def dev(self) -> Dev:
        """The job's own, after a look at the outputs."""
        if not self.reached:
            held_out = [(pair.source, pair.target) for pair in self.job.dev_pairs.pairs]
            self.reached = _greedy(self.job.model, held_out)[0] >= self.goal
        return self.job.dev()


def source_reversal(
    toy: Toy = SHORT_COPY,
    *,
    goal: float = 0.9,
    epochs: int = 60,
    seeds: Sequence[int] = (1, 2, 3, 4, 5),
) -> dict[str, list[int | None]]:
    """Updates, to a whole epoch, until a share `goal` of tokens is right; None: not in the end."""
    constant = {"train.schedule": "constant", "train.epochs": epochs, "train.learning_rate": 0.005}
    kinds = {"as it stands": {}, "reversed": {"model.reverse_source": True}}
    return {
        name: [_updates(toy, {**constant, **changes}, goal=goal, seed=seed) for seed in seeds]
        for name, changes in kinds.items()
    }


def _updates(toy: Toy, changes: Settings, *, goal: float, seed: int) -> int | None:
    job = job_for(toy.made(seed), changes, held_out=toy.held_out, seed=seed)
    watched = UntilAccurate(job, goal)
    fit_in_memory(watched)
    return watched.updates if watched.reached else None


# ------------------------------------------------------------------ with and without attention


def attention_models(
    toy: Toy = LONG_REVERSE, *, epochs: int | None = 12, seed: int = 1
) -> dict[str, TranslateModel]:
    """A model with attention and one without, trained alike; without `epochs` as first drawn."""
    lines, begin = toy.made(seed), job_for if epochs is None else trained
    return {
        name: begin(
            lines, {**changes, "train.epochs": epochs or 1}, held_out=toy.held_out, seed=seed
        ).model
        for name, changes in ATTENTIONS.items()
    }


def length_curves(
    models: Mapping[str, TranslateModel],
    lengths: Sequence[int],
    *,
    toy: Toy = LONG_REVERSE,
    pairs: int = 50,
    seed: int = 99,
) -> dict[str, list[float]]:
    """Token accuracy of each model on newly drawn pairs of each source length."""
    fresh = [toy._replace(lengths=(n, n), pairs=pairs).made(seed) for n in lengths]
    return {name: [_greedy(model, lines)[0] for lines in fresh] for name, model in models.items()}


def gradient_shortcut(
    models: Mapping[str, TranslateModel],
    length: int,
    *,
    toy: Toy = LONG_REVERSE,
    pairs: int = 50,
    seed: int = 99,
) -> dict[str, NDArray[np.float64]]:
    """‖∂L/∂h_i‖ of each model for i = 1 … length, the mean over new pairs.

    L is the surprise at the last target token before END. In a reversal it is the first source
    token, the farthest from it on the way through the states.
    """
    fresh = toy._replace(lengths=(length, length), pairs=pairs).made(seed)
    return {name: state_gradients(model, fresh) for name, model in models.items()}


def state_gradients(model: TranslateModel, lines: Lines) -> NDArray[np.float64]:
    """The norms for pairs of one length, of a model whose encoder is a GRU or RNN read forward."""
    data = PairData.of(model.source, model.target, [Pair(*line, 0) for line in lines])
    whole = PairBatches(data.source, data.target, batch_tokens=1).build(np.arange(len(lines)))
    for side in (whole.source, whole.target):
        if int(side.lengths.min()) != int(side.lengths.max()):
            raise ConfigError(
                f"the pairs have {int(side.lengths.min())} to {int(side.lengths.max())} tokens a "
                "side, but must be of one length: place i is compared with place i."
            )
    states = _encoder_states(model.network, whole.source)
    nats = _last_nats(model.network, states, whole.target)
    gradients = torch.stack(torch.autograd.grad(nats, states)[:-1])  # (S, L, B, H), END left out
    norms: NDArray[np.float64] = gradients.double().norm(dim=(1, 3)).mean(dim=1).numpy()  # (S,)
    return norms


def _encoder_states(network: TranslateNetwork, source: Batch) -> list[Tensor]:
    """The state (L, B, H) after each place, each made from the one before: gradients pass it."""
    states: list[Tensor] = []
    for x in network.source_embedding(source.tokens).split(1, dim=1):
        _, (h, *_) = network.encoder(x, state=(states[-1],) if states else None)
        states.append(h)
    return states


def _last_nats(network: TranslateNetwork, states: Sequence[Tensor], target: Batch) -> Tensor:
    """Surprise at the last tokens before END, summed over the batch."""
    inputs = network.target_embedding(target.tokens[:, :-2])  # (B, T, E)
    s = network.decoder(inputs, state=(states[-1],))[0][:, -1:]  # (B, 1, H)
    readout = s
    if network.attention is not None and network.readout is not None:
        h = torch.stack([state[-1] for state in states], dim=1)  # (B, S, H)
        nothing_beyond = torch.zeros(h.shape[:2], dtype=torch.bool)
        context, _ = network.attention(s, network.attention.remember(h, nothing_beyond))
        readout = torch.tanh(functional.linear(torch.cat([context, s], dim=2), network.readout))
    logits = functional.linear(readout[:, 0], network.output_weight, network.bias)  # (B, V)
    return functional.cross_entropy(logits, target.tokens[:, -2], reduction="sum")
