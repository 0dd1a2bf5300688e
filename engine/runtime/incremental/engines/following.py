"""How the parts of a program go on with another one (`Layered`): a part that is as it was keeps its engine, one that has other
rules an engine that follows (`Maintained`), and only the rest begins without rows.

Whoever has rows is told in the first commit what has changed in those that it reads, all others get all of them. That commit
advances what both programs share: taking it back is to derive all of the old program anew, which is rare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Program
from dlog.engine.plan.incremental.layers import Part
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.timed import Fed, Rows
from dlog.engine.runtime.incremental.plan_changes.state_reuse import rules_shape
from dlog.engine.values.differences import difference, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined
from dlog.grammar.source import NOWHERE


@dataclass(slots=True)
class Layer:
    """A part, its engine, and the last commit that it had a share in."""

    part: Part
    engine: RoundsEngine
    fed: Fed | None = None
    """The engine, where rounds feed it."""
    committed: int = 0


@dataclass(slots=True)
class Before:
    """The engine that another one goes on from, as that sees it: its program and layers, and how to read it."""

    program: Program
    layers: Sequence[Layer]
    table: Callable[[str], Table]
    external: Callable[[str], Table]


class Following:
    """What the layers of an engine take over, until its first commit is over."""

    def __init__(self, before: Before, parts: Sequence[Part], build: Callable[[Part, Maintained | None], Layer]) -> None:
        """`build` makes a layer, perhaps with an engine that follows another one."""
        self.before = before
        self.followed: list[tuple[Layer, Maintained]] = []
        """Layers of before, and the engines that follow theirs."""
        self.layers: list[Layer] = []
        self.inherited = frozenset(self._inherited(parts))
        """The relations whose external rows are those of before."""
        self._shared: set[int] = set()
        """The layers, by address, that are those of before;"""
        self._has: dict[int, frozenset[str]] = {}
        """and by address, the relations whose rows the engine of another one has."""
        self._external: dict[str, Table] = {}
        self._sources: dict[str, Rows] = {}
        known: set[str] = set()
        waiting = [*before.layers]
        for part in parts:
            old = _match(part, waiting)
            if old is not None:
                waiting.remove(old)
                if not known.issuperset(set(part.reads) & set(old.part.reads)):
                    old = None
            if old is not None and _is_alike(part, old.part):
                self._shared.add(id(old))
                self.layers.append(old)
                known |= part.owns
                continue
            followed = old.engine if old is not None and type(old.engine) is Maintained and part.why is None else None
            layer = build(part, followed if followed is not None and followed.has_rows else None)
            self.layers.append(layer)
            self._has[id(layer)] = layer.engine.inherited if layer.fed is None else frozenset()
            if old is not None and followed is not None and self._has[id(layer)]:
                assert isinstance(layer.engine, Maintained)
                self.followed.append((old, layer.engine))
                known |= part.owns

    def _inherited(self, parts: Sequence[Part]) -> Iterator[str]:
        """The relations that take rows from outside, and did with the same columns."""
        was = {name for layer in self.before.layers for name in layer.part.inputs}
        for name, relation in ((name, part.program.relations[name]) for part in parts for name in part.inputs):
            if name in was and self.before.program.relations[name].kinds == relation.kinds:
                yield name

    # -------------------------------------------------------------------------------------------------- the first commit

    def begin(self) -> None:
        """Reads what is to be read of before, as long as it is as it was."""
        for layer in self.layers:
            if not self.is_new(layer):
                continue
            for name in self.inherited.intersection(layer.part.inputs).difference(self._has[id(layer)]):
                self._external[name] = self.before.external(name)
            fed = layer.fed
            if fed is not None and fed.name in self.before.program.timed:
                table = self.before.table(fed.timed.source)
                self._sources[fed.name] = tuple(words(column) for column in table.columns), table.rows

    def is_new(self, layer: Layer) -> bool:
        """Whether a layer is none of those of before."""
        return id(layer) not in self._shared

    def source_of(self, fed: Fed) -> Rows | None:
        """The rows of what a new relation follows that had come, if it was there before."""
        return self._sources.get(fed.name)

    def given(self, layer: Layer, given: Mapping[str, Updates], round: int) -> dict[str, Updates]:
        """The external rows that come for a part."""
        found = {name: given[name] for name in layer.part.inputs if name in given}
        if self.is_new(layer):
            for name in self._external.keys() & set(layer.part.inputs) - self._has[id(layer)]:
                rows = all_of(self._external[name], round)
                found[name] = joined([rows, found[name]]) if name in found else rows
        return {name: updates for name, updates in found.items() if updates.rows}

    def has(self, layer: Layer, relation: str) -> bool:
        """Whether the engine of a part has the rows of a relation as they were before."""
        return not self.is_new(layer) or relation in self._has[id(layer)]

    def changes(self, owner: Layer, relation: str, changed: Updates | None, now: Table, round: int) -> Updates:
        """What has become of the rows of a relation; `changed` is what its engine tells."""
        if not self.is_new(owner) or relation in owner.engine.reused_relations:
            return all_of(now, round, 0) if changed is None else changed
        old = self.before.table(relation)
        pair = [tuple(words(column) for column in table.columns) for table in (old, now)]
        columns, diffs = difference(pair[0], old.rows, pair[1], now.rows)
        return Updates(columns, diffs, np.full(len(diffs), round, np.int64))

    def reused_relations(self) -> Iterator[str]:
        """After the commit: those whose rows were not derived anew."""
        for layer in self.layers:
            if not self.is_new(layer):
                yield from layer.part.owns
            elif layer.fed is None:
                yield from layer.engine.reused_relations & layer.part.owns


def all_of(table: Table, round: int, rows: int | None = None) -> Updates:
    count = table.rows if rows is None else rows
    return insertions(tuple(words(column[:count]) for column in table.columns), count, round)


def _match(part: Part, layers: Sequence[Layer]) -> Layer | None:
    """The layer that a part may go on from."""
    if part.timed:
        return next((layer for layer in layers if layer.part.timed == part.timed), None)
    others = [layer for layer in layers if not layer.part.timed and (layer.part.why is None) == (part.why is None)]
    found = max(others, key=lambda layer: len(layer.part.owns & part.owns), default=None)
    return found if found is not None and found.part.owns & part.owns else None


def _is_alike(part: Part, old: Part) -> bool:
    """Whether the engine of a part does what another one's has to do. Facts of its text would come with its first commit."""
    own = part.owns, set(part.inputs), set(part.reads), part.timed, part.passing, part.why is None
    was = old.owns, set(old.inputs), set(old.reads), old.timed, old.passing, old.why is None
    if own != was or part.program.facts or not _means_the_same(part.program, old.program):
        return False
    return _rules_of(part) == _rules_of(old)


def _rules_of(part: Part) -> object:
    program = part.program
    timed = replace(program.timed[part.timed], span=NOWHERE) if part.timed else None
    strata = [] if part.timed else [(s.relations, s.recursive, rules_shape(s)) for s in program.strata]
    kinds = {name: relation.kinds for name, relation in program.relations.items()}
    retained = {name: kept for name, kept in program.retentions.items() if name in part.owns}
    return timed, strata, kinds, retained, program.lattices


def _means_the_same(program: Program, before: Program) -> bool:
    """Whether types and functors that both programs have are the same."""
    types = all(before.types.get(name, type) == type for name, type in program.types.items())
    return types and all(before.functors.get(name, functor) == functor for name, functor in program.functors.items())
