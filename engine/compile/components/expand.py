"""A program with the items of its instances in the place of their `.init`s."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from dlog.dataclass import dataclass
from dlog.engine.compile.components.checks import check_components
from dlog.engine.compile.components.declarations import Component, declare
from dlog.engine.compile.components.instances import Instance, Instances, Layer
from dlog.engine.compile.components.renaming import rename
from dlog.engine.compile.components.written_names import WrittenNames
from dlog.engine.compile.problems import Problems
from dlog.grammar.diagnostics import Diagnostic, DlogError, without_floods
from dlog.grammar.source import Source
from dlog.grammar.syntax import Clause, ComponentDecl, ComponentInit, Item, Override, Program, Subsumption

_COMPONENT_ITEMS = frozenset({ComponentDecl, ComponentInit, Override})


@dataclass(frozen=True, slots=True)
class Expansion:
    """`program` is without `components`, which are None if there were none before; diagnostics about it get the names that its
    author wrote."""

    program: Program
    components: Component | None = None
    names: WrittenNames | None = None

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Raises the DlogErrors of what runs inside with names as written, and no more of a kind than are of use."""
        try:
            yield
        except DlogError as error:
            found = error.diagnostics if self.names is None else self.names.errors(error.diagnostics)
            raise DlogError(without_floods(found)) from None

    def warnings(self, found: list[Diagnostic]) -> list[Diagnostic]:
        """Warnings about the program with names as written, each once for all instances of its place."""
        return found if self.names is None else self.names.warnings(found)


def expand(program: Program, source: Source) -> Expansion:
    """Raises DlogError for mistakes of components and their instances, and for instances without end."""
    if not any(type(item) in _COMPONENT_ITEMS for item in program.items):
        return Expansion(program)
    problems = Problems(source)
    root = declare(program.items, program.span)
    check_components(root, problems)
    instance = Instances(problems).of_program(root)
    problems.check()
    prefixes: dict[Component, list[str]] = {}
    items: list[Item] = []
    _add_items(instance, items, prefixes)
    return Expansion(Program(tuple(items), span=program.span), root, WrittenNames(prefixes))


def _add_items(instance: Instance, items: list[Item], prefixes: dict[Component, list[str]]) -> None:
    for layer in instance.layers:
        prefixes.setdefault(layer.component, []).append(instance.prefix)
        for item in layer.component.items:
            if type(item) is ComponentInit:
                _add_items(instance.inner[item.instance], items, prefixes)
            elif type(item) not in _COMPONENT_ITEMS:
                kept = _without_overridden(item, layer) if layer.overridden else item
                if kept is not None:
                    items.append(rename(kept, layer) if instance.prefix else kept)


def _without_overridden(item: Item, layer: Layer) -> Item | None:
    """What is left of an item where a component that inherits its own replaces the clauses of some relations."""
    match item:
        case Clause(heads=heads):
            kept = tuple(h for h in heads if h.name.split(".")[0] not in layer.overridden)
            return item if len(kept) == len(heads) else replace(item, heads=kept) if kept else None
        case Subsumption(dominated=head) if head.name.split(".")[0] in layer.overridden:
            return None
        case _:
            return item
