"""Language models: training and writing speed, beside an ordinary PyTorch program.

    python benchmarks/language.py [--rounds 3]

Both train the same sizes on the same random tokens (10,000 words by Zipf's law), batch 20, 35
steps, SGD, clipping, no dropout, output matrix apart from the embedding. Each runs in a process of
its own, turn and turn about; the best round of each counts. Both must have the same losses.
"""

import argparse
import json
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

WORDS, ROWS, STEPS = 10_000, 20, 35
SIZES = (200, 650)
CLIP, RATE = 0.25, 1.0
WARM_UP, TIMED = 3, 12


def tokens(seed: int) -> np.ndarray:
    """Ids (N,) from 4 on, as frequent as words are."""
    weights = 1.0 / np.arange(1, WORDS - 3)
    generator = np.random.default_rng(seed)
    size = ROWS * STEPS * (WARM_UP + TIMED + 3)
    return 4 + generator.choice(WORDS - 4, size=size, p=weights / weights.sum())


def ordinary(hidden: int):
    """The program that everybody writes; yields the loss of each step."""
    from torch import nn

    torch.manual_seed(1)
    embedding = nn.Embedding(WORDS, hidden)
    lstm = nn.LSTM(hidden, hidden, num_layers=2)
    output = nn.Linear(hidden, WORDS)
    model = nn.ModuleList([embedding, lstm, output])
    match_start(lstm, embedding.weight, output.weight, output.bias)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    data = torch.from_numpy(tokens(1)).view(ROWS, -1).t().contiguous()  # (T, B)
    state = None
    for start in range(0, len(data) - 1 - STEPS, STEPS):
        inputs, targets = data[start : start + STEPS], data[start + 1 : start + 1 + STEPS]
        h, state = lstm(embedding(inputs), state)
        loss = nn.functional.cross_entropy(output(h).flatten(0, 1), targets.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        state = tuple(part.detach() for part in state)
        yield loss.item()


def ours(hidden: int):
    """The same through unrolled's network and update."""
    from unrolled.config import settings_for
    from unrolled.tasks.language.network import LanguageNetwork
    from unrolled.tasks.language.settings import LanguageRun
    from unrolled.tasks.run import use_machine
    from unrolled.text.batch import Batch
    from unrolled.training.optimise import OPTIMIZERS, clip_gradients

    use_machine(threads=0)
    settings = settings_for(
        LanguageRun,
        overrides={
            "model.layers": 2, "model.hidden_size": hidden, "model.tied": False,
            "model.dropout": 0.0, "train.optimizer": "sgd", "train.learning_rate": RATE,
        },
    )  # fmt: skip
    torch.manual_seed(1)
    network = LanguageNetwork(settings.model, WORDS)
    match_start(network.stack, network.embedding.weight, network.weight, network.bias)
    optimizer = OPTIMIZERS["sgd"](network.parameters(), settings.train)
    data = torch.from_numpy(tokens(1)).view(ROWS, -1)
    lengths = torch.full((ROWS,), STEPS + 1)
    carry = None
    for start in range(0, data.size(1) - 1 - STEPS, STEPS):
        loss = network.loss(Batch(data[:, start : start + STEPS + 1], lengths), carry)
        optimizer.zero_grad()
        (loss.total / loss.count).backward()
        clip_gradients([p.grad for p in network.parameters()], CLIP)
        optimizer.step()
        carry = loss.carry
        yield loss.total.item() / loss.count


@torch.no_grad()
def match_start(lstm, *others) -> None:
    """Give both programs the same first weights."""
    generator = torch.Generator().manual_seed(2)
    for parameter in (*lstm.parameters(), *others):  # the LSTM's come in the same order in both
        parameter.copy_(torch.rand(parameter.shape, generator=generator) * 0.2 - 0.1)


def write(hidden: int, characters: int) -> float:
    """Characters a second that a model writes."""
    alphabet = "".join(map(chr, range(32, 127)))
    model = made([alphabet], level="char", hidden=hidden)
    model.generate("the ", tokens=200, seed=1)
    begin = time.perf_counter()
    model.generate("the ", tokens=characters, seed=1)
    return characters / (time.perf_counter() - begin)


def suggest(hidden: int, times: int = 200) -> tuple[float, float]:
    """Milliseconds for a list of next words after twenty: the median, and the 99 % point."""
    words = [f"w{number}" for number in range(WORDS - 4)]
    model, seconds = made([" ".join(words)], level="word", hidden=hidden, layers=2), []
    for number in range(times + 5):
        before = " ".join(words[number : number + 20])
        begin = time.perf_counter()
        model.next(before, top=10)
        seconds.append(time.perf_counter() - begin)
    return tuple(1000 * np.quantile(seconds[5:], [0.5, 0.99]))


def made(lines: list[str], *, level: str, hidden: int, layers: int = 1):
    """A language model with its first weights."""
    from unrolled.config import settings_for
    from unrolled.tasks.language.model import RecurrentLanguageModel
    from unrolled.tasks.language.settings import LanguageRun
    from unrolled.text.tokens import TextEncoder

    sizes = {"tokens.level": level, "model.hidden_size": hidden, "model.layers": layers}
    settings = settings_for(LanguageRun, overrides=sizes)
    model = RecurrentLanguageModel.create(settings, TextEncoder.build(lines, level=level))
    model.network.eval()
    return model


def measure(program, hidden: int) -> dict[str, object]:
    """Losses of all steps, and tokens a second of the fastest timed one and of their median."""
    steps = program(hidden)
    losses = list(islice(steps, WARM_UP))
    seconds = []
    for _ in range(TIMED):
        begin = time.perf_counter()
        losses.append(next(steps))
        seconds.append(time.perf_counter() - begin)
    return {"losses": losses, "rate": ROWS * STEPS / float(np.median(seconds))}


def in_process(name: str, hidden: int) -> dict[str, object]:
    """One measurement in a fresh interpreter."""
    command = [sys.executable, str(Path(__file__)), "--measure", name, "--hidden", str(hidden)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def compare(hidden: int, rounds: int) -> None:
    """One row of the table."""
    best = {"ordinary": 0.0, "ours": 0.0}
    losses = {}
    for _ in range(rounds):
        for name in best:
            result = in_process(name, hidden)
            best[name] = max(best[name], result["rate"])
            losses[name] = result["losses"]
    np.testing.assert_allclose(losses["ours"], losses["ordinary"], rtol=1e-4)
    ratio = best["ours"] / best["ordinary"]
    print(f"| train 2×{hidden} | {best['ordinary']:,.0f} | {best['ours']:,.0f} | {ratio:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=["ordinary", "ours"])
    parser.add_argument("--hidden", type=int)
    options = parser.parse_args()
    if options.measure:
        program = {"ordinary": ordinary, "ours": ours}[options.measure]
        print(json.dumps(measure(program, options.hidden)))
        return
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads; tokens a second\n")
    print("| | ordinary PyTorch | unrolled | ratio |\n|---|---|---|---|")
    for hidden in SIZES:
        compare(hidden, options.rounds)
    rate = write(512, 4000)
    print(f"\nwriting, 1×512 characters, one text: {rate:,.0f} characters a second")
    for hidden in SIZES:
        median, slow = suggest(hidden)
        print(
            f"next-word list, 2×{hidden}: {median:.1f} ms, {slow:.1f} ms at the 99 % point (≤ 10)"
        )


if __name__ == "__main__":
    main()
