"""What the names of a program with components refer to: which of them are one, and are renamed together.

A name in a component is looked up in each of its instances, as the compiler does: among what the instance has itself or
inherits, then in the instance around it, and so on outwards. So one name may refer to several declarations, all of which are
one then. A component without instances is looked up as if there were one where it is declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Final

from dlog.dataclass import dataclass
from dlog.grammar.source import Span
from dlog.lsp.names import Occurrence, Role

MAX_INSTANCES: Final = 5_000
MAX_DEPTH: Final = 100
"""Instances of a text that is being written may have no end."""
_IN_INSTANCES: Final = frozenset({Role.RELATION, Role.TYPE, Role.BRANCH})


class _Endless(Exception):
    """More instances than `MAX_INSTANCES`, or deeper than `MAX_DEPTH`."""


@dataclass(frozen=True, slots=True)
class Part:
    """One of the names that `a.b.r` is put together from, or a plain name."""

    name: str
    role: Role
    span: Span
    declares: bool


def parts_of(used: Occurrence) -> list[Part]:
    """The parts of a name: all but the last are instances."""
    found: list[Part] = []
    start = used.span.start
    *instances, last = used.name.split(".")
    for name in (*instances, last):
        role = used.role if name is last and len(found) == len(instances) else Role.INSTANCE
        found.append(Part(name, role, Span(start, start + len(name)), used.declares))
        start += len(name) + 1
    return found


# ------------------------------------------------------------------------------------------------------ as they are declared


@dataclass(slots=True)
class _Reference:
    """A component, in `.init` or as a base, with its actual parameters."""

    component: Occurrence
    args: list[Occurrence]


@dataclass(eq=False, slots=True)
class _Component:
    """A component, or the program, as its text has it."""

    path: str
    outer: _Component | None
    declared: Part | None = None
    inner: dict[str, _Component] = field(default_factory=dict)
    params: dict[str, Part] = field(default_factory=dict)
    bases: list[_Reference] = field(default_factory=list)
    inits: list[tuple[Part, _Reference]] = field(default_factory=list)
    own: dict[tuple[Role, str], Part] = field(default_factory=dict)
    uses: list[Occurrence] = field(default_factory=list)

    def lookup(self, name: str) -> _Component | None:
        """The component that a name refers to here: the innermost scope first, inherited ones included."""
        scope: _Component | None = self
        while scope is not None:
            if (found := scope._member(name, set())) is not None:
                return found
            scope = scope.outer
        return None

    def _member(self, name: str, visited: set[str]) -> _Component | None:
        if name in self.inner or self.path in visited:
            return self.inner.get(name)
        visited.add(self.path)
        bases = (self.outer.lookup(b.component.name) for b in self.bases if self.outer is not None)
        members = (base._member(name, visited) for base in bases if base is not None)
        return next((member for member in members if member is not None), None)


def _components(names: Sequence[Occurrence]) -> dict[str, _Component]:
    """All components by path; that of the program is empty."""
    found = {"": _Component("", None)}
    for name in names:
        if name.role is Role.COMPONENT and name.declares:
            outer = found[name.within]
            path = f"{name.within}.{name.name}" if name.within else name.name
            found[path] = outer.inner[name.name] = _Component(path, outer, parts_of(name)[0])
    for statement, group in _statements(names).items():
        _note(group, found, statement)
    return found


def _statements(names: Sequence[Occurrence]) -> dict[tuple[Span, str], list[Occurrence]]:
    """The names by statement and component. The header of a component has names around it and names within."""
    found: dict[tuple[Span, str], list[Occurrence]] = {}
    for name in names:
        found.setdefault((name.statement, name.within), []).append(name)
    return found


def _note(group: list[Occurrence], components: Mapping[str, _Component], statement: tuple[Span, str]) -> None:
    """Notes what the names of a statement, or of the header of a component, say."""
    component = components.get(statement[1])
    if component is None:
        return
    reference: _Reference | None = None
    instance: Part | None = None
    for name in group:
        match name.role:
            case Role.COMPONENT if not name.declares:
                reference = _Reference(name, [])
                if instance is None:
                    component.bases.append(reference)
                else:
                    component.inits.append((instance, reference))
            case Role.INSTANCE if name.declares:
                instance = parts_of(name)[0]
            case Role.TYPE if reference is not None:
                reference.args.append(name)
            case Role.TYPE if name.declares and component.declared is not None and _in_header(name, component):
                component.params.setdefault(name.name, parts_of(name)[0])
            case role if role in _IN_INSTANCES and name.declares:
                component.own.setdefault((role, name.name), parts_of(name)[0])
            case role if role in _IN_INSTANCES:
                component.uses.append(name)
            case _:
                pass


def _in_header(name: Occurrence, component: _Component) -> bool:
    """Whether a type is a parameter of the component: those are declared in the statement that the component is."""
    assert component.declared is not None
    return name.statement.start <= component.declared.span.start < name.statement.end


# ------------------------------------------------------------------------------------------------------------------ instances


@dataclass(eq=False, slots=True)
class _Instance:
    """`layers` are the components that it is made of, each with the actual names of its parameters."""

    outer: _Instance | None
    depth: int = 0
    layers: list[tuple[_Component, Mapping[str, str]]] = field(default_factory=list)
    own: dict[tuple[Role, str], Part] = field(default_factory=dict)
    inner: dict[str, _Instance] = field(default_factory=dict)
    inits: dict[str, Part] = field(default_factory=dict)

    def resolve(self, parts: Sequence[Part]) -> list[Part] | None:
        """The declarations of the parts of a name, here or around."""
        scope: _Instance | None = self
        while scope is not None:
            if (found := scope._path(parts)) is not None:
                return found
            scope = scope.outer
        return None

    def _path(self, parts: Sequence[Part]) -> list[Part] | None:
        scope, found = self, list[Part]()
        for part in parts[:-1]:
            if part.name not in scope.inner:
                return None
            found.append(scope.inits[part.name])
            scope = scope.inner[part.name]
        last = scope.own.get((parts[-1].role, parts[-1].name))
        return None if last is None else [*found, last]


class Bindings:
    """The names of a text; those that are one are in one group."""

    def __init__(self, names: Sequence[Occurrence]) -> None:
        self._parts = {p.span.start: p for n in names for p in parts_of(n) if n.role in ROLES}
        self._groups = {start: start for start in self._parts}
        self._components = _components(names)
        self._created_paths: set[str] = set()
        self._resolved_starts: set[int] = set()
        """Where the names stand that refer to something in some instance."""
        self._count = 0
        self._settle_functors()
        self.is_endless = False
        try:
            self._settle()
        except _Endless:
            self.is_endless = True

    def _settle(self) -> None:
        self._add(self._components[""], {}, None)
        for path, component in self._components.items():
            if path not in self._created_paths:
                self._add(component, {}, self._around(component))

    def group(self, offset: int) -> list[Part]:
        """All names that are one with that at a place, in the order of the text; none where there is no such name."""
        touching = [p for p in self._parts.values() if p.span.start <= offset <= p.span.end]
        if not touching:
            return []
        root = self._root(touching[-1].span.start)
        return [self._parts[start] for start in sorted(self._parts) if self._root(start) == root]

    def unknown(self, group: Sequence[Part]) -> str:
        """A name that may be one of a group, but refers to nothing here, as where a component is a parameter; empty if there is
        none."""
        wanted = {(p.role, p.name) for p in group}
        uses = (used for component in self._components.values() for used in component.uses)
        lost = (u for u in uses if parts_of(u)[-1].span.start not in self._resolved_starts)
        return next((u.name for u in lost if not wanted.isdisjoint((p.role, p.name) for p in parts_of(u))), "")

    # -------------------------------------------------------------------------------------------------------------- groups

    def _root(self, start: int) -> int:
        while self._groups[start] != start:
            start = self._groups[start]
        return start

    def _one(self, left: Part, right: Part) -> None:
        a, b = self._root(left.span.start), self._root(right.span.start)
        self._groups[max(a, b)] = min(a, b)

    def _settle_functors(self) -> None:
        """A functor has its name everywhere, wherever it is declared."""
        first: dict[str, Part] = {}
        for part in self._parts.values():
            if part.role is Role.FUNCTOR:
                self._one(first.setdefault(part.name, part), part)

    # ----------------------------------------------------------------------------------------------------------- instances

    def _around(self, component: _Component) -> _Instance | None:
        """An instance of what is around a component that has no instances itself."""
        return None if component.outer is None else self._bare(component.outer)

    def _bare(self, component: _Component) -> _Instance:
        made = _Instance(None if component.outer is None else self._bare(component.outer))
        self._add_layer(component, {}, made)
        return made

    def _add(self, component: _Component, binding: Mapping[str, str], outer: _Instance | None) -> None:
        made = self._create(component, binding, outer)
        for instance in _below(made):
            for layer, bound in instance.layers:
                self._resolve(layer, bound, instance)

    def _create(self, component: _Component, binding: Mapping[str, str], outer: _Instance | None) -> _Instance:
        self._count += 1
        depth = 0 if outer is None else outer.depth + 1
        if self._count > MAX_INSTANCES or depth > MAX_DEPTH:
            raise _Endless
        made = _Instance(outer, depth)
        self._add_layer(component, binding, made)
        return made

    def _add_layer(self, component: _Component, binding: Mapping[str, str], instance: _Instance) -> None:
        if any(component is other for other, _ in instance.layers) or len(instance.layers) > MAX_INSTANCES:
            return
        self._created_paths.add(component.path)
        instance.layers.append((component, binding))
        for base in component.bases:
            found = (component.outer or component).lookup(binding.get(base.component.name, base.component.name))
            if found is not None:
                self._add_layer(found, _actual_names(found, base, binding), instance)
        for key, part in component.own.items():
            self._one(instance.own.setdefault(key, part), part)
        for part, reference in component.inits:
            instance.inits.setdefault(part.name, part)
            found = component.lookup(binding.get(reference.component.name, reference.component.name))
            if found is not None and part.name not in instance.inner:
                instance.inner[part.name] = self._create(found, _actual_names(found, reference, binding), instance)

    def _resolve(self, component: _Component, binding: Mapping[str, str], instance: _Instance) -> None:
        """Joins the names that stand in a component with what they refer to in one of its instances."""
        for used in component.uses:
            self._refer(used, component, instance)
        for reference in (*component.bases, *(reference for _, reference in component.inits)):
            (part,) = parts_of(reference.component)[-1:]
            scope = component if reference not in component.bases else component.outer or component
            self._name_component(part, component, scope)
            for argument in reference.args:
                if not self._refer(argument, component, instance):
                    self._name_component(parts_of(argument)[-1], component, scope)

    def _refer(self, used: Occurrence, component: _Component, instance: _Instance) -> bool:
        parts = parts_of(used)
        if used.role is Role.TYPE and used.name in component.params:
            self._one(parts[0], component.params[used.name])
            self._resolved_starts.add(parts[0].span.start)
            return True
        found = instance.resolve(parts)
        if found is not None:
            self._resolved_starts.add(parts[-1].span.start)
        for part, declared in zip(parts, found or (), strict=False):
            self._one(part, declared)
        return found is not None

    def _name_component(self, part: Part, component: _Component, scope: _Component) -> None:
        """A component is named: one that is declared, or a parameter that stands for one."""
        if part.name in component.params:
            self._one(part, component.params[part.name])
        elif (found := scope.lookup(part.name)) is not None and found.declared is not None:
            self._one(part, found.declared)


ROLES: Final = _IN_INSTANCES | {Role.FUNCTOR, Role.COMPONENT, Role.INSTANCE}
"""What is looked up in components; variables and attributes are those of their statement."""


def _actual_names(component: _Component, reference: _Reference, binding: Mapping[str, str]) -> dict[str, str]:
    """The actual names of a component's parameters."""
    actual = [binding.get(a.name, a.name) for a in reference.args]
    return dict(zip(component.params, actual, strict=False))


def _below(instance: _Instance) -> Iterator[_Instance]:
    yield instance
    for inner in instance.inner.values():
        yield from _below(inner)
