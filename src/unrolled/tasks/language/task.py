"""The task `lm`: recurrent language models."""

from typing import TYPE_CHECKING

from unrolled.tasks.language.settings import LanguageRun
from unrolled.tasks.shared.language_task import LanguageTask

if TYPE_CHECKING:
    from unrolled.tasks.shared.language_model import LanguageModel


class Language(LanguageTask):
    """Recurrent language models."""

    name = "lm"
    noun = "recurrent language model"
    settings = LanguageRun

    def model(self) -> "type[LanguageModel]":
        from unrolled.tasks.language.model import RecurrentLanguageModel

        return RecurrentLanguageModel
