"""How long an LSTM's cell remembers when only its forget bias speaks."""

import math


def half_life(bias: float) -> float:
    """Steps until half of a cell is left, f = σ(bias) at each; f = 1 never."""
    log_f = -math.log1p(math.exp(-bias))
    return math.log(0.5) / log_f
