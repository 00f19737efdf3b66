"""The task `window`: fixed-window language models."""

from typing import TYPE_CHECKING

from unrolled.tasks.shared.language_task import LanguageTask
from unrolled.tasks.window.settings import WindowRun

if TYPE_CHECKING:
    from unrolled.tasks.shared.language_model import LanguageModel


class Window(LanguageTask):
    """Fixed-window language models."""

    name = "window"
    noun = "fixed-window language model"
    settings = WindowRun

    def model(self) -> "type[LanguageModel]":
        from unrolled.tasks.window.model import WindowLanguageModel

        return WindowLanguageModel
