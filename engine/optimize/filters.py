"""Filters: what the literals around an atom ask of single columns of its relation, and rules that give only such rows.

In `q(x) :- path(1, x), !closed(x), x < 9` the atom `path(1, x)` has the filters `from = 1`, `!closed(to)` and `to < 9`: each is
a literal over one variable, which stands for the column. A filter is a function of the column's value alone, so it may be
asked anywhere between the rules that bring the value in and the atom.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir.functors import may_stop
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Kind,
    Literal,
    Negation,
    Record,
    Relation,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.optimize.rewriting import Body
from dlog.grammar.source import NOWHERE

Test: TypeAlias = Atom | Negation | Compare

COLUMN: Final = Variable(0)


@dataclass(frozen=True, slots=True)
class ColumnFilter:
    """`test` holds for the value of `column`, which is its variable `COLUMN`; places are left out, so that equal ones are."""

    column: int
    test: Test

    @property
    def is_constant(self) -> bool:
        return isinstance(self.test, Compare) and self.test.op == "="


def filters_of(atom: Atom, body: Body, columns: frozenset[int], allowed: Callable[[str], bool]) -> frozenset[ColumnFilter]:
    """The filters of an atom and the literals beside it on these columns; `allowed` says which relations a filter may read."""
    return frozenset(filter for filter, _ in _filters_with_literals(atom, body, columns, allowed))


def tests_of(atom: Atom, body: Body, wanted: frozenset[ColumnFilter]) -> list[Literal]:
    """The literals of the body that say what the wanted filters say, so that they may go where the filters hold."""
    columns = frozenset(f.column for f in wanted)
    found = _filters_with_literals(atom, body, columns, lambda _: True)
    return [x for filter, x in found if x is not None and filter in wanted]


def _filters_with_literals(
    atom: Atom, body: Body, columns: frozenset[int], allowed: Callable[[str], bool]
) -> Iterator[tuple[ColumnFilter, Literal | None]]:
    """Each filter with its literal, which is None for a constant argument of the atom."""
    for column in sorted(columns):
        match atom.args[column]:
            case Constant() as constant:
                yield ColumnFilter(column, Compare("=", COLUMN, constant, constant.kind)), None
            case Variable() as variable:
                for literal in body:
                    test = None if literal is atom else _test_of(literal, variable)
                    if test is not None and all(allowed(r) for r in _reads(test)):
                        yield ColumnFilter(column, test), literal
            case None:
                pass


def _test_of(literal: Literal, variable: Variable) -> Test | None:
    """The literal as a test of nothing but the variable, if it is one."""
    match literal:
        case Compare(op=op, left=left, right=Constant() as right, kind=kind) if left == variable and COMPARISONS[op].mirrored:
            return Compare(op, COLUMN, right, kind)
        case Compare(op=op, left=Constant() as left, right=right, kind=kind) if right == variable and COMPARISONS[op].mirrored:
            return Compare(COMPARISONS[op].mirrored, COLUMN, left, kind)
        case Atom():
            return _atom_of(literal, variable)
        case Negation(atom=atom):
            test = _atom_of(atom, variable)
            return None if test is None else Negation(test)
        case Compare() | Unpack() | Generator() | Aggregate():
            return None


def _atom_of(atom: Atom, variable: Variable) -> Atom | None:
    """Float constants are left alone: equal ones may be of different bits (0.0 and -0.0), and atoms are matched by bits."""
    if variable not in atom.args or not all(a is None or a == variable or _is_exact(a) for a in atom.args):
        return None
    return Atom(atom.relation, tuple(COLUMN if a == variable else a for a in atom.args))


def _is_exact(arg: Arg) -> bool:
    return isinstance(arg, Constant) and arg.kind is not Kind.FLOAT


def _reads(test: Test) -> tuple[str, ...]:
    match test:
        case Atom(relation=relation) | Negation(atom=Atom(relation=relation)):
            return (relation,)
        case Compare():
            return ()


def read_by(filters: frozenset[ColumnFilter]) -> set[str]:
    """The relations that filters look into."""
    return {relation for f in filters for relation in _reads(f.test)}


def in_order(filters: frozenset[ColumnFilter]) -> list[ColumnFilter]:
    """The simplest ones first: constants, then other comparisons, then those that look into relations."""
    return sorted(filters, key=lambda f: (not f.is_constant, not isinstance(f.test, Compare), f.column, repr(f.test)))


def show_filters(filters: frozenset[ColumnFilter], relation: Relation) -> str:
    """
    from = 1, !closed(to)
    """
    shown = ((f.column, Printer((relation.attributes[f.column][0],), explicit=True).literal(_plainly(f.test))) for f in filters)
    return ", ".join(text for _, text in sorted(shown))


def _plainly(test: Test) -> Test:
    """With relations called as they were declared, without the filters in their names."""
    match test:
        case Atom(relation=relation):
            return replace(test, relation=relation.partition("{")[0])
        case Negation(atom=atom):
            return Negation(replace(atom, relation=atom.relation.partition("{")[0]))
        case Compare():
            return test


# ---------------------------------------------------------------------------------------------------------------- rules


def filtered(rule: Rule, filters: frozenset[ColumnFilter], kinds: tuple[Kind, ...]) -> Rule | None:
    """The rule for heads (of these kinds) that pass the filters, None where none does; `can_filter` must hold."""
    for f in in_order(filters):
        term = rule.head.args[f.column]
        known = _constant_outcome(f.test, term)
        if known is False:
            return None
        if known is True:
            continue
        if not isinstance(term, Variable | Constant):
            rule, term = with_named_head(rule, f.column, kinds[f.column])
        test = _with_value(f.test, term)
        if all(_unplaced(x) != test for x in rule.body):
            rule = replace(rule, body=(*rule.body, test))
    return rule


def can_filter(rule: Rule, columns: frozenset[int]) -> bool:
    """Whether the values of these columns of the head can be computed for any row that the body has so far."""
    return not any(may_stop(rule.head.args[c]) for c in columns)


def _constant_outcome(test: Test, term: Term) -> bool | None:
    """Whether a comparison holds for the term, where that is known without its value. Equal floats may be written apart."""
    if not isinstance(test, Compare) or test.op not in ("=", "!=") or test.kind is Kind.FLOAT:
        return None
    match term:
        case Record():
            return test.op == "!="  # the only constant of its kind is nil
        case Constant():
            return (term == test.right) == (test.op == "=")
        case Variable() | Functor():
            return None


def _with_value(test: Test, value: Variable | Constant) -> Test:
    """The test with the value in the place of `COLUMN`."""
    match test:
        case Compare(op=op, right=right, kind=kind):
            return Compare(op, value, right, kind)
        case Atom(relation=relation, args=args):
            return Atom(relation, tuple(value if a == COLUMN else a for a in args))
        case Negation(atom=Atom(relation=relation, args=args)):
            return Negation(Atom(relation, tuple(value if a == COLUMN else a for a in args)))


def _unplaced(literal: Literal) -> Literal:
    match literal:
        case Atom() | Compare():
            return replace(literal, span=NOWHERE)
        case Negation(atom=atom):
            return Negation(replace(atom, span=NOWHERE))
        case Unpack() | Generator() | Aggregate():
            return literal


def with_named_head(rule: Rule, column: int, kind: Kind) -> tuple[Rule, Variable]:
    """
    p(x + 1) :- e(x).     ->     p(_1) :- e(x), _1 = x + 1.
    """
    variable = Variable(len(rule.variables))
    number = 1
    while f"_{number}" in rule.variables:
        number += 1
    args = rule.head.args
    head = replace(rule.head, args=(*args[:column], variable, *args[column + 1 :]))
    body = (*rule.body, Compare("=", variable, args[column], kind))
    return replace(rule, head=head, body=body, variables=(*rule.variables, f"_{number}"), kinds=(*rule.kinds, kind)), variable
