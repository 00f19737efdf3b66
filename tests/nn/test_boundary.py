"""Where tensors meet the kernels: what does not fit is refused or gives torch.nn's own numbers.

What could end the process runs in another one: a check that crashes fails, and the others go on.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import unrolled.nn as ours
from unrolled.errors import ConfigError
from unrolled.ngrams import kernels as ngram_kernels
from unrolled.nn import crf, output
from unrolled.text.tokens import END

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

TESTS = Path(__file__).parents[1]
T, B, E, H = 70, 2, 3, 5  # so many steps that the kernels multiply the inputs themselves
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
REFUSALS = (ConfigError, RuntimeError, ValueError, TypeError, IndexError)

every_kind = pytest.mark.parametrize("kind", GATES)


def rows() -> Tensor:
    return torch.randn(T, B, E)


def twins(kind: str, *sizes: int, **options: object) -> tuple[nn.Module, nn.Module]:
    """Our module and torch's with the same weights."""
    sizes = sizes or (E, H)
    mine = getattr(ours, kind)(*sizes, **options)
    theirs = getattr(nn, kind)(*sizes, **options)
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


def parts(result: Any) -> list[Tensor]:
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, PackedSequence):
        return [result.data]
    return [] if result is None else [t for part in result for t in parts(part)]


def both_ways(module: nn.Module, *call: Any, **more: Any) -> list[Tensor]:
    """Outputs, and gradients by x and by all parameters, of random weights on the outputs."""
    x = call[0].detach().clone().requires_grad_()
    outputs = parts(module(x, *call[1:], **more))
    generator = torch.Generator().manual_seed(2)
    upstream = [torch.randn(o.shape, generator=generator, dtype=torch.float64) for o in outputs]
    used = [x, *module.parameters()]
    found = torch.autograd.grad(
        outputs, used, [u.to(o) for u, o in zip(upstream, outputs, strict=True)]
    )
    return [*(o.detach() for o in outputs), *found]


def same(got: list[Tensor], expected: list[Tensor], tolerance: float = 1e-5) -> None:
    """Within the rounding of 70 steps, and of sums over them."""
    for g, e in zip(got, expected, strict=True):
        assert g.shape == e.shape
        limit = tolerance * max(1.0, e.abs().max().item()) if e.numel() else 0.0
        torch.testing.assert_close(g, e, rtol=0, atol=limit)


def outcome(run: Callable[[], Any]) -> Any:
    """What it gives, or the exception it raises."""
    try:
        return run()
    except REFUSALS as error:
        return error


def alike(mine: Callable[[], list[Tensor]], expected: Callable[[], list[Tensor]]) -> None:
    """Give what is expected, or refuse."""
    got = outcome(mine)
    if isinstance(got, Exception):
        clear(got)
    else:
        same(got, expected())


def clear(error: Exception) -> None:
    assert len(str(error)) > 10, f"it says no more than {error!r}"


def refused(run: Callable[[], Any], what: str = "it") -> None:
    got = outcome(run)
    assert isinstance(got, Exception), f"{what} was not refused and gave {type(got).__name__}"
    clear(got)


# ------------------------------------------------------------------ checks in another process

CHECKS: dict[str, Callable[[], None]] = {}


def survives(check: Callable[[], None]) -> Callable[[Callable[[str], None]], None]:
    """Make a test of a check that might crash."""
    CHECKS[check.__name__] = check

    def test(in_child: Callable[[str], None]) -> None:
        in_child(check.__name__)

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


def serve() -> None:
    """Fork for every name that comes in; say how it ended."""
    import torch._dynamo  # noqa: F401  what torch imports late, once for all children

    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as said:
            if not (child := os.fork()):
                _run(CHECKS[line.strip()], said.fileno())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            print(json.dumps([status, said.read()]), flush=True)


def _run(check: Callable[[], None], said: int) -> None:
    status = 1
    try:
        os.dup2(said, 1), os.dup2(said, 2)
        signal.alarm(60)
        torch.manual_seed(3)
        check()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush(), sys.stderr.flush()
        os._exit(status)


@pytest.fixture(scope="module")
def in_child() -> Iterator[Callable[[str], None]]:
    """Runs a check by its name in a process of its own, which has imported this file."""
    script = "from nn.test_boundary import serve; serve()"
    settings = os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=settings,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None

        def run(name: str) -> None:
            print(name, file=server.stdin, flush=True)
            status, said = json.loads(server.stdout.readline())
            if status < 0:
                pytest.fail(f"{signal.Signals(-status).name}: the process ended\n{said}")
            assert status == 0, said

        yield run
        server.stdin.close()


# ------------------------------------------------------------------ weights that do not fit


def replaced(kind: str, name: str, value: Tensor | None, like: Tensor | None = None) -> None:
    """A parameter set to another value: refused, or torch's numbers with the value it is `like`.

    torch.nn itself gets no value that does not fit: its own kernels read beyond such weights.
    """
    mine, theirs = twins(kind)
    call = (rows(),)
    setattr(mine, name, None if value is None else nn.Parameter(value))
    run = lambda: parts(mine(*call))  # noqa: E731
    if like is None:
        refused(run)
        refused(lambda: both_ways(mine, *call))
        return
    setattr(theirs, name, nn.Parameter(like))
    alike(run, lambda: parts(theirs(*call)))
    alike(lambda: both_ways(mine, *call)[:-4], lambda: both_ways(theirs, *call)[:-4])


@survives
def test_too_few_gates_in_a_functional_call():
    net = ours.GRU(8, 16)
    x, weight = torch.randn(70, 2, 8), torch.randn(32, 16)
    refused(lambda: functional_call(net, {"weight_hh_l0": weight}, (x,)))


@survives
def test_a_bias_of_one_number():
    for kind, gates in GATES.items():
        for name in ("bias_ih_l0", "bias_hh_l0"):
            for value in (torch.zeros(1), torch.ones(1)):
                replaced(kind, name, value, like=value.expand(gates * H).clone())


@survives
def test_the_gradient_of_a_bias_of_one_number():
    """It is as many times in the sum, if it is taken at all."""
    for kind, gates in GATES.items():
        mine, theirs = twins(kind)
        x = rows()
        mine.bias_hh_l0 = nn.Parameter(torch.ones(1))
        theirs.bias_hh_l0 = nn.Parameter(torch.ones(gates * H))
        upstream = torch.randn(T, B, H)

        def gradient(module: nn.Module, x: Tensor = x, u: Tensor = upstream) -> list[Tensor]:
            y, _ = module(x)
            (g,) = torch.autograd.grad(y, [module.bias_hh_l0], u)
            return [g.sum()]

        alike(lambda g=gradient, m=mine: g(m), lambda g=gradient, m=theirs: g(m))


@survives
def test_a_bias_of_wrong_size():
    for kind, gates in GATES.items():
        for name in ("bias_ih_l0", "bias_hh_l0"):
            for shape in ((gates * H - 1,), (gates * H + 1,), (0,), (H + 1,), (3, gates * H)):
                replaced(kind, name, torch.randn(shape))


@survives
def test_input_weights_of_wrong_shape():
    replaced("LSTM", "weight_ih_l0", torch.ones(20, 2))
    for kind, gates in GATES.items():
        G = gates * H
        for shape in ((G, E - 1), (G, E + 1), (G - 1, E), (G + 7, E), (G, 1), (0, E), (G,)):
            replaced(kind, "weight_ih_l0", torch.randn(shape))


@survives
def test_recurrent_weights_of_wrong_shape():
    replaced("GRU", "weight_hh_l0", torch.randn(15, 4))
    for kind, gates in GATES.items():
        G = gates * H
        for shape in ((G, H - 1), (G, H + 1), (G - 1, H), (G + 9, H), (G, 1), (G,), (0, 0)):
            replaced(kind, "weight_hh_l0", torch.randn(shape))


@survives
def test_one_bias_is_none():
    for kind, gates in GATES.items():
        for name in ("bias_ih_l0", "bias_hh_l0"):
            mine, theirs = twins(kind)
            setattr(mine, name, None)
            setattr(theirs, name, nn.Parameter(torch.zeros(gates * H)))
            call = (rows(),)
            alike(lambda m=mine, c=call: parts(m(*c)), lambda m=theirs, c=call: parts(m(*c)))
            outcome(lambda m=mine, c=call: both_ways(m, *c))


@survives
def test_a_weight_is_none():
    for kind in GATES:
        replaced(kind, "weight_ih_l0", None)
        replaced(kind, "weight_hh_l0", None)


@survives
def test_weights_of_another_type():
    for kind in GATES:
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            shape = getattr(twins(kind)[0], name).shape
            for dtype in (torch.float64, torch.float16, torch.bfloat16):
                value = torch.randn(shape).to(dtype)
                replaced(kind, name, value, like=value.float())


@survives
def test_weights_without_memory():
    """torch's zeros that are nowhere, as parameters."""
    for kind in GATES:
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            shape = getattr(twins(kind)[0], name).shape
            replaced(kind, name, torch._efficientzerotensor(shape), like=torch.zeros(shape))


@survives
def test_weights_with_the_negative_bit():
    for kind in GATES:
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            values = torch.randn(getattr(twins(kind)[0], name).shape)
            replaced(kind, name, torch._neg_view(-values), like=values)


@survives
def test_peepholes_of_wrong_shape():
    x = rows()
    for shape in ((1, H), (3, H - 1), (3, H + 3), (3,), (H,), (0, H)):
        net = ours.LSTM(E, H, peephole="full")
        net.peephole_l0 = nn.Parameter(torch.randn(shape))
        with ours.reference():
            expected = outcome(lambda net=net: both_ways(net, x))
        got = outcome(lambda net=net: both_ways(net, x))
        if not isinstance(got, Exception):
            assert not isinstance(expected, Exception), f"the reference raises {expected!r}"
            same(got, expected)


@survives
def test_another_hidden_size_on_a_large_layer():
    for value in (1, 4000):
        net = ours.GRU(3, 2000)
        net.hidden_size = value
        call = (torch.randn(3, 2, 3), torch.zeros(1, 2, value))
        refused(lambda net=net, c=call: net(*c))


@survives
def test_other_sizes_set_on_a_layer():
    """They are refused, or of no effect."""
    x = rows()
    for name, value in (
        *(("hidden_size", n) for n in (0, -1, 1, 4, 6)),
        *(("input_size", n) for n in (0, 2, 4)),
        *(("num_layers", n) for n in (0, 2)),
        ("bidirectional", True),
        ("proj_size", 2),
    ):
        net = ours.LSTM(E, H)
        expected = parts(net(x))

        def run(net: nn.Module = net, name: str = name, value: Any = value) -> list[Tensor]:
            setattr(net, name, value)
            return parts(net(x))

        alike(run, lambda expected=expected: expected)


# ------------------------------------------------------------------ operators called by hand


def layer_call() -> dict[str, Any]:
    """The arguments of a right call."""
    net = ours.GRU(E, H)
    tensors = [*(p.detach() for p in net.parameters()), torch.zeros(1, B, H)]
    x = torch.randn(B, T, E)
    full = torch.full((B,), T)
    return {
        "x": x,
        "lengths": full,
        "tensors": tensors,
        "cell": "GRUCell after keep",
        "directions": 1,
        "save": True,
    }


WRONG_ARGUMENTS = {
    "x": [torch.randn(T, E), torch.randn(B, T, E + 1), torch.randn(B, 0, E), torch.zeros(())],
    "lengths": [
        torch.tensor([T, T + 1]),
        torch.tensor([0, T]),
        torch.tensor([-5, T]),
        torch.tensor([T]),
        torch.tensor([T, 2**62]),
        torch.tensor([1.0, 2.0]),
        torch.tensor(T),
    ],
    "tensors": [
        [],
        [torch.randn(15, E)],
        [torch.randn(15, E), torch.randn(10, H), torch.zeros(1, B, H)],
        [torch.randn(14, E), torch.randn(15, H), torch.zeros(1, B, H)],
        [torch.randn(15, E), torch.randn(15, H), torch.zeros(1, B, H - 1)],
        [torch.randn(15, E), torch.randn(15, H), torch.zeros(0)],
        [torch.zeros(())] * 3,
        [torch.randn(15, E), torch.randn(15, H).double(), torch.zeros(1, B, H)],
    ],
    "cell": ["", "LSTMCell", "GRUCell after", "GRUCell none keep", "LSTMCell tanh none", "Cell x"],
    "directions": [0, 2, -1, 3, 2**40],
}


def arguments_of(operator: Any, known: dict[str, Any]) -> list[Any]:
    names = [argument.name for argument in operator._schema.arguments]
    assert set(names) <= set(known), f"the operator takes {names}: tell this test how"
    return [known[name] for name in names]


def wrong_calls(operator: Any, known: dict[str, Any], wrong: dict[str, list[Any]]) -> None:
    arguments_of(operator, known)
    for name, values in wrong.items():
        if name not in known:
            continue
        for k, value in enumerate(values):
            call = arguments_of(operator, known | {name: value})
            refused(lambda call=call: operator(*call), f"wrong {name} number {k}")


@survives
def test_the_operator_refuses_what_does_not_fit():
    if not ours.kernels.active():
        return
    wrong_calls(torch.ops.unrolled.layer.default, layer_call(), WRONG_ARGUMENTS)


@survives
def test_the_operator_back_refuses_what_does_not_fit():
    if not ours.kernels.active():
        return
    known = layer_call()
    made = torch.ops.unrolled.layer(*arguments_of(torch.ops.unrolled.layer.default, known))
    known |= {"kept": made[2:], "upstream": [torch.randn_like(t) for t in made[:2]]}
    back = torch.ops.unrolled.layer_backward.default
    back(*arguments_of(back, known))
    short = [t[:5] for t in made[2:]]
    thin = [t[:, :1] for t in made[2:]]
    kept = [[], made[2:3], short, thin, [t.double() for t in made[2:]], [torch.zeros(())] * 3]
    upstream = [
        [torch.randn(B, T, 1), None],
        [torch.randn(B, 1, H), None],
        [torch.randn(B, T, H).double(), None],
        [None, torch.randn(1, 1, 1)],
        [torch.zeros(()), torch.zeros(())],
        [],
    ]
    wrong_calls(back, known, WRONG_ARGUMENTS | {"kept": kept, "upstream": upstream})


# ------------------------------------------------------------------ other kernels


@survives
def test_places_by_token_before_stay_within_their_array():
    if ngram_kernels.COUNTER is None:
        return
    ids = np.array([END + 1, END + 2, END, END + 1, END], dtype=np.int32)
    counter = ngram_kernels.COUNTER(ids, END + 3)
    for value in (10**9, 2**40, -(2**40), -1, 5, 6):
        free = np.full(END + 3, value, dtype=np.int64)
        refused(lambda free=free: counter.by_token_before(free, np.zeros(5, dtype=np.int32)))


@survives
def test_a_level_of_ngrams_reads_no_place_outside_its_text():
    if ngram_kernels.COUNTER is None:
        return
    V, ids = END + 3, np.array([END + 1, END + 2, END, END + 1, END], dtype=np.int32)
    count = np.bincount(ids, minlength=V)
    count[END] = 0
    count[0] += 5 - count.sum()
    for far in (10**9, 5, -1, -(10**9)):
        places = np.array([0, 1, 2, 3, far], dtype=np.int32)
        new = [np.zeros(5, dtype=t) for t in (np.int32, np.int64, np.int32)]
        counter = ngram_kernels.COUNTER(ids, V)
        words, begin = np.arange(V, dtype=np.int32), np.zeros(V + 1, dtype=np.int64)
        for above in (None, np.zeros(5, dtype=np.int32)):
            call = (words, count, ids, places.copy(), above, *new, begin)
            refused(lambda counter=counter, call=call: counter.level(*call))


@survives
def test_chains_of_wrong_lengths_are_refused():
    scores, moves = torch.randn(3, 6, 4), torch.randn(4, 4)
    net = crf.CRF(4)
    tags = torch.zeros(3, 6, dtype=torch.int64)
    for wrong in ([0, 6, 1], [6, 7, 1], [6, -1, 1], [6, 1], [6, 1, 2**62], []):
        lengths = torch.tensor(wrong, dtype=torch.int64)
        for run in (
            lambda n: crf.crf_marginals(scores, moves, n),
            lambda n: crf.log_partition(scores, moves, n),
            lambda n: crf.n_best_paths(scores, moves, n, n=1),
            lambda n: crf.n_best_paths(scores, moves, n, n=2),
            lambda n: net.decode(scores, n),
            lambda n: net.nats(scores, tags, n),
            lambda n: net.summed_nats(scores, tags, n),
            lambda n: net.marginals(scores, n),
        ):
            refused(lambda run=run, lengths=lengths: run(lengths))


@survives
def test_chains_of_no_tags_rows_or_steps_do_not_crash():
    for shape in ((3, 6, 0), (0, 6, 4), (3, 0, 4), (0, 0, 0)):
        scores, moves = torch.randn(shape), torch.randn(shape[2], shape[2])
        lengths = torch.full((shape[0],), shape[1])
        outcome(lambda s=scores, m=moves, n=lengths: crf.crf_marginals(s, m, n))
        outcome(lambda s=scores, m=moves, n=lengths: crf.log_partition(s, m, n))
        outcome(lambda s=scores, m=moves, n=lengths: crf.n_best_paths(s, m, n, n=1))


@survives
def test_chains_with_the_negative_bit_and_without_memory():
    scores, lengths = torch.randn(3, 6, 4), torch.tensor([6, 1, 4])
    for moves in (torch._neg_view(torch.randn(4, 4)), torch._efficientzerotensor((4, 4))):
        plain = moves.resolve_neg() + 0.0
        for run in (
            lambda m: crf.crf_marginals(scores, m, lengths),
            lambda m: crf.log_partition(scores, m, lengths),
            lambda m: crf.n_best_paths(scores, m, lengths, n=1)[1],
        ):
            same(parts(run(moves)), parts(run(plain)))
    for emissions in (torch._neg_view(scores), torch._efficientzerotensor(scores.shape)):
        moves = torch.randn(4, 4)
        plain = emissions.resolve_neg() + 0.0
        same(
            parts(crf.crf_marginals(emissions, moves, lengths)),
            parts(crf.crf_marginals(plain, moves, lengths)),
        )


@survives
def test_targets_outside_the_vocabulary_are_refused():
    hidden, weight, bias = torch.randn(3, 2), torch.randn(5, 2), torch.randn(5)
    for wrong in (-1, 5, -100, 2**31, 2**62, -(2**62)):
        targets = torch.tensor([0, wrong, 4])
        refused(lambda t=targets: output.summed_nats(hidden, weight, bias, t))
        refused(lambda t=targets: output.token_nats(hidden, weight, bias, t))


@survives
def test_a_softmax_of_wrong_shapes():
    hidden, weight = torch.randn(3, 2), torch.randn(5, 2)
    for bias, targets in (
        (torch.randn(4), torch.tensor([0, 1, 2])),
        (torch.randn(6), torch.tensor([0, 1, 2])),
        (torch.randn(0), torch.tensor([0, 1, 2])),
        (torch.randn(5), torch.tensor([0, 1])),
        (torch.randn(5), torch.tensor([0, 1, 2, 3])),
        (torch.randn(5), torch.tensor(1)),
        (torch.randn(5), torch.tensor([[0, 1, 2]])),
    ):
        refused(lambda b=bias, t=targets: output.summed_nats(hidden, weight, b, t))


@survives
def test_a_softmax_with_the_negative_bit_and_without_memory():
    hidden, weight, targets = torch.randn(3, 2), torch.randn(5, 2), torch.tensor([0, 4, 2])
    for bias in (torch._neg_view(torch.randn(5)), torch._efficientzerotensor((5,))):
        plain = bias.resolve_neg() + 0.0
        same(
            [output.summed_nats(hidden, weight, bias, targets)],
            [output.summed_nats(hidden, weight, plain, targets)],
        )


# ------------------------------------------------------------------ states


@every_kind
def test_states_are_looked_at_before_torchs_own_forward(kind):
    """Which runs for other types, and asks whatever it is given for its axes."""
    mine, theirs = (net.bfloat16() for net in twins(kind))
    x, h = rows().bfloat16(), torch.randn(1, B, H).bfloat16()
    state = (h, h) if kind == "LSTM" else h
    same(parts(mine(x, state)), parts(theirs(x, state)))
    same(parts(mine(x, [h] * (2 if kind == "LSTM" else 1))), parts(theirs(x, state)))
    for hx, message in (
        ([[[0.0]]], "a value of hx is .* but must be a tensor"),
        (3, "hx is 3 of int, but must be a tensor"),
        ((h, h, h), "hx has 3 tensors, but must have"),
        ((), "hx has 0 tensors, but must have"),
    ):
        with pytest.raises(ConfigError, match=message):
            mine(x, hx)


# ------------------------------------------------------------------ what came out wrong in silence


@every_kind
def test_the_gradients_of_both_biases_are_tensors_of_their_own(kind):
    mine, theirs = twins(kind)
    x = rows()
    upstream = torch.randn(T, B, H)
    for module in (mine, theirs):
        module(x)[0].backward(upstream)
    assert mine.bias_ih_l0.grad.data_ptr() != mine.bias_hh_l0.grad.data_ptr()
    for module in (mine, theirs):
        nn.utils.clip_grad_norm_(module.parameters(), 0.1)
    same([p.grad for p in mine.parameters()], [p.grad for p in theirs.parameters()])
    before = mine.bias_hh_l0.grad.clone()
    mine.bias_ih_l0.grad.mul_(3.0)
    assert torch.equal(mine.bias_hh_l0.grad, before)


@every_kind
def test_gradients_asked_for_by_name_are_tensors_of_their_own(kind):
    net = getattr(ours, kind)(E, H, bidirectional=True)
    y, _ = net(rows())
    found = torch.autograd.grad(y, [*net.parameters()], torch.randn_like(y))
    assert len({g.data_ptr() for g in found}) == len(found)


@every_kind
@pytest.mark.parametrize("padding", ["left", "bogus"])
def test_padding_of_single_rows_and_packed_rows(kind, padding):
    """Nothing is padded there: the word is checked, and else of no effect."""
    net = getattr(ours, kind)(E, H)
    row, packed = torch.randn(T, E), pack_padded_sequence(rows(), torch.tensor([T, 9]))
    for x in (row, packed):
        got = outcome(lambda x=x: parts(net(x, padding=padding)))
        if padding == "bogus":
            assert isinstance(got, ConfigError)
            assert "padding is 'bogus'" in str(got)
        elif not isinstance(got, ConfigError):
            same(got, parts(net(x)))


def test_a_single_row_with_a_length_and_padded_left():
    net, row = ours.GRU(E, H), torch.randn(9, E)
    lengths = torch.tensor([4])
    got = outcome(lambda: net(row, lengths=lengths, padding="left"))
    if not isinstance(got, ConfigError):
        y, last = got
        expected, end = net(row[5:])
        same([y[5:], last], [expected, end])
        assert not y[:5].any()


@survives
def test_packed_rows_in_the_order_in_which_they_were_packed():
    """Rows of equal length may be sorted in any order: the output keeps that of the input."""
    for kind in GATES:
        mine, theirs = twins(kind)
        data = torch.randn(12, E)
        order = torch.tensor([1, 0, 2])
        packed = PackedSequence(data, torch.tensor([3, 3, 3, 3]), order, torch.argsort(order))
        y, last = mine(packed)
        expected, end = theirs(packed)
        same([y.data, *parts(last)], [expected.data, *parts(end)])
        assert torch.equal(y.batch_sizes, expected.batch_sizes)
        for name in ("sorted_indices", "unsorted_indices"):
            assert torch.equal(getattr(y, name), getattr(expected, name))
        same([pad_packed_sequence(y)[0]], [pad_packed_sequence(expected)[0]])


@survives
def test_packed_rows_with_a_state_keep_their_rows_apart():
    for kind in GATES:
        mine, theirs = twins(kind)
        x = torch.randn(6, 3, E)
        packed = pack_padded_sequence(x, torch.tensor([2, 6, 2]), enforce_sorted=False)
        h = torch.randn(1, 3, H)
        hx = (h, torch.randn(1, 3, H)) if kind == "LSTM" else h
        (y, last), (expected, end) = mine(packed, hx), theirs(packed, hx)
        same([y.data, *parts(last)], [expected.data, *parts(end)])


def test_packed_rows_without_an_order():
    for kind in GATES:
        mine, theirs = twins(kind)
        packed = pack_padded_sequence(torch.randn(6, 3, E), torch.tensor([6, 4, 4]))
        assert packed.sorted_indices is None
        (y, last), (expected, end) = mine(packed), theirs(packed)
        same([y.data, *parts(last)], [expected.data, *parts(end)])
        assert y.sorted_indices is None
        assert y.unsorted_indices is None


@survives
def test_packed_rows_whose_sizes_are_wrong():
    """torch's own way to read them would follow the sizes out of the data."""
    data = torch.randn(6, E)
    for sizes in ([3, 2, 2], [2, 3, 1], [6, -1, 1], [0, 3, 3], [], [10**9], [7]):
        net = ours.GRU(E, H)
        packed = PackedSequence(data, torch.tensor(sizes, dtype=torch.int64))
        refused(lambda net=net, p=packed: net(p), f"packed rows of {sizes}")


@survives
def test_packed_rows_for_torchs_own_code_with_states_of_other_shapes():
    """Which torch looks at for rows that are not packed alone."""
    for kind in GATES:
        net = getattr(ours, kind)(E, H, bidirectional=True, dtype=torch.bfloat16)
        packed = pack_padded_sequence(rows().bfloat16(), torch.tensor([T] * B))
        right, none = (torch.zeros(n, B, H, dtype=torch.bfloat16) for n in (2, 0))
        for hx in [(right, none), (none, right)] if kind == "LSTM" else [none]:
            refused(lambda net=net, p=packed, hx=hx: net(p, hx), "a state of no layers")
        sizes = PackedSequence(packed.data, packed.batch_sizes * 1000)
        refused(lambda net=net, p=sizes: net(p), "packed rows of wrong sizes")


@every_kind
def test_packed_rows_with_lengths_are_refused(kind):
    packed = pack_padded_sequence(rows(), torch.tensor([T, 9]))
    with pytest.raises(ConfigError, match="lengths"):
        getattr(ours, kind)(E, H)(packed, lengths=torch.tensor([T, 9]))


@every_kind
def test_dropout_set_later_takes_effect(kind):
    mine, theirs = twins(kind, E, H, 2, dropout=0.5)
    x = rows()
    mine.dropout = theirs.dropout = 0.0
    same(both_ways(mine, x), both_ways(theirs, x))
    mine.dropout = 0.5
    assert not torch.equal(mine(x)[0], mine(x)[0])


@survives
def test_states_with_the_negative_bit():
    for kind in GATES:
        mine, theirs = twins(kind)
        x = rows()
        h = torch.imag(torch.randn(1, B, H, dtype=torch.complex64).conj())
        assert h.is_neg()
        hx = (h, torch.imag(torch.randn(1, B, H, dtype=torch.complex64).conj()))
        hx = hx if kind == "LSTM" else h
        same(both_ways(mine, x, hx), both_ways(theirs, x, hx))
        contiguous = torch._neg_view(torch.randn(1, B, H))
        hx = (contiguous, contiguous) if kind == "LSTM" else contiguous
        same(both_ways(mine, x, hx), both_ways(theirs, x, hx))


@survives
def test_inputs_and_gradients_with_the_negative_bit():
    for kind in GATES:
        mine, theirs = twins(kind)
        x = torch._neg_view(rows())
        same(parts(mine(x)), parts(theirs(x)))
        upstream = torch._neg_view(torch.randn(T, B, H))
        for module in (mine, theirs):
            module(x)[0].backward(upstream)
        same([p.grad for p in mine.parameters()], [p.grad for p in theirs.parameters()])


@survives
def test_states_and_inputs_without_memory():
    for kind in GATES:
        mine, theirs = twins(kind)
        zero = torch._efficientzerotensor((1, B, H))
        hx = (zero, zero) if kind == "LSTM" else zero
        plain = (torch.zeros(1, B, H),) * 2 if kind == "LSTM" else torch.zeros(1, B, H)
        x = rows()
        same(parts(mine(x, hx)), parts(theirs(x, plain)))
        nothing = torch._efficientzerotensor((T, B, E))
        same(parts(mine(nothing)), parts(theirs(torch.zeros(T, B, E))))
        h = torch.randn(1, B, H)
        mixed, whole = ((h, zero), (h, plain[0])) if kind == "LSTM" else (h, h)
        same(parts(mine(nothing, mixed)), parts(theirs(torch.zeros(T, B, E), whole)))


@survives
def test_gradients_without_memory():
    for kind in GATES:
        mine, theirs = twins(kind)
        x = rows()
        for module, zeros in ((mine, torch._efficientzerotensor), (theirs, torch.zeros)):
            y, last = module(x)
            torch.manual_seed(5)
            upstream = [torch.randn_like(y), *(zeros(t.shape) for t in parts(last))]
            torch.autograd.backward([y, *parts(last)], upstream)
        same([p.grad for p in mine.parameters()], [p.grad for p in theirs.parameters()])


@survives
def test_expanded_and_overlapping_inputs():
    for kind in GATES:
        mine, theirs = twins(kind)
        for x in (
            torch.randn(1, B, E).expand(T, B, E),
            torch.randn(T, 1, E).expand(T, B, E),
            torch.randn(T, B, 1).expand(T, B, E),
            torch.randn(T + B, E).as_strided((T, B, E), (E, E, 1)),
            torch.randn(2 * T, B, 2 * E)[::2, :, ::2],
            torch.randn(E, B, T).permute(2, 1, 0),
        ):
            same(parts(mine(x)), parts(theirs(x)))
        h = torch.randn(1, 1, H).expand(1, B, H)
        hx = (h, h) if kind == "LSTM" else h
        x = rows()
        same(both_ways(mine, x, hx), both_ways(theirs, x, hx))


@every_kind
@pytest.mark.graph
@pytest.mark.parametrize("grad", [False, True])
def test_a_graph_of_tensors_is_right_on_other_inputs(kind, grad):
    from torch.fx.experimental.proxy_tensor import make_fx

    net = getattr(ours, kind)(E, H)
    x, other = rows(), rows()
    with torch.set_grad_enabled(grad):
        graph = make_fx(lambda x: net(x)[0])(x)
        same([graph(other).detach()], [net(other)[0].detach()])


@pytest.mark.graph
@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore::torch.jit.TracerWarning")
@every_kind
def test_a_traced_layer_is_right_for_other_lengths_or_refuses(kind):
    net = getattr(ours, kind)(E, H).requires_grad_(False)
    x, lengths = torch.randn(9, 3, E), torch.tensor([9, 4, 1])
    run = lambda x, lengths: net(x, lengths=lengths)[0]  # noqa: E731
    traced = outcome(lambda: torch.jit.trace(run, (x, lengths), check_trace=False))
    if isinstance(traced, Exception):
        assert "lengths" in str(traced)
        return
    for other in ([9, 4, 1], [1, 2, 3], [9, 9, 9], [5, 1, 9]):
        lengths = torch.tensor(other)
        same([traced(x, lengths)], [run(x, lengths)])


@every_kind
def test_the_reference_holds_in_other_threads(kind):
    """Autograd and data loaders run layers in threads that the caller did not start."""
    net = getattr(ours, kind)(E, H, dtype=torch.float64)
    x = rows().double().requires_grad_()
    found: list[Any] = []

    def twice() -> None:
        def second() -> Tensor:
            (first,) = torch.autograd.grad(net(x)[0].pow(2).sum(), x, create_graph=True)
            return torch.autograd.grad(first.sum(), x)[0]

        found.append(outcome(second))

    with ours.reference():
        twice()
        thread = threading.Thread(target=twice)
        thread.start()
        thread.join()
    same([found[1]], [found[0]], tolerance=1e-12)


@every_kind
def test_lengths_of_a_single_row(kind):
    net, row = getattr(ours, kind)(E, H), torch.randn(9, E)
    got = outcome(lambda: parts(net(row, lengths=torch.tensor([4]))))
    if not isinstance(got, ConfigError):
        expected = parts(net(row[:4]))
        same([got[0][:4], *got[1:]], expected)
        assert not got[0][4:].any()
    with pytest.raises(ConfigError, match="lengths"):
        net(row, lengths=torch.tensor([4, 2]))
