"""A recurrent language model."""

from unrolled.tasks.language.network import LanguageNetwork
from unrolled.tasks.shared.language_model import LanguageModel


class RecurrentLanguageModel(LanguageModel):
    """Embedding, recurrent stack, softmax over the next token."""

    network_type = LanguageNetwork
