"""The card of a model folder: what the model is, how it was made, how good it is."""

from unrolled.config import to_toml
from unrolled.evaluate.report import Report, cell, rows
from unrolled.tasks import task_named
from unrolled.tasks.task import Model
from unrolled.training.job import Reports


def card(model: Model, reports: Reports, *, made: str) -> str:
    """Markdown without dates or paths, so that equal runs write equal bytes.

    `made` tells how the model came about.
    """
    task = task_named(model.settings.task)
    commands = "\n".join(f"unrolled {example}" for example in task.examples)
    sizes = ", ".join(f"{name} {value:,}" for name, value in model.about().items())
    sections = [
        f"# A {task.noun}",
        " ".join([f"In numbers: {sizes}.", made, *reports.notes.values()]),
        *(
            f"## Scores on the {name} data\n\n{score_table(report)}"
            for name, report in reports.reports.items()
        ),
        f"## Use\n\n```\n{commands}\n```",
        f"## Settings\n\n```toml\n{to_toml(model.settings)}```",
    ]
    return "\n\n".join(sections) + "\n"


def score_table(report: Report) -> str:
    """Scores and baselines as a Markdown table, then the recipe."""
    measures, table = rows(report)
    lines = [
        "| | " + " | ".join(measures) + " |",
        "|---" * (len(measures) + 1) + "|",
        *("| " + " | ".join([who, *map(cell, scores)]) + " |" for who, scores in table),
    ]
    recipe = f"In brackets: 95 % intervals. Recipe: `{report.scores[0].signature}`"
    return "\n".join(lines) + f"\n\n{recipe}"
