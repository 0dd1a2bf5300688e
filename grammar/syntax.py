"""The syntax tree: what the text says, one immutable node per construct, each with its span.

Nothing is resolved here: names are strings, types are names, every term is as written. A node's `span` takes no part in
equality, so that `parse(print(tree)) == tree` is a law that can be stated directly.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from dlog.dataclass import immutable
from dlog.grammar.source import NOWHERE, Span


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False, kw_only=True)


def round_number(digits: str) -> int:
    """The number of a round, as written; one that no session comes to is 10^18, however long it is."""
    most = 10**18
    number = digits.strip().lstrip("-")
    value = min(int(number), most) if len(number) < 1000 else most
    return -value if digits.strip().startswith("-") else value


# ---------------------------------------------------------------------------------------------------------------- terms


@immutable
class Variable:
    name: str
    span: Span = _span()


@immutable
class Wildcard:
    """The anonymous variable `_`."""

    span: Span = _span()


@immutable
class Number:
    """An integer or float literal, as written (`0x1f`, `0b101`, `12u`, `1.5e3`, `127.0.0.1`); the checker decides its value."""

    text: str
    span: Span = _span()


@immutable
class String:
    """A symbol literal; `value` is unescaped."""

    value: str
    span: Span = _span()


@immutable
class Nil:
    span: Span = _span()


@immutable
class Counter:
    """`$` or `autoinc()`."""

    span: Span = _span()


@immutable
class RecordTerm:
    """`[a, b, c]`."""

    args: tuple[Term, ...]
    span: Span = _span()


@immutable
class BranchTerm:
    """`$Branch(a, b)` of an algebraic data type; `args` is empty for `$Branch`."""

    branch: str
    args: tuple[Term, ...]
    span: Span = _span()


@immutable
class Call:
    """A functor application. Operators are calls too: name is the operator as written (`+`, `-`, `band`, `cat`, ...);
    unary minus is `Call("-", (x,))`. A user-defined functor `@f(x)` has the name `@f`."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@immutable
class Cast:
    """`as(x, T)`."""

    term: Term
    type: str
    span: Span = _span()


@immutable
class AggregateTerm:
    """`count : { body }`, `sum x : { body }`, `min`, `max`, `mean`, or `@@user init x : { body }`."""

    op: str
    target: Term | None
    body: Body
    init: Term | None = None
    span: Span = _span()


Term: TypeAlias = Variable | Wildcard | Number | String | Nil | Counter | RecordTerm | BranchTerm | Call | Cast | AggregateTerm

# ----------------------------------------------------------------------------------------------------------------- body


@immutable
class Atom:
    """`name(args)`; `name` may be qualified by components (`c.path`). `name@round(args)` is about a past `round`, `@name(args)`
    an `event`: a row that comes."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()
    round: int | None = None
    event: bool = False


@immutable
class Not:
    """`!literal`; the literal is an atom, a constraint or a parenthesized body, as written."""

    body: Body
    span: Span = _span()


@immutable
class Constraint:
    """`left op right` with op one of `= != < <= > >=`, or `match(l, r)`, `contains(l, r)`."""

    op: str
    left: Term
    right: Term
    span: Span = _span()


@immutable
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span = _span()


@immutable
class And:
    parts: tuple[Body, ...]
    span: Span = _span()


@immutable
class Or:
    parts: tuple[Body, ...]
    span: Span = _span()


Body: TypeAlias = Atom | Not | Constraint | Truth | And | Or

# ---------------------------------------------------------------------------------------------------------------- items


@immutable
class Attribute:
    name: str
    type: str
    span: Span = _span()
    type_span: Span = _span()


@immutable
class FunctionalDependency:
    """`choice-domain a, (b, c)`: each entry is one key."""

    keys: tuple[str, ...]
    span: Span = _span()


@immutable
class DebugDelta:
    """`debug_delta(relation)`: the rows of a relation with the iteration at which each came."""

    relation: str
    span: Span = _span()


@immutable
class RelationDecl:
    """One `.decl` with one or several names; qualifiers as written (`input`, `inline`, `eqrel`, ...). One with a `debug_delta`
    has no attributes of its own."""

    names: tuple[str, ...]
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    choice_domain: tuple[FunctionalDependency, ...] = ()
    debug_delta: DebugDelta | None = None
    span: Span = _span()
    name_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@immutable
class Branch:
    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@immutable
class SubtypeDecl:
    """`.type name <: base` (also the legacy `.type name`, `.number_type name`, `.symbol_type name`)."""

    name: str
    base: str
    span: Span = _span()


@immutable
class UnionDecl:
    """`.type name = a | b`; with one member an equivalence type."""

    name: str
    members: tuple[str, ...]
    span: Span = _span()


@immutable
class RecordDecl:
    """`.type name = [a: t, ...]`."""

    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@immutable
class AdtDecl:
    """`.type name = A { x: t } | B {}`."""

    name: str
    branches: tuple[Branch, ...]
    span: Span = _span()


@immutable
class FunctorDecl:
    """`.functor name(args): type [stateful]`."""

    name: str
    params: tuple[Attribute, ...]
    result: str
    stateful: bool = False
    span: Span = _span()


@immutable
class Directive:
    """`.input r, s(k=v, ...)`: `kind` is `input`, `output`, `printsize` or `limitsize`; values are unescaped text."""

    kind: Literal["input", "output", "printsize", "limitsize"]
    relations: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    span: Span = _span()
    relation_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@immutable
class Pragma:
    name: str
    value: str = ""
    span: Span = _span()


@immutable
class ExecutionPlan:
    """`.plan 0:(2,1), 1:(1,2)` after a rule."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    span: Span = _span()
    order_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@immutable
class Clause:
    """A fact (`body is None`) or a rule; several heads share one body."""

    heads: tuple[Atom, ...]
    body: Body | None = None
    plan: ExecutionPlan | None = None
    span: Span = _span()

    @property
    def is_rule(self) -> bool:
        return self.body is not None


@immutable
class Subsumption:
    """`r(x) <= r(y) :- body.`: the left atom goes when the right one holds."""

    dominated: Atom
    dominating: Atom
    body: Body
    plan: ExecutionPlan | None = None
    span: Span = _span()


@immutable
class ComponentType:
    """`name<t, u>` in `.init` and inheritance."""

    name: str
    params: tuple[str, ...] = ()
    span: Span = _span()


@immutable
class Override:
    relation: str
    span: Span = _span()


@immutable
class ComponentInit:
    """`.init instance = comp<t>`."""

    instance: str
    component: ComponentType
    span: Span = _span()


@immutable
class ComponentDecl:
    """`.comp name<t> : base<t> { items }`."""

    component: ComponentType
    bases: tuple[ComponentType, ...]
    items: tuple[Item, ...]
    span: Span = _span()


@immutable
class LatticeDecl:
    """`.lattice type<> { Bottom -> x, Lub -> @lub(_,_) ... }`."""

    type: str
    entries: tuple[tuple[str, Term], ...]
    span: Span = _span()


Item: TypeAlias = (
    RelationDecl
    | SubtypeDecl
    | UnionDecl
    | RecordDecl
    | AdtDecl
    | FunctorDecl
    | Directive
    | Pragma
    | Clause
    | Subsumption
    | ComponentDecl
    | ComponentInit
    | Override
    | LatticeDecl
)


@immutable
class Program:
    items: tuple[Item, ...]
    span: Span = _span()
