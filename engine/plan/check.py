"""check: the promises of a plan. A broken one is the planner's fault and stops the run before it computes anything wrong.

Every variable is bound once and before its use; columns and keys fit their relations; own relations are filled before they
are read; feedback is read at a time that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn, assert_never

from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Arrangement,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Path,
    Scan,
    Scope,
    SemiJoin,
    Step,
    UnpackRecord,
    View,
)
from dlog.engine.ir.rules import Program, Term
from dlog.engine.plan.arities import Arities
from dlog.engine.plan.joins.emit import binds_of, reads, sink_terms
from dlog.engine.plan.query import ids, mask_all
from dlog.grammar.diagnostics import InternalError


def check(scope: Scope, program: Program) -> None:
    """Raises `InternalError` if the scope breaks a promise."""
    Checker(scope, program).scope_paths()


class Checker:
    def __init__(self, scope: Scope, program: Program) -> None:
        self.scope = scope
        self.program = program
        self.arities = Arities(program, scope)
        self.variables = frozenset(scope.variables)
        self.readable: frozenset[str] = frozenset()
        self.text = ""

    def scope_paths(self) -> None:
        """All paths, in the order in which they fill what others read."""
        filled = {t.relation for t in self.scope.prefilled}
        for stage in self.scope.stages:
            self.readable = frozenset(filled)
            for path in stage:
                self.path(path)
            filled |= {p.sink.relation for p in stage}
            filled |= {fold.relation for fold in self.scope.folds if fold.matches in filled}
        self.readable = frozenset(filled)
        for path in (*self.scope.enter, *self.scope.loop):
            self.path(path)
        for nested in self.scope.nested:
            Checker(nested.scope, self.program).scope_paths()

    def require(self, promise: bool, what: str) -> None:
        if not promise:
            self.broken(what)

    def broken(self, what: str) -> NoReturn:
        raise InternalError("plan", f"{what}, in: {self.text}")

    def path(self, path: Path) -> None:
        self.text = self.scope.rules[path.rule]
        bound = 0
        if isinstance(path.seed, Scan):
            self.relation(path.seed.relation)
            self.columns(path.seed.relation, [c for c, _ in path.seed.binds])
            self.columns(path.seed.relation, path.seed.sorted_by)
            bound = self.bind(bound, [v for _, v in path.seed.binds], path)
        for step in path.steps:
            if reads(step) & ~bound:
                self.broken(f"{type(step).__name__} reads an unbound variable")
            self.step(step)
            if made := binds_of(step):
                bound = self.bind(bound, ids(made), path)
        self.sink(path.sink, bound)

    def bind(self, bound: int, variables: Iterable[int], path: Path) -> int:
        for v in variables:
            if v >= path.variables:
                self.broken(f"variable {v} is out of range")
            if bound >> v & 1:
                self.broken(f"variable {v} is bound twice")
            bound |= 1 << v
        return bound

    def relation(self, relation: str) -> None:
        if relation not in self.arities:
            self.broken(f"`{relation}` is no relation")
        if relation[:1] == "@" and relation not in self.readable:
            self.broken(f"{relation} is read before it is filled")

    def columns(self, relation: str, columns: Sequence[int]) -> None:
        if not columns:
            return
        if not 0 <= min(columns) <= max(columns) < self.arities[relation]:
            self.broken(f"`{relation}` has no such column")
        if len(set(columns)) != len(columns):
            self.broken(f"a column of `{relation}` occurs twice")

    def view(self, relation: str, view: View) -> None:
        if (view != "all") != (relation in self.variables):
            self.broken(f"`{relation}` is read at `{view}`")

    def lookup(self, arrangement: Arrangement, key: Sequence[Term], columns: Sequence[int]) -> None:
        self.relation(arrangement.relation)
        self.columns(arrangement.relation, (*arrangement.key, *columns))
        if len(key) != len(arrangement.key):
            self.broken(f"the key does not fit the arrangement of `{arrangement.relation}`")

    def step(self, step: Step) -> None:
        for relation, view in views_of(step):
            self.view(relation, view)
        match step:
            case HalfJoin(arrangement=arrangement, key=key, binds=binds):
                self.lookup(arrangement, key, [c for c, _ in binds])
            case Extend(proposers=proposers):
                self.require(len(proposers) > 1, "an extension has one proposer")
                for p in proposers:
                    self.lookup(p.arrangement, p.key, [p.column])
                    whole = len(p.key) + 1 == self.arities[p.arrangement.relation]
                    self.require(whole and p.arrangement.order == (p.column,), "a proposer is not the whole row")
            case SemiJoin(relation=relation, args=args) | AntiJoin(relation=relation, args=args):
                self.relation(relation)
                self.require(len(args) == self.arities[relation], f"`{relation}` has another arity")
            case LookUp(relation=relation, key=key):
                self.relation(relation)
                self.require(len(key) + 1 == self.arities[relation], f"the key does not fit {relation}")
            case Filter() | Map() | UnpackRecord() | Generate():
                pass
            case _:
                assert_never(step)

    def sink(self, sink: Insert | Accumulate, bound: int) -> None:
        self.require(not mask_all(sink_terms(sink)) & ~bound, "the sink reads an unbound variable")
        if sink.relation not in self.arities:
            self.broken(f"`{sink.relation}` is no relation")
        wide = len(sink.terms) if isinstance(sink, Insert) else len(sink.key) + 1
        if wide != self.arities[sink.relation]:
            self.broken(f"`{sink.relation}` has another arity")


def views_of(step: Step) -> tuple[tuple[str, View], ...]:
    """The relations that a step reads, each with the view at which it does."""
    match step:
        case HalfJoin(arrangement=arrangement, view=view):
            return ((arrangement.relation, view),)
        case Extend(proposers=proposers):
            return tuple((p.arrangement.relation, p.view) for p in proposers)
        case SemiJoin(relation=relation, view=view) | AntiJoin(relation=relation, view=view):
            return ((relation, view),)
        case LookUp(relation=relation, view=view):
            return ((relation, view),)
        case Filter() | Map() | UnpackRecord() | Generate():
            return ()
        case _:
            assert_never(step)
