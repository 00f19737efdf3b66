"""Settings of the n-gram engine."""

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from unrolled.config.sections import Section
from unrolled.errors import ConfigError, shown

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
            f"model.prune is {shown(value)}, but must be whole numbers with commas, such as 0,0,1."
        ) from None


def _typed(thresholds: tuple[int, ...]) -> str:
    return ",".join(map(shown, thresholds))


class NgramSettings(Section):
    """A model of counted n-grams: the next token from the last `order` − 1."""

    order: int = Field(5, ge=1, le=MAX_ORDER, description="Tokens of the longest n-gram.")
    smoothing: Literal["mle", "add", "stupid", "absolute", "kn", "mkn", "arpa"] = Field(
        "mkn", description="How counts become probabilities; mkn is modified Kneser–Ney."
    )
    delta: float | None = Field(
        None, gt=0.0, le=1e9, description="What add adds to each count; 1 where it is left out."
    )
    factor: float | None = Field(
        None,
        gt=0.0,
        lt=1.0,
        description="What stupid backoff takes a token; 0.4 where it is left out.",
    )
    prune: Annotated[tuple[int, ...], BeforeValidator(_thresholds)] = Field(
        (), description="For each order, the count up to which n-grams are left out: 0,0,1."
    )
    vocabulary: Literal["open", "closed"] = Field(
        "open", description="Whether unknown words have a chance."
    )

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
                f"model.prune is {_typed(self.prune)} and model.smoothing is {self.smoothing!r}, "
                f"which needs every count. Leave prune out, or choose one of {', '.join(PRUNED)}."
            )
        rising = list(self.prune) == sorted(self.prune)
        fits = not self.prune or (
            self.prune[0] == 0 and self.prune[-1] < 2**63 and len(self.prune) <= self.order
        )
        if not (rising and fits):
            raise ConfigError(
                f"model.prune is {_typed(self.prune)}, but must be at most {self.order} counts, "
                "one an order, that begin with 0, never fall and stay below 2^63, such as "
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
