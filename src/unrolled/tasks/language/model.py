"""A recurrent language model."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from unrolled.tasks.language.network import LanguageNetwork
from unrolled.tasks.shared.language_model import LanguageModel
from unrolled.tasks.shared.network_model import Answering
from unrolled.tasks.shared.similar import similar_answers
from unrolled.tasks.shared.texts import text_list
from unrolled.text.batch import LineBatches

BATCH_TOKENS = 8192  # tokens read at once


class RecurrentLanguageModel(LanguageModel):
    """Embedding, recurrent stack, softmax over the next token."""

    network_type = LanguageNetwork

    def answering(self) -> Mapping[str, Answering]:
        """What answers each use."""
        return {**super().answering(), "similar": partial(similar_answers, self)}

    @torch.inference_mode()
    def sentence_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The state after each text (N, H), of the last layer."""
        network = self.network
        assert isinstance(network, LanguageNetwork)
        network.eval()
        encoded = self.encoder.encode_lines(text_list(texts))
        found = np.zeros((len(encoded), network.settings.hidden_size), np.float32)
        batches = LineBatches(encoded, first=network.first, batch_tokens=BATCH_TOKENS)
        for rows, batch in batches.in_order():
            found[rows] = network.after(batch).numpy()
        return found
