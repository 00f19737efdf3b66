"""How many threads the kernels may use."""

import os

import torch

_is_fork = False


def threads() -> int:
    """As many as torch; one where this process was forked from one that may have had several.

    Those did not come along, and waiting for them would never end.
    """
    if _is_fork and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return torch.get_num_threads()


def _mark_fork() -> None:
    global _is_fork
    _is_fork = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mark_fork)
