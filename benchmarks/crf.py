"""The chain over tags beside torch's operators and pytorch-crf: a loss with gradients, best paths.

    python benchmarks/crf.py [--rounds 7] [--threads 2]

"torch" is what this package runs where its kernels are not there. Emissions are random, lengths
uniform between half a row and a whole one. Losses, gradients and paths of all sides are compared
before anything is timed; best of the rounds, in which the sides take turns. Milliseconds a batch.
"""

import argparse
import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor

from unrolled.nn import kernels
from unrolled.nn.crf import CRF

try:
    import torchcrf
except ImportError:
    print("pytorch-crf is not installed: pip install pytorch-crf", file=sys.stderr)
    raise SystemExit(2) from None

SIZES = [(32, 24, 9), (60, 30, 17), (60, 30, 50), (1, 30, 17), (1, 1000, 17)]
Loss = Callable[[], list[Tensor]]
Decode = Callable[[], list[list[int]]]


def sides(B: int, T: int, K: int) -> dict[str, tuple[Loss, Decode]]:
    """Of each side the loss with all gradients, and the best paths without padding."""
    torch.manual_seed(K)
    emissions = torch.randn(B, T, K, requires_grad=True)
    tags, lengths = torch.randint(K, (B, T)), torch.randint((T + 1) // 2, T + 1, (B,))
    mask = torch.arange(T) < lengths[:, None]  # (B, T)
    ours, peer = CRF(K), torchcrf.CRF(K, batch_first=True)
    peer.load_state_dict(ours.state_dict())

    def loss() -> list[Tensor]:
        total = ours.summed_nats(emissions, tags, lengths)
        return [total, *torch.autograd.grad(total, [emissions, ours.transitions])]

    def decode() -> list[list[int]]:
        paths = ours.decode(emissions, lengths)[0].tolist()
        return [path[:n] for path, n in zip(paths, lengths.tolist(), strict=True)]

    def peer_loss() -> list[Tensor]:
        total = -peer(emissions, tags, mask=mask, reduction="sum")
        return [total, *torch.autograd.grad(total, [emissions, peer.transitions])]

    def by_torch(run: Callable) -> Callable:
        def without_kernels() -> object:
            with patch.object(kernels, "can_take", lambda *tensors: False):
                return run()

        return without_kernels

    return {
        "unrolled": (loss, decode),
        "torch": (by_torch(loss), by_torch(decode)),
        "pytorch-crf": (peer_loss, lambda: peer.decode(emissions, mask=mask)),
    }


def check(each: dict[str, tuple[Loss, Decode]]) -> None:
    """All sides agree; pytorch-crf's sums grow with the sentence, and their rounding with them."""
    expected, paths = (run() for run in each["unrolled"])
    for name, (loss, decode) in each.items():
        allowed = 1e-3 if name == "pytorch-crf" else 1e-5
        for theirs, mine in zip(loss(), expected, strict=True):
            torch.testing.assert_close(theirs.double(), mine.double(), rtol=allowed, atol=allowed)
        assert decode() == paths


def best_times(runs: dict[str, Callable], rounds: int) -> dict[str, float]:
    """Milliseconds of each, the best of the rounds."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            begin = time.perf_counter()
            run()
            best[name] = min(best[name], 1e3 * (time.perf_counter() - begin))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(f"torch {torch.__version__}, {options.threads} threads, kernels {kernels.active()}\n")
    print("| sentences, words, tags | | unrolled | torch | ratio | pytorch-crf | ratio |")
    print("|---|---|---|---|---|---|---|")
    for size in SIZES:
        each = sides(*size)
        check(each)
        for number, what in enumerate(("loss and gradients", "best paths")):
            runs = {name: calls[number] for name, calls in each.items()}
            ours, *others = best_times(runs, options.rounds).values()
            cells = " | ".join(f"{ms:.2f} | {ms / ours:.0f}" for ms in others)
            print(f"| {', '.join(map(str, size))} | {what} | {ours:.2f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
