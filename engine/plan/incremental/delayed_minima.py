"""Minima over a recursion: small values enter first.

What is derived for a key counts from some iteration on, and any will do that is later than those of what it was derived from:
there is the same in the end. A small value that comes before a greater one makes that one vain; a greater one that came first
would go far, and all it leaves on its way is history to be kept.

Values that pass unchanged (labels of components) enter apart from each other, so that one has gone everywhere before the next
ones set out (the order of labels in differential dataflow's connected components). Values that grow on their way (distances)
are derived in their order, as in Dijkstra's algorithm; but those that grow by one and the same step are, without this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import Insert, Map, Path
from dlog.engine.ir.rules import Constant, Kind, Lattice, Program, Term, Variable
from dlog.engine.plan.query import mask


def with_delayed_minima(paths: Sequence[Path], program: Program) -> list[Path]:
    """The paths of a stratum, those that derive a minimum of whole numbers with the order in which these enter."""
    made = list(paths)
    for lattice in program.lattices.values():
        own = [i for i, p in enumerate(made) if isinstance(p.sink, Insert) and p.sink.relation == lattice.relation]
        whole = program.relations[lattice.relation].kinds[lattice.column] in (Kind.NUMBER, Kind.UNSIGNED)
        if own and whole and lattice.dominance is Dominance.LEAST:
            for i, path in zip(own, _of_lattice([made[i] for i in own], lattice), strict=True):
                made[i] = path
    return made


def _of_lattice(paths: Sequence[Path], lattice: Lattice) -> list[Path]:
    begins_alike = all(_is_constant(_value(p, lattice), p) for p in paths if not p.advance)
    reads = [_reads(_value(p, lattice), p) for p in paths if p.advance]
    if any(read > 1 or (read and not begins_alike) for read in reads):
        return [replace(p, delayed="ordered") for p in paths]
    if begins_alike:
        return list(paths)
    return [p if p.advance or _is_constant(_value(p, lattice), p) else replace(p, delayed="apart") for p in paths]


def _value(path: Path, lattice: Lattice) -> Term:
    assert isinstance(path.sink, Insert)
    return path.sink.terms[lattice.column]


def _computed(term: Term, path: Path) -> Term | None:
    """The term by which a path computes this one, if it does."""
    if isinstance(term, Variable):
        return next((s.term for s in path.steps if isinstance(s, Map) and s.variable == term.id), None)
    return None


def _is_constant(term: Term, path: Path) -> bool:
    """Whether a term has the same value in all rows of a path."""
    computed = _computed(term, path)
    return isinstance(term, Constant) or (computed is not None and _is_constant(computed, path))


def _reads(term: Term, path: Path) -> int:
    """How many variables a term is computed from; 0 for one that is read as it is."""
    computed = _computed(term, path) if isinstance(term, Variable) else term
    return 0 if computed is None else mask(computed).bit_count()
