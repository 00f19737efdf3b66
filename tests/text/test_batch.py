from collections import Counter
from itertools import chain, pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from unrolled.errors import ConfigError
from unrolled.text.batch import Batch, LineBatches, StreamBatches
from unrolled.text.ragged import Ragged
from unrolled.text.tokens import END, PAD, START, EncodedLines, TextEncoder

pytestmark = pytest.mark.slow

ROWS = st.lists(st.lists(st.integers(4, 99), max_size=30), min_size=1, max_size=60)


def encoded_of(rows: list[list[int]]) -> EncodedLines:
    ids = np.array([i for row in rows for i in [*row, END]], dtype=np.int32)
    lengths = np.array([len(row) + 1 for row in rows], dtype=np.int64)
    return EncodedLines(Ragged.joined(ids, lengths), characters=len(ids))


def skewed(count: int) -> EncodedLines:
    lengths = np.random.default_rng(0).lognormal(2.5, 0.9, count).astype(int).tolist()
    return encoded_of([[4 + i % 90] * n for i, n in enumerate(lengths)])


def rows_of(batch: Batch) -> list[tuple[int, ...]]:
    pairs = zip(batch.tokens.tolist(), batch.lengths.tolist(), strict=True)
    return [tuple(row[:length]) for row, length in pairs]


@pytest.mark.row("A8")
def test_the_two_sentences_of_the_notes():
    lines = [
        "fall fires burning neath black twisted boughs",
        "a blaze so high it lights the night",
    ]
    encoder = TextEncoder.build(lines, level="word")
    batch = Batch.collate([[START, *encoder.encode(line), END] for line in lines])
    assert batch.tokens.shape == (2, 10)
    boughs = encoder.encode("boughs").item()
    assert batch.tokens[0, -3:].tolist() == [boughs, END, PAD]
    assert batch.tokens[1, -1] == END
    assert batch.tokens[:, 0].tolist() == [START, START]
    assert batch.lengths.tolist() == [9, 10]
    assert batch.mask.tolist() == [[True] * 9 + [False], [True] * 10]


@settings(deadline=None)
@given(ROWS)
def test_collate_keeps_every_token(rows):
    batch = Batch.collate(rows)
    assert rows_of(batch) == [tuple(row) for row in rows]
    assert batch.tokens.shape == (len(rows), max(map(len, rows)))
    assert (batch.tokens.dtype, batch.lengths.dtype) == (torch.int64, torch.int64)
    assert torch.equal(batch.mask.sum(1), batch.lengths)
    assert bool((batch.tokens[~batch.mask] == PAD).all())


def test_collate_takes_arrays_and_refuses_nothing():
    batch = Batch.collate([np.array([5, 6]), np.array([7])])
    assert batch.tokens.tolist() == [[5, 6], [7, PAD]]
    with pytest.raises(ValueError, match="a batch needs at least one row, but there is none"):
        Batch.collate([])


@pytest.mark.row("H1")
def test_shifted_asks_for_the_next_token():
    inputs, targets = Batch.collate([[START, 5, 6, END], [START, 7, END]]).shifted()
    assert inputs.tolist() == [[START, 5, 6], [START, 7, END]]
    assert targets.tolist() == [[5, 6, END], [7, END, PAD]]


def test_reversed_rows():
    rows = [[START, 5, 6, 7, END], [START, 8, 9, END], [START, END], [END, 5, 6], [START], [3, 4]]
    batch = Batch.collate(rows).reversed()
    assert rows_of(batch) == [
        (START, 7, 6, 5, END),
        (START, 9, 8, END),
        (START, END),
        (END, 6, 5),  # cut short, so there is no END to keep
        (START,),
        (3, 4),
    ]
    assert bool((batch.tokens[~batch.mask] == PAD).all())


@settings(deadline=None)
@given(ROWS)
def test_reversing_twice_changes_nothing(rows):
    batch = Batch.collate([[START, *row, END] for row in rows])
    once = batch.reversed()
    assert rows_of(once) == [(START, *reversed(row), END) for row in rows]
    assert torch.equal(once.reversed().tokens, batch.tokens)


@pytest.mark.row("A6", "A10")
@settings(deadline=None)
@given(ROWS, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_line_is_in_one_batch_within_the_budget(rows, budget, seed, epoch):
    data = LineBatches(encoded_of(rows), batch_tokens=budget)
    batches = list(data.epoch(seed, epoch))
    seen = [row for batch in batches for row in rows_of(batch)]
    assert Counter(seen) == Counter((START, *row, END) for row in rows)
    for batch in batches:
        assert batch.tokens.numel() <= budget or len(batch.lengths) == 1
        assert batch.tokens.size(1) == int(batch.lengths.max())
    places = sum(batch.tokens.numel() for batch in batches)
    padding = places - sum(map(len, seen))
    assert data.padding_share(seed, epoch) == pytest.approx(padding / places, abs=1e-12)


def test_an_epoch_is_a_pure_function_of_seed_and_epoch():
    data = LineBatches(skewed(500), batch_tokens=300)
    first, again = data.epoch(1, 2), data.epoch(1, 2)
    assert len(first) == len(again) > 10
    for index in reversed(range(len(first))):  # in any order, each without the ones before it
        assert torch.equal(first[index].tokens, again[index].tokens)
        assert torch.equal(first[index].lengths, again[index].lengths)
    assert torch.equal(first[-1].tokens, list(first)[-1].tokens)
    with pytest.raises(IndexError):
        first[len(first)]
    orders = {
        tuple(row for batch in data.epoch(seed, epoch) for row in rows_of(batch))
        for seed, epoch in [(1, 2), (1, 3), (2, 2), (2, 1)]
    }
    assert len(orders) == 4


def test_rows_of_equal_length_meet_others_each_epoch():
    rows = [[4 + i, 4 + i] for i in range(90)]
    data = LineBatches(encoded_of(rows), batch_tokens=40)
    groups = [{frozenset(rows_of(batch)) for batch in data.epoch(0, epoch)} for epoch in (0, 1)]
    assert not groups[0] & groups[1]


def test_batches_do_not_come_from_short_to_long():
    sizes = [
        batch.tokens.size(1) for batch in LineBatches(skewed(3000), batch_tokens=500).epoch(0, 0)
    ]
    assert abs(np.corrcoef(sizes, np.arange(len(sizes)))[0, 1]) < 0.3


@pytest.mark.row("A10")
def test_buckets_halve_the_padding_and_more():
    data = LineBatches(skewed(20_000), batch_tokens=2_000)
    lengths = np.random.default_rng(1).permutation(data.lengths)
    batch_rows = len(lengths) // len(data.epoch(0, 0))  # random batches, as many as ours
    chunks = [lengths[i : i + batch_rows] for i in range(0, len(lengths), batch_rows)]
    places = sum(len(chunk) * int(chunk.max()) for chunk in chunks)
    random_padding = places - int(lengths.sum())
    ours = sum(batch.tokens.numel() for batch in data.epoch(0, 0)) - int(lengths.sum())
    assert ours < 0.5 * random_padding
    assert data.padding_share(0, 0) < 0.05


def test_long_lines_are_cut_and_counted():
    encoded = encoded_of([[5, 6, 7, 8], [9]])
    data = LineBatches(encoded, batch_tokens=100, max_length=4)
    assert {row for batch in data.epoch(0, 0) for row in rows_of(batch)} == {
        (START, 5, 6, 7),
        (START, 9, END),
    }
    assert data.cut == 1
    assert LineBatches(encoded, batch_tokens=100).cut == 0


def test_in_order_says_which_rows_a_batch_holds():
    rows = [[5] * n for n in (7, 0, 3, 7, 12, 1)]
    data = LineBatches(encoded_of(rows), first=END, batch_tokens=20)
    seen = {}
    for places, batch in data.in_order():
        seen.update(zip(places.tolist(), rows_of(batch), strict=True))
    assert seen == {i: (END, *row, END) for i, row in enumerate(rows)}
    sizes = [batch.tokens.size(1) for _, batch in data.in_order()]
    assert sizes == sorted(sizes)


def test_no_lines_give_no_batches():
    empty = encoded_of([])
    lines = LineBatches(empty, batch_tokens=10)
    assert (len(lines.epoch(0, 0)), list(lines.in_order()), lines.padding_share(0, 0)) == (0, [], 0)
    stream = StreamBatches(empty, columns=2, steps=3)
    assert (list(stream.epoch(0, 0)), list(stream.in_order())) == ([], [])
    assert stream.padding_share(0, 0) == 0.0


def test_only_the_last_column_of_a_stream_is_padded():
    stream = StreamBatches(encoded_of([[5] * 9]), columns=3, steps=3)  # 10 tokens: 4, 4 and 2
    assert stream.padding_share(0, 0) == pytest.approx(2 / 12)


def predicted(batches) -> list[list[int]]:
    """What each column of a stream predicts, over all batches."""
    columns: dict[int, list[int]] = {}
    for batch in batches:
        for column, row in enumerate(rows_of(batch)):
            columns.setdefault(column, []).extend(row[1:])
    return [columns[i] for i in range(len(columns))]


@settings(deadline=None, max_examples=200)
@given(ROWS, st.integers(1, 12), st.integers(1, 9), st.integers(0, 20))
def test_a_stream_predicts_every_token_once(rows, columns, steps, epoch):
    encoded = encoded_of(rows)
    data = StreamBatches(encoded, columns=columns, steps=steps)
    for batches in (data.epoch(3, epoch), data.in_order()):
        parts = predicted(batches)
        assert list(chain.from_iterable(parts)) == encoded.ids.tolist()
        assert 1 <= len(parts) <= columns
        assert len({len(part) for part in parts[:-1]}) <= 1
        assert 1 <= len(parts[-1]) <= len(parts[0])
        sizes = [batch.tokens.size(1) - 1 for batch in batches]
        assert 1 <= sizes[0] <= steps
        assert all(size == steps for size in sizes[1:-1])
        assert 1 <= sizes[-1] <= steps
        assert all(bool((batch.lengths >= 1).all()) for batch in batches)


@settings(deadline=None, max_examples=100)
@given(ROWS, st.integers(1, 12), st.integers(1, 9))
def test_each_batch_of_a_stream_continues_the_one_before(rows, columns, steps):
    encoded = encoded_of(rows)
    batches = list(StreamBatches(encoded, columns=columns, steps=steps, first=77).epoch(0, 1))
    assert batches[0].tokens[0, 0] == 77
    parts = predicted(batches)
    for column in range(1, len(parts)):
        assert batches[0].tokens[column, 0] == parts[column - 1][-1]
    for before, after in pairwise(batches):
        going_on = after.lengths > 1
        last = before.tokens.gather(1, before.lengths[:, None] - 1)[:, 0]
        assert torch.equal(after.tokens[going_on, 0], last[going_on])


def test_a_stream_in_numbers():
    data = StreamBatches(encoded_of([[5, 6, 7, 8, 9, 10]]), columns=2, steps=3)
    first, second = data.in_order()
    assert first.tokens.tolist() == [[END, 5, 6, 7], [8, 9, 10, END]]
    assert second.tokens.tolist() == [[7, 8], [END, PAD]]
    assert second.lengths.tolist() == [2, 1]
    inputs, targets = first.shifted()
    assert inputs.tolist() == [[END, 5, 6], [8, 9, 10]]
    assert targets.tolist() == [[5, 6, 7], [9, 10, END]]


def test_the_cuts_of_a_stream_move_with_the_epoch_and_come_back():
    data = StreamBatches(encoded_of([[5] * 200]), columns=4, steps=10)
    starts = [data.epoch(0, epoch)[0].tokens.size(1) - 1 for epoch in range(40)]
    assert starts == [data.epoch(0, epoch)[0].tokens.size(1) - 1 for epoch in range(40)]
    assert set(starts) == set(range(1, 11))
    assert torch.equal(data.epoch(0, 5)[3].tokens, list(data.epoch(0, 5))[3].tokens)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda e: LineBatches(e, batch_tokens=0), "batch_tokens is 0, but must be at least 1"),
        (
            lambda e: LineBatches(e, batch_tokens=9, max_length=1),
            "max_length is 1, but must be at least 2",
        ),
        (lambda e: StreamBatches(e, columns=0, steps=1), "columns is 0, but must be at least 1"),
        (lambda e: StreamBatches(e, columns=1, steps=0), "steps is 0, but must be at least 1"),
    ],
)
def test_sizes_below_the_least(build, message):
    with pytest.raises(ConfigError, match=message):
        build(encoded_of([[5]]))
