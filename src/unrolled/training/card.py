"""The card of a model folder: what the model is, how it was made, how good it is."""

from collections.abc import Mapping

from unrolled.config import to_toml
from unrolled.evaluate.report import Report, cell, rows
from unrolled.models.folder import Model
from unrolled.training.checkpoint import Progress

LANGUAGE_USE = ("generate FOLDER --tokens 300", "score FOLDER text.txt")
KINDS = {  # of each task: what its model is, and commands that use it
    "classify": ("classifier", ("predict FOLDER texts.txt", "evaluate FOLDER labelled.tsv")),
    "tag": ("tagger", ("predict FOLDER text.txt", "evaluate FOLDER tagged.conllu")),
    "translate": (
        "sequence-to-sequence model",
        ("predict FOLDER texts.txt", "evaluate FOLDER pairs.tsv"),
    ),
    "lm": ("recurrent language model", LANGUAGE_USE),
    "ngram": ("counted n-gram language model", LANGUAGE_USE),
    "window": ("fixed-window language model", LANGUAGE_USE),
}


def model_card(model: Model, reports: Mapping[str, Report], progress: Progress) -> str:
    """Markdown without dates or paths, so that equal runs write equal bytes."""
    made = (
        f"Trained with unrolled for {progress.step:,} steps; these are the weights after step "
        f"{progress.best_step:,}, the best on the dev data."
    )
    return card(model, reports, made=made)


def card(model: Model, reports: Mapping[str, Report], *, made: str) -> str:
    """The card of a model that was made in the way that `made` tells."""
    kind, uses = KINDS[model.settings.task]
    commands = "\n".join(f"unrolled {use}" for use in uses)
    sizes = ", ".join(f"{name} {value:,}" for name, value in model.about().items())
    sections = [
        f"# A {kind}",
        f"In numbers: {sizes}. {made}",
        *(
            f"## Scores on the {name} data\n\n{score_table(report)}"
            for name, report in reports.items()
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
