"""fastText's binary files: bytes written out by hand, fastText's own answers, and damage."""

import gzip
import struct

import numpy as np
import pytest

import unrolled
from unrolled.app.cli import main
from unrolled.errors import DataError, StorageError
from unrolled.tasks.shared.word_vectors import pretrained
from unrolled.text.subwords import Subwords
from unrolled.text.vector_writer import WRITERS
from unrolled.text.vectors import read_vectors
from unrolled.text.word_parts import WordParts

SETTINGS = {
    **{"dim": 2, "ws": 5, "epoch": 5, "min_count": 1, "neg": 5, "word_ngrams": 1},
    **{"loss": 2, "model": 2, "bucket": 10, "minn": 3, "maxn": 6, "lr_update": 100},
}
LINES = ["the walker walked while talkers talked", "a cat saw Ärger in the naïve house"] * 30


def by_hand(*, version=12, quantised=0, pruned=-1, labels=(), tail=b"", rows=None, **settings):
    """Words </s>, a and b, then n-grams 0 to 9; row r of the matrix is (r + 1, −r − 1)."""
    words = [b"</s>", b"a", b"\xff\x80b"]
    data = struct.pack("<ii", 793712314, version)
    data += struct.pack("<12i", *{**SETTINGS, **settings}.values()) + struct.pack("<d", 1e-4)
    data += struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 60, pruned)
    data += b"".join(word + b"\0" + struct.pack("<qb", 20, 0) for word in words)
    data += b"".join(label + b"\0" + struct.pack("<qb", 20, 1) for label in labels)
    bucket = {**SETTINGS, **settings}["bucket"]
    if rows is None:
        rows = [number for row in range(1, 4 + bucket) for number in (row, -row)]
    data += struct.pack("<?qq", quantised, len(rows) // 2, 2) + struct.pack(f"<{len(rows)}f", *rows)
    return data + struct.pack("<?qq", 0, 3, 2) + struct.pack("<6f", *range(6)) + tail


@pytest.fixture
def file(tmp_path):
    def written(data=None, name="v.bin", **settings):
        (tmp_path / name).write_bytes(by_hand(**settings) if data is None else data)
        return tmp_path / name

    return written


@pytest.mark.parametrize("version", [11, 12])
def test_vectors_are_means_of_rows_written_by_hand(file, version):
    """fastText numbers <a> 1,087,600 of 2,000,000, so 0 of 10: the first row behind the words."""
    vectors = unrolled.WordVectors.load(file(version=version))
    assert [*vectors.words] == ["</s>", "a", "��b"]
    assert vectors["</s>"].tolist() == [1.0, -1.0]
    assert vectors["a"].tolist() == [3.0, -3.0]  # of rows 2 and 4
    assert unrolled.WordVectors.load(file(version=version), limit=1).words == ["</s>"]
    assert read_vectors(file(), wanted={"a"}, most=0).words == ["a"]


def test_an_unseen_word_is_the_mean_of_its_n_grams(file):
    vectors = unrolled.WordVectors.load(file())
    numbers, _ = Subwords(3, 6, 10).of(["cat"])
    expected = np.mean([n + 4 for n in numbers])
    assert "cat" not in vectors
    np.testing.assert_allclose(vectors["cat"], [expected, -expected], rtol=1e-6)
    table = pretrained(file(), wanted={"cat", "a"}, most=0)
    assert [*table.words] == ["a", "cat"]
    np.testing.assert_allclose(table.vectors, [[3, -3], [expected, -expected]], rtol=1e-6)


def test_bytes_that_are_no_text_have_the_n_grams_that_fasttext_gives_them():
    """A byte 10xxxxxx belongs to the character before, whatever that is."""
    numbers, _ = Subwords(3, 3, 1 << 31).of([b"\xff\x80b"])
    hashed = 2166136261
    expected = []
    for gram in (b"<\xff\x80b", b"\xff\x80b>"):
        hashed = 2166136261
        for byte in gram:
            hashed = (hashed ^ (byte if byte < 128 else 0xFFFFFF00 | byte)) * 16777619 % 2**32
        expected.append(hashed % (1 << 31))
    assert sorted(numbers.tolist()) == sorted(expected)


def test_words_alone_where_there_are_no_n_grams(file):
    vectors = unrolled.WordVectors.load(file(maxn=0, bucket=0))
    assert vectors.parts is None
    assert vectors["a"].tolist() == [2.0, -2.0]
    # before version 12 classifiers had no n-grams of characters, whatever they say
    old = unrolled.WordVectors.load(file(version=11, model=3, labels=[b"__label__x"]))
    assert (old.parts, old["a"].tolist()) == (None, [2.0, -2.0])
    assert unrolled.WordVectors.load(file(model=3, labels=[b"__label__x"])).parts is not None


def test_what_is_cut_off_is_noticed_wherever_it_ends(file):
    whole = by_hand()
    for end in range(4, len(whole)):
        with pytest.raises(DataError, match=r"fastText file that ends or is damaged at"):
            read_vectors(file(whole[:end]))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"version": 13}, "is a fastText file of version 13, but 11 and 12 are known"),
        ({"quantised": 1}, r"is a quantised fastText model \(.ftz\)"),
        ({"pruned": 5}, r"is a quantised fastText model \(.ftz\)"),
        ({"dim": 0}, "the length of vectors, which is 0, but must be 1 to 16,384"),
        ({"dim": 2**31 - 1}, "the length of vectors, which is 2,147,483,647"),
        ({"dim": 3}, "the vectors: 13 of 2 numbers, but must be 13 of 3"),
        ({"maxn": 2**31 - 1}, "the length of n-grams, which is 2,147,483,647"),
        ({"tail": b"x"}, "its end: it goes on behind the last vector"),
        ({"rows": [float("nan")] * 26}, "NaN or infinite"),
        ({"rows": [1.0] * 24 + [float("inf"), 0.0]}, "NaN or infinite"),
    ],
)
def test_files_that_lie_are_refused(file, settings, problem, capsys):
    path = file(**settings)
    assert main(["vectors", "neighbours", str(path), "a"]) == 3
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(DataError, match=problem):
        read_vectors(path)


@pytest.mark.parametrize("place", ["entries", "rows", "buckets"])
def test_sizes_are_not_believed_before_they_are_seen(file, place):
    data = bytearray(by_hand())
    at = {"entries": 64, "buckets": 40, "rows": data.index(b"\xff\x80b") + 4 + 9 + 1}[place]
    form, huge = ("<q", 2**62) if place == "rows" else ("<i", 2**31 - 1)
    struct.pack_into(form, data, at, huge)
    if place == "entries":
        struct.pack_into("<i", data, at + 4, huge)
    with pytest.raises(DataError, match="ends or is damaged at"):
        read_vectors(file(bytes(data)))


def test_any_changed_byte_gives_vectors_or_an_error(file):
    whole, chance = by_hand(), np.random.default_rng(0)
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.integers(1, 4)):
            data[chance.integers(4, len(data))] = chance.integers(256)
        try:
            found = read_vectors(file(bytes(data)))
        except DataError:
            continue
        assert np.isfinite(found.vectors).all()


def test_a_packed_one_is_to_be_unpacked(file):
    with pytest.raises(DataError, match=r"packed fastText file.*Unpack it"):
        read_vectors(file(gzip.compress(by_hand()), "v.bin.gz"))
    with pytest.raises(StorageError, match="No such file"):
        read_vectors("/nowhere/v.bin")


def a_table(words, subwords, width=3):
    chance = np.random.default_rng(5)
    vectors = chance.normal(size=(len(words), width)).astype(np.float32)
    used = np.unique(subwords.of(words)[0])[1:]  # one n-gram is not known
    grams = chance.normal(size=(len(used), width)).astype(np.float32)
    return unrolled.WordVectors(words, vectors, WordParts(subwords, used, grams))


def test_what_is_written_is_read_again(file):
    table = a_table(["the", "Ärger", "</s>", "talk"], Subwords(2, 4, 50))
    again = unrolled.WordVectors.load(file(b"".join(WRITERS["fasttext"](table))))
    assert again.words == table.words
    np.testing.assert_allclose(again.vectors, table.vectors, rtol=1e-6, atol=1e-6)
    ours, theirs = table["talks"], again["talks"]  # zeros stand for what is not known
    cosine = ours @ theirs / np.linalg.norm(ours) / np.linalg.norm(theirs)
    assert cosine == pytest.approx(1.0, abs=1e-6)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("fasttext") / "t"
    path.write_text("\n".join(LINES))
    return path


@pytest.mark.parametrize(
    "options",
    [
        {"model": "skipgram", "minn": 3, "maxn": 6},
        {"model": "cbow", "minn": 1, "maxn": 2, "loss": "hs"},
        {"model": "skipgram", "maxn": 0},
    ],
)
def test_fasttexts_own_models_give_fasttexts_own_vectors(text, tmp_path, options):
    fasttext = pytest.importorskip("fasttext")
    sizes = {"dim": 7, "bucket": 1000, "minCount": 1, "epoch": 2, "thread": 1, "verbose": 0}
    model = fasttext.train_unsupervised(str(text), **sizes, **options)
    model.save_model(str(tmp_path / "m.bin"))
    same_vectors(unrolled.WordVectors.load(tmp_path / "m.bin"), model, options["maxn"])


def same_vectors(ours, theirs, has_ngrams, rtol=1e-5):
    assert [*ours.words] == theirs.words
    unseen = ["walking", "catapult", "über", "日本"] if has_ngrams else []
    for word in [*theirs.words, *unseen]:
        np.testing.assert_allclose(ours[word], theirs.get_word_vector(word), rtol=rtol, atol=1e-6)


def test_fasttexts_classifiers_are_read_and_quantised_ones_refused(tmp_path):
    fasttext = pytest.importorskip("fasttext")
    (tmp_path / "t").write_text("".join(f"__label__{k % 2} {LINES[k]}\n" for k in range(60)))
    sizes = {"dim": 4, "bucket": 500, "minn": 2, "maxn": 3, "thread": 1, "verbose": 0}
    model = fasttext.train_supervised(str(tmp_path / "t"), **sizes)
    model.save_model(str(tmp_path / "m.bin"))
    same_vectors(unrolled.WordVectors.load(tmp_path / "m.bin"), model, True)
    model.quantize(str(tmp_path / "t"), qnorm=True, cutoff=300, retrain=False)
    model.save_model(str(tmp_path / "m.ftz"))
    with pytest.raises(DataError, match="is a quantised fastText model"):
        read_vectors(tmp_path / "m.ftz")


@pytest.mark.trains
@pytest.mark.parametrize("subwords", [True, False])
def test_fasttext_loads_what_we_write(text, tmp_path, subwords, capsys):
    fasttext = pytest.importorskip("fasttext")
    settings = {"model.embedding_size": 6, "model.subwords": subwords, "model.buckets": 3000}
    unrolled.train("embed", train=text, out=tmp_path / "m", settings=settings, epochs=2)
    out = tmp_path / "v.bin"
    assert main(["vectors", "convert", str(tmp_path / "m"), str(out), "--format=fasttext"]) == 0
    theirs, ours = fasttext.load_model(str(out)), unrolled.WordVectors.load(tmp_path / "m")
    assert theirs.words == [*ours.words]
    for word in ours.words:
        np.testing.assert_allclose(theirs.get_word_vector(word), ours[word], rtol=1e-5, atol=1e-7)
    same_vectors(unrolled.WordVectors.load(out), theirs, subwords)


def test_gensim_loads_what_we_write(tmp_path):
    from_facebook = pytest.importorskip("gensim.models.fasttext").load_facebook_vectors
    table = a_table([f"word{k}" for k in range(40)], Subwords(3, 5, 400))
    (tmp_path / "v.bin").write_bytes(b"".join(WRITERS["fasttext"](table)))
    theirs = from_facebook(str(tmp_path / "v.bin"))
    assert theirs.index_to_key == table.words
    for word in table.words:
        np.testing.assert_allclose(theirs[word], table[word], rtol=1e-5, atol=1e-6)


def test_we_read_what_gensim_writes(tmp_path):
    models = pytest.importorskip("gensim.models.fasttext")
    sentences = [line.split() for line in LINES]
    sizes = {"vector_size": 5, "bucket": 300, "min_count": 1, "epochs": 1, "workers": 1}
    model = models.FastText(sentences, min_n=2, max_n=4, seed=1, **sizes)
    models.save_facebook_model(model, str(tmp_path / "m.bin"))
    ours = unrolled.WordVectors.load(tmp_path / "m.bin")
    assert [*ours.words] == model.wv.index_to_key
    for word in [*ours.words, "walking", "über"]:
        np.testing.assert_allclose(ours[word], model.wv[word], rtol=1e-5, atol=1e-6)
