"""The recurrent stack that a model's settings ask for."""

from unrolled.config.sections import RecurrentSettings
from unrolled.nn.cells import CELLS
from unrolled.nn.recurrent import Recurrent


def recurrent_stack(settings: RecurrentSettings, input_size: int) -> Recurrent:
    """Layers, directions and cell as set; dropout between layers, where there are several."""
    return Recurrent(
        input_size,
        settings.hidden_size,
        cell=CELLS[settings.cell](**settings.variant),
        layers=settings.layers,
        bidirectional=settings.bidirectional,
        combine=settings.combine,
        dropout=settings.dropout if settings.layers > 1 else 0.0,
        variational=settings.variational,
        first_state=settings.first_state,
        init=settings.init,
        bias=settings.bias,
        forget_bias=settings.forget_bias,
    )
