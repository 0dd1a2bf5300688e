"""The arities of the relations that paths of a scope name."""

from __future__ import annotations

from collections.abc import Mapping

from dlog.engine.ir.nodes import Scope
from dlog.engine.ir.rules import Program, Relation


class Arities:
    """The arities of the program's relations, and in `own` of the planner's own ones, which come first."""

    def __init__(self, program: Program, scope: Scope) -> None:
        self._relations: Mapping[str, Relation] = program.relations
        self.own = {t.relation: len(t.kinds) for t in (*scope.temporaries, *scope.prefilled)}
        self.own |= {f.relation: len(f.columns) for f in scope.folds}
        self.own |= {r.relation: len(r.keys) + 1 for r in scope.reductions}

    def __contains__(self, relation: str) -> bool:
        return relation in self.own or relation in self._relations

    def __getitem__(self, relation: str) -> int:
        own = self.own.get(relation)
        return self._relations[relation].arity if own is None else own
