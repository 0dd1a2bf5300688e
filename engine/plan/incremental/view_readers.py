"""Rules that read a view read what it is a view of instead: the body of its one rule takes the place of its atom.

    back(y, x) :- edge(x, y).          two(x, z) :- back(y, x), edge(y, z).   becomes   two(x, z) :- edge(x, y), edge(y, z).
    near(x, y) :- edge(x, y), x < y.   n = count : { near(x, _) }             becomes   n = count : { edge(x, y), x < y }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dlog.engine.ir.rules import (
    Aggregate,
    Arg,
    Atom,
    Compare,
    Constant,
    Functor,
    Literal,
    Negation,
    Rule,
    Term,
    Variable,
)

Body = tuple[Literal, ...]


class CannotReadThrough(Exception):
    """The view had better have rows, for this reader."""


def reading_through(rule: Rule, shown: Rule, is_filter: bool) -> Rule:
    """A rule that reads what a view is a view of, whose rule is `shown`. Raises CannotReadThrough where it asks for more than
    an atom of that can say, or joins with a filter."""
    reader = _Reader(rule, shown, is_filter)
    body = reader.body(rule.body, None)
    return replace(rule, body=body, variables=tuple(reader.variables), kinds=tuple(reader.kinds))


class _Reader:
    def __init__(self, rule: Rule, shown: Rule, is_filter: bool) -> None:
        self.variables, self.kinds = [*rule.variables], [*rule.kinds]
        self._shown, self._is_filter = shown, is_filter
        self._name = shown.head.relation

    def body(self, body: Body, aggregate: Aggregate | None) -> Body:
        """A body, perhaps of an aggregate, with the view's atoms replaced."""
        found: list[Literal] = []
        for literal in body:
            match literal:
                case Atom(relation=relation) if relation == self._name:
                    found += self._atom(literal, body, aggregate)
                case Negation(atom=atom) if atom.relation == self._name:
                    if self._is_filter:
                        raise CannotReadThrough
                    found.append(replace(literal, atom=self._mapped(atom, self._bound(atom))))
                case Aggregate(alternatives=alternatives):
                    found.append(replace(literal, alternatives=tuple(self.body(inner, literal) for inner in alternatives)))
                case _:
                    found.append(literal)
        return tuple(found)

    def _atom(self, atom: Atom, body: Body, aggregate: Aggregate | None) -> Body:
        bound = self._bound(atom)
        if not self._is_filter:
            return (self._mapped(atom, bound),)
        if sum(isinstance(x, Atom | Negation | Aggregate) for x in body) > 1:
            raise CannotReadThrough  # an index over all rows of the source would be in the place of one over those of the view
        unnamed = [id for id, arg in bound.items() if arg is None]
        if aggregate is not None and unnamed and not _counts_rows(atom, body, aggregate):
            raise CannotReadThrough  # with another name, what counted once would count again
        for id in unnamed:
            bound[id] = self._fresh(id)
        return (self._mapped(atom, bound), *(self._tested(literal, bound) for literal in self._shown.body[1:]))

    def _bound(self, atom: Atom) -> dict[int, Arg]:
        """What the variables of the view's rule are for this atom."""
        bound: dict[int, Arg] = {}
        for term, arg in zip(self._shown.head.args, atom.args, strict=True):
            match term:
                case Variable(id=id) if bound.get(id) is None:
                    bound[id] = arg
                case Variable(id=id) if arg is None or arg == bound[id]:
                    pass
                case Constant() if arg is None or arg == term:
                    pass
                case _:
                    raise CannotReadThrough
        return bound

    def _fresh(self, id: int) -> Variable:
        """A new variable for one of the view's rule."""
        self.variables.append(f"_{len(self.variables)}")
        self.kinds.append(self._shown.kinds[id])
        return Variable(len(self.kinds) - 1)

    def _mapped(self, atom: Atom, bound: Mapping[int, Arg]) -> Atom:
        source = self._shown.body[0]
        assert isinstance(source, Atom)
        args = tuple(bound[arg.id] if isinstance(arg, Variable) else arg for arg in source.args)
        return Atom(source.relation, args, atom.span)

    def _tested(self, literal: Literal, bound: Mapping[int, Arg]) -> Literal:
        assert isinstance(literal, Compare)
        return replace(literal, left=_term(literal.left, bound), right=_term(literal.right, bound))


def _term(term: Term, bound: Mapping[int, Arg]) -> Term:
    match term:
        case Variable(id=id):
            value = bound[id]
            assert value is not None
            return value
        case Functor(args=args):
            return replace(term, args=tuple(_term(arg, bound) for arg in args))
        case _:
            return term


def _counts_rows(atom: Atom, body: Body, aggregate: Aggregate) -> bool:
    """Whether the aggregate goes over the rows of the atom, and not over what its variables are: see `Aggregate`."""
    names = [arg.id for arg in atom.args if isinstance(arg, Variable)]
    return len(body) == len(aggregate.alternatives) == 1 and len(names) == len(set(names))
