import json
import math
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from ngrams import random_lines

from unrolled.config import settings_for
from unrolled.errors import ConfigError, DataError, ModelError, StorageError
from unrolled.tasks.folder import load
from unrolled.tasks.ngram.model import read_arpa, write_arpa
from unrolled.tasks.ngram.settings import NgramRun
from unrolled.tasks.run import Sources, run_training, save_model, train
from unrolled.text.source import Source

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

WORDS = [f"w{i}" for i in range(40)]


@pytest.fixture
def texts(tmp_path):
    paths = {}
    for seed, (name, count) in enumerate((("train", 300), ("dev", 40), ("test", 40))):
        paths[name] = tmp_path / f"{name}.txt"
        paths[name].write_text("\n".join(random_lines(seed, count, WORDS)) + "\n")
    return paths


@pytest.fixture
def run(texts, tmp_path):
    """Train in a folder of that name, with settings by their dotted names."""

    def start(name, paths=None, **overrides):
        chosen = {key.replace("__", "."): value for key, value in overrides.items()}
        settings = settings_for(NgramRun, overrides={"model.order": 3, **chosen})
        return train_ngram(settings, paths or texts, tmp_path / name)

    return start


def train_ngram(settings, paths, out, *, resume=False):
    return run_training(settings, Sources(**paths), out, resume=resume, watch=lambda status: None)


def files_of(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.name != ".lock"}


def test_a_folder_holds_the_model_its_scores_and_its_card(run, texts, tmp_path):
    model = run("m")
    names = {"config.toml", "model.safetensors", "metrics.json", "README.md", "MANIFEST.json"}
    assert names | {"vocab.json", "ngrams.json"} <= files_of(tmp_path / "m").keys()
    metrics = json.loads((tmp_path / "m" / "metrics.json").read_text())
    lines = texts["test"].read_text().split("\n")[:-1]
    nats = -sum(score.log_probability for score in model.score(lines))
    tokens = sum(score.tokens for score in model.score(lines))
    perplexity = metrics["test"]["scores"][0]
    assert perplexity["value"] == pytest.approx(math.exp(nats / tokens), rel=1e-12)
    assert set(metrics["test"]["baselines"]) == {"uniform", "unigram"}
    card = (tmp_path / "m" / "README.md").read_text()
    assert "Its vocabulary is open: other words are read as <unk>, which has a probability" in card
    assert "Counted with unrolled from" in card


def test_what_is_loaded_is_what_was_counted(run, texts, tmp_path):
    model, again = run("m"), load(tmp_path / "m")
    for name, tensor in model.network.state_dict().items():
        assert torch.equal(tensor, again.network.state_dict()[name])
    assert again.network.facts == model.network.facts
    sizes = {name: n for name, n in again.about().items() if "unseen" not in name}
    assert sizes == {"1-grams": 44, **_sizes(texts, 3), "vocabulary": 44}


def _sizes(texts, order):
    lines = texts["train"].read_text().split("\n")[:-1]
    rows = [["<s>", *line.split(), "</s>"] for line in lines]
    return {
        f"{k}-grams": len({tuple(r[i : i + k]) for r in rows for i in range(len(r) - k + 1)})
        for k in range(2, order + 1)
    }


def test_shares_of_unseen_n_grams_are_kept(run, tmp_path):
    run("m", model__order=5)
    facts = json.loads((tmp_path / "m" / "ngrams.json").read_text())
    for name in ("dev", "test"):
        shares = facts["unseen"][name]
        assert len(shares) == 5
        assert shares == sorted(shares)
        assert 0.0 < shares[2] < shares[4] <= 1.0
        told = load(tmp_path / "m").about()
        assert told[f"5-grams of {name} unseen"] == pytest.approx(shares[4], abs=1e-4)


def test_what_was_pruned_is_not_called_unseen(run):
    told = run("m", model__order=3, model__prune="0,0,1").about()
    assert "3-grams of dev unseen" not in told
    assert told["3-grams of dev unseen or pruned"] > told["2-grams of dev unseen or pruned"]


def test_equal_runs_write_equal_bytes(run, tmp_path):
    run("a")
    run("b")
    assert files_of(tmp_path / "a") == files_of(tmp_path / "b")


@pytest.mark.parametrize("smoothing", ["mkn", "absolute", "add"])
def test_bounded_memory_changes_no_byte_of_the_model(run, tmp_path, smoothing):
    options = {"model__smoothing": smoothing, "model__order": 4}
    run("free", **options)
    run("bound", train__memory="2KB", **options)
    free, bound = files_of(tmp_path / "free"), files_of(tmp_path / "bound")
    for name in ("model.safetensors", "metrics.json", "ngrams.json", "vocab.json"):
        assert free[name] == bound[name]


def test_pruning_with_bounded_memory_changes_nothing_either(run, tmp_path):
    for name, memory in (("free", None), ("bound", "2KB")):
        run(name, model__prune="0,0,1", train__memory=memory)
    tensors = [files_of(tmp_path / name)["model.safetensors"] for name in ("free", "bound")]
    assert tensors[0] == tensors[1]


LIMITED = """
import resource, sys
from pathlib import Path
from unrolled.tasks.run import train as train_model

train, out = sys.argv[1:]
overrides = {"model.order": 5, "train.holdout": 0.0, "train.threads": 1, "tokens.max_size": 1000}
used = int(open("/proc/self/statm").read().split()[5]) * resource.getpagesize()
limit = used + 150_000_000
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
bound = {**overrides, "train.memory": "10MB"}
train_model("ngram", train=train, out=Path(out, "bound"), settings=bound)
print("bound: done")
try:
    train_model("ngram", train=train, out=Path(out, "free"), settings=overrides)
except MemoryError:
    print("free: too large")
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory")
def test_a_process_with_little_memory_counts_much_text(tmp_path):
    """Without a limit 1.6 million words need 260 MB, with one 60 MB; the process may have 150."""
    words = np.random.default_rng(1).zipf(1.2, 1_600_000) % 5000
    lines = (" ".join(map(str, part)) for part in words.reshape(-1, 20).tolist())
    (tmp_path / "train.txt").write_text("\n".join(lines) + "\n")
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "train.txt"), str(tmp_path)]
    alone = {**os.environ, "OMP_NUM_THREADS": "1"}  # the stack of each thread counts as data
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=alone)
    assert done.stdout.splitlines() == ["bound: done", "free: too large"], done.stderr


def test_without_other_texts_the_last_lines_are_kept_back(run, texts, tmp_path):
    paths = {"train": texts["train"]}
    run("m", paths, train__holdout=0.1)
    lines = texts["train"].read_text().split("\n")[:-1]
    facts = json.loads((tmp_path / "m" / "metrics.jsonl").read_text())
    assert facts["lines"] == 270
    dev = json.loads((tmp_path / "m" / "metrics.json").read_text())["dev"]
    words = sum(len(line.split()) + 1 for line in lines[270:])
    assert f"lines:30|tokens:{words}|" in dev["scores"][0]["signature"]
    run("all", paths, train__holdout=0.0)
    assert json.loads((tmp_path / "all" / "metrics.jsonl").read_text())["lines"] == 300


def test_a_single_line_is_cut_within(run, tmp_path):
    path = tmp_path / "one.txt"
    path.write_text(" ".join(["to be or not to be that is the question"] * 10))
    run("m", {"train": path})
    facts = json.loads((tmp_path / "m" / "metrics.jsonl").read_text())
    assert (facts["lines"], facts["tokens"] < 101) == (1, True)


@pytest.mark.parametrize("level", ["char", "bpe"])
def test_other_levels_are_counted_too(run, texts, level):
    model = run(level, tokens__level=level)
    assert model.settings.tokens.level == level
    assert math.isfinite(model.score(["w1 w2"])[0].log_probability)


def test_words_are_read_as_the_encoder_would(run, texts, tmp_path):
    texts["train"].write_text("A b, a\nB c a!\n<s> x <unk> </s>\n" * 9)
    for splitter in ("space", "unicode"):
        model = run(
            splitter,
            {"train": texts["train"]},
            tokens__splitter=splitter,
            tokens__lowercase=True,
            tokens__min_count=2,
            train__holdout=0.0,
        )
        from unrolled.text.tokens import TextEncoder

        lines = texts["train"].read_text().split("\n")[:-1]
        expected = TextEncoder.build(
            lines, level="word", splitter=splitter, lowercase=True, min_count=2
        )
        assert model.encoder.vocabulary.tokens == expected.vocabulary.tokens
        assert model.encoder.vocabulary.counts == expected.vocabulary.counts


def test_a_model_without_a_score_is_kept_and_says_why(run, tmp_path):
    model = run("m", model__smoothing="mle")
    metrics = json.loads((tmp_path / "m" / "metrics.json").read_text())
    assert "dev" not in metrics
    assert "no chance at all, so the perplexity is infinite" in metrics["notes"]["dev"]
    assert metrics["notes"]["dev"].startswith("the dev text, line ")
    assert metrics["notes"]["dev"] in (tmp_path / "m" / "README.md").read_text()
    assert model.next("w1", top=1)


def test_a_tiny_text_is_enough_and_says_that_discounts_are_fixed(run, tmp_path):
    path = tmp_path / "tiny.txt"
    path.write_text("\n".join(["the cat sat on the mat and", "a dog ran to it"] * 3) + "\n")
    model = run("m", {"train": path}, model__order=7)
    assert all(found.fallback for found in model.network.facts.discounts[3:])
    card = (tmp_path / "m" / "README.md").read_text()
    assert "6, 7: they are fixed ones." in card
    (score,) = model.score(["the dog sat on a zebra"])
    assert math.isfinite(score.log_probability)
    assert score.unknown == 1


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("", {}, r"train.txt.*holds (no text|too little text)"),
        ("\n\n \n\n", {}, r"train.txt: holds no text, but there must be some to learn from"),
        ("a b\nc d\n", {"tokens__min_count": 2}, r"train.txt: gives an empty vocabulary, since no"),
    ],
)
def test_a_text_with_nothing_to_count_is_refused(run, texts, tmp_path, text, overrides, message):
    texts["train"].write_text(text)
    with pytest.raises(DataError, match=message):
        run("m", {"train": texts["train"]}, **overrides)
    assert not (tmp_path / "m").exists()


def test_a_test_text_of_unknown_words_is_refused(run, texts, tmp_path):
    texts["test"].write_text("x y z\n")
    with pytest.raises(DataError, match=r"test.txt: all 3 tokens are outside the model's vocab"):
        run("m")
    assert not (tmp_path / "m").exists()


def test_a_missing_file_leaves_nothing_behind(run, texts, tmp_path):
    with pytest.raises(StorageError, match="there is no such file"):
        run("m", {"train": tmp_path / "none.txt"})
    assert not (tmp_path / "m").exists()


def test_a_folder_is_never_overwritten(run, texts, tmp_path):
    run("m")
    before = files_of(tmp_path / "m")
    with pytest.raises(ConfigError, match=r"already holds a run\. Choose another folder, or add"):
        run("m", model__order=2)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds no run, but 'mine.txt'"):
        run("other")
    assert files_of(tmp_path / "m") == before


def test_a_finished_run_is_resumed_by_loading_it(run, texts, tmp_path):
    run("m")
    settings = settings_for(NgramRun, overrides={"model.order": 3})
    again = train_ngram(settings, texts, tmp_path / "m", resume=True)
    assert again.settings.model.order == 3
    texts["dev"].write_text("w1\n")
    with pytest.raises(ConfigError, match="--resume: the dev text is not the one"):
        train_ngram(settings, texts, tmp_path / "m", resume=True)
    other = settings_for(NgramRun, overrides={"model.order": 4})
    with pytest.raises(ConfigError, match=r"--resume: model.order is 4, but was 3"):
        train_ngram(other, texts, tmp_path / "m", resume=True)


def test_what_a_crash_left_is_cleared_up(run, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".tmp-0123456789ab").write_text("half a file")
    run("m")
    assert not list((tmp_path / "m").glob(".tmp-*"))


def test_damage_is_noticed(run, tmp_path):
    run("m")
    path = tmp_path / "m" / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"model.safetensors: is damaged: its SHA-256"):
        load(tmp_path / "m")


@pytest.mark.parametrize("sizes", ["[44, 1]", "[43, 2, 3]", "[44, 100, 3]"])
def test_facts_that_do_not_fit_the_tensors_are_refused(run, tmp_path, sizes):
    from unrolled.store.files import read_folder, write_folder

    run("m")
    files = read_folder(tmp_path / "m", required=())
    facts = json.loads(files["ngrams.json"]) | {"ngrams": json.loads(sizes)}
    tensors = (tmp_path / "m" / "model.safetensors").read_bytes()
    changed = {"ngrams.json": json.dumps(facts).encode(), "model.safetensors": tensors}
    write_folder(tmp_path / "n", {**files, **changed})
    with pytest.raises(ModelError, match=r"does not describe a model|call for"):
        load(tmp_path / "n")


def test_the_smoothing_of_imported_models_cannot_be_trained(run, tmp_path):
    with pytest.raises(ConfigError, match=r'model.smoothing is "arpa", but that is for models'):
        run("m", model__smoothing="arpa")
    assert not (tmp_path / "m").exists()


def test_a_model_from_elsewhere_can_be_saved(run, tmp_path):
    model = run("m")
    write_arpa(model, tmp_path / "m.arpa")
    read, made = read_arpa(Source(tmp_path / "m.arpa"))
    save_model(read, tmp_path / "n", made=made)
    assert made in (tmp_path / "n" / "README.md").read_text()
    loaded = load(tmp_path / "n")
    lines = random_lines(5, 20, WORDS)
    for a, b in zip(model.score(lines), loaded.score(lines), strict=True):
        assert a.log_probability == pytest.approx(b.log_probability, rel=1e-9)
    with pytest.raises(ConfigError, match="already holds a model"):
        save_model(loaded, tmp_path / "n", made="")


def test_the_python_interface_trains_it_too(texts, tmp_path):
    model = train("ngram", train=texts["train"], out=tmp_path / "m", settings={"model.order": 2})
    assert model.settings.model.order == 2


def test_there_is_nothing_to_train_for_epochs(texts, tmp_path):
    with pytest.raises(ConfigError, match=r"setting in section train is 'epochs', but must be one"):
        train("ngram", train=texts["train"], out=tmp_path / "m", epochs=3)


def test_a_full_disk_costs_no_model_and_says_so(texts, tmp_path):
    """Temporary files take their space at once: where there is none, nothing is begun."""
    from unrolled.ngrams.scratch import Scratch

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        with pytest.raises(StorageError, match=r"temporary files cannot be written: .*too large"):
            Scratch(1000, tmp_path).zeros(100_000, np.int64)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_pipe_is_counted_like_a_file(tmp_path, texts):
    settings = {"train.threads": 1}
    expected = train("ngram", train=texts["train"], out=tmp_path / "file", settings=settings)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cp", texts["train"], pipe]):
        found = train("ngram", train=pipe, out=tmp_path / "piped", settings=settings)
    for name, tensor in expected.tensors().items():
        assert torch.equal(tensor, found.tensors()[name]), name
