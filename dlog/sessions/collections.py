"""Relations of a session as collections of a dataflow, and collections as what fills relations."""

from __future__ import annotations

from typing import Any, Protocol, cast

import numpy as np

from dlog.dataflow import Collection, Dataflow, Input
from dlog.dataflow.base import check_collection
from dlog.dataflow.kinds import Kind, decode
from dlog.engine.ir import rules
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.sinks import Inspect
from dlog.engine.values.domains import to_numpy
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions.feeds import Fed, Feeds
from dlog.sessions.follow.changes import Changes
from dlog.sessions.follow.subscriptions import Subscription
from dlog.sessions.ingest.staged_changes import Diff

_KINDS: dict[rules.Kind, Kind] = {
    rules.Kind.NUMBER: int,
    rules.Kind.UNSIGNED: int,
    rules.Kind.FLOAT: float,
    rules.Kind.SYMBOL: str,
    rules.Kind.RECORD: object,
}

_TAKEN: dict[rules.Kind, tuple[Kind, ...]] = {
    rules.Kind.NUMBER: (int, bool, object),
    rules.Kind.UNSIGNED: (int, bool, object),
    rules.Kind.FLOAT: (float, int, bool, object),
    rules.Kind.SYMBOL: (str, object),
    rules.Kind.RECORD: (object,),
}
"""Kinds of columns that fill those of relations; values of kind `object` are looked at when they come."""


class Followed(Protocol):
    """What a dataflow needs of its session."""

    @property
    def round(self) -> int: ...


class SessionDataflow:
    """A dataflow whose rounds are those of a session, and whose inputs follow relations."""

    def __init__(self, session: Followed) -> None:
        self.flow = Dataflow()
        self._session = session
        self._followed: dict[str, tuple[Input, Subscription]] = {}

    def collection(self, relation: str) -> Collection | None:
        """The collection of a relation that is followed."""
        return self._followed[relation][0] if relation in self._followed else None

    def add(self, relation: rules.Relation, subscription: Subscription) -> Collection:
        """Follows a relation."""
        kinds = {name: _KINDS[type.kind] for name, type in relation.attributes}
        made = self.flow.input(**kinds)
        self._followed[relation.name] = made, subscription
        return made

    def follow(self) -> None:
        """Does the rounds that the session has done. What has failed once is read no longer, for it misses a round."""
        try:
            self._follow()
        except BaseException:
            self.flow.scope.graph.scheduler.failed = True
            self._close()
            raise

    def _follow(self) -> None:
        for relation, (made, subscription) in self._followed.items():
            for round, delivered in subscription.fetch():
                changes = cast("Changes", delivered)
                values = zip(made.columns, changes.to_numpy().values(), strict=False)
                columns = {name: _whole(relation, name, column) for name, column in values}
                made.update(columns, changes.diffs, at=max(round, self.flow.round))
        if self._session.round >= self.flow.round:
            self.flow.advance_to(self._session.round + 1)

    def _close(self) -> None:
        """Follows no longer."""
        for _, subscription in self._followed.values():
            subscription.close()


def feed(session: Fed, feeds: Feeds, relation: rules.Relation, collection: Collection) -> None:
    """Has a relation's rows be those of a collection: its changes are staged as they come. Raises DlogError where one of the
    session's `feeds` is of it, unless what feeds it has failed for good, or its columns are not those of the collection."""
    check_collection("collection", collection)
    names = [name for name, _ in relation.attributes]
    if set(collection.columns) != set(names):
        message = f"the columns of `{relation.name}` are {', '.join(names)}, not {', '.join(collection.columns)}"
        raise DlogError(Diagnostic("bad-columns", message))
    schema, objects, types = collection.schema, collection.graph.objects, dict(relation.attributes)
    for name, type in types.items():
        if schema.kind(name) not in _TAKEN[type.kind]:
            given = schema.kind(name).__name__
            message = f"column `{name}` of `{relation.name}` is {type.name}, that of the collection {given}"
            raise DlogError(Diagnostic("unlike-columns", message))
    if relation.name in feeds.schedulers and not feeds.schedulers[relation.name].failed:
        note = f"feed it one collection: `session.feed({relation.name!r}, one.concat(other))`"
        raise DlogError(Diagnostic("fed-twice", f"a collection feeds `{relation.name}` already", notes=(note,)))

    def stage(delta: Delta) -> None:
        net = Delta(delta.columns, np.zeros_like(delta.times), delta.diffs).consolidated()
        for chosen, diff in _gone_and_come(net):
            if chosen.rows:
                kinds = zip(schema.names, schema.kinds, chosen.columns, strict=True)
                decoded = {name: np.array(decode(kind, words, objects)) for name, kind, words in kinds}
                dated = {name: _dated(types[name], column) for name, column in decoded.items()}
                feeds.stage(session, relation.name, dated, diff)

    collection.distinct()._operator(Inspect, stage)
    feeds.schedulers[relation.name] = collection.graph.scheduler


def _gone_and_come(net: Delta) -> tuple[tuple[Delta, Diff], tuple[Delta, Diff]]:
    return (net.only(net.diffs < 0), -1), (net.only(net.diffs > 0), 1)


def _whole(relation: str, name: str, column: np.ndarray) -> np.ndarray:
    """A column of a relation as a collection has it: numbers are of 64 bits with a sign, also dates. Raises DlogError where one
    without a sign is more."""
    if column.dtype.kind == "M":
        return column.view(np.int64)
    if column.dtype == np.uint64 and len(beyond := column[column >= 2**63]):
        message = f"column `{name}` of `{relation}` has {beyond[0]}, and integers of collections are less than 2^63"
        note = f"have a rule leave such rows out, `{name} < 9223372036854775808`, or make texts of them, `to_string({name})`"
        raise DlogError(Diagnostic("bad-rows", message, notes=(note,)))
    return column


def _dated(type: rules.Type, column: Any) -> Any:
    """The values of a column that is of dates or times, which a collection has as numbers."""
    return to_numpy(type, column) if type.is_calendar else column
