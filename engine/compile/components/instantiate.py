"""The items of a program with those of its instances in the places of their `.init`s."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dlog.engine.compile.components.declared import declared
from dlog.engine.compile.components.instances import Instance, Instances, Layer
from dlog.engine.compile.components.renaming import renamed
from dlog.engine.compile.problems import Problems
from dlog.grammar.source import Source
from dlog.grammar.syntax import Clause, ComponentDecl, ComponentInit, Item, Override, Program

_OF_COMPONENTS = frozenset({ComponentDecl, ComponentInit, Override})


def instantiate(program: Program, source: Source) -> Program:
    """
    .comp C<T> { .decl r(x: T)  r(x) :- s(x). }
    .init c = C<number>             ->   .decl c.r(x: number)  c.r(x) :- s(x).

    Raises DlogError for components, parameters and overrides that are none, and for instances without end.
    """
    if not any(type(item) in _OF_COMPONENTS for item in program.items):
        return program
    problems = Problems(source)
    instance = Instances(problems).outermost(declared(program.items, problems))
    problems.check()
    return Program(tuple(_items(instance)), span=program.span)


def _items(instance: Instance) -> Iterator[Item]:
    for layer in instance.layers:
        for item in layer.component.items:
            match item:
                case ComponentInit():
                    yield from _items(instance.inner[item.instance])
                case ComponentDecl() | Override():
                    pass
                case Clause() if layer.overridden:
                    kept = _not_overridden(item, layer)
                    if kept is not None:
                        yield renamed(kept, layer)
                case _:
                    yield renamed(item, layer) if instance.prefix else item


def _not_overridden(clause: Clause, layer: Layer) -> Clause | None:
    """What is left of a clause where a component that inherits its own replaces the clauses of some relations."""
    heads = tuple(h for h in clause.heads if h.name.split(".")[0] not in layer.overridden)
    if len(heads) == len(clause.heads):
        return clause
    return replace(clause, heads=heads) if heads else None
