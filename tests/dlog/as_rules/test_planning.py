"""Joins are planned as those of any rule: by the sizes of relations, whatever the order in which they are written."""

from __future__ import annotations

import re
from itertools import permutations, product

import pytest

import dlog
from dlog.as_rules import Rules
from dlog.dataflow import Dataflow

ORDERS = list(permutations(["one", "two", "three"]))


def rules_of(order: tuple[str, ...]) -> Rules:
    """Three relations that share a column, joined in some order."""
    flow = Dataflow()
    inputs = {name: flow.input(name, **{"k": int, name: int}) for name in ("one", "two", "three")}
    first, second, third = (inputs[name] for name in order)
    joined = first.join(second, on="k").join(third, on="k").map("k", "one", "two", "three")
    return dlog.rules(joined=joined, sets=list(inputs))


def joined_with(explained: str, changed: str) -> list[str]:
    """The relations that changes of one are joined with, in order."""
    (path,) = re.findall(rf"^    changes {changed}\(.*\n((?:    (?:join|if) .*\n)+)", explained, re.M)
    return re.findall(r"^    (?:join|if) (\w+)", path, re.M)


@pytest.mark.parametrize("few", ["two", "three"])
@pytest.mark.parametrize("order", ORDERS)
def test_1_11_joins_are_in_the_order_of_sizes_however_they_are_written(order: tuple[str, ...], few: str) -> None:
    rows = {name: [(x % 50, x) for x in range(2_000)] for name in ("one", "two", "three")}
    rows[few] = [(7, 7)]
    with rules_of(order).session(rows, threads=1) as s:
        others = [name for name in ("two", "three") if name != few]
        assert joined_with(s.explain(), "one") == [few, *others]
        of_key = [[x for k, x in rows[name] if k == 7] for name in ("one", "two", "three")]
        assert set(s["joined"]) == {(7, *each) for each in product(*of_key)}
