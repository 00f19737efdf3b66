"""The tagger as scikit-learn sees it."""

import pickle

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from tagged import SMALL, back_lines, span_lines

from unrolled.errors import ConfigError, DataError
from unrolled.tasks.tag.estimator import Tagger
from unrolled.text.conll import read_tagged

pytestmark = [pytest.mark.arithmetic, pytest.mark.trains]

FLAT = {
    name.split(".")[1]: value for name, value in SMALL.items() if name != "train.checkpoint_seconds"
}


def corpus(lines: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    sentences = read_tagged(lines, source="made")
    return [s.words for s in sentences], [s.tags for s in sentences]


X, Y = corpus(span_lines(80))


def test_fit_predict_and_score():
    tagger = Tagger(**{**FLAT, "holdout": 0.3}).fit(X, Y)
    assert tagger.predict(X[:2]) == Y[:2]
    assert tagger.score(X, Y) > 0.95
    assert tagger.model_.tags.scheme == "iob1"


def test_tags_that_mark_no_spans_are_scored_by_accuracy():
    words, tags = corpus(back_lines(8))
    tagger = Tagger(**FLAT).fit(words, tags)
    predicted = tagger.predict(words)
    pairs = [
        (a, b) for g, p in zip(tags, predicted, strict=True) for a, b in zip(g, p, strict=True)
    ]
    assert tagger.score(words, tags) == pytest.approx(sum(a == b for a, b in pairs) / len(pairs))


def test_the_same_seed_gives_the_same_model_and_leaves_chance_alone():
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first = Tagger(**{**FLAT, "epochs": 1}).fit(X, Y).model_.network.state_dict()
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(8)
    again = Tagger(**{**FLAT, "epochs": 1}).fit(X, Y).model_.network.state_dict()
    other = Tagger(**{**FLAT, "epochs": 1, "seed": 5}).fit(X, Y).model_.network.state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["weight"], other["weight"])


def test_parameters_are_kept_as_given_and_cloned():
    tagger = Tagger(hidden_size=7, cell="gru")
    assert tagger.get_params()["hidden_size"] == 7
    assert "hidden_size=7" in repr(tagger)
    copy = clone(tagger.set_params(dropout=0.1))
    assert copy is not tagger
    assert copy.get_params() == tagger.get_params()
    assert copy.get_params()["dropout"] == 0.1
    assert "checkpoint_seconds" not in tagger.get_params()


def test_cross_validation_and_grid_search():
    scores = cross_val_score(Tagger(**{**FLAT, "epochs": 12}), X, Y, cv=2)
    assert min(scores) > 0.8
    search = GridSearchCV(Tagger(**{**FLAT, "epochs": 3}), {"cell": ["gru", "lstm"]}, cv=2)
    search.fit(X, Y)
    assert search.best_params_["cell"] in ("gru", "lstm")
    assert len(search.predict(X[:1])[0]) == len(X[0])


def test_empty_sentences_are_no_examples_but_are_answered():
    tagger = Tagger(**{**FLAT, "epochs": 1}).fit([[], *X], [[], *Y])
    assert tagger.predict([[], ["Mary"]])[0] == []


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: Tagger(hiden_size=3), ConfigError, r"parameter is 'hiden_size'.*'hidden_size'"),
        (
            lambda: Tagger(dropout=2.0).fit(X, Y),
            ConfigError,
            r"model\.dropout is 2\.0, but must be",
        ),
        (lambda: Tagger().fit(X, Y[:-1]), ConfigError, "80 sentences but 79 lists of tags"),
        (lambda: Tagger().fit(["a b"], [["N"]]), ConfigError, "sentence 0 is 'a b' with the tags"),
        (lambda: Tagger().fit([["a", "b"]], [["N"]]), ConfigError, "a list of as many tags"),
        (lambda: Tagger().fit([["a"]] * 9, [["N"]] * 9), DataError, "every word has the tag 'N'"),
        (lambda: Tagger().fit([], []), DataError, "there is none to learn from"),
        (lambda: Tagger().predict(X), NotFittedError, "not fitted yet"),
    ],
)
def test_what_is_wrong_is_said(act, error, message):
    with pytest.raises(error, match=message):
        act()


def test_it_is_kept_as_bytes_and_as_a_folder_and_gives_probabilities(tmp_path):
    tagger = Tagger(**{**FLAT, "epochs": 1}).fit(X, Y)
    tagger.save(tmp_path / "m")
    for again in (pickle.loads(pickle.dumps(tagger)), Tagger.load(tmp_path / "m")):
        assert again.predict(X[:5]) == tagger.predict(X[:5])
        assert again.get_params() == tagger.get_params()
    matrices = tagger.predict_proba(X[:3])
    assert [m.shape for m in matrices] == [(len(x), len(tagger.classes_)) for x in X[:3]]
    np.testing.assert_allclose(matrices[0].sum(axis=1), 1.0, rtol=1e-5)
