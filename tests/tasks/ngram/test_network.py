import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from ngrams import Formulas, counted, ngram_counts, random_lines, step
from scipy.stats import chisquare

from unrolled.errors import ModelError
from unrolled.ngrams.query import unseen_shares
from unrolled.tasks.shared.ngram_network import NgramFacts, NgramNetwork
from unrolled.text.batch import Batch, StreamBatches
from unrolled.text.tokens import END, PAD, START

pytestmark = pytest.mark.arithmetic

SMOOTHINGS = ("mle", "add", "stupid", "absolute", "kn", "mkn")


def scored(model, lines):
    encoded = model.encoder.encode_lines(lines)
    return encoded, model.network.nats_in_lines(encoded)


@pytest.mark.parametrize("smoothing", [s for s in SMOOTHINGS if s != "stupid"])
@pytest.mark.parametrize("order", [1, 3, 6])
def test_a_score_is_the_product_of_steps(smoothing, order):
    model = counted(random_lines(3), order, smoothing)
    lines = random_lines(4, count=10, words=["a", "b", "c", "new"])
    encoded, nats = scored(model, lines)
    state, token = model.network.read(torch.zeros(1, 0, dtype=torch.long)), START
    for wanted, found in zip(encoded.ids.tolist(), nats.tolist(), strict=True):
        log_p, state = model.network.step(torch.tensor([token]), state)
        assert -log_p[0, wanted].item() == pytest.approx(found, rel=1e-12)
        token = wanted  # END opens the next line


@pytest.mark.row("B4")
@pytest.mark.parametrize("order", [1, 2, 4])
def test_what_is_older_than_the_context_changes_nothing(order):
    model = counted(random_lines(5), order)
    context = ["c", "a", "b", "a"][4 - order + 1 :]
    assert step(model, "d", "e", *context) == step(model, "f", "f", "f", *context)


@pytest.mark.parametrize("columns", [1, 3])
def test_batches_that_continue_equal_lines_in_one_go(columns):
    """A stream in pieces: the state holds what the next piece needs."""
    model = counted(random_lines(6), 4, "stupid")
    encoded, nats = scored(model, random_lines(7, count=30))
    found, carry = [], None
    data = StreamBatches(encoded, columns=columns, steps=5, first=START)
    for batch in data.in_order():
        part, carry = model.network.token_nats(batch, carry)
        found.append(part)
    if columns == 1:
        np.testing.assert_allclose(torch.cat(found), nats, rtol=1e-12)
    assert sum(len(part) for part in found) == len(nats)


def test_padding_and_neighbours_change_nothing():
    model = counted(random_lines(8), 3)
    rows = [[START, 4, 5, 4, END], [START, END], [START, 6, 4, END]]
    together, state = model.network.token_nats(Batch.collate(rows))
    apart = [model.network.token_nats(Batch.collate([row])) for row in rows]
    np.testing.assert_array_equal(together, torch.cat([nats for nats, _ in apart]))
    np.testing.assert_array_equal(state[0], torch.cat([last[0] for _, last in apart]))


def test_rows_of_a_state_are_chosen_in_order():
    network = counted(random_lines(9), 3).network
    state = network.read(torch.tensor([[START, 4, 5], [START, 6, 4]]))
    picked = network.select(state, torch.tensor([1, 0, 1]))
    assert picked[0].tolist() == [[6, 4], [4, 5], [6, 4]]


def test_the_state_is_the_line_so_far():
    network = counted(random_lines(9), 5).network
    assert network.read(torch.tensor([[START, 4]]))[0].tolist() == [[PAD, PAD, START, 4]]
    assert network.read(torch.tensor([[5, END, 4]]))[0].tolist() == [[PAD, PAD, START, 4]]


def test_the_next_words_are_those_that_came_next():
    model = counted(["the cat sat", "the cat ran", "the dog ran", "a cat sat"], 3, "mle")
    found = {s.token: s.probability for s in model.next("the cat", top=2)}
    assert found == pytest.approx({"sat": 0.5, "ran": 0.5})
    assert [s.token for s in model.next("the dog", top=1)] == ["ran"]
    assert [s.token for s in model.next("a cat sat", top=1)] == ["</s>"]


def test_ranking_prefers_the_grammatical_order():
    lines = ["the cat is small", "the dog is small", "the cat is big", "a small cat is here"]
    model = counted(lines, 3)
    good, bad = model.score(["the cat is small", "small the is cat"])
    assert good.log_probability > bad.log_probability


@pytest.mark.row("B11")
@pytest.mark.parametrize("smoothing", ["mkn", "stupid"])
def test_written_words_come_as_often_as_their_chances_say(smoothing):
    model = counted(random_lines(10, count=200), 3, smoothing)
    texts = model.generate("a b", tokens=1, count=20_000, seed=1)
    chances = step(model, "<s>", "a", "b")
    chances = {w: p for w, p in chances.items() if w not in ("<pad>", "<s>", "<unk>")}
    words = [text.removeprefix("a b").strip() or "</s>" for text in texts]
    seen = [words.count(word) for word in chances]
    total = math.fsum(chances.values())
    expected = [len(words) * p / total for p in chances.values()]
    assert sum(seen) == len(words)
    assert chisquare(seen, expected).pvalue > 0.01


@pytest.mark.row("B11")
def test_a_seed_fixes_the_text():
    model = counted(random_lines(11), 3)
    first, second = (model.generate("a", count=20, seed=seed) for seed in (1, 2))
    assert first == model.generate("a", count=20, seed=1) != second


def test_a_token_without_a_chance_is_told_from_a_rare_one():
    model = counted(["a b", "b a"], 2, "mle")
    _, nats = scored(model, ["a b", "a a"])
    assert np.isinf(nats).tolist() == [False, False, False, False, True, False]
    assert np.isfinite(scored(counted(["a b", "b a"], 2), ["a a zebra"])[1]).all()


@pytest.mark.row("B9")
def test_the_share_of_unseen_n_grams_grows_with_their_order():
    words = [f"w{i}" for i in range(50)]
    lines = random_lines(12, count=300, words=words)
    model = counted(lines, 5)
    held_out = random_lines(13, count=100, words=[*words, "new", "newer"])
    encoded = model.encoder.encode_lines(held_out)
    seen = np.array(model.encoder.vocabulary.counts) > 0
    shares = unseen_shares(model.network.table, encoded.ids, seen)
    assert shares == pytest.approx(_unseen_by_sets(lines, held_out, 5))
    assert all(a < b for a, b in pairwise(shares))


def _unseen_by_sets(lines, held_out, order):
    def grams(text, k):
        rows = (["<s>", *line.split(), "</s>"] for line in text)
        return [tuple(r[i : i + k]) for r in rows for i in range(k == 1, len(r) - k + 1)]

    pairs = [({*grams(lines, k)}, grams(held_out, k)) for k in range(1, order + 1)]
    return [sum(gram not in known for gram in asked) / len(asked) for known, asked in pairs]


@pytest.mark.row("B8")
def test_distinct_n_grams_never_get_fewer_with_more_text():
    """Of every order, words among them; <pad>, <unk> and <s> are there from the start."""
    lines = random_lines(14, count=400, words=[f"w{i}" for i in range(300)])
    sizes = []
    for n in (50, 100, 200, 400):
        grams = {*ngram_counts(lines[:n], 5)}
        distinct = [sum(len(gram) == k for gram in grams) for k in range(1, 6)]
        distinct[0] += 2  # <pad> and <unk>
        found = counted(lines[:n], 5)
        assert found.network.facts.sizes == tuple(distinct)
        assert found.about()["vocabulary"] == distinct[0]
        sizes.append(distinct)
    assert (np.diff(sizes, axis=0) > 0).all()


def test_facts_survive_json():
    facts = counted(random_lines(1), 3).network.facts
    assert NgramFacts.from_json(facts.to_json()) == facts


@pytest.mark.parametrize(
    "data",
    [
        b"[]",
        b"{}",
        b'{"ngrams": [-1], "discounts": [], "fallback": [], "unseen": {}}',
        b'{"ngrams": [true], "discounts": [], "fallback": [], "unseen": {}}',
        b'{"ngrams": [1e400], "discounts": [], "fallback": [], "unseen": {}}',
        b'{"ngrams": [5], "discounts": [["x"]], "fallback": [false], "unseen": {}}',
        b'{"ngrams": [5], "discounts": [[0.5]], "fallback": [], "unseen": {}}',
        b'{"ngrams": [5], "discounts": [], "fallback": [], "unseen": {"dev": 3}}',
    ],
)
def test_facts_that_are_none_are_refused(data):
    with pytest.raises(ValueError, match=r"ngrams|keys"):
        NgramFacts.from_json(data)


@pytest.mark.parametrize(("name", "value"), [("log_p_2", 0.1), ("log_b_1", 230.0)])
def test_a_table_of_impossible_probabilities_is_refused(name, value):
    network = counted(random_lines(1), 3).network
    tensors = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    tensors[name][1] = value
    with torch.device("meta"):
        empty = NgramNetwork(network.settings, network.facts)
    with pytest.raises(ModelError, match=r"\d-grams have probabilities above 1, or weights beyond"):
        empty.load_state_dict(tensors, assign=True)


@pytest.mark.parametrize("change", ["falls", "ends", "begins", "token"])
def test_a_table_that_leads_nowhere_is_refused(change):
    network = counted(random_lines(1), 3).network
    tensors = {name: value.clone() for name, value in network.state_dict().items()}
    if change == "token":
        tensors["words_2"][0] = 99
    else:
        place = {"falls": 5, "ends": -1, "begins": 0}[change]
        tensors["begin_1"][place] += 1000
    with torch.device("meta"):
        empty = NgramNetwork(network.settings, network.facts)
    with pytest.raises(ModelError, match=r"\d-grams do not fit together; restore it"):
        empty.load_state_dict(tensors, assign=True)


def test_formulas_and_scores_agree_on_whole_lines():
    lines = random_lines(15)
    model, formulas = counted(lines, 4), Formulas(lines, 4, "mkn")
    for score in model.score(random_lines(16, count=10)):
        tokens = ["<s>", *score.text.split(), "</s>"]
        total = sum(math.log(formulas(tokens[i], tokens[:i])) for i in range(1, len(tokens)))
        assert score.log_probability == pytest.approx(total, rel=1e-11)
