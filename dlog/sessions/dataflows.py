"""Relations of a session as collections of dataflows.

Operators are added to the last dataflow of a session until it does rounds; then another one begins beside it. Each does the
session's rounds, in the order in which they were made, as long as anybody holds a part of it, or it acts by itself.
"""

from __future__ import annotations

from typing import Any, cast
from weakref import ref

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataflow import Collection, Dataflow, Input
from dlog.dataflow.collection import Arrangement
from dlog.dataflow.kinds import Kind
from dlog.dataflow.scopes import Advice, DataflowGraph, Scope
from dlog.dataflow.traces import InspectBatches
from dlog.engine.ir import rules
from dlog.engine.operators.sinks import Inspect
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.sessions.follow.changes import Changes
from dlog.sessions.follow.subscriptions import Subscription

_KINDS: dict[rules.Kind, Kind] = {
    rules.Kind.NUMBER: int,
    rules.Kind.UNSIGNED: int,
    rules.Kind.FLOAT: float,
    rules.Kind.SYMBOL: str,
    rules.Kind.RECORD: object,
}

_ADVICE = Advice(
    begun="`session.collection(name)` begins another dataflow, with the rows that are there now",
    two="make both without a commit between, or import what was arranged before: `session.import_(arrangement).collection`",
)


class SessionDataflow:
    """A dataflow whose rounds are those of a session, and whose inputs follow relations. Once it has begun, it is kept by the
    graph of what was made of it, which it has no hold of itself."""

    def __init__(self, beside: Dataflow | None) -> None:
        self.flow = Dataflow(beside=beside)
        self.subscriptions: list[Subscription] = []
        self._followed: list[tuple[str, Input]] = []
        self._imported: list[Arrangement] = []
        """Of dataflows that go on for this one."""
        inner = self.flow.scope.graph
        self._graph: DataflowGraph | None = DataflowGraph(inner.scheduler, inner.objects, inner.undefined, _ADVICE, self)
        self._scope: Scope | None = Scope(self._graph, self.flow.scope.inner)
        self._made: dict[str, Input] = {}

    @property
    def begun(self) -> bool:
        """Whether it has done rounds: nothing can be added any more."""
        return self.flow.round > 0

    @property
    def acts(self) -> bool:
        """Whether something comes of it that is not read: functions are called, relations fed."""
        return any(isinstance(operator, Inspect | InspectBatches) for operator in self.flow.operators)

    def collection(self, relation: str) -> Collection | None:
        """The collection of a relation that is followed."""
        return self._made.get(relation)

    def add(self, relation: rules.Relation, subscription: Subscription) -> Collection:
        """Follows a relation."""
        followed = self.flow.input(**{name: _KINDS[type.kind] for name, type in relation.attributes})
        self._followed.append((relation.name, followed))
        self.subscriptions.append(subscription)
        self._made[relation.name] = made = Input(self._root, followed.schema, followed.source)
        return made

    def import_(self, arrangement: Arrangement) -> Arrangement:
        """An arrangement of a dataflow made before; one of this dataflow is as it is."""
        if not isinstance(arrangement, Arrangement):
            raise bad_argument("arrangement", "one of a collection: `collection.arrange_by_key(...)`", arrangement)
        given, inner = arrangement.collection, self.flow.scope.graph
        given.graph.scheduler.check()
        if given.graph.objects is not inner.objects or given.scope.parent is not None:
            note = "import what is made of collections of the same session, and not within a loop"
            raise DlogError(Diagnostic("bad-import", "the arrangement cannot be imported here", notes=(note,)))
        if given.graph.scheduler is inner.scheduler:
            return arrangement
        found = self.flow.import_(arrangement)
        self._imported.append(arrangement)
        collection = Collection(self._root, found.collection.schema, found.collection.terms, found.collection.definition)
        return collection.arranged_as(found.keys, found.arranged.source)

    @property
    def _root(self) -> Scope:
        assert self._scope is not None
        return self._scope

    def let_go(self) -> None:
        """Has no hold any more of what was made of it: nothing can be added."""
        self._graph = self._scope = None
        self._made = {}

    def follow(self, session_round: int) -> None:
        """Does the rounds that the session has done. What has failed once is read no longer, for it misses a round."""
        try:
            self._follow(session_round)
        except BaseException:
            self.flow.scope.graph.scheduler.failed = True
            raise

    def _follow(self, session_round: int) -> None:
        for (relation, made), subscription in zip(self._followed, self.subscriptions, strict=True):
            for round, delivered in subscription.fetch():
                changes = cast("Changes", delivered)
                values = zip(made.columns, changes.to_numpy().values(), strict=False)
                columns = {name: _whole(relation, name, column) for name, column in values}
                made.update(columns, changes.diffs, at=max(round, self.flow.round))
        if session_round >= self.flow.round:
            self.flow.advance_to(session_round + 1)


class _Kept:
    """A dataflow that is advanced as long as somebody holds something of it: `held` does where it is open, or acts."""

    def __init__(self, held: SessionDataflow) -> None:
        self.held: SessionDataflow | None = held
        self.found = ref(held)
        self.over = False
        """Whether it is not to be advanced any more."""
        self._subscriptions = held.subscriptions

    def follow(self, session_round: int) -> None:
        """Does the rounds that the session has done, unless nobody would know."""
        self._begin()
        dataflow = self.found()
        try:
            if dataflow is not None:
                dataflow.follow(session_round)
        except BaseException:
            self._end()
            raise
        if dataflow is None:
            self._end()

    def _begin(self) -> None:
        if self.held is not None and not self.held.begun:
            self.held.let_go()
            self.held = self.held if self.held.acts else None

    def _end(self) -> None:
        self.over, self.held = True, None
        for subscription in self._subscriptions:
            subscription.close()


class SessionDataflows:
    """All dataflows of a session, in the order in which they were made."""

    def __init__(self) -> None:
        self._kept: list[_Kept] = []

    def open(self) -> SessionDataflow:
        """The dataflow to which operators can be added. Those that there are share the numbers of their texts."""
        there = [found for kept in self._kept if (found := kept.found()) is not None]
        if there and not there[-1].begun:
            return there[-1]
        made = SessionDataflow(there[-1].flow if there else None)
        self._kept.append(_Kept(made))
        return made

    def follow(self, session_round: int) -> None:
        """Has all of them do the rounds that the session has done. One that fails ends, and the others go on; what the first
        has raised comes out."""
        raised: list[BaseException] = []
        for kept in list(self._kept):
            try:
                kept.follow(session_round)
            except BaseException as error:
                raised.append(error)
        self._kept = [kept for kept in self._kept if not kept.over]
        if raised:
            raise raised[0]


def _whole(relation: str, name: str, column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A column of a relation as a collection has it: numbers are of 64 bits with a sign, also dates. Raises DlogError where one
    without a sign is more."""
    if column.dtype.kind == "M":
        return column.view(np.int64)
    if column.dtype == np.uint64 and len(beyond := column[column >= 2**63]):
        message = f"column `{name}` of `{relation}` has {beyond[0]}, and integers of collections are less than 2^63"
        note = f"have a rule leave such rows out, `{name} < 9223372036854775808`, or make texts of them, `to_string({name})`"
        raise DlogError(Diagnostic("bad-rows", message, notes=(note,)))
    return column
