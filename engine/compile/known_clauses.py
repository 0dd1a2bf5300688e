"""Clauses whose names are right, as far as can be told without looking at their nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dlog.engine.compile.walk import parts, walk
from dlog.engine.ir.aggregates import is_user_aggregate
from dlog.engine.ir.rules import Relation
from dlog.grammar.alike_clauses import AlikeClause, ClauseShape
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.syntax import AggregateTerm, Atom, BranchTerm, Call, Cast, Clause


class KnownClauses:
    """Facts of literals, and clauses that differ from right ones in literals, names of variables, and names of relations, which
    are declared with as many columns."""

    def __init__(self, relations: Mapping[str, Relation], logs: Collection[str]) -> None:
        self._arities = {name: relation.arity for name, relation in relations.items() if name not in logs}
        self._atoms: dict[ClauseShape, list[tuple[int, int]] | None] = {}
        """By shape, where the names of atoms are, and how many arguments follow; None where there are other names."""

    def covers(self, clause: Clause) -> bool:
        if type(clause) is AlikeClause:
            named, atoms = clause.parts, self._atoms.get(clause.shape)
            return atoms is not None and all(self._arities.get(named[i]) == arity for i, arity in atoms)
        return type(clause) is LiteralFact and self._arities.get(clause.name) == len(clause.literals)

    def add(self, clause: AlikeClause) -> None:
        """Takes note of a clause that is right."""
        shape = clause.shape
        if shape not in self._atoms:
            nodes = [node for part in parts(shape.sample) for node in walk(part)]
            atoms = [(shape.leaves[node.name], len(node.args)) for node in nodes if isinstance(node, Atom)]
            self._atoms[shape] = None if any(_is_named(node, shape) for node in nodes) else atoms


def _is_named(node: object, shape: ClauseShape) -> bool:
    """Whether a node has a name that other clauses of the shape may have others for, and that is no relation's."""
    match node:
        case Call(name=name):
            return name in shape.leaves
        case AggregateTerm(op=op):
            return is_user_aggregate(op)
        case BranchTerm() | Cast():
            return True
        case _:
            return False
