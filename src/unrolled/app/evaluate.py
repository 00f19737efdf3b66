"""`unrolled evaluate MODEL DATA`: scores with recipes, beside the baselines."""

from unrolled.app.options import Encoding, Input, Json, Model
from unrolled.app.output import print_json, print_report
from unrolled.app.progress import busy


def evaluate(model: Model, data: Input, encoding: Encoding = "utf-8", json: Json = False) -> None:
    """Score a model on a text or a labelled file, with intervals and baselines."""
    from unrolled.evaluate.tasks import evaluate as evaluated
    from unrolled.models.folder import load
    from unrolled.text.corpus import read_lines

    loaded = load(model)
    with busy(f"evaluating {model} on {data}"):
        report = evaluated(loaded, read_lines(data, encoding=encoding), source=data)
    if json:
        print_json(report.as_json())
    else:
        print_report(report, title=f"{model} on {data}")
