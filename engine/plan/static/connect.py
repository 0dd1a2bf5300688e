"""connect: a lattice whose values pass unchanged between neighbours, both ways, is one value per connected component.

    cc(x, l) :- node(x), l = min v : { ... ; cc(y, v), edge(x, y) ; cc(y, v), edge(y, x) }.

At the fixed point every key of a component has the component's best value, whatever the order in which values travel. So an
executor may unite the ends of edges (union-find: Tarjan, 1975) instead of following values along them: each edge is looked at
once, and nothing is indexed. The loop stays in the plan for executors that cannot.
"""

from __future__ import annotations

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Connection, HalfJoin, Insert, Path, Scan, Scope, SemiJoin
from dlog.engine.ir.rules import Lattice, Variable


@dataclass(frozen=True, slots=True)
class _Hop:
    """A value goes from the key in column `source` of `relation` to that in column `target`, if `where` has it."""

    relation: str
    source: int
    target: int
    where: frozenset[tuple[str, int]]


def connection(scope: Scope) -> Connection | None:
    """The connection that the loop of the scope computes, if it is the best value of each component; None for every other
    loop."""
    if len(scope.variables) != 1 or len(scope.lattices) != 1 or not scope.loop:
        return None
    (lattice,) = scope.lattices
    hops = {_hop(path, lattice) for path in scope.loop}
    wheres = {hop.where for hop in hops if hop is not None}
    if None in hops or len(wheres) != 1:
        return None
    ways = {(hop.relation, hop.source, hop.target) for hop in hops if hop is not None}
    if any((relation, target, source) not in ways for relation, source, target in ways):
        return None
    edges = tuple(sorted(way for way in ways if way[1] < way[2]))
    return Connection(lattice.relation, edges, tuple(sorted(next(iter(wheres)))))


def _hop(path: Path, lattice: Lattice) -> _Hop | None:
    """A path that only hands the value on: changes R(y, v); join E(y, x); if N(x) ...; insert R(x, v)."""
    value, key = lattice.column, 1 - lattice.column
    seed, sink = path.seed, path.sink
    joins = [step for step in path.steps if isinstance(step, HalfJoin)]
    if not isinstance(seed, Scan) or not isinstance(sink, Insert) or len(sink.terms) != 2 or len(joins) != 1:
        return None
    (join,) = joins
    carried = dict(seed.binds)
    bound = [(column, variable) for column, variable in join.binds if Variable(variable) == sink.terms[key]]
    if (
        seed.relation != sink.relation
        or carried.keys() != {0, 1}
        or carried[key] == carried[value]
        or sink.terms[value] != Variable(carried[value])
        or join.arrangement.relation == seed.relation
        or join.key != (Variable(carried[key]),)
        or len(bound) != 1
        or len(join.binds) != 1
    ):
        return None
    where = [_required_column(step, bound[0][1], seed.relation) for step in path.steps if step is not join]
    if None in where:
        return None
    return _Hop(join.arrangement.relation, join.arrangement.key[0], bound[0][0], frozenset(w for w in where if w is not None))


def _required_column(step: object, variable: int, feedback: str) -> tuple[str, int] | None:
    """The (relation, column) that must have the variable's value, if that is all that the step asks."""
    if not isinstance(step, SemiJoin) or step.relation == feedback:
        return None
    given = [(column, term) for column, term in enumerate(step.args) if term is not None]
    if len(given) != 1 or given[0][1] != Variable(variable):
        return None
    return step.relation, given[0][0]
