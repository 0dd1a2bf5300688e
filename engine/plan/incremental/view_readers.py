"""Rules that read a view read what it is a view of instead: the body of its one rule takes the place of its atom.

    back(y, x) :- edge(x, y).          two(x, z) :- back(y, x), edge(y, z).   becomes   two(x, z) :- edge(x, y), edge(y, z).
    near(x, y) :- edge(x, y), x < y.   n = count : { near(x, _) }             becomes   n = count : { edge(x, y), x < y }
    next(x, y + 1) :- edge(x, y).      far(x) :- next(x, z), z > 9.           becomes   far(x) :- edge(x, y), z = y + 1, z > 9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import assert_never

from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Generator,
    Literal,
    Negation,
    Rule,
    Term,
    Unpack,
    Variable,
)
from dlog.engine.ir.traversal import literal_variables, term_variables

Body = tuple[Literal, ...]
MAX_DEFINED_TERMS = 64
"""Terms in one that a view computes, or compares, up to which the relation is a view."""


class CannotReadThrough(Exception):
    """The view had better have rows, for this reader."""


def reading_through(rule: Rule, shown: Rule, is_filter: bool) -> Rule:
    """A rule that reads what a view is a view of, whose rule is `shown`, without definitions. Raises CannotReadThrough where it
    asks for more than an atom of that can say, looks for what the view computes, or joins with a filter."""
    reader = _Reader(rule, shown, is_filter)
    body = reader.body(rule.body, None)
    return replace(rule, body=body, variables=tuple(reader.variables), kinds=tuple(reader.kinds))


def without_definitions(rule: Rule) -> Rule:
    """A rule with an atom, which comes first then, and terms in the place of the variables that an equality defines, if these
    are not long: of definitions that have others twice the last one would be of exponential size."""
    atom, *others = sorted(rule.body, key=lambda literal: not isinstance(literal, Atom))
    bound: dict[int, Arg | Term] = {id: Variable(id) for id in literal_variables(atom)}
    sizes: dict[int, int] = {}
    known = 0
    while known < len(bound):
        known = len(bound)
        for literal in tuple(others):
            match literal:
                case Compare(op="=", left=Variable(id=id), right=right) if id not in bound:
                    if bound.keys() >= {*term_variables(right)} and _size(right, sizes) <= MAX_DEFINED_TERMS:
                        bound[id], sizes[id] = _term(right, bound), _size(right, sizes)
                        others.remove(literal)
                case _:
                    pass
    head = replace(rule.head, args=tuple(_term(term, bound) for term in rule.head.args))
    return replace(rule, head=head, body=(atom, *(_tested(literal, bound) for literal in others)))


def _size(term: Term, sizes: Mapping[int, int]) -> int:
    """How many terms are in one, with variables of so many in their place."""
    match term:
        case Variable(id=id):
            return sizes.get(id, 1)
        case Functor(args=args):
            return 1 + sum(_size(arg, sizes) for arg in args)
        case _:
            return 1


class _Reader:
    def __init__(self, rule: Rule, shown: Rule, is_filter: bool) -> None:
        self._rule = rule
        self.variables, self.kinds = [*rule.variables], [*rule.kinds]
        self._view_rule, self._is_filter = shown, is_filter
        self._name = shown.head.relation

    def body(self, body: Body, aggregate: Aggregate | None) -> Body:
        """A body, perhaps of an aggregate, with the view's atoms replaced."""
        found: list[Literal] = []
        for literal in body:
            match literal:
                case Atom(relation=relation) if relation == self._name:
                    found += self._atom(literal, body, aggregate)
                case Negation(atom=atom) if atom.relation == self._name:
                    if self._is_filter or self._computed(atom):
                        raise CannotReadThrough
                    found.append(replace(literal, atom=self._mapped(atom, self._view_bindings(atom))))
                case Aggregate(alternatives=alternatives):
                    found.append(replace(literal, alternatives=tuple(self.body(inner, literal) for inner in alternatives)))
                case _:
                    found.append(literal)
        return tuple(found)

    def _atom(self, atom: Atom, body: Body, aggregate: Aggregate | None) -> Body:
        bound, computed = self._view_bindings(atom), self._computed(atom)
        if not self._is_filter and not computed:
            return (self._mapped(atom, bound),)
        if self._is_filter and sum(isinstance(x, Atom | Negation | Aggregate) for x in body) > 1:
            raise CannotReadThrough  # an index over all rows of the source would be in the place of one over those of the view
        if any(self._is_looked_for(arg) for _, arg in computed):
            raise CannotReadThrough  # no index of the source is by what is computed
        unnamed = {id for id, arg in bound.items() if arg is None}
        if aggregate is not None and unnamed and not _counts_rows(atom, body, aggregate):
            raise CannotReadThrough  # with another name, what counted once would count again
        needed = bound.keys() if self._is_filter or aggregate else {id for term, _ in computed for id in term_variables(term)}
        for id in needed & unnamed:
            bound[id] = self._fresh(id)
        equal = (Compare("=", arg, _term(term, bound), term.kind) for term, arg in computed)
        return (self._mapped(atom, bound), *equal, *(_tested(literal, bound) for literal in self._view_rule.body[1:]))

    def _view_bindings(self, atom: Atom) -> dict[int, Arg]:
        """What the variables of the view's rule are for this atom."""
        bound: dict[int, Arg] = dict.fromkeys(literal_variables(self._view_rule.body[0]))
        for term, arg in zip(self._view_rule.head.args, atom.args, strict=True):
            match term:
                case Variable(id=id) if bound[id] is None:
                    bound[id] = arg
                case Variable(id=id) if arg is None or arg == bound[id]:
                    pass
                case Constant() if arg is None or arg == term:
                    pass
                case Functor():
                    pass
                case _:
                    raise CannotReadThrough
        return bound

    def _computed(self, atom: Atom) -> list[tuple[Functor, Variable | Constant]]:
        """What the view computes of its source, and what that is for this atom."""
        both = zip(self._view_rule.head.args, atom.args, strict=True)
        return [(term, arg) for term, arg in both if isinstance(term, Functor) and arg is not None]

    def _is_looked_for(self, arg: Variable | Constant) -> bool:
        """Whether a value of an atom is known before it, or may be."""
        if isinstance(arg, Constant):
            return True
        return sum(id == arg.id for id in variables_read(self._rule.body)) > 1

    def _fresh(self, id: int) -> Variable:
        """A new variable for one of the view's rule."""
        self.variables.append(f"_{len(self.variables)}")
        self.kinds.append(self._view_rule.kinds[id])
        return Variable(len(self.kinds) - 1)

    def _mapped(self, atom: Atom, bound: Mapping[int, Arg]) -> Atom:
        source = self._view_rule.body[0]
        assert isinstance(source, Atom)
        args = tuple(bound[arg.id] if isinstance(arg, Variable) else arg for arg in source.args)
        return Atom(source.relation, args, atom.span)


def variables_read(body: Body) -> Iterator[int]:
    """The variables of atoms, negations and aggregates, as often as they are there, in aggregates' bodies, too."""
    for literal in body:
        match literal:
            case Atom() | Negation():
                yield from literal_variables(literal)
            case Aggregate(alternatives=alternatives, result=result):
                yield result.id
                for inner in alternatives:
                    yield from variables_read(inner)
            case Unpack() | Generator():
                yield from literal_variables(literal)
            case Compare():
                pass
            case _:
                assert_never(literal)


def _tested(literal: Literal, bound: Mapping[int, Arg | Term]) -> Literal:
    if isinstance(literal, Compare):
        return replace(literal, left=_term(literal.left, bound), right=_term(literal.right, bound))
    return literal


def _term(term: Term, bound: Mapping[int, Arg | Term]) -> Term:
    match term:
        case Variable(id=id):
            return bound.get(id) or term
        case Functor(args=args):
            return replace(term, args=tuple(_term(arg, bound) for arg in args))
        case _:
            return term


def _counts_rows(atom: Atom, body: Body, aggregate: Aggregate) -> bool:
    """Whether the aggregate goes over the rows of the atom, and not over what its variables are: see `Aggregate`."""
    names = [arg.id for arg in atom.args if isinstance(arg, Variable)]
    return len(body) == len(aggregate.alternatives) == 1 and len(names) == len(set(names))
