"""Single behaviours of traces: compaction, levels, steps of merges, readers, memory."""

from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Sequence
from threading import Event, Thread

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.trace_structs import MergeHeader, MergeInput
from dlog.engine.operators.readings import Reading
from dlog.engine.times import columns as T
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time, less_equal
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.cursor import TimedUpdates
from dlog.engine.trace.description import Description
from dlog.engine.trace.merge import Merge
from dlog.engine.trace.pages import MIN_MAPPED_BYTES, Pages, allocate
from dlog.engine.trace.spine import Spine
from dlog.grammar.diagnostics import DlogError, InternalError
from tests.engine.kernels.workbench import JIT, MANY
from tests.engine.times.strategies import all_times, times
from tests.engine.trace.model import Update, batch_of, rows_of, updates_of

at = Antichain.at
FRANK, DAVID = 1, 2


def insert(spine: Spine, round: int, *updates: Update) -> None:
    spine.insert(batch_of(list(updates), spine.arity, at(round), at(round + 1)))


def grown(rounds: int, rows: int, effort: int = 2, span: int = 1 << 40) -> Spine:
    """A spine of random insertions, so many rows a round, that nobody reads in the past."""
    rng = np.random.default_rng(0)
    spine = Spine(2, 1, effort)
    handle = spine.handle()
    for round in range(rounds):
        columns = rng.integers(0, span, (2, rows))
        spine.insert(Batch.of(at(round), at(round + 1), list(columns), (round,), 1))
        handle.set_logical_compaction(at(round))
    return spine


# -------------------------------------------------------------------------------------------------------------- compaction


def test_0_3_changes_that_no_reader_tells_apart_vanish() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    for round in range(17):
        insert(spine, round)
    insert(spine, 17, ((FRANK,), (17,), 1))
    insert(spine, 18, ((DAVID,), (18,), 1))
    insert(spine, 19, ((FRANK,), (19,), -1))
    insert(spine, 20)
    assert rows_of(handle.read_at((18,))) == {(FRANK,): 1, (DAVID,): 1}
    handle.set_logical_compaction(at(20))
    spine.settle()
    assert spine.rows == 1
    assert rows_of(handle.read_at((20,))) == {(DAVID,): 1}
    with pytest.raises(DlogError, match=r"time \(18\) can no longer be read"):
        handle.read_at((18,))


def test_2_11_advancing_readers_alone_changes_no_batch() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((FRANK,), (0,), 1))
    insert(spine, 1, ((FRANK,), (1,), -1))
    before = spine.batches
    handle.set_logical_compaction(at(1))
    handle.read_at((1,))
    assert spine.batches == before


def test_the_slowest_reader_holds_history() -> None:
    spine = Spine(1, 1)
    slow, fast = spine.handle(), spine.handle()
    insert(spine, 0, ((FRANK,), (0,), 1))
    insert(spine, 1, ((FRANK,), (1,), -1))
    fast.set_logical_compaction(at(1))
    assert spine.since == at(0)
    spine.settle()
    assert rows_of(slow.read_at((0,))) == {(FRANK,): 1}
    slow.drop()
    assert spine.since == at(1)
    spine.settle()
    assert spine.rows == 0


def test_a_reader_cannot_start_in_the_past() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0)
    handle.set_logical_compaction(at(1))
    with pytest.raises(DlogError, match="no longer kept apart"):
        spine.handle(at(0))
    assert spine.handle().frontier == at(1)


def test_times_that_may_still_change_are_refused() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((FRANK,), (0,), 1))
    with pytest.raises(DlogError, match="not complete"):
        handle.read_at((1,))
    with pytest.raises(DlogError, match="not complete"):
        handle.updates_between(at(0), at(2))


def test_3_4_changes_are_refused_where_history_was_moved_onto_them() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((FRANK,), (0,), 1))
    insert(spine, 1, ((DAVID,), (1,), 1))
    handle.set_logical_compaction(at(1))
    with pytest.raises(DlogError, match="no longer told apart"):
        handle.updates_between(at(1), at(2))
    assert handle.updates_between(at(2), at(2)).rows == 0


def test_2_4_settled_rows_take_no_room_for_times_and_diffs() -> None:
    spine = grown(rounds=16, rows=MANY // 16, span=1 << 20)
    spine.settle()
    (batch,) = spine.batches
    assert all(layer.settled for layer in batch.layers)
    assert batch.nbytes == 8 * batch.rows


def test_a_row_that_comes_twice_is_one_row() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    spine.insert(batch_of([((FRANK,), (0,), 1), ((FRANK,), (1,), 1), ((DAVID,), (0,), 1)], 1, at(0), at(2)))
    handle.set_logical_compaction(at(1))
    assert rows_of(handle.read_at((1,))) == {(FRANK,): 2, (DAVID,): 1}
    insert(spine, 2, ((FRANK,), (2,), -1))
    handle.set_logical_compaction(at(2))
    spine.settle()
    assert spine.rows == 2
    assert rows_of(handle.read_at((2,))) == {(FRANK,): 1, (DAVID,): 1}


def test_a_held_round_keeps_the_rest_settled() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, *(((x,), (0,), 1) for x in range(100)))
    insert(spine, 1, ((5,), (1,), -1), ((500,), (1,), 1))
    spine.settle()
    (batch,) = spine.batches
    assert [(layer.rows, layer.settled) for layer in batch.layers] == [(100, True), (2, False)]
    assert rows_of(handle.read_at((1,))) == {(x,): 1 for x in [*range(100), 500] if x != 5}


@pytest.mark.skipif(not JIT, reason="many rows")
def test_an_index_is_given_up_where_few_rows_come_out() -> None:
    """All but a few rows of the later batch settle: the open rest is searched without an index over its whole range."""
    spine, rows = Spine(1, 1), 200_000
    handle = spine.handle()
    spine.insert(Batch.of(at(0), at(1), [np.arange(0, rows, 2)], (0,), 1))
    times = np.ones((1, rows // 2), np.int64)
    times[0, -50:] = 2
    spine.insert(Batch.of(at(1), at(3), [np.arange(1, rows, 2)], times, 1))
    handle.set_logical_compaction(at(1))
    spine.settle()
    settled, opened = spine.batches[0].layers
    assert (settled.rows, settled.indexed) == (rows - 50, True)
    assert (opened.rows, opened.indexed) == (50, False)
    keys = np.array([0, rows // 2, rows - 101, rows - 100, rows - 99, rows - 1, rows])
    found = Reading([settled, opened], 1, 1).lookup([keys], len(keys))
    assert found.probes.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.delta.rounds.tolist() == [0, 0, 0, 0, 2, 2]


def test_rows_that_are_there_twice_stay_open() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((1,), (0,), 1), ((2,), (0,), 1))
    insert(spine, 1, ((1,), (1,), 1))
    handle.set_logical_compaction(at(1))
    spine.settle()
    (batch,) = spine.batches
    assert [(layer.rows, layer.settled) for layer in batch.layers] == [(1, True), (1, False)]
    assert rows_of(handle.read_at((1,))) == {(1,): 2, (2,): 1}


def test_a_long_history_of_one_row_is_kept_and_then_compacted() -> None:
    spine = Spine(1, 2)
    handle = spine.handle()
    rng = np.random.default_rng(1)
    for round in range(40):
        made = [((7,), (round, int(i)), int(d)) for i, d in zip(rng.permutation(9), rng.choice([-1, 1], 9), strict=True)]
        spine.insert(batch_of(made, 1, at(round, 0), at(round + 1, 0)))
    spine.settle()
    assert spine.rows == 40 * 9
    handle.set_logical_compaction(at(39, 0))
    spine.settle()
    assert spine.rows <= 9
    (batch,) = spine.batches
    assert all(T.unpack(layer.times()) == sorted(T.unpack(layer.times())) for layer in batch.layers)


def test_without_columns_a_trace_counts() -> None:
    spine = Spine(0, 1)
    handle = spine.handle()
    for round in range(100):
        insert(spine, round, ((), (round,), 1 if round % 3 else -1))
    assert rows_of(handle.read_at((99,))) == {(): 66 - 34}
    assert rows_of(handle.read_at((1,))) == {}
    handle.set_logical_compaction(at(99))
    spine.settle()
    assert rows_of(handle.read_at((99,))) == {(): 32}


# ----------------------------------------------------------------------------------------------------- descriptions, levels


def test_2_15_batches_that_do_not_touch_are_not_merged() -> None:
    first, other = batch_of([((1,), (0,), 1)], 1, at(0), at(1)), batch_of([((1,), (2,), 1)], 1, at(2), at(3))
    with pytest.raises(InternalError, match="not contiguous"):
        Merge((first, other), at(0))
    spine = Spine(1, 1)
    spine.insert(first)
    with pytest.raises(InternalError, match="does not follow"):
        spine.insert(other)


def test_rounds_without_updates_make_no_batch() -> None:
    spine = Spine(1, 1)
    insert(spine, 0, ((1,), (0,), 1))
    for round in range(1, 50):
        insert(spine, round)
    insert(spine, 50, ((1,), (50,), 1))
    assert [b.description.lower for b in spine.batches][-1:] == [at(1)] or len(spine.batches) == 1
    spine.settle()
    assert spine.batches[0].description.upper == at(51)


def test_2_16_batches_of_later_iterations_are_skipped() -> None:
    """A batch of rounds 3 to 5 and iterations 4 to 6 says nothing to a reader at iterations 2 to 3."""
    description = Description(at(3, 4), at(5, 6), at(0, 0))
    assert not description.may_reach((9, 3)) and description.may_reach((9, 4))
    assert not description.may_lie_between(at(5, 6), at(9, 9)) and description.may_lie_between(at(0, 0), at(9, 9))


def test_reads_skip_batches_that_come_later() -> None:
    spine = Spine(1, 1, effort=2)
    handle = spine.handle()
    insert(spine, 0, *(((x,), (0,), 1) for x in range(100)))
    insert(spine, 1, ((1,), (1,), 1))
    cursor = handle.cursor()
    assert rows_of(cursor.read_at((0,)))[1,] == 1
    assert cursor.skipped == 1


@pytest.mark.parametrize("effort", [0, 1, 2, 4])
def test_2_7_there_are_few_batches(effort: int) -> None:
    most = 0
    for rounds in (100, 300):
        spine = grown(rounds, 8, effort)
        most = max(most, len(spine.batches))
        assert spine.rows == 8 * rounds
    assert most <= (8 * 300).bit_length() + 4


def test_2_12_no_insert_does_more_than_its_share_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fueled merging the work of one insert depends on the levels, not on the size of the trace; without, it does."""
    tallied = []
    original = Merge.work

    def tally(merge: Merge, fuel: int) -> bool:
        before = _progress(merge)
        done = original(merge, fuel)
        tallied.append(_progress(merge) - before)
        return done

    monkeypatch.setattr(Merge, "work", tally)
    most = {}
    for effort in (0, 2):
        spine = Spine(1, 1, effort)
        most[effort] = 0
        rng = np.random.default_rng(0)
        for round in range(512):
            tallied.clear()
            spine.insert(Batch.of(at(round), at(round + 1), [rng.integers(0, 1 << 40, 8)], (round,), 1))
            most[effort] = max(most[effort], sum(tallied))
    assert most[0] > 4096
    assert most[2] <= 8 * 8 * 2 * 13


def _progress(merge: Merge) -> int:
    """Updates that a merge has passed."""
    if merge._result is not None:
        return sum(batch.rows for batch in merge.batches)
    inputs = merge._control[MergeHeader.place.inputs :]
    return sum(int(inputs[MergeInput.place.size * s + MergeInput.place.row]) for s in range(len(merge._layers)))


def test_exerting_comes_to_an_end() -> None:
    spine = grown(rounds=50, rows=8)
    steps = 0
    while spine.exert(64):
        steps += 1
    assert 5 < steps < 1000
    assert len(spine.batches) == 1 and not spine.exert()


# ------------------------------------------------------------------------------------------------------- readers and memory


def test_2_8_a_cursor_outlives_merges_and_its_handle() -> None:
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((1,), (0,), 1))
    insert(spine, 1, ((2,), (1,), 1))
    cursor = handle.cursor()
    for round in range(2, 40):
        insert(spine, round, ((1,), (round,), 1 if round % 2 else -1), ((round,), (round,), 1))
    handle.set_logical_compaction(at(39))
    spine.settle()
    handle.drop()
    assert rows_of(cursor.read_at((0,))) == {(1,): 1}
    assert rows_of(cursor.read_at((1,))) == {(1,): 1, (2,): 1}
    with pytest.raises(InternalError, match="dropped"):
        handle.cursor()


@pytest.mark.slow
def test_batches_are_freed_with_their_last_cursor() -> None:
    spine = Spine(1, 1)
    insert(spine, 0, *(((x,), (0,), 1) for x in range(100)))
    with spine.handle() as handle:
        cursor = handle.cursor()
    memory = weakref.ref(spine.batches[0].layers[0].memory)
    insert(spine, 1, *(((x,), (1,), 1) for x in range(50, 150)))
    spine.settle()
    gc.collect()
    assert memory() is not None and cursor.rows == 100
    del cursor
    gc.collect()
    assert memory() is None


def test_large_blocks_go_back_in_steps() -> None:
    pages = Pages()
    array = allocate(MIN_MAPPED_BYTES // 2, pages)
    array[:] = 1
    kept = array[:10]
    del array
    assert not pages.free_blocks
    del kept
    assert [len(block) for block in pages.free_blocks] == [4 * MIN_MAPPED_BYTES]
    pages.give_back(2 * MIN_MAPPED_BYTES)
    assert len(pages.free_blocks) == 1
    pages.give_back(2 * MIN_MAPPED_BYTES)
    assert not pages.free_blocks


def test_large_blocks_go_at_once_with_their_trace() -> None:
    pages = Pages()
    array = allocate(MIN_MAPPED_BYTES, pages)
    del pages
    block = weakref.ref(array)
    del array
    assert block() is None


def test_readers_in_other_threads_see_whole_rounds() -> None:
    """Each round moves a token: at any time exactly one row is there."""
    spine = Spine(1, 1)
    handle = spine.handle()
    insert(spine, 0, ((0,), (0,), 1))
    wrong: list[object] = []
    stop, read = Event(), Event()

    def watch() -> None:
        while not stop.is_set():
            cursor = handle.cursor()
            last = cursor.upper.elements[0][0] - 1
            if rows_of(cursor.read_at((last,))) != {(last,): 1}:
                wrong.append(last)
            read.set()

    thread = Thread(target=watch)
    thread.start()
    for round in range(1, MANY // 40):
        insert(spine, round, ((round - 1,), (round,), -1), ((round,), (round,), 1))
    read.wait(30)
    stop.set()
    thread.join()
    assert not wrong


frontiers = st.lists(times(2), min_size=1, max_size=3)


@given(frontiers, times(2))
def test_2_9_merging_moves_times_to_where_no_reader_tells_the_difference(frontier: list[Time], time: Time) -> None:
    """The time that an update is moved to is at or before exactly those readers' times that the time itself is."""
    since, start = Antichain.of(frontier), Antichain.start(2)
    batch = batch_of([((1,), time, 2)], 1, start, at(20, 0))
    merged = Merge((batch, Batch(Description(at(20, 0), at(20, 0), start), ())), since).result
    (layer,) = merged.layers
    ((_, moved, _),) = updates_of(TimedUpdates(layer.columns(), layer.times(), layer.diffs()))
    for reader in all_times(2):
        if since.dominates(reader):
            assert less_equal(time, reader) == less_equal(moved, reader)


def test_small_batches_that_wait_stay_before_larger_ones() -> None:
    for sizes in itertools.product((3, 200, 300), repeat=4):
        spine = Spine(1, 1)
        for round, rows in enumerate(sizes):
            insert(spine, round, *(((x,), (round,), 1) for x in range(rows)))
        assert [b.description.lower for b in spine.batches][1:] == [b.description.upper for b in spine.batches][:-1]
        spine.settle()
        assert spine.rows == sum(sizes)


def test_few_small_batches_are_merged_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = Merge.__init__

    def note(merge: Merge, batches: Sequence[Batch], since: Antichain, pages: Pages | None = None) -> None:
        made.append(len(batches))
        original(merge, batches, since, pages)

    monkeypatch.setattr(Merge, "__init__", note)
    spine = Spine(1, 1)
    for round in range(8):
        insert(spine, round, ((round,), (round,), 1))
    assert made == [8] and len(spine.batches) == 1
