"""Names that hide others: declarations in components, targets of aggregates, types that dlog has itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dlog.engine.compile.components.declarations import Component
from dlog.engine.compile.typing.types import CALENDAR
from dlog.engine.compile.walk import children, has_aggregate, parts, variables, walk
from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.rules import Domain
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    AdtDecl,
    AggregateTerm,
    Atom,
    Body,
    Call,
    Clause,
    Constraint,
    Item,
    RecordDecl,
    RelationDecl,
    SubtypeDecl,
    Term,
    UnionDecl,
    Variable,
)

# ---------------------------------------------------------------------------------------------------------- declarations


def shadowed_declarations(program: Component) -> Iterator[Diagnostic]:
    """The relations and types of components that have the name of one around them."""
    visible = {program: dict(_declared(program.items))}
    for component in program.descendants():  # those outside first
        assert component.outer is not None
        outside = visible[component.outer]
        if component.inner:
            visible[component] = outside | dict(_declared(component.items))
        for (kind, name), place in _declared(component.items):
            hidden = outside.get((kind, name))
            if hidden is not None:
                labels = (Label(place), Label(hidden, "this one is not seen there"))
                message = f"{kind} `{name}` of `{component.name}` hides the one outside"
                yield Diagnostic("shadowed-declaration", message, labels, ("rename one of them if both are meant",))


def _declared(items: Iterable[Item]) -> Iterator[tuple[tuple[str, str], Span]]:
    """What is declared, by its sort and name, and where."""
    for item in items:
        match item:
            case RelationDecl(names=names):
                yield from ((("relation", name), place) for name, place in zip(names, item.name_spans, strict=True))
            case SubtypeDecl() | UnionDecl() | RecordDecl() | AdtDecl():
                yield ("type", item.name), item.span
            case _:
                pass


def shadowed_dates(items: Iterable[Item]) -> Iterator[Diagnostic]:
    """Types that take the names of those of dates and times, in a program that has functors on these."""
    items = list(items)
    declared = (item for item in items if isinstance(item, SubtypeDecl | UnionDecl | RecordDecl | AdtDecl))
    types = [item for item in declared if item.name in CALENDAR]
    called = {domain for item in items if types and isinstance(item, Clause) for domain in _domains(item)}
    for item in types:
        if any(domain.value == item.name for domain in called):
            note = f"functors on dates and times give and take the predefined `{item.name}`"
            message = f"type `{item.name}` hides the predefined one"
            yield Diagnostic("shadowed-declaration", message, (Label(item.span),), (note,))


def _domains(clause: Clause) -> Iterator[Domain]:
    """What the functors that a clause calls are about."""
    for part in parts(clause):
        for node in walk(part):
            if isinstance(node, Call) and (row := find_functor(node.name, len(node.args))) is not None:
                yield from row.domains


# --------------------------------------------------------------------------------------------------------------- variables


def shadowed_variables(clause: Clause) -> Iterator[Diagnostic]:
    """The variables of aggregates' targets that have the name of another one outside: what is there does not bind them."""
    for aggregate, results in _aggregates(clause) if any(map(has_aggregate, parts(clause))) else ():
        if aggregate.target is None:
            continue
        own = {id(node) for node in walk(aggregate)}
        others = {v.name: v for part in parts(clause) for v in variables(part) if id(v) not in own}
        for name, variable in {v.name: v for v in variables(aggregate.target)}.items():
            if name in others and name not in results:
                labels = (Label(variable.span, "the aggregate's own"), Label(others[name].span, "another variable"))
                note = "a variable of the target ranges over all values: give it a name of its own, or restrict another one"
                yield Diagnostic("shadowed-variable", f"`{name}` in the target is not the `{name}` outside", labels, (note,))


def _aggregates(clause: Clause) -> Iterator[tuple[AggregateTerm, set[str]]]:
    """Every aggregate, with the variables that are its result: `x = min x : { e(x) }` hides nothing."""
    waiting: list[tuple[Term | Body | Atom, set[str]]] = [(part, set()) for part in reversed(parts(clause))]
    while waiting:
        node, results = waiting.pop()
        if isinstance(node, AggregateTerm):
            yield node, results
        equated: set[str] = set()
        if isinstance(node, Constraint) and node.op == "=":
            equated = {side.name for side in (node.left, node.right) if isinstance(side, Variable)}
        waiting += [(child, equated) for child in reversed(children(node))]
