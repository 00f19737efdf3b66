"""`train --seeds`: a folder a seed, and what the runs have in common."""

import json
from statistics import mean, stdev

import pytest

from unrolled.evaluate.report import saved_reports

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
SMALL = ("--hidden-size=4", "--batch-tokens=64", "--steps=8", "--epochs=1")


@pytest.fixture
def trained(call, text, tmp_path):
    def train(*more, out="runs"):
        return call("train", "lm", "--train", text, "--out", tmp_path / out, *SMALL, *more)

    return train


def test_a_folder_a_seed_and_the_mean_of_all(trained, tmp_path):
    done = trained("--seeds=3,1", "--json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    folders = {seed: tmp_path / "runs" / f"seed-{seed}" for seed in (3, 1)}
    scores = {seed: saved_reports(folder)["dev"].scores[0] for seed, folder in folders.items()}
    values = [score.value for score in scores.values()]
    assert values[0] != values[1]
    perplexity = told["dev"]["perplexity"]
    assert perplexity["values"] == values
    assert perplexity["mean"] == pytest.approx(mean(values), rel=1e-12)
    assert perplexity["deviation"] == pytest.approx(stdev(values), rel=1e-9)
    assert told["best"] == min(scores, key=lambda seed: scores[seed].value)
    alone = trained("--seed=3", out="alone")
    assert alone.code == 0
    same = ("model.safetensors", "config.toml")
    for name in same:
        assert (tmp_path / "alone" / name).read_bytes() == (folders[3] / name).read_bytes()


def test_the_table_names_the_best(trained):
    done = trained("--seeds=1,2")
    title, head, *rows = done.out.splitlines()
    assert "the best by its dev data is" in title
    assert head.split() == ["dev", "perplexity", "cross_entropy", "bits_per_character"]
    assert [row.split("  ")[0].strip() for row in rows[:3]] == ["seed 1", "seed 2", "mean"]
    assert rows[2].count("±") == 3


def test_finished_seeds_are_kept_and_missing_ones_made(trained, tmp_path):
    assert trained("--seeds=1").code == 0
    before = (tmp_path / "runs" / "seed-1" / "times.jsonl").read_bytes()
    refused = trained("--seeds=1,2")
    assert refused.code == 2
    assert "already holds a run" in refused.err
    assert trained("--seeds=1,2", "--resume").code == 0
    assert (tmp_path / "runs" / "seed-1" / "times.jsonl").read_bytes() == before
    assert (tmp_path / "runs" / "seed-2" / "MANIFEST.json").exists()


@pytest.mark.parametrize("seeds", ["", "a", "1,1", "1,", "-1"])
def test_seeds_that_are_none_are_refused(trained, seeds):
    done = trained(f"--seeds={seeds}")
    assert done.code == 2
    assert "must be different whole numbers with commas" in done.err


def test_a_folder_that_is_a_run_is_refused(trained):
    assert trained("--seed=1").code == 0
    done = trained("--seeds=1,2")
    assert done.code == 2
    assert "holds a run itself" in done.err
    both = trained("--seeds=1,2", "--seed=1", out="other")
    assert both.code == 2
