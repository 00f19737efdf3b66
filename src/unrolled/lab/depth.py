"""`unrolled lab depth`: depth, width and overfitting: training against held-out loss.

Character models of several depths and widths read a small text, some of Python's own argparse.py,
again and again, with and without dropout.
"""

import json
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from unrolled.evaluate.shown import columns
from unrolled.store.files import write_file
from unrolled.tasks.run import train

SETTINGS = {
    "tokens.level": "char",
    "train.learning_rate": 0.003,
    "train.schedule": "constant",
    "train.batch_tokens": 512,
    "train.steps": 64,
    "train.baselines": False,
    "train.holdout": 0.15,
    "train.threads": 1,
}


class Fit(NamedTuple):
    """One model after its last epoch, in nats a character."""

    layers: int
    hidden: int
    dropout: float
    train: float  # dropout's noise included
    held_out: float
    best: float  # held-out loss of the best epoch

    @property
    def gap(self) -> float:
        """How much worse it is on what it has not seen."""
        return self.held_out - self.train


@dataclass(frozen=True)
class Depth:
    """All fits."""

    fits: Sequence[Fit]
    epochs: int

    def text(self) -> str:
        """A line a model."""
        head = ["layers", "units", "dropout", "train", "held out", "gap", "best held out"]
        rows = [
            [str(f.layers), str(f.hidden), f"{f.dropout:g}"]
            + [f"{value:.3f}" for value in (f.train, f.held_out, f.gap, f.best)]
            for f in self.fits
        ]
        return f"nats a character after {self.epochs} epochs\n" + columns([head, *rows])

    def as_json(self) -> list[dict[str, Any]]:
        """An object a model."""
        return [{**fit._asdict(), "gap": fit.gap} for fit in self.fits]

    def chart(self) -> Any:
        """The gap over the layers, a line a width and dropout."""
        from unrolled.charts import curves

        lines: dict[str, tuple[list[int], list[float]]] = {}
        for fit in self.fits:
            at, gaps = lines.setdefault(f"{fit.hidden} units, dropout {fit.dropout:g}", ([], []))
            at.append(fit.layers)
            gaps.append(fit.gap)
        y = "held-out minus training loss (nats per character)"
        return curves(
            {name: line for name, line in lines.items()},
            x="layers",
            y=y,
            title=f"The gap after {self.epochs} epochs",
        )


def depth(
    *,
    layers: Sequence[int] = (1, 2, 3),
    widths: Sequence[int] = (16, 96),
    dropouts: Sequence[float] = (0.0, 0.4),
    epochs: int = 50,
    characters: int = 12_000,
    seed: int = 1,
    tell: Any = lambda _: None,
) -> Depth:
    """Every depth at every width and dropout."""
    fits = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        source = Path(sysconfig.get_path("stdlib"), "argparse.py").read_text(encoding="utf-8")
        write_file(text, source[:characters].encode())
        for hidden in widths:
            for dropout in dropouts:
                for number in layers:
                    out = Path(folder) / f"{hidden}-{dropout}-{number}"
                    model = {
                        "model.layers": number,
                        "model.hidden_size": hidden,
                        "model.dropout": dropout,
                    }
                    settings = {**SETTINGS, **model, "train.epochs": epochs}
                    train("lm", train=text, out=out, seed=seed, settings=settings)
                    fits.append(Fit(number, hidden, dropout, *_losses(out)))
                    tell(f"depth: {number} layers of {hidden}, dropout {dropout:g}")
    return Depth(fits, epochs)


def _losses(run: Path) -> tuple[float, float, float]:
    rows = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    epochs = [row for row in rows if "dev_loss" in row]
    best = min(row["dev_loss"] for row in epochs)
    return epochs[-1]["train_loss"], epochs[-1]["dev_loss"], best
