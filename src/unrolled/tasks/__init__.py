"""The tasks. A new one is a folder here and a line in TASKS."""

from typing import Any

from unrolled.errors import not_one_of
from unrolled.tasks.classify.task import Classify
from unrolled.tasks.embed.task import Embed
from unrolled.tasks.language.task import Language
from unrolled.tasks.ngram.task import Ngram
from unrolled.tasks.tag.task import Tag
from unrolled.tasks.task import Task
from unrolled.tasks.translate.task import Translate
from unrolled.tasks.tree.task import TreeTask
from unrolled.tasks.window.task import Window

AnyTask = Task[Any, Any, Any]

TASKS: dict[str, AnyTask] = {
    task.name: task
    for task in (Language(), Ngram(), Window(), Classify(), Tag(), Translate(), Embed(), TreeTask())
}


def task_named(name: object) -> AnyTask:
    """The task of that name, or a ConfigError that lists the names."""
    if not isinstance(name, str) or name not in TASKS:
        raise not_one_of("task", name, TASKS)
    return TASKS[name]
