"""A size that fits the time: with --minutes and no size given, the first seconds choose one.

Each size of the task's table is tried for some steps, the largest first, until one reads the data
often enough, or enough of them, in the time that is left.
"""

import math
from collections.abc import Sequence
from typing import Any

from unrolled.config.sections import RunSettings, Size
from unrolled.training.clock import now
from unrolled.training.job import Job, StepJob
from unrolled.training.update import Update
from unrolled.training.watch import Watch

FOR_STEPS = 0.8  # share of the time that is left which training will have
SHARE = 0.005  # of the time, for trying one size
LEAST_SECONDS, MOST_SECONDS = 0.2, 3.0
WARM = 0.5  # of the time that is measured, before it


def sized(job: Job[Any], settings: RunSettings, watch: Watch) -> StepJob[Any]:
    """The job with the largest model that reads its data often enough in the settings' minutes."""
    assert isinstance(job, StepJob)
    minutes: float = settings.train.minutes  # type: ignore[attr-defined]
    left = max(60.0 * minutes - (now() - watch.begun), 1e-3)
    tokens = max(job.facts()["tokens"], 1.0)
    with watch.phase("choosing a size"):
        for size in settings.sizes:
            chosen = _with(settings, size)
            reads = FOR_STEPS * left / _epoch_seconds(job.resized(chosen), left)
            if reads >= size.least_reads(tokens):
                break
    watch.remark(_told(size, settings, minutes, min(reads, size.most_reads)))
    least = size.least_reads(tokens)
    if reads < least:
        watch.remark(
            f"This reads {reads:.2g} of the data in {minutes:g} minutes, too little to be of use; "
            f"allow {math.ceil(least * minutes / reads)}."
        )
    return job.resized(chosen)


def _with(settings: RunSettings, size: Size) -> RunSettings:
    """The settings in this size; what was given stays."""
    sections: dict[str, dict[str, Any]] = {}
    for name, value in size.settings.items():
        section, key = name.split(".")
        if name not in settings.given():
            sections.setdefault(section, {})[key] = value
    update = {
        name: getattr(settings, name).model_copy(update=values) for name, values in sections.items()
    }
    return settings.model_copy(update=update)


def _epoch_seconds(job: StepJob[Any], left: float) -> float:
    """What reading the data once takes, when memory and caches are warm."""
    update, batches = job.update(), job.epoch(job.seed, 0)
    allowed = min(max(SHARE * left, LEAST_SECONDS), MOST_SECONDS)
    update.begin()
    _step_seconds(update, batches, allowed * WARM)
    return _step_seconds(update, batches, allowed) * len(batches)


def _step_seconds(update: Update, batches: Sequence[Any], allowed: float) -> float:
    """What a step takes: the mean of those that fit, at least one."""
    begun, steps = now(), 0
    while steps == 0 or (now() - begun < allowed and steps < len(batches)):
        update.step(batches[steps], 0.0)
        steps += 1
    return (now() - begun) / steps


def _told(size: Size, settings: RunSettings, minutes: float, reads: float) -> str:
    values = ", ".join(
        f"{name.partition('.')[2]} {value:g}"
        for name, value in size.values.items()
        if name not in settings.given()
    )
    return f"Chosen for {minutes:g} minutes: {values}; the data are read about {reads:.1f} times."
