"""Settings of `unrolled train ngram`."""

import re
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from unrolled.config.data import PlainTextRun
from unrolled.config.sections import Section
from unrolled.errors import ConfigError, shown
from unrolled.ngrams.settings import NgramSettings

MOST_BYTES = 2**62  # more than any machine has; TOML holds no larger power of two
UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?", re.IGNORECASE)


def _bytes(value: Any) -> Any:
    """`2GB` as it is typed."""
    if not isinstance(value, str):
        return value
    found = SIZE.fullmatch(value.strip())
    if not found:
        raise ConfigError(
            f"train.memory is {shown(value)}, but must be a number of bytes, such as 500MB or 2GB."
        )
    return int(min(float(found[1]) * UNITS[found[2].upper()], MOST_BYTES))


class CountSettings(Section):
    """How n-grams are counted; there is nothing else to train."""

    memory: Annotated[int | None, BeforeValidator(_bytes)] = Field(
        None, ge=1, description="Bytes to count in, such as 2GB; the rest goes to disk."
    )
    holdout: float = Field(
        0.05, ge=0.0, lt=1.0, description="Share of the lines held out where no dev data are given."
    )
    threads: int = Field(0, ge=0, le=1024, description="Cores to use; 0 is all.")


class NgramRun(PlainTextRun):
    """Settings of `unrolled train ngram`."""

    task: Literal["ngram"] = "ngram"
    model: NgramSettings = NgramSettings()
    train: CountSettings = CountSettings()  # type: ignore[assignment]  # no epochs, no rates
