"""Models and a run of an earlier version: they load, answer, score and go on as they did."""

import json
import math
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "golden"))
from golden_data import own_copy
from make import KILLED, USES, answer, command

from unrolled.app.cli import main

pytestmark = pytest.mark.arithmetic

KEPT = Path(__file__).parent / "golden" / "kept"
EXPECTED = json.loads((KEPT / "answers.json").read_text(encoding="utf-8"))
NEAR = 1e-4  # of a number: another processor adds in another order


def assert_alike(got: object, expected: object, place: str = "") -> None:
    """The same, number by number, in a tree of JSON; what is new may stand beside it."""
    assert type(got) is type(expected), place
    if isinstance(expected, dict):
        assert [key for key in got if key in expected] == list(expected), place
        for key, value in expected.items():
            assert_alike(got[key], value, f"{place}.{key}")
    elif isinstance(expected, list):
        named = [item["name"] for item in expected if isinstance(item, dict) and "name" in item]
        more = (
            [item for item in got[len(expected) :] if item.get("name") not in named]
            if named
            else []
        )
        assert len(got) == len(expected) + len(more), place
        for k, (one, other) in enumerate(zip(got, expected, strict=False)):
            assert_alike(one, other, f"{place}[{k}]")
    elif isinstance(expected, float):
        assert math.isclose(got, expected, rel_tol=NEAR, abs_tol=NEAR), place
    elif "/" not in str(expected):  # not a path of where they were made
        assert got == expected, place


@pytest.mark.parametrize(("task", "use"), [(task, use) for task in USES for use in USES[task]])
def test_an_old_model_answers_as_it_did(task, use):
    got = answer(command(USES[task][use], model=KEPT / task, data=KEPT / "data"))
    assert_alike(json.loads(json.dumps(got)), EXPECTED[task][use], use)


def test_an_old_run_goes_on_to_the_same_model(tmp_path):
    out = tmp_path / "run"
    own_copy(KEPT / "killed", out)
    options = command(KILLED, data=KEPT / "data")
    assert main(["train", "lm", *options, f"--out={out}", "--resume"]) == 0
    asked = command(USES["lm"]["evaluate"], model=out, data=KEPT / "data")
    values = [
        [s["value"] for s in r["scores"]] for r in (answer(asked), EXPECTED["lm"]["evaluate"])
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-2)
