"""Rows cut into blocks before their owners are there."""

from __future__ import annotations

from typing import Any

import pytest

from dlog.codec import Codec
from dlog.engine.cluster.executor import ShardExecutor
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.plan.exchange.places import ROOT, Place
from dlog.pipeline import compile_program
from dlog.relation import Relation
from tests.shards import cut_in_blocks, in_worker_group

PROGRAM = """.type List = [head: symbol, tail: List]
.decl given(n: number, u: unsigned, f: float, s: symbol, l: List)
.decl same(n: number, u: unsigned, f: float, s: symbol, l: List)
same(n, u, f, s, l) :- given(n, u, f, s, l).
.output same
"""
LARGE = 2**63
ROWS = [(n - 50 if n % 2 else LARGE - n - 1, LARGE + n, n / 4 - 3, f"s{n % 7}", (f"t{n % 5}", ("", None))) for n in range(100)]
WORKERS = 3


def loaded(blocks: list[tuple[int, bytes]], *, to_owner: bool) -> tuple[list[tuple[Any, ...]], list[int]]:
    """The rows of all workers after a run, and how many rows each sent. Blocks go to their owner, or to the worker after it."""
    program = compile_program(PROGRAM)

    def work(worker_group: WorkerGroup) -> tuple[list[tuple[Any, ...]], int]:
        executor = ShardExecutor(program, worker_group)
        for owner, block in blocks:
            if (owner if to_owner else (owner + 1) % WORKERS) == worker_group.rank:
                executor.load_block("given", block, owner)
        executor.run()
        codec = Codec(program, executor.symbols, executor.records)
        return list(Relation(program.relations["same"], executor.table("same"), codec)), executor.row_exchange.rows_sent

    found = in_worker_group(WORKERS, work)
    return [row for rows, _ in found for row in rows], [sent for _, sent in found]


@pytest.mark.parametrize("home", range(5), ids=["number", "unsigned", "float", "symbol", "record"])
def test_every_type_arrives_as_it_was(home: int) -> None:
    blocks = cut_in_blocks(compile_program(PROGRAM), "given", ROWS, home, WORKERS)
    assert len({owner for owner, _ in blocks}) > 1
    rows, _ = loaded(blocks, to_owner=False)
    assert sorted(map(repr, rows)) == sorted(map(repr, ROWS))


def test_who_gets_the_own_rows_sends_none() -> None:
    program = compile_program(PROGRAM)
    home: Place = in_worker_group(1, lambda worker_group: ShardExecutor(program, worker_group).homes["given"])[0]
    rows, sent = loaded(cut_in_blocks(program, "given", ROWS, home, WORKERS), to_owner=True)
    assert (len(rows), sent) == (100, [0, 0, 0])


def test_who_gets_the_rows_of_another_sends_them_on() -> None:
    program = compile_program(PROGRAM)
    home: Place = in_worker_group(1, lambda worker_group: ShardExecutor(program, worker_group).homes["given"])[0]
    rows, sent = loaded(cut_in_blocks(program, "given", ROWS, home, WORKERS), to_owner=False)
    assert (len(rows), sum(sent)) == (100, 100)


def test_rows_that_are_at_home_with_the_first_worker_are_one_block() -> None:
    assert [owner for owner, _ in cut_in_blocks(compile_program(PROGRAM), "given", ROWS, ROOT, WORKERS)] == [0]


def test_no_rows_are_no_block() -> None:
    assert cut_in_blocks(compile_program(PROGRAM), "given", [], 0, WORKERS) == []
