"""Load a model for a command, or say which commands it is for."""

from pathlib import Path
from typing import Any

from unrolled.errors import ConfigError

LANGUAGE = ("score", "generate", "next")
COMMANDS = {  # that use the models of each task
    "lm": LANGUAGE,
    "ngram": LANGUAGE,
    "window": LANGUAGE,
    "classify": ("predict",),
    "tag": ("predict",),
    "translate": ("predict", "trace"),
}


def load_for(command: str, folder: Path) -> Any:
    """The model of a folder, if the command can use it."""
    from unrolled.models.folder import load

    model = load(folder)
    task = model.settings.task
    if command not in COMMANDS[task]:
        able = " or ".join(f"`unrolled {name}`" for name in COMMANDS[task])
        raise ConfigError(
            f"{folder} holds a model of task {task!r}, which cannot {command}. Use {able}."
        )
    return model
