"""`unrolled evaluate MODEL DATA`: scores with recipes, beside the baselines."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from unrolled.app.audit import print_audit, print_bleu
from unrolled.app.options import Encoding, Json, Model
from unrolled.app.output import print_json, print_report
from unrolled.app.progress import busy
from unrolled.app.search import Alpha, Beam, From, Stop, To, chosen_search, pair_lines
from unrolled.errors import ConfigError

Data = Annotated[
    str, typer.Argument(help="A file, .gz or .xz, or -; of parallel files what they share.")
]


def evaluate(
    model: Model,
    data: Data,
    encoding: Encoding = "utf-8",
    source: From = None,
    target: To = None,
    beam: Beam = None,
    alpha: Alpha = None,
    stop: Stop = None,
    audit: Annotated[
        bool, typer.Option("--audit", help="Blame model or search for wrong outputs, by width.")
    ] = False,
    explain_bleu: Annotated[
        int | None, typer.Option(help="Show BLEU step by step for the pair of this number.", min=1)
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Draw the audit: .png, .svg or .html.")] = None,
    json: Json = False,
) -> None:
    """Score a model on a text or a labelled file, with intervals and baselines."""
    from unrolled.evaluate.tasks import evaluate as evaluated
    from unrolled.models.folder import load
    from unrolled.text.corpus import read_lines

    loaded = load(model)
    options: dict[str, Any] = {}
    lines: Iterable[str]
    if loaded.settings.task == "translate":
        lines = pair_lines(loaded, data, encoding=encoding, languages=(source, target))
        options["search"] = chosen_search(width=beam, alpha=alpha, stop=stop)
        if out is not None and not audit:
            raise ConfigError(f"--out is {out}, but it draws the audit. Add --audit.")
        if explain_bleu is not None:
            return print_bleu(loaded, lines, explain_bleu, options["search"], source=data)
        if audit:
            return print_audit(loaded, lines, options["search"], source=data, out=out, json=json)
    else:
        wanted = {"from": source, "to": target, "beam": beam, "alpha": alpha, "stop": stop}
        refuse(
            loaded.settings.task,
            **wanted,
            **{"audit": audit, "explain-bleu": explain_bleu, "out": out},
        )
        lines = read_lines(data, encoding=encoding)
    with busy(f"evaluating {model} on {data}"):
        report = evaluated(loaded, lines, source=data, **options)
    if json:
        print_json(report.as_json())
    else:
        print_report(report, title=f"{model} on {data}")
    return None


def refuse(task: str, **options: Any) -> None:
    """Options of sequence-to-sequence models for another."""
    for name, value in options.items():
        if value is not None and value is not False:
            raise ConfigError(
                f"--{name} was given, but the model is of task {task!r} and only a "
                "sequence-to-sequence model has that option. Leave it out."
            )
