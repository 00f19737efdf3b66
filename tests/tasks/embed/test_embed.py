"""Word vectors from text: what is read, what is learned, what is refused."""

import gzip
import io
import lzma
import sys

import numpy as np
import pytest

from unrolled import native
from unrolled.app.cli import main
from unrolled.errors import DataError
from unrolled.nn import embed_kernels
from unrolled.tasks.embed.data import LONGEST, read_text
from unrolled.tasks.embed.settings import EmbedTokens, EmbedTrain
from unrolled.tasks.folder import load
from unrolled.tasks.run import train
from unrolled.text.numbered import NumberedWords
from unrolled.text.source import Source

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]
TOKENS = EmbedTokens(min_count=1)
TEXT = "The cat saw 2 cows.\nÄpfel, Don't stop!\n\nthe cat\n"
WORDS = [["the", "cat", "saw", "cows"], ["äpfel", "don", "t", "stop"], [], ["the", "cat"]]


def words_of(text):
    corpus = text.encoded(text.words)
    bounds = zip(corpus.starts[:-1], corpus.starts[1:], strict=True)
    return [[text.words[i] for i in corpus.ids[a:b]] for a, b in bounds]


def test_a_text_is_read_from_files_of_every_kind(tmp_path, monkeypatch):
    data = TEXT.encode()
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "a.gz").write_bytes(gzip.compress(data))
    (tmp_path / "a.xz").write_bytes(lzma.compress(data))
    texts = [read_text(Source(tmp_path / name), TOKENS) for name in ("a.txt", "a.gz", "a.xz")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    texts.append(read_text(Source("-"), TOKENS))
    assert [words_of(text) for text in texts] == [WORDS] * 4
    assert len({str(text.fingerprint()) for text in texts}) == 1
    assert words_of(read_text(Source(tmp_path), TOKENS)) == WORDS * 3


@pytest.mark.parametrize(
    ("splitter", "lowercase", "expected"),
    [
        ("letters", True, ["don t stop ünïcode  x", "a"]),
        ("letters", False, ["Don t stop Ünïcode  X", "a"]),
        ("space", True, ["don't stop ünïcode42 x", "a"]),
    ],
)
def test_words_are_letters_or_what_stands_between_spaces(splitter, lowercase, expected):
    read = NumberedWords(splitter, lowercase=lowercase).read_as(["Don't stop Ünïcode42 X", "a"])
    assert [line.split() for line in read] == [line.split() for line in expected]


def test_rare_words_are_left_out_and_the_rest_ordered_by_count(tmp_path):
    (tmp_path / "t").write_text("b a b c\nc b\nx\na b\n")
    text = read_text(Source(tmp_path / "t"), TOKENS)
    words = text.vocabulary(EmbedTokens(min_count=2))
    assert (words.words, words.counts.tolist()) == (["b", "a", "c"], [4, 2, 2])
    corpus = text.encoded(words.words)
    assert corpus.ids.tolist() == [0, 1, 0, 2, 2, 0, 1, 0]
    assert corpus.starts.tolist() == [0, 4, 6, 6, 8]
    assert text.vocabulary(EmbedTokens(min_count=1, max_size=2)).words == ["b", "a"]


def test_a_line_beyond_measure_is_cut(tmp_path):
    (tmp_path / "t").write_text("a b " * LONGEST)
    text = read_text(Source(tmp_path / "t"), TOKENS)
    assert text.encoded(["a", "b"]).starts.tolist() == [0, LONGEST, 2 * LONGEST]


def test_runs_cover_every_line_once(tmp_path):
    (tmp_path / "t").write_text("a b c\n" * 40)
    corpus = read_text(Source(tmp_path / "t"), TOKENS).encoded(["a", "b"])
    runs = corpus.runs(17)
    assert [run[0] for run in runs[1:]] == [run[1] for run in runs[:-1]]
    assert (runs[0][0], runs[-1][1], sum(map(corpus.size, runs))) == (0, 40, 80)


@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_33_words_give_finite_vectors(objective, tmp_path):
    (tmp_path / "t").write_text("a rat ate some cheese and ran\n" * 4 + "the end of it all\n")
    settings = {"tokens.min_count": 1, "model.objective": objective, "model.embedding_size": 3}
    model = train("embed", train=tmp_path / "t", out=tmp_path / "m", settings=settings)
    assert len(model.words) == 12
    assert np.isfinite(model.vectors.vectors).all()
    assert all(np.isfinite(near.similarity) for near in model.vectors.neighbours("rat", 11))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a a a a a a\n", "has 1 words that come 5 times or more, but there must be at least 2"),
        ("a b c\n", "has 0 words that come 5 times"),
        ("1 2 3\n\n", "holds no word"),
        ("", "holds no word"),
    ],
)
def test_too_little_text_is_refused(text, problem, tmp_path, capsys):
    (tmp_path / "t").write_text(text)
    assert main(["train", "embed", f"--train={tmp_path / 't'}", f"--out={tmp_path / 'm'}"]) == 3
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


def test_a_text_of_other_words_cannot_be_judged(tmp_path):
    (tmp_path / "t").write_text("a b c d\n" * 9)
    (tmp_path / "other").write_text("x y z\na\n")
    model = train("embed", train=tmp_path / "t", out=tmp_path / "m", epochs=1)
    from unrolled.tasks.embed.report import evaluate_text

    with pytest.raises(DataError, match="no two known words in a line"):
        evaluate_text(model, read_text(Source(tmp_path / "other"), TOKENS))


def topics(tmp_path):
    """Two worlds that share no word but the commonest."""
    chance, lines = np.random.default_rng(1), []
    worlds = (["cat", "dog", "cow", "hen"], ["sun", "moon", "star", "sky"])
    for k in range(600):
        own = chance.choice(worlds[k % 2], size=5).tolist()
        lines.append(" ".join(w for word in own for w in (word, "the")))
    (tmp_path / "t").write_text("\n".join(lines))
    return worlds


@pytest.mark.skipif(native.module is None, reason="a plain loop takes long")
@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_words_of_one_world_come_together(objective, tmp_path):
    worlds = topics(tmp_path)
    settings = {"model.objective": objective, "model.embedding_size": 8, "train.subsample": 0.0}
    settings |= {"train.learning_rate": 0.1, "train.batch_tokens": 1000, "train.epochs": 8}
    train("embed", train=tmp_path / "t", out=tmp_path / "m", settings=settings)
    vectors = load(tmp_path / "m").vectors
    inside = np.mean([vectors.similarity("cat", word) for word in worlds[0][1:]])
    across = np.mean([vectors.similarity("cat", word) for word in worlds[1]])
    assert inside > across + 0.3


@pytest.mark.skipif(native.module is None, reason="no compiled kernels")
@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_without_kernels_a_run_ends_in_the_same_vectors(objective, tmp_path, monkeypatch):
    (tmp_path / "t").write_text("a rat ate some cheese and ran\n" * 7)
    settings = {"model.objective": objective, "model.embedding_size": 5, "train.epochs": 2}

    def vectors(name):
        out = tmp_path / name
        model = train("embed", train=tmp_path / "t", out=out, settings=settings, threads=1)
        return model.vectors.vectors

    compiled = vectors("compiled")
    monkeypatch.setattr(embed_kernels, "_kernels", None)
    np.testing.assert_allclose(compiled, vectors("plain"), rtol=1e-4, atol=1e-6)


@pytest.mark.row("C1", "C2")
@pytest.mark.parametrize("objective", ["skip-gram", "cbow"])
def test_the_loss_that_is_told_falls_and_is_that_of_the_vectors(objective, tmp_path):
    topics(tmp_path)
    settings = {
        "model.objective": objective,
        "model.embedding_size": 8,
        "train.learning_rate": 0.1,
        "train.batch_tokens": 1000,
    }
    out = tmp_path / "m"
    train("embed", train=tmp_path / "t", test=tmp_path / "t", out=out, settings=settings, epochs=6)
    from unrolled.evaluate.report import saved_reports

    report = saved_reports(out)["test"]
    zero = report.baselines["zero_vectors"][0]
    assert zero.value == pytest.approx(6 * np.log(2))
    assert report.scores[0].value < zero.value - 0.5


@pytest.mark.row("C7")
@pytest.mark.parametrize("negatives", [2, 5, 20])
def test_any_number_of_negatives_learns(negatives, tmp_path):
    """Where nothing is known a prediction and its k negatives are k + 1 tosses of a coin."""
    topics(tmp_path)
    settings = {"train.negatives": negatives, "model.embedding_size": 8, "train.subsample": 0.0}
    settings |= {"train.learning_rate": 0.02, "train.batch_tokens": 1000}
    out, files = tmp_path / "m", {"train": tmp_path / "t", "test": tmp_path / "t"}
    train("embed", **files, out=out, settings=settings, epochs=4)
    from unrolled.evaluate.report import saved_reports

    report = saved_reports(out)["test"]
    assert report.baselines["zero_vectors"][0].value == pytest.approx((1 + negatives) * np.log(2))
    assert report.scores[0].value < report.baselines["zero_vectors"][0].value - 0.2


@pytest.mark.row("C7")
def test_how_many_negatives_are_usual_is_said(capsys):
    assert EmbedTrain().negatives == 5
    assert main(["train", "embed", "--help"]) == 0
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "5 to 20 for small texts, 2 to 5 for large" in said
