"""Ordinary rows of the pairs of an input, made by several workers."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.incremental.store import pair_columns, pairs
from dlog.engine.runtime.incremental.batches.changes import as_columns
from dlog.engine.runtime.incremental.batches.strata_runner import StrataRunner
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct


def unpack(runner: StrataRunner, collection: Collection) -> None:
    """Makes ordinary rows of an input's pairs (`Collection.hold_rows`). Raises Failed, and nothing has changed."""
    leader, struct = runner.workers[0].control, collection.struct
    rows = struct[L.collection.live]
    _held, listed = as_columns(_columns_of(runner, collection))
    logged, leader[L.control.limit] = collection.log[L.items.count], collection.memory.limit
    struct[L.relation.rows] = struct[L.collection.live] = struct[L.collection.pairable] = 0
    try:
        runner.load(collection.address, listed, rows)
    except BaseException:
        struct[L.relation.rows], struct[L.collection.live] = 0, rows
        raise
    pairs.drop_pairs(leader.address, collection.address)
    collection.log[L.items.count], struct[L.collection.indexed] = logged, 0


def _columns_of(runner: StrataRunner, collection: Collection) -> tuple[np.ndarray, np.ndarray]:
    """The values of all pairs, as words: workers list them side by side, each those of a stretch of places."""
    places, rows = collection.struct[L.collection.pair_homes_room], collection.struct[L.collection.live]
    columns = np.empty(rows, np.int64), np.empty(rows, np.int64)
    _held, listed = as_columns(columns)
    parts = len(runner.workers)
    bounds = list(pairwise(places * part // parts for part in range(parts + 1)))
    counts = [0] * parts
    runner.each([partial(_count, collection.address, *bounds[part], counts, part) for part in range(parts)])
    firsts = [sum(counts[:part]) for part in range(parts)]
    runner.each([partial(_list, collection.address, *bounds[part], listed, firsts[part]) for part in range(parts)])
    return columns


def _count(collection: int, first: int, last: int, counts: list[int], part: int, _control: Struct) -> bool:
    counts[part] = pair_columns.count_pairs(collection, first, last)
    return True


def _list(collection: int, first: int, last: int, columns: int, row: int, _control: Struct) -> bool:
    return bool(pair_columns.list_pairs(collection, first, last, columns, row))
