"""The sentences nearest to a sentence, whatever model makes the vectors."""

import json

import numpy as np
import pytest
from golden_data import TRAIN, write_data

from unrolled.app.cli import main
from unrolled.errors import ConfigError
from unrolled.tasks import TASKS
from unrolled.tasks.folder import load
from unrolled.tasks.shared.similar import nearest

pytestmark = pytest.mark.arithmetic

ENCODERS = [name for name, task in TASKS.items() if "similar" in task.uses]


class Letters:
    """A text as how often it has a, b and c."""

    def sentence_vectors(self, texts):
        counts = [[text.count(letter) for letter in "abc"] for text in texts]
        return np.array(counts, np.float32).reshape(-1, 3)


def test_cosines_order_texts_and_equal_ones_keep_theirs():
    among = list(enumerate(["bbb", "abc", "aabbcc", "x", "ab"], 1))
    found = nearest(Letters(), "aaabbbccc", among, 4)
    assert [each.text for each in found] == ["abc", "aabbcc", "ab", "bbb"]
    assert [each.line for each in found] == [2, 3, 5, 1]
    assert found[2].similarity == pytest.approx(2 / np.sqrt(6))
    assert nearest(Letters(), "x", among, 1)[0].similarity == 0.0


def test_every_encoder_of_the_house_is_one():
    assert {"lm", "classify", "tag", "translate", "embed", "tree"} == {*ENCODERS}


@pytest.mark.row("J15")
@pytest.mark.trains
@pytest.mark.parametrize("task", ENCODERS)
def test_a_sentence_is_nearest_to_itself(task, tmp_path, capsys):
    write_data(tmp_path / "data")
    given = [o.format(data=tmp_path / "data") for o in TRAIN[task] if not o.startswith("--epochs")]
    out = tmp_path / "model"
    assert main(["train", task, *given, "--epochs=2", f"--out={out}"]) == 0
    capsys.readouterr()
    lines = (tmp_path / "data" / "lines.txt").read_text().split("\n")
    asked = [str(out), lines[7], f"--among={tmp_path / 'data' / 'lines.txt'}", "--nearest=3"]
    assert main(["similar", *asked, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["similar"]
    assert len(found) == 3
    assert found[0]["similarity"] == pytest.approx(1.0, abs=1e-5)
    as_near = [f["text"] for f in found if f["similarity"] > found[0]["similarity"] - 1e-6]
    assert lines[7] in as_near  # a mean of words knows no order
    assert main(["similar", *asked]) == 0
    assert capsys.readouterr().out.split("\n")[0].split("\t")[2] == found[0]["text"]
    vectors = load(out).sentence_vectors(lines[:9])
    alone = load(out).sentence_vectors([lines[3]])
    assert np.allclose(vectors[3], alone[0], atol=1e-5)  # neighbours change nothing


def test_without_a_file_it_says_so():
    from types import SimpleNamespace

    from unrolled.tasks.shared.similar import similar_answers
    from unrolled.tasks.shared.similar_use import SimilarOptions

    with pytest.raises(
        ConfigError, match=r"nothing to look among\. Name a file of texts with --amo"
    ):
        next(similar_answers(Letters(), [[SimpleNamespace(text="a")]], SimilarOptions(), "x"))
