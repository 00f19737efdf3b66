"""Settings of a task as the parameters of a scikit-learn estimator.

The names are those of the settings without their sections (`hidden_size`, `epochs`), so that
GridSearchCV and `--set` speak of the same things.
"""

from functools import cache
from inspect import Parameter, Signature
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from unrolled.config import checked, sections
from unrolled.config.sections import RunSettings
from unrolled.errors import not_one_of

OF_A_FOLDER = {  # without a use in memory
    *("minutes", "max_epochs", "checkpoint_seconds", "threads", "steps", "baselines"),
}


@cache
def flat_settings(run: type[RunSettings]) -> dict[str, tuple[str, Any]]:
    """Each setting by its flat name: its section ("" for none) and its default."""
    defaults: Any = run()  # type: ignore[call-arg]  # of a task: its name has a default
    found: dict[str, tuple[str, Any]] = {"seed": ("", defaults.seed)}
    for section in sections(run):
        for name, value in getattr(defaults, section):
            if name not in OF_A_FOLDER:
                found[name] = (section, value)
    return found


class TaskEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: keyword parameters, kept as they are given and checked by `fit`."""

    run: ClassVar[type[RunSettings]]

    def __init_subclass__(cls, *, run: type[RunSettings], **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.run = run
        cls.__init__ = _initialiser(run)  # type: ignore[method-assign]

    def settings(self) -> RunSettings:
        """The settings that the parameters make; a ConfigError says what is wrong with them."""
        values: dict[str, Any] = {"seed": self.seed}
        for name, (section, _) in flat_settings(self.run).items():
            if section:
                values.setdefault(section, {})[name] = getattr(self, name)
        return checked(self.run, values)


def _initialiser(run: type[RunSettings]) -> Any:
    """A constructor whose signature lists the settings: scikit-learn and `help` read it."""
    known = flat_settings(run)

    def initialise(self: TaskEstimator, **settings: Any) -> None:
        for name in settings:
            if name not in known:
                raise not_one_of("parameter", name, known)
        for name, (_, default) in known.items():
            setattr(self, name, settings.get(name, default))

    parameters = [Parameter("self", Parameter.POSITIONAL_ONLY)]
    parameters += [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default)
        for name, (_, default) in known.items()
    ]
    initialise.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return initialise
