"""Random calls of all that leads to the compiled kernels, right ones and wrong ones.

    python tests/nn/fuzz_boundary.py --cases 1000000 --seed 1 --processes 2
    python tests/nn/fuzz_boundary.py --seed 1 --only 4711        what this case does, step by step
    python tests/nn/fuzz_boundary.py --cases 50000 --guard       with the heap checked (glibc, slow)

A call gives a result or raises an exception that a caller expects. What it must never do:

    crash    end the process, or run for longer than LONGEST seconds
    odd      raise what no caller expects: KeyError, AssertionError, AttributeError
    refused  raise although nothing is wrong with the call
    reads    give numbers that are not finite, of numbers that are
    writes   change what went in
    differs  give other numbers than the reference does, or any where the reference raises

Reads outside show as NaN: tensors lie within NaN, so do the steps of a row beyond its length, and
new memory is filled with NaN. A case is a function of the seed and its number alone.
"""

import argparse
import json
import mmap
import os
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from math import isfinite
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import unrolled.nn as ours
from unrolled.ngrams import kernels as ngram_kernels
from unrolled.nn import crf, kernels, output
from unrolled.nn.cells import ACTIVATIONS, OUTPUTS, PEEPHOLES, RESETS, UPDATES
from unrolled.text.tokens import END, START
from unrolled.text.word_index import KERNEL as WORD_INDEX

EXPECTED = (
    RuntimeError,
    ValueError,
    TypeError,
    IndexError,
    MemoryError,
)  # ConfigError is a value's
LONGEST = 30.0  # seconds of one case
SHARE = 0.4  # of the results that are compared with the reference
TOLERANCE = {torch.float32: 3e-5, torch.float64: 1e-11}  # after up to 130 steps
TYPES = (torch.float32, torch.float64)
OTHER_TYPES = (torch.float16, torch.bfloat16, torch.int64, torch.complex64, *TYPES)
LAYOUTS = ("plain", "margins", "margins", "turned", "steps", "negative", "expanded", "zero")
PACKAGE = str(Path(ours.__file__).parents[1])
MARGIN = 24  # numbers before and after a tensor

VARIANTS = [
    *(ours.RNNCell(name) for name in ACTIVATIONS),
    *(ours.LSTMCell(shape, peephole) for shape in OUTPUTS for peephole in PEEPHOLES),
    *(ours.GRUCell(reset, update) for reset in RESETS for update in UPDATES),
]


class Wrong(Exception):  # noqa: N818  it is what is looked for
    """A finding: its kind and what is said of it."""


# ------------------------------------------------------------------ what a case is made of


@dataclass
class Case:
    """One call: what it draws from, and what is known of it."""

    random: Random
    say: Callable[[str], None] = lambda text: None
    odds: float = 0.0  # that a part of the call is wrong
    wrong: list[str] = field(default_factory=list)  # the parts that are
    grad: bool = False
    dtype: torch.dtype = torch.float32
    given: list[tuple[str, Tensor]] = field(default_factory=list)
    compared: bool = False
    steps: int = 1  # of a row, at most

    @classmethod
    def number(cls, seed: int, index: int, say: Callable[[str], None] | None = None) -> "Case":
        random = Random(seed * 1_000_003 + index * 7919)
        torch.default_generator.manual_seed(random.getrandbits(32))
        case = cls(random)
        case.odds = random.choice((0.0, 0.0, 0.02, 0.06, 0.2))
        case.grad = random.random() < 0.6
        case.dtype = random.choice((torch.float32, *TYPES))
        case.say = say or case.say
        return case

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def is_odd(self, part: str) -> bool:
        """Whether this part of the call is to be wrong."""
        if self.odds and self.random.random() < self.odds:
            self.wrong.append(part)
            self.say(f"wrong: {part}")
            return True
        return False

    def size(self, *, long: float = 0.03, part: str = "") -> int:
        if part and self.is_odd(part):
            return self.random.choice((0, 0, -1, 2**33)) if part.endswith("!") else 0
        if self.chance(long):
            return self.random.choice((33, 33, 130))
        return self.random.randint(1, 9)

    def lengths(self, B: int, T: int, *, none: float = 0.4) -> tuple[Any, list[int] | None]:
        """As they are passed, and the right ones that they are, or None for rows all full."""
        if self.chance(none):
            return None, None
        values = [self.random.randint(1, max(T, 1)) for _ in range(B)]
        lengths: Any = torch.tensor(values, dtype=torch.int64)
        if self.is_odd("lengths"):
            return self._wrong_lengths(values, T), None
        if self.chance(0.1):
            lengths = torch.tensor([v for v in values for _ in (0, 1)], dtype=torch.int64)[::2]
        self.say(f"lengths = {values}")
        return lengths, values

    def _wrong_lengths(self, values: list[int], T: int) -> Any:
        far = [*values]
        if far:
            wrong = (0, -1, T + 1, T + 100, 2**31, 2**62, -(2**63))
            far[self.random.randrange(len(far))] = self.random.choice(wrong)
        made: dict[str, Callable[[], Any]] = {
            "far": lambda: torch.tensor(far, dtype=torch.int64),
            "list": lambda: values,
            "far list": lambda: far,
            "tuple": lambda: tuple(values),
            "numpy": lambda: np.array(values, dtype=self.random.choice(("i8", "i4", "f4"))),
            "int32": lambda: torch.tensor(values, dtype=torch.int32),
            "float": lambda: torch.tensor(values, dtype=torch.float32),
            "bool": lambda: torch.tensor(values, dtype=torch.bool),
            "more": lambda: torch.tensor([*values, 1]),
            "fewer": lambda: torch.tensor(values[1:], dtype=torch.int64),
            "column": lambda: torch.tensor(values, dtype=torch.int64)[:, None],
            "number": lambda: T,
            "text": lambda: "3",
            "meta": lambda: torch.tensor(values, dtype=torch.int64, device="meta"),
            "expanded": lambda: torch.tensor([T]).expand(len(values)),
            "none in it": lambda: [None, *values[1:]],
        }
        name = self.random.choice([*made])
        self.say(f"lengths = {name}: {far if 'far' in name else values}")
        return made[name]()

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        *,
        real: list[int] | None = None,
        left: bool = False,
        scale: float = 1.0,
        leaf: bool = True,
    ) -> Any:
        """Random numbers within NaN; of rows with `real` steps each, NaN beyond these."""
        odd = self.is_odd(name)
        shape = self._wrong_shape(shape) if odd and self.chance(0.5) else tuple(shape)
        if any(n < 0 or n > 10**6 for n in shape):
            raise ValueError(f"{name} cannot have the shape {shape}")
        values = torch.empty(shape, dtype=self.dtype).uniform_(-scale, scale)
        if real is not None and len(shape) == 3 and len(real) == shape[0] and not odd:
            for row, length in enumerate(real):
                beyond = values[row, : shape[1] - length] if left else values[row, length:]
                beyond.fill_(torch.nan)
        result: Any = self._placed(name, values)
        if odd and (tuple(values.shape) == tuple(shape)) and self.chance(0.7):
            result = self._wrong_value(name, result)
        if isinstance(result, Tensor):
            if leaf and self.grad and result.dtype.is_floating_point and self.chance(0.8):
                result = result.detach().requires_grad_()
            if result.device.type == "cpu" and result.layout == torch.strided:
                self.given.append((name, result))
        return result

    def _wrong_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        new = [*shape]
        how = self.random.choice(("one", "one", "zero", "more", "fewer", "turned", "none", "unit"))
        if new and how in ("one", "zero", "unit"):
            place = self.random.randrange(len(new))
            new[place] = {"zero": 0, "unit": 1}.get(how, self.size(long=0.1))
        elif how == "more":
            new.insert(self.random.randint(0, len(new)), self.random.choice((1, 2)))
        elif how == "fewer":
            new = new[1:]
        elif how == "turned":
            new.reverse()
        else:
            new = []
        return tuple(new)

    def _placed(self, name: str, values: Tensor) -> Tensor:
        """The same numbers in some layout, with NaN round them."""
        layout = self.random.choice(LAYOUTS)
        whole = bool(values.isfinite().all())
        if values.dim() == 0 or (layout in ("expanded", "zero") and not whole):
            layout = "margins"
        if layout == "zero" and self.chance(0.7):
            layout = "margins"
        self.say(f"{name} = {tuple(values.shape)} {values.dtype} {layout}")
        if layout == "plain":
            return values
        if layout == "margins":
            size = values.numel()
            return self._around(size)[MARGIN : MARGIN + size].view(values.shape).copy_(values)
        if layout == "turned":
            order = [*range(values.dim())]
            self.random.shuffle(order)
            turned = values.permute(order)
            size = turned.numel()
            home = self._around(size)[MARGIN : MARGIN + size].view(turned.shape).copy_(turned)
            return home.permute([order.index(k) for k in range(len(order))])
        if layout == "steps":
            wide = [2 * n for n in values.shape]
            home = torch.full(wide, torch.nan, dtype=values.dtype)
            return home[tuple(slice(None, None, 2) for _ in wide)].copy_(values)
        if layout == "negative":
            return torch.imag(torch.complex(values, -values).conj())
        if layout == "zero":
            return torch._efficientzerotensor(values.shape, dtype=values.dtype)
        if not values.numel():
            return values
        return values.narrow(self.random.randrange(values.dim()), 0, 1).expand(values.shape)

    def _around(self, size: int) -> Tensor:
        return torch.full((size + 2 * MARGIN,), torch.nan, dtype=self.dtype)

    def _wrong_value(self, name: str, value: Tensor) -> Any:
        made: dict[str, Callable[[], Any]] = {
            "none": lambda: None,
            "number": lambda: 3,
            "list": lambda: value.tolist(),
            "numpy": lambda: value.resolve_neg().detach().numpy(),
            "tuple": lambda: (value,),
            "text": lambda: "x",
            "meta": lambda: value.to("meta"),
            "sparse": lambda: value.to_sparse(),
            **{str(t): lambda t=t: value.to(t) for t in OTHER_TYPES},
        }
        if value.numel():  # torch itself divides by zero where there are no numbers
            made["mkldnn"] = lambda: value.float().contiguous().to_mkldnn()
        how = self.random.choice([*made])
        self.say(f"{name} becomes {how}")
        return made[how]()

    # -------------------------------------------------------------- the call and its judges

    def judge(
        self,
        run: Callable[[], Any],
        twin: Callable[[], Any] | None = None,
        *,
        inputs: Sequence[Any] = (),
        finite: Callable[[list[Tensor]], list[Tensor]] | None = None,
    ) -> None:
        """Run it, forward and back, and look at what comes out, in what and beside what."""
        before = [(name, t, _bytes_of(t)) for name, t in self.given] if self.chance(0.3) else []
        seed = self.random.getrandbits(32)
        ways = self.random.getrandbits(32)
        leaves = [t for t in (*(t for _, t in self.given), *inputs) if _learns(t)]

        def complete(call: Callable[[], Any]) -> list[Tensor]:
            torch.default_generator.manual_seed(seed)
            outputs = flat(call())
            return [*outputs, *self._gradients(outputs, leaves, Random(ways))]

        threads = 2 if self.chance(0.12) else 1
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        self.say(f"wrong parts: {self.wrong}; {threads} threads; backward: {self.grad}")
        try:
            got = complete(run)
        finally:
            for name, tensor, bits in before:
                if _bytes_of(tensor) != bits:
                    raise Wrong("writes", f"{name} was changed")
        shown = finite(got) if finite else got
        if not self.wrong:
            for t in shown:
                if t.dtype in TYPES and not t.is_meta and not isfinite(t.sum()):
                    raise Wrong("reads", f"{tuple(t.shape)} has numbers that are not finite")
        share = SHARE if self.steps < 33 else SHARE / 8  # step by step, long rows take long
        if twin is not None and self.chance(share):
            self._compare(got, complete, twin)

    def _gradients(
        self, outputs: list[Tensor], leaves: list[Tensor], random: Random
    ) -> list[Tensor]:
        ends = [o for o in outputs if o.requires_grad and random.random() < 0.8]
        if not self.grad or not ends or not leaves:
            return []
        upstream = [self._upstream(o, random) for o in ends]
        found = torch.autograd.grad(ends, leaves, upstream, allow_unused=True, retain_graph=True)
        return [torch.zeros_like(t) if g is None else g for t, g in zip(leaves, found, strict=True)]

    def _upstream(self, out: Tensor, random: Random) -> Tensor:
        u = torch.empty(out.shape, dtype=out.dtype, device=out.device)
        u = u.uniform_(-1, 1) if not u.is_meta else u
        how = random.choice(("plain", "turned", "expanded", "one", "steps"))
        if how == "turned" and u.dim() > 1:
            return u.transpose(0, -1).contiguous().transpose(0, -1)
        if how == "expanded" and u.dim() and u.numel():
            return u.narrow(0, 0, 1).expand(u.shape)
        if how == "one" and u.numel():
            return u.flatten()[:1].view([1] * u.dim()).expand(u.shape)
        if how == "steps" and u.dim():
            return torch.stack([u, torch.full_like(u, torch.nan)], dim=-1)[..., 0]
        return u

    def _compare(
        self,
        got: list[Tensor],
        complete: Callable[[Callable[[], Any]], list[Tensor]],
        twin: Callable[[], Any],
    ) -> None:
        try:
            expected = complete(twin)
        except EXPECTED as error:
            raise Wrong(
                "differs", f"the reference refuses: {type(error).__name__}: {error}"
            ) from None
        self.compared = True
        for k, (g, e) in enumerate(zip(got, expected, strict=True)):
            if g.shape != e.shape or g.dtype != e.dtype:
                seen = f"{tuple(g.shape)} {g.dtype} for {tuple(e.shape)} {e.dtype}"
                raise Wrong("differs", f"result {k} is {seen}")
            if e.dtype not in TYPES or e.is_meta or not e.numel():
                continue
            g, e = g.detach().double(), e.detach().double()
            limit = TOLERANCE[self.dtype] * max(1.0, float(e.abs().nan_to_num(0.0).max()))
            gap = float((g - e).abs().nan_to_num(torch.inf).max())
            if gap > limit and not torch.equal(g.isnan(), e.isnan()):
                raise Wrong("reads", f"result {k} has NaN where the reference has none, or not")
            if gap > limit and bool(e.isfinite().all()):
                raise Wrong("differs", f"result {k} of {len(got)} differs by {gap:.2g}")


def _learns(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad and value.is_leaf


def _bytes_of(tensor: Tensor) -> bytes:
    """All that the memory of a tensor holds, NaN round it included."""
    if tensor.numel() == 0 or tensor._is_zerotensor():
        return b""
    whole = torch.empty(0, dtype=torch.uint8).set_(tensor.untyped_storage())  # type: ignore[call-overload]
    return whole.numpy().tobytes()


def flat(result: Any) -> list[Tensor]:
    """All tensors of a result."""
    if isinstance(result, Tensor):
        return [result]
    if isinstance(result, PackedSequence):
        return [result.data]
    if isinstance(result, tuple | list):
        return [t for part in result for t in flat(part)]
    return []


# ------------------------------------------------------------------ layers


def spoil(case: Case, net: nn.Module) -> None:
    """Put other weights and sizes in, mostly wrong ones."""
    for name in [n for n, p in net.named_parameters() if p is not None]:
        if case.chance(0.1):
            old = getattr(net, name)
            with torch.no_grad():
                new = case._placed(name, old.detach().clone())
            net._parameters[name] = nn.Parameter(new, requires_grad=True)
            if hasattr(net, "_flat_weights"):
                setattr(net, name, net._parameters[name])
        if case.is_odd(name):
            _put(case, net, name)
    if case.is_odd("attribute"):
        names = ("hidden_size", "input_size", "layers", "num_layers", "bidirectional", "bias")
        name = case.random.choice((*names, "batch_first", "dropout", "directions"))
        values = (0, 1, 2, 7, -1, True, False, 0.5, None, ours.GRUCell("none"), ours.LSTMCell())
        value = case.random.choice(values)
        case.say(f"net.{name} = {value}")
        setattr(net, name, value)


def _put(case: Case, net: nn.Module, name: str) -> None:
    """Another thing in the place of a parameter."""
    old = getattr(net, name)
    how = case.random.choice(
        ("shape", "shape", "shape", "none", "type", "tensor", "meta", "deleted")
    )
    case.say(f"{name} becomes: {how}")
    if how == "none":
        setattr(net, name, None)
    elif how == "deleted":
        case.wrong.append(how)
        delattr(net, name)
    elif how == "shape":
        shape = case._wrong_shape(old.shape)
        setattr(net, name, nn.Parameter(torch.empty(shape, dtype=case.dtype).uniform_(-1, 1)))
        case.say(f"{name} has the shape {shape}")
    elif how == "type":
        new = old.detach().to(case.random.choice(OTHER_TYPES))
        setattr(net, name, nn.Parameter(new, requires_grad=new.is_floating_point()))
    elif how == "meta":
        setattr(net, name, nn.Parameter(old.detach().to("meta")))
    else:
        del net._parameters[name]
        setattr(net, name, old.detach().clone())


def layer_options(case: Case) -> dict[str, Any]:
    layers = case.random.choice((1, 1, 1, 1, 2, 2, 3))
    options: dict[str, Any] = {
        "bidirectional": case.chance(0.35),
        "bias": case.chance(0.8),
        "dtype": case.dtype,
    }
    options["layers"] = layers
    if options["bidirectional"] and case.chance(0.3):
        options["combine"] = "mean"
    if case.chance(0.2):
        options["first_state"] = "learned"
    if layers > 1 and case.chance(0.3):
        options |= {"dropout": 0.5, "variational": case.chance(0.5)}
    return options


def sizes(case: Case) -> tuple[int, int, int, int]:
    """B, T, E, H; mostly small, with enough steps now and then for whole blocks."""
    B, T = case.size(part="no rows"), case.size(long=0.12, part="no steps")
    E, H = case.size(), case.size(long=0.08)
    case.steps = min(T, 33) if H > 33 or B > 33 else T
    return B, case.steps, E, H


def state_of(case: Case, count: int, shape: tuple[int, ...]) -> Any:
    """A first state, or None."""
    if case.chance(0.4):
        return None
    if case.is_odd("tensors of the state"):
        count = case.random.choice((0, 1, 2, 3))
    return tuple(case.tensor(f"state {k}", shape) for k in range(count))


def within_reference(run: Callable[[], Any]) -> Callable[[], Any]:
    def twin() -> Any:
        with ours.reference():
            return run()

    return twin


def a_stack(case: Case) -> None:
    """unrolled.nn.Recurrent."""
    net, call = _stack_call(case)
    run = lambda: net(*call[:3], padding=call[3])  # noqa: E731
    twin = within_reference(run)
    if case.grad:
        case.judge(run, twin, inputs=[*net.parameters()])
    else:
        with torch.no_grad():
            case.judge(run, twin)


def _stack_call(case: Case) -> tuple[ours.Recurrent, tuple[Any, ...]]:
    cell, options, (B, T, E, H) = case.random.choice(VARIANTS), layer_options(case), sizes(case)
    case.say(f"Recurrent({E}, {H}, cell={cell}, **{options})")
    net = ours.Recurrent(E, H, cell=cell, **options)
    lengths, real = case.lengths(B, T)
    left = case.chance(0.2)
    x = case.tensor("x", (B, T, E), real=real, left=left)
    rows = options["layers"] * (2 if options["bidirectional"] else 1)
    state = state_of(case, cell.state_size, (rows, B, H))
    padding: Any = "left" if left else "right"
    if case.is_odd("padding"):
        padding = case.random.choice(("bogus", "", None, 3))
    spoil(case, net)
    return net, (x, lengths, state, padding)


def a_prepared_stack(case: Case) -> None:
    """Recurrent.prepared: whole rows and single steps."""
    case.grad = False
    net, (x, lengths, state, _) = _stack_call(case)
    if isinstance(x, Tensor) and isinstance(lengths, Tensor) and case.given:
        x = x.nan_to_num(0.0)  # whichever side its padding is
    net.eval()  # a prepared stack never drops
    with torch.no_grad():
        if case.chance(0.5) or net.bidirectional:
            prepared = net.prepared()
            twin = within_reference(lambda: net(x, lengths, state))
            case.judge(lambda: prepared.run(x, lengths, state), twin)
            return
        prepared = net.prepared()
        token = x[:, 0] if isinstance(x, Tensor) and x.dim() == 3 and x.size(1) else x
        if state is None and not case.is_odd("no state"):
            state = net.start(len(token))
        twin = within_reference(lambda: _one_step(net, token, state))
        case.judge(lambda: prepared.step(token, state), twin)


def _one_step(net: ours.Recurrent, token: Tensor, state: Any) -> Any:
    y, last = net(token[:, None], None, state)
    return y[:, 0], last


def a_drop_in(case: Case) -> None:
    """unrolled.nn.LSTM, GRU and RNN, called as torch.nn's are."""
    kind = case.random.choice((ours.LSTM, ours.LSTM, ours.GRU, ours.RNN))
    options, (B, T, E, H) = layer_options(case), sizes(case)
    layers, both = options.pop("layers"), options["bidirectional"]
    options["batch_first"] = case.chance(0.5)
    if kind is ours.RNN:
        options["nonlinearity"] = case.random.choice([*ACTIVATIONS])
    elif kind is ours.GRU and case.chance(0.4):
        options |= {"reset": case.random.choice([*RESETS]), "update": case.random.choice(UPDATES)}
    elif kind is ours.LSTM and case.chance(0.4):
        options["output"] = case.random.choice([*OUTPUTS])
        options["peephole"] = case.random.choice([*PEEPHOLES])
    case.say(f"{kind.__name__}({E}, {H}, {layers}, **{options})")
    net = kind(E, H, layers, **options)
    form = case.random.choice(("batch", "batch", "batch", "row", "packed"))
    case.say(f"form: {form}")
    rows, count = layers * (2 if both else 1), 2 if kind is ours.LSTM else 1
    more: dict[str, Any] = {}
    if form == "row":
        x = case.tensor("x", (T, E))
        state = state_of(case, count, (rows, H))
        if case.is_odd("lengths of one row"):
            more = {"lengths": case.lengths(1, T)[0]}
    else:
        lengths, real = case.lengths(B, T)
        x = case.tensor("x", (B, T, E), real=real if form == "batch" else None)
        state = state_of(case, count, (rows, B, H))
        if form == "packed":
            x = _packed(case, x, lengths, B, T)
        elif isinstance(x, Tensor) and x.dim() == 3 and not options["batch_first"]:
            x = x.transpose(0, 1)
        if lengths is not None and (form == "batch" or case.is_odd("packed and lengths")):
            more = {"lengths": lengths}
        if case.is_odd("padding"):
            more["padding"] = case.random.choice(("bogus", None, "left"))
            if more["padding"] == "left" and isinstance(x, Tensor) and x.is_floating_point():
                x = x.nan_to_num(0.0)  # rows end in NaN, which would now be their last steps
    spoil(case, net)
    hx = state
    if state is not None:
        hx = (state[0] if state else None) if count == 1 else state
        hx = [*hx] if isinstance(hx, tuple) and case.chance(0.2) else hx
    run = lambda: net(x, hx, **more)  # noqa: E731
    if case.grad:
        case.judge(run, within_reference(run), inputs=[*net.parameters()])
    else:
        with torch.no_grad():
            case.judge(run, within_reference(run))


def _packed(case: Case, x: Tensor, lengths: Any, B: int, T: int) -> PackedSequence:
    each = lengths if isinstance(lengths, Tensor) else torch.full((B,), T)
    if each.is_cpu and each.dtype == torch.int64:  # torch makes room for as many steps
        each = each.clamp(max=T + 100)
    packed = pack_padded_sequence(x, each, batch_first=True, enforce_sorted=False)
    if not case.is_odd("packed"):
        return packed
    data, sizes, ordered, back = packed
    how = case.random.choice(("sizes", "order", "data", "short", "long", "huge"))
    case.say(f"packed, wrong in {how}")
    if how == "sizes":
        sizes = sizes.flip(0)
    elif how == "short":
        sizes = sizes[:-1]
    elif how == "long":
        sizes = torch.cat([sizes, torch.tensor([case.random.choice((1, 5, 0, -3))])])
    elif how == "huge":
        sizes = sizes * 1000
    elif how == "order":
        ordered, back = ordered + case.random.choice((1, -1, 100)), back
    else:
        data = data[:-1]
    return PackedSequence(data, sizes, ordered, back)


def an_operator(case: Case) -> None:
    """torch.ops.unrolled.*, by their schemas."""
    operators = _operators()
    if not operators:
        return
    name = case.random.choice([*operators])
    operator = operators[name]
    known = _for_operators(case)
    arguments = []
    for argument in operator._schema.arguments:
        said = f"{argument.name}: {argument.type}"
        if argument.name in known and not case.is_odd(said):
            arguments.append(known[argument.name])
        else:
            if argument.name not in known:
                case.wrong.append(f"{said} is unknown here")
            arguments.append(_of_type(case, str(argument.type), known.get(argument.name)))
            case.say(f"{said} = {_shown(arguments[-1])}")
    case.say(f"{name}{tuple(map(_shown, arguments))}")
    count = known["count"]
    if not kernels.are_there():
        case.wrong.append("no kernels")
    with torch.set_grad_enabled(case.grad):
        case.judge(
            lambda: operator(*arguments), finite=lambda got: [] if case.wrong else got[:count]
        )
    if not kernels.are_there():
        raise Wrong("differs", f"{name} gives numbers without kernels")


@cache
def _operators() -> dict[str, Any]:
    names = [n for n in torch._C._dispatch_get_all_op_names() if n.startswith("unrolled::")]
    found = {}
    for name in sorted(names):
        short, _, overload = name.removeprefix("unrolled::").partition(".")
        found[name] = getattr(getattr(torch.ops.unrolled, short), overload or "default")
    return found


def _for_operators(case: Case) -> dict[str, Any]:
    """Right arguments by name."""
    cell, (B, T, E, H), D = case.random.choice(VARIANTS), sizes(case), case.random.choice((1, 2))
    lengths, real = case.lengths(B, T, none=0.0)
    net = ours.Recurrent(E, H, cell=cell, bidirectional=D == 2, dtype=case.dtype)
    x = case.tensor("x", (B, T, E), real=real, leaf=False)
    weights = [p.detach() for p in net.parameters()]
    state = [case.tensor(f"state {k}", (D, B, H), leaf=False) for k in range(cell.state_size)]
    words = [type(cell).__name__, *(getattr(cell, f.name) for f in fields(cell))]
    if case.is_odd("names"):
        case.random.shuffle(words)
    known = {"x": x, "lengths": lengths, "tensors": [*weights, *state], "cell": " ".join(words)}
    known |= {"directions": D, "save": True, "count": 1 + cell.state_size}
    try:
        made = torch.ops.unrolled.layer(x, lengths, known["tensors"], known["cell"], D, True)
        known["kept"] = made[1 + cell.state_size :]
        known["upstream"] = [torch.randn_like(t) for t in made[: 1 + cell.state_size]]
    except EXPECTED as error:
        case.say(f"no call of layer to go back from: {error}")
    return known


def _of_type(case: Case, kind: str, right: Any) -> Any:
    """Anything that the schema lets through, like what would be right or not."""
    shape = [case.size() for _ in range(case.random.randint(0, 4))]
    some = lambda: torch.randn([case.size() for _ in shape], dtype=case.dtype)  # noqa: E731
    if "[]" in kind or "List" in kind:
        if right and case.chance(0.7):
            new = [*right]
            place = case.random.randrange(len(new))
            if case.chance(0.4):
                del new[place]
            elif "Optional" in kind and case.chance(0.4):
                new[place] = None
            else:
                new[place] = _of_type(case, "Tensor", new[place]) if "Tensor" in kind else 3
            return new
        return [some() for _ in range(case.random.randint(0, 6))] if "Tensor" in kind else []
    if kind == "int":
        return case.random.choice((0, 1, 2, 3, -1, 2**31, 2**62))
    if kind == "bool":
        return case.chance(0.5)
    if kind == "float":
        return case.random.choice((0.0, -1.0, 1e300, float("nan")))
    if kind == "str":
        return case.random.choice(("", "x", "LSTMCell", "GRUCell none keep", "LSTMCell tanh full"))
    if "Optional" in kind and case.chance(0.3):
        return None
    if isinstance(right, Tensor) and right.dtype == torch.int64:
        values = [case.random.choice((0, 1, 5, 2**40, -1)) for _ in range(right.numel())]
        return torch.tensor(values, dtype=torch.int64)
    if isinstance(right, Tensor) and case.chance(0.7):
        if case.chance(0.3):
            return right.to(case.random.choice(OTHER_TYPES))
        return torch.randn(case._wrong_shape(right.shape), dtype=case.dtype)
    return some()


def _shown(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{tuple(value.shape)}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_shown, value))}]"
    return repr(value)


# ------------------------------------------------------------------ other kernels


def places_of(case: Case, name: str, shape: tuple[int, ...], below: int) -> Any:
    """Whole numbers in 0..below − 1, or wrong ones."""
    places = torch.randint(0, max(below, 1), shape)
    if case.is_odd(name):
        how = case.random.choice(("far", "far", "far", "float", "int32", "shape", "none"))
        case.say(f"{name} wrong: {how}")
        if how == "far" and places.numel():
            far = case.random.choice((-1, below, below + 1, 2**31, -(2**31), 2**40, 2**62, -100))
            places.view(-1)[case.random.randrange(places.numel())] = far
        elif how == "shape":
            return torch.randint(0, max(below, 1), case._wrong_shape(shape))
        elif how != "far":
            return None if how == "none" else places.to(getattr(torch, how, torch.float32))
    return places


def a_chain(case: Case) -> None:
    """The conditional random field."""
    B, T = case.size(part="no rows"), case.size(long=0.1, part="no steps")
    K = case.size(long=0.05, part="no tags")
    lengths, real = case.lengths(B, T, none=0.0)
    e = case.tensor("emissions", (B, T, K), real=real, scale=4.0)
    what = case.random.choice(("marginals", "log_z", "best", "nats", "summed", "decode", "nodes"))
    case.say(what)
    if what in ("marginals", "log_z", "best"):
        a = case.tensor("transitions", (K, K), leaf=False)
        if what == "marginals":
            twin = lambda: crf.crf_marginals_by_torch(e.detach(), a, lengths)  # noqa: E731
            case.judge(lambda: crf.crf_marginals(e, a, lengths), None if case.wrong else twin)
        elif what == "log_z":
            case.judge(lambda: crf.log_partition(e, a, lengths))
        else:
            n = case.random.choice((1, 1, 1, 2, 5))
            scores = lambda by: by(e.detach(), a, lengths, n=n)[1]  # noqa: E731
            twin = lambda: scores(crf.n_best_paths_by_torch)  # noqa: E731
            finite = lambda got: [] if n > 1 else got  # noqa: E731  −∞ where there are fewer
            run = lambda: scores(crf.n_best_paths)  # noqa: E731
            case.judge(run, None if case.wrong else twin, finite=finite)
        return
    net = crf.CRF(K).to(case.dtype)
    tags = places_of(case, "tags", (B, T), K)
    spoil_chain(case, net)
    runs: dict[str, Callable[[], Any]] = {
        "nats": lambda: net.nats(e, tags, lengths),
        "summed": lambda: net.summed_nats(e, tags, lengths),
        "decode": lambda: net.decode(e, lengths),
        "nodes": lambda: net.marginals(e, lengths),
    }
    case.judge(runs[what], inputs=[*net.parameters()])


def spoil_chain(case: Case, net: nn.Module) -> None:
    for name, parameter in [*net.named_parameters()]:
        if case.is_odd(name):
            shape = case._wrong_shape(parameter.shape)
            case.say(f"{name} has the shape {shape}")
            setattr(net, name, nn.Parameter(torch.randn(shape, dtype=case.dtype)))


def a_softmax(case: Case) -> None:
    """The cross-entropy of a vocabulary."""
    N, V = case.size(long=0.1, part="no rows"), case.size(long=0.1, part="no tokens")
    H = case.size()
    h = case.tensor("hidden", (N, H))
    w, b = case.tensor("weight", (V, H)), case.tensor("bias", (V,))
    targets = places_of(case, "targets", (N,), V)
    if case.chance(0.3):
        case.judge(lambda: output.token_nats(h, w, b, targets))
        return
    smoothing = case.random.choice((0.0, 0.0, 0.1, 0.5))

    def twin() -> Tensor:
        z = h @ w.t() + b
        return functional.cross_entropy(z, targets, reduction="sum", label_smoothing=smoothing)

    run = lambda: output.summed_nats(h, w, b, targets, smoothing=smoothing)  # noqa: E731
    case.judge(run, None if case.wrong else twin)


class Arrays:
    """numpy arrays with room on both sides, in which nothing may be written."""

    def __init__(self, case: Case) -> None:
        self.case, self.homes = case, []

    def put(self, name: str, values: Any, dtype: str) -> Any:
        case = self.case
        values = np.asarray(values).astype(dtype)
        if case.is_odd(name):
            return self._wrong(name, values)
        return self._within(name, values)

    def _within(self, name: str, values: Any) -> Any:
        home = np.full(len(values) + 2 * MARGIN, 77, dtype=values.dtype)
        home[MARGIN : MARGIN + len(values)] = values
        self.homes.append((name, home))
        return home[MARGIN : MARGIN + len(values)]

    def _wrong(self, name: str, values: Any) -> Any:
        case = self.case
        how = case.random.choice(
            ("far", "far", "far", "far", "short", "long", "none", "turned", "type", "steps", "deep")
        )
        case.say(f"{name} wrong: {how}")
        if how == "far" and len(values):
            far = case.random.choice((-1, -7, 1, 5, len(values), 10**6, 2**30, 2**31 - 1, 2**40))
            values = values.copy()
            where = slice(None) if case.chance(0.2) else case.random.randrange(len(values))
            values[where] = far if values.dtype.itemsize > 4 else min(far, 2**31 - 1)
            return self._within(name, values)
        if how == "short":
            return self._within(name, values[:-1])
        if how == "long":
            return self._within(name, np.append(values, values[-1:]))
        if how == "none":
            return None
        if how == "turned":
            return self._within(name, values[::-1])
        if how == "type":
            return values.astype(case.random.choice(("i2", "f4", "u8", "c8", "O")))
        return np.repeat(values, 2)[::2] if how == "steps" else values[None]

    def check(self) -> None:
        for name, home in self.homes:
            if (home[:MARGIN] != 77).any() or (home[-MARGIN:] != 77).any():
                raise Wrong("writes", f"beside {name}")


def an_ngram_array(case: Case) -> None:
    """The n-gram kernels, whose arrays are used in place."""
    if ngram_kernels.TABLE is None:
        return
    arrays = Arrays(case)
    put = arrays.put
    V = case.random.randint(END + 1, 12)
    N = case.size(long=0.2)
    ids = np.array([case.random.randint(END, V - 1) for _ in range(N - 1)] + [END])
    try:
        what = case.random.choice(("places", "level", "level", "nats", "interpolated", "words"))
        case.say(f"{what} of {N} ids of {V} tokens")
        if what == "nats":
            _ngram_table(case, put, V, ids)
        elif what == "interpolated":
            _interpolated(case, put)
        elif what == "words":
            _words(case)
        else:
            _count(case, put, V, ids, what)
    finally:
        arrays.check()


def _count(case: Case, put: Callable[..., Any], V: int, ids: Any, what: str) -> None:
    text, N = put("ids", ids, "i4"), len(ids)
    size = case.random.choice((0, -1, 2**31 - 1)) if case.is_odd("V") else V
    counter = ngram_kernels.COUNTER(text, size)
    count = np.bincount(ids, minlength=V)
    count[START] = count[END]
    after = np.where(np.arange(V) == END, 0, count)
    free = put("free", np.cumsum(after) - after, "i8")
    places = put("places", np.zeros(N), "i4")
    if what == "level" and not case.wrong:
        counter.by_token_before(free, places)
        places = put("places of the level", places, "i4")
    if what == "places":
        counter.by_token_before(free, places)
        return
    above = None if case.chance(0.5) else put("above", np.zeros(N), "i4")
    here, words = put("here", ids, "i4"), put("below", np.arange(V), "i4")
    new = [
        put(name, np.zeros(N), t)
        for name, t in (("words", "i4"), ("count", "i8"), ("suffix", "i4"))
    ]
    below = put("below count", count, "i8")
    counter.level(words, below, here, places, above, *new, put("begin", np.zeros(V + 1), "i8"))


def _ngram_table(case: Case, put: Callable[..., Any], V: int, ids: Any) -> None:
    levels, size = [], V
    order = case.random.randint(1, 4)
    for k in range(order):
        words = np.arange(V) if k == 0 else np.sort(np.random.default_rng(k).integers(0, V, size))
        nexts = case.random.randint(0, 9) if size else 0
        cuts = np.sort(np.random.default_rng(nexts).integers(0, nexts + 1, size + 1))
        cuts[:1], cuts[-1:] = 0, nexts
        levels.append(
            (
                put(f"words {k}", words, "i4"),
                put(f"log_p {k}", -np.ones(size), "f8"),
                put(f"log_b {k}", -np.ones(size), "f8"),
                put(f"begin {k}", cuts, "i8"),
            )
        )
        size = nexts
    table = ngram_kernels.TABLE(*(list(part) for part in zip(*levels, strict=True)), -1.0)
    out = put("out", np.zeros(len(ids)), "f8")
    table.nats(put("ids", ids, "i4"), out, case.random.choice((1, 2)))


def _interpolated(case: Case, put: Callable[..., Any]) -> None:
    size, prefixes = case.random.randint(0, 9), case.random.randint(1, 5)
    begin = np.sort(np.random.default_rng(size).integers(0, size + 1, prefixes + 1))
    begin[0], begin[-1] = 0, size
    lower = case.random.randint(1, 9)
    suffix = put("suffix", np.random.default_rng(1).integers(0, lower, size), "i4")
    ngram_kernels.INTERPOLATED(
        put("count", np.arange(1, size + 1), "i8"),
        put("raw", np.arange(1, size + 1), "i8"),
        suffix,
        put("begin", begin, "i8"),
        put("lower", np.full(lower, 0.1), "f8"),
        case.random.choice((1, 0, -1, 2**62)),
        [0.0, 0.5, 0.6, 0.7][: 3 if case.is_odd("discounts") else 4],
        put("p", np.zeros(size), "f8"),
        put("left", np.zeros(prefixes), "f8"),
    )


def _words(case: Case) -> None:
    index = WORD_INDEX()
    letters = ("a", " ", "\n", "é", "\0", "漢", "\ud800", "b c", "")
    for _ in range(case.random.randint(0, 4)):
        text = "".join(case.random.choice(letters) for _ in range(case.random.randint(0, 12)))
        if case.chance(0.5):
            index.add(text.encode("utf-8", "surrogatepass"))
        else:
            line: Any = case.random.choice((text, 3, None)) if case.is_odd("a line") else text
            if "\ud800" in text:
                case.wrong.append("half a pair")
            index.read([line], case.random.choice((-1, 0, 5)))
    index.words()


TARGETS: dict[Callable[[Case], None], int] = {
    a_stack: 6,
    a_drop_in: 6,
    a_prepared_stack: 3,
    an_operator: 3,
    a_chain: 2,
    a_softmax: 2,
    an_ngram_array: 3,
}


# ------------------------------------------------------------------ running


def run_case(seed: int, index: int, say: Callable[[str], None] | None = None) -> tuple[str, ...]:
    """Nothing wrong: how it ended, in a word; else the kind of finding, where and what."""
    case = Case.number(seed, index, say)
    (target,) = case.random.choices([*TARGETS], [*TARGETS.values()])
    case.say(target.__name__)
    try:
        target(case)
    except Wrong as found:
        kind, text = found.args
        return kind, target.__name__, text
    except EXPECTED as error:
        case.say(f"{type(error).__name__}: {error}")
        if not case.wrong:
            return "refused", target.__name__, f"{type(error).__name__}: {error}"
        return ("raises",)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        outside = not any(frame.filename.startswith(PACKAGE) for frame in frames)
        if case.wrong and (outside or "deleted" in case.wrong):
            return ("raises",)
        where = frames[-1]
        place = f"{Path(where.filename).name}, {where.name}"
        return "odd", target.__name__, f"{type(error).__name__}: {error} ({place})"
    return ("compared",) if case.compared else ("gives",)


COUNTS = ("raises", "gives", "compared")
NOTE = struct.Struct("q" * (1 + len(COUNTS)))  # the case that runs, and how the others ended


def work(seed: int, indices: range, note: mmap.mmap, found: Any) -> None:
    """Run cases; what stands in the note outlives a crash."""
    counts = dict(zip(COUNTS, NOTE.unpack_from(note)[1:], strict=True))
    for index in indices:
        NOTE.pack_into(note, 0, index, *counts.values())
        end = run_case(seed, index)
        if len(end) == 1:
            counts[end[0]] += 1
        else:
            found.write(json.dumps([index, *end]) + "\n")
            found.flush()
    NOTE.pack_into(note, 0, -1, *counts.values())


def set_up() -> None:
    """What takes long once; what is forked has it."""
    warnings.simplefilter("ignore")
    torch.use_deterministic_algorithms(True)  # so that new memory is filled with NaN
    torch.set_num_threads(1)
    x = torch.ones(2, 3, 3)
    for cell in VARIANTS:
        run = partial(ours.Recurrent(3, 4, cell=cell, bidirectional=True), x)
        run()[0].sum().backward()
        within_reference(run)()[0].sum().backward()


class Worker:
    """A process that runs its share of the cases, and begins anew behind one that ends it."""

    def __init__(self, seed: int, indices: range) -> None:
        self.seed, self.indices, self.crashes = seed, indices, []
        self.note = mmap.mmap(-1, NOTE.size)
        self.found = tempfile.TemporaryFile("w+")  # noqa: SIM115  until the worker is gone
        self.pid = 0
        self._begin()

    def _begin(self) -> None:
        self.last, self.since = -2, time.monotonic()
        if pid := os.fork():
            self.pid = pid
            return
        try:
            work(self.seed, self.indices, self.note, self.found)
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(3)

    def is_done(self) -> bool:
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        index = NOTE.unpack_from(self.note)[0]
        if not pid:
            if index != self.last:
                self.last, self.since = index, time.monotonic()
            elif time.monotonic() - self.since > LONGEST:
                os.kill(self.pid, signal.SIGKILL)
            return False
        if status == 0:
            return True
        code = os.waitstatus_to_exitcode(status)
        what = signal.Signals(-code).name if code < 0 else f"exit {code}"
        self.crashes.append((index, "crash", *last_words(self.seed, index), what))
        self.indices = self.indices[self.indices.index(index) + 1 :]
        self._begin()
        return False

    def counts(self) -> dict[str, int]:
        return dict(zip(COUNTS, NOTE.unpack_from(self.note)[1:], strict=True))

    def findings(self) -> Iterator[tuple[Any, ...]]:
        self.found.seek(0)
        yield from (tuple(json.loads(line)) for line in self.found)
        yield from self.crashes


def last_words(seed: int, index: int) -> tuple[str, str]:
    """What a case that crashes says before it does: its target, and all else."""
    with tempfile.TemporaryFile("w+") as said:
        if pid := os.fork():
            _, status = os.waitpid(pid, 0)
            said.seek(0)
            first, *rest = said.read().splitlines() or [""]
            alone = [] if status else ["alone it does not: an earlier one spoiled the heap"]
            return first, "; ".join(rest + alone)
        try:
            signal.alarm(int(LONGEST))
            run_case(seed, index, lambda text: print(text, file=said, flush=True))
        finally:
            os._exit(0)


def fuzz(seed: int, cases: int, processes: int, first: int = 0) -> list[tuple[Any, ...]]:
    """All findings: the case, their kind, their target and what there is to say."""
    began = time.monotonic()
    all_cases = range(first, first + cases)
    workers = [Worker(seed, all_cases[k::processes]) for k in range(processes)]
    waiting = [*workers]
    while waiting:
        waiting = [worker for worker in waiting if not worker.is_done()]
        time.sleep(0.02)
    took = time.monotonic() - began
    counts = {name: sum(worker.counts()[name] for worker in workers) for name in COUNTS}
    found = sorted(f for worker in workers for f in worker.findings())
    ends = ", ".join(f"{count} {name}" for name, count in counts.items())
    print(f"{cases} cases in {took:.1f} s, {cases / took:.0f} a second: {ends}; {len(found)} wrong")
    return found


def report(seed: int, found: list[tuple[Any, ...]], most: int) -> None:
    """One of each sort of finding, and how many there are of it."""
    sorts: dict[tuple[str, ...], list[tuple[Any, ...]]] = {}
    for finding in found:
        _, kind, target, text, *rest = finding
        plain = "".join("#" if c.isdigit() else c for c in text)[:70]
        sorts.setdefault((kind, target, *(rest if kind == "crash" else (plain,))), []).append(
            finding
        )
    for same in sorted(sorts.values(), key=len, reverse=True)[:most]:
        index, kind, target, *text = same[0]
        print(f"{len(same)} × {kind} in {target}: {' | '.join(text)}")
        print(f"    --seed {seed} --only {index}")
    print(dict(Counter(f"{kind} {target}" for _, kind, target, *_ in found)))


def guarded(arguments: list[str]) -> None:
    """Start again with glibc's checks of the heap: what is written beside a block ends the run."""
    library = "libc_malloc_debug.so.0"
    if library in os.environ.get("LD_PRELOAD", ""):
        return
    setting = {"LD_PRELOAD": library, "MALLOC_CHECK_": "3", "MALLOC_PERTURB_": "128"}
    os.execve(sys.executable, [sys.executable, *arguments], os.environ | setting)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first case")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--most", type=int, default=40, help="sorts of findings that are shown")
    parser.add_argument("--only", type=int, nargs="+", help="these, step by step, in this process")
    parser.add_argument("--guard", action="store_true", help="check the heap too (glibc)")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if arguments.guard:
        guarded(sys.argv)
    set_up()
    if arguments.only is not None:
        for index in arguments.only:
            print(run_case(arguments.seed, index, lambda text: print(text, flush=True)))
        return 0
    found = fuzz(arguments.seed, arguments.cases, arguments.processes, arguments.first)
    report(arguments.seed, found, arguments.most)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
