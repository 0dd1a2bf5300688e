"""check_rounds: the promises of a plan over rounds, beyond those of every plan (see check).

Every reading is at a time; every path is seeded by changes; no step merges matches; imports come before variables.
"""

from __future__ import annotations

from dlog.engine.ir.nodes import (
    AntiJoin,
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
from dlog.engine.ir.rules import Program
from dlog.engine.plan.check import Checker


def check_rounds(scope: Scope, program: Program) -> None:
    """Raises `InternalError` if the scope breaks a promise."""
    checker = _RoundsChecker(scope, program)
    checker.scope_paths()
    for path in (*(p for stage in scope.stages for p in stage), *scope.enter):
        checker.entering(path)
    for path in scope.loop:
        checker.looping(path)


class _RoundsChecker(Checker):
    def __init__(self, scope: Scope, program: Program) -> None:
        super().__init__(scope, program)
        self._reduced = {r.relation for r in scope.reductions}
        self._read: dict[int, list[tuple[str, View]]] = {}
        """By the address of a path, what it reads."""
        self._reading: list[tuple[str, View]] = []
        """What the path at hand reads."""

    def path(self, path: Path) -> None:
        self._read[id(path)] = self._reading = []
        super().path(path)
        seed = path.seed
        if isinstance(seed, Scan):
            self.require(seed.changes, "a seed scans all rows")
            if seed.missing:
                value = self.arities[seed.relation] - 1
                self.require(self.reduced(seed.relation), "a default is given for what is no reduction")
                self.require(all(c != value for c, _ in seed.binds), "a missing group has no value")
        if isinstance(path.sink, Insert):
            self.require(path.sink.distinct, "derivations of rows are counted")
        self.require(path.advance == int(self._reads_variables(path)), "the iteration of the results is wrong")

    def reduced(self, relation: str) -> bool:
        return relation in self._reduced

    def view(self, relation: str, view: View) -> None:
        self._reading.append((relation, view))
        if view == "all":
            self.broken(f"`{relation}` is read at no time")

    def step(self, step: Step) -> None:
        super().step(step)
        match step:
            case SemiJoin(relation=relation, args=args) | AntiJoin(relation=relation, args=args):
                self.require(None not in args, f"`{relation}` is asked about with an argument open")
                self.require(relation not in self.variables, f"times of `{relation}` are lost")
            case LookUp(relation=relation):
                self.require(self.reduced(relation), f"`{relation}` is looked up but no reduction")
            case HalfJoin() | Extend() | Filter() | Map() | UnpackRecord() | Generate():
                pass

    def entering(self, path: Path) -> None:
        self.text = self.scope.rules[path.rule]
        self.require(self._seed(path) not in self.variables, "a path seeded by the scope's changes enters")
        for relation, view in self._views(path):
            if relation in self.variables and view != "alt":
                self.broken(f"`{relation}` comes after the seed")

    def looping(self, path: Path) -> None:
        self.text = self.scope.rules[path.rule]
        self.require(self._seed(path) in self.variables, "a path seeded by earlier relations loops")
        for relation, view in self._views(path):
            if relation not in self.variables and view != "neu":
                self.broken(f"`{relation}` comes before the seed")

    def _seed(self, path: Path) -> str | None:
        return path.seed.relation if isinstance(path.seed, Scan) else None

    def _views(self, path: Path) -> list[tuple[str, View]]:
        return self._read[id(path)]

    def _reads_variables(self, path: Path) -> bool:
        read = self._views(path) if self.variables else []
        return self._seed(path) in self.variables or any(r in self.variables for r, _ in read)
