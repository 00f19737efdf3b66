"""What code written for torch.nn.LSTM, GRU and RNN relies on, feature by feature.

FEATURES is the table: SAME where ours does what torch.nn does, REFUSED where it says that it does
not, and DIFFERENT, with the reason, where it does something else. A feature's function returns what
ours gives and what is right; for REFUSED what ours is asked and None. Nothing in it is written
twice: who changes a behaviour changes a word here, and the documentation is held against it.
Where the compiled kernels are not there, a line may say another verdict for that.
"""

import copy
import io
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from kernel_checks import needs_kernels
from networks import VARIANTS, build, random
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.func import functional_call
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import unrolled.nn as ours
from unrolled.errors import ConfigError
from unrolled.nn import GRUCell, LSTMCell, RNNCell, kernels, reference

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

T, B, E, H = 7, 2, 3, 5
KINDS = ("LSTM", "GRU", "RNN")
ALL_KINDS = "UNROLLED_SLOW" in os.environ  # of graphs, too
LENGTHS = torch.tensor([4, 7])
TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}
REFUSALS = (ConfigError, RuntimeError, ValueError, TypeError, IndexError, NotImplementedError)
SAME, REFUSED, DIFFERENT = "same", "refused", "different"
VARIANT = {
    "LSTM": {"peephole": "full"},
    "GRU": {"reset": "before"},
    "RNN": {"nonlinearity": "sigmoid"},
}

Check = Callable[[str], tuple[Callable[[], Any], Callable[[], Any] | None]]


@dataclass(frozen=True)
class Feature:
    """A line of the table."""

    verdict: str
    check: Check
    kinds: tuple[str, ...]
    reason: str
    graph: bool
    without: str  # the verdict where there are no kernels

    @property
    def holds(self) -> str:
        """The verdict here."""
        return self.verdict if kernels.active() else self.without

    @property
    def why(self) -> str:
        """The reason, and what is otherwise without kernels."""
        other = f"without the kernels: {self.without}" if self.without != self.verdict else ""
        return "; ".join(part for part in (self.reason, other) if part)


FEATURES: dict[str, Feature] = {}


def feature(
    name: str,
    verdict: str = SAME,
    *,
    kinds: tuple[str, ...] = KINDS,
    reason: str = "",
    graph: bool = False,
    without: str = "",
) -> Callable[[Check], Check]:
    """Put a line into the table; graph: torch makes one of what runs.

    without: the verdict where there are no kernels, if it is another one.
    """

    def add(check: Check) -> Check:
        assert name not in FEATURES
        assert bool(reason) == (verdict == DIFFERENT), "a difference has a reason"
        FEATURES[name] = Feature(verdict, check, kinds, reason, graph, without or verdict)
        return check

    return add


# ------------------------------------------------------------------ what the features share


def twins(kind: str, *sizes: Any, **options: Any) -> tuple[Any, Any]:
    """Our module and torch's with the same weights."""
    sizes = sizes or (E, H)
    mine, theirs = getattr(ours, kind)(*sizes, **options), getattr(nn, kind)(*sizes, **options)
    theirs.load_state_dict(mine.state_dict())
    return mine, theirs


def wide(kind: str, *sizes: Any, **options: Any) -> tuple[Any, Any]:
    """The same in float64, in which torch differentiates twice."""
    return twins(kind, *sizes, dtype=torch.float64, **options)


def flat(value: Any) -> list[Any]:
    """Tensors, and whatever else there is, in order."""
    if isinstance(value, PackedSequence):
        return [value.data]
    if isinstance(value, dict):
        return flat([*value.values()])
    if isinstance(value, tuple | list):
        return [part for element in value for part in flat(element)]
    return [value]


def assert_same(got: Any, expected: Any) -> None:
    for g, e in zip(flat(got), flat(expected), strict=True):
        if not isinstance(e, Tensor):
            assert g == e
            continue
        assert isinstance(g, Tensor)
        assert g.shape == e.shape
        assert g.dtype == e.dtype
        if e.numel():
            limit = TOLERANCE[e.dtype] * max(1.0, e.abs().max().item())
            torch.testing.assert_close(g.detach(), e.detach(), rtol=0, atol=limit)


def rows(dtype: torch.dtype = torch.float32, *, steps: int = T) -> Tensor:
    return torch.randn(steps, B, E, dtype=dtype)


def state_of(kind: str, dtype: torch.dtype = torch.float32) -> Any:
    h, c = torch.randn(2, 1, B, H, dtype=dtype)
    return (h, c) if kind == "LSTM" else h


def weighted(outputs: Any) -> Tensor:
    """A sum of all outputs with random weights."""
    generator = torch.Generator().manual_seed(2)
    tensors = flat(outputs)
    weights = [torch.randn(t.shape, generator=generator, dtype=torch.float64) for t in tensors]
    return sum((w.to(t) * t).sum() for w, t in zip(weights, tensors, strict=True))


def gradients(module: nn.Module, *call: Any, **more: Any) -> list[Tensor]:
    """Outputs, and gradients by all parameters, of random weights on the outputs."""
    outputs = flat(module(*call, **more))
    found = torch.autograd.grad(weighted(outputs), [*module.parameters()])
    return [*outputs, *found]


def both(mine: nn.Module, theirs: nn.Module, *call: Any) -> tuple[Any, Any]:
    """Ours and torch's, with gradients."""
    return lambda: gradients(mine, *call), lambda: gradients(theirs, *call)


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings that torch has for its own old parts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def quietly(run: Callable[[], Any]) -> Callable[[], Any]:
    def wrapped() -> Any:
        with quiet():
            return run()

    return wrapped


class Model(nn.Module):
    """A user's model with a recurrent layer in it."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn
        self.out = nn.Linear(H, 2)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        return self.out(y)


# ------------------------------------------------------------------ the class and its attributes


@feature("isinstance of torch.nn's class")
def _(kind: str):
    mine, theirs = twins(kind)
    kinds = (nn.Module, nn.RNNBase, getattr(nn, kind))
    return lambda: [isinstance(mine, k) for k in kinds], lambda: [
        isinstance(theirs, k) for k in kinds
    ]


NAMES = ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout")


@feature("constructor arguments as attributes")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, batch_first=True, dropout=0.25, bidirectional=True)
    names = (*NAMES, "bidirectional", "proj_size", "mode")
    return lambda: [getattr(mine, n) for n in names], lambda: [getattr(theirs, n) for n in names]


@feature("_all_weights, _flat_weights_names")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    return lambda: [mine._all_weights, mine._flat_weights_names], lambda: [
        theirs._all_weights,
        theirs._flat_weights_names,
    ]


@feature("all_weights, _flat_weights")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)

    def run(m: Any) -> list[Any]:
        own = [id(p) for p in m.parameters()]
        return [m.all_weights, m._flat_weights, [id(p) for p in m._flat_weights] == own]

    return lambda: run(mine), lambda: run(theirs)


@feature("flatten_parameters")
def _(kind: str):
    mine, theirs = twins(kind)
    return mine.flatten_parameters, theirs.flatten_parameters


@feature("proj_size", kinds=("LSTM",))
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True, proj_size=2)
    x = rows()
    return quietly(lambda: gradients(mine, x)), quietly(lambda: gradients(theirs, x))


@feature("positional device and dtype", kinds=("LSTM",))
def _(kind: str):
    mine, theirs = twins(kind, E, H, 1, True, False, 0.0, False, 0, "cpu", torch.float64)
    return both(mine, theirs, rows(torch.float64))


@feature(
    "positional device and dtype, as documented",
    DIFFERENT,
    kinds=("GRU", "RNN"),
    reason="torch.nn documents them after bidirectional, but takes a proj_size before them",
)
def _(kind: str):
    own = ("tanh",) if kind == "RNN" else ()
    sizes = (E, H, 1, *own, True, False, 0.0, False, "cpu", torch.float64)
    mine = getattr(ours, kind)(*sizes)
    theirs = getattr(nn, kind)(*sizes[:-2], dtype=torch.float64)
    theirs.load_state_dict(mine.state_dict())
    return both(mine, theirs, rows(torch.float64))


@feature("a size of 0 or layers of 0", REFUSED)
def _(kind: str):
    return lambda: getattr(ours, kind)(E, 0), None


@feature("bias that is no bool", REFUSED)
def _(kind: str):
    return lambda: getattr(ours, kind)(E, H, bias=1), None


@feature("skip_init", DIFFERENT, reason="torch.nn's own hide their device from it")
def _(kind: str):
    def shapes(module: nn.Module) -> list[Any]:
        return [(n, tuple(p.shape)) for n, p in module.named_parameters()]

    return lambda: shapes(nn.utils.skip_init(getattr(ours, kind), E, H, 2)), lambda: shapes(
        getattr(nn, kind)(E, H, 2)
    )


@feature("loops over named_parameters that initialise")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2)
    for module in (mine, theirs):
        torch.manual_seed(8)
        for name, parameter in module.named_parameters():
            if "weight_hh" in name:
                nn.init.orthogonal_(parameter)
            elif "weight" in name:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.uniform_(parameter)
    return both(mine, theirs, rows())


@feature("reset_parameters draws what torch draws")
def _(kind: str):
    def drawn(module: nn.Module) -> list[Tensor]:
        torch.manual_seed(9)
        module.reset_parameters()
        return [*module.parameters()]

    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    return lambda: drawn(mine), lambda: drawn(theirs)


@feature("state_dict, both ways")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    mine.reset_parameters()
    theirs.load_state_dict(mine.state_dict())
    theirs.reset_parameters()
    mine.load_state_dict(theirs.state_dict())
    return both(mine, theirs, rows())


@feature("weights computed from raw ones: weight drop")
def _(kind: str):
    mine, theirs = twins(kind)
    for module in (mine, theirs):
        raw = module.weight_hh_l0.detach().clone()
        del module._parameters["weight_hh_l0"]
        module.register_parameter("weight_hh_l0_raw", nn.Parameter(raw))

    def run(module: Any) -> list[Tensor]:
        found = []
        for scale in (1.0, 0.5):  # each call computes them anew
            module.weight_hh_l0 = module.weight_hh_l0_raw * scale
            found += gradients(module, x)
        return found

    x = rows()
    return lambda: run(mine), lambda: run(theirs)


def parametrized(kind: str, register: Callable[..., Any]) -> tuple[Any, Any]:
    mine, theirs = twins(kind)
    for module in (mine, theirs):
        torch.manual_seed(4)
        register(module, "weight_hh_l0")
    theirs.load_state_dict(mine.state_dict())
    mine.eval(), theirs.eval()  # spectral_norm goes on while training
    return both(mine, theirs, rows())


@feature("parametrizations.weight_norm")
def _(kind: str):
    return parametrized(kind, parametrizations.weight_norm)


@feature("parametrizations.spectral_norm")
def _(kind: str):
    return parametrized(kind, parametrizations.spectral_norm)


@feature("parametrizations.orthogonal")
def _(kind: str):
    return parametrized(kind, parametrizations.orthogonal)


@feature("a parameter replaced by another")
def _(kind: str):
    mine, theirs = twins(kind)
    weight = torch.randn_like(mine.weight_hh_l0)
    for module in (mine, theirs):
        module.weight_hh_l0 = nn.Parameter(weight.clone())
    return both(mine, theirs, rows())


@feature("deepcopy")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()
    other = copy.deepcopy(mine)
    with torch.no_grad():
        mine.weight_hh_l0.zero_()
    return lambda: gradients(other, x), lambda: gradients(theirs, x)


@feature("copy.copy shares the parameters")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run(module: nn.Module) -> list[Any]:
        other = copy.copy(module)
        with torch.no_grad():
            module.weight_hh_l0.mul_(0.5)
        return [*gradients(other, x), other.weight_hh_l0 is module.weight_hh_l0]

    return lambda: run(mine), lambda: run(theirs)


@feature("pickle of the module")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2)
    x = rows()
    return lambda: gradients(pickle.loads(pickle.dumps(mine)), x), lambda: gradients(theirs, x)


@feature("torch.save and torch.load of the module")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run() -> list[Tensor]:
        file = io.BytesIO()
        torch.save(mine, file)
        file.seek(0)
        return gradients(torch.load(file, weights_only=False), x)

    return run, lambda: gradients(theirs, x)


@feature("from the meta device by to_empty")
def _(kind: str):
    _, theirs = twins(kind, E, H, 2)
    mine = getattr(ours, kind)(E, H, 2, device="meta").to_empty(device="cpu")
    mine.load_state_dict(theirs.state_dict())
    return both(mine, theirs, rows())


@feature("shapes on the meta device")
def _(kind: str):
    def run(package: Any) -> list[Any]:
        module = getattr(package, kind)(E, H, 2, bidirectional=True, device="meta")
        return [tuple(t.shape) for t in flat(module(rows().to("meta")))]

    return lambda: run(ours), lambda: run(nn)


@feature("double")
def _(kind: str):
    mine, theirs = twins(kind)
    return both(mine.double(), theirs.double(), rows(torch.float64))


def narrow(kind: str, dtype: torch.dtype) -> tuple[Any, Any]:
    mine, theirs = twins(kind)
    x = rows().to(dtype)

    def run(module: nn.Module) -> list[Any]:
        try:
            return [(t.dtype, tuple(t.shape)) for t in flat(module.to(dtype)(x))]
        except REFUSALS as error:
            return [RuntimeError if isinstance(error, RuntimeError) else type(error)]

    return lambda: run(mine), lambda: run(theirs)


@feature("half: types and shapes, or torch's refusal")
def _(kind: str):
    return narrow(kind, torch.float16)


@feature("bfloat16: types and shapes, or torch's refusal")
def _(kind: str):
    return narrow(kind, torch.bfloat16)


@feature("share_memory")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run(module: nn.Module) -> list[Any]:
        module.share_memory()
        return [*gradients(module, x), all(p.is_shared() for p in module.parameters())]

    return lambda: run(mine), lambda: run(theirs)


@feature("requires_grad_(False)")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run(module: nn.Module) -> list[Any]:
        y, _ = module.requires_grad_(False)(x)
        return [y, y.requires_grad]

    return lambda: run(mine), lambda: run(theirs)


@feature("some parameters frozen")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run(module: nn.Module) -> list[Any]:
        module.weight_hh_l0.requires_grad_(False)
        module.zero_grad()
        weighted(module(x)).backward()
        return [None if p.grad is None else p.grad for p in module.parameters()]

    return lambda: run(mine), lambda: run(theirs)


@feature("hooks: before, after and back")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows().requires_grad_()

    def run(module: nn.Module) -> list[Any]:
        seen: list[Any] = []
        module.register_forward_pre_hook(lambda m, args: (args[0] * 2, *args[1:]))
        module.register_forward_hook(lambda m, args, out: seen.append(flat(out)))
        module.register_full_backward_hook(lambda m, into, out: seen.append([into[0], out[0]]))
        y, _ = module(x)
        (y * y).sum().backward()
        return seen

    return lambda: run(mine), lambda: run(theirs)


# ------------------------------------------------------------------ forms of a call


@feature("input= by name")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()
    return lambda: mine(input=x), lambda: theirs(input=x)


@feature("hx= by name, and as a list")
def _(kind: str):
    mine, theirs = twins(kind)
    x, hx = rows(), state_of(kind)
    given = [*hx] if kind == "LSTM" else hx
    return lambda: mine(x, hx=given), lambda: theirs(x, hx=given)


@feature("a batch of no rows")
def _(kind: str):
    mine, theirs = twins(kind)
    x = torch.randn(T, 0, E)
    return lambda: mine(x), lambda: theirs(x)


@feature("packed rows")
def _(kind: str):
    mine, theirs = twins(kind)
    packed = pack_padded_sequence(rows(), LENGTHS, enforce_sorted=False)
    return both(mine, theirs, packed)


@feature("a state that needs gradients, carried on")
def _(kind: str):
    mine, theirs = twins(kind)
    x = rows()

    def run(module: nn.Module) -> list[Tensor]:
        first, state = module(x)
        second, _ = module(x, state)
        return [first, *torch.autograd.grad(weighted([first, second]), [*module.parameters()])]

    return lambda: run(mine), lambda: run(theirs)


@feature("dropout=1.0")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, dropout=1.0)
    return both(mine.train(), theirs.train(), rows())


@feature("dropout set after construction")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, dropout=0.5)
    mine.dropout = theirs.dropout = 0.0
    return both(mine.train(), theirs.train(), rows())


def by_lengths(lengths: Any) -> Check:
    def check(kind: str) -> tuple[Any, Any]:
        mine, _ = twins(kind)
        x = rows()
        return lambda: mine(x, lengths=lengths), lambda: mine(x, lengths=LENGTHS)

    return check


NO_LENGTHS = "torch.nn takes no lengths"
feature("lengths as a list", DIFFERENT, reason=NO_LENGTHS)(by_lengths([4, 7]))
feature("lengths as a tuple", DIFFERENT, reason=NO_LENGTHS)(by_lengths((4, 7)))
feature("lengths as int32", DIFFERENT, reason=NO_LENGTHS)(by_lengths(LENGTHS.int()))
feature("lengths of numpy", DIFFERENT, reason=NO_LENGTHS)(by_lengths(np.array([4, 7])))


@feature("to_torch shares the parameters", DIFFERENT, reason="torch.nn has no such method")
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    x = rows()

    def run() -> list[Any]:
        twin = mine.to_torch()
        shared = [a is b for a, b in zip(mine.parameters(), twin.parameters(), strict=True)]
        return [*gradients(twin, x), type(twin) is getattr(nn, kind), all(shared)]

    return run, lambda: [*gradients(theirs, x), True, True]


@feature("to_torch of a variant", REFUSED)
def _(kind: str):
    return getattr(ours, kind)(E, H, **VARIANT[kind]).to_torch, None


# ------------------------------------------------------------------ second derivatives


@feature("Hessian-vector products")
def _(kind: str):
    mine, theirs = wide(kind)
    x, v = rows(torch.float64), rows(torch.float64)

    def run(module: nn.Module) -> Any:
        return torch.autograd.functional.hvp(lambda x: weighted(module(x)).sin(), x, v)

    return lambda: run(mine), lambda: run(theirs)


@feature("a gradient penalty")
def _(kind: str):
    mine, theirs = wide(kind, E, H, 2, bidirectional=True)
    x = rows(torch.float64).requires_grad_()

    def run(module: nn.Module) -> list[Tensor]:
        (slope,) = torch.autograd.grad(weighted(module(x)), x, create_graph=True)
        loss = (slope.norm(dim=2) - 1).pow(2).sum()
        return [loss, *torch.autograd.grad(loss, [x, *module.parameters()], allow_unused=True)]

    return lambda: run(mine), lambda: run(theirs)


@feature("an inner step of gradient descent, as MAML has")
def _(kind: str):
    mine, theirs = wide(kind)
    x, other = rows(torch.float64), rows(torch.float64)

    def run(module: nn.Module) -> list[Tensor]:
        slow = dict(module.named_parameters())
        inner = weighted(functional_call(module, slow, (x,)))
        slopes = torch.autograd.grad(inner, [*slow.values()], create_graph=True)
        fast = {n: p - 0.1 * g for (n, p), g in zip(slow.items(), slopes, strict=True)}
        outer = weighted(functional_call(module, fast, (other,)))
        return [outer, *torch.autograd.grad(outer, [*slow.values()])]

    return lambda: run(mine), lambda: run(theirs)


def inside(run: Callable[[], Any]) -> Callable[[], Any]:
    def wrapped() -> Any:
        with reference():
            return run()

    return wrapped


@feature("second derivatives equal those of the reference")
def _(kind: str):
    mine, _ = wide(kind, E, H, 2)
    x = rows(torch.float64).requires_grad_()

    def run() -> list[Tensor]:
        y = mine(x, lengths=LENGTHS)
        (slope,) = torch.autograd.grad(weighted(y).sin(), x, create_graph=True)
        return [slope, *torch.autograd.grad(slope.pow(2).sum(), [x, *mine.parameters()])]

    return run, inside(run)


# ------------------------------------------------------------------ transforms


def over_x(kind: str, transform: Callable[[Callable[[Tensor], Tensor], Tensor], Any]) -> Any:
    mine, theirs = wide(kind)
    x = rows(torch.float64)

    def run(module: nn.Module) -> Any:
        with quiet():
            return transform(lambda x: module(x)[0], x)

    return lambda: run(mine), lambda: run(theirs)


@feature("autograd.grad with is_grads_batched")
def _(kind: str):
    many = torch.randn(3, T, B, H, dtype=torch.float64)

    def transform(run: Callable[[Tensor], Tensor], x: Tensor) -> Any:
        x = x.requires_grad_()
        return torch.autograd.grad(run(x), x, many, is_grads_batched=True)

    return over_x(kind, transform)


@feature("functional.jacobian with vectorize")
def _(kind: str):
    jacobian = torch.autograd.functional.jacobian
    mine, theirs = wide(kind)
    x = rows(torch.float64)
    return quietly(lambda: jacobian(lambda x: mine(x)[0], x, vectorize=True)), lambda: jacobian(
        lambda x: theirs(x)[0], x
    )


@feature("func.functional_call")
def _(kind: str):
    mine, theirs = wide(kind)
    x = rows(torch.float64)
    weights = {n: torch.randn_like(p) for n, p in mine.named_parameters()}
    return lambda: functional_call(mine, weights, (x,)), lambda: functional_call(
        theirs, weights, (x,)
    )


@feature("func.grad")
def _(kind: str):
    return over_x(kind, lambda run, x: torch.func.grad(lambda x: run(x).sin().sum())(x))


@feature("func.grad by the parameters")
def _(kind: str):
    mine, theirs = wide(kind)
    x = rows(torch.float64)

    def run(module: nn.Module) -> Any:
        weights = {n: p.detach() for n, p in module.named_parameters()}
        loss = lambda w: weighted(functional_call(module, w, (x,)))  # noqa: E731
        return torch.func.grad(loss)(weights)

    return lambda: run(mine), lambda: run(theirs)


@feature("func.jacrev")
def _(kind: str):
    return over_x(kind, lambda run, x: torch.func.jacrev(run)(x))


@feature("func.jacfwd")
def _(kind: str):
    return over_x(kind, lambda run, x: torch.func.jacfwd(run)(x))


@feature("func.jvp")
def _(kind: str):
    v = rows(torch.float64)
    return over_x(kind, lambda run, x: torch.func.jvp(run, (x,), (v,)))


@feature("func.hessian")
def _(kind: str):
    mine, theirs = wide(kind, E, 2)
    x, weights = rows(torch.float64, steps=2), torch.randn(2, B, 2, dtype=torch.float64)

    def loss(module: nn.Module) -> Callable[[Tensor], Tensor]:
        return lambda x: (module(x)[0] * weights).sum().sin()

    def run() -> Any:
        with quiet():
            return torch.func.hessian(loss(mine))(x)

    return run, lambda: torch.autograd.functional.hessian(loss(theirs), x)


@feature("forward-mode derivatives")
def _(kind: str):
    mine, theirs = wide(kind)
    x, v = rows(torch.float64), rows(torch.float64)

    def run(module: nn.Module) -> Any:
        with quiet(), forward_ad.dual_level(), torch.no_grad():
            y, _ = module(forward_ad.make_dual(x, v))
            return forward_ad.unpack_dual(y).tangent

    def expected() -> Tensor:
        return torch.autograd.functional.jvp(lambda x: theirs(x)[0], x, v)[1]

    return lambda: run(mine), expected


@feature("vmap over x", DIFFERENT, reason="torch.nn.LSTM has no batching rule; ours has all three")
def _(kind: str):
    mine, theirs = wide(kind)
    many = torch.randn(3, T, B, E, dtype=torch.float64)

    def run() -> Any:
        with quiet():
            return torch.vmap(lambda x: mine(x)[0])(many)

    return run, lambda: torch.stack([theirs(x)[0] for x in many])


@feature("an ensemble by stack_module_state and vmap", DIFFERENT, reason="as for vmap over x")
def _(kind: str):
    modules = [getattr(ours, kind)(E, H, dtype=torch.float64) for _ in range(3)]
    x = rows(torch.float64)

    def run() -> Any:
        with quiet():
            weights, buffers = torch.func.stack_module_state(modules)
            call = lambda w, b: functional_call(modules[0], (w, b), (x,))[0]  # noqa: E731
            return torch.vmap(call)(weights, buffers)

    return run, lambda: torch.stack([m(x)[0] for m in modules])


@feature("gradients of each row by vmap and grad", DIFFERENT, reason="as for vmap over x")
def _(kind: str):
    mine, theirs = wide(kind)
    many = torch.randn(3, T, B, E, dtype=torch.float64)

    def run() -> Any:
        weights = {n: p.detach() for n, p in mine.named_parameters()}
        loss = lambda w, x: functional_call(mine, w, (x,))[0].sin().sum()  # noqa: E731
        with quiet():
            return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, many)

    def expected() -> list[Tensor]:
        each = [torch.autograd.grad(theirs(x)[0].sin().sum(), [*theirs.parameters()]) for x in many]
        return [torch.stack(g) for g in zip(*each, strict=True)]

    return run, expected


# ------------------------------------------------------------------ graphs


class Wrapped(nn.Module):
    """A layer with lengths as an argument that may be left out."""

    def __init__(self, rnn: nn.Module) -> None:
        super().__init__()
        self.rnn = rnn

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Any:
        return self.rnn(x) if lengths is None else self.rnn(x, lengths=lengths)


def exported(kind: str, free: str, *, strict: bool, lengths: bool) -> Any:
    """free: which sizes of the graph are open, and so other ones when it runs."""
    mine, theirs = twins(kind)
    for module in (mine, theirs):
        module.requires_grad_(False)
    steps, batch = torch.export.Dim("steps", min=2), torch.export.Dim("batch", min=2)
    open_sizes = {"no size": {}, "rows": {1: batch}, "steps and rows": {0: steps, 1: batch}}[free]
    shapes: dict[str, Any] = {"x": open_sizes}
    other = torch.randn(9 if 0 in open_sizes else T, 4 if 1 in open_sizes else B, E)
    call: tuple[Tensor, ...] = (rows(),)
    others: tuple[Tensor, ...] = (other,)
    if lengths:
        shapes["lengths"] = {0: batch} if 1 in open_sizes else {}
        call = (*call, LENGTHS)
        others = (other, torch.tensor([len(other), 1, 3, 4][: other.size(1)]))

    def run() -> Any:
        with quiet():
            found = torch.export.export(Wrapped(mine), call, dynamic_shapes=shapes, strict=strict)
            return found.module()(*others)

    return run, lambda: mine(*others[:1], lengths=others[1]) if lengths else theirs(other)


def add_exports() -> None:
    """The 12 of them."""
    for strict in (True, False):
        for free in ("no size", "rows", "steps and rows"):
            manner = f"torch.export, {'strict' if strict else 'not strict'}, {free} open"

            def check(kind: str, lengths: bool, free: str = free, strict: bool = strict) -> Any:
                return exported(kind, free, strict=strict, lengths=lengths)

            # Of torch's own operator torch.export writes every step down, and so they are fixed.
            # With lengths the kernels are one operator of any number of steps, if they are there.
            fixed = free == "steps and rows"
            verdict = REFUSED if fixed else SAME
            feature(f"{manner}, without lengths", verdict, graph=True)(
                partial(check, lengths=False)
            )
            with_lengths = partial(check, lengths=True)
            without = REFUSED if fixed else DIFFERENT
            feature(
                f"{manner}, with lengths",
                DIFFERENT,
                reason=NO_LENGTHS,
                graph=True,
                without=without,
            )(with_lengths)


add_exports()


@feature("fx.symbolic_trace has the layer as a leaf", graph=True)
def _(kind: str):
    mine, _ = twins(kind)
    model, x = Model(mine), rows()

    def run() -> Any:
        graph = torch.fx.symbolic_trace(model)
        called = [n.target for n in graph.graph.nodes if n.op == "call_module"]
        return [graph(x), called]

    return run, lambda: [model(x), ["rnn", "out"]]


@feature("jit.script of a model that contains the layer", graph=True)
def _(kind: str):
    mine, _ = twins(kind)
    model, x = Model(mine), rows(steps=4)
    return quietly(lambda: torch.jit.script(model)(x)), lambda: model(x)


@feature("jit.script of a variant", REFUSED, graph=True)
def _(kind: str):
    model = Model(getattr(ours, kind)(E, H, **VARIANT[kind]))
    return quietly(lambda: torch.jit.script(model)), None


@feature("jit.trace", graph=True)
def _(kind: str):
    mine, theirs = twins(kind)
    mine.requires_grad_(False)
    x, other = rows(), rows()

    def run() -> Any:
        return torch.jit.trace(lambda x: mine(x)[0], x, check_trace=False)(other)

    return quietly(run), lambda: theirs(other)[0]


@feature("jit.trace with lengths, run with others", DIFFERENT, reason=NO_LENGTHS, graph=True)
def _(kind: str):
    mine, _ = twins(kind)
    mine.requires_grad_(False)
    x, other, lengths = rows(), rows(), torch.tensor([7, 2])
    run = lambda x, lengths: mine(x, lengths=lengths)[0]  # noqa: E731

    def traced() -> Any:
        return torch.jit.trace(run, (x, LENGTHS), check_trace=False)(other, lengths)

    return quietly(traced), lambda: run(other, lengths)


def by_make_fx(kind: str, *, grad: bool) -> Any:
    from torch.fx.experimental.proxy_tensor import make_fx

    mine, theirs = twins(kind)
    x, other = rows(), rows()

    def run() -> Any:
        with torch.set_grad_enabled(grad), quiet():
            return make_fx(lambda x: mine(x)[0])(x)(other)

    return run, lambda: theirs(other)[0]


@feature("make_fx without gradients", graph=True)
def _(kind: str):
    return by_make_fx(kind, grad=False)


@feature("make_fx with gradients", graph=True)
def _(kind: str):
    return by_make_fx(kind, grad=True)


@feature("make_fx of the way back", graph=True)
def _(kind: str):
    from torch.fx.experimental.proxy_tensor import make_fx

    mine, theirs = twins(kind)
    x, other = rows(), rows()

    def slopes(module: nn.Module, x: Tensor) -> Any:
        x = x.detach().requires_grad_()
        return torch.autograd.grad(module(x)[0].sin().sum(), x)[0]

    def run() -> Any:
        with quiet():
            return make_fx(lambda x: slopes(mine, x))(x)(other)

    return run, lambda: slopes(theirs, other)


@feature(
    "torch.compile in one graph, by aot_eager",
    DIFFERENT,
    reason="one operator of ours; both need torch's own switch, torch._dynamo.config.allow_rnn",
    graph=True,
)
def _(kind: str):
    mine, theirs = twins(kind, E, H, 2, bidirectional=True)
    x = rows()

    def run() -> Any:
        torch.compiler.reset()
        with torch._dynamo.config.patch(allow_rnn=True):
            compiled = torch.compile(mine, backend="aot_eager", fullgraph=True)
            outputs = flat(compiled(x))
            found = torch.autograd.grad(weighted(outputs), [*mine.parameters()])
        torch.compiler.reset()
        return [*outputs, *found]

    return quietly(run), lambda: gradients(theirs, x)


# ------------------------------------------------------------------ modes


def under_autocast(kind: str, steps: int, batched: bool) -> Any:
    mine, theirs = twins(kind)
    x = rows(steps=steps) if batched else torch.randn(steps, E)

    def types(module: nn.Module) -> Any:
        try:
            with torch.autocast("cpu", torch.bfloat16):
                return [(t.dtype, tuple(t.shape)) for t in flat(module(x))]
        except RuntimeError:  # oneDNN has no such product for every processor
            return RuntimeError

    def expected() -> Any:
        if types(theirs) is RuntimeError and types(mine) is not RuntimeError:
            with quiet(), torch.backends.mkldnn.flags(enabled=False):
                return types(theirs)
        return types(theirs)

    return lambda: types(mine), expected


for _steps in (1, T):
    for _batched in (True, False):
        feature(
            f"autocast, {'one step' if _steps == 1 else 'steps'}, "
            f"{'a batch' if _batched else 'one row'}: types"
        )(lambda kind, s=_steps, b=_batched: under_autocast(kind, s, b))


@needs_kernels
@pytest.mark.graph
@pytest.mark.parametrize("kind", KINDS)
def test_flops_are_counted_while_kernels_run(kind):
    from torch.utils.flop_counter import FlopCounterMode

    mine, theirs = wide(kind)
    x = rows(torch.float64).requires_grad_()

    def count(module: nn.Module, back: bool) -> int:
        with FlopCounterMode(display=False) as counter:
            y, _ = module(x)
            if back:
                y.sum().backward()
        return counter.get_total_flops()

    for back in (False, True):
        assert 0.5 < count(mine, back) / count(theirs, back) < 2.0


@needs_kernels
@pytest.mark.graph
@pytest.mark.parametrize("kind", KINDS)
def test_a_dispatch_mode_sees_the_layer(kind):
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Log(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    with Log():
        y, _ = getattr(ours, kind)(E, H)(rows())
        y.sum().backward()
    assert any(name.startswith("unrolled.layer.") for name in seen)
    assert any(name.startswith("unrolled.layer_backward.") for name in seen)


@pytest.mark.parametrize("kind", ["LSTM", "GRU"])
def test_dynamic_quantization_is_never_silent(kind):
    """Converted, refused, or with a warning that names the class."""
    model = Model(getattr(ours, kind)(E, H))
    said: list[str] = []
    converted = False
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            found = torch.ao.quantization.quantize_dynamic(
                model, {nn.LSTM, nn.GRU, nn.Linear}, dtype=torch.qint8
            )
            converted = "quantized" in type(found.rnn).__module__
        except REFUSALS as error:
            said.append(str(error))
    said += [str(w.message) for w in seen]
    assert converted or any("unrolled" in text for text in said)


WORKERS = """
import torch
import unrolled.nn as ours
from torch.utils.data import DataLoader

torch.set_num_threads(2)
x = torch.randn(40, 16, 8)
for net in (ours.LSTM(8, 64), ours.GRU(8, 64), ours.RNN(8, 64)):
    expected = net(x)[0].detach()
    net(x)[0].sum().backward()  # the threads are there now

    def collate(rows):
        with torch.no_grad():
            return net(torch.stack(rows, dim=1))[0]

    loader = DataLoader([x[:, k] for k in range(16)], batch_size=16, num_workers=2,
                        collate_fn=collate, multiprocessing_context="fork", timeout=40)
    for y in loader:
        torch.testing.assert_close(y, expected, rtol=0, atol=2e-6)
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="nothing forks there")
def test_forked_workers_run_the_layer_after_their_parent_did():
    """With one thread each, which a data loader sets: with more, torch's own products hang."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", WORKERS],
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"OMP_NUM_THREADS": "2"},
    )
    assert done.stdout == "done\n", done.stderr


# ------------------------------------------------------------------ what is wrong is told


def numbers_of(*shape: int) -> Tensor:
    return torch.randn(shape)


# For each: the call, and what the message has of what was seen.
WRONG: dict[str, tuple[Callable[[str], tuple[Any, ...]], str]] = {
    "features, time first": (lambda kind: (numbers_of(7, 2, 4),), r"\(7, 2, 4\)|got 4"),
    "one dimension": (lambda kind: (numbers_of(3),), r"\(3,\)|1D|1-D"),
    "four dimensions": (lambda kind: (numbers_of(1, 7, 2, 3),), r"\(1, 7, 2, 3\)|4D|4-D"),
    "no features": (lambda kind: (numbers_of(7, 2, 0),), r"\(7, 2, 0\)|got 0"),
    "no steps": (lambda kind: (numbers_of(0, 2, 3),), r"\(0, 2, 3\)|larger than 0"),
    "float64": (lambda kind: (rows(torch.float64),), "float64"),
    "int64": (lambda kind: (torch.ones(7, 2, 3, dtype=torch.int64),), "int64"),
    "complex": (lambda kind: (rows().to(torch.complex64),), "complex64"),
    "bool": (lambda kind: (rows() > 0,), "bool"),
    "numpy": (lambda kind: (rows().numpy(),), "ndarray"),
    "a list": (lambda kind: ([1.0, 2.0],), "list"),
    "None": (lambda kind: (None,), "None"),
    "a state of too few units": (
        lambda kind: (rows(), _state(kind, numbers_of(1, 2, 4))),
        r"1, 2, 4",
    ),
    "a state of too many rows": (
        lambda kind: (rows(), _state(kind, numbers_of(1, 3, 5))),
        r"1, 3, 5",
    ),
    "a state of two layers": (lambda kind: (rows(), _state(kind, numbers_of(2, 2, 5))), r"2, 2, 5"),
    "a state of one row": (lambda kind: (rows(), _state(kind, numbers_of(1, 5))), r"1, 5|2-D"),
    "a state of float64": (
        lambda kind: (rows(), _state(kind, numbers_of(1, 2, 5).double())),
        "float64|Double|unsupported data type",
    ),
    "a state that is a number": (lambda kind: (rows(), 3), "3|int"),
    "a state that is text": (lambda kind: (rows(), "h"), "'h'|str"),
    "a state of numpy": (lambda kind: (rows(), _state(kind, np.zeros((1, 2, 5)))), "ndarray"),
    "a state of three tensors": (
        lambda kind: (rows(), (numbers_of(1, 2, 5),) * 3),
        r"3 |tuple|two|(\(1, 2, 5\) and ){2}",
    ),
    "a state of no tensors": (lambda kind: (rows(), ()), r"0|\(\)|tuple|no tensor"),
}


def _state(kind: str, h: Any) -> Any:
    return (h, h) if kind == "LSTM" else h


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_are_refused_with_the_value_seen(name, kind):
    """ConfigError, or the exception that torch.nn raises."""
    call, seen = WRONG[name]
    mine, theirs = twins(kind)
    allowed: tuple[type[Exception], ...] = (ConfigError,)
    try:
        theirs(*call(kind))
    except REFUSALS as error:
        allowed = (ConfigError, type(error))
    except Exception:  # torch's own slip, such as an AttributeError
        allowed = (ConfigError, TypeError)
    with pytest.raises(allowed, match=seen):
        mine(*call(kind))


WRONG_LENGTHS: dict[str, tuple[Any, str]] = {
    "0": ([0, 7], "0"),
    "beyond": ([4, 8], "8"),
    "below 0": ([4, -1], "-1"),
    "too many": ([4, 7, 1], r"3|\[4, 7, 1\]"),
    "too few": ([4], r"1|\[4\]"),
    "floats": (torch.tensor([4.0, 7.0]), "float32"),
    "numpy floats": (np.array([4.0, 7.0]), "float64"),
    "numpy text": (np.array(["4", "7"]), "<U1|str"),
    "list of floats": ([4.5, 7.0], r"4\.5|float"),
    "list of text": (["4", "7"], "4|str"),
    "bool": (torch.tensor([True, True]), "bool"),
    "a number": (7, "7|int"),
    "a column": (torch.tensor([[4], [7]]), r"\(2, 1\)"),
    "text": ("47", "47|str"),
    "list with None": ([4, None], "None"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WRONG_LENGTHS)
def test_wrong_lengths_are_refused_with_the_value_seen(name, kind):
    lengths, seen = WRONG_LENGTHS[name]
    with pytest.raises(ConfigError, match=seen):
        getattr(ours, kind)(E, H)(rows(), lengths=lengths)


# ------------------------------------------------------------------ every variant twice


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", VARIANTS, ids=str)
def test_second_derivatives_of_every_variant(cell, bidirectional):
    """By x, the first state and all parameters, against differences of the first."""
    net = build(2, 2, cell=cell, bidirectional=bidirectional)
    D, lengths = 2 if bidirectional else 1, torch.tensor([3, 2])
    state = [random(D, 2, 2) for _ in range(cell.state_size)]
    names = [name for name, _ in net.named_parameters()]
    inputs = [random(2, 3, 2), *state, *(p.detach() for p in net.parameters())]

    def run(x: Tensor, *rest: Tensor) -> tuple[Tensor, ...]:
        first, weights = rest[: len(state)], dict(zip(names, rest[len(state) :], strict=True))
        y, last = functional_call(net, weights, (x, lengths, first))
        return y, *last

    inputs = [t.clone().requires_grad_() for t in inputs]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)
    assert torch.autograd.gradgradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_of_the_drop_ins(kind, layers):
    net = getattr(ours, kind)(2, 2, layers, dtype=torch.float64)
    x = random(3, 2, 2).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: net(x)[0], (x,))
    row = random(3, 2).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda row: net(row)[0], (row,), fast_mode=True)


@pytest.mark.parametrize("cell", [RNNCell(), GRUCell(), LSTMCell()], ids=str)
def test_third_derivatives_equal_those_of_the_reference(cell):
    net = build(2, 2, cell=cell)
    x, v = random(2, 3, 2).requires_grad_(), random(2, 3, 2)

    def third() -> Tensor:
        found = weighted(net(x)).sin()
        for _ in range(3):
            (slope,) = torch.autograd.grad(found, x, create_graph=True)
            found = (slope * v).sum()
        return slope

    with reference():
        expected = third()
    assert_same(third(), expected)


# ------------------------------------------------------------------ the table, judged


def lines() -> list[Any]:
    """Every feature with every kind of layer; graphs take long: each with one kind, in turn."""
    turns = {name: turn for turn, name in enumerate(n for n in FEATURES if FEATURES[n].graph)}
    return [
        pytest.param(
            name, kind, marks=[pytest.mark.graph] if line.graph else [], id=f"{name}-{kind}"
        )
        for name, line in FEATURES.items()
        for turn, kind in enumerate(line.kinds)
        if ALL_KINDS or not line.graph or turn == turns[name] % len(line.kinds)
    ]


@pytest.mark.parametrize(("name", "kind"), lines())
def test_a_feature_is_as_the_table_says(name, kind):
    line = FEATURES[name]
    run, expected = line.check(kind)
    if line.holds == REFUSED:
        with pytest.raises(REFUSALS) as seen:
            run()
        assert len(str(seen.value)) > 15, "a refusal says why"
    else:
        assert expected is not None
        assert_same(run(), expected())


def test_the_table_knows_three_verdicts():
    assert {line.verdict for line in FEATURES.values()} == {SAME, REFUSED, DIFFERENT}


def table() -> str:
    """The table as docs/layers.md shows it."""
    rows = ["| feature | ours | why |", "|---|---|---|"]
    for name, line in FEATURES.items():
        kinds = "" if line.kinds == KINDS else f" ({', '.join(line.kinds)})"
        rows.append(f"| {name}{kinds} | {line.verdict} | {line.why} |")
    return "\n".join(rows)


def test_the_page_shows_this_table():
    page = Path(__file__).parents[2] / "docs" / "layers.md"
    assert table() in page.read_text(encoding="utf-8"), "print(table()) is what belongs there"
