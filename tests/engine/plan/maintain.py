"""A program maintained over rounds by its plans: `Maintained` takes changes of inputs and tells the rows of any round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dlog.engine.ir.nodes import Extend, HalfJoin, LookUp, Path, Scope, SemiJoin, Step
from dlog.engine.ir.rules import Program
from dlog.engine.plan.incremental.build import NotIncremental, plan_of_rounds
from dlog.engine.plan.statistics import Declared, Statistics
from tests.engine.plan.interpret_rounds import History, Interpreter, Row, add, rows_at, value

Change = Mapping[str, Iterable[tuple[Row, int]]]


class Maintained:
    """Raises `NotIncremental` if a stratum has no plan over rounds."""

    def __init__(self, program: Program, statistics: Statistics | None = None, scopes: Sequence[Scope] | None = None) -> None:
        self.program = program
        self.data: dict[str, History] = {name: {} for name in program.relations}
        made = scopes or [plan_of_rounds(s, program, statistics or Declared()) for s in program.strata]
        self.scopes = [Interpreter(scope, self.data) for scope in made]
        self.defined = {r: s for s in self.scopes for r in s.scope.relations}
        self.round = 0
        self.facts = {r: [(tuple(value(t, {}) for t in row), 1) for row in rows] for r, rows in program.facts.items()}

    def commit(self, *batch: Change) -> None:
        """Several rounds at once, given by the changes of each."""
        rounds = list(range(self.round + 1, self.round + 1 + len(batch)))
        for round, changes in zip(rounds, batch, strict=True):
            for relation, updates in (*changes.items(), *(self.facts.items() if round == 1 else ())):
                self._give(relation, dict.fromkeys(updates), round)
        for scope in self.scopes:
            scope.run(rounds)
        self.round = rounds[-1]

    def _give(self, relation: str, updates: Iterable[tuple[Row, int]], round: int) -> None:
        if relation in self.defined:
            self.defined[relation].give(relation, updates, round)
            return
        for row, diff in updates:
            add(self.data[relation], row, (round, 0), diff)

    def rows(self, relation: str, round: int | None = None) -> set[Row]:
        return rows_at(self.data[relation], (self.round if round is None else round, 0))

    def derivations(self, relation: str, row: Row) -> int:
        """How often the row is derived."""
        return sum(d for _, d in self.defined[relation].derived[relation].get(row, ()))


def all_at_neu(scope: Scope) -> Scope:
    """The scope without the nudge: every path sees all changes of the round."""

    def step(x: Step) -> Step:
        match x:
            case Extend(proposers=proposers):
                return replace(x, proposers=tuple(replace(p, view="neu") for p in proposers))
            case HalfJoin() | SemiJoin() | LookUp():
                return replace(x, view="neu")
            case _:
                return x

    def paths(some: tuple[Path, ...]) -> tuple[Path, ...]:
        return tuple(replace(p, steps=tuple(map(step, p.steps))) for p in some)

    stages = tuple(paths(s) for s in scope.stages)
    return replace(scope, stages=stages, enter=paths(scope.enter), loop=paths(scope.loop))


def incremental(program: Program, statistics: Any = None) -> Maintained | None:
    """The program maintained, or None if a stratum is not incremental."""
    try:
        return Maintained(program, statistics)
    except NotIncremental:
        return None
