"""`unrolled train --seeds 1,2,3`: the same run several times, a folder a seed."""

from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.app.output import note, print_shown
from unrolled.app.progress import progress
from unrolled.errors import ConfigError, shown

if TYPE_CHECKING:
    from unrolled.config.sections import RunSettings
    from unrolled.tasks.run import Sources


def parse_seeds(text: str) -> list[int]:
    """`1,2,3`, different whole numbers."""
    try:
        seeds = [int(part) for part in text.split(",")]
    except ValueError:
        seeds = []
    if not seeds or len(set(seeds)) < len(seeds) or not all(0 <= seed < 2**63 for seed in seeds):
        raise ConfigError(
            f"--seeds is {shown(text)}, but must be different whole numbers with commas, such as "
            "1,2,3."
        )
    return seeds


def train_seeds(
    settings: "RunSettings",
    sources: "Sources",
    out: Path,
    seeds: list[int],
    *,
    resume: bool,
    json: bool,
) -> None:
    """Train with each seed in a folder of its own, and show what the runs have in common."""
    from unrolled.evaluate.report import saved_reports
    from unrolled.evaluate.seeds import SeedsReport
    from unrolled.tasks.run import run_training
    from unrolled.training.run_folder import RunFolder

    folders = {seed: out / f"seed-{seed}" for seed in seeds}
    _check(out, folders, resume=resume)
    for number, (seed, folder) in enumerate(folders.items(), 1):
        if RunFolder(folder).is_finished:
            note(f"The run in {folder} was finished already.")
            continue
        note(f"Seed {seed}, run {number} of {len(seeds)}, in {folder}")
        chosen = settings.model_copy(update={"seed": seed})
        with progress() as watch:
            run_training(chosen, sources, folder, resume=resume, watch=watch)
    report = SeedsReport({seed: saved_reports(folder) for seed, folder in folders.items()})
    title = f"{out}: the best by its dev data is {folders[report.best]}"
    print_shown(report, title=title, out=None, json=json)


def _check(out: Path, folders: dict[int, Path], *, resume: bool) -> None:
    """Before anything is trained: no run is in the way."""
    from unrolled.training.run_folder import RunFolder

    if RunFolder(out).is_begun:
        raise ConfigError(
            f"--out {out} holds a run itself, but --seeds makes a folder a seed. "
            "Choose another folder."
        )
    begun = [folder for folder in folders.values() if RunFolder(folder).is_begun]
    if begun and not resume:
        raise ConfigError(
            f"{begun[0]} already holds a run. Choose another --out, or add --resume to go on."
        )
