"""A fixed-window language model."""

from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.tasks.window.network import WindowNetwork


class WindowLanguageModel(LanguageModel):
    """The last n tokens, one hidden layer, softmax over the next token."""

    network_type = WindowNetwork
