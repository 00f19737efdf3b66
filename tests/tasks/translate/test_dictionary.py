"""The word-for-word dictionary finds a hidden one, and equals Model 1 written out in loops."""

from collections import defaultdict

import numpy as np
import pytest

from unrolled.tasks.translate import dictionary
from unrolled.tasks.translate.dictionary import word_dictionary
from unrolled.text.tokens import END, PAD, START, UNK

pytestmark = pytest.mark.arithmetic

FIRST = 4  # the first ordinary id


def flat(lines):
    ids = np.array([token for line in lines for token in line], dtype=np.int32)
    return ids, np.array([len(line) for line in lines], dtype=np.int64)


def table(sources, targets, source_size=40, target_size=40):
    sides = (*flat(sources), *flat(targets))
    return word_dictionary(*sides, source_size=source_size, target_size=target_size)


def in_loops(sources, targets, rounds=10):
    """P(t | s) by the equations of the paper, a token at a time."""
    pairs = [
        ([s for s in source if s >= FIRST], [t for t in target if t >= FIRST])
        for source, target in zip(sources, targets, strict=True)
    ]
    probability = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, sums = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for t in target:
                whole = sum(probability[s, t] for s in source)
                for s in source:
                    counts[s, t] += probability[s, t] / whole
                    sums[s] += probability[s, t] / whole
        probability = {(s, t): count / sums[s] for (s, t), count in counts.items()}
    return probability


def best_in_loops(sources, targets, size=40):
    best = [(UNK, 0.0)] * size
    for (s, t), p in sorted(in_loops(sources, targets).items()):
        if p > best[s][1] + 1e-12:
            best[s] = (t, p)
    return [PAD, UNK, START, END, *(t for t, _ in best[FIRST:])]


def random_lines(seed, count=60):
    generator = np.random.default_rng(seed)

    def lines():
        return [
            [*generator.integers(1, 20, size=generator.integers(0, 7)), END] for _ in range(count)
        ]

    return lines(), lines()


def hidden(seed, count=400):
    """Targets are the sources, word for word in another order, with a word that means nothing."""
    generator = np.random.default_rng(seed)
    meaning = np.arange(40)
    meaning[FIRST:30] = FIRST + generator.permutation(30 - FIRST)
    sources = [
        generator.integers(FIRST, 30, size=generator.integers(1, 9)).tolist() for _ in range(count)
    ]
    targets = [[35, *generator.permutation(meaning[line])] for line in sources]
    return sources, targets, meaning


def test_a_hidden_dictionary_is_found():
    sources, targets, meaning = hidden(0)
    assert table(sources, targets)[:30].tolist() == meaning[:30].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_it_is_model_1_written_out_in_loops(seed):
    sources, targets = random_lines(seed)
    assert table(sources, targets).tolist() == best_in_loops(sources, targets)


def test_special_tokens_go_with_themselves_and_with_nothing_else():
    found = table([[UNK, 5, END], [6, END], [UNK, END]], [[9, END], [UNK, END], [9, END]], 8, 11)
    assert found.dtype == np.int64
    assert found.tolist() == [PAD, UNK, START, END, UNK, 9, UNK, UNK]


def test_ties_go_to_the_lower_id():
    assert table([[5, 7]] * 3, [[9, 6, 8]] * 3)[[5, 7]].tolist() == [6, 6]


def test_a_tie_is_one_in_whatever_order_its_numbers_are_summed():
    for seed in range(10):
        generator = np.random.default_rng(seed)
        lines = [[5, *generator.integers(10, 16, size=generator.integers(1, 4))] for _ in range(7)]
        sides = [([8], line) for line in lines] + [([6], line) for line in lines[::-1]]
        targets = [[*own, *[9] * (len(line) % 2)] for own, line in sides]
        assert table([line for _, line in sides], targets)[5] == 6


def test_the_likeliest_counts_not_the_commonest():
    """30 is in every target, so it is no word's own, as long as there is another word for it."""
    found = table([[4, 5], [4, 6], [4, 7], [4]], [[30, 15], [30, 16], [30, 17], [30]])
    assert found[4:8].tolist() == [30, 15, 16, 17]


def test_lines_without_words_and_no_lines_at_all():
    specials = [PAD, UNK, START, END]
    assert table([[END], [5, END]], [[7, END], [END]], 6, 8).tolist() == [*specials, UNK, UNK]
    assert table([], [], 6, 8).tolist() == [*specials, UNK, UNK]


def test_how_much_is_read_at_once_changes_nothing(monkeypatch):
    sources, targets = random_lines(9)
    whole = table(sources, targets)
    for at_once in (1, 7, 100):
        monkeypatch.setattr(dictionary, "LINKS_AT_ONCE", at_once)
        assert table(sources, targets).tolist() == whole.tolist()


def test_too_many_links_are_thinned_out(monkeypatch):
    sources, targets, meaning = hidden(1)
    read, links_of = [], dictionary._links

    def noted(source, target, rows, target_size):
        read.append(rows)
        return links_of(source, target, rows, target_size)

    monkeypatch.setattr(dictionary, "MAX_LINKS", 4000)
    monkeypatch.setattr(dictionary, "_links", noted)
    found = table(sources, targets)
    rows = np.unique(np.concatenate(read))
    links = sum(len(sources[row]) * len(targets[row]) for row in rows)
    assert 2000 < links <= 4000
    assert rows.max() > 300  # from all over the text
    assert np.mean(found[FIRST:30] == meaning[FIRST:30]) > 0.9


def test_the_limit_holds_also_where_every_kth_pair_is_a_long_one(monkeypatch):
    long, short = list(range(FIRST, FIRST + 10)), [20]
    monkeypatch.setattr(dictionary, "MAX_LINKS", 600)
    found = table([long, short] * 10, [long, [21]] * 10)  # 1010 links: every second is read
    assert found[20] == UNK
    last = [*long[:-1], 30]
    found = table([long, short] * 9 + [last], [long, [21]] * 9 + [last])
    assert found[30] == UNK  # the tenth of the long ones, beyond the limit


def test_long_lines_are_read_as_far_as_the_limit(monkeypatch):
    monkeypatch.setattr(dictionary, "MAX_SIDE", 3)
    sources, targets = random_lines(11)
    cut = [[[t for t in line if t >= FIRST][:3] for line in side] for side in (sources, targets)]
    assert table(sources, targets).tolist() == best_in_loops(*cut)


def test_sides_of_unequal_length_are_refused():
    with pytest.raises(ValueError, match="1 sources but 2 targets"):
        table([[5]], [[5], [6]])
