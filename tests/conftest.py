"""What every test stands on: the same examples in every run, and nothing left in the folder.

`pytest --rounding SEED` runs every test as on a machine that rounds otherwise: see rounding.py.
"""

import os
import signal
import tempfile
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import settings

# Small sizes gain nothing from a second thread, and threads that spin slow a busy machine down.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A shell lets what it runs in the background ignore Ctrl-C, and so would every command tried here.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# It keeps nothing, but looks for a place to: a checkout may be read-only.
os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", tempfile.gettempdir())
settings.register_profile("unrolled", deadline=None, derandomize=True, database=None)
settings.load_profile("unrolled")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rounding", type=int, metavar="SEED", help="nudge torch's results by a last place or none"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first, so that no worker is left alone with it at the end."""
    items.sort(key=lambda item: item.get_closest_marker("trains") is None)


NUDGES = pytest.StashKey[Any]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Under --rounding, a test and the fixtures it needs run within the nudges of one seed."""
    seed = item.config.getoption("--rounding")
    if seed is None or item.get_closest_marker("graph"):
        return (yield)
    from rounding import Rounding, unseen  # torch is imported only where it is asked for

    with unseen(), Rounding(seed) as item.stash[NUDGES]:
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What was nudged must be marked, or `make test-portable` would pass it over."""
    done = yield
    nudges = item.stash.get(NUDGES, None)
    if nudges and nudges.count and not item.get_closest_marker("arithmetic"):
        pytest.fail("torch's numbers were nudged here: mark the test, or its file, as arithmetic")
    return done
