"""Collections as what fills relations of a session."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.dataflow import Collection
from dlog.dataflow.base import check_collection
from dlog.dataflow.kinds import Kind, decode
from dlog.engine.ir import rules
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.sinks import Inspect
from dlog.engine.values.domains import to_numpy
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions.feeds import Fed, Feeds
from dlog.sessions.ingest.staged_changes import Diff

_TAKEN: dict[rules.Kind, tuple[Kind, ...]] = {
    rules.Kind.NUMBER: (int, bool, object),
    rules.Kind.UNSIGNED: (int, bool, object),
    rules.Kind.FLOAT: (float, int, bool, object),
    rules.Kind.SYMBOL: (str, object),
    rules.Kind.RECORD: (object,),
}
"""Kinds of columns that fill those of relations; values of kind `object` are looked at when they come."""


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


def _dated(type: rules.Type, column: Any) -> Any:
    """The values of a column that is of dates or times, which a collection has as numbers."""
    return to_numpy(type, column) if type.is_calendar else column
