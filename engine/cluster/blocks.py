"""Rows on their way to workers, in blocks: a block holds rows of one owner and all that their ids mean.

Whoever makes blocks needs no worker to be there yet, and workers take them in any order.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping

import numpy as np

from dlog.engine.cluster.dictionary import Definitions, Dictionary
from dlog.engine.cluster.exchange import Rows, cut
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.plan.column_types import declared
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, Place
from dlog.engine.runtime.storage.columns import raw
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table

SENDER = 0
"""The one peer of a dictionary that reads a block: whoever made it."""


def blocks(relation: Relation, table: Table, home: Place, dictionary: Dictionary, workers: int) -> Iterator[tuple[int, bytes]]:
    """The owner and the block of each worker's rows of a table. `dictionary` says what the ids in it mean; it has told nobody
    yet."""
    kinds = tuple(declared(type) for _, type in relation.attributes)
    rows = Rows(tuple(raw(column) for column in table.columns), table.rows)
    parts = [rows] if home == ROOT or workers == 1 else cut(rows, kinds, home, dictionary, workers)
    for owner, part in enumerate(parts):
        if part.height:
            pairs = list(zip(kinds, part.columns, strict=True))
            named = any(kind.kind in (Kind.SYMBOL, Kind.RECORD) for kind in kinds)
            said = dictionary.define(owner, pairs) if named else None
            columns = tuple(_narrow(column) for column in part.columns)
            yield owner, pickle.dumps((said, columns, part.height), protocol=5)


def cut_everywhere(
    relation: Relation, table: Table, place: Place, dictionary: Dictionary, workers: int
) -> Iterator[tuple[int, bytes]]:
    """The same for any place: all of the table for each worker where its rows belong everywhere."""
    if place == EVERYWHERE:
        for _, block in blocks(relation, table, ROOT, dictionary, workers):
            yield from ((owner, block) for owner in range(workers))
    else:
        yield from blocks(relation, table, place, dictionary, workers)


def rows_of(
    block: bytes | memoryview, relation: Relation, types: Mapping[str, Type], symbols: SymbolTable, records: RecordTables
) -> Rows:
    """The rows of a block with the ids of `symbols` and `records`, which learn what they lack."""
    said: Definitions | None
    said, columns, height = pickle.loads(block)
    if said is None:
        return Rows(columns, height)
    dictionary = Dictionary(symbols, records, types, 1)
    dictionary.learn(SENDER, said)
    kinds = (declared(type) for _, type in relation.attributes)
    return Rows(tuple(dictionary.translate(SENDER, k, c) for k, c in zip(kinds, columns, strict=True)), height)


def _narrow(column: np.ndarray) -> np.ndarray:
    """In four bytes where all values fit: most numbers do."""
    if column.dtype == np.int64 and len(column) and column.min() >= -(2**31) and column.max() < 2**31:
        return column.astype(np.int32)
    return column
