"""The components of a program as declared: what is in which, what a name means where, what inherits from what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.grammar.syntax import ComponentDecl, ComponentType, Item, Override, RelationDecl


@dataclass(eq=False, slots=True)
class Component:
    """A component and those declared in it. The program itself is the outermost one, without a name."""

    type: ComponentType
    bases: tuple[ComponentType, ...]
    items: tuple[Item, ...]
    outer: Component | None
    inner: dict[str, Component] = field(default_factory=dict)

    @property
    def overridden(self) -> frozenset[str]:
        return frozenset(i.relation for i in self.items if isinstance(i, Override))

    def found(self, name: str) -> Component | None:
        """The component that a name means inside this one: the innermost scope first, inherited components included."""
        scope: Component | None = self
        while scope is not None:
            component = scope._own_or_inherited(name, [])
            if component is not None:
                return component
            scope = scope.outer
        return None

    def base(self, base: ComponentType) -> Component | None:
        """The component that the name of a base means: it is read where this one is declared."""
        return self.outer.found(base.name) if self.outer is not None else None

    def _own_or_inherited(self, name: str, seen: list[Component]) -> Component | None:
        if name in self.inner or self in seen:
            return self.inner.get(name)
        for base in filter(None, map(self.base, self.bases)):
            component = base._own_or_inherited(name, [*seen, self])
            if component is not None:
                return component
        return None

    def visible(self) -> Iterator[str]:
        """The names of components that can be written here, for suggestions."""
        scope: Component | None = self
        while scope is not None:
            yield from scope.inner
            scope = scope.outer


def declared(items: tuple[Item, ...], problems: Problems) -> Component:
    """The outermost component, with all mistakes of the declarations found."""
    root = Component(ComponentType(""), (), items, None)
    _enter(root, problems)
    for component in _all(root):
        _check_bases(component, problems)
    problems.check()  # what follows relies on there being no cycle
    for component in _all(root):
        _check_overrides(component, problems)
    return root


def _enter(component: Component, problems: Problems) -> None:
    for item in component.items:
        if not isinstance(item, ComponentDecl):
            continue
        name = item.component.name
        if name in component.inner:
            first = Label(component.inner[name].type.span, "first declared here")
            problems.add("duplicate-component", f"component `{name}` is declared twice", Label(item.component.span), first)
            continue
        inner = Component(item.component, item.bases, item.items, component)
        component.inner[name] = inner
        _enter(inner, problems)


def _all(component: Component) -> Iterator[Component]:
    for inner in component.inner.values():
        yield inner
        yield from _all(inner)


def _check_bases(component: Component, problems: Problems) -> None:
    for base in component.bases:
        found = component.base(base)
        if base.name in component.type.params:
            continue
        if found is None:
            unknown_component(base, component.outer or component, problems)
        else:
            check_arguments(base, found, problems)
    cycle = _cycle(component, [])
    if cycle and component is min(cycle, key=lambda c: c.type.span.start):
        names = " : ".join(c.type.name for c in (*cycle, cycle[0]))
        message = f"component `{component.type.name}` inherits from itself"
        problems.add("cyclic-inheritance", message, Label(component.type.span), notes=[names])


def _cycle(component: Component, path: list[Component]) -> list[Component]:
    """The components from this one back to itself over bases, if there is a way; `path` are those on the way so far."""
    if path and component is path[0]:
        return path
    if component in path:
        return []
    for base in filter(None, map(component.base, component.bases)):
        found = _cycle(base, [*path, component])
        if found:
            return found
    return []


def _inherited(component: Component) -> Iterator[Component]:
    for base in filter(None, map(component.base, component.bases)):
        yield base
        yield from _inherited(base)


def _check_overrides(component: Component, problems: Problems) -> None:
    open_bases = any(base.name in component.type.params for base in component.bases)
    for item in component.items:
        if not isinstance(item, Override) or open_bases:
            continue
        decls = [d for c in _inherited(component) for d in c.items if isinstance(d, RelationDecl) and item.relation in d.names]
        if not decls:
            message = f"`{item.relation}` is not inherited by `{component.type.name}`: there is nothing to override"
            known = [n for c in _inherited(component) for d in c.items if isinstance(d, RelationDecl) for n in d.names]
            problems.add("bad-override", message, Label(item.span), notes=[suggestion(item.relation, known)])
        elif "overridable" not in decls[0].qualifiers:
            message = f"`{item.relation}` cannot be overridden: it is not declared `overridable`"
            problems.add("bad-override", message, Label(item.span), Label(decls[0].span, "declared here"))


def unknown_component(wanted: ComponentType, scope: Component, problems: Problems) -> None:
    note = suggestion(wanted.name, scope.visible())
    problems.add("unknown-component", f"unknown component `{wanted.name}`", Label(wanted.span), notes=[note])


def check_arguments(wanted: ComponentType, component: Component, problems: Problems) -> bool:
    """Whether a component is given as many types as it has parameters."""
    expected, given = len(component.type.params), len(wanted.params)
    if expected != given:
        types = "1 type" if expected == 1 else f"{expected} types"
        message = f"component `{wanted.name}` takes {types}, but {given} given"
        problems.add("wrong-arity", message, Label(wanted.span), Label(component.type.span, "declared here"))
    return expected == given
