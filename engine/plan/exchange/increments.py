"""The later supersteps of a recursive stratum (`dlog.engine.plan.exchange.supersteps`): programs that derive only from what
came last.

A task has the rows of a relation `p` that it had before, and `p@got`: those that were sent to it since. What it did not have of
these is `p@new`, and so is what its rules derive from `p@new`, at any iteration, and it did not have either. A rule that reads
relations of the stratum has one version for each choice of those atoms that read new rows, one at least; the others read rows
from before. So each derivation is made in one version, in one superstep.

    sg@out(x, y) :- up(x, a), sg(a, b), up(y, b).    becomes    sg@out(x, y) :- up(x, a), sg@new(a, b), up(y, b).
                                                     and        sg@new(x, y) :- sg@got(x, y), !sg(x, y).

Source: semi-naive evaluation from a given difference (Bancilhon 1986; Balbin and Ramamohanarao, 1987).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product

from dlog.engine.ir.rules import (
    Atom,
    Compare,
    Head,
    Io,
    Lattice,
    Literal,
    Negation,
    Program,
    Relation,
    Rule,
    Stratum,
    Variable,
)
from dlog.engine.ir.traversal import occurrences


def received_name(name: str) -> str:
    """The relation with the rows of another one that arrived."""
    return f"{name}@got"


def new_name(name: str) -> str:
    """The relation with the rows that another one did not have in the superstep before."""
    return f"{name}@new"


def held_name(name: str) -> str:
    """The relation with the rows of a lattice that no new ones replace."""
    return f"{name}@left"


def increment(first: Program, stratum: Stratum, outs: Iterable[str]) -> Program:
    """The program of later supersteps for a stratum of the program `first`, whose rules send rows of the relations `outs`. Its
    relations may be given as they are, and as what was got; what is new of them comes out."""
    own = stratum.relations
    versions = tuple(version for rule in stratum.rules for version in _versions(rule, own))
    differences = tuple(rule for name in own for rule in _differences(first, name))
    growing = (*(made(name) for name in own for made in (received_name, new_name)), *outs)
    kept = [name for name in own if name in first.lattices]
    read = (x.atom.relation for rule in versions for x in occurrences(rule.body))
    given = tuple(dict.fromkeys((*(name for name in read if name not in growing), *own)))
    strata = (
        *(Stratum((name,), (), False) for name in given),
        Stratum(growing, (*versions, *differences), True),
        *(Stratum((held_name(name),), (_remaining(first, name),), False) for name in kept),
    )
    relations = {name: first.relations[name] for name in (*given, *outs)}
    relations |= {made(n): _named(first, n, made(n)) for n in own for made in (received_name, new_name)}
    relations |= {held_name(n): _named(first, n, held_name(n)) for n in kept}
    lattices = {o: first.lattices[o] for o in outs if o in first.lattices}
    lattices |= {made(n): replace(first.lattices[n], relation=made(n)) for n in kept for made in (received_name, new_name)}
    io = tuple(Io("input", name) for name in (*given, *(received_name(n) for n in own)))
    return replace(first, relations=relations, strata=strata, facts={}, io=io, lattices=lattices)


def _named(program: Program, name: str, made: str) -> Relation:
    return replace(program.relations[name], name=made)


def _versions(rule: Rule, own: tuple[str, ...]) -> Iterator[Rule]:
    """The rule for each choice of atoms that read new rows."""
    choices = [
        (x, replace(x, relation=new_name(x.relation))) if isinstance(x, Atom) and x.relation in own else (x,) for x in rule.body
    ]
    head = replace(rule.head, relation=received_name(rule.head.relation)) if rule.head.relation in own else rule.head
    for body in product(*choices):
        if body != rule.body:
            yield replace(rule, head=head, body=tuple(body))


def _differences(program: Program, name: str) -> Iterator[Rule]:
    """Rules for the new part of what was got: rows that were not there; of a lattice also better values of a key."""
    relation = program.relations[name]
    lattice = program.lattices.get(name)
    if lattice is None:
        yield _rule(relation, new_name(name), Atom(received_name(name), _all(relation)), Negation(Atom(name, _all(relation))))
        return
    arrived, value, before = Atom(received_name(name), _all(relation)), Variable(lattice.column), Variable(relation.arity)
    assert lattice.dominance is not None
    better = Compare(lattice.dominance.comparison, value, before, relation.kinds[lattice.column])
    yield _rule(relation, new_name(name), arrived, Negation(Atom(name, _keys(relation, lattice))))
    yield _rule(relation, new_name(name), arrived, Atom(name, _keys(relation, lattice, before)), better)


def _remaining(program: Program, name: str) -> Rule:
    relation = program.relations[name]
    replaced = Negation(Atom(new_name(name), _keys(relation, program.lattices[name])))
    return _rule(relation, held_name(name), Atom(name, _all(relation)), replaced)


def _all(relation: Relation) -> tuple[Variable, ...]:
    return tuple(Variable(c) for c in range(relation.arity))


def _keys(relation: Relation, lattice: Lattice, value: Variable | None = None) -> tuple[Variable | None, ...]:
    """The arguments of an atom that finds a key's row."""
    return tuple(value if c == lattice.column else Variable(c) for c in range(relation.arity))


def _rule(relation: Relation, head: str, *body: Literal) -> Rule:
    """A rule over a relation's columns. The other variable is what a lattice compares with."""
    compared = [x.kind for x in body if isinstance(x, Compare)]
    names = (*(name for name, _ in relation.attributes), *("before" for _ in compared))
    return Rule(Head(head, _all(relation)), body, names, (*relation.kinds, *compared), f"{head}, of {relation.name}")
