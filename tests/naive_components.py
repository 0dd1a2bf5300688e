"""Components for the naive evaluator: every `.init` is replaced by the items of its component, from the inside outwards.

It is Souffle's definition, executed literally: the items of an instance are collected from its component and the bases of this,
then each mention of a relation, type or branch among them gets the instance's name in front; what is around the instance does
the same to what comes out. Nothing here is taken from the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from dlog.grammar import syntax
from dlog.grammar.syntax import (
    AdtDecl,
    ComponentDecl,
    ComponentInit,
    ComponentType,
    Item,
    Override,
    Program,
    RecordDecl,
    RelationDecl,
    SubtypeDecl,
    UnionDecl,
)

Names = Mapping[str, str]
Scope = tuple[ComponentDecl, ...]
"""The components around a place, the innermost first; the last one is the program."""

RELATIONS = {syntax.RelationDecl: "names", syntax.Directive: "relations", syntax.Atom: "name"}
TYPES = {
    syntax.Attribute: ("type",),
    syntax.SubtypeDecl: ("name", "base"),
    syntax.UnionDecl: ("name", "members"),
    syntax.RecordDecl: ("name",),
    syntax.AdtDecl: ("name",),
    syntax.Cast: ("type",),
}
BRANCHES = {syntax.Branch: "name", syntax.BranchTerm: "branch"}
Found = tuple[ComponentDecl, Scope, Names, set[str]]
"""A component of an instance: where it is declared, its parameters' types, and the relations of it that are overridden."""


def without_components(program: Program) -> Program:
    """The program whose instances are written out. It has no mistakes of components."""
    if not any(isinstance(item, ComponentDecl | ComponentInit) for item in program.items):
        return program
    root = ComponentDecl(ComponentType(""), (), program.items)
    return Program(tuple(_written_out(root, (), {}, set())))


def _written_out(component: ComponentDecl, scope: Scope, binding: Names, overridden: set[str]) -> Iterator[Item]:
    """The items of a component alone, without those of its bases, as they are inside of an instance."""
    for item in component.items:
        match item:
            case ComponentInit(instance=name, component=wanted):
                yield from _instance(name, wanted, (component, *scope), binding)
            case ComponentDecl() | Override():
                pass
            case syntax.Clause(heads=heads):
                kept = tuple(head for head in heads if head.name not in overridden)
                if kept:
                    yield _renamed(replace(item, heads=kept) if kept != heads else item, {}, binding, {})
            case _:
                yield _renamed(item, {}, binding, {})


def _instance(name: str, wanted: ComponentType, scope: Scope, binding: Names) -> list[Item]:
    components: list[Found] = []
    _collect(wanted, scope, binding, set(), components)
    items = [i for found in components for i in _written_out(*found)]
    relations = {n: f"{name}.{n}" for i in items if isinstance(i, RelationDecl) for n in i.names}
    types = {i.name: f"{name}.{i.name}" for i in items if isinstance(i, SubtypeDecl | UnionDecl | RecordDecl | AdtDecl)}
    branches = {b.name: f"{name}.{b.name}" for i in items if isinstance(i, AdtDecl) for b in i.branches}
    return [_renamed(item, relations, types, branches) for item in items]


def _collect(wanted: ComponentType, scope: Scope, binding: Names, overridden: set[str], found: list[Found]) -> None:
    """Adds a component and its bases; one that is there already, with the same types, only loses clauses."""
    component, around = _lookup(binding.get(wanted.name, wanted.name), scope, binding)
    own = dict(zip(component.component.params, (binding.get(a, a) for a in wanted.params), strict=True))
    overrides = {item.relation for item in component.items if isinstance(item, Override)}
    for base in component.bases:
        _collect(base, around, own, overridden | overrides, found)
    for other, _, names, lost in found:
        if other is component and names == own:
            lost |= overridden
            return
    found.append((component, around, own, set(overridden)))


def _lookup(name: str, scope: Scope, binding: Names) -> tuple[ComponentDecl, Scope]:
    """The component of a name in the innermost scope that has it, with the scope it is declared in."""
    for depth, place in enumerate(scope):
        found = _member(name, place, scope[depth:], binding if depth == 0 else {})
        if found is not None:
            return found
    raise AssertionError(f"there is no component {name}")


def _member(name: str, place: ComponentDecl, scope: Scope, binding: Names) -> tuple[ComponentDecl, Scope] | None:
    for item in place.items:
        if isinstance(item, ComponentDecl) and item.component.name == name:
            return item, scope
    for base in place.bases:
        component, around = _lookup(binding.get(base.name, base.name), scope[1:], {})
        found = _member(name, component, (component, *around), {})
        if found is not None:
            return found
    return None


def _renamed(node: Any, relations: Names, types: Names, branches: Names) -> Any:
    """A node with other names for relations, types and branches, wherever they are mentioned."""
    if isinstance(node, tuple):
        return tuple(_renamed(part, relations, types, branches) for part in node)
    if not is_dataclass(node):
        return node
    kind: type = type(node) if type(node) in (*RELATIONS, *TYPES, *BRANCHES) else node.__class__
    names = [f.name for f in fields(kind) if "span" not in f.name]
    changed = {name: _renamed(getattr(node, name), relations, types, branches) for name in names}
    if kind in RELATIONS:
        changed[RELATIONS[kind]] = _names(changed[RELATIONS[kind]], relations)
    for name in TYPES.get(kind, ()):
        changed[name] = _names(changed[name], types)
    if kind in BRANCHES:
        changed[BRANCHES[kind]] = _names(changed[BRANCHES[kind]], branches)
    return kind(**changed)


def _names(value: Any, names: Names) -> Any:
    return tuple(names.get(v, v) for v in value) if isinstance(value, tuple) else names.get(value, value)
