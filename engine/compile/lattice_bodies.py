"""What bodies say of the values of lattices.

A variable in lattice columns that nothing else binds is the greatest lower bound of their values, and not the bottom. What has
a value otherwise is at or below theirs, and where an atom is negated, has nothing but the bottom in common with them:

    p(v) :- r("a", v), r("b", v).    ->    p(v) :- r("a", v1), r("b", v2), v = v1 band v2, v != 0.
    p(v) :- q(v), r("a", v).         ->    p(v) :- q(v), r("a", w), v = w band v.
    p(v) :- q(v), !r("a", v).        ->    p(v) :- q(v), !r("a", _).    p(v) :- q(v), r("a", w), 0 = w band v.

As in Souffle, a lattice without `Glb` or `Bottom` has plain values here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from itertools import product

from dlog.dataclass import dataclass
from dlog.engine.compile.grounding import bound_variables
from dlog.engine.compile.lattice_types import Lattices, filled
from dlog.engine.compile.normal.disjunction import Conjunction, Flat, FlatClause
from dlog.engine.compile.problems import Label, Problems
from dlog.grammar.syntax import Atom, Constraint, Not, Term, Variable, Wildcard


def with_lattice_values(clause: FlatClause, lattices: Lattices, problems: Problems) -> Iterator[FlatClause]:
    """The clauses that one becomes, whose values of lattices are plain values."""
    if lattices.columns.keys().isdisjoint(_mentioned(clause)):
        yield clause
        return
    for body in product(*(_alternatives(literal, lattices, problems) for literal in clause.body)):
        flat = replace(clause, body=tuple(x for part in body for x in part))
        yield _Values(flat, lattices, problems).clause_of()


def _mentioned(clause: FlatClause) -> set[str]:
    atoms = (x.body if isinstance(x, Not) else x for x in clause.body)
    return {atom.name for atom in atoms if isinstance(atom, Atom)}


def _is_ordered(lattices: Lattices, type_name: str) -> bool:
    """Whether a lattice says what two values have in common."""
    return lattices.entry(type_name, "Glb") is not None and lattices.entry(type_name, "Bottom") is not None


# --------------------------------------------------------------------------------------------------------------- negations


def _alternatives(literal: Flat, lattices: Lattices, problems: Problems) -> list[Conjunction]:
    """The alternatives of a literal: of a negated atom, that its key has no row, or one whose value is apart."""
    if not isinstance(literal, Not) or not isinstance(literal.body, Atom):
        return [(literal,)]
    atom = literal.body
    own = {c: t for c, t in lattices.columns.get(atom.name, {}).items() if c < len(atom.args)}
    asked = [c for c, t in own.items() if _is_ordered(lattices, t) and not isinstance(atom.args[c], Wildcard)]
    if not asked:
        return [(literal,)]
    if any(isinstance(a, Wildcard) for c, a in enumerate(atom.args) if c not in own):
        message = "a negated atom with a value of a lattice needs all of the key"
        notes = ["`_` would be any key: negate a relation of its own, which has those with such a value"]
        problems.add("lattice", message, Label(atom.span), notes=notes)
        return [(literal,)]
    keys = tuple(Wildcard(span=a.span) if c in own else a for c, a in enumerate(atom.args))
    found: list[Conjunction] = [(Not(replace(atom, args=keys), span=literal.span),)]
    for column in asked:
        arg = atom.args[column]
        value = Variable(f"_@apart{arg.span.start}", span=arg.span)
        meet, bottom = lattices.entry(own[column], "Glb"), lattices.entry(own[column], "Bottom")
        assert meet is not None and bottom is not None
        apart = Constraint("=", filled(meet, value, arg), bottom, span=arg.span)
        found.append((replace(atom, args=(*keys[:column], value, *keys[column + 1 :])), apart))
    return found


# -------------------------------------------------------------------------------------------------------------- conditions


@dataclass
class _Values:
    """One clause without negations of values."""

    clause: FlatClause
    lattices: Lattices
    problems: Problems
    count: int = 0
    values_by_name: dict[str, list[Variable]] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    tests: list[Flat] = field(default_factory=list)

    def clause_of(self) -> FlatClause:
        bound = bound_variables([self._without_values(x) for x in self.clause.body], ())
        times: dict[str, int] = {}
        for _, arg in self._values():
            if isinstance(arg, Variable):
                times[arg.name] = times.get(arg.name, 0) + 1
        body = [self._literal(x, times, bound) for x in self.clause.body]
        for name, values in self.values_by_name.items():
            self.tests += self._meet(name, values)
        return replace(self.clause, body=(*body, *self.tests))

    def _columns(self, literal: Flat) -> dict[int, str]:
        if not isinstance(literal, Atom):
            return {}
        own = self.lattices.columns.get(literal.name, {})
        return {column: name for column, name in own.items() if column < len(literal.args)}

    def _without_values(self, literal: Flat) -> Flat:
        columns = self._columns(literal)
        if not isinstance(literal, Atom) or not columns:
            return literal
        return replace(literal, args=tuple(Wildcard() if c in columns else a for c, a in enumerate(literal.args)))

    def _values(self) -> Iterator[tuple[str, Term]]:
        for literal in self.clause.body:
            for column, type_name in self._columns(literal).items():
                assert isinstance(literal, Atom)
                yield type_name, literal.args[column]

    def _literal(self, literal: Flat, times: dict[str, int], bound: set[str]) -> Flat:
        columns = self._columns(literal)
        if not isinstance(literal, Atom) or not columns:
            return literal
        args = list(literal.args)
        for column, type_name in columns.items():
            args[column] = self._argument(args[column], type_name, times, bound)
        return replace(literal, args=tuple(args))

    def _argument(self, arg: Term, type_name: str, times: dict[str, int], bound: set[str]) -> Term:
        if isinstance(arg, Wildcard):
            return arg
        free = isinstance(arg, Variable) and arg.name not in bound
        if isinstance(arg, Variable) and free and times[arg.name] == 1:
            return arg
        if not free and not _is_ordered(self.lattices, type_name):
            return arg
        self.count += 1
        name = arg.name if isinstance(arg, Variable) else "_"
        fresh = Variable(f"{name}@m{self.count}", span=arg.span)
        if isinstance(arg, Variable) and free:
            self.types[name] = type_name
            self.values_by_name.setdefault(name, []).append(fresh)
        else:
            meet = self.lattices.entry(type_name, "Glb")
            assert meet is not None
            self.tests.append(Constraint("=", filled(meet, fresh, arg), arg, span=arg.span))
        return fresh

    def _meet(self, name: str, values: list[Variable]) -> Iterator[Flat]:
        """The meet of several values, step by step."""
        first, *others = values
        for number, value in enumerate(others, 1):
            last = number == len(others)
            whole = Variable(name if last else f"{name}@n{number}", span=value.span)
            yield from self._below(whole, self.types[name], first, value)
            first = whole

    def _below(self, whole: Variable, type_name: str, left: Term, right: Term) -> list[Flat]:
        """`whole` is the meet of two values, and not the bottom."""
        meet, bottom = self.lattices.entry(type_name, "Glb"), self.lattices.entry(type_name, "Bottom")
        if meet is None or bottom is None:
            message = f"two values of the lattice of `{type_name}` meet here, but it has no `{'Bottom' if meet else 'Glb'}`"
            declared = Label(self.lattices.declared[type_name].span, "declared here")
            self.problems.add("lattice", message, Label(right.span), declared)
            return []
        term = filled(meet, left, right)
        return [Constraint("=", whole, term, span=right.span), Constraint("!=", whole, bottom, span=right.span)]
