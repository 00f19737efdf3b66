"""The compiled module, where it is there: the one file that imports it and chooses its kernels.

At load the module takes the best instruction set that the machine has. The environment variable
UNROLLED_KERNELS chooses another one, "avx512", "avx2" or "portable", or "none": then all that is
compiled has its twin in torch or numpy run instead, as where there was no compiler.

A thread that calls the kernels keeps up to 64 MB of their working memory for its next call. The
environment variable UNROLLED_KEEP_BUFFERS sets another number of megabytes, 0 for none.
"""

import os

from unrolled.errors import ConfigError, not_one_of, shown

VARIABLE = "UNROLLED_KERNELS"
NONE = "none"
KEEP_BUFFERS = "UNROLLED_KEEP_BUFFERS"
MEGABYTE = 1 << 20
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
            f"{VARIABLE} is {shown(choice)}, but {there}. Leave it unset for the best there are, "
            f"or choose {NONE!r} for torch's and numpy's own."
        )
    module.use(choice)


def keep_buffers() -> None:
    """Let each thread keep as much working memory as the environment says."""
    value = os.environ.get(KEEP_BUFFERS, "")
    if value and not (value.isascii() and value.isdigit() and len(value) <= 9):
        raise ConfigError(
            f"{KEEP_BUFFERS} is {shown(value)}, but must be a number of megabytes: 0 keeps none, "
            "unset keeps 64 a thread."
        )
    if value and module:
        module.keep_buffers(int(value) * MEGABYTE)


if chosen():
    choose(chosen())
keep_buffers()
