"""The compiled module, where it is there: the one file that imports it and chooses its kernels.

At load the module takes the best instruction set that the machine has. The environment variable
UNROLLED_KERNELS chooses another one, "avx512", "avx2" or "portable", or "none": then all that is
compiled has its twin in torch or numpy run instead, as where there was no compiler.
"""

import os

from unrolled.errors import ConfigError, not_one_of

VARIABLE = "UNROLLED_KERNELS"
NONE = "none"
CHOICES = ("avx512", "avx2", "portable", NONE)

try:
    import unrolled._kernels as _compiled
except ImportError:  # no compiler was there when the package was installed
    _compiled = None  # type: ignore[assignment]

module = _compiled  # what the bridges use


def chosen() -> str:
    """What the environment asks for, or "" where it leaves the choice to us."""
    choice = os.environ.get(VARIABLE, "")
    if choice and choice not in CHOICES:
        raise not_one_of(VARIABLE, choice, CHOICES)
    return choice


def choose(choice: str) -> None:
    """Run the kernels of one instruction set, or none."""
    global module
    if choice == NONE:
        module = None  # type: ignore[assignment]
        return
    runs = module.available() if module else []
    if choice not in runs:
        there = f"this machine runs {' and '.join(runs)}" if runs else "none were compiled"
        raise ConfigError(
            f"{VARIABLE} is {choice!r}, but {there}. Leave it unset for the best there are, or "
            f"choose {NONE!r} for torch's and numpy's own."
        )
    module.use(choice)


if chosen():
    choose(chosen())
