"""Depth, dropout and overfitting: the gap between training and held-out loss for 1 to 4 layers.

    python benchmarks/overfitting.py [--out docs/overfitting.png]

A small text (the first 60,000 characters of Python's own argparse.py) is read for 40 epochs by
character models of 1 to 4 layers, with and without dropout.
"""

import argparse
import json
import sysconfig
import tempfile
import time
from pathlib import Path

import unrolled
from unrolled import charts

LAYERS, DROPOUTS, EPOCHS = (1, 2, 3, 4), (0.0, 0.4), 40
SETTINGS = {
    "tokens.level": "char",
    "model.hidden_size": 128,
    "train.learning_rate": 0.003,
    "train.schedule": "constant",
    "train.epochs": EPOCHS,
    "train.batch_tokens": 1024,
    "train.steps": 64,
    "train.holdout": 0.15,
}


def losses(text: Path, out: Path, layers: int, dropout: float) -> list[dict[str, float]]:
    """Training loss, dropout's noise included, and held-out loss of each epoch."""
    settings = {**SETTINGS, "model.layers": layers, "model.dropout": dropout}
    unrolled.train("lm", train=text, out=out, settings=settings)
    rows = map(json.loads, (out / "metrics.jsonl").read_text().splitlines())
    return [row for row in rows if "dev_loss" in row]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    picture = Path(__file__).parents[1] / "docs" / "overfitting.png"
    parser.add_argument("--out", type=Path, default=picture)
    options = parser.parse_args()
    print("| layers | dropout | train | held out | gap | best held out | seconds |")
    print("|---|---|---|---|---|---|---|")
    lines = {}
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text.txt"
        source = Path(sysconfig.get_path("stdlib"), "argparse.py").read_text(encoding="utf-8")
        text.write_text(source[:60_000], encoding="utf-8")
        for dropout in DROPOUTS:
            gaps = []
            for layers in LAYERS:
                begin = time.perf_counter()
                rows = losses(text, Path(folder) / f"{layers}-{dropout}", layers, dropout)
                train, dev = rows[-1]["train_loss"], rows[-1]["dev_loss"]
                best = min(row["dev_loss"] for row in rows)
                gaps.append(dev - train)
                print(
                    f"| {layers} | {dropout} | {train:.3f} | {dev:.3f} | {dev - train:.3f} "
                    f"| {best:.3f} | {time.perf_counter() - begin:.0f} |",
                    flush=True,
                )
            lines[f"dropout {dropout}"] = (LAYERS, gaps)
    chart = charts.curves(
        lines,
        x="layers",
        y="held-out minus training loss (nats per character)",
        title=f"The gap after {EPOCHS} epochs",
    )
    charts.save(chart, options.out)


if __name__ == "__main__":
    main()
