"""Views: relations of a program that need no rows of their own over rounds, as theirs are those of another relation.

    back(y, x) :- edge(x, y).            a map: the same rows, in another form; who reads `back` reads `edge`
    near(x, y) :- edge(x, y), x < y.     a filter: some of them; a view where no join looks for its rows

What such a rule makes of a row is one row at most, and of two rows never the same one: so changes of a view are those of its
source, row by row, without counts. Two rows may become one by a projection, and a value that is computed for the head takes a
functor to undo: relations with such rules have rows. So has a filter that a join, a negation or several rules read: an index is
over all rows of a relation, and each reader would decide again; and a map whose readers compare what it adds to its source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Final, TypeVar

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read, retained
from dlog.engine.ir.rules import (
    ITERATION_COUNTER,
    Atom,
    Compare,
    Constant,
    Functor,
    Kind,
    Literal,
    Program,
    Record,
    Rule,
    Stratum,
    Term,
    Variable,
)
from dlog.engine.optimize.rewriting import Rules, has_given_rows, rules_by_relation, with_rules
from dlog.engine.plan.incremental.view_readers import CannotReadThrough, reading_through, without_definitions
from dlog.grammar.source import NOWHERE

Value = TypeVar("Value")
MAX_FILTER_READERS = 1
"""Rules that read a filter up to which it is a view: a change that a filter with rows stops is seen by none of its readers, and
each that reads through it decides again."""
_NUMBERS: Final = (Kind.NUMBER, Kind.UNSIGNED)
_EQUALITY: Final = ("=", "!=")
_ORDER: Final = (*_EQUALITY, "<", "<=", ">", ">=")
FUNCTORS: Final = {
    **dict.fromkeys(("+", "-", "*", "neg"), (*_NUMBERS, Kind.FLOAT)),
    **dict.fromkeys(("band", "bor", "bxor", "bnot", "%"), _NUMBERS),
}
"""The functors that a view may call, and on which kinds: total ones, `%` by a constant that is not zero. What is computed for a
column is no float: of those that are no number there is one, whatever is computed."""
MAX_COMPUTING_VIEWS = 16
"""Views that compute, one of the other: who reads the last one computes for all of them."""


@dataclass(frozen=True, slots=True)
class View:
    """`columns` are what a row of `source` becomes where all `tests` hold: variables are the source's columns by number.
    In these, `equal` columns have the same bits as another one, or a constant."""

    source: str
    columns: tuple[Variable | Constant | Functor, ...]
    equal: tuple[tuple[int, Variable | Constant], ...] = ()
    tests: tuple[Compare, ...] = ()

    picks: tuple[int, ...] | None = field(init=False, compare=False)
    """The columns by number, where no row is looked at and nothing else is made of it."""

    def __post_init__(self) -> None:
        picks = [column.id for column in self.columns if isinstance(column, Variable)]
        plain = not self.is_filter and len(picks) == len(self.columns)
        object.__setattr__(self, "picks", tuple(picks) if plain else None)

    @property
    def is_filter(self) -> bool:
        return bool(self.equal or self.tests)

    @property
    def computes(self) -> bool:
        return any(isinstance(column, Functor) for column in self.columns)


def separate_views(program: Program) -> tuple[Program, dict[str, View]]:
    """The program without the relations that are views, and these, each after those that it reads."""
    found = dict(_candidates(program))
    if not found:
        return program, {}
    rules, kept = _read_through(rules_by_relation(program), found)
    views = {name: view for name, view in found.items() if name not in kept}
    return (_without(program, views, rules) if views else program), views


def explain_views(views: Mapping[str, View]) -> list[str]:
    """What a plan says of views, a text for each."""
    return [f"{name}: view of {view.source}, without rows of its own\n" for name, view in views.items()]


# ------------------------------------------------------------------------------------------------------- which can be one


def _candidates(program: Program) -> Iterator[tuple[str, View]]:
    """The relations whose rules are those of views, in the order of evaluation."""
    others = retained(program) | program.lattices.keys() | program.eqrels | set(program.classes.values())
    others |= {io.relation for io in program.io if io.action == "limitsize"}
    others |= {timed.source for timed in program.timed.values()}
    computing: dict[str, int] = {}
    for stratum in program.strata:
        name = stratum.relations[0]
        view = None if name in others or has_given_rows(program, name) else _view_of(stratum)
        if view is not None and view.source != ITERATION_COUNTER and view.source not in program.eqrels:
            computing[name] = computing.get(view.source, 0) + view.computes
            if computing[name] <= MAX_COMPUTING_VIEWS:
                yield name, view
            else:
                del computing[name]


def _view_of(stratum: Stratum) -> View | None:
    """The view that the relation of a stratum is, if its rule is that of one."""
    match stratum:
        case Stratum(relations=(_,), rules=(Rule(weight=None) as rule,), recursive=False):
            atoms = [literal for literal in rule.body if type(literal) is not Compare]
            return view_of(without_definitions(rule)) if len(atoms) == 1 and type(atoms[0]) is Atom else None
        case _:
            return None


def view_of(rule: Rule) -> View | None:
    """The view that a rule without definitions says, whose body is an atom and other literals, if it says one."""
    atom, *tests = rule.body
    assert isinstance(atom, Atom)
    places: dict[int, int] = {}
    equal: list[tuple[int, Variable | Constant]] = []
    for column, arg in enumerate(atom.args):
        match arg:
            case Variable(id=id) if id not in places:
                places[id] = column
            case Variable(id=id):
                equal.append((column, Variable(places[id])))
            case Constant():
                equal.append((column, arg))
            case None:
                return None
    columns = [_placed(term, places) for term in rule.head.args]
    told = {place for term in columns if term is not None for place in _determined_column(term)}
    decided = [_test(literal, places) for literal in tests]
    plain = tuple(c for c in columns if isinstance(c, Variable | Constant) or (isinstance(c, Functor) and c.kind in _NUMBERS))
    if told != set(places.values()) or len(plain) != len(columns) or None in decided:
        return None
    return View(atom.relation, plain, tuple(equal), tuple(test for test in decided if test is not None))


def _determined_column(term: Term) -> Iterator[int]:
    """The column that a term tells the value of: itself, or of which it computes another value for each."""
    match term:
        case Variable(id=id):
            yield id
        case Functor(op="neg" | "bnot", args=(of,)):
            yield from _determined_column(of)
        case Functor(op="+" | "-" | "bxor", args=(of, Constant()) | (Constant(), of)):
            yield from _determined_column(of)
        case _:
            pass


def _test(literal: Literal, places: Mapping[int, int]) -> Compare | None:
    """A comparison of what can be said of a row without looking at strings or records."""
    match literal:
        case Compare(op=op, left=left, right=right, kind=kind):
            one, other = _placed(left, places), _placed(right, places)
            known = op in (_ORDER if kind in (*_NUMBERS, Kind.FLOAT) else _EQUALITY)
            computed = [term for term in (one, other) if isinstance(term, Functor)]
            if one is not None and other is not None and known and all(term.kind is kind for term in computed):
                return Compare(op, one, other, kind)
        case _:
            pass
    return None


def _placed(term: Term, places: Mapping[int, int]) -> Term | None:
    """A term of columns in the place of variables, without its own place in the text."""
    match term:
        case Variable(id=id):
            return Variable(places[id]) if id in places else None
        case Constant():
            return term
        case Functor(op=op, args=args, kind=kind, result=result):
            made = [_placed(arg, places) for arg in args]
            known = kind is result and kind in FUNCTORS.get(op, ()) and not term.stateful
            if not known or None in made or (op == "%" and not _divides(made[1])):
                return None
            return Functor(op, tuple(arg for arg in made if arg is not None), kind, result, NOWHERE)
        case Record():
            return None


def _divides(term: Term | None) -> bool:
    """Whether it is a divisor of all numbers; the least one cannot be divided by -1."""
    return isinstance(term, Constant) and term.value not in (0, -1)


# --------------------------------------------------------------------------------------------------------------- readers


def _read_through(rules: Rules, views: Mapping[str, View]) -> tuple[Rules, set[str]]:
    """The rules of all relations that are left, which read what views are views of, and those of `views` that have rows
    after all, since rules read them for which they had better."""
    readers: dict[str, set[str]] = {}
    for name, found in rules.items():
        for rule in found:
            for read in relations_read(rule):
                readers.setdefault(read, set()).add(name)
    kept: set[str] = set()
    for name, view in reversed(tuple(views.items())):
        names = [reader for reader in readers.get(name, ()) if reader in rules]
        changed = _changed(rules, names, name, view)
        if changed is None:
            kept.add(name)
            continue
        del rules[name]
        rules.update(changed)
        readers.setdefault(view.source, set()).update(names)
    return rules, kept


def _changed(rules: Rules, readers: Iterable[str], name: str, view: View) -> Rules | None:
    """The rules of these relations, which read a view, with what it is a view of; None where it had better have rows."""
    shown = without_definitions(rules[name][0])
    made: Rules = {}
    reading = 0
    for reader in readers:
        made[reader] = []
        for rule in rules[reader]:
            if name in relations_read(rule):
                reading += 1
                if view.is_filter and reading > MAX_FILTER_READERS:
                    return None
                try:
                    rule = reading_through(rule, shown, view.is_filter)
                except CannotReadThrough:
                    return None
            made[reader].append(rule)
    return made


def _without(program: Program, views: Mapping[str, View], rules: Rules) -> Program:
    relations, facts = _others(program.relations, views), _others(program.facts, views)
    io = tuple(io for io in program.io if io.relation not in views)
    return with_rules(replace(program, relations=relations, facts=facts, io=io), rules)


def _others(found: Mapping[str, Value], views: Iterable[str]) -> dict[str, Value]:
    return {name: value for name, value in found.items() if name not in views}
