"""What needs more than 64 bits is refused: sums and products of diffs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dlog.dataflow import Dataflow, Variable, col, lit, moving
from dlog.dataflow.collection import Collection
from dlog.dataflow.flow import Input
from dlog.dataflow.outputs import Captured
from dlog.grammar.diagnostics import DlogError

Made = tuple[Dataflow, Input, Captured]
HALF = 2**62
ROUNDS = [[HALF, HALF + 1]], [[HALF], [HALF + 1]]


def made(operator: Callable[[Collection], Collection]) -> Made:
    flow = Dataflow()
    rows = flow.input(k=int, v=int)
    return flow, rows, operator(rows).capture()


def refused(run: Callable[[], object]) -> None:
    with pytest.raises(DlogError, match="beyond 64 bits") as caught:
        run()
    assert caught.value.diagnostics[0].code == "diff-overflow"


def in_loop(rows: Collection) -> Collection:
    loop = rows.scope.loop()
    return rows.enter(loop).sum(by="k", total="v").leave()


SUMS = {
    "sum": lambda rows: rows.sum(total="v"),
    "by key": lambda rows: rows.sum(by="k", total="v"),
    "count of weights": lambda rows: rows.explode("k", diff="v").count(),
    "with floats": lambda rows: rows.sum(by="k", total="v", other=col("v") * 0.5),
    "in a loop": in_loop,
    "beside another reader": lambda rows: rows.explode("k", diff="v").arrange_by_key("k").collection.count(),
}


@pytest.mark.parametrize("batches", ROUNDS, ids=["one round", "two rounds"])
@pytest.mark.parametrize("operator", SUMS.values(), ids=SUMS.keys())
def test_sums_beyond_64_bits_are_refused(operator: Callable[[Collection], Collection], batches: list[list[int]]) -> None:
    flow, rows, sums = made(operator)

    def run() -> None:
        for batch in batches:
            rows.insert([(1, value) for value in batch])
            flow.commit()
        sums.counts()

    refused(run)


@pytest.mark.parametrize("operator", SUMS.values(), ids=SUMS.keys())
def test_sums_of_64_bits_are_exact(operator: Callable[[Collection], Collection]) -> None:
    """Whatever has come and gone: the sum of what is there fits."""
    flow, rows, sums = made(operator)
    rows.insert([(1, HALF), (1, HALF - 1)])
    flow.commit()
    for _ in range(3):
        for goes, comes in ((HALF, 1 - HALF), (1 - HALF, HALF)):
            rows.remove([(1, goes)])
            rows.insert([(1, comes)])
            flow.commit()
    assert {row for row in sums.counts() if 2**63 - 1 in row}


def test_moving_sums_beyond_64_bits_are_refused() -> None:
    flow, rows, sums = made(lambda rows: rows.moving("k", rows=2, total=moving.sum("v")).map("k", "total"))
    rows.insert([(1, HALF), (2, HALF - 1), (3, -HALF)])
    flow.commit()
    assert sums.counts() == {(1, HALF): 1, (2, 2**63 - 1): 1, (3, -1): 1}
    rows.insert([(0, HALF)])
    refused(flow.commit)


def test_many_large_sums_of_different_keys_are_exact() -> None:
    flow, rows, sums = made(lambda rows: rows.sum(by="k", total="v"))
    rows.insert([(key, HALF) for key in range(9)])
    flow.commit()
    rows.insert([(key, HALF - 1) for key in range(9)])
    flow.commit()
    assert sums.counts() == {(key, 2**63 - 1): 1 for key in range(9)}


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize(
    "operator",
    [
        lambda rows: rows,
        lambda rows: rows.count(),
        lambda rows: rows.distinct(),
        lambda rows: rows.consolidate(),
        lambda rows: rows.arrange_by_key("k").collection.map("v"),
        lambda rows: rows.top_k(3, "v", by="k"),
    ],
    ids=["input", "count", "distinct", "consolidate", "arrangement", "top_k"],
)
def test_rows_that_are_there_too_often_are_refused(operator: Callable[[Collection], Collection], rounds: int) -> None:
    flow, rows, seen = made(operator)

    def run() -> None:
        for round in range(2):
            rows.update([(1, 2)], HALF, at=round)
        flow.advance_to(1)
        flow.advance_to(2)
        if rounds == 1:
            rows.update([(1, 2)], HALF)
            rows.update([(1, 2)], HALF)
            flow.commit()
        seen.counts()

    refused(run)


PRODUCTS = {
    "explode": lambda rows: rows.explode("k", diff="v"),
    "explode by a constant": lambda rows: rows.explode("k", diff=lit(HALF)),
    "explode to tuples": lambda rows: rows.explode("k", diff=(1, col("v"))).count("n", "v"),
    "repeat_row": lambda rows: rows.repeat_row("v"),
    "join_function": lambda rows: rows.join_function(lambda k, v: [((k,), 0, v)], k=int),
    "join": lambda rows: rows.map("k").join(rows.rename(k="k").explode("k", diff="v")),
    "half_join": lambda rows: rows.propose().half_join(rows, "k", ties=True).collect(),
}


@pytest.mark.parametrize("operator", PRODUCTS.values(), ids=PRODUCTS.keys())
def test_products_beyond_64_bits_are_refused(operator: Callable[[Collection], Collection]) -> None:
    flow, rows, seen = made(operator)
    rows.update([(1, 2**40)], 2**40)

    def run() -> None:
        flow.commit()
        seen.counts()

    refused(run)


def test_products_are_refused_row_by_row() -> None:
    """A large weight beside a large diff is no mistake."""
    flow, rows, seen = made(lambda rows: rows.repeat_row("v"))
    rows.update([(1, 2**40), (2, 3)], [1, 2**60])
    flow.commit()
    assert seen.counts() == {(1, 2**40): 2**40, (2, 3): 3 * 2**60}


@pytest.mark.parametrize("diffs", [-(2**63), [1, -(2**63)]])
def test_diffs_have_their_negation(diffs: int | list[int]) -> None:
    _, rows, _ = made(lambda rows: rows.negate())
    refused(lambda: rows.update([(1, 2)] * np.size(diffs), diffs))


@pytest.mark.parametrize("diff", [2**63, -(2**63), 2**80])
def test_functions_give_diffs_of_64_bits(diff: int) -> None:
    flow, rows, seen = made(lambda rows: rows.reduce("k", lambda key, values: [((1,), diff)], n=int))
    rows.insert([(1, 2)])

    def run() -> None:
        flow.commit()
        seen.counts()

    refused(run)


def test_the_first_rows_are_right_however_often_they_are_there() -> None:
    flow, rows, first = made(lambda rows: rows.top_k(3, "v", by="k"))
    rows.update([(1, 1), (1, 2), (1, 3)], [1, HALF, HALF])
    rows.update([(2, 1), (2, 2), (2, 3), (2, 4)], HALF)
    flow.commit()
    assert first.counts() == {(1, 1): 1, (1, 2): 2, (2, 1): 3}


def test_rows_that_nobody_can_number_are_refused() -> None:
    flow, rows, seen = made(lambda rows: rows)
    rows.update([(key, 1) for key in range(5)], HALF)
    flow.commit()
    refused(lambda: len(seen))


def test_a_loop_that_doubles_rows_is_refused() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    loop = flow.scope.loop()
    again = Variable(loop, rows.enter(loop))
    again.set(again.concat(again)).leave().capture()
    rows.insert([1])
    refused(flow.commit)
