"""Text that a counted model cannot do much with: a clear word or a right answer, never NaN."""

import json
import math

import pytest

pytestmark = pytest.mark.arithmetic

TEXT = "the cat sat on the mat\nthe dog sat on the log\n"  # every line has six words


@pytest.fixture
def trained(tmp_path, call):
    """Train on a text and say what came of it; scored on `test`, or on nothing."""

    def run(text, *options, test=None):
        paths = {"train": text, **({"test": test} if test is not None else {})}
        for name, content in paths.items():
            (tmp_path / f"{name}.txt").write_text(content)
        named = [f"--{name}={tmp_path / f'{name}.txt'}" for name in paths]
        if test is None:
            options = ("--holdout=0", *options)
        return call("train", "ngram", *named, f"--out={tmp_path / 'm'}", *options)

    return run


def _scores(call, tmp_path, *lines):
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in lines))
    return call("score", tmp_path / "m", tmp_path / "lines.txt", "--json")


@pytest.mark.parametrize("smoothing", ["mle", "add", "stupid", "absolute", "kn", "mkn"])
def test_an_order_beyond_every_line_is_that_of_the_longest(trained, tmp_path, call, smoothing):
    found = []
    for order in (8, 12):  # a line is six words, its start and its end
        done = trained(TEXT, f"--order={order}", f"--smoothing={smoothing}")
        assert done.code == 0, done.err
        found.append(
            json.loads(
                _scores(call, tmp_path, "the cat sat on the mat", "the dog sat on the log").out
            )
        )
        facts = json.loads(call("info", tmp_path / "m", "--json").out)
        assert facts.get("9-grams", 0) == 0
        for path in (tmp_path / "m").iterdir():
            path.unlink()
    assert found[0]["all"]["tokens"] == 14
    for one, other in zip(found[0]["lines"], found[1]["lines"], strict=True):
        assert one["log_probability"] == pytest.approx(other["log_probability"], rel=1e-12)


def test_empty_lines_are_lines(trained, tmp_path, call):
    done = trained(f"\n\n{TEXT}\n", "--order=3", "--smoothing=mle", test="\nthe cat sat\n\n")
    assert done.code == 0, done.err
    empty, _ = json.loads(_scores(call, tmp_path, "", "the dog").out)["lines"]
    assert (empty["log_probability"], empty["tokens"]) == (pytest.approx(math.log(3 / 5)), 1)


def test_text_of_33_words_is_enough(trained, tmp_path, call):
    words = "it was the best of times it was the worst of times it was the age of wisdom it was"
    text = f"{words} the age of\nfoolishness it was the epoch of belief it was the\n"
    assert len(text.split()) == 33
    done = trained(text, "--order=7", test="it was the age of belief\n")
    assert done.code == 0, done.err
    (row,) = [line for line in done.out.splitlines() if line.startswith("model")]
    assert 1.0 < float(row.split()[1]) < 22.0
    assert "they are fixed ones." in (tmp_path / "m" / "README.md").read_text()
    total = json.loads(_scores(call, tmp_path, "a wholly new sentence").out)["all"]
    assert math.isfinite(total["log_probability"])
    assert total["unknown"] == 4


def test_a_test_text_of_unknown_words_alone_is_refused(trained, tmp_path):
    done = trained(TEXT, test="quite another\nlanguage\n")
    assert (done.code, done.out) == (3, "")
    assert "test.txt: all 3 tokens are outside the model's vocabulary (level word)." in done.err
    assert not (tmp_path / "m").exists()


def test_the_word_that_makes_a_perplexity_infinite_is_named(trained, tmp_path, call):
    done = trained(TEXT, "--order=3", "--smoothing=mle", test="the cat sat\nthe dog ran\n")
    assert (done.code, done.out) == (0, "")
    assert "the test text, line 1: the model gives '</s>' after 'the cat sat' no" in done.err
    assert done.err.splitlines()[-1] in call("info", tmp_path / "m").out
    (tmp_path / "test.txt").write_text("the cat sat on the mat\nthe dog ran\n")
    done = call("evaluate", tmp_path / "m", tmp_path / "test.txt")
    assert done.code == 3
    assert "test.txt, line 2: the model gives 'ran' after 'the dog' no chance at all" in done.err


def test_scores_without_a_chance_are_infinite_and_say_why(trained, tmp_path, call):
    trained(TEXT, "--order=3", "--smoothing=mle")
    lines = ["the cat sat on the mat", "the cat ran", "the mat"]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    done = call("score", tmp_path / "m", tmp_path / "lines.txt")
    assert [row.split("\t")[1] for row in done.out.splitlines()[1:]] == ["inf", "inf", "inf"]
    assert "lines.txt, line 2: the model gives 'ran' after 'the cat' no chance at all." in done.err
    assert "lines.txt, line 3: the model gives 'mat' after 'the' no chance at all." in done.err
    assert "line 1:" not in done.err
    found = json.loads(_scores(call, tmp_path, *lines).out)["lines"]
    assert [line["perplexity"] is None for line in found] == [False, True, True]


def test_a_closed_vocabulary_refuses_other_words_by_name(trained, tmp_path, call):
    done = trained(TEXT, "--order=2", "--vocabulary=closed", test="the cat\nsat on zebras\n")
    assert done.code == 0, done.err
    assert "the test text, line 2: the model gives 'zebras' after 'sat on' no chance" in done.err
    assert "Score it with a model that is smoothed and has an open vocabulary, or" in done.err
    assert "vocabulary is closed: any other word has no" in (tmp_path / "m/README.md").read_text()
    (tmp_path / "test.txt").write_text("the mat sat\n")
    done = call("evaluate", tmp_path / "m", tmp_path / "test.txt")
    assert done.code == 0, done.err
    assert "|order:2|smoothing:mkn|vocabulary:closed|" in done.out


def test_scores_that_are_no_probabilities_say_so(trained, tmp_path, call):
    done = trained(TEXT, "--smoothing=stupid", "--order=2", test="the cat sat\n")
    told = "Stupid backoff gives scores, not probabilities: they do not sum to one"
    assert told in done.err
    assert "|smoothing:stupid|factor:0.4|normalised:no|vocabulary:open|" in done.out
    for shown in (call("info", tmp_path / "m").out, _scores(call, tmp_path, "the cat").err):
        assert told in shown
    assert told in (tmp_path / "m" / "README.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ngram 2=", "ngram 3=", "line 3: the line is 'ngram 3=1', but must be 'ngram 2=' and a"),
        (
            "-0.5\ta",
            "x\ta",
            "line 8: the log-probability is 'x', but must be a number, 99 at the most.",
        ),
        (
            "-0.5\ta",
            "nan\ta",
            "line 8: the log-probability is 'nan', but must be a number, 99 at the most.",
        ),
        ("-0.1\ta b", "-0.1\ta zebra", "line 12: 'zebra' is not among the 1-grams, but every"),
        ("-0.1\ta b", "-0.1\ta", "line 12: the line has 2 columns, but a 2-gram needs a"),
        ("ngram 1=4", "ngram 1=9", "line 11: 4 1-grams end here, but the head says 9."),
        ("\\end\\", "", "line 13: the file ends among the 2-grams, without '\\end\\': it is cut"),
    ],
)
def test_a_malformed_file_is_named_with_its_line(tmp_path, call, old, new, message):
    grams = "-9\t<s>\t-0.1\n-0.5\t</s>\n-0.5\ta\t-0.2\n-0.5\tb\n"
    text = (
        f"\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n{grams}\n\\2-grams:\n-0.1\ta b\n\\end\\\n"
    )
    assert text.count(old) == 1
    for name, content in (("good", text), ("bad", text.replace(old, new))):
        (tmp_path / f"{name}.arpa").write_text(content)
        done = call("import", tmp_path / f"{name}.arpa", "--out", tmp_path / name)
        assert (done.code, (tmp_path / name).exists()) == (
            (0, True) if name == "good" else (3, False)
        )
    assert f"bad.arpa, {message}" in done.err
