"""Layers: built from unsorted updates, narrow where values allow, found by prefix."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.times import columns as T
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.layer import Layer, build, build_block, keep, sums_of_equal
from dlog.grammar.diagnostics import InternalError
from tests.engine.kernels.workbench import EXAMPLES, EXTREMES, MANY
from tests.engine.trace.model import Update, batch_of, columns_of, summed
from tests.examples import examples

VALUES = st.one_of(st.integers(-3, 3), st.sampled_from(EXTREMES))
START = Antichain.start


def layer_of(updates: list[Update], arity: int, depth: int) -> Layer | None:
    found = batch_of(updates, arity, START(depth), Antichain.at(*(99,) * depth)).layers
    return found[0] if found else None


def content(layer: Layer | None) -> list[Update]:
    if layer is None:
        return []
    rows = zip(*(c.tolist() for c in layer.columns()), strict=True) if layer.arity else [()] * layer.rows
    times = zip(*layer.times().tolist(), strict=True)
    return list(zip(rows, times, layer.diffs().tolist(), strict=True))


@st.composite
def shaped_updates(draw: st.DrawFn) -> tuple[int, int, list[Update]]:
    arity, depth = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    row, time = st.tuples(*[VALUES] * arity), st.tuples(*[st.integers(0, 2)] * depth)
    diff = st.sampled_from([1, 1, 1, -1, 2, 2**40])
    return arity, depth, draw(st.lists(st.tuples(row, time, diff), max_size=30))


@examples(4 * EXAMPLES)
@given(shaped_updates())
def test_2_6_a_layer_is_its_updates_sorted_and_summed(given_updates: tuple[int, int, list[Update]]) -> None:
    arity, depth, updates = given_updates
    layer = layer_of(updates, arity, depth)
    expected = sorted((row, time, diff) for (row, time), diff in summed(updates).items())
    assert content(layer) == expected
    if layer is not None:
        assert layer.weight == sum(abs(diff) for _, _, diff in expected)
        columns, times, diffs = layer.updates()
        assert [c.tolist() for c in columns] == [c.tolist() for c in layer.columns()]
        assert (times.tolist(), diffs.tolist()) == (layer.times().tolist(), layer.diffs().tolist())
        assert all(latest >= max(t[c] for _, t, _ in expected) for c, latest in enumerate(layer.latest))


@examples(4 * EXAMPLES)
@given(shaped_updates(), st.integers(1, 3))
def test_equal_updates_are_summed_in_the_order_of_the_first(
    given_updates: tuple[int, int, list[Update]], components: int
) -> None:
    arity, depth, updates = given_updates
    weights = np.arange(components * len(updates), dtype=np.int64).reshape(components, -1) % 5 - 2
    times, diffs = T.pack([time for _, time, _ in updates], depth), np.array([diff for _, _, diff in updates], np.int64)
    columns = columns_of([row for row, _, _ in updates], arity)
    if not updates:
        return
    found = sums_of_equal([*columns, *times, diffs, *weights], arity, components)
    expected: dict[object, list[int]] = {}
    for place, (row, time, diff) in enumerate(updates):
        summed = expected.setdefault((row, time), [0] * components)
        for c in range(components):
            summed[c] += int(weights[c, place]) * diff
    every = [(row, time, c, total) for (row, time), summed in expected.items() for c, total in enumerate(summed)]
    parts = [((*row, c, 0), time, total) for row, time, c, total in every if total]
    assert [(tuple(u[: arity + 2]), tuple(u[arity + 2 : -1]), u[-1]) for u in found.T.tolist()] == parts


LARGE = [[2**62 + 1, 2**62, 5], [2**62] * 3 + [2**62 - 1], [2**62] * 4, [2**63 - 1, -(2**63), 3], [-(2**63)] * 2, [1, -(2**63)]]


@pytest.mark.parametrize("diffs", LARGE)
@pytest.mark.parametrize("repeated", [False, True])
def test_diffs_are_kept_whose_sum_is_beyond_64_bits(diffs: list[int], repeated: bool) -> None:
    rows, given = np.arange(len(diffs)), np.array(diffs)
    if repeated:  # equal rows add up, so that what was found out of the diffs holds no longer
        rows, given = np.append(rows, 0), np.append(given, [given[-1]])
        diffs = [(diffs[0] + diffs[-1] + 2**63) % 2**64 - 2**63, *diffs[1:]]
    found = build([rows], (0,), given)
    assert content(found) == [((row,), (0,), diff) for row, diff in enumerate(diffs) if diff]
    assert found is not None and found.weight == min(sum(map(abs, diffs)), 2**63 - 1)


@pytest.mark.parametrize("span", [3, 1 << 20, 1 << 63])
def test_many_equal_updates_are_summed(span: int) -> None:
    rng = np.random.default_rng(1)
    columns = [rng.choice(rng.integers(-span, span - 1, 5), 1000) for _ in range(2)]
    weights, times, diffs = rng.integers(-3, 4, (2, 1000)), rng.integers(4, 6, 1000), rng.integers(-1, 2, 1000)
    found = sums_of_equal([*columns, times, diffs, *weights], 2, 2)
    sums = Counter[tuple[int, ...]]()
    for one, other, x, y, time, diff in zip(*weights.tolist(), *(c.tolist() for c in columns), times, diffs, strict=True):
        sums[x, y, 0, 0, int(time)] += one * int(diff)
        sums[x, y, 1, 0, int(time)] += other * int(diff)
    assert {tuple(u[:-1]): u[-1] for u in found.T.tolist()} == {key: total for key, total in sums.items() if total}


def test_updates_are_kept_by_a_mask() -> None:
    block = np.arange(12).reshape(3, 4)
    found = np.empty((3, 2), np.int64)
    assert keep(block, np.array([True, False, False, True]), found).tolist() == [[0, 3], [4, 7], [8, 11]]
    assert keep(block, np.zeros(4, bool), found[:, :0].copy()).shape == (3, 0)


@examples(EXAMPLES)
@given(shaped_updates())
def test_a_block_makes_the_layer_that_its_fields_make(given_updates: tuple[int, int, list[Update]]) -> None:
    arity, depth, updates = given_updates
    columns = columns_of([row for row, _, _ in updates], arity)
    times, diffs = T.pack([time for _, time, _ in updates], depth), np.array([diff for _, _, diff in updates], np.int64)
    found = build_block(np.array([*columns, *times, diffs], np.int64).reshape(arity + depth + 1, -1), arity)
    expected = build(columns, times, diffs)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.unpacked().tolist() == expected.unpacked().tolist()


@pytest.mark.parametrize("span", [5, 1 << 20, 1 << 62])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_many_updates_are_sorted_as_numpy_sorts_them(span: int, columns: int) -> None:
    rng = np.random.default_rng(columns)
    data = [rng.integers(-span, span, MANY) for _ in range(columns)]
    layer = build(data, (7,), 1)
    assert layer is not None
    rows, counts = np.unique(np.stack(data), axis=1, return_counts=True)
    assert np.array_equal(np.stack(layer.columns()), rows)
    assert layer.diffs().tolist() == counts.tolist()
    assert layer.times().tolist() == [[7] * layer.rows]


def test_sorted_updates_stay_as_they_are() -> None:
    data = np.arange(-50, 50)
    layer = build([data, data * 2**33], (0,), 1)
    assert layer is not None
    assert [c.tolist() for c in layer.columns()] == [data.tolist(), (data * 2**33).tolist()]


def test_2_14_settled_history_is_rows_alone() -> None:
    layer = build([np.arange(1000) * 7, np.arange(1000)], (0,), 1)
    assert layer is not None and layer.settled
    assert layer.nbytes == 8 * 1000


def test_fields_are_as_wide_as_their_values() -> None:
    layer = build([np.array([1, 2**31]), np.array([1, -(2**31)]), np.array([5, 5])], np.array([[3, 2**40]]), np.array([1, -1]))
    assert layer is not None and not layer.settled
    assert [layer.width(f) for f in range(5)] == [8, 4, 0, 8, 4]
    assert layer.constant(2) == 5 and layer.latest == (2**40,)


def test_diffs_that_add_up_need_room_though_all_are_one() -> None:
    layer = build([np.array([4, 4, 9])], (0,), 1)
    assert content(layer) == [((4,), (0,), 2), ((9,), (0,), 1)]


def test_sums_beyond_32_bits_are_kept() -> None:
    layer = build([np.array([4, 4, 9])], (0,), np.array([2**31, 2**31, 1]))
    assert content(layer) == [((4,), (0,), 2**32), ((9,), (0,), 1)]


def test_what_cancels_out_leaves_nothing() -> None:
    assert build([np.array([4, 4])], (0,), np.array([1, -1])) is None
    assert build([np.array([4])], (0,), np.array([0])) is None
    assert build([np.empty(0, np.int64)], (0,), 1) is None


def test_a_single_update_is_nothing_but_words() -> None:
    layer = build([np.array([4]), np.array([2**50])], (3, 1), np.array([-1]))
    assert layer is not None and layer.nbytes == 0
    assert content(layer) == [((4, 2**50), (3, 1), -1)]


def test_columns_in_strides_and_in_32_bits_are_taken() -> None:
    square = np.arange(12).reshape(6, 2)
    layer = build([square[:, 0], square[:, 1].astype(np.int32)], (0,), 1)
    assert content(layer) == [((2 * i, 2 * i + 1), (0,), 1) for i in range(6)]


@pytest.mark.parametrize("columns", [[np.zeros(2), np.zeros(2, np.int64)], [np.zeros(2, np.int64), np.zeros(3, np.int64)], []])
def test_columns_of_other_kinds_or_lengths_are_refused(columns: list[np.ndarray]) -> None:
    with pytest.raises(InternalError):
        build(columns, (0,), 1)


# ---------------------------------------------------------------------------------------------------------------- looking up


def check_seek(layer: Layer, keys: list[tuple[int, ...]], count: int) -> None:
    rows = list(zip(*(c.tolist() for c in layer.columns()), strict=True))
    starts, ends = layer.seek(np.stack(columns_of(keys, count)) if count else np.empty((0, len(keys)), np.int64))
    for key, start, end in zip(keys, starts.tolist(), ends.tolist(), strict=True):
        matching = [i for i, row in enumerate(rows) if row[:count] == key]
        assert list(range(start, end)) == matching, key


@examples(2 * EXAMPLES)
@given(st.data())
def test_rows_are_found_by_prefix_in_any_order(data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.tuples(VALUES, VALUES, VALUES), min_size=1, max_size=40))
    layer = build(columns_of(rows, 3), (0,), 1)
    assert layer is not None
    count = data.draw(st.integers(0, 3))
    others = st.tuples(VALUES, VALUES, VALUES)
    keys = data.draw(st.lists(st.one_of(st.sampled_from(rows), others).map(lambda row: row[:count]), min_size=1, max_size=20))
    check_seek(layer, keys, count)
    check_seek(layer, sorted(keys), count)


@pytest.mark.parametrize("gap", [1, 2**20])
def test_2_13_dense_first_columns_have_an_index(gap: int) -> None:
    rng = np.random.default_rng(0)
    data = [rng.integers(-40, 40, 600) * gap, rng.integers(0, 9, 600)]
    layer = build(data, (0,), 1)
    assert layer is not None and layer.indexed == (gap == 1)
    keys = [(x * gap, y) for x in range(-45, 45, 3) for y in (-1, 0, 8, 9)]
    check_seek(layer, keys, 2)
    check_seek(layer, sorted({key[:1] for key in keys}), 1)
    check_seek(layer, [(2**62, 0), (-(2**63), 0), (2**63 - 1, 3)], 2)


def test_the_index_says_where_each_value_begins() -> None:
    layer = build([np.repeat([3, 4, 6], 100), np.arange(300)], (0,), 1)
    assert layer is not None
    index = layer.index()
    assert index is not None and index.tolist() == [0, 100, 200, 200, 300]
