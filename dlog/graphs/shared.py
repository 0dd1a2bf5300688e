"""Sessions that answers of one live graph share: the edges, and the indexes that rules ask of them, are kept once.

Answers that read edges alike are relations of one program, which grows by the rules of a question when it is asked and shrinks
when its answer is closed. Relations of a question have names of their own, but for `edge` and `vertex`, which are the graph's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dlog.engine.values.differences import difference, words
from dlog.grammar import syntax
from dlog.graphs.numbered import Form, Numbered
from dlog.graphs.questions import Rules
from dlog.graphs.running import Columns, Running, as_table

if TYPE_CHECKING:
    from dlog.graphs.changing import Edited

GRAPH = frozenset({"edge", "vertex"})
"""The relations that questions have in common."""

Reading: TypeAlias = tuple[Form, str | None, bool]
"""How questions read edges: see `Rules`."""
Items: TypeAlias = tuple[syntax.Item, ...]


class Sharing:
    """The sessions of a live graph: one for each way of reading its edges."""

    def __init__(self, running: Running) -> None:
        self.running = running
        self._sessions: dict[Reading, Shared] = {}
        self._question_count = 0

    def ask(self, rules: Rules, graph: Numbered) -> SharedAnswer | None:
        """The answer to a question; None where its rules cannot be maintained: they would keep others from being so."""
        text = self.running.maintained(rules.program)
        if text is None:
            return None
        self._question_count += 1
        names = {name: f"{name}_{self._question_count}" for item in text.items for name in _declared(item) if name not in GRAPH}
        items = tuple(renamed(item, names) for item in text.items if not _is_output(item))
        facts = {names[name]: rows for name, rows in rules.facts.items()}
        reading = (rules.form, rules.weight, rules.weight is not None and rules.floats)
        shared = self._sessions.get(reading)
        if shared is None:
            given = {**rules.graph_relations(graph), **facts}
            shared = self._sessions[reading] = Shared(self.running.session_on(_written(items), given), "vertex" in given)
        else:
            shared.grow(items, facts, graph)
        answer = SharedAnswer(self, shared, rules, names[rules.answer_relation])
        shared.answers[answer] = tuple(names.values())
        return answer

    def drop(self, answer: SharedAnswer, shared: Shared) -> None:
        """An answer is not wanted any more."""
        relations = shared.answers.pop(answer, None)
        if relations is None or not self._has(shared):
            return
        if not shared.answers:
            self.forget(shared)
            shared.session.close()
            return
        shared.hold_changes()
        shared.session.drop_relation(*relations)

    def forget(self, shared: Shared) -> None:
        """No further question is answered by a session."""
        self._sessions = {reading: other for reading, other in self._sessions.items() if other is not shared}

    def close(self) -> None:
        """Ends all answers at once."""
        for shared in self._sessions.values():
            shared.session.close()
        self._sessions = {}

    def _has(self, shared: Shared) -> bool:
        return any(other is shared for other in self._sessions.values())


class Shared:
    """One session, the answers in it with their relations, and up to which round of the graph it has gone since it was made."""

    def __init__(self, session: Any, has_vertices: bool) -> None:
        self.session = session
        self.answers: dict[SharedAnswer, tuple[str, ...]] = {}
        self._has_vertices = has_vertices
        self._round = 0

    def grow(self, items: Items, facts: Mapping[str, Columns], graph: Numbered) -> None:
        """First come the relations of a question that take rows, with these, then its rules: all is derived at once."""
        self.hold_changes()
        given = dict(facts)
        if not self._has_vertices and any("vertex" in _declared(item) for item in items):
            given["vertex"] = graph.vertex()
        if given:
            self.session.add_rules(_written([item for item in items if _is_about(item, given.keys())]))
            for name, rows in given.items():
                self.session.insert(name, as_table(rows))
            self.session.commit()
            self._has_vertices = self._has_vertices or "vertex" in given
        self.session.add_rules(_written([item for item in items if not _is_about(item, GRAPH | facts.keys())]))

    def hold_changes(self) -> None:
        """Called before the program changes: has answers keep the changes of the graph's last commit."""
        for answer in self.answers:
            answer.hold_changes()

    def advance(self, removed: Columns, added: Columns, vertices: np.ndarray, round: int) -> None:
        """Goes on to a round of the graph, if it has not yet."""
        if self._round == round:
            return
        if len(removed[0]):
            self.session.remove("edge", as_table(removed))
        if len(added[0]):
            self.session.insert("edge", as_table(added))
        if self._has_vertices and len(vertices):
            self.session.insert("vertex", as_table((vertices,)))
        self.session.commit()
        self._round = round


class SharedAnswer:
    """A relation of a shared session. Where that cannot go on, since the rules of any answer fail, each has one of its own."""

    maintained = True

    def __init__(self, sharing: Sharing, shared: Shared, rules: Rules, wanted: str) -> None:
        self._sharing = sharing
        self._shared = shared
        self._session = shared.session
        self._rules = rules
        self._answer_relation = wanted
        self._alone = False
        self._is_new = True
        """Whether the graph has not changed since the question."""
        self._changes: Columns | None = None
        """What the graph's last commit changed, where the session has gone on from there."""

    def rows(self) -> Columns:
        return tuple(self._session[self._answer_relation].to_numpy().values())

    def changes(self) -> Columns:
        if self._is_new:
            rows = self.rows()
            return (*rows, np.ones(len(rows[0]), np.int64))
        if self._changes is not None:
            return self._changes
        return tuple(list(self._session.changes(self._answer_relation).to_numpy().values())[:-1])

    def hold_changes(self) -> None:
        """Keeps what the last commit changed."""
        if not self._is_new and self._changes is None:
            self._changes = self.changes()

    def prepared(self, edited: Edited) -> tuple[Columns, Columns]:
        return self._rules.edge(edited.removed), self._rules.edge(edited.added)

    def advance(self, changes: tuple[Columns, Columns], vertices: np.ndarray, live: Any) -> None:
        before = None
        try:
            self._shared.advance(*changes, vertices, live.round)
        except BaseException as error:
            self._sharing.forget(self._shared)
            if self._alone or not isinstance(error, Exception):
                raise
            before = self.rows()
            self._separate(live.numbered)
        self._is_new, self._changes = False, None if before is None else changed(before, self.rows())

    def _separate(self, graph: Numbered) -> None:
        """Begins anew with a session of its own."""
        session = self._sharing.running.session(self._rules.program, self._rules.relations(graph))
        self.close()
        self._shared, self._session = Shared(session, self._rules.vertices), session
        self._answer_relation, self._alone = self._rules.answer_relation, True

    def close(self) -> None:
        if self._alone:
            self._session.close()
        else:
            self._sharing.drop(self, self._shared)


def changed(before: Columns, now: Columns) -> Columns:
    """The rows that came and those that went, then their diffs."""
    old, new = (tuple(words(column) for column in rows) for rows in (before, now))
    columns, diffs = difference(old, len(before[0]), new, len(now[0]))
    return (*(column.view(like.dtype) for column, like in zip(columns, now, strict=True)), np.asarray(diffs))


# ------------------------------------------------------------------------------------------------------------ programs


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A part of a syntax tree with other names for these relations."""
    match node:
        case syntax.Atom(name=name, args=args):
            return replace(node, name=names.get(name, name), args=renamed(args, names))
        case syntax.RelationDecl(names=own):
            return replace(node, names=tuple(names.get(name, name) for name in own))
        case syntax.Directive(relations=own):
            return replace(node, relations=tuple(names.get(name, name) for name in own))
        case tuple():
            return tuple(renamed(part, names) for part in node)
        case _ if is_dataclass(node) and not isinstance(node, type):
            parts = {f.name: getattr(node, f.name) for f in fields(node)}
            return replace(node, **{name: renamed(part, names) for name, part in parts.items()})
        case _:
            return node


def _written(items: Sequence[syntax.Item]) -> str:
    from dlog.grammar.unparse import format_program

    return format_program(syntax.Program(tuple(items))) + "\n"


def _declared(item: syntax.Item) -> tuple[str, ...]:
    return item.names if isinstance(item, syntax.RelationDecl) else ()


def _is_about(item: syntax.Item, names: Set[str]) -> bool:
    """Whether an item declares one of the relations, or says where its rows come from."""
    own = item.relations if isinstance(item, syntax.Directive) else _declared(item)
    return not names.isdisjoint(own)


def _is_output(item: syntax.Item) -> bool:
    return isinstance(item, syntax.Directive) and item.kind != "input"
