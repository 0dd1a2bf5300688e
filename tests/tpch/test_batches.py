"""Queries 1 and 13 are right however their tables come, by every way of saying them."""

from __future__ import annotations

import pytest

from dlog.engine.operators.reduce import Reduce, ReduceTotal
from tests.tpch.batches import TABLE, WAYS, Counts, feed_all
from tests.tpch.conftest import Data
from tests.tpch.engines import same


def check(name: str, way: str, batch: int, data: Data) -> None:
    """The rows that are there at first come in batches; then half of the first batch goes again, and comes back."""
    fed, table = WAYS[way](name, data.first), data.first[TABLE[name]]
    feed_all(fed, table, batch)
    assert same(fed.rows(), data.answers[name][0].whole)
    half = fed.fed_columns(table).slice(0, batch // 2)
    fed.feed(half, -1)
    assert not same(fed.rows(), data.answers[name][0].whole)
    fed.feed(half)
    assert same(fed.rows(), data.answers[name][0].whole)
    fed.close()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", TABLE)
def test_3_7_tables_may_come_in_batches(name: str, way: str, hundredth: Data) -> None:
    check(name, way, 1000, hundredth)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("batch", [1000, 10_000, 100_000])
@pytest.mark.parametrize("name", TABLE)
def test_tables_may_come_in_batches_at_a_tenth_of_the_scale(name: str, batch: int, way: str, tenth: Data) -> None:
    check(name, way, batch, tenth)


@pytest.mark.parametrize("name", TABLE)
def test_counts_are_by_the_operator_that_is_asked_for(name: str, hundredth: Data) -> None:
    kinds = [{type(o) for o in Counts(general, name, hundredth.first).flow.operators} for general in (False, True)]
    assert [kind & {Reduce, ReduceTotal} for kind in kinds] == [{ReduceTotal}, {Reduce}]
