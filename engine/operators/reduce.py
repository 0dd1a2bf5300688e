"""Reductions: a function of all rows with the same key, at every time at which it may change.

Times are partially ordered: the output for a key can change where none of its inputs does, at the join of two of their times.
So an operator that has something new for a key at some time reconsiders the key there, and at the joins of that time with all
times of the key's inputs and outputs. Those at the moment of work are *active*: as their iterations are the same, they are a
chain of rounds, along which the input is added up and the output compared with what it was. The others are noted until their
moment comes. A time that is considered in vain does no harm.

Outside of loops times are totally ordered: then what the output was is the function of what the input was, and no trace of
outputs is kept.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.kernels.trace.reducing import write_changes
from dlog.engine.operators.arrange import Arranged
from dlog.engine.operators.delta import Columns, Delta, Moment, repeated
from dlog.engine.operators.groups import Active, Logic, Outcome, Sums, changed_sums, group
from dlog.engine.operators.operator import Operator, joined
from dlog.engine.operators.readings import Matches, Trace, key_of
from dlog.engine.operators.scheduler import Scheduler
from dlog.engine.operators.scope import Scope
from dlog.engine.trace.layer import build
from dlog.engine.values.addresses import address_of


def reduction(scheduler: Scheduler, scope: Scope, source: Arranged, logic: Logic, outputs: int) -> Operator:
    """The operator for a scope: it emits the key columns and as many as `outputs` of the outcome."""
    return (Reduce if scope.depth > 1 else ReduceTotal)(scheduler, scope, source, logic, outputs)


class ReduceTotal(Operator):
    """A reduction at totally ordered times."""

    def __init__(self, scheduler: Scheduler, scope: Scope, source: Arranged, logic: Logic, outputs: int) -> None:
        super().__init__(scheduler, scope)
        self.source, self.keys, self.logic = source, source.keys, logic
        source.source.trace.slack = 1  # what was there before the batch is told from what it brings
        if isinstance(logic, Sums):
            source.source.summed = logic.components
        source.feed(self, 0)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        delta = joined(arrived[0])
        if delta is None:
            return
        heavy = self.source.source.table is None and self.source.source.trace.heavy
        if isinstance(self.logic, Sums) and not heavy:  # the others look whether a sum needs more than 64 bits
            self.emit(self._changed_sums(delta, self.logic))
            return
        active = Active.of_delta(delta, self.keys, before=True)
        groups, numbers = group(active, clipped(_look_up(self.source, active), active))
        outcome = self.logic(groups)
        rows = numbers[outcome.owners]
        made = at_moment(active.keys, changes(active, rows, outcome, after_first=True), moment)
        single = (rows[1:] > rows[:-1]).all()
        self.emit(made if single else made.consolidated())  # of one row each, no two are the same

    def _changed_sums(self, delta: Delta, logic: Sums) -> Delta:
        table = self.source.source.table
        if table is None:
            return changed_sums(delta, self.keys, self.source.now(), logic)
        one_round = self.rounds.high - self.rounds.low == 1
        return table.changed(delta if one_round else delta.in_order_of_rounds(), logic)


class Reduce(Operator):
    """A reduction at partially ordered times."""

    def __init__(self, scheduler: Scheduler, scope: Scope, source: Arranged, logic: Logic, outputs: int) -> None:
        super().__init__(scheduler, scope)
        self.source, self.keys, self.logic = source, source.keys, logic
        self.output = Trace(self.keys + outputs, scope.depth)
        self.pending_keys: dict[Moment, list[tuple[Columns, np.ndarray]]] = {}
        """Keys and rounds to look at, by moment."""
        source.feed(self, 0)

    @property
    def traces(self) -> Sequence[Trace]:
        return (self.output,)

    def run(self, moment: Moment, arrived: list[list[Delta]]) -> None:
        due = [(key_of(delta, self.keys), delta.rounds) for delta in arrived[0]] + self.pending_keys.pop(moment, [])
        if not due:
            return
        keys = tuple(np.concatenate(column) for column in zip(*(columns for columns, _ in due), strict=True))
        active = Active.of(keys, np.concatenate([rounds for _, rounds in due]))
        inputs = clipped(_look_up(self.source, active), active)
        outputs = clipped(_matches(self.output.reading().lookup(active.keys, active.count), self.keys), active)
        (inputs, input_later), (outputs, output_later) = _split(inputs, moment), _split(outputs, moment)
        there = np.concatenate([inputs.probes, outputs.probes])
        if len(there):
            active = active.also(there, np.concatenate([inputs.delta.rounds, outputs.delta.rounds]))
        self._note(active, moment, (input_later, output_later))
        groups, numbers = group(active, inputs)
        outcome = self.logic(groups)
        changed = _corrected(changes(active, numbers[outcome.owners], outcome), outputs)
        made = at_moment(active.keys, changed, moment).consolidated()
        if made.rows:
            self.output.insert(made, self.rounds, moment)
            self.emit(made)

    def _note(self, active: Active, moment: Moment, later: tuple[Matches, Matches]) -> None:
        """Notes the joins of the active times with the others of the keys."""
        probes = np.concatenate([part.probes for part in later])
        if not len(probes):
            return
        times = np.concatenate([part.delta.times for part in later], axis=1)
        layer = build((probes,), times, 1)
        assert layer is not None
        probes, times = layer.columns()[0], layer.times()
        counts = np.diff(active.starts)
        rows, rounds = repeated(active.starts[probes], counts[probes])
        met = np.maximum(times[1:, rows], np.array(moment, np.int64)[:, None])
        at = np.concatenate([np.maximum(times[:1, rows], active.rounds[rounds]), met])
        owners = probes[rows]
        for moment_there, part in Delta((owners,), at, np.ones(len(owners), np.int64)).by_moment():
            entry = tuple(key[part.columns[0]] for key in active.keys), part.rounds
            self.pending_keys.setdefault(moment_there, []).append(entry)
            self.scheduler.wake(self, moment_there)


# --------------------------------------------------------------------------------------------------------------- changes


class Changes:
    """Changes of outputs: of which key, the other columns, at which round."""

    __slots__ = ("columns", "diffs", "probes", "rounds")

    def __init__(self, probes: np.ndarray, columns: Columns, rounds: np.ndarray, diffs: np.ndarray) -> None:
        self.probes, self.columns, self.rounds, self.diffs = probes, columns, rounds, diffs


def changes(active: Active, numbers: np.ndarray, outcome: Outcome, after_first: bool = False) -> Changes:
    """Each row of an outcome comes at its active round and goes at the next one of its key, unless that has it too. `numbers`
    are the active rounds of the rows, in order. What comes at a key's first one is left out with `after_first`."""
    rows, width = len(numbers), len(outcome.columns)
    given = np.array((*outcome.columns, outcome.diffs, numbers), np.int64)
    found = np.empty((width + 3, 2 * rows), np.int64)
    at = address_of(given)
    places = at + 8 * rows * (width + 1), at, width, address_of(active.starts), address_of(active.owners)
    count = write_changes(rows, *places, address_of(active.rounds), int(after_first), address_of(found))
    *columns, diffs, probes, rounds = found[:, :count]
    return Changes(probes, tuple(columns), rounds, diffs)


def _corrected(wanted: Changes, there: Matches) -> Changes:
    """The changes that lead from what is there to what is wanted."""
    return Changes(
        np.concatenate([wanted.probes, there.probes]),
        tuple(np.concatenate(c) for c in zip(wanted.columns, there.delta.columns, strict=True)),
        np.concatenate([wanted.rounds, there.delta.rounds]),
        np.concatenate([wanted.diffs, -there.delta.diffs]),
    )


def at_moment(keys: Columns, changed: Changes, moment: Moment) -> Delta:
    times = changed.rounds[None, :]
    if moment:
        times = np.concatenate([times, np.repeat(np.array(moment, np.int64)[:, None], len(changed.rounds), axis=1)])
    return Delta((*(k[changed.probes] for k in keys), *changed.columns), times, changed.diffs)


# -------------------------------------------------------------------------------------------------------- what keys have


def _look_up(source: Arranged, active: Active) -> Matches:
    return _matches(source.now().lookup(active.keys, active.count), source.keys)


def _matches(found: Matches, keys: int) -> Matches:
    """Without the key columns, which the probes stand for."""
    return Matches(found.probes, found.delta.with_columns(found.delta.columns[keys:]))


def clipped(found: Matches, active: Active) -> Matches:
    """With all rounds before a key's first active one moved onto that."""
    times = found.delta.times.copy()
    np.maximum(times[0], active.first[found.probes], out=times[0])
    return Matches(found.probes, Delta(found.delta.columns, times, found.delta.diffs))


def _split(found: Matches, moment: Moment) -> tuple[Matches, Matches]:
    """The updates at or before a moment, and the others."""
    visible = np.asarray((found.delta.times[1:] <= np.array(moment, np.int64)[:, None]).all(axis=0))
    return (found, found.only(visible[:0].astype(np.int64))) if visible.all() else (found.only(visible), found.only(~visible))
