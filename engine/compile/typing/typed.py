"""Typed clauses: the scoped clause with a slot at every term. A slot is a question "which type?" that `typecheck` answers."""

from __future__ import annotations

from typing import TypeAlias

from dlog.dataclass import immutable
from dlog.engine.ir.rules import Kind
from dlog.grammar.source import Span
from dlog.grammar.syntax import Term


@immutable
class TypedTerm:
    """A term, its slot, and its arguments in the same form; of a call, whether it may give another value each time."""

    node: Term
    slot: int
    args: tuple[TypedTerm, ...] = ()
    stateful: bool = False


@immutable
class TypedAtom:
    relation: str
    args: tuple[TypedTerm, ...]
    negated: bool
    span: Span


@immutable
class TypedCompare:
    op: str
    left: TypedTerm
    right: TypedTerm
    span: Span


@immutable
class TypedFalse:
    span: Span


@immutable
class TypedAggregate:
    """`result` is the name of the variable it binds, with its slot; `own` are the names of its scope."""

    result: str
    slot: int
    op: str
    target: TypedTerm | None
    alternatives: tuple[tuple[TypedLiteral, ...], ...]
    own: frozenset[str]
    span: Span
    init: str | None = None


@immutable
class TypedGenerator:
    """`results = function(args)`; `slot` is that of its arguments' common type where they have one."""

    function: str
    args: tuple[TypedTerm, ...]
    results: tuple[TypedTerm, ...]
    slot: int
    span: Span


TypedLiteral: TypeAlias = TypedAtom | TypedCompare | TypedFalse | TypedGenerator | TypedAggregate


@immutable
class TypedClause:
    """`kinds[slot]` and, where the kind is RECORD, `records[slot]` (the record type's name) are the answers; `slots` has the
    slot of each variable."""

    head: TypedAtom
    body: tuple[TypedLiteral, ...]
    slots: dict[str, int]
    kinds: tuple[Kind, ...]
    records: tuple[str | None, ...]
    text: str
    span: Span
