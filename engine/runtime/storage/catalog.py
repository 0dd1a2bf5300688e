"""The executor's relations and arrangements by name, and what the planner may know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import cast

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind, Program
from dlog.engine.kernels import layout as L
from dlog.engine.plan.statistics import Keys
from dlog.engine.runtime.storage import statistics
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.extent import Extents
from dlog.engine.runtime.storage.fact_encoder import FactEncoder
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.printer import Printer
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.symbols import SymbolTable


class Catalog:
    """Owns all stored data of one executor."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self.program = program
        self.memory = memory
        self.encoder = FactEncoder(SymbolTable(), RecordTables(memory))
        self.symbols = self.encoder.symbols
        self.arrangements: dict[nodes.Arrangement, StoredArrangement] = {}
        defined = {name for stratum in program.strata for name in stratum.relations if stratum.rules}
        self.complete = {name for name in program.relations if name not in defined}
        self._figures: dict[tuple[str, str, tuple[int, ...]], float] = {}
        self.keys = Keys()
        self._numbers = 0
        self.printer = Printer()

    @cached_property
    def relations(self) -> dict[str, StoredRelation]:
        """Whoever keeps rows in a way of its own has no use for them."""
        return {n: StoredRelation(n, r.kinds, self.memory) for n, r in self.program.relations.items()}

    @property
    def symbols(self) -> SymbolTable:
        """The strings of the run."""
        return self.encoder.symbols

    @symbols.setter
    def symbols(self, table: SymbolTable) -> None:
        self.encoder.symbols = table
        self.memory.bytes[L.account.symbols] = table.address

    @property
    def records(self) -> RecordTables:
        """The records of the run."""
        return cast("RecordTables", self.encoder.records)

    @records.setter
    def records(self, tables: RecordTables) -> None:
        self.encoder.records = tables

    def next_numbers(self, count: int) -> np.ndarray:
        """The next numbers of the run's counter."""
        first, self._numbers = self._numbers, self._numbers + count
        return np.arange(first, first + count, dtype=np.int64)

    # ------------------------------------------------------------------------------------------------------- statistics

    def rows(self, relation: str) -> int | None:
        """Rows of a complete relation, None of one that is still to be computed."""
        return self.relations[relation].rows if relation in self.complete else None

    def distinct(self, relation: str, columns: tuple[int, ...]) -> float | None:
        """Distinct values of the columns together, about; None for a relation that is still to be computed."""
        return self._figure("distinct", relation, columns)

    def second_moment(self, relation: str, columns: tuple[int, ...]) -> float | None:
        """Pairs of rows that agree on the columns, about; None for a relation that is still to be computed."""
        return self._figure("pairs", relation, columns)

    def _figure(self, what: str, relation: str, columns: tuple[int, ...]) -> float | None:
        if relation not in self.complete:
            return None
        key = (what, relation, tuple(sorted(set(columns))))
        if key not in self._figures:
            function = statistics.distinct_values if what == "distinct" else statistics.second_moment
            self._figures[key] = function(self.relations[relation], key[2])
        return self._figures[key]

    # ---------------------------------------------------------------------------------------------------------- storage

    def add(self, name: str, kinds: Sequence[Kind]) -> StoredRelation:
        """A relation of the planner's own."""
        self.relations[name] = StoredRelation(name, kinds, self.memory)
        return self.relations[name]

    def remove(self, name: str) -> None:
        self.forget(name)
        self.relations.pop(name).free()
        self.complete.discard(name)
        self._figures = {k: v for k, v in self._figures.items() if k[1] != name}

    def forget(self, name: str) -> None:
        """Frees what only lookups need: arrangements and the set."""
        for wanted in [a for a in self.arrangements if a.relation == name]:
            self.arrangements.pop(wanted).free()
        self.relations[name].pinned = False
        self.relations[name].drop_set()

    def renew(self, name: str) -> None:
        """Gets ready for other rows of a relation: what is known of those that it has, or built over them, goes."""
        self.forget(name)
        self.complete.discard(name)
        self._figures = {k: v for k, v in self._figures.items() if k[1] != name}

    def grow(self, wanted: nodes.Arrangement) -> None:
        """Makes an arrangement of an empty relation that takes up what `extend` tells of."""
        made = StoredArrangement(self.relations[wanted.relation], wanted.key, wanted.order, growing=True)
        made.start(-1)
        self.arrangements[wanted] = made
        made.relation.pinned = True

    def extend(self, name: str) -> None:
        """Takes account of rows that have been appended: what grows has them, too, and all else goes."""
        kept = {a: made for a, made in self.arrangements.items() if a.relation == name and made.growing}
        for wanted in kept:
            self.arrangements.pop(wanted)
        self.renew(name)
        self.arrangements |= kept
        for made in kept.values():
            made.take_up()
            made.relation.pinned = True

    def holds(self, name: str) -> bool:
        """Whether the relation has rows."""
        return self.relations[name].rows > 0

    def extents(self, name: str) -> Extents:
        return self.relations[name].extents

    def arrangement(self, wanted: nodes.Arrangement, needed: Iterable[int]) -> StoredArrangement:
        """The sorted arrangement of a complete relation, built when it is first asked for (or lacks a column)."""
        found = self.arrangements.get(wanted)
        columns = frozenset(needed)
        if found is not None and columns <= found.columns:
            return found
        if found is not None:
            columns |= found.columns
            self.arrangements.pop(wanted).free()
        made = StoredArrangement(self.relations[wanted.relation], wanted.key, wanted.order, growing=False)
        made.build(columns)
        self.arrangements[wanted] = made
        return made

    def field_kinds(self, record_type: str) -> tuple[Kind, ...]:
        types = self.program.types
        return tuple(types[name].kind for _, name in types[record_type].fields)
