"""The places of symbols in their order, over several workers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.codec import Codec
from dlog.engine.cluster.executor import ShardExecutor
from dlog.engine.cluster.ranking import Ranking
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.pipeline import compile_program
from dlog.relation import Relation
from tests.examples import examples
from tests.shards import in_worker_group

PROGRAM = """
.decl name(s: symbol)
.input name
.decl pair(n: number, s: symbol)
.input pair
.decl rank(s: symbol, n: number)
.input rank
.decl found(s: symbol, n: number)
found(s, n) :- rank(s, n).
.output found
"""
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def ranks(names: list[str], pairs: list[tuple[int, str]], workers: int) -> list[tuple[str, int]]:
    program = compile_program(PROGRAM)

    def work(worker_group: WorkerGroup) -> list[tuple[str, int]]:
        executor = ShardExecutor(program, worker_group, ranking=Ranking("rank", (("name", 0), ("pair", 1))))
        codec = Codec(program, executor.symbols, executor.records)
        for name, rows in (("name", [(n,) for n in names]), ("pair", pairs)):
            executor.load(name, codec.table(program.relations[name], rows[worker_group.rank :: worker_group.size]))
        executor.run()
        return [(str(s), int(n)) for s, n in Relation(program.relations["found"], executor.table("found"), codec)]

    return [row for rows in in_worker_group(workers, work) for row in rows]


@examples(60)
@given(st.lists(WORDS), st.lists(st.tuples(st.integers(0, 9), WORDS)), st.integers(1, 4))
def test_every_symbol_has_its_place(names: list[str], pairs: list[tuple[int, str]], workers: int) -> None:
    ordered = sorted({*names, *(s for _, s in pairs)}, key=lambda s: s.encode())
    assert sorted(ranks(names, pairs, workers)) == sorted(zip(ordered, range(len(ordered)), strict=True))


@pytest.mark.parametrize("workers", [1, 3])
def test_many_symbols_are_in_order(workers: int) -> None:
    names = [f"{i * 7919 % 10_007:x}" for i in range(10_007)]
    assert sorted(ranks(names, [], workers), key=lambda row: row[1]) == list(zip(sorted(names), range(10_007), strict=True))
