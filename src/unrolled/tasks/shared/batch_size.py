"""How many tokens a batch has where nobody says: so many that an epoch makes enough steps."""

from typing import TypeVar

from unrolled.config.sections import TextRun

STEPS = 300  # an epoch, at least where there are data for it
LEAST = 128  # tokens

S = TypeVar("S", bound=TextRun)


def with_batch_tokens(settings: S, tokens: int) -> S:
    """The settings, with a batch that suits training data of so many tokens."""
    train = settings.train
    if train.batch_tokens:
        return settings
    suited = 1 << max(0, (tokens // STEPS).bit_length() - 1)  # a power of two, rounded down
    chosen = min(max(suited, LEAST), train.most_batch_tokens)
    return settings.model_copy(update={"train": train.model_copy(update={"batch_tokens": chosen})})
