"""One direction against two, and padding that nobody masks."""

import json

import numpy as np
import pytest
import torch

from unrolled.errors import ConfigError, DataError
from unrolled.lab import padding as study
from unrolled.lab.directions import directions
from unrolled.lab.padding import Reader, Way, clauses, numbered, padding
from unrolled.lab.tagged_text import Tagged, from_files, made_up
from unrolled.text.conll import TaggedSentence, write_columns

pytestmark = [pytest.mark.arithmetic]


# ------------------------------------------------------------------ sentences


def test_a_word_of_two_tags_is_told_by_its_neighbours_on_one_side():
    data = made_up(200, seed=1)
    assert (len(data.train), len(data.test)) == (200, 50)
    tags = np.array([tag for s in data.test for tag in s.tags])
    before = np.array([w for s in data.test for w in ["", *s.words[:-1]]])
    told = {name.split()[-1]: mask for name, mask in data.groups.items()}
    for tag, words in {"NOUN": {"the", "a", "this"}, "VERB": {"to"}}.items():
        assert {*before[told["before"] & (tags == tag)]} == words
        assert {*before[told["after"] & (tags == tag)]} == {"", ","}  # nothing that would tell
    assert not (told["before"] & told["after"]).any()


def test_files_are_read_and_their_words_grouped(tmp_path):
    path = tmp_path / "tagged.txt"
    rows = [(["a", "b"], ["X", "Y"]), (["a", "c"], ["Y", "Y"])] * 5
    asked = [(["a", "b", "z"], ["X", "Y", "Y"])]
    path.write_text("".join(write_columns(*row) for row in rows), encoding="utf-8")
    other = tmp_path / "asked.txt"
    other.write_text("".join(write_columns(*row) for row in asked), encoding="utf-8")
    found = from_files(path, other)
    assert {name: mask.tolist() for name, mask in found.groups.items()} == {
        "of several tags": [True, False, False],
        "never seen": [False, False, True],
    }
    held_back = from_files(path, None)
    assert (len(held_back.train), len(held_back.test)) == (8, 2)


def test_too_few_sentences_are_refused(tmp_path):
    path = tmp_path / "tagged.txt"
    path.write_text("a\tX\n\nb\tY\n", encoding="utf-8")
    with pytest.raises(DataError, match="has 2 sentences, but a study needs 10 or more"):
        from_files(path, None)


# ------------------------------------------------------------------ directions


@pytest.mark.row("R4")
@pytest.mark.trains
def test_only_who_reads_backwards_too_knows_what_is_told_by_what_comes_after():
    found = directions(made_up(500, seed=1), epochs=4, hidden=24, seeds=(1,))
    after, before = "told by what is after", "told by what is before"
    for name in ("forwards", "forwards, twice the units"):
        assert found.found[name][before][0] > 0.95
        assert found.found[name][after][0] < 0.65
    assert found.found["both directions"][after][0] > 0.95
    assert "both directions" in found.text()
    assert json.dumps(found.as_json())
    assert found.chart().to_dict()


# ------------------------------------------------------------------ padding


def test_only_who_reads_padding_is_moved_by_it():
    data = made_up(20, seed=1)
    (short, _, words, tags), (long, *_) = numbered(data, factor=1), numbered(data, factor=3)
    assert long.words.size(1) == 3 * short.words.size(1)
    torch.manual_seed(1)
    T = short.words.size(1)
    for last in (False, True):
        model = Reader(words, tags, hidden=8, last=last).double()
        for reads in (False, True):
            way = Way(last, reads, learns=False)
            with torch.no_grad():
                one, other = (model(rows.words, way.lengths(rows)) for rows in (short, long))
            if not last:
                real = torch.arange(T) < short.lengths[:, None]
                one, other = one[real], other[:, :T][real]
            apart = float((one - other).abs().max())
            assert apart > 1e-6 if reads else apart < 1e-12


def test_what_is_asked_of_rows():
    data = made_up(20, seed=1)
    rows, *_ = numbered(data, factor=2)
    commas = torch.tensor([s.words.count(",") for s in data.train])
    assert torch.equal(clauses(rows), commas)
    mask, answers = Way(False, reads=True, learns=False).asked(rows)
    assert len(answers) == int(rows.lengths.sum()) == int(mask.sum())
    mask, answers = Way(False, reads=True, learns=True).asked(rows)
    assert len(answers) == rows.words.numel()
    assert (answers == 0).sum() == rows.words.numel() - int(rows.lengths.sum())


@pytest.mark.row("R11")
@pytest.mark.trains
def test_unmasked_padding_costs_quality_and_hides_it(monkeypatch):
    monkeypatch.setattr(study, "MORE", 3)
    found = padding(made_up(300, seed=1), factors=(1, 6), updates=50, seeds=(1,))
    near, far = found.mean("tagger, lengths")
    assert near == far > 0.97  # the padding changed nothing
    assert found.mean("tagger, padding learned")[1] < far - 0.1
    assert found.mean(study.COUNTED)[1] > found.mean("tagger, padding learned")[1] + 0.1
    near, far = found.mean("classifier, lengths")
    assert near == far > found.mean("classifier, padding read")[1] + 0.15
    assert "padding counted" in found.text()
    assert json.dumps(found.as_json())
    assert found.chart().to_dict()


def test_rows_have_a_limit():
    long = TaggedSentence(["a"] * 3000, ["X"] * 3000, [0] * 3000)
    with pytest.raises(ConfigError, match="up to 6,000 places, but 4,096 are allowed"):
        numbered(Tagged([long], [long], {}), factor=2)
