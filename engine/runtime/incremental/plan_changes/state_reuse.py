"""The state that a dataflow takes over from the one of an earlier form of its program: inputs, and strata that come about as
before.

A stratum does when its rules are the same and everything that they read does too; relations without rules do, before anything
is inserted. Its plan, its collections and their indexes go on as they are; only the paths are lowered again. All others start
empty, and see what was taken over as if all of it had come in the one batch that derives them: such a collection tells its rows
as its changes, as of that batch, and there is nothing before. Until that batch has succeeded nothing changes that the old
dataflow reads, and all of it can be given back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.compile.strata.dependencies import relations_read
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.shapes import Names
from dlog.engine.runtime.incremental.dataflow import CannotReuse, Dataflow, Plan
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import DataflowStatistics
from dlog.engine.runtime.incremental.stratum_builder import EXTERNAL_SUFFIX
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.collection_parts import UNFOUND
from dlog.engine.runtime.storage.index import Index
from dlog.engine.runtime.storage.memory_map import Array, collection_arrays, index_arrays
from dlog.engine.runtime.storage.native import Struct, view
from dlog.engine.runtime.storage.reduction import Reduction
from dlog.engine.values.updates import Updates


@dataclass
class ReusedCollection:
    """A collection that is taken over, and how the old dataflow had it."""

    collection: Collection
    name: str
    old_name: str
    is_looked_up: bool
    is_found_by_values: bool
    indexes: dict[tuple[int, ...], Index]
    words: list[tuple[Struct, np.ndarray, dict[int, object]]]

    @property
    def is_observed(self) -> bool:
        """Whether others look at it: groups and candidates are their reduction's own."""
        return L.collection.log in self.collection.struct.keep


class StateReuse:
    """The state to be taken over; `avoid` are strata (by their first relation) that are not. `plans` are those of strata of the
    same program that are to have another one."""

    def __init__(
        self, old: Dataflow, program: Program, avoid: frozenset[str] = frozenset(), plans: Mapping[int, Plan] | None = None
    ) -> None:
        self.old = old
        self.program = program
        self._plans = plans or {}
        self._inputs = {io.relation for io in program.io if io.action == "input"} | {n for n, f in program.facts.items() if f}
        """The relations that take rows from outside."""
        self._avoid = avoid
        self._reused: dict[str, ReusedCollection] = {}
        self._reductions: dict[str, tuple[Reduction, bool, int]] = {}

    # ------------------------------------------------------------------------------------------------------------ matching

    @cached_property
    def strata(self) -> dict[int, int]:
        """The numbers of strata here, and of what they were."""
        before, now, avoid = self.old.program, self.program, self._avoid
        if before is now:
            return {number: number for number, scope in self.old.scopes.items() if scope.relations[0] not in avoid}
        if any(before.types.get(name, type) != type for name, type in now.types.items()):
            return {}
        derived = before.derived.keys() | now.derived.keys()
        same = {name for name in now.relations if name not in derived and self._alike(name)}
        known = {(s.relations, rules_shape(s)): number for number, s in enumerate(before.strata) if s.rules}
        found = {}
        for number, stratum in enumerate(now.strata):
            old = known.get((stratum.relations, rules_shape(stratum)))
            if old is not None and self._comes_about_alike(stratum, old, same):
                same.update(stratum.relations)
                if stratum.relations[0] not in avoid:
                    found[number] = old
        return found

    @property
    def bytes(self) -> int:
        """The bytes of what is taken over."""
        return sum(array.size for h in self._reused.values() for array in _arrays(h.collection) if array.struct[array.field])

    def _comes_about_alike(self, stratum: Stratum, old: int, same: set[str]) -> bool:
        before, now = self.old.program, self.program
        reads = {on for rule in stratum.rules for on in relations_read(rule)}.difference(stratum.relations)
        given = {name for name in stratum.relations if name + EXTERNAL_SUFFIX in self.old.collections}
        return (
            reads <= same
            and old in self.old.scopes
            and all(self._alike(name) and before.lattices.get(name) == now.lattices.get(name) for name in stratum.relations)
            and given >= self._inputs.intersection(stratum.relations)
        )

    def _alike(self, relation: str) -> bool:
        """Whether a relation has the columns that it had."""
        old = self.old.program.relations.get(relation)
        return old is not None and old.kinds == self.program.relations[relation].kinds

    def gives(self, relation: str) -> bool:
        """Whether a relation has taken rows from outside, and goes on so, with rules or without."""
        return self._alike(relation) and self.old.input(relation) is not None

    def inputs(self) -> Iterator[str]:
        """The relations whose external rows are taken over."""
        for name in self.program.relations:
            if self.gives(name):
                yield name

    @cached_property
    def _names(self) -> dict[str, Collection]:
        return dict(self._collections())

    def _collections(self) -> Iterator[tuple[str, Collection]]:
        """The collections that are taken over, by the names they are to have."""
        derived = self.program.derived.keys()
        for name in self.inputs():
            found = self.old.input(name)
            assert found is not None
            yield (name + EXTERNAL_SUFFIX if name in derived else name), found
        for number, old in self.strata.items():
            scope = self.old.scopes[old]
            for name in scope.relations:
                yield name, self.old.collections[name]
            for name in own_relations(scope):
                yield f"{name} {number}", self.old.collections[f"{name} {old}"]

    # ---------------------------------------------------------------------------------------------------------- taking over

    def takes(self, number: int) -> bool:
        """Whether a stratum is taken over."""
        return number in self.strata

    def plan(self, number: int) -> Plan | None:
        """The plan of a stratum that is taken over, or is to have this one."""
        old = number if self.program is self.old.program else self.strata.get(number)
        if number in self._plans or old is None:
            return self._plans.get(number)
        return self.old.scopes[old], self.old.recorded_statistics[old]

    def collection(self, name: str, scope: Struct | None) -> Collection | None:
        """A collection that is taken over, in a new recursive scope; paths may be lowered against it."""
        found = self._names.get(name)
        if found is not None:
            self._take(found, name, scope)
        return found

    def _take(self, found: Collection, name: str, scope: Struct | None) -> None:
        structs = [found.struct, *found.histories, *found.lists]
        words = [(struct, struct.words.copy(), dict(struct.keep)) for struct in structs]
        uses = found.is_looked_up, found.is_found_by_values
        self._reused[name] = ReusedCollection(found, name, found.name, *uses, dict(found.indexes), words)
        found.name = name
        found.is_looked_up, found.is_found_by_values = False, found.role not in UNFOUND
        found.wanted_indexes.clear()
        for index in found.indexes.values():
            index.proposes = index.is_read = False
        if scope is not None:
            found.struct.point(L.collection.scope, scope)

    def reduction(self, name: str, result: Collection, scope: Struct | None) -> Reduction | None:
        """The reduction whose result is a collection that was taken over."""
        found = next((r for r in self.old.reductions.values() if r.result is result), None)
        if found is None:
            return None
        self._reductions[name] = found, found.seeds, found.sources
        found.seeds, found.sources = False, 0
        self._take(found.groups, f"{name} groups", None)
        if found.candidates is not None:
            self._take(found.candidates, f"{name} candidates", scope)
        return found

    def settle(self) -> None:
        """Sees to it that what paths ask for is kept. Raises CannotReuse for a stratum that left it out."""
        for name, (reduction, seeds, _) in self._reductions.items():
            if reduction.seeds and not seeds:
                raise CannotReuse(self._stratum_of(name))
        for reused in self._reused.values():
            collection, struct = reused.collection, reused.collection.struct
            if not reused.is_observed:
                continue
            if struct[L.collection.unkeyed] and collection.is_found_by_values:
                raise CannotReuse(self._stratum_of(reused.name))
            if struct[L.collection.no_readers] and collection.is_looked_up:
                if collection.grouped is not None or _has_absent(collection):
                    raise CannotReuse(self._stratum_of(reused.name))
                struct[L.collection.no_readers] = 0
            for index in collection.indexes.values():
                if index.is_read:
                    index.hold_rows()

    def _stratum_of(self, name: str) -> str:
        """The name in `avoid` of a collection's stratum."""
        for number in self.strata:
            scope = self.old.scopes[self.strata[number]]
            if name in scope.relations or name in {f"{own} {number}" for own in own_relations(scope)}:
                return scope.relations[0]
        raise AssertionError(f"{name} is of no stratum that is taken over")

    # ------------------------------------------------------------------------------------------------------------ the batch

    def show(self, seeds: frozenset[int]) -> None:
        """Lets everything that is taken over be as if it came in this batch; `seeds` are the addresses of the logs that the
        batch reads."""
        for reused in self._reused.values():
            if reused.is_observed:
                collection = reused.collection
                collection.struct[L.collection.in_batch], collection.struct[L.collection.old] = 1, 0
                _history(collection)[L.history.base] = L.ROUND
                if collection.log.address in seeds:
                    _tell_all(collection)

    def hide(self) -> None:
        """Called after the batch: hides the changes, as all rows are settled, and have not changed."""
        for reused in self._reused.values():
            if reused.is_observed:
                collection = reused.collection
                _history(collection)[L.history.base] = collection.struct[L.collection.in_batch] = 0
                for struct, words, _ in reused.words:
                    if struct is collection.log:
                        struct.words[:] = words
                        struct[L.items.count] = 0

    def give_back(self) -> None:
        """The old dataflow goes on as if nothing had been taken."""
        for reused in self._reused.values():
            collection = reused.collection
            for key, index in collection.indexes.items():
                if key not in reused.indexes:
                    index.free()
            collection.indexes = reused.indexes
            collection.name = reused.old_name
            collection.is_looked_up, collection.is_found_by_values = reused.is_looked_up, reused.is_found_by_values
            for struct, words, keep in reused.words:
                struct.words[:] = words
                struct.keep.clear()
                struct.keep.update(keep)
        for reduction, seeds, sources in self._reductions.values():
            reduction.seeds, reduction.sources = seeds, sources
            reduction.struct.point(L.reduction.work, self.old.work)
        self._reused.clear()
        self._reductions.clear()
        self.old.do_all()

    def hand_over(self, new: Dataflow) -> None:
        """Everything belongs to the new dataflow from now on; indexes that nobody asks for go."""
        for reused in self._reused.values():
            reused.collection.status = new.status
            reused.collection.keep_indexes(reused.collection.wanted_indexes)

    # ------------------------------------------------------------------------------------------------------------- figures

    def statistics(self, waiting: Mapping[str, Updates]) -> DataflowStatistics:
        """Statistics for the planner: of what is taken over everything, and the rows of inputs that wait."""
        inputs = frozenset(self.program.relations.keys() - self.program.derived.keys())
        return DataflowStatistics(
            waiting, inputs, {name: c for name, c in self._names.items() if name in self.program.relations}
        )


def _arrays(collection: Collection) -> Iterator[Array]:
    yield from collection_arrays(collection)
    for index in collection.indexes.values():
        yield from index_arrays(index)


def own_relations(scope: nodes.Scope) -> list[str]:
    """The planner's own relations of a stratum."""
    own = {t.relation for t in scope.temporaries} | {r.relation for r in scope.reductions}
    return sorted(own.difference(scope.relations))


def rules_shape(stratum: Stratum) -> object:
    """The rules of a stratum without their text and places, for comparison."""
    names = Names()
    shape = tuple([(names.rule(rule), rule.variables) for rule in stratum.rules])
    return shape, tuple(names.relations), tuple(names.constants)


def _history(collection: Collection) -> Struct:
    found = collection.struct.keep[L.collection.outer]
    assert isinstance(found, Struct)
    return found


def _bits(address: int, rows: int) -> np.ndarray:
    return view(address, (rows + 63) // 64, np.int64)


def _has_absent(collection: Collection) -> bool:
    """Whether there are rows that something keeps though they are not there."""
    rows = collection.struct[L.relation.rows]
    absent = _bits(_history(collection)[L.history.bits], rows) & _bits(collection.struct[L.collection.alive], rows)
    return bool(absent.any())


def _tell_all(collection: Collection) -> None:
    """Makes all rows the changes of the first round, by a log without data."""
    log, struct = collection.log, collection.struct
    struct[L.collection.packed] = log[L.items.capacity] = log[L.items.data] = 0
    rows = struct if collection.grouped is None else collection.grouped.groups.struct
    log[L.items.count] = rows[L.relation.rows]


def derive_new(flow: Dataflow, state_reuse: StateReuse, run: Callable[[], None]) -> None:
    """Has a batch (`run`) derive what was not taken over; then everything belongs to the dataflow. Whatever is raised, the
    other one has all that it had."""
    try:
        flow.running = True
        if flow.do_new():
            state_reuse.show(flow.seeds)
            run()
        state_reuse.hide()
    except BaseException:
        state_reuse.give_back()
        flow.free()
        raise
    flow.do_all()
    flow.work[L.work.first] = flow.work[L.work.rounds] = 0
    state_reuse.hand_over(flow)
    flow.state_reuse, flow.running, flow.started = None, False, True
