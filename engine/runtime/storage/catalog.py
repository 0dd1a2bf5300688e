"""The executor's relations and arrangements by name, and what the planner may know of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Kind, Program, Record, Term
from dlog.engine.kernels import layout as L
from dlog.engine.plan.statistics import Keys
from dlog.engine.runtime.storage import statistics
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.extent import Extents
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import Memory, StoredRelation
from dlog.engine.values.symbols import SymbolTable


class Catalog:
    """Owns all stored data of one executor."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self.program = program
        self.memory = memory
        self.symbols = SymbolTable()
        self.records = RecordTables(memory)
        self.relations = {n: StoredRelation(n, r.kinds, memory) for n, r in program.relations.items()}
        self.arrangements: dict[nodes.Arrangement, StoredArrangement] = {}
        defined = {name for stratum in program.strata for name in stratum.relations if stratum.rules}
        self.complete = {name for name in program.relations if name not in defined}
        self._figures: dict[tuple[str, str, tuple[int, ...]], float] = {}
        self.keys = Keys()

    @property
    def symbols(self) -> SymbolTable:
        """The strings of the run."""
        return self._symbols

    @symbols.setter
    def symbols(self, table: SymbolTable) -> None:
        self._symbols = table
        self.memory.bytes[L.account.symbols] = table.address

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

    # ------------------------------------------------------------------------------------------------------------ values

    def encode(self, constant: Constant | Record) -> int:
        """A constant as the 64 bits that stand for it."""
        if isinstance(constant, Record):
            fields = [np.array([self.encode(a)], np.int64) for a in constant.args if isinstance(a, Constant | Record)]
            return int(self.records.pack(len(fields), fields)[0])
        match constant.value:
            case None:
                return 0
            case str(text):
                return self.symbols.intern(text)
            case float(value):
                return int(np.float64(value).view(np.int64))
            case int(value):
                if constant.kind is Kind.FLOAT:
                    return int(np.float64(value).view(np.int64))
                return value - 2**64 if value >= 2**63 else value

    def fact_columns(self, name: str) -> list[np.ndarray]:
        """The facts of the program text as raw columns."""
        rows = self.program.facts.get(name, ())
        kinds = self.program.relations[name].kinds
        if Kind.RECORD not in kinds:
            return self._plain_columns(rows, kinds)
        arity = len(kinds)
        texts = list(dict.fromkeys(text for row in rows for c in row for text in _texts(c)))
        ids = dict(zip(texts, self.symbols.intern_texts(texts).tolist(), strict=True))  # one by one takes ten times as long
        values = [ids[c.value] if isinstance(c, Constant) and c.value in ids else self.encode(c) for row in rows for c in row]
        coded = np.array(values, np.int64).reshape(len(rows), arity)
        return [np.ascontiguousarray(coded[:, c]) for c in range(arity)]


    def _plain_columns(self, rows: Sequence[Sequence[Constant | Record]], kinds: Sequence[Kind]) -> list[np.ndarray]:
        """Columns without records."""
        values = [[row[c].value for row in rows] for c in range(len(kinds))]  # type: ignore[union-attr]
        named = [values[c] for c, kind in enumerate(kinds) if kind is Kind.SYMBOL]
        texts = list(dict.fromkeys(chain.from_iterable(zip(*named, strict=True))))
        ids = dict(zip(texts, self.symbols.intern_texts(texts).tolist(), strict=True))
        return [_coded(column, kind, ids) for column, kind in zip(values, kinds, strict=True)]


def _coded(values: list[Any], kind: Kind, ids: dict[str, int]) -> np.ndarray:
    match kind:
        case Kind.SYMBOL:
            return np.array([ids[v] for v in values], np.int64)
        case Kind.FLOAT:
            return np.array(values, np.float64).view(np.int64)
        case Kind.UNSIGNED:
            return np.array(values, np.uint64).view(np.int64)
        case _:
            return np.array(values, np.int64)


def _texts(term: Term) -> Iterator[str]:
    """The texts in a constant, in their order."""
    if isinstance(term, Record):
        for arg in term.args:
            yield from _texts(arg)
    elif isinstance(term, Constant) and isinstance(term.value, str):
        yield term.value
