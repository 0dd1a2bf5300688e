"""Instances of components: which relations, types and branches each has, and what a name in it means.

    .comp Base<T> { .decl r(x: T) }
    .comp Top : Base<number> { .decl s(x: number)  .init deep = Base<symbol> }
    .init top = Top        ->   instance `top.` with r, s, deep.r; two layers: Base with T = number, Top

A name means, as in Souffle: the type that its parameter is given; what the instance itself declares or inherits; what the
instance that holds its `.init` has, and so on outwards; else what the program has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dlog.engine.compile.components.declared import Component, check_arguments, unknown_component
from dlog.engine.compile.problems import Label, Problems
from dlog.grammar.syntax import AdtDecl, ComponentInit, ComponentType, Item, RecordDecl, RelationDecl, SubtypeDecl, UnionDecl

DEEPEST: Final = 100
"""Instances in instances before a program is taken to have no end (Souffle's limit)."""
MOST: Final = 100_000
"""Instances of one program: components of two instances each double them at every level."""


@dataclass(eq=False, slots=True)
class Instance:
    """`prefix` ends in a dot; names are without it, those of inner instances have theirs (`deep.r`)."""

    prefix: str
    layers: list[Layer] = field(default_factory=list)
    inner: dict[str, Instance] = field(default_factory=dict)
    inits: dict[str, ComponentInit] = field(default_factory=dict)
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    branches: set[str] = field(default_factory=set)


@dataclass(eq=False, slots=True)
class Layer:
    """A component's part of an instance, its own or that of a base. `given` are its parameters' types and where these were
    written, `outer` is what inherits it or, for the instance's own component, the layer with the `.init`."""

    component: Component
    instance: Instance
    given: dict[str, tuple[str, Layer]]
    outer: Layer | None
    overridden: frozenset[str] = frozenset()
    """Relations whose clauses a component that inherits this one replaces."""

    def relation(self, name: str) -> str:
        return self._outward(name, lambda instance: instance.relations)

    def branch(self, name: str) -> str:
        return self._outward(name, lambda instance: instance.branches)

    def type(self, name: str) -> str:
        layer: Layer | None = self
        while layer is not None:
            if name in layer.given:
                name, layer = layer.given[name]
            elif name in layer.instance.types:
                return layer.instance.prefix + name
            else:
                layer = layer.outer
        return name

    def _outward(self, name: str, names: Callable[[Instance], set[str]]) -> str:
        layer: Layer | None = self
        while layer is not None:
            if name in names(layer.instance):
                return layer.instance.prefix + name
            layer = layer.outer
        return name


class Instances:
    """Makes them from the outside inwards; mistakes go to `problems`, a program without end is refused at once."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.count = 0

    def outermost(self, program: Component) -> Instance:
        """The program as an instance: its names have no prefix."""
        instance = Instance("")
        self._fill(Layer(program, instance, {}, None), 0)
        return instance

    def _made(self, init: ComponentInit, outer: Layer, depth: int) -> Instance | None:
        component, given = self._meant(init.component, outer, outer.component)
        if component is None:
            return None
        self._check_end(init, depth)
        instance = Instance(f"{outer.instance.prefix}{init.instance}.")
        self._fill(Layer(component, instance, given, outer), depth)
        return instance

    def _check_end(self, init: ComponentInit, depth: int) -> None:
        self.count += 1
        if depth > DEEPEST or self.count > MOST:
            size = f"more than {DEEPEST} deep" if depth > DEEPEST else f"more than {MOST:,}"
            message = f"instances of components are {size}: does `{init.component.name}` make itself?"
            self.problems.add("endless-components", message, Label(init.span))
            self.problems.check()

    def _fill(self, layer: Layer, depth: int) -> None:
        """Adds a layer to its instance, those of its bases before it."""
        component, instance = layer.component, layer.instance
        overridden = layer.overridden | component.overridden
        for base in component.bases:
            found, given = self._meant(base, layer, component.outer or component)
            if found is not None:
                self._fill(Layer(found, instance, given, layer, overridden), depth)
        instance.layers.append(layer)
        for item in component.items:
            self._declare(item, layer, depth)

    def _declare(self, item: Item, layer: Layer, depth: int) -> None:
        instance = layer.instance
        match item:
            case RelationDecl(names=names):
                instance.relations.update(names)
            case AdtDecl(name=name, branches=branches):
                instance.types.add(name)
                instance.branches.update(b.name for b in branches)
            case SubtypeDecl(name=name) | UnionDecl(name=name) | RecordDecl(name=name):
                instance.types.add(name)
            case ComponentInit():
                self._add_inner(item, layer, depth)
            case _:
                pass

    def _add_inner(self, init: ComponentInit, layer: Layer, depth: int) -> None:
        instance, name = layer.instance, init.instance
        if name in instance.inits:
            first = Label(instance.inits[name].span, "first here")
            self.problems.add("duplicate-instance", f"`{instance.prefix}{name}` is made twice", Label(init.span), first)
            return
        instance.inits[name] = init
        inner = self._made(init, layer, depth + 1)
        if inner is None:
            return
        instance.inner[name] = inner
        instance.relations.update(f"{name}.{n}" for n in inner.relations)
        instance.types.update(f"{name}.{n}" for n in inner.types)
        instance.branches.update(f"{name}.{n}" for n in inner.branches)

    def _meant(
        self, wanted: ComponentType, layer: Layer, scope: Component
    ) -> tuple[Component | None, dict[str, tuple[str, Layer]]]:
        """The component of an `.init` or a base written in a layer, and what its parameters are given."""
        name, at = wanted.name, layer
        while name in at.given:
            name, at = at.given[name]
            scope = at.component
        component = scope.found(name)
        if component is None:
            unknown_component(wanted, scope, self.problems)
            return None, {}
        if not check_arguments(wanted, component, self.problems):
            return None, {}
        return component, {p: (a, layer) for p, a in zip(component.type.params, wanted.params, strict=True)}
