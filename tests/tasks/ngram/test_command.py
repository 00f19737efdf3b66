"""N-gram models from the command line: train, describe, use, export, import."""

import json

import pytest
from ngrams import random_lines

from unrolled.config import settings_for
from unrolled.tasks.ngram.settings import NgramRun

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

WORDS = [f"w{i}" for i in range(30)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for seed, (name, count) in enumerate((("train", 300), ("test", 40))):
        (folder / f"{name}.txt").write_text("\n".join(random_lines(seed, count, WORDS)) + "\n")
    return folder


@pytest.fixture
def trained(texts, tmp_path, call):
    def run(*options, name="m", test="test.txt"):
        paths = [f"--train={texts / 'train.txt'}", f"--out={tmp_path / name}"]
        return call("train", "ngram", *paths, f"--test={texts / test}", *options)

    return run


def test_settings_are_options(trained, tmp_path):
    done = trained("--order", 4, "--smoothing", "kn", "--prune", "0,0,1", "--memory", "1MB")
    assert done.code == 0, done.err
    assert "perplexity" in done.out
    settings = (tmp_path / "m" / "config.toml").read_text()
    for line in ("order = 4", 'smoothing = "kn"', "memory = 1048576"):
        assert line in settings


def test_results_are_one_json_document(trained):
    done = trained("--order=3", "--json")
    result = json.loads(done.out)
    assert result["test"]["scores"][0]["name"] == "perplexity"
    assert {"uniform", "unigram"} <= result["test"]["baselines"].keys()


def test_a_model_is_described_and_used(trained, texts, tmp_path, call):
    trained("--order=3")
    model = tmp_path / "m"
    facts = json.loads(call("info", model, "--json").out)
    assert facts["task"] == "ngram"
    assert facts["2-grams"] > 100
    assert facts["bytes"] > 1000
    scored = json.loads(call("score", model, texts / "test.txt", "--json").out)
    evaluated = json.loads(call("evaluate", model, texts / "test.txt", "--json").out)
    assert scored["all"]["perplexity"] == pytest.approx(evaluated["scores"][0]["value"])
    assert call("generate", model, "--seed=1").out == call("generate", model, "--seed=1").out
    assert call("next", model, "w0").code == 0


def test_a_file_goes_out_and_comes_in(trained, texts, tmp_path, call):
    trained("--order=3")
    arpa = tmp_path / "m.arpa"
    assert call("export", tmp_path / "m", "--arpa", arpa).code == 0
    done = call("import", arpa, "--out", tmp_path / "n")
    assert (done.code, "3-grams" in done.out) == (0, True)
    both = [
        json.loads(call("evaluate", tmp_path / name, texts / "test.txt", "--json").out)["scores"][0]
        for name in ("m", "n")
    ]
    assert both[0]["value"] == pytest.approx(both[1]["value"], rel=1e-9)


def test_only_n_grams_are_exported(model, tmp_path, call):
    done = call("export", model, "--arpa", tmp_path / "m.arpa")
    assert (done.code, done.out) == (2, "")
    assert "is a model of task 'lm', but ARPA files hold n-grams only." in done.err


@pytest.mark.row("B7")
def test_scores_that_are_no_probabilities_are_called_so(trained, tmp_path, call):
    trained("--smoothing=stupid", "--order=2")
    done = call("export", tmp_path / "m", "--arpa", tmp_path / "m.arpa")
    assert "These are scores, not probabilities" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--order=0"], "model.order is 0, but must be greater than or equal to 1"),
        (["--order=17"], "model.order is 17, but must be less than or equal to 16"),
        (["--smoothing=kneser"], "model.smoothing is 'kneser', but must be one of"),
        (["--prune=1,1"], "model.prune is 1,1, but must be at most 5 counts, one an order"),
        (["--prune=0,2,1"], "that begin with 0, never fall and stay below 2^63, such as 0,0,1"),
        (["--prune=0,x"], "model.prune is '0,x', but must be whole numbers with commas"),
        (["--prune=0,-1"], "never fall"),
        (["--memory=2QB"], "train.memory is '2QB', but must be a number of bytes, such as 500MB"),
        (["--memory=0"], "train.memory is 0, but must be greater than or equal to 1"),
        (["--delta=0.5"], "model.delta is 0.5, but it belongs to the smoothing 'add' and model"),
        (["--factor=0.5"], "model.factor is 0.5, but it belongs to the smoothing 'stupid'"),
        (["--smoothing=mle", "--prune=0,1"], "which needs every count. Leave prune out, or"),
        (["--smoothing=arpa"], 'model.smoothing is "arpa", but that is for models read from'),
    ],
)
def test_wrong_settings_are_named(trained, tmp_path, options, message):
    done = trained(*options)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert not (tmp_path / "m").exists()


def test_a_broken_file_is_named_with_its_line(tmp_path, call):
    (tmp_path / "bad.arpa").write_text("\\data\\\nngram 1=x\n")
    done = call("import", tmp_path / "bad.arpa", "--out", tmp_path / "n")
    assert done.code == 3
    assert "bad.arpa, line 2: the line is 'ngram 1=x', but must be 'ngram 1='" in done.err
    assert not (tmp_path / "n").exists()


def test_words_that_no_text_has_are_told_when_a_file_comes_in(tmp_path, call):
    arpa = tmp_path / "m.arpa"
    arpa.write_text(
        "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-1 </s>\n-1 a\u00a0b\n-1 c\n\n\\end\\\n",
        "utf-8",
    )
    done = call("import", arpa, "--out", tmp_path / "n")
    assert done.code == 0
    assert "1 of its words hold a no-break space or the like; texts are parted there" in done.err
    assert "no-break" in (tmp_path / "n" / "README.md").read_text("utf-8")


def test_more_memory_than_any_machine_has_is_all_there_is():
    settings = settings_for(NgramRun, overrides={"train.memory": "9" * 400})
    assert settings.train.memory == 2**62
    assert settings_for(NgramRun, overrides={"train.memory": "2GB"}).train.memory == 2**31
