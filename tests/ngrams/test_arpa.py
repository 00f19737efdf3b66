import gzip
import math

import numpy as np
import pytest
from ngrams import counted, random_lines, step

from unrolled.errors import ConfigError, DataError, StorageError
from unrolled.ngrams.arpa_reader import read_table
from unrolled.ngrams.table import ZERO
from unrolled.tasks.ngram.model import read_arpa, write_arpa
from unrolled.tasks.shared.language_report import evaluate_language
from unrolled.text.source import Source

pytestmark = pytest.mark.arithmetic

SMOOTHINGS = ("mle", "add", "stupid", "absolute", "kn", "mkn")

SMALL = r"""
a line that no reader needs

\data\
ngram 1=5
ngram 2=4

\1-grams:
-99	<s>	-0.3
-0.9	</s>
-1.5	<unk>
-0.5	cat	-0.2
-0.7	dog

\2-grams:
-0.2	<s> cat
-0.6	<s> dog
-0.1	cat </s>
-0.4	dog </s>

\end\
"""


def written(tmp_path, text, name="small.arpa"):
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def read(path):
    """The model of a file, which tells how it came about."""
    model, made = read_arpa(Source(path))
    assert made.startswith("Read with unrolled from an ARPA file.")
    return model


def log10(model, line):
    return model.score([line])[0].log_probability / math.log(10.0)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", [1, 2, 5])
def test_a_model_survives_the_file(smoothing, order, tmp_path):
    model = counted(random_lines(1, count=60), order, smoothing)
    write_arpa(model, tmp_path / "a.arpa")
    again = read(tmp_path / "a.arpa")
    encoded = model.encoder.encode_lines(random_lines(2, words=["a", "b", "f", "new"]))
    if smoothing != "stupid":  # whose unseen contexts count too, which the format cannot say
        np.testing.assert_allclose(
            again.network.nats_in_lines(encoded), model.network.nats_in_lines(encoded), rtol=1e-9
        )
    write_arpa(again, tmp_path / "b.arpa")
    assert (tmp_path / "a.arpa").read_bytes() == (tmp_path / "b.arpa").read_bytes()
    assert again.network.facts.sizes == model.network.facts.sizes


def test_a_file_is_read_as_it_says(tmp_path):
    model = read(written(tmp_path, SMALL))
    assert model.encoder.vocabulary.tokens[4:] == ("cat", "dog")
    assert log10(model, "cat") == pytest.approx(-0.2 - 0.1)
    assert log10(model, "cat cat") == pytest.approx(-0.2 + (-0.2 - 0.5) - 0.1)
    assert log10(model, "cow") == pytest.approx((-0.3 - 1.5) - 0.9)
    assert step(model, "<s>")["<s>"] == 0.0


def test_a_file_knows_no_frequencies_to_compare_with(tmp_path):
    lines = random_lines(1)
    model = counted(lines, 2)
    write_arpa(model, tmp_path / "a.arpa")
    again = read(tmp_path / "a.arpa")
    reports = [evaluate_language(m, lines, source="lines") for m in (model, again)]
    assert [[*report.baselines] for report in reports] == [["uniform", "unigram"], ["uniform"]]
    assert reports[0].baselines["uniform"] == reports[1].baselines["uniform"]


def test_files_may_be_compressed_and_from_elsewhere(tmp_path):
    path = tmp_path / "small.arpa.gz"
    path.write_bytes(gzip.compress(SMALL.replace("\n", "\r\n").encode()))
    assert log10(read(path), "dog") == pytest.approx(-1.0)


def test_columns_may_be_parted_by_any_blanks(tmp_path):
    text = SMALL.replace("-0.2\t<s> cat", " -0.2   <s>\tcat ").replace("<unk>", "<UNK>")
    model = read(written(tmp_path, text))
    assert log10(model, "cat") == pytest.approx(-0.3)
    assert log10(model, "cow") == pytest.approx(-2.7)


def test_pruned_away_parts_come_back_as_backing_off_has_them(tmp_path):
    """Of "x cat dog", neither "x cat" nor "cat dog" is in the file."""
    text = r"""
\data\
ngram 1=6
ngram 2=1
ngram 3=1
\1-grams:
-99	<s>	-0.1
-0.9	</s>
-1.5	<unk>
-0.5	cat	-0.2
-0.7	dog	-0.4
-0.8	x	-0.25
\2-grams:
-0.2	<s> x	-0.15
\3-grams:
-0.05	x cat dog
\end\
"""
    model = read(written(tmp_path, text))
    assert model.network.facts.sizes == (7, 3, 1)
    x, cat, dog, end = -0.2, -0.15 - 0.25 - 0.5, -0.05, -0.4 - 0.9
    assert log10(model, "x cat dog") == pytest.approx(x + cat + dog + end)
    cat, dog = -0.1 - 0.5, -0.2 - 0.7
    assert log10(model, "cat dog") == pytest.approx(cat + dog + end)


def test_n_grams_that_no_line_has_are_left_out(tmp_path):
    text = SMALL.replace("ngram 2=4", "ngram 2=6")
    text = text.replace("-0.4\tdog </s>", "-0.4\tdog </s>\n-0.1\tdog <s>\n-0.1\t</s> cat")
    model = read(written(tmp_path, text))
    assert model.network.facts.sizes[1] == 4
    assert [s.log_probability for s in model.score(["dog", "cat"])] == [
        s.log_probability for s in read(written(tmp_path, SMALL, "b")).score(["dog", "cat"])
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("\\data\\", "data", r"ends without a line '\\data\\': it is no ARPA file"),
        ("ngram 2=4", "ngram 3=4", r"line 6: the line is 'ngram 3=4', but must be 'ngram 2=' and"),
        ("ngram 2=4", "ngram 2=x", r"line 6: the line is 'ngram 2=x'"),
        ("ngram 2=4", "ngram 2=5", r"line 21: 4 2-grams end here, but the head says 5"),
        ("ngram 1=5", "ngram 1=6", r"line 15: 5 1-grams end here, but the head says 6"),
        ("\\2-grams:", "\\3-grams:", r"line 15: the line is '\\3-grams:', but must be '\\2-g"),
        ("\\end\\", "", r"ends among the 2-grams, without '\\end\\': it is cut off"),
        ("\\end\\", "\\fin\\", r"line 21: the line is '\\fin\\', but must be '\\end\\'"),
        ("-0.5\tcat\t-0.2", "-0.5\tcat\t-0.2\t1", r"line 12: the line has 4 columns, but a 1-gram"),
        ("-0.2\t<s> cat", "-0.2\tcat", r"line 16: .* 2 columns, but a 2-gram needs .* 2 words"),
        ("-0.5\tcat", "half\tcat", r"line 12: the log-probability is 'half', but must be a number"),
        ("-0.5\tcat", "nan\tcat", r"line 12: the log-probability is 'nan'"),
        ("-0.5\tcat", "0.5\tcat", r"line 12: the log-probability is 0.5, but must be 0 or less"),
        ("cat\t-0.2", "cat\tinf", r"line 12: the backoff weight is 'inf', but must be a number"),
        (
            "cat\t-0.2",
            "cat\t1.7e308",
            r"line 12: the backoff weight is '1.7e308', but must be",
        ),
        ("-0.2\t<s> cat", "-0.2\t<s> cow", r"line 16: 'cow' is not among the 1-grams, but every"),
        ("-0.6\t<s> dog", "-0.6\t<s> cat", r"line 17: the n-gram is that of line 16, but each may"),
        ("-0.7\tdog", "-0.7\tcat", r"line 13: the n-gram is that of line 12"),
        ("</s>", "<end>", r"the list of 1-grams lacks '</s>', so no text can be scored"),
        ("<unk>", "<pad>", r"the list of 1-grams holds '<pad>'"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(old, new, message, tmp_path):
    assert old in SMALL
    with pytest.raises(DataError, match=message):
        read(written(tmp_path, SMALL.replace(old, new)))


def test_more_orders_than_can_be_read_are_refused(tmp_path):
    head = "\\data\\\n" + "".join(f"ngram {k}=1\n" for k in range(1, 18))
    with pytest.raises(DataError, match=r"line 18: .* at most 16 orders can be read"):
        read(written(tmp_path, head))


def test_a_file_that_ends_in_its_head_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"line 2: the file ends here, without n-grams"):
        read(written(tmp_path, "\\data\\\nngram 1=1\n"))


def test_characters_cannot_be_written(tmp_path):
    model = counted(["a b"], 2, level="char")
    with pytest.raises(ConfigError, match=r"token ' ' holds white space, which parts the tokens"):
        write_arpa(model, tmp_path / "a.arpa")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path):
    model = counted(["a b"], 2)
    with pytest.raises(StorageError, match=r"none/a.arpa: cannot write: No such file"):
        write_arpa(model, tmp_path / "none" / "a.arpa")


@pytest.mark.parametrize("smoothing", ["mkn", "absolute", "add"])
@pytest.mark.parametrize("order", [2, 3, 6])
@pytest.mark.parametrize("vocabulary", ["open", "closed"])
def test_kenlm_finds_the_same_probabilities(smoothing, order, vocabulary, tmp_path, capfd):
    kenlm = pytest.importorskip("kenlm")
    model = counted(random_lines(3, count=100), order, smoothing, vocabulary=vocabulary)
    write_arpa(model, tmp_path / "a.arpa")
    theirs = kenlm.Model(str(tmp_path / "a.arpa"))
    unknown = ["new"] if vocabulary == "open" else []
    lines = random_lines(4, count=200, words=["a", "b", "c", "f", *unknown])
    encoded = model.encoder.encode_lines(lines)
    ours = -model.network.nats_in_lines(encoded) / math.log(10.0)
    found = [p for line in lines for p, *_ in theirs.full_scores(line)]
    np.testing.assert_allclose(found, ours, atol=1e-5, rtol=0.0)


@pytest.mark.parametrize("least", ["-1e400", "-1.7e308", "-inf", "-99"])
def test_no_chance_is_the_same_number_however_it_is_written(tmp_path, least):
    text = SMALL.replace("-0.5\tcat\t-0.2", f"{least}\tcat\t{least}")
    table, _ = read_table(written(tmp_path, text))
    for level in table.levels:
        assert np.isfinite(level.log_p).all()
        assert np.isfinite(level.log_b).all()
    assert (table.levels[0].log_p == ZERO).sum() == 3  # <pad>, <s> and cat
