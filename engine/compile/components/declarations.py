"""The components of a program as declared: which are inside which, and what the name of a component refers to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Final

from dlog.dataclass import dataclass
from dlog.grammar.source import Span
from dlog.grammar.syntax import ComponentDecl, ComponentInit, ComponentType, Item, Override

NO_BINDING: Final[Mapping[str, str]] = {}


@dataclass(eq=False, slots=True)
class Component:
    """A component and those declared in it. The program itself is the outermost one, without a name."""

    type: ComponentType
    bases: tuple[ComponentType, ...]
    items: tuple[Item, ...]
    outer: Component | None
    span: Span
    inner: dict[str, Component] = field(default_factory=dict)
    duplicates: list[ComponentDecl] = field(default_factory=list)
    """Further declarations with the name of an inner component."""
    overrides: frozenset[str] = field(init=False)
    """The relations whose inherited clauses it replaces."""
    _bases: tuple[Component, ...] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.overrides = frozenset(i.relation for i in self.items if isinstance(i, Override))

    @property
    def name(self) -> str:
        return self.type.name

    @property
    def inits(self) -> Iterator[ComponentInit]:
        return (item for item in self.items if isinstance(item, ComponentInit))

    def lookup(self, name: str, binding: Mapping[str, str] = NO_BINDING) -> Component | None:
        """The component that a name refers to inside this one: the innermost scope first, inherited components included.
        `binding` has the actual names of this component's parameters, which may be bases."""
        scope: Component | None = self
        while scope is not None:
            component = scope._member(name, binding if scope is self else NO_BINDING, set())
            if component is not None:
                return component
            scope = scope.outer
        return None

    def base(self, base: ComponentType, binding: Mapping[str, str] = NO_BINDING) -> Component | None:
        """The component that a base refers to: its name is looked up where this component is declared."""
        return None if self.outer is None else self.outer.lookup(binding.get(base.name, base.name))

    def _member(self, name: str, binding: Mapping[str, str], visited: set[Component]) -> Component | None:
        """The component of a name that is declared in this one or in a base of it."""
        if name in self.inner or self in visited:
            return self.inner.get(name)
        visited.add(self)
        for base in self.bases:
            component = self.base(base, binding)
            member = None if component is None else component._member(name, NO_BINDING, visited)
            if member is not None:
                return member
        return None

    @property
    def known_bases(self) -> tuple[Component, ...]:
        """The components that its bases refer to, without those that are parameters or unknown. All have been declared."""
        if self._bases is None:
            self._bases = tuple([found for base in self.bases if (found := self.base(base)) is not None])
        return self._bases

    def ancestors(self) -> list[Component]:
        """All components that this one inherits from; itself, too, if it does so over others. Bases that are parameters are
        not known here."""
        found: dict[Component, None] = {}
        waiting = [self]
        while waiting:
            component = waiting.pop()
            new = [base for base in component.known_bases if base not in found]
            found.update(dict.fromkeys(new))
            waiting += new
        return list(found)

    def has_open_base(self) -> bool:
        """Whether a parameter is a base of this component, or of one that it inherits from or is in."""
        own = any(base.name in c.type.params for c in (self, *self.ancestors()) for base in c.bases)
        return own or (self.outer is not None and self.outer.has_open_base())

    def visible_names(self) -> Iterator[str]:
        """The names of components that can be written here, for suggestions."""
        scope: Component | None = self
        while scope is not None:
            yield from scope.inner
            scope = scope.outer

    def descendants(self) -> Iterator[Component]:
        """The components inside this one, the inner ones of each behind it."""
        for component in self.inner.values():
            yield component
            yield from component.descendants()


def declare(items: tuple[Item, ...], span: Span) -> Component:
    """The program as the outermost component."""
    program = Component(ComponentType(""), (), items, None, span)
    _declare_inner(program)
    return program


def _declare_inner(component: Component) -> None:
    for item in component.items:
        if not isinstance(item, ComponentDecl):
            continue
        name = item.component.name
        if name in component.inner:
            component.duplicates.append(item)
        else:
            inner = Component(item.component, item.bases, item.items, component, item.span)
            component.inner[name] = inner
            _declare_inner(inner)
