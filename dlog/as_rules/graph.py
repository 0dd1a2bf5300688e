"""What the graph of collections tells before any rule is written: who reads what, and what depends on which loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from dlog.dataflow.base import Base
from dlog.dataflow.collection import Variable
from dlog.dataflow.expressions import Column
from dlog.dataflow.scopes import Scope


def bare(collection: Base) -> Base:
    """The collection that has the same rows, columns of the same names, which this one is only brought from elsewhere."""
    while collection.definition.operator in ("enter", "leave", "select", "consolidate") or _is_same_map(collection):
        (collection,) = collection.definition.parts
    return collection


def _is_same_map(collection: Base) -> bool:
    definition = collection.definition
    if definition.operator != "map":
        return False
    chosen, _ = definition.arguments
    (part,) = definition.parts
    same = all(isinstance(made, Column) and made.name == name for name, made in chosen)
    return same and set(collection.schema.names) == set(part.schema.names)


def summands(collection: Base) -> Iterator[Base]:
    """The collections whose sum this one is."""
    found = bare(collection)
    if found.definition.operator == "concat":
        for part in found.definition.parts:
            yield from summands(part)
    else:
        yield found


def read_by(collection: Base) -> tuple[Base, ...]:
    """What a collection is made of; a variable of a loop of what it starts from and of its definition."""
    if isinstance(collection, Variable):
        return tuple(each for each in (collection.start, collection.meaning) if each is not None)
    return collection.definition.parts


class Graph:
    """The collections that some outputs need."""

    def __init__(self, outputs: Iterable[Base]) -> None:
        self.collections: list[Base] = []
        self.readers: Counter[int] = Counter()
        """How many others read a collection, by its identity without its ways into scopes and out of them."""
        self.loops: dict[int, list[Variable]] = {}
        """The variables that a collection defines."""
        waiting, seen = list(outputs), set()
        self.readers.update(id(bare(output)) for output in waiting)
        while waiting:
            collection = waiting.pop()
            if id(collection) in seen:
                continue
            seen.add(id(collection))
            self.collections.append(collection)
            if isinstance(collection, Variable) and collection.meaning is not None:
                self.loops.setdefault(id(bare(collection.meaning)), []).append(collection)
            parts = read_by(collection)
            waiting += parts
            if bare(collection) is collection:
                self.readers.update(id(bare(part)) for part in parts)
        self._reachable_variables = self._closed()

    def variables(self, collection: Base, scope: Scope) -> frozenset[Variable]:
        """The variables of loops around a scope that a collection there depends on."""
        around = set()
        within: Scope | None = scope
        while within is not None:
            around.add(within)
            within = within.parent
        return frozenset(v for v in self._reachable_variables[id(collection)] if v.scope in around)

    def _closed(self) -> dict[int, frozenset[Variable]]:
        """The variables that each collection is made of in the end, by its identity."""
        found: dict[int, frozenset[Variable]] = {id(each): frozenset() for each in self.collections}
        changes = True
        while changes:
            changes = False
            for each in reversed(self.collections):  # parts are found after what is made of them
                own = {each} if isinstance(each, Variable) else set()
                reached = frozenset(own.union(*(found[id(part)] for part in read_by(each))))
                changes |= reached != found[id(each)]
                found[id(each)] = reached
        return found
