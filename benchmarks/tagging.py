"""Taggers: training and prediction speed, beside an ordinary PyTorch program.

    python benchmarks/tagging.py TRAIN TEST [--rounds 3] [--batches 120] [--threads 2]

TRAIN and TEST are tagged files, CoNLL-U or columns. The ordinary program is what everybody writes:
embedding 100, torch's bidirectional LSTM of 200 units a direction over packed sequences, softmax,
batches of 32 sentences, Adam. "same batches" gives the same sentences, words alone and the same
first weights to our network, and both must have the same losses; "own batches" lets it choose
sentences of similar length, as many a batch. "characters + CRF" is `unrolled train tag` as it
comes, tags read as spans or not. Each runs in a process of its own, turn and turn about; the best
round of each counts. Tokens a second, from sentences to weights and from words to tags.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.config import settings_for
from unrolled.tasks import task_named
from unrolled.tasks.run import use_machine
from unrolled.tasks.tag.job import TagJob
from unrolled.tasks.tag.settings import TagRun
from unrolled.text.source import Source
from unrolled.text.word_batch import TagBatch, TagBatches
from unrolled.training.optimise import OPTIMIZERS, clip_gradients

ROWS, EMBEDDING, HIDDEN = 32, 100, 200
RATE, CLIP = 0.001, 5.0
WARM_UP = 5
WORDS_ONLY = {
    "model.characters": "none",
    "model.embedding_size": EMBEDDING,
    "model.hidden_size": HIDDEN,
    "model.dropout": 0.0,
    "model.word_dropout": 0.0,
    "model.decoder": "softmax",
    "train.optimizer": "adam",
    "train.learning_rate": RATE,
    "train.clip": CLIP,
}
Step = tuple[float, int]  # loss a word, words


# ------------------------------------------------------------------ the programs


class Ordinary(nn.Module):
    """The program that everybody writes."""

    def __init__(self, words: int, tags: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, EMBEDDING, padding_idx=0)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True, bidirectional=True)
        self.output = nn.Linear(2 * HIDDEN, tags)

    def forward(self, words: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(
            self.embedding(words), lengths, batch_first=True, enforce_sorted=False
        )
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.output(hidden)


def plain_batches(job: TagJob) -> Iterator[TagBatch]:
    """32 sentences in a random order, whatever their lengths."""
    order = np.random.default_rng(1).permutation(len(job.sentences))
    for start in range(0, len(order), ROWS):
        yield job.batches.build(order[start : start + ROWS])


def train_ordinary(job: TagJob) -> Iterator[Step]:
    network = Ordinary(len(job.model.encoder.words), len(job.model.tags))
    match_start(network.embedding.weight, network.lstm, network.output.weight, network.output.bias)
    optimizer = torch.optim.Adam(network.parameters(), lr=RATE)
    for batch in plain_batches(job):
        words, lengths = batch.sentences.words, batch.sentences.lengths
        targets = batch.tags.masked_fill(~batch.sentences.mask, -100)
        logits = network(words, lengths)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), CLIP)
        optimizer.step()
        yield loss.item(), int(lengths.sum())


def train_ours(job: TagJob, batches: Iterator[TagBatch]) -> Iterator[Step]:
    network, train = job.model.network, job.model.settings.train
    if job.model.settings.model.characters == "none":
        match_start(network.embedder.embedding.weight, network.stack, network.weight, network.bias)
    optimizer = OPTIMIZERS[train.optimizer](network.parameters(), train)
    network.train()
    for batch in batches:
        loss = network.loss(batch)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        clip_gradients([p.grad for p in network.parameters() if p.grad is not None], train.clip)
        optimizer.step()
        yield loss.total.item() / loss.count, loss.count


@torch.no_grad()
def match_start(embedding: torch.Tensor, lstm: nn.Module, *others: torch.Tensor) -> None:
    """Give both programs the same first weights."""
    generator = torch.Generator().manual_seed(2)
    for parameter in (embedding, *lstm.parameters(), *others):
        parameter.copy_(torch.rand(parameter.shape, generator=generator) * 0.2 - 0.1)


@torch.no_grad()
def tag_ordinary(job: TagJob, sentences: list[list[str]]) -> list[list[str]]:
    network = Ordinary(len(job.model.encoder.words), len(job.model.tags)).eval()
    encoder, names, found = job.model.encoder, job.model.tags.tags, []
    for start in range(0, len(sentences), ROWS):
        rows = [
            torch.from_numpy(encoder.words.encode(map(str.lower, words))).long()
            for words in sentences[start : start + ROWS]
        ]
        lengths = torch.tensor([len(row) for row in rows])
        words = nn.utils.rnn.pad_sequence(rows, batch_first=True)
        tags = network(words, lengths).argmax(2).tolist()
        found += [
            [names[t] for t in row[:n]] for row, n in zip(tags, lengths.tolist(), strict=True)
        ]
    return found


def tag_same(job: TagJob, sentences: list[list[str]]) -> list[list[str]]:
    """Our network, the same 32 sentences at a time."""
    found = []
    for start in range(0, len(sentences), ROWS):
        found += job.model.predict(sentences[start : start + ROWS])
    return found


def tag_ours(job: TagJob, sentences: list[list[str]]) -> list[list[str]]:
    return job.model.predict(sentences)


# ------------------------------------------------------------------ measuring


def own_batches(job: TagJob) -> Iterator[TagBatch]:
    """Batches of similar lengths, as many sentences in each on average."""
    mean = len(job.batches.encoded.words) / len(job.sentences)
    data = TagBatches(
        job.batches.encoded,
        job.model.tags.encode(job.sentences),
        batch_tokens=round(1.05 * ROWS * mean),
    )
    yield from data.epoch(1, 0)


PROGRAMS: dict[str, tuple[dict, Callable, Callable]] = {  # settings, training, prediction
    "ordinary": (WORDS_ONLY, train_ordinary, tag_ordinary),
    "same batches": (WORDS_ONLY, lambda job: train_ours(job, plain_batches(job)), tag_same),
    "own batches": (WORDS_ONLY, lambda job: train_ours(job, own_batches(job)), tag_ours),
    "characters + CRF": (
        {"model.decoder": "crf"},
        lambda job: train_ours(job, iter(job.epoch(1, 0))),
        tag_ours,
    ),
}


def measure(name: str, options: argparse.Namespace) -> dict[str, object]:
    """The losses of one program, and its tokens a second."""
    use_machine(options.threads)
    train, test = options.train, options.test
    settings, steps_of, tag = PROGRAMS[name]
    task, chosen = task_named("tag"), settings_for(TagRun, overrides=settings)
    paths = {"train": train, "dev": test}
    data = {name: task.read(Source(path), chosen) for name, path in paths.items()}
    job = task.job(chosen, data)
    steps, losses, words, seconds = steps_of(job), [], 0, 0.0
    for number in range(WARM_UP + options.batches):
        begin = time.perf_counter()
        loss, count = next(steps)
        if number >= WARM_UP:
            seconds += time.perf_counter() - begin
            words += count
        losses.append(loss)
    sentences = [sentence.words for sentence in data["dev"].sentences]
    rates = []
    for _ in range(3):
        begin = time.perf_counter()
        tagged = tag(job, sentences)
        rates.append(sum(map(len, tagged)) / (time.perf_counter() - begin))
    return {"losses": losses[:20], "train": words / seconds, "predict": max(rates)}


def in_process(name: str, options: argparse.Namespace) -> dict:
    """One measurement in a fresh interpreter."""
    numbers = [f"--batches={options.batches}", f"--threads={options.threads}"]
    files = [str(options.train), str(options.test)]
    command = [sys.executable, __file__, *files, *numbers, f"--measure={name}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compare(options: argparse.Namespace) -> None:
    """The table, best round of each program."""
    best = {name: {"train": 0.0, "predict": 0.0} for name in PROGRAMS}
    losses = {}
    for _ in range(options.rounds):
        for name, rates in best.items():
            result = in_process(name, options)
            losses[name] = result["losses"]
            rates.update({key: max(rates[key], result[key]) for key in rates})
    np.testing.assert_allclose(losses["same batches"], losses["ordinary"], rtol=1e-3)
    threads = options.threads or torch.get_num_threads()
    print(f"torch {torch.__version__}, {threads} threads; tokens a second\n")
    print("| | training | ratio | prediction | ratio |\n|---|---|---|---|---|")
    base = best["ordinary"]
    for name, rates in best.items():
        cells = (f"{rates[key]:,.0f} | {rates[key] / base[key]:.2f}" for key in rates)
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=120)
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--measure", choices=PROGRAMS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
    else:
        compare(options)


if __name__ == "__main__":
    main()
