"""What `eqrel` says of a relation, as rules: it is reflexive over the values that occur, symmetric and transitive.

    .decl same(x: t, y: t) eqrel

    same(x, x) :- same(x, _).   same(y, x) :- same(x, y).   same(x, z) :- same(x, y), same(y, z).

These rules are the meaning of the relation, and every engine may evaluate them. Most keep its classes in the place of its pairs
(engine/optimize/classes.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.ir.rules import Arg, Atom, Head, Relation, Rule, Variable


def closure_rules(relation: Relation) -> Iterator[Rule]:
    """The rules of an equivalence relation, at the place of its declaration."""
    x, y, z = Variable(0), Variable(1), Variable(2)
    yield _rule(relation, (x, x), ((x, None),))
    yield _rule(relation, (y, x), ((x, y),))
    yield _rule(relation, (x, z), ((x, y), (y, z)))


def _rule(relation: Relation, head: tuple[Variable, Variable], body: tuple[tuple[Arg, Arg], ...]) -> Rule:
    name, kind, span = relation.name, relation.kinds[0], relation.span
    used = 1 + max(arg.id for args in (head, *body) for arg in args if isinstance(arg, Variable))
    atoms = tuple(Atom(name, args, span) for args in body)
    text = f"{_text(name, head)} :- {', '.join(_text(name, args) for args in body)}."
    return Rule(Head(name, head, span), atoms, tuple("xyz"[:used]), (kind,) * used, text, span)


def _text(name: str, args: tuple[Arg, ...]) -> str:
    return f"{name}({', '.join('xyz'[arg.id] if isinstance(arg, Variable) else '_' for arg in args)})"
