"""What stands behind scores of labels and tags, for people: rates of each, commonest mistakes."""

from collections.abc import Iterator, Mapping
from typing import Any

from unrolled.evaluate.shown import columns, visible

KINDS = {"by_label": "label", "by_tag": "tag"}  # the tables of rates that a report may hold
RATES = ("precision", "recall", "f1")
MOST_LABELS = 40
MOST_MISTAKES = 5
MOST_UNSEEN = 10

Rates = Mapping[str, Mapping[str, float]]
Mistake = tuple[str, str, int]  # the right label, the one that was given, how often


def detail_tables(details: Mapping[str, Any]) -> Iterator[str]:
    """What a temperature does, rates of each label, what was taken for what: as far as known.

    What the training data do not have is told first.
    """
    for kind in KINDS.values():
        if unseen := details.get(f"{kind}s_not_in_training_data"):
            listed = [f"{visible(name)} ({n:,})" for name, n in unseen.items()][:MOST_UNSEEN]
            more = " …" * (len(unseen) > MOST_UNSEEN)
            yield (
                f"Not in the training data, so always counted as wrong: {len(unseen)} "
                f"{kind}{'s' * (len(unseen) > 1)}, {', '.join(listed)}{more}."
            )
    if scaled := details.get("calibration"):
        yield "Calibrated: ece {ece_before:.4f} before, {ece_after:.4f} after".format(**scaled)
    for name, kind in KINDS.items():
        if rates := details.get(name):
            more = f"The {MOST_LABELS} most frequent of {len(rates)} {kind}s; --json has all."
            shown = [columns(rate_lines(rates, kind=kind)), more]
            yield "\n".join(shown[: 1 + (len(rates) > MOST_LABELS)])
    if common := mistakes(details)[:MOST_MISTAKES]:
        lines = [[f"{visible(a)} taken for {visible(b)}", f"{n:,}"] for a, b, n in common]
        yield columns([["most frequent mistakes", "count"], *lines])


def rate_lines(rates: Rates, *, kind: str) -> list[list[str]]:
    """A head and a line a label, the most frequent first."""

    def line(label: str) -> list[str]:
        own = rates[label]
        return [visible(label), *(f"{own[rate]:.3f}" for rate in RATES), f"{own['count']:,}"]

    common = sorted(rates, key=lambda label: (-rates[label]["count"], label))[:MOST_LABELS]
    return [[kind, *RATES, "count"], *map(line, common)]


def mistakes(details: Mapping[str, Any]) -> list[Mistake]:
    """The most frequent first; a classifier's report has a table of them, a tagger's a list."""
    table = [
        (gold, given, count)
        for gold, row in details.get("confusion", {}).items()
        for given, count in row.items()
        if given != gold
    ]
    listed = [(m["gold"], m["predicted"], m["count"]) for m in details.get("confusions", [])]
    return sorted(table + listed, key=lambda mistake: (-mistake[2], mistake[:2]))
