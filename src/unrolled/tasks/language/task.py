"""The task `lm`: recurrent language models."""

from typing import TYPE_CHECKING, ClassVar

from unrolled.tasks.language.settings import LanguageRun
from unrolled.tasks.shared.language_task import LanguageTask
from unrolled.tasks.shared.language_uses import LANGUAGE_USES
from unrolled.tasks.shared.similar_use import SIMILAR
from unrolled.tasks.task import Use

if TYPE_CHECKING:
    from unrolled.tasks.shared.language_model import LanguageModel


class Language(LanguageTask):
    """Recurrent language models."""

    name = "lm"
    noun = "recurrent language model"
    settings = LanguageRun
    uses: ClassVar[dict[str, Use]] = {**LANGUAGE_USES, "similar": SIMILAR}

    def model(self) -> "type[LanguageModel]":
        from unrolled.tasks.language.model import RecurrentLanguageModel

        return RecurrentLanguageModel
