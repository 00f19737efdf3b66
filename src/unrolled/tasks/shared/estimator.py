"""Settings of a task as the parameters of a scikit-learn estimator, and its model in a folder.

The names are those of the settings without their sections (`hidden_size`, `epochs`), so that
GridSearchCV and `--set` speak of the same things. A fitted estimator is kept as a model folder:
pickled, it is that folder's bytes, and no object of ours but the estimator itself.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from inspect import Parameter, Signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from unrolled.config import checked, parse_toml, sections
from unrolled.config.sections import RunSettings
from unrolled.errors import not_one_of
from unrolled.store.files import write_folder
from unrolled.store.manifest import MANIFEST, pieces
from unrolled.store.names import SETTINGS, as_path
from unrolled.store.reading import read_folder
from unrolled.tasks.shared.stored import read_model
from unrolled.tasks.task import Model
from unrolled.training.job import model_files

OF_A_FOLDER = {"max_epochs", "checkpoint_seconds", "steps", "baselines"}  # without a use in memory
CARD = "# Trained in Python\n\nA model that `unrolled.{name}` fitted; `unrolled.load` opens it.\n"
FILES = "folder"  # of a pickled estimator: name -> bytes
READING = "data"  # the section of how files are read


@cache
def flat_settings(run: type[RunSettings]) -> dict[str, tuple[str, Any]]:
    """Each setting by its flat name: its section ("" for none) and its default."""
    defaults: Any = run()  # type: ignore[call-arg]  # of a task: its name has a default
    found: dict[str, tuple[str, Any]] = {"seed": ("", defaults.seed)}
    for section in sections(run):
        for name, value in getattr(defaults, section):
            if section != READING and name not in OF_A_FOLDER:
                found[name] = (section, value)
    return found


class TaskEstimator(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: keyword parameters, kept as they are given and checked by `fit`."""

    run: ClassVar[type[RunSettings]]
    model_type: ClassVar[type[Model]]
    model_: Any

    def __init_subclass__(
        cls,
        *,
        run: type[RunSettings] | None = None,
        model_type: type[Model] | None = None,
        **more: Any,
    ) -> None:
        super().__init_subclass__(**more)
        if run is not None and model_type is not None:
            cls.run, cls.model_type = run, model_type
            cls.__init__ = _initialiser(run)  # type: ignore[method-assign]

    def settings(self) -> RunSettings:
        """The settings that the parameters make; a ConfigError says what is wrong with them."""
        values: dict[str, Any] = {"seed": self.seed}
        for name, (section, _) in flat_settings(self.run).items():
            if section:
                values.setdefault(section, {})[name] = getattr(self, name)
        return checked(self.run, values)

    def save(self, folder: Path | str) -> None:
        """Write the fitted model as a folder, which `load` and every command can open."""
        check_is_fitted(self, "model_")
        card = CARD.format(name=type(self).__name__)
        files = {**model_files(self.model_, metrics={}, card=card), **self.own_files()}
        write_folder(
            as_path(folder, name="folder"),
            {name: b"".join(pieces(data)) for name, data in files.items()},
        )

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """A fitted estimator out of a model folder, whether `save` or the command made it."""
        return cls()._with_model(as_path(folder, name="folder"))

    def own_files(self) -> dict[str, bytes]:
        """What a folder keeps of the estimator beside its model."""
        return {}

    def take_files(self, files: Mapping[str, bytes]) -> None:
        """Take over what `own_files` wrote, the model being there; ValueError if it is wrong."""

    def _with_model(self, folder: Path) -> Self:
        self.model_ = read_model(folder, self._restored)
        for name, (section, _) in flat_settings(self.run).items():
            of = self.model_.settings
            setattr(self, name, getattr(getattr(of, section) if section else of, name))
        self.take_files(read_folder(folder, required=()))
        return self

    def _restored(self, files: Mapping[str, bytes]) -> Model:
        values = parse_toml(files[SETTINGS])
        return self.model_type.restore(checked(self.run, values), files)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: getattr(self, name) for name in flat_settings(self.run)}
        if not hasattr(self, "model_"):
            return state
        with TemporaryDirectory() as folder:
            self.save(Path(folder) / "model")
            files = sorted((Path(folder) / "model").iterdir())
            return {**state, FILES: {f.name: f.read_bytes() for f in files if f.name != MANIFEST}}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        parameters = {name: value for name, value in state.items() if name != FILES}
        with TemporaryDirectory() as folder:
            if FILES in state:
                write_folder(Path(folder) / "model", state[FILES])
                self._with_model(Path(folder) / "model")
        for name, value in parameters.items():
            setattr(self, name, value)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inputs = tags.input_tags
        inputs.one_d_array, inputs.two_d_array, inputs.string = True, False, True
        tags.target_tags.required = True
        return tags


@contextmanager
def drawing_apart(settings: Any) -> Iterator[None]:
    """Seeded, and on as many threads as the settings say; torch is then left as it was."""
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        torch.set_num_threads(settings.train.threads or threads)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


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
