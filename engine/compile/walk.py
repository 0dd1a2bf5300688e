"""Walking and renaming over the syntax tree: what all checks of clauses share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from dlog.grammar.syntax import (
    AggregateTerm,
    And,
    Atom,
    Body,
    BranchTerm,
    Call,
    Cast,
    Clause,
    Constraint,
    Counter,
    Nil,
    Not,
    Number,
    Or,
    RecordTerm,
    String,
    Term,
    Truth,
    Variable,
    Wildcard,
)

Node: TypeAlias = Term | Body

_LEAVES: Final = frozenset({Variable, Wildcard, Number, String, Nil, Counter, Truth})


def children(node: Node) -> tuple[Node, ...]:
    """The direct parts of a node, in the order of the text; an aggregate's target and body are among them."""
    match node:
        case Atom() | Call() | RecordTerm() | BranchTerm():
            return node.args
        case Cast(term=term):
            return (term,)
        case Constraint(left=left, right=right):
            return (left, right)
        case Not(body=body):
            return (body,)
        case And(parts=parts) | Or(parts=parts):
            return parts
        case AggregateTerm(target=target, body=body, init=init):
            return (*(t for t in (init, target) if t is not None), body)
        case _:
            return ()


def walk(node: Node) -> Iterator[Node]:
    """Every node below and including this one, in the order of the text."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        kind = type(top)
        if kind not in _LEAVES:  # most nodes are leaves
            stack.extend(reversed(top.args if kind is Atom else children(top)))  # type: ignore[union-attr]


def outside_aggregates(node: Node) -> Iterator[Node]:
    """Every node below and including this one, in the order of the text, but for what is inside aggregates."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        if not isinstance(top, AggregateTerm):
            stack.extend(reversed(children(top)))


def parts(clause: Clause) -> tuple[Node, ...]:
    """The heads of a clause and, if it is a rule, its body."""
    return clause.heads if clause.body is None else (*clause.heads, clause.body)


def variables(node: Node) -> Iterator[Variable]:
    """Every occurrence of a named variable, aggregates included."""
    return (n for n in walk(node) if isinstance(n, Variable))


def has_aggregate(node: Node) -> bool:
    return any(isinstance(n, AggregateTerm) for n in walk(node))


def map_term(term: Term, change: Callable[[Term], Term | None]) -> Term:
    """Rebuild a term, replacing each subterm for which `change` answers one (and not looking below it)."""
    new = change(term)
    if new is not None:
        return new
    match term:
        case Call(name=name, args=args):
            return Call(name, tuple(map_term(a, change) for a in args), span=term.span)
        case RecordTerm(args=args):
            return RecordTerm(tuple(map_term(a, change) for a in args), span=term.span)
        case BranchTerm(branch=branch, args=args):
            return BranchTerm(branch, tuple(map_term(a, change) for a in args), span=term.span)
        case Cast(term=inner, type=name):
            return Cast(map_term(inner, change), name, span=term.span)
        case AggregateTerm(op=op, target=target, body=body, init=init):
            return AggregateTerm(
                op,
                None if target is None else map_term(target, change),
                map_body(body, change),
                None if init is None else map_term(init, change),
                span=term.span,
            )
        case _:
            return term


def map_body(body: Body, change: Callable[[Term], Term | None]) -> Body:
    """Rebuild a body by changing its terms as `map_term` does."""
    match body:
        case Atom(name=name, args=args):
            return Atom(name, tuple(map_term(a, change) for a in args), span=body.span)
        case Constraint(op=op, left=left, right=right):
            return Constraint(op, map_term(left, change), map_term(right, change), span=body.span)
        case Not(body=inner):
            return Not(map_body(inner, change), span=body.span)
        case And(parts=parts):
            return And(tuple(map_body(p, change) for p in parts), span=body.span)
        case Or(parts=parts):
            return Or(tuple(map_body(p, change) for p in parts), span=body.span)
        case Truth():
            return body


def renaming(names: dict[str, str]) -> Callable[[Term], Term | None]:
    """A `change` for `map_term` that renames variables."""

    def change(term: Term) -> Term | None:
        if isinstance(term, Variable) and term.name in names:
            return Variable(names[term.name], span=term.span)
        return None

    return change
