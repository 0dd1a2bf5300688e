"""Instances of components: which relations, types and branches each has, and what a name in it refers to.

    .comp Base<T> { .decl r(x: T) }
    .comp Top : Base<number> { .decl s(x: number)  .init deep = Base<symbol> }
    .init top = Top        ->   instance `top.` with r, s, deep.r; two layers: Base with T = number, Top

As in Souffle a type parameter is replaced by its actual type first. Then a name refers to what the instance itself declares or
inherits, else to what the instance around it has, and so on outwards, else to what the program has. A component that is
inherited over several ways (a diamond) is one layer, with the same types; its clauses for a relation are replaced if one of the
ways does so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.compile.components.checks import check_arguments, unknown_component
from dlog.engine.compile.components.declarations import NO_BINDING, Component
from dlog.engine.compile.problems import Label, Problems
from dlog.grammar.syntax import AdtDecl, ComponentInit, ComponentType, Item, RecordDecl, RelationDecl, SubtypeDecl, UnionDecl

MAX_DEPTH: Final = 100
"""Instances and bases inside each other before a program is taken to have no end (Souffle's limit)."""
MAX_INSTANCES: Final = 20_000
"""Instances of one program: components of two instances each double them at every level."""


@dataclass(eq=False, slots=True)
class Instance:
    """`prefix` ends in a dot; names are without it, those of inner instances have theirs (`deep.r`)."""

    prefix: str
    outer: Instance | None
    layers: list[Layer] = field(default_factory=list)
    inner: dict[str, Instance] = field(default_factory=dict)
    inits: dict[str, ComponentInit] = field(default_factory=dict)
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)
    _relation_names: dict[str, str] = field(default_factory=dict)

    def relation(self, name: str) -> str:
        """The full name of the relation that a name refers to."""
        full = self._relation_names.get(name)
        if full is None:
            scope: Instance | None = self
            while scope is not None and name not in scope.relations:
                scope = scope.outer
            full = self._relation_names[name] = name if scope is None else scope.prefix + name
        return full

    def type(self, name: str) -> str:
        scope: Instance | None = self
        while scope is not None and name not in scope.types:
            scope = scope.outer
        return name if scope is None else scope.prefix + name

    def branch(self, name: str) -> str:
        scope: Instance | None = self
        while scope is not None and name not in scope.branches:
            scope = scope.outer
        return name if scope is None else scope.prefix + name


@dataclass(eq=False, slots=True)
class Layer:
    """A component's part of an instance, its own or that of a base. `binding` has the actual types of its parameters."""

    component: Component
    instance: Instance
    binding: Mapping[str, str]
    overridden: set[str]
    """Relations whose clauses a component that inherits this one replaces."""

    def type(self, name: str) -> str:
        return self.instance.type(self.binding.get(name, name))


class Instances:
    """Creates instances from the outside inwards. Mistakes go to `problems`; a program without end is refused at once."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.count = 0

    def of_program(self, program: Component) -> Instance:
        """The program as an instance: its names have no prefix."""
        instance = Instance("", None)
        self._add_layer(Layer(program, instance, NO_BINDING, set()), 0)
        return instance

    def _create(self, init: ComponentInit, layer: Layer, depth: int) -> Instance | None:
        """The instance of an `.init` that is written in a layer."""
        component, binding = self._refer(init.component, layer, layer.component)
        if component is None:
            return None
        self.count += 1
        self._check_end(init.component, depth)
        instance = Instance(f"{layer.instance.prefix}{init.instance}.", layer.instance)
        self._add_layer(Layer(component, instance, binding, set()), depth)
        return instance

    def _check_end(self, component: ComponentType, depth: int) -> None:
        if depth > MAX_DEPTH or self.count > MAX_INSTANCES:
            deep = f"instances of components are more than {MAX_DEPTH} deep: does `{component.name}` contain itself?"
            message = deep if depth > MAX_DEPTH else f"there are more than {MAX_INSTANCES:,} instances of components"
            self.problems.add("endless-components", message, Label(component.span))
            self.problems.check()

    def _add_layer(self, layer: Layer, depth: int) -> None:
        """Adds a layer to its instance, those of its bases before it."""
        component, instance = layer.component, layer.instance
        same = next((other for other in instance.layers if other.component is component), None)
        if same is not None and layer.overridden <= same.overridden:
            return
        overridden = layer.overridden | component.overrides
        for base in component.bases:
            found, binding = self._refer(base, layer, component.outer or component)
            if found is not None:
                self._check_end(base, depth)
                self._check_binding(base, found, instance, binding)
                self._add_layer(Layer(found, instance, binding, overridden), depth + 1)
        if same is not None:
            same.overridden |= layer.overridden
            return
        instance.layers.append(layer)
        for item in component.items:
            self._declare(item, layer, depth)

    def _check_binding(self, base: ComponentType, component: Component, instance: Instance, binding: Mapping[str, str]) -> None:
        """A component that is inherited twice has the same types."""
        other = next((layer for layer in instance.layers if layer.component is component), None)
        if other is not None and other.binding != binding:
            first, second = (f"`{component.name}<{', '.join(b.values())}>`" for b in (other.binding, binding))
            message = f"component `{component.name}` is inherited twice, as {first} and as {second}"
            self.problems.add("duplicate-base", message, Label(base.span))

    def _declare(self, item: Item, layer: Layer, depth: int) -> None:
        instance = layer.instance
        match item:
            case RelationDecl(names=names):
                instance.relations.update(names)
            case AdtDecl(name=name, branches=branches):
                instance.types.add(layer.binding.get(name, name))
                instance.branches.update(b.name for b in branches)
            case SubtypeDecl(name=name) | UnionDecl(name=name) | RecordDecl(name=name):
                instance.types.add(layer.binding.get(name, name))
            case ComponentInit():
                self._add_inner(item, layer, depth)
            case _:
                pass

    def _add_inner(self, init: ComponentInit, layer: Layer, depth: int) -> None:
        instance, name = layer.instance, init.instance
        if name in instance.inits:
            first = Label(instance.inits[name].span, "first here")
            self.problems.add("duplicate-instance", f"there are two instances `{name}`", Label(init.span), first)
            return
        instance.inits[name] = init
        inner = self._create(init, layer, depth + 1)
        if inner is None:
            return
        instance.inner[name] = inner
        instance.relations.update(f"{name}.{n}" for n in inner.relations)
        instance.types.update(f"{name}.{n}" for n in inner.types)
        instance.branches.update(f"{name}.{n}" for n in inner.branches)

    def _refer(self, wanted: ComponentType, layer: Layer, scope: Component) -> tuple[Component | None, Mapping[str, str]]:
        """The component that an `.init` or a base in a layer refers to, looked up in a scope, and its binding."""
        name = layer.binding.get(wanted.name, wanted.name)
        component = scope.lookup(name, layer.binding if scope is layer.component else NO_BINDING)
        if component is None:
            unknown_component(wanted, scope, self.problems, name)
            return None, NO_BINDING
        if not check_arguments(wanted, component, self.problems):
            return None, NO_BINDING
        actual = (layer.binding.get(a, a) for a in wanted.params)
        return component, dict(zip(component.type.params, actual, strict=True))
