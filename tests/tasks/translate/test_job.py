"""Sequence-to-sequence models learn what they should, from files to a folder."""

import json
import os
import random
import signal

import pytest

import unrolled
from unrolled.config import settings_for
from unrolled.errors import ConfigError, DataError, Stopped, StorageError
from unrolled.evaluate.report import saved_reports
from unrolled.tasks.run import train
from unrolled.tasks.translate.audit import audit_widths
from unrolled.tasks.translate.data import Pairs
from unrolled.tasks.translate.report import output_scores
from unrolled.tasks.translate.search import Search
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.text.parallel import Pair, read_pairs

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

SMALL = {
    "tokens.level": "word",
    "model.hidden_size": 32,
    "model.dropout": 0.0,
    "train.learning_rate": 0.01,
    "train.batch_tokens": 256,
    "train.epochs": 12,
}


def reversed_words(count, seed):
    chance = random.Random(seed)
    rows = [chance.choices("abcdefgh", k=chance.randint(1, 6)) for _ in range(count)]
    return [f"{' '.join(row)}\t{' '.join(row[::-1]).upper()}" for row in rows]


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reverse")
    train(
        "translate",
        train=write(folder / "train.tsv", reversed_words(1500, 1)),
        dev=write(folder / "dev.tsv", reversed_words(100, 2)),
        test=write(folder / "test.tsv", reversed_words(200, 3)),
        out=folder / "model",
        settings=SMALL,
    )
    return folder


def test_reversal_is_learned(learned):
    scores = {s.name: s.value for s in saved_reports(learned / "model")["test"].scores}
    assert scores["exact_match"] >= 0.98
    assert scores["bleu"] >= 98


def test_baselines_stand_beside_it_and_are_beaten(learned):
    report = saved_reports(learned / "model")["test"]
    assert set(report.baselines) == {"copy", "dictionary"}
    assert report.unbeaten() == []
    words = {s.name: s.value for s in report.baselines["dictionary"]}
    assert words["token_accuracy"] > 0.2  # it knows the words, not their order


def test_attention_looks_at_the_mirror_place(learned):
    model = unrolled.load(learned / "model")
    right = places = 0
    for pair in read_pairs(reversed_words(50, 4), source="made").pairs:
        looked = model.attention(pair.source, pair.target).weights.argmax(1)[:-1]
        n = len(pair.source.split())
        right += sum(place == n - 1 - t for t, place in enumerate(looked))
        places += n
    assert right / places >= 0.9


def test_the_same_seed_gives_the_same_bytes_killed_or_not(tmp_path):
    data = write(tmp_path / "train.tsv", reversed_words(120, 1))
    settings = SMALL | {"train.epochs": 2, "model.dropout": 0.2, "model.sampling": 0.2}

    def run(name, **options):
        train("translate", train=data, out=tmp_path / name, settings=settings, **options)

    def stop_at_three(status):
        if status.step == 3:
            os.kill(os.getpid(), signal.SIGINT)

    run("whole")
    with pytest.raises(Stopped):
        run("cut", watch=stop_at_three)
    run("cut", resume=True)
    for file in ("model.safetensors", "metrics.json", "source-vocab.json", "metrics.jsonl"):
        assert (tmp_path / "whole" / file).read_bytes() == (tmp_path / "cut" / file).read_bytes()


def test_parallel_files_are_one_with_a_tab(tmp_path):
    lines = reversed_words(60, 1)
    whole = write(tmp_path / "all.tsv", lines)
    for side, ending in enumerate(("lo", "up")):
        write(tmp_path / f"all.{ending}", [line.split("\t")[side] for line in lines])
    settings = SMALL | {"train.epochs": 1}
    train("translate", train=whole, out=tmp_path / "one", settings=settings)
    pair = {"languages.source": "lo", "languages.target": "up"}
    train("translate", train=tmp_path / "all", out=tmp_path / "two", settings=settings | pair)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two")]
    assert weights[0] == weights[1]


def test_pairs_of_one_source_are_held_out_together():
    pairs = [Pair(f"s{n % 10}", f"t{n}", n) for n in range(50)]
    settings = settings_for(TranslateRun)
    share, seed = settings.train.holdout, settings.seed
    kept, held = Pairs(pairs, "file", {}).split(share, seed)
    assert {*kept.sources} & {*held.sources} == set()
    assert len(held.pairs) == 5
    with pytest.raises(DataError, match="holds 1 different sources"):
        Pairs(pairs[:1], "file", {}).split(share, seed)


def test_what_is_left_out_is_told(tmp_path):
    long = " ".join("a" * 30)
    lines = [*reversed_words(60, 1), f"{long}\tA", f"a\t{long}"]
    settings = SMALL | {"train.epochs": 1, "train.max_length": 20}
    data = write(tmp_path / "train.tsv", lines)
    train("translate", train=data, out=tmp_path / "model", settings=settings)
    facts = json.loads((tmp_path / "model" / "metrics.jsonl").read_text().splitlines()[0])
    assert (facts["left_out"], facts["left_out_too_long"]) == (2, 2)
    none = {"train.max_length": 1, "train.max_ratio": 1.0}
    short = write(tmp_path / "long.tsv", ["a b c\tA B C", "b c d\tD C B"])
    with pytest.raises(DataError, match=r"has no pair to learn from: left out .* pairs"):
        train("translate", train=short, out=tmp_path / "none", settings=SMALL | none)


def test_blame_adds_up_and_a_wider_search_scores_higher(learned):
    model = unrolled.load(learned / "model")
    pairs = read_pairs(reversed_words(100, 5), source="made").pairs
    found = audit_widths(model, pairs, Search(alpha=0.0), output_scores, widths=(1, 3, 10))
    for row in found.rows:
        assert row.blame.right + row.blame.model + row.blame.search == pytest.approx(1.0)
        assert row.blame.sentences == 100
        assert row.exact_match == pytest.approx(row.blame.right)
    greedy, narrow, wide = (row.score for row in found.rows)
    rounding = 1e-6 * abs(greedy)  # products of 1, of 3 and of 10 rows, in float32
    assert greedy <= narrow + rounding
    assert narrow <= wide + rounding


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        (["a b\tA B", "no tab here"], DataError, "line 2: .*1 column"),
        (["a\tb\tc"], DataError, "line 1: .*3 columns"),
        (["", ""], DataError, "holds no pair"),
    ],
)
def test_wrong_pairs_are_named_by_line(tmp_path, lines, error, message):
    data = write(tmp_path / "train.tsv", lines)
    with pytest.raises(error, match=message):
        train("translate", train=data, out=tmp_path / "out", settings=SMALL)
    assert not (tmp_path / "out").exists()


def test_sides_of_unequal_length_are_refused(tmp_path):
    write(tmp_path / "x.de", ["a", "b"])
    write(tmp_path / "x.en", ["a"])
    pair = {"languages.source": "de", "languages.target": "en"}
    with pytest.raises(DataError, match=r"x\.de has 2 lines and .*x\.en has 1, but"):
        train("translate", train=tmp_path / "x", out=tmp_path / "out", settings=SMALL | pair)
    pair["languages.target"] = "fr"
    with pytest.raises(StorageError, match=r"x\.fr: there is no such file"):
        train("translate", train=tmp_path / "x", out=tmp_path / "out", settings=SMALL | pair)


@pytest.mark.parametrize("pair", [("de", None), (None, "en"), ("de", "de")])
def test_languages_are_two(pair):
    values = dict(zip(("languages.source", "languages.target"), pair, strict=True))
    with pytest.raises(ConfigError, match="two different names"):
        settings_for(TranslateRun, overrides={k: v for k, v in values.items() if v})
