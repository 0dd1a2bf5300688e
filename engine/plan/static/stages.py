"""The stages of a scope, computed before its rules: temporaries and reductions (@1, @2, ...) and the paths that fill them.

Stages are in order: one reads what earlier ones fill."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Fold, Nested, Path, Reduction, Scope, Temporary
from dlog.engine.ir.rules import Kind, Program


@dataclass(slots=True)
class Stages:
    program: Program
    temporaries: list[Temporary] = field(default_factory=list)
    reductions: list[Reduction] = field(default_factory=list)
    stages: list[tuple[Path, ...]] = field(default_factory=list)
    folds: list[Fold] = field(default_factory=list)
    nested: list[Nested] = field(default_factory=list)
    prefilled: tuple[Temporary, ...] = ()
    temporary_count: int = 0

    def name(self) -> str:
        self.temporary_count += 1
        return f"@{self.temporary_count}"

    def scope(self) -> Scope:
        """A scope of the stages alone."""
        return Scope(
            (), (), (), tuple(self.temporaries), tuple(self.reductions), tuple(self.stages), (), (),
            folds=tuple(self.folds), nested=tuple(self.nested), prefilled=self.prefilled,
        )  # fmt: skip

    def temporary(self, name: str, kinds: Iterable[Kind], *filling: Path) -> None:
        """A temporary and the stage that fills it."""
        self.temporaries.append(Temporary(name, tuple(k.value for k in kinds)))
        self.stages.append(filling)

    def reduction(self, reduction: Reduction, *filling: Path) -> None:
        """A reduction and the stage that fills it."""
        self.reductions.append(reduction)
        self.stages.append(filling)

    def kinds(self, relation: str) -> tuple[Kind, ...]:
        """The kinds of the columns of a relation of the program, of a temporary or of a reduction."""
        if relation in self.program.relations:
            return self.program.relations[relation].kinds
        for reduction in self.reductions:
            if reduction.relation == relation:
                return reduction.columns[: len(reduction.keys) + 1]
        for fold in self.folds:
            if fold.relation == relation:
                return fold.columns
        own = (*self.temporaries, *self.prefilled)
        return next(tuple(map(Kind, t.kinds)) for t in own if t.relation == relation)
