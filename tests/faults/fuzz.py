"""Long hunts:  make fuzz N=2000  or  python tests/faults/fuzz.py N [SEED]

Prints how many cases of each kind were tried and what has fallen, and ends with 1 if anything has.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
from faults.folders import damaged_folders, damaged_runs, fitted_folders
from faults.harness import MODELS, hunt, warm_up
from faults.inputs import hostile_inputs
from faults.options import hostile_options
from faults.vectors import hostile_models, hostile_vectors

KINDS = {
    "damaged folders": damaged_folders,
    "fitted folders": fitted_folders,
    "damaged runs": damaged_runs,
    "inputs": hostile_inputs,
    "vectors": hostile_vectors,
    "arpa": hostile_models,
    "options": hostile_options,
}
KILLS = "kills"
ABOUT = 1000  # file operations of a short run that saves at every step


def killed(count: int, seed: int) -> Iterator[str]:
    """Runs of every kind of model, killed at about so many of their file operations in all."""
    kinds = [*MODELS, "import"]
    every = max(1, ABOUT * len(kinds) // count)
    script = Path(__file__).with_name("kill_saves.py")
    for name in kinds:
        with tempfile.TemporaryDirectory() as work:
            given = [sys.executable, script, work, name, str(every), str(1 + seed % every)]
            done = subprocess.run(given, capture_output=True, text=True, check=False)
        if done.returncode:
            yield f"seed {seed}: {name} killed: {done.stderr[-1500:]}"


def main(count: int, seed: int, kinds: list[str]) -> int:
    warm_up()
    fell = 0
    with tempfile.TemporaryDirectory() as work:
        for name in kinds or [*KINDS, KILLS]:
            began = time.monotonic()
            here = 0
            hunted = (
                killed(count, seed) if name == KILLS else hunt(KINDS[name](Path(work)), count, seed)
            )
            for fallen in hunted:
                print(fallen, end="\n\n", flush=True)
                here += 1
            seconds = time.monotonic() - began
            print(f"{name}: {count} tried, {here} fell, {seconds:.0f} s", flush=True)
            fell += here
    return 1 if fell else 0


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    sys.exit(main(number, start, sys.argv[3:]))
