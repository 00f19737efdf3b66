"""Asking word vectors: neighbours, analogies, the odd one out; and files of other tools."""

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import torch

import unrolled
from unrolled.app.cli import main
from unrolled.config import settings_for
from unrolled.errors import ConfigError
from unrolled.store.files import write_folder
from unrolled.store.tensors import tensor_bytes
from unrolled.tasks.embed.data import Words
from unrolled.tasks.embed.model import EmbedModel
from unrolled.tasks.embed.questions import judge
from unrolled.tasks.embed.settings import EmbedRun
from unrolled.text.vector_writer import WRITERS

pytestmark = pytest.mark.arithmetic

# Table 3 of the notes, and two more
TABLE = {
    "man": [0.01, 0.97, 0.02, 0.01],
    "woman": [0.01, -0.99, 0.01, 0.02],
    "king": [0.98, 0.97, 0.02, 0.01],
    "queen": [0.99, -0.98, 0.02, 0.01],
    "apple": [0.0, 0.01, 0.95, 0.2],
    "orange": [0.0, 0.02, 0.9, 0.3],
}


def made(table):
    return unrolled.WordVectors([*table], np.array([*table.values()], dtype=np.float32))


@pytest.fixture
def vectors():
    return made(TABLE)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "v.txt"
    rows = [f"{word} {' '.join(map(str, values))}" for word, values in TABLE.items()]
    path.write_text("\n".join([f"{len(rows)} 4", *rows]) + "\n")
    return path


def test_the_analogy_of_the_notes(vectors):
    best = vectors.analogy("man", "king", "woman", 1, method="raw")[0]
    assert (best.word, round(best.similarity, 5)) == ("queen", 0.99990)
    assert vectors.analogy("man", "king", "woman", 1)[0].word == "queen"
    assert vectors.analogy("man", "king", "woman", 1, method="multiply")[0].word == "queen"
    some = vectors.analogy("man", "king", "woman", 6, include_inputs=True)
    assert {near.word for near in some} == {*TABLE}
    assert {n.word for n in vectors.analogy("man", "king", "woman", 99)} == {
        "queen",
        "apple",
        "orange",
    }


def test_neighbours_are_those_of_the_definition(vectors):
    x = np.array([*TABLE.values()])
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    cosines = dict(zip(TABLE, units @ units[2], strict=True))
    expected = sorted(cosines.items() - {("king", cosines["king"])}, key=lambda p: -p[1])
    found = vectors.neighbours("king", 5)
    assert [near.word for near in found] == [word for word, _ in expected]
    np.testing.assert_allclose([n.similarity for n in found], [v for _, v in expected], atol=1e-6)
    apart = -np.linalg.norm(x - x[2], axis=1)
    nearest = vectors.neighbours("king", 1, measure="euclidean", include_inputs=True)[0]
    assert (nearest.word, nearest.similarity) == ("king", 0.0)
    assert vectors.neighbours("king", 1, measure="euclidean")[0].similarity == pytest.approx(
        sorted(apart)[-2], abs=1e-6
    )


def test_cosines_do_not_depend_on_length_and_zeros_are_like_nothing():
    table = made({"a": [1, 2], "b": [3e4, 6e4], "z": [0, 0]})
    assert table.similarity("a", "b") == pytest.approx(1.0, abs=1e-6)
    assert table.similarity("a", "z") == table.similarity("z", "z") == 0.0
    assert [near.word for near in table.neighbours("z")] == ["a", "b"]


@pytest.mark.parametrize("scale", [1e-35, 1e-20, 1e20, 1e38])
def test_no_size_of_numbers_changes_what_is_near(scale):
    given = np.random.default_rng(0).normal(size=(30, 4)).clip(-3, 3)
    plain, scaled = (
        made({f"w{k}": row for k, row in enumerate(x)}) for x in (given, given * scale)
    )
    for word in ("w0", "w7"):
        expected, found = plain.neighbours(word, 5), scaled.neighbours(word, 5)
        assert [near.word for near in found] == [near.word for near in expected]
        np.testing.assert_allclose(
            [near.similarity for near in found], [n.similarity for n in expected], atol=1e-5
        )
        far = scaled.neighbours(word, 29, measure="euclidean")
        apart = [near.word for near in plain.neighbours(word, 29, measure="euclidean")]
        assert [near.word for near in far] == apart
    assert scaled.similarity("w1", "w2") == pytest.approx(plain.similarity("w1", "w2"), abs=1e-5)
    for method in ("add", "raw", "multiply"):
        best = scaled.analogy("w1", "w2", "w3", 3, method=method)
        expected = plain.analogy("w1", "w2", "w3", 3, method=method)
        assert [near.word for near in best] == [near.word for near in expected]


def test_words_and_vectors_in_python(vectors):
    assert len(vectors) == 6
    assert "king" in vectors
    assert "Duke" not in vectors
    assert [*vectors.words] == [*TABLE]
    assert isinstance(vectors.vectors, np.ndarray)
    assert vectors.vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors["king"], vectors.vectors[vectors.row("king")])
    with pytest.raises(ConfigError, match="no vector of 'duke'"):
        vectors["duke"]
    a, b = np.array(TABLE["king"]), np.array(TABLE["queen"])
    expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    assert vectors.similarity("king", "queen") == pytest.approx(expected, abs=1e-6)


def test_the_odd_one_out(vectors):
    assert vectors.odd_one_out(["orange", "queen", "apple"])[0].word == "queen"
    with pytest.raises(ConfigError, match="only be odd among several"):
        vectors.odd_one_out(["king"])


def test_an_unknown_word_is_told_its_nearest_spellings(vectors):
    with pytest.raises(
        ConfigError, match=r"no vector of 'quean' among 6 words\. Did you mean 'queen'"
    ):
        vectors.neighbours("quean")
    assert vectors.row("King") == 2
    assert "quean" not in vectors


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_written_is_read_to_the_bit(form, tmp_path):
    chance = np.random.default_rng(1)
    words = [f"w{k}é" for k in range(50)]
    table = unrolled.WordVectors(words, chance.normal(size=(50, 7)).astype(np.float32))
    path = tmp_path / "v"
    path.write_bytes(b"".join(WRITERS[form](table)))
    again = unrolled.WordVectors.load(path)
    assert [*again.words] == words
    assert np.array_equal(again.vectors, table.vectors)
    assert len(unrolled.WordVectors.load(path, limit=3)) == 3


@pytest.mark.parametrize("form", ["text", "binary"])
def test_gensim_reads_what_we_write_and_we_read_what_it_wrote(form, vectors, tmp_path):
    models = pytest.importorskip("gensim.models")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.write_bytes(b"".join(WRITERS[form](vectors)))
    read = models.KeyedVectors.load_word2vec_format(str(ours), binary=form == "binary")
    assert np.array_equal(read.vectors, vectors.vectors)
    read.save_word2vec_format(str(theirs), binary=form == "binary")
    assert np.allclose(unrolled.WordVectors.load(theirs).vectors, vectors.vectors, atol=1e-7)


def test_words_with_spaces_are_not_written():
    table = made({"a b": [1.0, 2.0]})
    with pytest.raises(ConfigError, match="'a b' is empty or holds white space"):
        b"".join(WRITERS["text"](table))


def test_an_endless_word_that_cannot_be_written_is_cut_in_what_is_said():
    with pytest.raises(ConfigError, match="holds white space") as refused:
        list(WRITERS["glove"](made({"a " * 10_000: [1.0, 2.0]})))
    assert len(str(refused.value)) < 400


def test_analogies_are_judged_by_section(vectors, tmp_path):
    path = tmp_path / "questions.txt"
    path.write_text(
        ": royal\nman king woman queen\nWoman Queen Man King\nman king boy prince\n"
        ": fruit\nking apple queen orange\nking apple queen man\n"
    )
    rows = {row.name: row for row in judge(vectors, path)}
    assert (rows["royal"].known, rows["royal"].of, rows["royal"].found.value) == (2, 3, 1.0)
    assert (rows["fruit"].known, rows["all"].known, rows["all"].of) == (2, 4, 5)


def test_likeness_is_judged_by_rank(vectors, tmp_path):
    from scipy.stats import spearmanr

    pairs = [
        ("king", "queen", 8),
        ("king", "apple", 1),
        ("man", "woman", 7),
        ("apple", "orange", 9),
    ]
    path = tmp_path / "pairs.csv"
    lines = ["word1,word2,score", *(f"{a},{b},{s}" for a, b, s in pairs), "king,duke,5"]
    path.write_text("\n".join(lines))
    (row,) = judge(vectors, path)
    expected = spearmanr([vectors.similarity(a, b) for a, b, _ in pairs], [s for *_, s in pairs])[0]
    assert (row.known, row.of) == (4, 5)
    assert row.found.value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (": s\na b c\n", "line 2: has 3 words, but must have four"),
        ("king queen 3\nking queen\n", "line 2: must hold two words and a number"),
        ("\n", "holds no question"),
    ],
)
def test_questions_that_are_none_are_refused(text, problem, file, tmp_path, capsys):
    (tmp_path / "q").write_text(text)
    assert main(["vectors", "evaluate", str(file), str(tmp_path / "q")]) == 3
    assert problem in capsys.readouterr().err


def test_the_commands(file, tmp_path, capsys):
    def said(*arguments):
        assert main(["vectors", *map(str, arguments)]) == 0
        return capsys.readouterr().out

    assert said("analogy", file, "man", "king", "woman").split()[0] == "queen"
    assert said("odd-one-out", file, "orange", "queen", "apple").split()[0] == "queen"
    found = json.loads(said("neighbours", file, "king", "--top", 2, "--json"))["found"]
    assert found[0]["word"] == "man"
    said("convert", file, tmp_path / "b.bin", "--format", "binary")
    assert said("neighbours", tmp_path / "b.bin", "king") == said("neighbours", file, "king")
    (tmp_path / "q").write_text("man king woman queen\n")
    scores = json.loads(said("evaluate", file, tmp_path / "q", "--json"))["scores"]
    assert scores[0]["value"] == 1.0
    assert main(["vectors", "neighbours", str(file), "kin"]) == 2
    assert "Did you mean 'king'" in capsys.readouterr().err
    assert main(["vectors", "neighbours", str(file), "king", "--measure", "x"]) == 2
    assert main(["vectors", "convert", str(file), str(tmp_path / "c"), "--format", "x"]) == 2


@pytest.mark.trains
@pytest.mark.arithmetic
def test_a_model_folder_is_asked_like_a_file(tmp_path, capsys):
    (tmp_path / "t").write_text("a rat ate some cheese and ran\n" * 7)
    out = tmp_path / "m"
    model = unrolled.train("embed", train=tmp_path / "t", out=out, epochs=1)
    table = unrolled.WordVectors.load(out)
    assert np.array_equal(table.vectors, model.vectors.vectors)
    assert main(["vectors", "convert", str(out), str(tmp_path / "v.txt")]) == 0
    assert np.array_equal(unrolled.WordVectors.load(tmp_path / "v.txt").vectors, table.vectors)
    words = (out / "words.json").read_bytes()
    (out / "words.json").write_bytes(words.replace(b"rat", b"cat"))
    assert main(["vectors", "neighbours", str(out), "rat"]) == 4


@pytest.mark.trains
@pytest.mark.arithmetic
def test_a_tagger_begins_with_the_vectors_of_a_folder(tmp_path):
    (tmp_path / "t").write_text("a rat ate some cheese and ran\n" * 7)
    (tmp_path / "tags").write_text("a\tD\nrat\tN\nran\tV\n\n" * 4)
    settings = {"model.embedding_size": 6}
    unrolled.train("embed", train=tmp_path / "t", out=tmp_path / "m", settings=settings, epochs=1)
    own = unrolled.WordVectors.load(tmp_path / "m")
    more = {"model.vectors": str(tmp_path / "m"), "model.freeze_vectors": True}
    more |= {"model.hidden_size": 4, "train.batch_tokens": 64}
    given = {"train": tmp_path / "tags", "dev": tmp_path / "tags"}
    tagger = unrolled.train(
        "tag", **given, out=tmp_path / "tag", settings=settings | more, epochs=1
    )
    row = tagger.encoder.words.tokens.index("rat")
    frozen = tagger.network.embedder.embedding.weight[row].detach().numpy()
    assert np.array_equal(frozen, own["rat"])


def test_a_file_of_another_encoding_is_read_when_it_is_named(tmp_path, capsys):
    path = tmp_path / "v.txt"
    path.write_bytes("façade 1 2\nhouse 2 1\n".encode("latin-1"))
    asked = ["vectors", "neighbours", str(path), "façade"]
    assert main(asked) == 3
    assert "not valid utf-8" in capsys.readouterr().err
    assert main([*asked, "--encoding=latin-1"]) == 0
    assert capsys.readouterr().out.split()[0] == "house"


def a_folder(path, tensors, words=("a", "b")):
    words_file = json.dumps({"words": words, "counts": [1] * len(words)}).encode()
    write_folder(path, {"words.json": words_file, "model.safetensors": tensor_bytes(tensors)})
    return path


def test_vectors_of_a_folder_stay_in_the_file(tmp_path):
    """A million numbers take no memory until they are asked for."""
    words = [f"w{k}" for k in range(20_000)]
    rows = torch.randn(len(words), 50)
    folder = a_folder(tmp_path / "m", {"input": rows}, words)
    vectors = unrolled.WordVectors.load(folder, limit=19_999)
    if (maps := Path("/proc/self/maps")).exists():
        assert str(folder / "model.safetensors") in maps.read_text()
    assert np.array_equal(vectors["w7"], rows[7].numpy())
    tracemalloc.start()
    assert len(vectors.neighbours("w7")) == 10
    assert tracemalloc.get_traced_memory()[1] < rows.nbytes
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("tensors", "problem"),
    [
        ({"input": torch.zeros(3, 2)}, "there are 3 vectors for 2 words"),
        ({"input": torch.zeros(2, 2, dtype=torch.int64)}, "a row of 32-bit numbers a word"),
        ({"input": torch.zeros(2, 2, dtype=torch.bfloat16)}, "a row of 32-bit numbers a word"),
        ({"input": torch.zeros(2)}, "a row of 32-bit numbers a word"),
        ({"input": torch.zeros(2, 0)}, "a row of 32-bit numbers a word"),
        ({"other": torch.zeros(2, 2)}, "a row of 32-bit numbers a word"),
    ],
)
def test_folders_of_something_else_are_refused(tensors, problem, tmp_path, capsys):
    folder = a_folder(tmp_path / "m", tensors)
    assert main(["vectors", "neighbours", str(folder), "a"]) == 4
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda v: v[3], TypeError, "word is 3, but must be a string"),
        (lambda v: v.row(None), TypeError, "word is None"),
        (lambda v: v.similarity("king", ["queen"]), TypeError, r"word is \['queen'\]"),
        (lambda v: v.neighbours(b"king"), TypeError, "text is b'king'"),
        (lambda v: v.neighbours(" "), ConfigError, "there is no word"),
        (lambda v: v.neighbours("king", 0), ConfigError, "count is 0, but must be 1 or more"),
        (lambda v: v.neighbours("king", 2.5), TypeError, "count is 2.5"),
        (lambda v: v.odd_one_out("king"), TypeError, "words is 'king'"),
        (lambda v: v.odd_one_out(["king"]), ConfigError, "there is 1 word"),
        (lambda v: v.odd_one_out([None, "king"]), TypeError, "word is None"),
        (lambda v: v.analogy("king", "man", 4), TypeError, "word is 4"),
        (lambda v: v["x" * 100_000], ConfigError, r"no vector of 'x{150,199}…"),
        (lambda v: type(v).load(None), TypeError, "path is None"),
        (lambda v: type(v).load("a\0b"), ConfigError, "no file can be called so"),
        (lambda v: type(v).load(__file__, limit=0), ConfigError, "limit is 0"),
    ],
)
def test_what_cannot_be_asked_is_named(vectors, ask, error, message):
    with pytest.raises(error, match=message):
        ask(vectors)


@pytest.mark.parametrize("scale", [1.0, 1e30, 1e-30])
def test_the_length_of_vectors_says_nothing_of_sentences(vectors, scale):
    """Not even where float32 cannot hold its square."""
    settings = settings_for(EmbedRun, overrides={"model.embedding_size": 4})
    model = EmbedModel.create(settings, Words(vectors.words, np.ones(len(vectors), np.int64)))
    model.network.input.data = torch.from_numpy(vectors.vectors * np.float32(scale))
    units = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    found = model.sentence_vectors(["king apple nobody", "nobody"])
    np.testing.assert_allclose(found[0], (units[2] + units[4]) / 2, rtol=1e-5, atol=1e-6)
    assert not found[1].any()


@pytest.mark.parametrize("shape", [(2,), (1, 3), (3, 3), (2, 0), (2, 3, 1)])
def test_vectors_without_a_row_for_each_word_are_refused(shape):
    with pytest.raises(ConfigError, match=r"vectors has the shape .* a row for each of 2 words"):
        unrolled.WordVectors(["a", "b"], np.ones(shape, np.float32))


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_nothing_is_near_to_what_is_no_number(number):
    for asked in ("a", "b"):  # the vector itself, or another
        table = unrolled.WordVectors(["a", "b"], np.array([[1, 2], [3, number]], np.float32))
        with pytest.raises(ConfigError, match="a vector has a number that is NaN or infinite"):
            table.neighbours(asked)
