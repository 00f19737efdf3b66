import numpy as np
import pytest
import torch

from unrolled.config import settings_for
from unrolled.decode.exhaustive import exhaustive
from unrolled.decode.sample import Sampling
from unrolled.errors import ConfigError
from unrolled.store.files import write_folder
from unrolled.tasks.folder import load
from unrolled.tasks.translate.model import MANY_TOKENS, TranslateModel
from unrolled.tasks.translate.search import Search
from unrolled.tasks.translate.settings import TranslateRun
from unrolled.text.batch import Batch
from unrolled.text.tokens import END, PAD, START, UNK
from unrolled.training.job import model_files

pytestmark = [pytest.mark.arithmetic, pytest.mark.slow]

SOURCES = ["a b c", "b b", "c a b a", "a"]
TARGETS = ["x y", "y y y", "z x", "x"]


def made(**options):
    torch.manual_seed(0)
    chosen = {"tokens.level": "word", "model.hidden_size": 6, "model.dropout": 0.0, **options}
    model = TranslateModel.build(settings_for(TranslateRun, overrides=chosen), SOURCES, TARGETS)
    with torch.no_grad():
        for parameter in model.network.parameters():
            parameter.normal_(0.0, 0.7)
    model.from_training.longest.fill_(4)
    model.network.eval()
    return model


def test_outputs_stand_in_the_order_of_the_texts_and_empty_gives_empty():
    model = made()
    found = model.predict(["a b c", "", "b b", "   ", "c"])
    assert (found[1], found[3]) == ("", "")
    for number in (0, 2, 4):
        assert found[number] == model.predict([["a b c", "", "b b", "", "c"][number]])[0]


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"model.placement": "bahdanau"}, {"model.feed": True}])
def test_neighbours_change_no_output(width, options):
    model, search = made(**options), Search(width=width)
    texts = [" ".join(np.random.default_rng(n).choice(list("abcd"), 1 + n % 7)) for n in range(40)]
    together = model.translate(texts, search)
    for text, found in zip(texts, together, strict=True):
        (alone,) = model.translate([text], search)
        assert [each.text for each in alone] == [each.text for each in found]
        assert alone[0].log_probability == pytest.approx(found[0].log_probability, abs=1e-4)


def test_a_wide_beam_finds_the_best_of_all():
    model = made()
    model.network.double()
    limit, alpha = 3, 0.7
    (found,) = model.translate(
        ["a b c"], Search(width=64, alpha=alpha, stop="best", max_length=limit)
    )
    source = Batch.collate([[*model.source.encode("a b c"), END]])
    best = exhaustive(
        model.network,
        model.network.encode(source),
        torch.full((1,), START),
        end=END,
        limit=limit,
        alpha=alpha,
        banned=(PAD, START),
    )[0]
    assert found[0].log_probability == pytest.approx(best.log_probability, rel=1e-12)


def test_the_score_of_an_output_is_the_models_own():
    model = made()
    for text in SOURCES:
        (found,) = model.translate([text], Search(width=3, nbest=3, copy=False))
        assert [each.score for each in found] == sorted((e.score for e in found), reverse=True)
        for each in found:
            if each.finished and UNK not in model.target.encode(each.text):
                own = model.log_probabilities(
                    model.source.encode_lines([text]), model.target.encode_lines([each.text])
                )
                assert own[0] == pytest.approx(each.log_probability, abs=1e-4)


def test_an_output_without_an_end_is_flagged():
    model = made()
    with torch.no_grad():
        model.network.bias[END] = -50.0
    (found,) = model.translate(["a b"], Search(width=1, max_length=7))
    assert not found[0].finished
    assert len(found[0].tokens) == 7
    (found,) = model.translate(["a b"], Search(width=1))
    assert len(found[0].tokens) == 2 * 3 + 10  # twice the source with its END, and some room
    model.from_training.longest.fill_(30)
    (found,) = model.translate(["a b"], Search(width=1))
    assert len(found[0].tokens) == 30 + 10


def test_unknown_words_are_copied_from_where_attention_looks():
    model = made()
    with torch.no_grad():
        model.network.bias[UNK] = 50.0
    search = Search(width=1, max_length=3)
    (found,) = model.translate(["a Zebra c"], search)
    weights = model._weights(model.source.encode("a Zebra c"), [UNK, UNK, UNK])
    words = ["a", "Zebra", "c"]
    assert found[0].tokens == [words[place] for place in weights[:3, :3].argmax(1)]
    (kept,) = model.translate(["a Zebra c"], Search(width=1, max_length=3, copy=False))
    assert kept[0].text == "<unk> <unk> <unk>"


def test_without_attention_unknown_words_stay_unknown():
    model = made(**{"model.attention": "none"})
    with torch.no_grad():
        model.network.bias[UNK] = 50.0
    (found,) = model.translate(["a Zebra"], Search(width=1, max_length=2))
    assert found[0].text == "<unk> <unk>"
    assert model.attention("a", "x").weights is None


@pytest.mark.row("L14")
def test_attention_rows_sum_to_one_and_name_the_tokens():
    alignment = made().attention("a b c", "x y")
    assert alignment.source == ["a", "b", "c", "</s>"]
    assert alignment.target == ["x", "y", "</s>"]
    assert alignment.weights.shape == (3, 4)
    np.testing.assert_allclose(alignment.weights.sum(1), 1.0, rtol=1e-6)


def test_samples_follow_the_seed():
    model = made()
    drawn = [model.sample(SOURCES, Sampling(), seed=seed) for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]


@pytest.mark.parametrize("options", [{}, {"tokens.joint": True}, {"tokens.level": "bpe"}])
def test_a_folder_gives_the_same_model_back(tmp_path, options):
    model = made(**options)
    files = model_files(model, metrics={}, card="")
    write_folder(tmp_path / "model", files)
    again = load(tmp_path / "model")
    assert again.translate(SOURCES) == model.translate(SOURCES)
    assert again.about() == model.about()


def test_word_for_word_reads_the_dictionary():
    model = made()
    table = {"a": "x", "b": "y", "c": "z"}
    for source, target in table.items():
        place = model.source.vocabulary.encode([source])[0]
        model.from_training.dictionary[place] = int(model.target.vocabulary.encode([target])[0])
    assert model.word_for_word(["a c b", "Q"]) == ["x z y", "<unk>"]


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"width": 0}, "width is 0"),
        ({"width": 10**6}, "width is 1000000"),
        ({"alpha": -1.0}, "alpha is -1"),
        ({"nbest": 9}, "nbest is 9"),
        ({"max_length": 0}, "max_length is 0"),
        ({"stop": "never"}, "stop is 'never'"),
    ],
)
def test_impossible_searches_are_refused(search, message):
    with pytest.raises(ConfigError, match=message):
        made().predict(["a"], **search)


def test_a_source_of_five_thousand_tokens_is_read():
    (found,) = made().translate(["a b c a b " * 1000], Search(max_length=5))
    assert len(found[0].tokens) <= 5


def test_only_a_large_softmax_begins_with_the_shares_of_its_tokens():
    settings = settings_for(
        TranslateRun, overrides={"tokens.level": "word", "model.hidden_size": 6}
    )
    words = [f"w{n}" for n in range(MANY_TOKENS)]
    many = TranslateModel.build(settings, words, ["a", *words, "w7"])
    shares = torch.tensor(many.target.vocabulary.counts, dtype=torch.float64) + 1.0
    torch.testing.assert_close(many.network.bias.double().softmax(0), shares / shares.sum())
    few = TranslateModel.build(settings, words[:9], words[:9])
    assert not few.network.bias.any()
