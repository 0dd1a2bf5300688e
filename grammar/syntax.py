"""The syntax tree: what the text says, one frozen node per construct, each with its span.

Nothing is resolved here: names are strings, types are names, every term is as written. A node's `span` takes no part in
equality, so that `parse(print(tree)) == tree` is a law that can be stated directly.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal, TypeAlias

from dlog.dataclass import dataclass
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


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Wildcard:
    """The anonymous variable `_`."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Number:
    """An integer or float literal, as written (`0x1f`, `0b101`, `12u`, `1.5e3`, `127.0.0.1`); the checker decides its value."""

    text: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class String:
    """A symbol literal; `value` is unescaped."""

    value: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Nil:
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Counter:
    """`$` or `autoinc()`."""

    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RecordTerm:
    """`[a, b, c]`."""

    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class BranchTerm:
    """`$Branch(a, b)` of an algebraic data type; `args` is empty for `$Branch`."""

    branch: str
    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A functor application. Operators are calls too: name is the operator as written (`+`, `-`, `band`, `cat`, ...);
    unary minus is `Call("-", (x,))`. A user-defined functor `@f(x)` has the name `@f`."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Cast:
    """`as(x, T)`."""

    term: Term
    type: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AggregateTerm:
    """`count : { body }`, `sum x : { body }`, `min`, `max`, `mean`, or `@@user init x : { body }`."""

    op: str
    target: Term | None
    body: Body
    init: Term | None = None
    span: Span = _span()


Term: TypeAlias = Variable | Wildcard | Number | String | Nil | Counter | RecordTerm | BranchTerm | Call | Cast | AggregateTerm

# ----------------------------------------------------------------------------------------------------------------- body


@dataclass(frozen=True, slots=True)
class Atom:
    """`name(args)`; `name` may be qualified by components (`c.path`). `name@round(args)` is about a past `round`."""

    name: str
    args: tuple[Term, ...]
    span: Span = _span()
    round: int | None = None


@dataclass(frozen=True, slots=True)
class Not:
    """`!literal`; the literal is an atom, a constraint or a parenthesized body, as written."""

    body: Body
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Constraint:
    """`left op right` with op one of `= != < <= > >=`, or `match(l, r)`, `contains(l, r)`."""

    op: str
    left: Term
    right: Term
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Truth:
    """`true` or `false`."""

    value: bool
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Body, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Body, ...]
    span: Span = _span()


Body: TypeAlias = Atom | Not | Constraint | Truth | And | Or

# ---------------------------------------------------------------------------------------------------------------- items


@dataclass(frozen=True, slots=True)
class Attribute:
    name: str
    type: str
    span: Span = _span()
    type_span: Span = _span()


@dataclass(frozen=True, slots=True)
class FunctionalDependency:
    """`choice-domain a, (b, c)`: each entry is one key."""

    keys: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class DebugDelta:
    """`debug_delta(relation)`: the rows of a relation with the iteration at which each came."""

    relation: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Branch:
    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class SubtypeDecl:
    """`.type name <: base` (also the legacy `.type name`, `.number_type name`, `.symbol_type name`)."""

    name: str
    base: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class UnionDecl:
    """`.type name = a | b`; with one member an equivalence type."""

    name: str
    members: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class RecordDecl:
    """`.type name = [a: t, ...]`."""

    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class AdtDecl:
    """`.type name = A { x: t } | B {}`."""

    name: str
    branches: tuple[Branch, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class FunctorDecl:
    """`.functor name(args): type [stateful]`."""

    name: str
    params: tuple[Attribute, ...]
    result: str
    stateful: bool = False
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Directive:
    """`.input r, s(k=v, ...)`: `kind` is `input`, `output`, `printsize` or `limitsize`; values are unescaped text."""

    kind: Literal["input", "output", "printsize", "limitsize"]
    relations: tuple[str, ...]
    params: tuple[tuple[str, str], ...] = ()
    span: Span = _span()
    relation_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Pragma:
    name: str
    value: str = ""
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ExecutionPlan:
    """`.plan 0:(2,1), 1:(1,2)` after a rule."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    span: Span = _span()
    order_spans: tuple[Span, ...] = field(default=(), compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Clause:
    """A fact (`body is None`) or a rule; several heads share one body."""

    heads: tuple[Atom, ...]
    body: Body | None = None
    plan: ExecutionPlan | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Subsumption:
    """`r(x) <= r(y) :- body.`: the left atom goes when the right one holds."""

    dominated: Atom
    dominating: Atom
    body: Body
    plan: ExecutionPlan | None = None
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ComponentType:
    """`name<t, u>` in `.init` and inheritance."""

    name: str
    params: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class Override:
    relation: str
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ComponentInit:
    """`.init instance = comp<t>`."""

    instance: str
    component: ComponentType
    span: Span = _span()


@dataclass(frozen=True, slots=True)
class ComponentDecl:
    """`.comp name<t> : base<t> { items }`."""

    component: ComponentType
    bases: tuple[ComponentType, ...]
    items: tuple[Item, ...]
    span: Span = _span()


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Program:
    items: tuple[Item, ...]
    span: Span = _span()
