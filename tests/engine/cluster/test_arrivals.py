"""Rows that arrive: read where they lie, and put where there is room for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from dlog.engine.cluster.arrived_rows import MIN_PART_ROWS, holding, readable
from dlog.engine.cluster.exchange import Rows
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.static.partition import make_room
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.pipeline import compile_program
from tests.shards import evaluated, in_worker_group

PAIRS = ".decl to(x: number, y: number)\n.decl from(x: number, y: number)\n.decl r(x: number, y: number)\n"
TURNED = PAIRS + "r(y, x) :- to(x, y).\nr(y, x) :- from(x, y).\n"
FAR = 10**9


def rows(height: int, dtype: type = np.int64, value: int = 0) -> Rows:
    return Rows((np.full(height, value, dtype), np.arange(height, dtype=dtype)), height)


def test_large_parts_are_read_where_they_lie_and_small_ones_as_one() -> None:
    parts = [
        rows(3, value=1),
        rows(MIN_PART_ROWS, np.int32, 2),
        rows(MIN_PART_ROWS - 1, value=3),
        rows(MIN_PART_ROWS, np.int64, 4),
    ]
    read = readable(parts, (4, 4))
    assert [r.height for r in read] == [MIN_PART_ROWS, MIN_PART_ROWS, MIN_PART_ROWS + 2]
    assert read[0].columns[0] is parts[1].columns[0]
    assert {c.dtype for r in read for c in r.columns} == {np.dtype(np.int32)}
    assert set(read[2].columns[0].tolist()) == {1, 3}
    assert set(read[1].columns[0].tolist()) == {4}


def test_columns_that_kernels_cannot_read_are_copied() -> None:
    apart = np.arange(2 * MIN_PART_ROWS)[::2]
    askew = np.frombuffer(bytes(8 * MIN_PART_ROWS + 4), np.uint8)[4:].view(np.int64)
    (read,) = readable([Rows((apart, askew), MIN_PART_ROWS)], (8, 8))
    assert all(c.flags.c_contiguous and c.flags.aligned for c in read.columns)
    assert read.columns[0].tolist() == apart.tolist()


def test_a_relation_holds_rows_for_a_while_and_frees_none_of_them() -> None:
    memory = Memory(None)
    relation = StoredRelation("r", [Kind.NUMBER, Kind.NUMBER], memory)
    relation.shape([None, None])
    with pytest.raises(ZeroDivisionError), holding(relation, rows(5, value=7)):
        assert (relation.rows, relation.column(0).tolist()) == (5, [7] * 5)
        raise ZeroDivisionError
    assert relation.rows == relation.column_address(0) == relation.column_address(1) == 0
    relation.free()
    assert memory.used == 0


def test_room_is_made_once_for_all_rows() -> None:
    memory = Memory(None)
    relation = StoredRelation("r", [Kind.NUMBER, Kind.NUMBER], memory)
    relation.shape([None, None])
    relation.load((np.arange(10) * FAR, np.arange(10) * FAR), 10)
    relation.ensure_set()
    assert relation.set_kind == SetKind.HASH
    assert make_room(memory.control.address, relation.address, 100_000)
    assert relation.struct[L.relation.capacity] >= 100_010
    assert relation.struct[L.relation.slot_count] * 4 >= 100_010 * 5
    assert relation.column(0).tolist() == [i * FAR for i in range(10)]


def test_there_may_be_no_room() -> None:
    memory = Memory(1 << 20)
    relation = StoredRelation("r", [Kind.NUMBER], memory)
    relation.shape([None])
    assert not make_room(memory.control.address, relation.address, 1 << 20)


@pytest.mark.slow
@pytest.mark.parametrize("far", [1, FAR])
@pytest.mark.parametrize("workers", [2, 3])
def test_many_rows_arrive_in_parts(far: int, workers: int) -> None:
    """Half of them were there before."""
    size = 4 * workers * MIN_PART_ROWS
    half = [(x * far, x % 7) for x in range(size)]
    more = [(x * far, x % 7) for x in range(size // 2, size + size // 2)]

    def work(worker_group: WorkerGroup) -> set[tuple[int, int]]:
        executor, _ = evaluated(compile_program(TURNED), {"to": half, "from": more}, worker_group, everywhere=0)
        relation = executor.catalog.relations["r"]
        return set(zip(relation.column(0).tolist(), relation.column(1).tolist(), strict=True))

    found = in_worker_group(workers, work)
    assert set().union(*found) == {(y, x) for x, y in [*half, *more]}
    assert sum(map(len, found)) == len(set(half) | set(more))
