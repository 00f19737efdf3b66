"""Tensors in, tensors out: recurrent cells, and layers of them over time."""

from unrolled.nn import kernels
from unrolled.nn.cells import CELLS, Cell, GRUCell, LSTMCell, RNNCell, State, Weights, convert_gru
from unrolled.nn.dropin import GRU, LSTM, RNN
from unrolled.nn.dropout import Dropout
from unrolled.nn.layer import reference
from unrolled.nn.pooling import POOLS, pool
from unrolled.nn.recurrent import Recurrent

__all__ = [
    "CELLS",
    "GRU",
    "LSTM",
    "POOLS",
    "RNN",
    "Cell",
    "Dropout",
    "GRUCell",
    "LSTMCell",
    "RNNCell",
    "Recurrent",
    "State",
    "Weights",
    "convert_gru",
    "kernels",
    "pool",
    "reference",
]
