"""The fixtures of the commands and of training runs, for the rooms' own tests."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _module(folder: str) -> ModuleType:
    """The conftest.py of another folder of tests."""
    path = Path(__file__).parents[1] / folder / "conftest.py"
    spec = spec_from_file_location(f"{folder}_fixtures", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_app, _training = _module("app"), _module("training")
call, model, text = _app.call, _app.model, _app.text
one_thread, texts, run = _training.one_thread, _training.texts, _training.run
bytes_of, metrics = _training.bytes_of, _training.metrics
