"""Recurrent layers against torch.nn, a Python loop and onnxruntime, in one run.

    python benchmarks/recurrent.py [--rounds N] [--only TEXT]

Each row is checked before it is timed: values and gradients of both sides must agree. Times are
the best of several rounds in which the sides take turns, so what else the machine does falls on
both. A training step is forward and backward with a random gradient, for inputs and all weights.
"""

import argparse
import io
import math
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from unrolled.nn import GRUCell, LSTMCell, Recurrent, RNNCell, kernels, reference
from unrolled.nn.cells import Cell

B, T = 32, 64
PEERS: dict[str, tuple[type[nn.RNNBase], Cell]] = {
    "LSTM": (nn.LSTM, LSTMCell()),
    "GRU": (nn.GRU, GRUCell()),
    "RNN": (nn.RNN, RNNCell()),
}
VARIANTS: dict[str, Cell] = {
    "GRU, reset before": GRUCell(reset="before"),
    "LSTM, peepholes": LSTMCell(peephole="full"),
    "RNN, leaky ReLU": RNNCell("leaky_relu"),
}


class Row(NamedTuple):
    """One line of the table."""

    case: str
    ours: float  # seconds
    peer: float
    against: str
    goal: float

    @property
    def ratio(self) -> float:
        return self.peer / self.ours


def lengths_of(rows: int, *, dense: bool) -> Tensor:
    """All T, or uniform in 16..T with one row of T."""
    if dense:
        return torch.full((rows,), T)
    lengths = torch.randint(16, T + 1, (rows,), generator=torch.Generator().manual_seed(1))
    lengths[0] = T
    return lengths


def best_times(sides: list[Callable[[], object]], rounds: int, turn: int = 3) -> list[float]:
    """The best time of each side over rounds in which they take turns.

    A turn is several runs: threads that wait for more work spin for a while, those of onnxruntime
    for tens of milliseconds, and the first runs are still disturbed by the side before.
    """
    best = [math.inf] * len(sides)
    for _ in range(rounds):
        for index, side in enumerate(sides):
            for _ in range(turn):
                begun = time.perf_counter()
                side()
                best[index] = min(best[index], time.perf_counter() - begun)
    return best


def copied(net: nn.RNNBase, cell: Cell) -> Recurrent:
    """Our layer with the weights of torch's."""
    ours = Recurrent(
        net.input_size,
        net.hidden_size,
        cell=cell,
        layers=net.num_layers,
        bidirectional=net.bidirectional,
    )
    ours.load_state_dict(net.state_dict())
    return ours


def torch_output(net: nn.RNNBase, x: Tensor, lengths: Tensor) -> Tensor:
    """torch.nn as its documentation says: packed where rows differ in length."""
    if bool((lengths == x.size(1)).all()):
        return net(x)[0]
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    return pad_packed_sequence(net(packed)[0], batch_first=True)[0]


def step(output: Callable[[], Tensor], upstream: Tensor, leaves: list[Tensor]) -> list[Tensor]:
    """One training step: y and the gradients of inputs and weights."""
    y = output()
    return [y, *torch.autograd.grad(y, leaves, upstream)]


def check(ours: list[Tensor], peers: list[Tensor], case: str, allowed: float = 2e-4) -> None:
    """Both sides must say the same before they are timed."""
    for mine, other in zip(ours, peers, strict=True):
        scale = float(other.detach().abs().max()) + 1e-6
        worst = float((mine - other).detach().abs().max()) / scale
        assert worst < allowed, f"{case}: the two sides differ by {worst:.2e} of the largest value"


def training_row(
    case: str, name: str, H: int, *, dense: bool, bidirectional: bool, goal: float, rounds: int
) -> list[Row]:
    """A training step of a layer of ours and of torch.nn."""
    kind, cell = PEERS[name]
    peer = kind(H, H, batch_first=True, bidirectional=bidirectional)
    ours = copied(peer, cell)
    lengths = lengths_of(B, dense=dense)
    x = torch.randn(B, T, H, requires_grad=True)
    real = torch.arange(T) < lengths[:, None]
    upstream = torch.randn(B, T, H * (2 if bidirectional else 1)) * real[..., None]
    given = None if dense else lengths
    mine = lambda: step(lambda: ours(x, given)[0], upstream, [x, *ours.parameters()])  # noqa: E731
    other = lambda: step(  # noqa: E731
        lambda: torch_output(peer, x, lengths), upstream, [x, *peer.parameters()]
    )
    check(mine(), other(), case)
    return [Row(case, *best_times([mine, other], rounds), "torch.nn", goal)]


def variant_row(case: str, name: str, H: int, rounds: int) -> list[Row]:
    """A variant that torch.nn lacks, against the loop over its equations."""
    ours = Recurrent(H, H, cell=VARIANTS[name])
    check(*(side() for side in variant_sides(ours.double())), name, allowed=1e-11)
    mine, loop = variant_sides(ours.float())
    check(mine()[:1], loop()[:1], name)  # y alone: see variant_sides
    return [Row(case, *best_times([mine, loop], rounds), "Python loop", 10.0)]


def variant_sides(ours: Recurrent) -> tuple[Callable[[], list[Tensor]], Callable[[], list[Tensor]]]:
    """A training step by the kernels and by the loop, in the layer's own precision.

    Of the half a million pre-activations of a leaky ReLU, some are so near 0 that two orders of
    summation in float32 put them on either side of it, with derivatives of 1 and of 0.01: only in
    float64 can the gradients be compared.
    """
    H, like, lengths = ours.hidden_size, ours.weight_hh_l0, lengths_of(B, dense=False)
    x = torch.randn(B, T, H, dtype=like.dtype, requires_grad=True)
    upstream, leaves = torch.randn(B, T, H, dtype=like.dtype), [x, *ours.parameters()]

    def mine() -> list[Tensor]:
        return step(lambda: ours(x, lengths)[0], upstream, leaves)

    def loop() -> list[Tensor]:
        with reference():
            return mine()

    return mine, loop


def onnx_session(net: nn.RNNBase, x: Tensor) -> Callable[[], object] | None:
    """The same layer in onnxruntime, where it is installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    buffer = io.BytesIO()
    torch.onnx.export(net, (x,), buffer, input_names=["x"], dynamo=False)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    session = onnxruntime.InferenceSession(buffer.getvalue(), options)
    feed = {"x": x.numpy()}
    return lambda: session.run(None, feed)


def inference_rows(case: str, name: str, rows: int, H: int, rounds: int) -> list[Row]:
    """A layer without gradients, against the better of torch.nn and onnxruntime.

    A session of onnxruntime has its weights prepared; a layer of ours may have, too.
    """
    kind, cell = PEERS[name]
    peer = kind(H, H, batch_first=True)
    ours, x = copied(peer, cell), torch.randn(rows, T, H)
    prepared, session = ours.prepared(), onnx_session(peer, x)
    with torch.inference_mode():
        check([ours(x)[0], prepared.run(x)[0]], [peer(x)[0]] * 2, name)
        sides = [lambda: ours(x), lambda: prepared.run(x), lambda: peer(x)]
        plain, ready, *others = best_times(
            [*sides, *([session] if session else [])], rounds, turn=10
        )
    best = min(others)
    against = "torch.nn" if best == others[0] else "onnxruntime"
    times = {case: plain, f"{case}, prepared": ready}
    return [Row(each, mine, best, against, 1.0) for each, mine in times.items()]


def step_row(case: str, rows: int, H: int, rounds: int) -> list[Row]:
    """One step of decoding with prepared weights, against the better of torch's two ways."""
    peer, alone = nn.LSTM(H, H, batch_first=True), nn.LSTMCell(H, H)
    ours, x = copied(peer, LSTMCell()), torch.randn(rows, H)
    alone.load_state_dict({k.removesuffix("_l0"): v for k, v in peer.state_dict().items()})
    prepared, state = ours.prepared(), ours.start(rows)
    h, c = (s[0] for s in state)
    with torch.inference_mode():
        check([prepared.step(x, state)[0]], [peer(x[:, None], state)[0][:, 0]], "step")
        sides = [
            lambda: prepared.step(x, state),
            lambda: peer(x[:, None], state),
            lambda: alone(x, (h, c)),
        ]
        mine, *others = best_times(sides, 10 * rounds)
    against = "torch.nn.LSTM" if min(others) == others[0] else "torch.nn.LSTMCell"
    return [Row(case, mine, min(others), against, 1.0)]


def matmul_rate(rounds: int) -> float:
    """FLOP a second of the machine's own large matrix product."""
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    (best,) = best_times([lambda: a @ b], rounds)
    return 2 * 2048**3 / best


def rate_row(case: str, name: str, H: int, rounds: int) -> list[Row]:
    """Dense training: time at the rate of the large product against the time it takes."""
    ours = Recurrent(H, H, cell=PEERS[name][1])
    x = torch.randn(B, T, H, requires_grad=True)
    upstream = torch.randn(B, T, H)
    gates = ours.cell.gates
    flops = 6 * 2 * B * T * gates * H * H  # two products forward, four backward
    a, b = torch.randn(2048, 2048), torch.randn(2048, 2048)
    mine = lambda: step(lambda: ours(x)[0], upstream, [x, *ours.parameters()])  # noqa: E731
    took, product = best_times([mine, lambda: a @ b], rounds)
    ideal = flops / (2 * 2048**3 / product)
    return [Row(case, took, ideal, "large product", 0.75)]


def growth_rows(rounds: int) -> Iterator[str]:
    """Microseconds of a training step a token, over T, B and H."""
    yield "| what grows | microseconds a token |\n|---|---|"
    cases = {
        "T = 16, 64, 256, 1024 (LSTM 128, B = 32)": [(32, t, 128) for t in (16, 64, 256, 1024)],
        "B = 8, 32, 128, 512 (LSTM 128, T = 64)": [(b, 64, 128) for b in (8, 32, 128, 512)],
        "H = 64, 128, 256, 512 (LSTM, B = 32, T = 64)": [(32, 64, h) for h in (64, 128, 256, 512)],
    }
    for what, shapes in cases.items():
        times = []
        for rows, steps, H in shapes:
            ours = Recurrent(H, H, cell=LSTMCell())
            x = torch.randn(rows, steps, H, requires_grad=True)
            upstream = torch.randn(rows, steps, H)
            leaves = [x, *ours.parameters()]
            (took,) = best_times([lambda: step(lambda: ours(x)[0], upstream, leaves)], rounds)  # noqa: B023
            times.append(f"{took / rows / steps * 1e6:.2f}")
        yield f"| {what} | {', '.join(times)} |"


Make = Callable[..., list[Row]]


def cases(rounds: int) -> Iterator[tuple[str, Make, tuple[object, ...], dict[str, object]]]:
    """Every comparison: its name, and what measures it with which arguments."""
    sizes = [(64, 3.0), (128, 3.0), (256, 3.0), (512, 1.5), (650, 1.5)]
    for H, goal in sizes:
        for name in PEERS:
            for both in (False, True):
                case = f"{name} {H}{' bi' if both else ''}, ragged"
                how = {"goal": goal, "rounds": rounds // (1 if H <= 256 else 2)}
                yield case, training_row, (name, H), how | {"dense": False, "bidirectional": both}
    how = {"rounds": rounds, "dense": True, "bidirectional": False}
    for H, _ in sizes:
        yield f"LSTM {H}, dense", training_row, ("LSTM", H), how | {"goal": 1.0}
    for H in (64, 128, 256):
        for name in ("GRU", "RNN"):
            yield f"{name} {H}, dense", training_row, (name, H), how | {"goal": 2.5}
    for name in VARIANTS:
        for H in (64, 128, 256):
            yield f"{name} {H}, ragged", variant_row, (name, H, rounds // 2), {}
    for name in PEERS:
        for H in (128, 256, 512):
            for batch in (1, 32):
                case = f"{name} {H}, inference, B = {batch}"
                yield case, inference_rows, (name, batch, H, rounds), {}
    for H in (256, 512):
        for N in (1, 4, 32, 320):
            yield f"LSTM {H}, one step, N = {N}", step_row, (N, H, rounds), {}
    for H in (256, 512, 650):
        for name in PEERS:
            yield f"{name} {H}, dense, arithmetic rate", rate_row, (name, H, rounds), {}


def rows(rounds: int, only: str) -> Iterator[Row]:
    """What is measured, of the cases whose name holds a text."""
    for case, make, arguments, options in cases(rounds):
        if only in case:
            yield from make(case, *arguments, **options)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", default="", help="rows whose case holds this text")
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    print(f"kernels: {kernels.active() or 'none'}; threads: {torch.get_num_threads()}")
    print(f"the machine's large product: {matmul_rate(options.rounds) / 1e9:.0f} GFLOP/s\n")
    print("| case | ours, ms | against | peer, ms | ratio | goal | met |")
    print("|---" * 7 + "|")
    ragged = []
    for row in rows(options.rounds, options.only):
        met = "yes" if row.ratio >= row.goal else "NO"
        print(
            f"| {row.case} | {row.ours * 1e3:.2f} | {row.against} | {row.peer * 1e3:.2f} "
            f"| {row.ratio:.2f} | {row.goal:g} | {met} |",
            flush=True,
        )
        if row.goal == 3.0:
            ragged.append(row.ratio)
    if ragged:
        mean = math.exp(sum(map(math.log, ragged)) / len(ragged))
        print(f"\nGeometric mean of the ragged rows up to 256 units: {mean:.2f} (goal 4).")
    if not options.only:
        print()
        print("\n".join(growth_rows(max(3, options.rounds // 4))))


if __name__ == "__main__":
    main()
