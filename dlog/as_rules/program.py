"""The program that collections become: relations, each with the rules that fill it, in the order in which they are made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from dlog.as_rules.bodies import Stored
from dlog.as_rules.terms import TYPES, Term, replaced, variables
from dlog.dataclass import dataclass
from dlog.dataflow.kinds import Kind
from dlog.dataflow.schema import Schema
from dlog.grammar import syntax
from dlog.grammar.syntax import AggregateTerm, And, Atom, Body, Clause, Constraint, Not, Or, Subsumption, Variable, Wildcard
from dlog.grammar.unparse import format_program
from dlog.grammar.words import RESERVED

MULTIPLICITY = "multiplicity"
"""The column with how often a row is there, of relations that are no sets."""


def identifier(text: str) -> str:
    """A name of the dialect that is like a text."""
    found = re.sub(r"\W+", "_", text, flags=re.ASCII).strip("_")
    found = found if found and not found[0].isdigit() else f"x{found}"
    return found + "_" if found in RESERVED else found


def distinct_names(texts: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Names like some texts, no two of them the same."""
    used, found = set(taken), []
    for text in texts:
        base = name = identifier(text)
        number = 2
        while name in used or name in RESERVED:
            name, number = f"{base.rstrip('_')}{number}", number + 1
        used.add(name)
        found.append(name)
    return found


@dataclass(frozen=True, slots=True)
class Sum:
    """`result = sum weight : { atom }`, or the count of its rows, of those for which conditions hold."""

    result: Variable
    weight: Term | None
    atom: Atom
    where: tuple[Body, ...] = ()

    @property
    def literal(self) -> Body:
        op = "count" if self.weight is None else "sum"
        body = And((self.atom, *self.where)) if self.where else self.atom
        return Constraint("=", self.result, AggregateTerm(op, self.weight, body))

    @property
    def variables(self) -> list[str]:
        inside = [v for literal in (self.atom, *self.where) for v in literal_variables(literal)]
        return [*inside, *variables(self.weight or Wildcard()), self.result.name]


class Program:
    """A program that is being written."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._used_names = set(taken)
        self._functors: list[syntax.Item] = []
        self._items: dict[Stored, list[syntax.Item]] = {}
        self._behind: dict[Stored, list[syntax.Item]] = {}
        """What stands behind the rules of a relation."""

    def relation(
        self, hint: str, schema: Schema, *, named: bool = False, weighted: bool = False, positive: bool = True
    ) -> Stored:
        """A new relation: of a name like `hint`, or exactly that, which is taken already."""
        (name,) = [hint] if named else distinct_names([f"{hint}_"], self._used_names)
        self._used_names.add(name)
        columns = [*schema.names, *([MULTIPLICITY] if weighted else [])]
        found = Stored(name, schema.names, schema.kinds, tuple(distinct_names(columns)), weighted, positive)
        types = [*(TYPES[kind] for kind in schema.kinds), *(["number"] if weighted else [])]
        attributes = tuple(syntax.Attribute(a, t) for a, t in zip(found.attributes, types, strict=True))
        self._items[found] = [syntax.RelationDecl((name,), attributes)]
        return found

    def functor(self, name: str, kinds: Sequence[Kind], result: Kind) -> None:
        """Declares a functor of columns of these kinds."""
        params = tuple(syntax.Attribute(f"x{k}", TYPES[kind]) for k, kind in enumerate(kinds, 1))
        self._functors.append(syntax.FunctorDecl(name, params, TYPES[result]))

    def rule(
        self, stored: Stored, head: Sequence[Term], body: Sequence[Body], sums: Sequence[Sum] = (), checks: Sequence[Body] = ()
    ) -> None:
        """A rule for a relation, with conditions on its sums. Rules that say the same are one."""
        clause = _written(stored.name, head, body, sums, checks)
        if clause not in self._items[stored]:
            self._items[stored].append(clause)

    def keep_best(self, stored: Stored, greatest: bool) -> None:
        """Has a relation keep the rows with the least, or the greatest, value alone."""
        assert stored.least is not None
        names = distinct_names([*stored.names, "other"])
        better, args = names.pop(), [Variable(name) for name in names]
        others = [Variable(better) if k == stored.least else arg for k, arg in enumerate(args)]
        comparison = Constraint(">" if greatest else "<", Variable(better), args[stored.least])
        atoms = Atom(stored.name, tuple(args)), Atom(stored.name, tuple(others))
        self._behind[stored] = [Subsumption(*atoms, comparison)]

    def directive(self, kind: Literal["input", "output"], name: str) -> None:
        """A directive for a relation of this name."""
        (stored,) = [stored for stored in self._items if stored.name == name]
        self._behind.setdefault(stored, []).append(syntax.Directive(kind, (name,)))

    @property
    def text(self) -> str:
        """It as it is written, a paragraph for each relation."""
        items = [(*items, *self._behind.get(stored, ())) for stored, items in self._items.items()]
        paragraphs = [tuple(self._functors), *items] if self._functors else items
        return "\n".join(format_program(syntax.Program(each)) for each in paragraphs)


def _written(
    name: str, head: Sequence[Term], body: Sequence[Body], sums: Sequence[Sum], checks: Sequence[Body]
) -> Clause:
    """A rule with variables of the dialect; those that are there once are anonymous in atoms."""
    order = [v for literal in body for v in literal_variables(literal)]
    order += [v for each in sums for v in each.variables]
    order += [v for literal in checks for v in literal_variables(literal)]
    order += [v for term in head for v in variables(term)]
    different = list(dict.fromkeys(order))
    names: dict[str, Term] = {
        old: Variable(new)
        for old, new in zip(different, distinct_names(v.rpartition("~")[0] for v in different), strict=True)
    }
    once: dict[str, Term] = {v: Wildcard() for v in different if order.count(v) == 1}
    literals = [_renamed(literal, names, once) for literal in body]
    literals += [_renamed_sum(each, names, once).literal for each in sums]
    literals += [_renamed(literal, names, once) for literal in checks]
    heads = (Atom(name, tuple(replaced(term, names) for term in head)),)
    if not literals:
        return Clause(heads)
    return Clause(heads, literals[0] if len(literals) == 1 else And(tuple(literals)))


def _renamed_sum(each: Sum, names: dict[str, Term], once: dict[str, Term]) -> Sum:
    result = names[each.result.name]
    assert isinstance(result, Variable)
    # Of one atom each row is a match, of more each different binding of what has a name.
    atom = _renamed(each.atom, names, {} if each.where else once)
    assert isinstance(atom, Atom)
    weight = None if each.weight is None else replaced(each.weight, names)
    return Sum(result, weight, atom, tuple(_renamed(literal, names, {}) for literal in each.where))


def literal_variables(literal: Body) -> list[str]:
    match literal:
        case Atom(_, args):
            return [v for arg in args for v in variables(arg)]
        case Constraint(_, left, right):
            return [*variables(left), *variables(right)]
        case Not(inner):
            return literal_variables(inner)
        case Or(parts):
            return [v for part in parts for v in literal_variables(part)]
        case _:
            raise AssertionError(literal)


def _renamed(literal: Body, names: dict[str, Term], once: dict[str, Term]) -> Body:
    match literal:
        case Atom(name, args):
            return Atom(name, tuple(replaced(arg, names | once) for arg in args))
        case Constraint(op, left, right):
            return Constraint(op, replaced(left, names), replaced(right, names))
        case Not(inner):
            return Not(_renamed(inner, names, once))
        case Or(parts):
            return Or(tuple(_renamed(part, names, once) for part in parts))
        case _:
            raise AssertionError(literal)
