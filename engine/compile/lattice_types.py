"""Columns that hold a lattice's values: `.lattice T<> { Bottom -> ..., Lub -> ..., Glb -> ... }` and `.decl r(k: t, v: T<>)`.

    .lattice number<> { Bottom -> 0, Lub -> _ bor _, Glb -> _ band _ }
    .decl r(k: symbol, v: number<>)

A relation has one row for each key, whose lattice columns hold the least upper bounds of all values that come. What bodies say
of these is in lattice_bodies.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.compile.walk import map_term, walk
from dlog.engine.ir import rules as ir
from dlog.engine.ir.kinds import NUMERIC
from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    And,
    Atom,
    Clause,
    Item,
    LatticeDecl,
    Program,
    RelationDecl,
    Term,
    Variable,
    Wildcard,
)

MARK: Final = "<>"
_KEYS: Final = ("Bottom", "Top", "Lub", "Glb")


@dataclass(frozen=True, slots=True)
class Lattices:
    """The declarations by type, and for each relation that has some its lattice columns with their types."""

    declared: Mapping[str, LatticeDecl]
    columns: Mapping[str, Mapping[int, str]]

    places: Mapping[str, Span]
    """Where these relations are declared."""

    def place(self, name: str) -> Span:
        return self.places[name]

    def joins(self, name: str) -> bool:
        """Whether all lattices of a relation say how values join."""
        return all(self.entry(t, "Lub") is not None for t in self.columns[name].values())

    def entry(self, type_name: str, key: str) -> Term | None:
        return dict(self.declared[type_name].entries).get(key)


NO_LATTICES: Final = Lattices({}, {}, {})


def without_lattices(program: Program, problems: Problems) -> tuple[Program, Lattices]:
    """The program whose columns have plain types, and what it says about lattices."""
    declared = _declared(program, problems)
    columns: dict[str, dict[int, str]] = {}
    places: dict[str, Span] = {}
    items: list[Item] = []
    for item in program.items:
        if isinstance(item, RelationDecl) and any(a.type.endswith(MARK) for a in item.attributes):
            own = {n: a.type.removesuffix(MARK) for n, a in enumerate(item.attributes) if a.type.endswith(MARK)}
            _check_columns(item, own, declared, problems)
            places |= dict.fromkeys(item.names, item.span)
            known = {n: t for n, t in own.items() if t in declared}
            columns |= dict.fromkeys(item.names, known)
            item = replace(item, attributes=tuple(replace(a, type=a.type.removesuffix(MARK)) for a in item.attributes))
        if not isinstance(item, LatticeDecl):
            items.append(item)
    return replace(program, items=tuple(items)), Lattices(declared, columns, places)


def _declared(program: Program, problems: Problems) -> dict[str, LatticeDecl]:
    found: dict[str, LatticeDecl] = {}
    for item in program.items:
        if not isinstance(item, LatticeDecl):
            continue
        if item.type in found:
            labels = (Label(item.span), Label(found[item.type].span, "first declared here"))
            problems.add("lattice", f"the lattice of `{item.type}` is declared twice", *labels)
        for key, _ in item.entries:
            if key not in _KEYS:
                notes = [suggestion(key, _KEYS) or f"a lattice has {', '.join(_KEYS)}"]
                problems.add("lattice", f"`{key}` is no part of a lattice", Label(item.span), notes=notes)
        if "Lub" not in dict(item.entries):
            problems.add("lattice", f"the lattice of `{item.type}` has no `Lub`: nothing joins its values", Label(item.span))
        for key in ("Lub", "Glb"):
            template = dict(item.entries).get(key)
            if template is not None and len(list(_wildcards(template))) != 2:
                message = f"`{key}` needs `_` for each of the two values, as in `max(_, _)`"
                problems.add("lattice", message, Label(template.span))
        found[item.type] = item
    return found


def _check_columns(decl: RelationDecl, own: Mapping[int, str], declared: Mapping[str, LatticeDecl], problems: Problems) -> None:
    for column, name in own.items():
        if name not in declared:
            label = Label(decl.attributes[column].type_span)
            problems.add(
                "lattice", f"there is no lattice of `{name}`", label, notes=[f"declare it: .lattice {name}<> {{ ... }}"]
            )
    if decl.choice_domain or "eqrel" in decl.qualifiers or "inline" in decl.qualifiers:
        message = f"`{decl.names[0]}` has a lattice column: it cannot be `inline` or `eqrel`, nor have a choice domain"
        problems.add("lattice", message, Label(decl.span))


def _wildcards(term: Term) -> Iterator[Wildcard]:
    return (node for node in walk(term) if isinstance(node, Wildcard))


def filled(template: Term, left: Term, right: Term) -> Term:
    """The term of two values."""
    values = iter((left, right))
    return map_term(template, lambda t: next(values) if isinstance(t, Wildcard) else None)


def joining_clause(decl: RelationDecl, name: str, lattices: Lattices) -> Clause:
    """The clause that joins two rows of one key: `r(k, lub(a, b)) :- r(k, a), r(k, b).`"""
    own = lattices.columns[name]
    rows = [[Variable(f"{a.name}@{side}" if n in own else a.name, span=a.span) for n, a in enumerate(decl.attributes)]
            for side in ("left", "right")]  # fmt: skip
    joined: list[Term] = list(rows[0])
    for column, type_name in own.items():
        template = lattices.entry(type_name, "Lub")
        assert template is not None
        joined[column] = filled(template, rows[0][column], rows[1][column])
    left, right = (Atom(name, tuple(row), span=decl.span) for row in rows)
    return Clause((Atom(name, tuple(joined), span=decl.span),), And((left, right), span=decl.span), span=decl.span)


def extreme(join: ir.Rule) -> ir.Rule | None:
    """The subsumption that keeps the same rows as a join, where that is the `max` or `min` of one column of numbers."""
    columns = [c for c, term in enumerate(join.head.args) if isinstance(term, ir.Functor)]
    match [join.head.args[c] for c in columns], join.body:
        case [ir.Functor(op="max" | "min" as op, args=args, kind=kind)], (ir.Atom() as left, ir.Atom() as right) if (
            kind in NUMERIC
        ):
            (column,) = columns
            less, greater = left.args[column], right.args[column]
            if args not in ((less, greater), (greater, less)) or less is None or greater is None:
                return None
            row = tuple(a for a in left.args if a is not None)
            tests = (ir.Compare("<" if op == "max" else ">", less, greater, kind), ir.Compare("!=", less, greater, kind))
            return replace(join, head=replace(join.head, args=row), body=(left, right, *tests))
        case _:
            return None
