"""Sets of rows against Python's lists and dicts."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.codes import SetKind
from dlog.engine.kernels.static import sets, storage
from dlog.engine.runtime.storage import relation
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.grammar.diagnostics import DlogError
from tests.engine.kernels.workbench import (
    DOMAINS,
    EXAMPLES,
    MANY,
    MAX,
    MIN,
    Desk,
    Given,
    Row,
    loaded,
    relation_of,
    row_lists,
    rows_of,
)
from tests.examples import examples


def distinct(rows: list[Row]) -> list[Row]:
    return list(dict.fromkeys(rows))


@examples(3 * EXAMPLES)
@given(given=row_lists(), size=st.sampled_from([1, 3, 512]))
def test_insert_keeps_first_occurrences_in_order(given: Given, size: int) -> None:
    relation = given.relation()
    relation.new_set()
    added = Desk(relation.memory).insert(relation, given.rows, size)
    assert rows_of(relation) == distinct(given.rows)
    assert added == len(distinct(given.rows))


@examples(EXAMPLES)
@given(given=row_lists())
def test_find_rows_finds_what_was_inserted_and_nothing_else(given: Given) -> None:
    relation = given.relation()
    relation.new_set()
    desk = Desk(relation.memory)
    desk.insert(relation, given.rows)
    others = list(product((*given.domain.values, 5, MIN), repeat=given.arity))
    asked = [*given.rows, *others[:100], *others[-100:]]
    present = rows_of(relation)
    for row, found in zip(asked, desk.found(relation, asked), strict=True):
        assert (found >= 0) == (row in present), row
        if found >= 0 and relation.set_kind == SetKind.HASH:
            assert present[found] == row


def test_the_domains_give_sets_of_every_kind() -> None:
    def kind(name: str, arity: int) -> int:
        relation = relation_of([DOMAINS[name].extent] * arity)
        relation.new_set()
        return relation.set_kind

    assert [kind("few", 3), kind("few, 8 bytes", 2), kind("14 bits", 1)] == [SetKind.BITS] * 3
    assert [kind("32 bits", 1), kind("32 bits", 2), kind("64 bits", 1), kind("14 bits", 3)] == [SetKind.HASH] * 4
    assert kind("14 bits", 2) not in (SetKind.NONE, SetKind.HASH)
    assert relation_of([DOMAINS["few, 8 bytes"].extent]).widths == [8]
    assert relation_of([DOMAINS["32 bits"].extent]).widths == [4]


@pytest.mark.parametrize("extent", [None, Extent(-(2**31), 2**31 - 1), Extent(-5000, 5000), Extent(-50, 400)])
def test_a_set_that_grows_many_times_loses_nothing(extent: Extent | None) -> None:
    low, high = (MIN, MAX) if extent is None else (extent.low, extent.high)
    values = np.random.default_rng(1).integers(low, high, (MANY, 2), endpoint=True)
    rows = [(int(x), int(y)) for x, y in values]
    rows += [*rows[: MANY // 3], (low, high), (high, low), (low, high)]
    relation = relation_of([extent, extent])
    relation.new_set()
    desk = Desk(relation.memory)
    assert desk.insert(relation, rows) == len(set(rows))
    assert rows_of(relation) == distinct(rows)
    assert min(desk.found(relation, rows)) >= 0


@examples(EXAMPLES)
@given(given=row_lists())
def test_loading_keeps_first_occurrences(given: Given) -> None:
    assert rows_of(loaded(given.rows, given.arity)) == distinct(given.rows)


@pytest.mark.parametrize("high", [40, 5000, 2**40])
def test_loading_many_rows_keeps_each_once(high: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order where a row is a word, else where it is first."""
    monkeypatch.setattr(relation, "SORTED_ROWS", MANY)
    values = np.random.default_rng(2).integers(-high, high, (MANY, 2))
    rows = [(int(x), int(y)) for x, y in np.concatenate((values, values[::3]))]
    assert rows_of(loaded(rows, 2)) == (distinct(rows) if high == 2**40 else sorted(set(rows)))


@examples(EXAMPLES)
@given(given=row_lists(1, 3), order=st.sampled_from(["as given", "sorted", "distinct"]))
def test_strictly_sorted_means_ascending_without_repetition(given: Given, order: str) -> None:
    rows = {"as given": given.rows, "sorted": sorted(given.rows), "distinct": sorted(set(given.rows))}[order]
    relation = given.relation()
    relation._fill([np.array([r[c] for r in rows], np.int64) for c in range(given.arity)], len(rows))
    assert bool(storage.strictly_sorted(relation.address)) == (rows == sorted(set(rows)))


@pytest.mark.slow
@examples(EXAMPLES)
@given(given=row_lists(1, 3), cuts=st.lists(st.integers(0, 40), min_size=4, max_size=4))
def test_shares_take_what_the_relation_lacks_once_each(given: Given, cuts: list[int]) -> None:
    """Two rounds, so that a share which was collected must be as good as new."""
    relation = given.relation()
    relation.new_set()
    desk = Desk(relation.memory)
    a, b, c, d = sorted(cuts)
    desk.insert(relation, given.rows[:a])
    shares = [relation.share(f"r#{n}") for n in range(2)]
    for mine, yours in ((given.rows[a:c], given.rows[b:d]), (given.rows[d:], given.rows)):
        before = rows_of(relation)
        for share, rows in zip(shares, (mine, yours), strict=True):
            assert add_to_share(desk, relation, share, rows) == share.rows
            assert rows_of(share) == [r for r in distinct(rows) if r not in before]
        if relation.set_kind == SetKind.HASH:
            return
        for share in shares:
            relation.collect(share)
            assert share.rows == 0
        assert rows_of(relation) == distinct([*before, *mine, *yours])


def add_to_share(desk: Desk, relation: StoredRelation, share: StoredRelation, rows: list[Row]) -> int:
    codes, chosen, _ = desk.scratches()
    return sum(
        sets.share_block(desk.address, relation.address, share.address, registers.address, n, codes, chosen)
        for registers, n in desk.blocks(rows, relation.arity, 3)
    )


@examples(EXAMPLES)
@given(given=row_lists())
def test_a_set_made_later_holds_the_rows_present(given: Given) -> None:
    relation = given.relation()
    rows = distinct(given.rows)
    relation._fill([np.array([r[c] for r in rows], np.int64) for c in range(given.arity)], len(rows))
    relation.ensure_set()
    assert Desk(relation.memory).insert(relation, given.rows) == 0
    assert rows_of(relation) == rows


# --------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("extent", [None, Extent(-50, 400)])
def test_the_account_is_even_when_a_relation_is_freed(extent: Extent | None) -> None:
    memory = Memory(None)
    relation = relation_of([extent, extent], memory)
    relation.new_set()
    Desk(memory).insert(relation, [(i % 400, i // 400) for i in range(3000)])
    assert memory.used > 3000
    relation.trim()
    assert rows_of(relation) == [(i % 400, i // 400) for i in range(3000)]
    relation.free()
    assert memory.used == 0


def test_an_insert_above_the_limit_says_so_and_adds_nothing() -> None:
    memory = Memory(100_000)
    relation = relation_of([None, None], memory)
    relation.new_set()
    desk = Desk(memory)
    codes, chosen, _ = desk.scratches()
    blocks = desk.blocks([(i, -i) for i in range(10_000)], 2)
    for registers, n in blocks:
        if sets.insert_block(desk.address, relation.address, registers.address, n, codes, chosen) == -1:
            break
    assert 512 < relation.rows < 10_000 - 512
    with pytest.raises(DlogError, match="out of memory"):
        memory.check(desk.control)
    assert rows_of(relation) == [(i, -i) for i in range(relation.rows)]
