"""The baselines' tables give what the models they were taken from give."""

import numpy as np
import pytest
import torch

from unrolled.config import settings_for
from unrolled.tasks.classify.model import ClassifyModel
from unrolled.tasks.classify.reader import build_reader
from unrolled.tasks.classify.settings import ClassifyRun
from unrolled.tasks.shared.label_baselines import (
    Baselines,
    BaselineSizes,
    majority,
    n_grams,
    safe_order,
    tf_idf,
)
from unrolled.tasks.shared.linear_baseline import commonest, fit_linear
from unrolled.text.labels import Labels

pytestmark = pytest.mark.arithmetic

TEXTS = ["a b a", "b", "", "c a b b c", "a a a a"]
ONE = Labels(("x", "y", "z"), (2, 2, 1), 5, multi_label=False)
TWO = Labels(("x", "y"), (3, 2), 5, multi_label=False)
SEVERAL = Labels(("x", "y"), (3, 2), 5, multi_label=True)
TARGETS = {3: np.array([0, 1, 2, 0, 1]), 2: np.array([0, 1, 0, 0, 1])}
MANY = np.array([[1, 0], [0, 0], [1, 1], [0, 1], [1, 0]])


def encoded(texts=TEXTS, level="word"):
    run = settings_for(ClassifyRun, overrides={"tokens.level": level})
    reader = build_reader(run, TEXTS)
    return reader, reader.encode(texts)


def tokens_of(reader, text):
    return ["<s>", *(reader.encoder.tokeniser.split(text) or ["</s>"]), "</s>"]


@pytest.mark.parametrize("level", ["word", "char"])
def test_n_grams_are_every_run_of_every_text(level):
    reader, texts = encoded(level=level)
    size = len(reader.vocabulary)
    grams = n_grams(texts, order=3, size=size)
    ids = {token: number for number, token in enumerate(reader.vocabulary.tokens)}
    expected = []
    for row, text in enumerate(TEXTS):
        tokens = [ids[token] for token in tokens_of(reader, text)]
        for n in (1, 2, 3):
            for start in range(len(tokens) - n + 1):
                key = 0
                for token in tokens[start : start + n]:
                    key = key * size + token
                expected.append((row, key))
    assert sorted(zip(grams.rows.tolist(), grams.keys.tolist(), strict=True)) == sorted(expected)


def test_the_longest_n_gram_fits_into_a_number():
    assert safe_order("char", 100) == 5
    assert safe_order("char", 20_000) == 4
    assert safe_order("word", 5_000_004) == 2
    assert 20_000**4 < 2**63 < 20_000**5


def test_tf_idf_equals_scikit_learns():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    reader, texts = encoded()
    grams = n_grams(texts, order=2, size=len(reader.vocabulary))
    ours = tf_idf(grams, *commonest(grams, most=1000)).toarray()
    vectorizer = text.TfidfVectorizer(
        analyzer=lambda line: [
            " ".join(tokens[i : i + n])
            for tokens in [tokens_of(reader, line)]
            for n in (1, 2)
            for i in range(len(tokens) - n + 1)
        ],
        sublinear_tf=True,
    )
    theirs = vectorizer.fit_transform(TEXTS).toarray()
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-12)
    np.testing.assert_allclose(np.sort(ours, axis=1), np.sort(theirs, axis=1), atol=1e-12)


def test_unknown_n_grams_and_texts_without_any_are_zero():
    reader, texts = encoded()
    grams = n_grams(texts, order=1, size=len(reader.vocabulary))
    table = tf_idf(grams, np.array([reader.vocabulary.encode(["c"])[0]], np.int64), np.ones(1))
    assert table.toarray().ravel().tolist() == [0.0, 0.0, 0.0, 1.0, 0.0]


def test_only_the_commonest_n_grams_are_kept():
    reader, texts = encoded()
    grams = n_grams(texts, order=1, size=len(reader.vocabulary))
    keys, idf = commonest(grams, most=2)
    assert keys.tolist() == [2, 3]  # START and END, which every text has
    assert idf.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("labels", "targets"), [(ONE, TARGETS[3]), (TWO, TARGETS[2]), (SEVERAL, MANY)]
)
def test_the_linear_table_gives_what_scikit_learn_predicts(labels, targets):
    linear_model = pytest.importorskip("sklearn.linear_model")
    multiclass = pytest.importorskip("sklearn.multiclass")
    reader, texts = encoded()
    size = len(reader.vocabulary)
    fitted = fit_linear(texts, targets, labels, level="word", vocabulary_size=size)
    baselines = Baselines(
        labels, BaselineSizes(len(fitted.keys), fitted.order, size), vocabulary_size=size
    ).double()
    baselines.keep_linear(fitted.keys, fitted.idf, fitted.weight, fitted.bias)
    features = tf_idf(n_grams(texts, order=2, size=size), fitted.keys, fitted.idf)
    ours = baselines.probabilities(texts)["linear"]
    for options, near in (
        ({"dual": True, "max_iter": 200, "random_state": 0}, 1e-12),
        ({"tol": 1e-9}, 2e-3),  # the optimum, found in another way
    ):
        theirs = multiclass.OneVsRestClassifier(
            linear_model.LogisticRegression(C=10.0, solver="liblinear", **options)
        ).fit(features, targets)
        np.testing.assert_allclose(ours, theirs.predict_proba(features), atol=near)


def test_a_label_that_all_or_none_have_needs_no_fit():
    pytest.importorskip("sklearn")
    reader, texts = encoded()
    labels = Labels(("all", "some"), (5, 2), 5, multi_label=True)
    targets = np.stack([np.ones(5, np.int64), MANY[:, 1]], axis=1)
    fitted = fit_linear(
        texts, targets, labels, level="word", vocabulary_size=len(reader.vocabulary)
    )
    assert (fitted.weight[0] == 0).all()
    assert fitted.bias[0] > 10.0


@pytest.mark.parametrize("labels", [ONE, SEVERAL])
def test_the_mean_table_gives_what_the_network_gives(labels):
    run = settings_for(ClassifyRun, overrides={"model.kind": "mean", "model.embedding_size": 7})
    torch.manual_seed(0)
    model = ClassifyModel.build(run, labels, TEXTS)
    model.network.double().eval()
    texts, size = model.reader.encode([*TEXTS, "a unseen"]), len(model.reader.vocabulary)
    baselines = Baselines(labels, BaselineSizes(1, 1, size), vocabulary_size=size).double()
    network = model.network
    baselines.keep_mean(network.embedder.embedding.weight, network.weight, network.bias)
    ours = baselines.probabilities(texts)["mean_embedding"]
    np.testing.assert_allclose(ours, model.encoded_probabilities(texts), atol=1e-14)


def test_tokens_beyond_the_mean_table_count_as_unknown():
    reader, texts = encoded(["c", "unseen"])
    baselines = Baselines(TWO, BaselineSizes(1, 1, 6), vocabulary_size=len(reader.vocabulary))
    baselines.keep_mean(torch.randn(len(reader.vocabulary), 3), torch.randn(2, 3), torch.zeros(2))
    assert reader.vocabulary.encode(["c"])[0] >= 6
    first, second = baselines.probabilities(texts)["mean_embedding"]
    np.testing.assert_allclose(first, second, rtol=1e-6)


def test_the_majority_is_the_share_of_each_label():
    _, texts = encoded()
    assert majority(ONE, texts).tolist() == [[0.4, 0.4, 0.2]] * 5
