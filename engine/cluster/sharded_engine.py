"""A program maintained by workers elsewhere, for a session here: `dlog.engine.rounds_engine.RoundsEngine` over commands.

The driver keeps no rows. It cuts the changes of a commit by the homes of their relations, sends every worker its share, and
asks for changes and rows when someone wants them. Strings and records have the driver's ids here and each worker's own there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from threading import RLock
from typing import Any, Protocol

import numpy as np

from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.reused_inputs import ReusedInput, reused_inputs, same_types
from dlog.engine.cluster.session_worker import ECHO, SentColumns, definitions_for, types_of
from dlog.engine.ir.rules import Kind, Program
from dlog.engine.kernels.static.partition import group_by_owner
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.decomposable import DecomposablePlan, Feed, Maintainer, decomposable_plan, exchanged
from dlog.engine.plan.exchange.numbering import counts
from dlog.engine.plan.exchange.pivots import PivotPlan, pivot_plan
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT
from dlog.engine.rounds_engine import Frames, PlainRounds, RoundsEngine
from dlog.engine.runtime.incremental.engines.choice import is_incremental
from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.differences import words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import Updates, joined, prepended
from dlog.grammar.diagnostics import DlogError, InternalError

_numbers = count(1)


class ResidentWorkers(Protocol):
    """The workers. `ask` has each of them run one command of its `SessionWorker`, all at once, and returns what they say: a
    value, or the DlogError they raised. Raises DlogError when they are gone."""

    size: int
    dictionary: Dictionary | None
    """What the driver and the workers have told each other; of the engine that was made last."""

    def ask(self, commands: Mapping[int, tuple[str, tuple[Any, ...]]]) -> dict[int, Any]: ...


class ShardedRounds(PlainRounds):
    """See `RoundsEngine`. Reading waits while a commit runs."""

    def __init__(self, program: Program, resident_workers: ResidentWorkers, old: Any = None) -> None:
        self.program = program
        self.resident_workers = resident_workers
        self._lock = RLock()
        self.symbols: SymbolTable = SymbolTable() if old is None else old.symbols
        self.records: RecordTables = RecordTables(Memory(None)) if old is None else old.records
        self.round = 0 if old is None else old.round
        self.plan = self._placed(program, resident_workers.size)
        self.number = next(_numbers)
        self._facts_pending = True
        self._reused_inputs = self._reused_inputs_of(old)
        self._last_changes: dict[str, Updates] = {}
        self._committed = False
        self.dictionary = self._dictionary()
        self._everyone("open", lambda rank: (self.number, self._programs(rank), self.round))

    def _reused_inputs_of(self, old: Any) -> tuple[ReusedInput, ...]:
        if not isinstance(old, ShardedRounds) or old.resident_workers is not self.resident_workers:
            return ()
        return reused_inputs(old.number, old.program, old.plan, self.program, self.plan)

    def _placed(self, program: Program, workers: int) -> DecomposablePlan:
        return assignment(program, workers)

    def _dictionary(self) -> Dictionary:
        """The resident group's, as long as engines share their symbols."""
        known = self.resident_workers.dictionary
        if known is None or known.symbols is not self.symbols:
            known = self.resident_workers.dictionary = Dictionary(self.symbols, self.records, {}, self.resident_workers.size)
            self._everyone("meet", lambda rank: ())
        known.types = {**known.types, **self.program.types}
        return known

    def _programs(self, rank: int) -> dict[Maintainer, Program | PivotPlan]:
        programs: dict[Maintainer, Program | PivotPlan] = {}
        if self.plan.together is not None:
            programs["together"] = self.plan.together
        if self.plan.shared is not None:
            programs["shared"] = self.plan.shared
        if self.plan.alone is not None and rank == 0:
            programs["alone"] = self.plan.alone
        return programs

    def _everyone(self, command: str, args: Any) -> dict[int, Any]:
        replies = self.resident_workers.ask({rank: (command, args(rank)) for rank in range(self.resident_workers.size)})
        for reply in replies.values():
            if isinstance(reply, DlogError | InternalError):
                raise reply
        return replies

    # -------------------------------------------------------------------------------------------------------------- commit

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        """See `RoundsEngine`. `frames` are rows that workers get without the driver, all in the last round."""
        with self._lock:
            received = bool(frames) and self._received(frames or {})
            given = {name: u for name, u in inputs.items() if u.rows}
            last = max((int(u.rounds[-1]) for u in given.values()), default=self.round + 1)
            if self._facts_pending:
                given = self._with_facts(given)
            messages = self._messages(given)
            self._note_rounds(messages, given, last)
            for rank, message in enumerate(messages):
                message.received = received
                message.reused_inputs = tuple(
                    reused_input for reused_input in self._reused_inputs if rank == 0 or reused_input.feed.place != ROOT
                )
            replies = self.resident_workers.ask(
                {rank: ("commit", (self.number, messages[rank], last)) for rank in range(self.resident_workers.size)}
            )
            failed = [r for r in replies.values() if isinstance(r, DlogError | InternalError)]
            if failed and self.plan.together is not None:
                raise next((r for r in failed if not _is_echo(r)), failed[0])
            if failed:
                done = [rank for rank, reply in replies.items() if not isinstance(reply, DlogError | InternalError)]
                torn = self.resident_workers.ask(dict.fromkeys(done, ("undo", (self.number, self.round))))
                raise next((r for r in torn.values() if isinstance(r, DlogError)), failed[0])
            self.round, self._facts_pending, self._committed, self._reused_inputs = last, False, True, ()
            self._last_changes = {}
            return last

    def _received(self, frames: Frames) -> bool:
        """Has the workers take in rows that come on another way than through here."""
        raise InternalError("rounds", "these workers get all their rows from the driver")

    def _with_facts(self, given: dict[str, Updates]) -> dict[str, Updates]:
        """The first commit brings the facts of the program's text."""
        encoder = FactEncoder(self.symbols, self.records)
        return prepended(encoder.updates(self.program, self.program.facts, 1, self.round + 1), given)

    def _messages(self, given: Mapping[str, Updates]) -> list[SentColumns]:
        messages = [SentColumns({}) for _ in range(self.resident_workers.size)]
        for name, updates in given.items():
            for feed in self.plan.feeds[name]:
                for rank, share in self._shares(name, feed, updates):
                    if share.rows:
                        messages[rank].updates[feed.part, feed.name] = share
        for rank, message in enumerate(messages):
            self._define(rank, message, given)
        return messages

    def _note_rounds(self, messages: Sequence[SentColumns], given: Mapping[str, Updates], last: int) -> None:
        """Tells all workers of all rounds, where they go through them together."""
        if self.plan.together is not None:
            rounds = np.unique(np.concatenate([u.rounds for u in given.values()] or [np.array([last])]))
            for message in messages:
                message.rounds = rounds

    def _define(self, rank: int, message: SentColumns, given: Mapping[str, Updates]) -> None:
        """One set of definitions for all updates of a message."""
        types: list[ColumnType] = []
        columns: list[np.ndarray] = []
        for name in given:
            for feed in self.plan.feeds[name]:
                if (feed.part, feed.name) in message.updates:
                    types += types_of(self.program.relations[name])
                    columns += message.updates[feed.part, feed.name].columns
        message.definitions = definitions_for(
            self.dictionary, rank, tuple(types), Updates(tuple(columns), np.empty(0), np.empty(0))
        )

    def _shares(self, name: str, feed: Feed, updates: Updates) -> list[tuple[int, Updates]]:
        """Each worker's share of the changes."""
        size = self.resident_workers.size
        updates = self._narrow(name, updates)
        if feed.place == ROOT:
            return [(0, updates)]
        if feed.place == EVERYWHERE or size == 1:
            return [(rank, updates) for rank in range(size)]
        types = types_of(self.program.relations[name])
        owners = self.dictionary.owners(types[feed.place], updates.columns[feed.place], size)
        starts, order = np.zeros(size + 1, np.int64), np.empty(updates.rows, np.int64)
        group_by_owner(owners, starts, order)
        return [(rank, _take(updates, order[starts[rank] : starts[rank + 1]])) for rank in range(size)]

    def _narrow(self, name: str, updates: Updates) -> Updates:
        """Ids as int32, as dictionaries have them."""
        pairs = zip(types_of(self.program.relations[name]), updates.columns, strict=True)
        columns = (c.astype(np.int32) if t.kind in (Kind.SYMBOL, Kind.RECORD) else c for t, c in pairs)
        return Updates(tuple(columns), updates.diffs, updates.rounds)

    @property
    def inherited(self) -> frozenset[str]:
        """The inputs that each worker has its share of already."""
        return frozenset(reused_input.relation for reused_input in self._reused_inputs)

    # -------------------------------------------------------------------------------------------------------------- reading

    def since(self, old: RoundsEngine, relation: str) -> Updates | None:
        """Found by the workers, where they have the same share of the relation as before."""
        if (
            not isinstance(old, ShardedRounds)
            or old.resident_workers is not self.resident_workers
            or not same_types(old.program, self.program, relation)
        ):
            return None
        before, now = old.plan.answers[relation], self.plan.answers[relation]
        if before.place != now.place and max(before.place, now.place) >= 0:
            return None
        found = self._collect("between", relation, now, old.number, before.part, before.name)
        return Updates(found.columns, found.diffs, np.full(found.rows, self.round))

    def changes(self, relation: str) -> Updates:
        with self._lock:
            if relation not in self._last_changes:
                known = self._committed
                changes = _by_round(self._collect("changes", relation)) if known else self._nothing(relation)
                self._last_changes[relation] = changes
            return self._last_changes[relation]

    def table(self, relation: str) -> Table:
        return self._table(relation, self._collect("rows_of", relation))

    def external(self, relation: str) -> Table:
        if not self.plan.feeds[relation]:
            return self._table(relation, self._nothing(relation))
        best = max(self.plan.feeds[relation], key=lambda f: (f.place >= 0, f.part == "alone"))
        return self._table(relation, self._collect("rows_of", relation, best, True))

    def _table(self, relation: str, found: Updates) -> Table:
        kinds = self.program.relations[relation].kinds
        return Table(kinds, tuple(map(from_words, map(words, found.columns), kinds)), found.rows)

    def rows(self, relation: str) -> int:
        with self._lock:
            feed = self.plan.answers[relation]
            replies = self._ask_for("count", feed, (feed.part, feed.name))
            return sum(replies.values())

    def holders(self, relation: str) -> list[int]:
        """The workers that have the relation's rows between them, each row once."""
        place = self.plan.answers[relation].place
        return list(range(self.resident_workers.size)) if place >= 0 else [0]

    def _ask_for(self, command: str, feed: Feed, args: tuple[Any, ...]) -> dict[int, Any]:
        ranks = range(self.resident_workers.size) if feed.place >= 0 else [0]
        replies = self.resident_workers.ask(dict.fromkeys(ranks, (command, (self.number, *args))))
        for reply in replies.values():
            if isinstance(reply, DlogError | InternalError):
                raise reply
        return replies

    def _collect(self, command: str, relation: str, feed: Feed | None = None, *args: Any) -> Updates:
        """Updates of all workers that have some, with the driver's ids."""
        with self._lock:
            feed = feed or self.plan.answers[relation]
            types = types_of(self.program.relations[relation])
            parts = []
            for rank, message in self._ask_for(command, feed, (feed.part, feed.name, *args)).items():
                if message.definitions is not None:
                    self.dictionary.learn(rank, message.definitions)
                (found,) = message.updates.values()
                columns = (words(self.dictionary.translate(rank, t, c)) for t, c in zip(types, found.columns, strict=True))
                parts.append(Updates(tuple(columns), found.diffs, found.rounds))
            return joined(parts)

    def _nothing(self, relation: str) -> Updates:
        none = np.empty(0, np.int64)
        return Updates(tuple(none for _ in self.program.relations[relation].attributes), none, none)

    def ranks(self, relation: str) -> None:
        return None

    def explain(self) -> str:
        texts = self._everyone("explain", lambda rank: (self.number,))[0]
        titles = {
            "shared": f"each of {self.resident_workers.size} workers, on its share",
            "alone": "the first worker, alone",
            "together": f"{self.resident_workers.size} workers together, each on its share; derived rows go to their owners",
        }
        return "\n".join(f"{titles[part]}:\n{text}" for part, text in texts.items())

    def close(self) -> None:
        with self._lock, suppress(DlogError):  # where the workers are gone, so is what they had
            self._everyone("close", lambda rank: (self.number,))


def assignment(program: Program, workers: int) -> DecomposablePlan:
    """The assignment of strata to workers: all locally where that is possible, else all workers together, else what is left
    over is one worker's."""
    plan = decomposable_plan(program, workers)
    alone = counts(program)  # sums within recursion are in one place, and so is what decides which rows are kept
    if workers > 1 and not alone and plan.alone is not None and any(s.rules for s in plan.alone.strata):
        found = pivot_plan(program)
        if found is not None and is_incremental(found.program):
            return exchanged(program, found)
    return plan


def _is_echo(error: Exception) -> bool:
    return isinstance(error, DlogError) and error.diagnostics[0].code == ECHO


def _take(updates: Updates, places: np.ndarray) -> Updates:
    return Updates(tuple(c[places] for c in updates.columns), updates.diffs[places], updates.rounds[places])


def _by_round(updates: Updates) -> Updates:
    return _take(updates, np.argsort(updates.rounds, kind="stable"))
