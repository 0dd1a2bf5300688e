"""Mistakes of component declarations, of those without an instance, too: unknown components, wrong numbers of types, cycles of
inheritance, overrides of relations that do not allow them, and clashes of names."""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.compile.components.declarations import Component
from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    AdtDecl,
    ComponentType,
    Override,
    RecordDecl,
    RelationDecl,
    SubtypeDecl,
    UnionDecl,
)


def check_components(program: Component, problems: Problems) -> None:
    """Raises DlogError with all mistakes of the declarations."""
    _check_duplicates(program, problems)
    _check_names(program, problems)
    cyclic = _perhaps_cyclic(program)
    for component in program.descendants():
        _check_duplicates(component, problems)
        _check_bases(component, cyclic, problems)
        _check_overrides(component, problems)
    for component in (program, *program.descendants()):
        for init in component.inits:
            _check_reference(init.component, component, component, problems)
    problems.check()


def _check_duplicates(component: Component, problems: Problems) -> None:
    for again in component.duplicates:
        name = again.component.name
        labels = (Label(again.component.span), Label(component.inner[name].type.span, "first declared here"))
        problems.add("duplicate-component", f"component `{name}` is declared twice", *labels)


def _check_names(program: Component, problems: Problems) -> None:
    """At the top level, components, instances, relations and types have one space of names."""
    known: dict[str, tuple[str, Span]] = {}
    for item in program.items:
        match item:
            case RelationDecl(names=names):
                known.update((name, ("relation", item.span)) for name in names)
            case SubtypeDecl(name=name) | UnionDecl(name=name) | RecordDecl(name=name) | AdtDecl(name=name):
                known[name] = ("type", item.span)
            case _:
                pass
    uses = [(component.name, "component", component.type.span) for component in program.inner.values()]
    uses += [(init.instance, "instance", init.span) for init in program.inits]
    for name, kind, span in uses:
        other, place = known.setdefault(name, (kind, span))
        if other != kind:
            labels = (Label(span), Label(place, f"the {other} is declared here"))
            problems.add("name-clash", f"`{name}` names both {_article(kind)} and {_article(other)}", *labels)


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# ------------------------------------------------------------------------------------------------------------ inheritance


def _perhaps_cyclic(program: Component) -> set[Component]:
    """The components that are left when those without bases go, then those without bases that are left, and so on."""
    derived: dict[Component, list[Component]] = {}
    count: dict[Component, int] = {}
    for component in program.descendants():
        count[component] = len(component.known_bases)
        for base in component.known_bases:
            derived.setdefault(base, []).append(component)
    waiting = [component for component, bases in count.items() if not bases]
    for gone in waiting:
        for component in derived.get(gone, ()):
            count[component] -= 1
            if not count[component]:
                waiting.append(component)
    return count.keys() - set(waiting)


def _check_bases(component: Component, cyclic: set[Component], problems: Problems) -> None:
    """`cyclic` are those that may inherit from themselves; those of a circle without branches go, as one look tells of it."""
    for base in component.bases:
        _check_reference(base, component, component.outer or component, problems)
    cycle = _cycle(component) if component in cyclic else []
    if not cycle:
        return
    first = min(cycle, key=lambda c: c.type.span.start)
    alone = all(len(c.known_bases) == 1 for c in cycle)
    if alone:
        cyclic.difference_update(cycle)
    if alone or component is first:
        at = cycle.index(first)
        names = " : ".join(c.name for c in (*cycle[at:], *cycle[:at], first))
        message = f"component `{first.name}` inherits from itself"
        problems.add("cyclic-inheritance", message, Label(first.type.span), notes=[names])


def _cycle(component: Component) -> list[Component]:
    """A shortest way over bases from a component that inherits from itself to its last base before it; empty from others."""
    before: dict[Component, Component | None] = {component: None}
    waiting = [component]
    for at in waiting:
        if component in at.known_bases:
            way, step = [at], before[at]
            while step is not None:
                way.append(step)
                step = before[step]
            return way[::-1]
        new = [base for base in at.known_bases if base not in before]
        before.update(dict.fromkeys(new, at))
        waiting += dict.fromkeys(new)
    return []


def _check_reference(wanted: ComponentType, component: Component, scope: Component, problems: Problems) -> None:
    """A component that is named in `component` and looked up in `scope`. What a parameter stands for is not known here."""
    if wanted.name in component.type.params:
        return
    found = scope.lookup(wanted.name)
    if found is not None:
        check_arguments(wanted, found, problems)
    elif not scope.has_open_base():
        unknown_component(wanted, scope, problems)


def unknown_component(wanted: ComponentType, scope: Component, problems: Problems, name: str = "") -> None:
    """`name` is the component that a parameter stands for."""
    name = name or wanted.name
    meaning = f"`{wanted.name}` stands for `{name}` here" if name != wanted.name else ""
    notes = [suggestion(name, scope.visible_names()), meaning]
    problems.add("unknown-component", f"unknown component `{name}`", Label(wanted.span), notes=notes)


def check_arguments(wanted: ComponentType, component: Component, problems: Problems) -> bool:
    """Whether a component gets as many types as it has parameters."""
    expected, actual = len(component.type.params), len(wanted.params)
    if expected != actual:
        takes = "no types" if expected == 0 else "1 type" if expected == 1 else f"{expected} types"
        message = f"component `{component.name}` takes {takes}, but gets {actual or 'none'}"
        problems.add("wrong-arity", message, Label(wanted.span), Label(component.type.span, "declared here"))
    return expected == actual


# -------------------------------------------------------------------------------------------------------------- overriding


def _check_overrides(component: Component, problems: Problems) -> None:
    if not component.overrides:
        return
    own = _relations(component)
    inherited = {name: decl for c in component.ancestors() if c is not component for name, decl in _relations(c).items()}
    for item in component.items:
        if not isinstance(item, Override):
            continue
        name = item.relation
        if name in own:
            message = f"`{name}` is declared in `{component.name}` itself: there is nothing to override"
            problems.add("bad-override", message, Label(item.span), Label(own[name].span, "declared here"))
        elif name in inherited and "overridable" not in inherited[name].qualifiers:
            message = f"`{name}` cannot be overridden: it is not declared `overridable`"
            problems.add("bad-override", message, Label(item.span), Label(inherited[name].span, "declared here"))


def unused_overrides(program: Component) -> Iterator[Diagnostic]:
    """A warning for each override of a relation that its component does not inherit."""
    for component in (c for c in program.descendants() if c.overrides):
        inherited = {name for ancestor in component.ancestors() for name in _relations(ancestor)}
        for item in component.items if not component.has_open_base() else ():
            if isinstance(item, Override) and item.relation not in inherited:
                message = f"`{component.name}` inherits no relation `{item.relation}`: there is nothing to override"
                guess = suggestion(item.relation, inherited)
                yield Diagnostic("unused-override", message, (Label(item.span),), (guess,) if guess else ())


def _relations(component: Component) -> dict[str, RelationDecl]:
    return {name: item for item in component.items if isinstance(item, RelationDecl) for name in item.names}
