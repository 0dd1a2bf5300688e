"""`.limitsize` counts the rows of all workers."""

from __future__ import annotations

import pytest

from tests.shards import run_sharded

CHAIN = """.decl e(x: number, y: number)
.decl r(x: number)
.decl s(x: number)
.limitsize r(n={limit})
r(0). r(y) :- r(x), e(x, y).
s(x) :- r(x)."""
CLOSURE = """.decl e(x: number, y: number)
.decl p(x: number, y: number)
.limitsize p(n={limit})
p(x, y) :- e(x, y).
p(x, z) :- p(x, y), e(y, z).
"""
LEAST = """.decl e(x: number, y: number)
.decl v(x: number)
v(x) :- e(x, _).
.decl d(x: number, n: number)
.limitsize d(n={limit})
d(x, n) :- v(x), n = min m : {{ v(x), m = x ; d(y, m), e(y, x) }}.
"""
EDGES = {"e": [(i, i + 1) for i in range(300)]}
MOVING = pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])


@MOVING
@pytest.mark.parametrize(("limit", "rows"), [(1, 1), (10, 10), (299, 299), (500, 301)])
def test_a_loop_ends_when_all_workers_together_have_so_many_rows(everywhere: int, limit: int, rows: int) -> None:
    found = run_sharded(CHAIN.format(limit=limit), EDGES, 3, everywhere)
    assert sorted(found["r"]) == sorted(found["s"]) == [(i,) for i in range(rows)]


@MOVING
def test_workers_that_exchange_nothing_end_soon_after_the_limit(everywhere: int) -> None:
    """A tenth of the closure; an iteration adds at most 300 rows, and no worker is more than its share ahead."""
    found = run_sharded(CLOSURE.format(limit=4_500), EDGES, 3, everywhere)["p"]
    assert 4_500 <= len(found) <= 4_500 + 300
    assert all(0 <= x < y <= 300 for x, y in found)


@MOVING
@pytest.mark.parametrize("limit", [45_151, 10**9])
def test_a_limit_that_is_not_reached_takes_no_row(everywhere: int, limit: int) -> None:
    assert len(run_sharded(CLOSURE.format(limit=limit), EDGES, 3, everywhere)["p"]) == 45_150


@MOVING
def test_a_lattice_at_its_limit_stays_as_it_is_and_one_below_is_complete(everywhere: int) -> None:
    """There are 300 keys from the start: their first values are what a limit of so many leaves."""
    stopped, complete = (run_sharded(LEAST.format(limit=limit), EDGES, 3, everywhere)["d"] for limit in (300, 301))
    assert stopped == {(x, x) for x in range(300)}
    assert complete == {(x, 0) for x in range(300)}
