"""What workers send: no row twice, nothing where one is alone; and which kernels they need for it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dlog.engine.cluster import dictionary as dictionaries
from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.exchange import MAX_ROWS_AS_BYTES, ExchangeMessage, Rows, cut
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.ir.nodes import HalfJoin, Only
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.core.jit import Kernel
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.costs import Sizes
from dlog.engine.plan.exchange.distribute import distribute
from dlog.engine.plan.exchange.places import choose_homes
from dlog.engine.plan.static.build import build_scope
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.spark.pieces import frames_of, message_of
from dlog.engine.values.array_pool import DoubleBuffer
from dlog.engine.values.symbols import SymbolTable
from dlog.pipeline import compile_program
from tests.engine.plan.test_shapes import Sizes as Counted
from tests.shards import evaluated, in_worker_group

WAYS = 20
DECLS = ".decl to(x: number, y: number)\n.decl from(x: number, y: number)\n.decl r(x: number, y: number)\n"
HOME = "r(x, z) :- to(x, y), from(y, z).\n"
"""Every row in as many ways as there are values of y."""
STREAM = DECLS + ".decl near(x: number, y: number)\nr(x, z) :- near(x, y), to(y, u), r(u, z).\nr(x, x) :- from(x, x).\n"


def complete(sources: int, targets: int) -> list[tuple[int, int]]:
    return [(x, y) for x in range(sources) for y in range(targets)]


def sent(text: str, facts: dict[str, list[tuple[int, int]]], workers: int = 2) -> tuple[int, int]:
    """Rows that went from one worker to another in an evaluation, and rows found."""

    def work(worker_group: WorkerGroup) -> tuple[int, int]:
        executor, _ = evaluated(compile_program(text), facts, worker_group, everywhere=0)
        return executor.row_exchange.rows_sent, executor.rows("r")

    rows, found = zip(*in_worker_group(workers, work), strict=True)
    return sum(rows), sum(found)


@pytest.mark.parametrize("far", [1, 10**9])
def test_a_row_that_is_found_many_ways_is_sent_once(far: int) -> None:
    """But for rows whose values are so far apart that no bit stands for each."""
    once, _ = sent(DECLS + HOME, {"to": complete(30, 1), "from": [(y, z * far) for y, z in complete(1, 30)]})
    often, found = sent(DECLS + HOME, {"to": complete(30, WAYS), "from": [(y, z * far) for y, z in complete(WAYS, 30)]})
    assert found == 900
    given = 2 * 30 * WAYS
    assert (often <= once + given) == (far == 1)


def test_a_row_on_its_way_to_a_join_is_sent_once() -> None:
    """`to(y, u)` has as many y for each u as there are ways."""
    ways = {"to": complete(WAYS, 30), "near": complete(30, WAYS), "from": [(z, z) for z in range(30)]}
    rows, found = sent(STREAM, ways)
    assert found == 900
    assert rows < 2 * 30 * WAYS * 2 + 4 * 900


def test_a_worker_that_is_alone_has_no_one_to_send_to() -> None:
    def work(worker_group: WorkerGroup) -> int:
        executor, _ = evaluated(compile_program(STREAM), {"from": [(1, 1)]}, worker_group)
        return len(executor.plans)

    assert in_worker_group(1, work) == [0]
    assert in_worker_group(2, work) == [1, 1]


def test_copies_of_what_grows_are_indexed_as_far_as_they_lead_anywhere() -> None:
    text = DECLS + "r(x, y) :- from(x, y).\nr(x, o) :- to(x, y), r(y, p), r(p, o).\n"
    program = compile_program(text)
    (stratum,) = (s for s in program.strata if s.recursive)
    few = (400, (400, 400))
    sizes = Counted(**{"from": (4000, (4000, 4000)), "to": few})
    plan = distribute(build_scope(stratum, program, sizes), program, choose_homes(program), Sizes(sizes), 1000)
    read = [s.arrangement for p in (*plan.loop.paths, *plan.loop.streams) for s in p.steps if isinstance(s, HalfJoin)]
    assert [a.only for a in read if a.relation == "@r by 1"] == [Only(0, "@to all", 1)]


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [Kind.NUMBER, Kind.SYMBOL])
def test_columns_of_any_width_are_cut_by_the_library(monkeypatch: pytest.MonkeyPatch, dtype: type, kind: Kind) -> None:
    """Numba would take a second to load, in every worker."""
    symbols = SymbolTable()
    for word in ("a", "b", "c"):
        symbols.intern(word)
    dictionary = Dictionary(symbols, RecordTables(Memory(None)), {}, 4)
    wanted = dictionary.owners(ColumnType(kind), np.array([0, 2, 1], np.int64), 4).tolist()
    monkeypatch.setattr(dictionaries, "VALUES_WIDENED_TOGETHER", 2)
    monkeypatch.setattr(Kernel, "dispatcher", property(lambda kernel: pytest.fail(f"{kernel.name} by Numba")))
    column = np.array([0, 9, 2, 9, 1, 9], dtype)[::2]
    assert dictionary.owners(ColumnType(kind), column, 4).tolist() == wanted
    assert len(dictionary.hashes(ColumnType(kind), column)) == 3


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_rows_are_cut_by_owner_in_their_order(workers: int) -> None:
    dictionary = Dictionary(SymbolTable(), RecordTables(Memory(None)), {}, workers)
    types = (ColumnType(Kind.NUMBER), ColumnType(Kind.NUMBER), ColumnType(Kind.NUMBER))
    keys = np.random.default_rng(1).integers(-50, 50, 300)
    columns = (np.arange(300, dtype=np.int32), keys, np.arange(600, dtype=np.int64)[::2])
    owners = dictionary.owners(types[1], keys, workers)
    for turns in (None, DoubleBuffer()):
        parts = cut(Rows(columns, 300), types, 1, dictionary, workers, turns)
        wanted = [[c[owners == w].tolist() for c in columns] for w in range(workers)]
        assert [[c.tolist() for c in part.columns] for part in parts] == wanted
        assert [part.height for part in parts] == [int((owners == w).sum()) for w in range(workers)]
        assert [c.dtype for c in parts[0].columns] == [c.dtype for c in columns]
    assert [part.height for part in cut(Rows(tuple(c[:0] for c in columns), 0), types, 1, dictionary, workers)] == [0] * workers


@pytest.mark.parametrize("height", [0, 1, MAX_ROWS_AS_BYTES, MAX_ROWS_AS_BYTES + 1])
@pytest.mark.parametrize("kinds", [(), (np.int64,), (np.int32, np.float64, np.int8)], ids=lambda kinds: str(len(kinds)))
def test_a_message_arrives_as_it_was_sent(kinds: tuple[type[np.generic], ...], height: int) -> None:
    columns = tuple((np.arange(2 * height) - 1).astype(kind)[::2] for kind in kinds)
    types = (ColumnType(Kind.NUMBER), ColumnType(Kind.RECORD, "pair"))
    sent = ExchangeMessage(7, [("r", types, Rows(columns, height))], note=("iteration", 3))
    frames = [memoryview(bytes(frame)) for frame in frames_of(sent)]
    found = message_of([SimpleNamespace(buffer=frame) for frame in frames])
    ((name, found_types, rows),) = found.rows
    assert (found.rows_sent, found.definitions, found.note, name, found_types) == (7, None, ("iteration", 3), "r", types)
    assert rows.height == height
    assert [c.dtype for c in rows.columns] == [c.dtype for c in columns]
    assert [c.tolist() for c in rows.columns] == [c.tolist() for c in columns]
