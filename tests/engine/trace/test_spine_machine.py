"""A spine under inserts, merge work, readers that come, advance and go, against the plain list of all updates."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from dlog.engine.operators.readings import Reading
from dlog.engine.times.frontier import Antichain
from dlog.engine.times.lattice import Time
from dlog.engine.trace import spine
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.cursor import Cursor, TimedUpdates
from dlog.engine.trace.handle import TraceHandle
from dlog.engine.trace.spine import Spine
from dlog.grammar.diagnostics import DlogError
from tests.engine.kernels.workbench import EXAMPLES, Row
from tests.engine.trace.model import Update, accumulated, batch_of, rows_of, summed, updates_of
from tests.examples import examples

VALUES = st.integers(0, 3)
ITERATIONS = 3
Changes = list[tuple[int, int, int, int, int]]
"""Two columns, rounds after the start of the batch, iteration, diff."""
change = st.tuples(VALUES, VALUES, st.integers(0, 1), st.integers(0, ITERATIONS - 1), st.sampled_from([1, 1, -1]))
changes = st.lists(change, max_size=8)


@dataclass(frozen=True, eq=False)
class Snapshot:
    """A cursor and how many updates there were when it was taken."""

    cursor: Cursor
    updates: int


class Traces(RuleBasedStateMachine):
    """Two coordinates, round and iteration, unless `depth` is 1; batches span one or two rounds."""

    handles = Bundle("handles")
    snapshots = Bundle("snapshots")

    @initialize(
        target=handles, depth=st.sampled_from([1, 2]), effort=st.sampled_from([0, 1, 2]), waiting=st.sampled_from([8, 24])
    )
    def start(self, depth: int, effort: int, waiting: int) -> object:
        self.limit, spine.WAITING_ROWS = spine.WAITING_ROWS, waiting
        self.spine = Spine(2, depth, effort)
        self.updates: list[Update] = []
        self.round, self.depth = 0, depth
        self.ends: dict[int, int] = {0: 0}  # how many updates there were when a batch ended
        return multiple(self.spine.handle())

    def at(self, round: int, iteration: int = 0) -> Time:
        return (round,) if self.depth == 1 else (round, iteration)

    def frontier(self, round: int, iteration: int = 0) -> Antichain:
        return Antichain((self.at(round, iteration),))

    # ------------------------------------------------------------------------------------------------------------- writing

    @rule(listed=changes, rounds=st.integers(1, 2))
    def insert(self, listed: Changes, rounds: int) -> None:
        made = [((x, y), self.at(self.round + min(r, rounds - 1), i), d) for x, y, r, i, d in listed]
        self.spine.insert(batch_of(made, 2, self.frontier(self.round), self.frontier(self.round + rounds)))
        self.updates += made
        self.round += rounds
        self.ends[self.round] = len(self.updates)

    @rule(count=st.integers(10, 60), seed=st.integers(0, 99))
    def insert_many(self, count: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        drawn = rng.integers(0, [6, 6, ITERATIONS, 2], (count, 4)).tolist()
        made = [((x, y), self.at(self.round, i), 2 * d - 1) for x, y, i, d in drawn]
        self.spine.insert(batch_of(made, 2, self.frontier(self.round), self.frontier(self.round + 1)))
        self.updates += made
        self.round += 1
        self.ends[self.round] = len(self.updates)

    @rule(fuel=st.sampled_from([1, 5, 100]))
    def exert(self, fuel: int) -> None:
        self.spine.exert(fuel)

    @rule()
    def settle(self) -> None:
        self.spine.settle()
        assert len(self.spine.batches) <= 1 or self.apart()

    def apart(self) -> list[Batch]:
        """Batches that some reader keeps apart."""
        wanted = [handle.apart for handle in self.spine.handles if handle.apart is not None]
        return [b for b in self.spine.batches if any(not b.description.upper.precedes(each) for each in wanted)]

    # ------------------------------------------------------------------------------------------------------------- readers

    @rule(target=handles)
    def new_handle(self) -> TraceHandle:
        return self.spine.handle()

    @rule(handle=handles, ahead=st.integers(0, 3), iteration=st.integers(0, 2), corner=st.booleans())
    def advance(self, handle: TraceHandle, ahead: int, iteration: int, corner: bool) -> None:
        first = handle.frontier.elements[0]
        frontier = Antichain.of([self.at(first[0] + ahead, iteration)])
        if corner and self.depth == 2:  # two incomparable elements
            frontier = Antichain.of([self.at(first[0] + ahead, iteration + 1), self.at(first[0] + ahead + 1, 0)])
        if handle.frontier.precedes(frontier):
            handle.set_logical_compaction(frontier)
        else:
            with pytest.raises(DlogError, match="no longer kept apart"):
                handle.set_logical_compaction(frontier)

    @rule(handle=handles, ahead=st.integers(-1, 3))
    def keep_apart(self, handle: TraceHandle, ahead: int) -> None:
        before = handle.apart
        round = max(0, (self.round - 2 if before is None else before.elements[0][0]) + ahead)
        if before is None or before.precedes(self.frontier(round)):
            handle.set_physical_compaction(self.frontier(round))
            assert handle.apart is not None and self.frontier(round).precedes(handle.apart)
        else:
            with pytest.raises(DlogError, match="no longer kept apart"):
                handle.set_physical_compaction(self.frontier(round))

    @rule(handle=handles, back=st.integers(-1, 5))
    def read_through(self, handle: TraceHandle, back: int) -> None:
        round = max(0, self.round - back)
        frontier = self.frontier(round)
        if round > self.round:
            with pytest.raises(DlogError, match="not complete yet"):
                handle.cursor_through(frontier)
            return
        kept = handle.apart is not None and handle.apart.precedes(frontier)
        try:
            cursor = handle.cursor_through(frontier)
        except DlogError as error:
            assert error.diagnostics[0].code == "batches-merged"
            assert not (kept and round in self.ends)
            return
        found = [u for b in cursor.batches for layer in b.layers for u in updates_of(TimedUpdates(*layer.updates()))]
        expected = [u for u in self.updates if u[1][0] < round]
        assert summed((row, (), d) for row, _, d in found) == summed((row, (), d) for row, _, d in expected)

    @rule(handle=consumes(handles))
    def drop(self, handle: TraceHandle) -> None:
        handle.drop()

    @rule(handle=handles, round=st.integers(0, 30), iteration=st.integers(0, 3))
    def read(self, handle: TraceHandle, round: int, iteration: int) -> None:
        time = self.at(min(round, self.round + 1), iteration)
        if handle.frontier.dominates(time) and time[0] < self.round:
            self.check_reads(handle.cursor(), time, self.updates)
        else:
            code = "time-incomplete" if handle.frontier.dominates(time) else "time-compacted"
            with pytest.raises(DlogError) as refused:
                handle.read_at(time)
            assert refused.value.diagnostics[0].code == code

    def check_reads(self, cursor: Cursor, time: Time, updates: list[Update]) -> None:
        expected = accumulated(updates, time)
        assert rows_of(cursor.read_at(time)) == expected
        layers = [layer for batch in cursor.batches for layer in batch.layers]
        keys = np.array([2, 9, 0])
        found = Reading(layers, 2, self.depth).lookup([keys], len(keys))
        assert (found.delta.columns[0] == keys[found.probes]).all()
        listed = updates_of(TimedUpdates(found.delta.columns, found.delta.times, found.delta.diffs))
        assert accumulated(listed, time) == {row: d for row, d in expected.items() if row[0] in (2, 0)}

    @staticmethod
    def told(updates: Iterable[Update], handle: TraceHandle) -> dict[tuple[Row, Time], int]:
        """What a reader can tell of updates: times that its frontier does not tell apart are one."""
        joins = ((row, [[*map(max, time, f)] for f in handle.frontier], diff) for row, time, diff in updates)
        return summed((row, tuple(map(min, *joined, joined[0])), diff) for row, joined, diff in joins)

    @rule(handle=handles, length=st.integers(0, 3), ahead=st.integers(0, 3))
    def changes_between(self, handle: TraceHandle, length: int, ahead: int) -> None:
        lower = handle.frontier.elements[-1][0] + ahead
        upper = lower + length
        if upper > self.round:
            return
        first, last = self.frontier(lower), self.frontier(upper)
        told_apart = lower == 0 or any(f[0] < lower and not any(f[1:]) for f in handle.frontier)
        if told_apart:
            found = handle.updates_between(first, last)
            expected = [u for u in self.updates if first.dominates(u[1]) and not last.dominates(u[1])]
            assert self.told(updates_of(found), handle) == self.told(expected, handle)
            assert [t for _, t, _ in updates_of(found)] == sorted(t for _, t, _ in updates_of(found))
        elif not any(all(t == 0 or f < t for f, t in zip(e, first.elements[0], strict=True)) for e in handle.frontier):
            with pytest.raises(DlogError, match="no longer told apart"):
                handle.updates_between(first, last)

    # ----------------------------------------------------------------------------------------------------------- snapshots

    @rule(target=snapshots, handle=handles)
    def take_cursor(self, handle: TraceHandle) -> Snapshot:
        return Snapshot(handle.cursor(), len(self.updates))

    @rule(snapshot=snapshots)
    def read_old_cursor(self, snapshot: Snapshot) -> None:
        cursor = snapshot.cursor
        last = cursor.upper.elements[0][0] - 1
        time = self.at(last, ITERATIONS)
        if last >= 0 and cursor.since.dominates(time):
            self.check_reads(cursor, time, self.updates[: snapshot.updates])

    # ---------------------------------------------------------------------------------------------------------- invariants

    @invariant()
    def batches_touch_and_are_few(self) -> None:
        if not hasattr(self, "spine"):
            return
        batches = self.spine.batches
        for earlier, later in itertools.pairwise(batches):
            touch = earlier.description.upper == later.description.lower
            assert touch or (later in self.apart() and earlier.description.upper.precedes(later.description.lower))
        assert len(batches) - len(self.apart()) <= 2 * (len(self.updates).bit_length() + 1)
        assert all(b.description.since.precedes(self.spine.since) for b in batches)


    def teardown(self) -> None:
        if hasattr(self, "limit"):
            spine.WAITING_ROWS = self.limit


Traces.TestCase.settings = examples(EXAMPLES, stateful_step_count=30)
TestTraces = Traces.TestCase
