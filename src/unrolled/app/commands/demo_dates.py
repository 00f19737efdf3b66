"""`unrolled demo dates`: dates as people write them, in many languages, to YYYY-MM-DD."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from unrolled.app.output import note, print_report
from unrolled.app.progress import progress
from unrolled.store.files import write_file

if TYPE_CHECKING:
    from unrolled.tasks.translate.model import TranslateModel

TRAIN, HELD_OUT = 60_000, 2_000  # pairs
MINUTES = 2.5
SHOWN = 8
# Both ways, attention, and a decoder that sees what it looks at but not what it has written: a
# date does not follow from the figure before (the pre- and post-attention LSTM of A. Ng's course).
SETTINGS = {
    "tokens.level": "char",
    "model.hidden_size": 96,
    "model.embedding_size": 32,
    "model.attention": "additive",
    "model.attention_size": 64,
    "model.placement": "bahdanau",
    "model.decoder_input": "none",
    "model.tied": False,
    "model.dropout": 0.0,
    "model.label_smoothing": 0.0,
    "train.learning_rate": 0.005,
    "train.batch_tokens": 2048,
}


def demo_dates(folder: Path, *, minutes: float | None, seed: int, threads: int) -> None:
    """Generate dates, learn to read them, score it on days it has not seen, draw what it did."""
    from unrolled.evaluate.report import saved_reports
    from unrolled.evaluate.shown import columns
    from unrolled.tasks.run import train as run
    from unrolled.text.dates import LOCALES

    minutes = MINUTES if minutes is None else minutes
    test = write_pairs(folder, seed)
    note(f"Learning to read dates in {len(LOCALES)} locales, for {minutes:g} min, in {folder}/ …")
    with progress() as watch:
        model = run(
            "translate",
            train=folder / "train.tsv",
            dev=folder / "dev.tsv",
            test=folder / "test.tsv",
            out=folder / "model",
            settings=SETTINGS,
            minutes=minutes,
            seed=seed,
            threads=threads,
            watch=watch,
        )
    report = saved_reports(folder / "model")["test"]
    print_report(report, title="How many dates of unseen days it reads right")
    shown = [source for source, _ in test[:SHOWN]]
    rows = zip(shown, model.predict(shown), strict=True)
    print(columns([[source, output] for source, output in rows]))
    draw(model, max(shown, key=len), folder / "attention.png")
    print(farewell(folder))


def write_pairs(folder: Path, seed: int) -> Sequence[tuple[str, str]]:
    """The files to learn from; the test pairs are returned. No day is in two of them."""
    from unrolled.text.dates import split_dates

    parts = split_dates(TRAIN, HELD_OUT, HELD_OUT, seed=seed)
    folder.mkdir(parents=True)
    for name, pairs in zip(("train", "dev", "test"), parts, strict=True):
        lines = "".join(f"{source}\t{target}\n" for source, target in pairs)
        write_file(folder / f"{name}.tsv", lines.encode())
    return parts[2]


def draw(model: "TranslateModel", text: str, out: Path) -> None:
    """What the model looks at for each figure of a date."""
    from unrolled.charts import attention_map, save

    alignment = model.attention(text, model.predict([text])[0])
    assert alignment.weights is not None
    title = f"Where it looks to read “{text}”"
    save(attention_map(alignment.weights, alignment.source, alignment.target, title=title), out)


def farewell(folder: Path) -> str:
    """Where things are, and what to type next."""
    return f"""
Picture: {folder}/attention.png. Now try:

  echo "Sunday 4 March 2001" | unrolled predict {folder}/model
  unrolled trace {folder}/model "4. marraskuuta 1987" --out trace.png
  unrolled train translate --train your-pairs.tsv --out your-model --minutes 10
"""
