"""Every picture, once: an Altair chart from plain arrays, and one way to save it.

Altair is imported inside the functions, so importing this package is cheap.
Nothing here uses the network: an HTML page carries its scripts inside.
"""

from unrolled.charts.attention import alignment_links, attention_map
from unrolled.charts.bars import grouped_shares, share_bars
from unrolled.charts.beam import BeamNode, beam_tree
from unrolled.charts.calibration import Bins, reliability
from unrolled.charts.cells import surprise, token_shares
from unrolled.charts.deviations import deviations
from unrolled.charts.examples import training_examples
from unrolled.charts.fonts import missing_scripts
from unrolled.charts.graph import Arrow, Box, Frame, diagram
from unrolled.charts.heat import heat_map
from unrolled.charts.lines import curves, gradient_curve, length_curve, width_curve
from unrolled.charts.loss import loss_curve
from unrolled.charts.page import save, stack
from unrolled.charts.surface import surface
from unrolled.charts.tables import confusion
from unrolled.charts.trees import parse_tree
from unrolled.charts.words import word_map

__all__ = [
    "Arrow",
    "BeamNode",
    "Bins",
    "Box",
    "Frame",
    "alignment_links",
    "attention_map",
    "beam_tree",
    "confusion",
    "curves",
    "deviations",
    "diagram",
    "gradient_curve",
    "grouped_shares",
    "heat_map",
    "length_curve",
    "loss_curve",
    "missing_scripts",
    "parse_tree",
    "reliability",
    "save",
    "share_bars",
    "stack",
    "surface",
    "surprise",
    "token_shares",
    "training_examples",
    "width_curve",
    "word_map",
]
