"""The tasks that read a program's inputs: rows become blocks, each for the worker that owns its rows.

A DataFrame's rows cross from the JVM to Python once, where they are. From there on they travel as blocks: for Spark's shuffle a
few large rows instead of many small ones, for workers columns that need no more than to be laid side by side.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Relation, Type

if TYPE_CHECKING:
    import pyarrow as pa

    from dlog.engine.plan.exchange.places import Place
    from dlog.engine.runtime.storage.records import RecordTables
    from dlog.engine.values.symbols import SymbolTable
    from dlog.engine.values.table import Table

SCHEMA = "lane int, relation int, owner int, block binary"
"""`lane` is the value whose hash takes a block to its owner; `relation` a number, or NOTHING."""
NOTHING = -1
"""The relation of a row that has no block."""
MISTAKE = -1
"""The owner of a block that holds what is wrong with rows, as diagnostics."""
GATHERED_BYTES = 16 << 20
"""What is cut at once, however small Spark's batches are."""
TOO_HEAVY = "heavier-than-estimated"
"""What is wrong with rows that take more than their task may have."""


@dataclass(frozen=True)
class Cut:
    """For `mapInArrow`: batches with the columns of a relation, in order, to rows of `SCHEMA`. `targets` are the numbers under
    which workers know the relation, and where each of them is at home; `most` bytes may go to one worker, if that is said."""

    targets: tuple[tuple[int, Place], ...]
    relation: Relation
    types: Mapping[str, Type]
    workers: int
    most: int | None = None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from dlog.engine.spark.gc_tuning import spare
        from dlog.grammar.diagnostics import DlogError

        lanes = lanes_of(self.workers)
        sent = [0] * self.workers
        try:
            for rows in gathered(batches):
                for number, owner, block in self._blocks(rows):
                    sent[owner] += len(block)
                    self._weigh(sent[owner])
                    yield self._row(lanes[owner], number, owner, block)
        except DlogError as error:
            yield self._row(lanes[0], self.targets[0][0], MISTAKE, pickle.dumps(error.diagnostics))
        spare()

    def _blocks(self, batches: list[pa.RecordBatch]) -> Iterator[tuple[int, int, bytes]]:
        from dlog.engine.cluster.blocks import cut_everywhere
        from dlog.engine.cluster.dictionary import Dictionary

        table, symbols, records = table_of(batches, self.relation, self.types)
        for number, place in self.targets:
            dictionary = Dictionary(symbols, records, self.types, self.workers)
            for owner, block in cut_everywhere(self.relation, table, place, dictionary, self.workers):
                yield number, owner, block

    def _weigh(self, sent: int) -> None:
        from dlog.grammar.diagnostics import Diagnostic, DlogError

        if self.most is not None and sent > self.most:
            message = f"the rows of {self.relation.name} take more than Spark thinks"
            raise DlogError(Diagnostic(TOO_HEAVY, message))

    def _row(self, lane: int, number: int, owner: int, block: bytes) -> pa.RecordBatch:
        import pyarrow as pa

        numbers = [pa.array([n], pa.int32()) for n in (lane, number, owner)]
        return pa.RecordBatch.from_arrays([*numbers, pa.array([block], pa.binary())], ["lane", "relation", "owner", "block"])


def table_of(
    batches: list[pa.RecordBatch], relation: Relation, types: Mapping[str, Type]
) -> tuple[Table, SymbolTable, RecordTables]:
    """Rows with ids of their own, and what these mean."""
    import pyarrow as pa

    from dlog.engine.runtime.storage.memory import Memory
    from dlog.engine.runtime.storage.records import RecordTables
    from dlog.engine.spark.arrow import ArrowCodec
    from dlog.engine.values.symbols import SymbolTable

    symbols, records = SymbolTable(), RecordTables(Memory(None))
    return ArrowCodec(types, symbols, records).read(relation, pa.Table.from_batches(batches)), symbols, records


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """Batches, so many together that cutting them is worth while."""
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        if batch.num_rows:
            found.append(batch)
            size += batch.nbytes
        if size >= GATHERED_BYTES:
            yield found
            found, size = [], 0
    if found:
        yield found


def lanes_of(workers: int) -> list[int]:
    """For each worker a number that `repartition(workers, "lane")` takes to the partition of the worker's rank."""
    lanes: dict[int, int] = {}
    number = 0
    while len(lanes) < workers:
        lanes.setdefault(_hash_of_int(number) % workers, number)
        number += 1
    return [lanes[rank] for rank in range(workers)]


def _hash_of_int(value: int) -> int:
    """Spark's hash of an int column: MurmurHash3_x86_32 (Appleby) of its four bytes, seed 42, as a signed number."""
    mask = 0xFFFFFFFF
    mixed = value * 0xCC9E2D51 & mask
    mixed = (mixed << 15 | mixed >> 17) * 0x1B873593 & mask
    hashed = 42 ^ mixed
    hashed = ((hashed << 13 | hashed >> 19) & mask) * 5 + 0xE6546B64 & mask
    hashed ^= 4
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & mask
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & mask
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed
