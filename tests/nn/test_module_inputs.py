"""Torch's own inputs for its recurrent modules: 80 calls, in training and not, with our modules."""

import json
import subprocess
import sys
from collections import Counter

import pytest
import torch
from nn.module_inputs import Case, cases
from torch import Tensor, nn

import unrolled.nn as ours

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

TOLERANCE = {torch.float32: 2e-6, torch.float64: 1e-12}
CASES = cases()
every_case = pytest.mark.parametrize("case", CASES, ids=str)
every_mode = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


# In a process of its own, for torch's tests set up much when they are imported. They lean on a
# package for expected outputs, of which nothing is needed here but the name of a class.
PUBLISHED = """
import json, sys, types, unittest
try:
    import expecttest
except ImportError:
    sys.modules["expecttest"] = types.SimpleNamespace(TestCase=unittest.TestCase)
import torch
from torch.testing._internal.common_modules import module_db

def shapes(state):
    return [list(s.shape) for s in ((state,) if isinstance(state, torch.Tensor) else state)]

found = []
for training in (True, False):
    for info in module_db:
        kind = info.module_cls.__name__
        if info.module_cls not in (torch.nn.RNN, torch.nn.GRU, torch.nn.LSTM):
            continue
        for i in info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        ):
            assert not i.constructor_input.args and not i.forward_input.kwargs
            x, *rest = i.forward_input.args
            options = sorted(i.constructor_input.kwargs.items())
            found.append([training, kind, options, *shapes(x), shapes(rest[0]) if rest else []])
print(json.dumps(found))
"""


def published() -> dict[bool, list[Case]]:
    """What the installed torch has, in training and not; of tensors their shapes alone."""
    script = [sys.executable, "-W", "ignore", "-c", PUBLISHED]
    done = subprocess.run(script, capture_output=True, text=True, timeout=120)
    if "ImportError" in done.stderr or "ModuleNotFoundError" in done.stderr:
        pytest.skip(f"torch's own tests cannot be imported: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    found: dict[bool, list[Case]] = {True: [], False: []}
    for training, kind, options, x, state in json.loads(done.stdout.splitlines()[-1]):
        case = Case(kind, tuple(map(tuple, options)), tuple(x), tuple(map(tuple, state)))
        found[training].append(case)
    return found


def test_these_are_the_inputs_that_torch_publishes():
    assert Counter(case.kind for case in CASES) == {"RNN": 32, "GRU": 16, "LSTM": 32}
    assert len(set(CASES)) == len(CASES)
    found = published()
    assert sum(map(len, found.values())) == 160
    for training in (True, False):
        assert Counter(found[training]) == Counter(CASES)


def parts(result: tuple) -> list[Tensor]:
    y, last = result
    return [y, *((last,) if isinstance(last, Tensor) else last)]


def everything(module: nn.Module, case: Case, dtype: torch.dtype) -> list[Tensor]:
    """Outputs, last states, and gradients by all that went in and by all parameters."""
    generator = torch.Generator().manual_seed(2)
    torch.manual_seed(4)
    x, state = case.tensors(dtype)
    hx = case.hx(state)
    outputs = parts(module(x) if hx is None else module(x, hx))
    upstream = [torch.randn(o.shape, generator=generator, dtype=torch.float64) for o in outputs]
    inputs = [x, *state, *module.parameters()]
    gradients = torch.autograd.grad(outputs, inputs, [u.to(dtype) for u in upstream])
    return [*(o.detach() for o in outputs), *gradients]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@every_mode
@every_case
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")  # by oneDNN
def test_outputs_states_and_gradients_are_torchs(case, training, dtype):
    options = dict(case.options)
    torch.manual_seed(1)
    mine = getattr(ours, case.kind)(**options, dtype=dtype).train(training)
    theirs = getattr(nn, case.kind)(**options, dtype=dtype).train(training)
    theirs.load_state_dict(mine.state_dict())
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    got, expected = everything(mine, case, dtype), everything(theirs, case, dtype)
    for g, e in zip(got, expected, strict=True):
        tolerance = TOLERANCE[dtype] * max(1.0, e.abs().max().item())
        torch.testing.assert_close(g, e, rtol=0, atol=tolerance)
