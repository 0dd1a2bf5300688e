"""Views over rounds (plan/incremental/views): an engine keeps what they are views of, and this one shows them, which are made
when they are read.

A filter that keeps few rows and is read again and again would have all others looked at each time: its rows are kept from one
time to the next, with what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Constant, Program, Relation
from dlog.engine.plan.incremental.views import View, explain_views
from dlog.engine.rounds_engine import Frames, Image, PlainRounds, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.engines import paired
from dlog.engine.runtime.incremental.engines.view_rows import seen_rows, seen_table, seen_updates
from dlog.engine.runtime.incremental.readable import TOUCHED_SETS
from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.values.differences import Columns, apply_changes, difference, words
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table, from_words
from dlog.engine.values.updates import Updates, joined
from dlog.grammar.diagnostics import DlogError

MIN_SOURCE_SHARE = 8
"""Rows of what a filter is of, in the end, for each of its own from which on those are kept that were read: trades memory
against reading."""
MAX_COMMITS_UNREAD = 32
"""Commits after which rows that nobody reads any more are not kept."""
MAX_CHANGES_KEPT = 10_000
"""Changes of a commit up to which they are kept until the next one: trades memory against making them for each who asks."""


@dataclass(frozen=True, slots=True)
class _CachedView:
    """The rows of a view as of a round, and its changes since, by commit, up to the round `upto`: `unread` commits."""

    table: Table
    upto: int
    later: tuple[Updates, ...] = ()
    unread: int = 0


class Viewed(PlainRounds):
    """See `engine.rounds_engine`. `inner` maintains the program without the views; `old` is what this engine goes on from."""

    def __init__(
        self, program: Program, views: Mapping[str, View], inner: RoundsEngine, old: RoundsEngine | StartingPoint | None = None
    ) -> None:
        self.program = program
        self.inner = inner
        self.views = views
        self._before = old.views if isinstance(old, Viewed) else {}
        self._start = self._previous = inner.round
        """The round before the first commit, which is of one round where it takes anything over; and before the last one."""
        self._cached: dict[str, _CachedView] = {}
        """By view; another thread may read while this is replaced."""
        self._views_of: dict[str, list[str]] = {name: [] for name in views}
        """What views are of, and views: each with the views of it."""
        for name, view in views.items():
            self._views_of.setdefault(view.source, []).append(name)
        self._base: dict[str, str] = {}
        """The relation with rows that each view is of in the end."""
        for name, view in views.items():
            self._base[name] = self._base.get(view.source, view.source)
        self._new: frozenset[str] | None = None
        places = {name: number for number, name in enumerate(program.relations)}
        self._with_views = lru_cache(TOUCHED_SETS)(partial(_with_views, self._views_of, places))
        self._changes: dict[str, tuple[int, Updates]] = {}
        """What was asked for of the last commit's changes, and the round that it ended with."""
        self._words: dict[Constant, int] = {}

    @property
    def symbols(self) -> SymbolTable:
        return self.inner.symbols

    @property
    def records(self) -> Any:
        return self.inner.records

    @property
    def round(self) -> int:
        return self.inner.round

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        if self.round == self._start:
            self._encode_all()
        for name in tuple(self._cached):
            self._catch_up(name)
        self._changes, self._previous = {}, self.round
        return self.inner.commit(inputs, frames)

    # ------------------------------------------------------------------------------------------------------------- reading

    def table(self, relation: str) -> Table:
        way: list[str] = []
        name, round = relation, self.round
        while (view := self.views.get(name)) is not None:
            kept = self._kept_now(name)
            if kept is not None:
                found = kept.table
                break
            way.append(name)
            name = view.source
        else:
            found = self.inner.table(name)
        for name in reversed(way):
            found = seen_table(self.views[name], found, self.program.relations[name].kinds, self._word)
            self._keep(name, found, round)
        return found

    def _keep(self, relation: str, table: Table, round: int) -> None:
        """Keeps the rows of a filter that has few of them, which were read in a round."""
        if not self.views[relation].is_filter or not self._start < round == self.round:
            return
        if table.rows * MIN_SOURCE_SHARE <= self.inner.rows(self._base[relation]):
            self._cached[relation] = _CachedView(table, round)

    def rows(self, relation: str) -> int:
        while (view := self.views.get(relation)) is not None:
            if view.is_filter:
                return self.table(relation).rows
            relation = view.source
        return self.inner.rows(relation)

    def external(self, relation: str) -> Table:
        if relation not in self.views:
            return self.inner.external(relation)
        kinds = self.program.relations[relation].kinds
        return Table(kinds, tuple(from_words(np.empty(0, np.int64), kind) for kind in kinds), 0)

    def ranks(self, relation: str) -> np.ndarray | None:
        return np.zeros(self.rows(relation), np.int32) if relation in self.views else self.inner.ranks(relation)

    @property
    def touched(self) -> Iterable[str]:
        return self._with_views((*self.inner.touched, *self._new_views()))

    def changes(self, relation: str) -> Updates:
        round, known = self.round, self._changes
        found = known.get(relation)
        if found is not None and found[0] == round:
            return found[1]
        way: list[str] = []
        name, new = relation, self._new_views()
        while name in self.views and name not in new and (name not in known or known[name][0] != round):
            way.append(name)
            name = self.views[name].source
        found = known.get(name)
        if found is not None and found[0] == round:
            updates = found[1]
        else:
            updates = self._all(name) if name in new else self.inner.changes(name)
            self._keep_changes(name, round, updates)
        for name in reversed(way):
            updates = seen_updates(self.views[name], updates, self._word)
            self._keep_changes(name, round, updates)
        return updates

    def journal(self) -> int | None:
        return None if self._new_views() else self.inner.journal()

    def take_journal(self) -> dict[str, Updates]:
        found = self.inner.take_journal()
        todo = [*found]
        for source in todo:
            for name in self._views_of.get(source, ()):
                found[name] = seen_updates(self.views[name], found[source], self._word)
                todo.append(name)
        return found

    def _keep_changes(self, relation: str, round: int, updates: Updates) -> None:
        if updates.rows <= MAX_CHANGES_KEPT:
            self._changes[relation] = round, updates

    def _all(self, relation: str) -> Updates:
        """All rows as changes of the last round."""
        table = self.table(relation)
        return insertions(tuple(map(words, table.columns)), table.rows, self.round)

    def _new_views(self) -> frozenset[str]:
        """The views that the engine before did not have, where the last commit was the first one and took over from that."""
        if self.round != self._start + 1:
            return frozenset()
        if self._new is None:
            self._new = frozenset(self.views.keys() - self.reused_relations if self.inner.reused_relations else ())
        return self._new

    def explain(self) -> str:
        return "\n".join([self.inner.explain(), *explain_views(self.views)])

    def close(self) -> None:
        self._cached = {}
        self.inner.close()

    # ---------------------------------------------------------------------------------------------------------- rows read

    def _catch_up(self, relation: str) -> _CachedView | None:
        """What is kept of a view that was read, with the changes of the last commit; None where that is not known, or nobody
        has read it for long."""
        kept, round = self._cached.get(relation), self.round
        if kept is None or kept.upto == round:
            return kept
        found = self._caught_up(kept, relation, round) if kept.unread < MAX_COMMITS_UNREAD else None
        if found is None:
            self._cached.pop(relation, None)
        else:
            self._cached[relation] = found
        return found

    def _caught_up(self, kept: _CachedView, relation: str, round: int) -> _CachedView | None:
        """None where other rows are there than were before the last commit, or too many to be kept."""
        try:
            changes = self.changes(relation)
        except DlogError:
            return None  # another commit runs, or failed
        if kept.upto != self._previous or round != self.round:
            return None
        most = kept.table.rows + sum(updates.rows for updates in (*kept.later, changes))
        if most * MIN_SOURCE_SHARE > self.inner.rows(self._base[relation]) + MIN_SOURCE_SHARE:
            return None
        return _CachedView(kept.table, round, (*kept.later, changes) if changes.rows else kept.later, kept.unread + 1)

    def _kept_now(self, relation: str) -> _CachedView | None:
        """The rows of a view as of now, if they are kept."""
        kept = self._catch_up(relation)
        if kept is None or not kept.unread:
            return kept
        if not kept.later:
            self._cached[relation] = found = _CachedView(kept.table, kept.upto)
            return found
        changes = joined(kept.later)
        columns, rows = apply_changes(tuple(map(words, kept.table.columns)), kept.table.rows, changes.columns, changes.diffs)
        kinds = self.program.relations[relation].kinds
        table = Table(kinds, tuple(from_words(c, kind) for c, kind in zip(columns, kinds, strict=True)), rows)
        self._cached[relation] = found = _CachedView(table, kept.upto)
        return found

    # ----------------------------------------------------------------------------------------------------------- constants

    def _encode_all(self) -> None:
        """Enters the strings of views before a state notes which strings there are."""
        for view in self.views.values():
            compared = [side for test in view.tests for side in (test.left, test.right)]
            for constant in (*view.columns, *(same for _, same in view.equal), *compared):
                if isinstance(constant, Constant):
                    self._word(constant)

    def _word(self, constant: Constant) -> int:
        found = self._words.get(constant)
        if found is None:
            found = self._words[constant] = FactEncoder(self.symbols, self.records).word(constant)
        return found

    # ---------------------------------------------------------------------------------------------------------- succession

    @property
    def inherited(self) -> frozenset[str]:
        return self.inner.inherited

    @property
    def reused_relations(self) -> frozenset[str]:
        found = set(self.inner.reused_relations)
        for name, view in self.views.items():
            if view.source in found and self._before.get(name) == view:
                found.add(name)
        return frozenset(found)

    def since(self, old: RoundsEngine, relation: str) -> Updates | None:
        """As of `Replaceable`. A view of the old engine is to be read by what its source was: that may be this engine's now."""
        view = self._before.get(relation)
        if view is None or not isinstance(old, Viewed):
            return None if relation in self.views else self.inner.since(stored(old), relation)
        before = old.rows_before(relation, self)
        if before is None:
            return None
        now = self.table(relation)
        columns, diffs = difference(*before, tuple(words(column) for column in now.columns), now.rows)
        return Updates(columns, diffs, np.full(len(diffs), self.round, np.int64))

    def rows_before(self, relation: str, successor: Viewed) -> tuple[Columns, int] | None:
        """The rows of a relation before the first commit of a successor that has taken over what it is a view of; None where it
        has not."""
        way: list[View] = []
        while (view := self.views.get(relation)) is not None:
            way.append(view)
            relation = view.source
        if relation not in successor.inner.reused_relations:
            return None
        table, changes = successor.inner.table(relation), successor.inner.changes(relation)
        backwards = tuple(column[::-1] for column in changes.columns)
        found = apply_changes(tuple(words(c) for c in table.columns), table.rows, backwards, -changes.diffs[::-1])
        for view in reversed(way):
            found = seen_rows(view, *found, self._word)
        return found

    def take_back(self, successor: RoundsEngine) -> None:
        self.inner.take_back(stored(successor))

    def fitting(self, relation: Relation, rows: Any) -> Any | None:
        return self.inner.fitting(relation, rows)

    def image(self) -> Image | None:
        return self.inner.image()

    def image_bytes(self) -> int | None:
        return self.inner.image_bytes()

    def copied_image(self, most: int) -> Image | None:
        return self.inner.copied_image(most)


def _with_views(views_of: Mapping[str, list[str]], places: Mapping[str, int], names: tuple[str, ...]) -> tuple[str, ...]:
    """Relations and the views of them, in order."""
    found = [*names]
    for name in found:
        found += views_of.get(name, ())
    return tuple(sorted(places.keys() & found, key=places.__getitem__))


def stored(engine: RoundsEngine) -> RoundsEngine:
    """The engine that keeps rows, and perhaps shows classes by their pairs."""
    return engine.inner if isinstance(engine, Viewed) else engine


def keeper_of(engine: RoundsEngine) -> RoundsEngine:
    """The engine that keeps rows and classes."""
    return paired.inner_of(stored(engine))


def origin_of(old: RoundsEngine | StartingPoint | None) -> RoundsEngine | StartingPoint | None:
    """What an engine that keeps rows goes on from."""
    return old.inner if isinstance(old, Viewed) else old
