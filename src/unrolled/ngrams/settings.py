"""Settings of the n-gram engine."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from unrolled.config.sections import Section
from unrolled.errors import ConfigError

MAX_ORDER = 16
PRUNED = ("stupid", "absolute", "kn", "mkn")  # smoothings that know what to do without an n-gram


def _thresholds(value: Any) -> Any:
    """`0,0,1` as it is typed."""
    if not isinstance(value, str):
        return [value] if isinstance(value, int) else value
    try:
        return [int(part) for part in value.split(",")]
    except ValueError:
        raise ConfigError(
            f"model.prune is {value!r}, but must be whole numbers with commas, such as 0,0,1."
        ) from None


class NgramSettings(Section):
    """A model of counted n-grams: the next token from the last `order` − 1."""

    order: int = Field(5, ge=1, le=MAX_ORDER)
    smoothing: Literal["mle", "add", "stupid", "absolute", "kn", "mkn", "arpa"] = "mkn"
    delta: float | None = Field(None, gt=0.0, le=1e9)  # "add" adds it to each count; None: 1
    factor: float | None = Field(None, gt=0.0, lt=1.0)  # "stupid" takes it a token; None: 0.4
    prune: Annotated[tuple[int, ...], BeforeValidator(_thresholds)] = ()
    vocabulary: Literal["open", "closed"] = "open"  # closed: no chance for what was never seen

    @model_validator(mode="after")
    def _option_fits_smoothing(self) -> Self:
        for name, smoothing in (("delta", "add"), ("factor", "stupid")):
            if getattr(self, name) is not None and self.smoothing != smoothing:
                raise ConfigError(
                    f"model.{name} is {getattr(self, name)}, but it belongs to the smoothing "
                    f"{smoothing!r} and model.smoothing is {self.smoothing!r}. Leave one out."
                )
        return self

    @model_validator(mode="after")
    def _can_be_pruned(self) -> Self:
        if any(self.prune) and self.smoothing not in PRUNED:
            raise ConfigError(
                f"model.prune is {self.prune} and model.smoothing is {self.smoothing!r}, which "
                f"needs every count. Leave prune out, or choose one of {', '.join(PRUNED)}."
            )
        rising = list(self.prune) == sorted(self.prune)
        if self.prune and (not rising or self.prune[0] != 0 or len(self.prune) > self.order):
            raise ConfigError(
                f"model.prune is {','.join(map(str, self.prune))}, but must be at most "
                f"{self.order} counts, one an order, that begin with 0 and never fall, such as "
                "0,0,1: n-grams seen no more often than that are left out, and the last count "
                "serves the orders after it. For fewer words set tokens.min_count."
            )
        return self

    @property
    def cutoffs(self) -> tuple[int, ...]:
        """For each order, the count up to which its n-grams are left out."""
        given = self.prune or (0,)
        return given + given[-1:] * (self.order - len(given))

    @property
    def add_delta(self) -> float:
        """The delta in force."""
        return 1.0 if self.delta is None else self.delta

    @property
    def stupid_factor(self) -> float:
        """The factor in force."""
        return 0.4 if self.factor is None else self.factor

    @property
    def context(self) -> Literal["line"]:
        """Each line stands alone."""
        return "line"

    @property
    def direction(self) -> Literal["forward"]:
        """From the first token to the last."""
        return "forward"
