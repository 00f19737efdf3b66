"""The card of a model folder: what the model is, how it was made, how good it is."""

from collections.abc import Mapping

from unrolled.config import to_toml
from unrolled.evaluate.language import Report
from unrolled.evaluate.report import cell, rows
from unrolled.models.language import LanguageModel
from unrolled.training.checkpoint import Progress


def model_card(model: LanguageModel, reports: Mapping[str, Report], progress: Progress) -> str:
    """Markdown without dates or paths, so that equal runs write equal bytes."""
    settings = model.settings
    parameters = sum(parameter.numel() for parameter in model.network.parameters())
    sections = [
        f"# A language model ({settings.model.cell}, level {settings.tokens.level})",
        f"{parameters:,} parameters, {len(model.encoder.vocabulary):,} tokens in the vocabulary. "
        f"Trained with unrolled for {progress.step:,} steps; these are the weights after step "
        f"{progress.best_step:,}, the best on the dev text.",
        *(
            f"## Scores on the {name} text\n\n{score_table(report)}"
            for name, report in reports.items()
        ),
        "## Use\n\n```\nunrolled generate FOLDER --tokens 300\nunrolled score FOLDER text.txt\n```",
        f"## Settings\n\n```toml\n{to_toml(settings)}```",
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
