"""Debiasing to the last digit, WEAT by its definition, and maps that tell what they keep."""

import json

import numpy as np
import pytest

import unrolled
from unrolled.app.cli import main
from unrolled.tasks.embed.bias import debiased, direction, equalised, neutralised, units, weat
from unrolled.tasks.embed.maps import kept_neighbours, map_words
from unrolled.text.vector_writer import WRITERS

pytestmark = pytest.mark.arithmetic


def table(N=40, E=12, seed=0):
    return np.random.default_rng(seed).normal(size=(N, E))


@pytest.mark.row("C16")
def test_neutral_words_have_nothing_of_the_direction_left():
    rows = units(table())
    g = direction(rows[:3], rows[3:6])
    assert np.linalg.norm(g) == pytest.approx(1.0, abs=1e-12)
    assert np.abs(neutralised(rows, g) @ g).max() < 1e-12


def test_the_direction_is_that_of_pairs_that_differ_in_one():
    rows, axis = units(table(6)), np.eye(12)[4]
    g = direction(rows + 2.0 * axis, rows - 2.0 * axis)
    np.testing.assert_allclose(g, axis, atol=1e-12)


@pytest.mark.row("C16")
def test_pairs_are_equally_far_from_every_neutral_word():
    made = debiased(table(), [(0, 1), (2, 3)], kept=[9])
    others = np.delete(made, [0, 1, 2, 3, 9], axis=0)
    for a, b in ((0, 1), (2, 3)):
        gap = np.linalg.norm(others - made[a], axis=1) - np.linalg.norm(others - made[b], axis=1)
        assert np.abs(gap).max() < 1e-9
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(made[9], units(table())[9], atol=1e-15)


def test_equalised_pairs_keep_their_sides():
    rows = units(table())
    g = direction(rows[:2], rows[2:4])
    first, second = equalised(rows[:2], rows[2:4], g)
    assert (np.sign((first - second) @ g) == np.sign((rows[:2] - rows[2:4]) @ g)).all()


def test_weat_is_its_definition():
    x, y, a, b = (table(n, 5, seed=n) for n in (3, 4, 2, 3))

    def cosine(u, v):
        return u @ v / np.sqrt((u @ u) * (v @ v))

    def s(w):
        return np.mean([cosine(w, v) for v in a]) - np.mean([cosine(w, v) for v in b])

    expected = np.mean([s(w) for w in x]) - np.mean([s(w) for w in y])
    expected /= np.std([s(w) for w in [*x, *y]], ddof=1)
    assert weat(x, y, a, b) == pytest.approx(expected, abs=1e-12)
    assert weat(x, x, a, b) == pytest.approx(0.0, abs=1e-12)


def words_of(N=40):
    return unrolled.WordVectors([f"w{k}" for k in range(N)], table(N).astype(np.float32))


def test_a_plane_keeps_all_neighbours_of_vectors_in_a_plane():
    flat = np.c_[table(30, 2), np.zeros((30, 3))]
    assert kept_neighbours(flat, flat[:, :2]) == 1.0
    assert kept_neighbours(flat, table(30, 2, seed=5)) < 0.7


@pytest.mark.row("C14")
@pytest.mark.parametrize("method", ["pca", "t-sne"])
def test_a_map_is_the_same_for_the_same_seed(method):
    vectors = words_of()
    first, second = (map_words(vectors, vectors.words, method=method, seed=3) for _ in range(2))
    assert np.array_equal(first.places, second.places)
    assert first.places.shape == (40, 2)
    assert 0.0 < first.kept <= 1.0


def test_the_commands(tmp_path, capsys):
    vectors, file = words_of(), tmp_path / "v.txt"
    file.write_bytes(b"".join(WRITERS["text"](vectors)))
    (tmp_path / "pairs").write_text("w0 w1\nw2 w3\n")
    (tmp_path / "weat").write_text("w4 w5\nw6 w7\nw0 w2\nw1 w3\n")
    given = [f"--pairs={tmp_path / 'pairs'}", f"--weat={tmp_path / 'weat'}", "--json"]
    assert main(["vectors", "debias", str(file), str(tmp_path / "out.txt"), *given]) == 0
    told = json.loads(capsys.readouterr().out)
    assert all(abs(word["after"]) < 1e-9 < abs(word["before"]) for word in told["words"])
    assert abs(told["weat"]["after"]) < 2.0
    assert len(unrolled.WordVectors.load(tmp_path / "out.txt")) == 40
    (tmp_path / "pairs").write_text("w0 w1 w2\n")
    assert main(["vectors", "debias", str(file), str(tmp_path / "o"), *given[:1]]) == 3
    assert "line 1: has 3 words, but must have two" in capsys.readouterr().err
    drawn = tmp_path / "map.svg"
    assert main(["vectors", "map", str(file), "--method=pca", "--top=9", f"--out={drawn}"]) == 0
    assert "of nearest neighbours are nearest on the map too" in capsys.readouterr().out
    assert ">w8<" in drawn.read_text()
    assert main(["vectors", "map", str(file), "--method=x"]) == 2


def kinds():
    """People and animals: words of a kind lie together, the kinds apart."""
    words = ["man", "woman", "king", "queen", "boy", "girl", "cat", "dog", "fish", "cow", "hen"]
    chance, table = np.random.default_rng(2), np.zeros((len(words), 20))
    table[:6, 0] = table[6:, 1] = 1.0
    table += 0.1 * chance.normal(size=table.shape)
    return unrolled.WordVectors(words, table.astype(np.float32))


@pytest.mark.row("C14", "Q14")
@pytest.mark.parametrize("method", ["pca", "t-sne"])
def test_a_man_is_nearer_to_a_woman_than_to_a_cat(method, tmp_path, capsys):
    file, drawn = tmp_path / "v.txt", tmp_path / "map.svg"
    file.write_bytes(b"".join(WRITERS["text"](kinds())))
    asked = ["vectors", "map", str(file), f"--method={method}", "--json", f"--out={drawn}"]
    assert main(asked) == 0
    places = {w: np.array(xy) for w, xy in json.loads(capsys.readouterr().out)["words"].items()}
    near, far = (np.linalg.norm(places["man"] - places[word]) for word in ("woman", "cat"))
    assert near < far
    assert all(f">{word}<" in drawn.read_text() for word in kinds().words)


def relations(pairs=30, E=30, kinds=3):
    """Every word of a kind differs from its partner by what its kind has in common."""
    chance = np.random.default_rng(7)
    steps = 3.0 * np.linalg.qr(chance.normal(size=(E, kinds)))[0].T
    first = chance.normal(size=(kinds, pairs, E))
    second = first + steps[:, None]
    names = [[[f"{side}{k}of{n}" for n in range(pairs)] for side in "ab"] for k in range(kinds)]
    lines = [
        f"{a[n]} {b[n]} {a[m]} {b[m]}"
        for a, b in names
        for n in range(pairs)
        for m in (n - 1, n - 2)
    ]
    words = [word for a, b in names for word in (*a, *b)]
    table = np.concatenate([np.concatenate(both) for both in zip(first, second, strict=True)])
    return unrolled.WordVectors(words, table.astype(np.float32)), lines


@pytest.mark.row("C15")
def test_analogies_do_not_survive_a_map_but_a_linear_one_of_enough_dimensions(tmp_path, capsys):
    """PCA keeps differences up to what it drops, t-SNE bends them."""
    vectors, lines = relations()
    file, questions = tmp_path / "v.txt", tmp_path / "q.txt"
    file.write_bytes(b"".join(WRITERS["text"](vectors)))
    questions.write_text("\n".join(lines))

    def right(space):
        asked = ["vectors", "evaluate", str(file), str(questions), f"--space={space}", "--json"]
        assert main([*asked, "--method=raw"]) == 0
        return json.loads(capsys.readouterr().out)["scores"][0]["value"]

    original = right("original")
    assert original > 0.9
    assert right("pca-10") > 0.9
    assert right("pca-2") < 0.5
    assert right("t-sne") < 0.8


def test_spaces_that_are_none(tmp_path, capsys):
    file = tmp_path / "v.txt"
    file.write_bytes(b"".join(WRITERS["text"](words_of(5001))))
    (tmp_path / "q").write_text("w0 w1 w2 w3\n")
    for space in ("pca", "pca-0", "x"):
        asked = ["vectors", "evaluate", str(file), str(tmp_path / "q"), f"--space={space}"]
        assert main(asked) == 2
        assert "must be original, t-sne or pca-K, as pca-10" in capsys.readouterr().err
    assert main([*asked[:-1], "--space=t-sne"]) == 2
    assert "there are 5,001 words, but t-SNE places 3 to 5,000" in capsys.readouterr().err
    assert main([*asked[:-1], "--space=t-sne", "--limit=40"]) == 0
