"""Facts of literals, by a short way: a text may hold many thousands of them, and each column's type says all there is."""

from __future__ import annotations

from typing import Final, TypeAlias

from dlog.engine.compile.normal.literals import FITTING, calendar_literal, literal_kinds, literal_text, number_constant
from dlog.engine.compile.resolve import Resolved
from dlog.engine.ir.rules import PAD, Constant, Kind, Record, Rule, Term, Type
from dlog.grammar.literal_facts import LiteralFact, literal_value
from dlog.grammar.syntax import Atom, BranchTerm, Call, Clause, Nil, RecordTerm, String
from dlog.grammar.syntax import Term as SyntaxTerm

Row: TypeAlias = tuple[Constant | Record, ...]


_TELLING: Final = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.SYMBOL})
"""Kinds of which two constants are the same if their values are equal; hashing values is quicker."""


class FactRows:
    """The rows of a program's facts: those of well-typed literals by a short way, and all of them, each once."""

    def __init__(self, resolved: Resolved) -> None:
        self._resolved = resolved
        self._kinds = {name: relation.kinds for name, relation in resolved.relations.items()}
        self._telling = {name: _TELLING.issuperset(kinds) for name, kinds in self._kinds.items()}
        self._rows: dict[str, dict[tuple[object, ...], Row]] = {}

    def add(self, relation: str, row: Row) -> None:
        key = tuple([c.value for c in row if type(c) is Constant]) if self._telling[relation] else row
        found = self._rows.get(relation)
        if found is None:
            found = self._rows[relation] = {}
        found.setdefault(key, row)

    def rows(self) -> dict[str, tuple[Row, ...]]:
        return {name: tuple(found.values()) for name, found in self._rows.items()}

    def row(self, clause: Clause) -> Row | None:
        """The row of a fact; None sends it through the checks of any clause."""
        if type(clause) is LiteralFact:
            return _written(clause.literals, self._kinds[clause.name], self._resolved.table.short)
        return literal_fact(clause.heads[0], self._resolved) if len(clause.heads) == 1 else None


def _written(literals: list[str], kinds: tuple[Kind, ...], short: bool) -> Row | None:
    row: list[Constant] = []
    for text, kind in zip(literals, kinds, strict=True):
        if kind is Kind.NUMBER and len(text) <= FITTING and text.isdecimal() and not short:
            row.append(Constant(int(text), kind))
        elif kind is Kind.SYMBOL and text[0] == '"':
            row.append(Constant(literal_value(text), kind))
        else:
            value = number_constant(text, kind, short) if text[0] != '"' and kind in literal_kinds(text) else None
            if value is None:
                return None
            row.append(value)
    return tuple(row)


def literal_fact(atom: Atom, resolved: Resolved) -> Row | None:
    """The row of a fact made of well-typed literals; None sends it through the checks of any clause."""
    row = []
    for arg, (_, found) in zip(atom.args, resolved.relations[atom.name].attributes, strict=True):
        value = _value(arg, found, resolved)
        if value is None:
            return None
        row.append(value)
    return tuple(row)


def _value(term: SyntaxTerm, found: Type, resolved: Resolved) -> Constant | Record | None:
    text = literal_text(term)
    if text is not None:
        fits = found.kind in literal_kinds(text)
        return number_constant(text, found.kind, resolved.table.short) if fits else None
    match term:
        case Call() if found.is_calendar:
            try:
                dated = calendar_literal(term)
            except ValueError:
                return None
            return Constant(dated[1], Kind.NUMBER) if dated is not None and dated[0] is found.domain else None
        case String(value=value) if found.kind is Kind.SYMBOL:
            return Constant(value, Kind.SYMBOL)
        case Nil() if found.kind is Kind.RECORD and not found.branches:
            return Constant(None, Kind.RECORD)
        case RecordTerm(args=args) if found.kind is Kind.RECORD and not found.branches and len(args) == len(found.fields):
            return _record(args, found, resolved)
        case BranchTerm(branch=branch, args=args) if f"${branch}" in found.branches and not resolved.table.narrowed:
            return _branch(args, found, found.branches.index(f"${branch}"), resolved)
        case _:
            return None


def _record(args: tuple[SyntaxTerm, ...], found: Type, resolved: Resolved) -> Record | None:
    fields = _values(args, found.fields, resolved)
    return None if fields is None else Record(found.name, fields)


def _branch(args: tuple[SyntaxTerm, ...], found: Type, tag: int, resolved: Resolved) -> Record | None:
    branch = resolved.table.types[found.branches[tag]]
    if len(args) != branch.arity:
        return None
    fields = _values(args, branch.fields[1 : 1 + branch.arity], resolved)
    rest = (PAD,) * (len(branch.fields) - 1 - branch.arity)
    return None if fields is None else Record(branch.name, (Constant(tag, Kind.NUMBER), *fields, *rest))


def _values(args: tuple[SyntaxTerm, ...], fields: tuple[tuple[str, str], ...], resolved: Resolved) -> Row | None:
    values = []
    for arg, (_, name) in zip(args, fields, strict=True):
        value = _value(arg, resolved.table.types[name], resolved)
        if value is None:
            return None
        values.append(value)
    return tuple(values)


def constant_row(rule: Rule) -> Row | None:
    """The row of a rule without a body whose head is constant, else None."""
    if rule.body:
        return None
    row = tuple(t for t in rule.head.args if isinstance(t, Constant | Record) and _is_constant(t))
    return row if len(row) == len(rule.head.args) else None


def _is_constant(term: Term) -> bool:
    return isinstance(term, Constant) or (isinstance(term, Record) and all(_is_constant(a) for a in term.args))
