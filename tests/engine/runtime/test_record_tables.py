"""Tables of records against a dict: over several growths of their sets, in calls of few records and of many, and where memory
does not suffice in the midst."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.blocks import HUGE_PAGE, LINE, LINES
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.core.memory import MAPS
from dlog.engine.kernels.static import emptying, gradual
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.grammar.diagnostics import DlogError
from tests.engine.kernels.workbench import Desk
from tests.examples import examples

SCALE = 16 if JIT else 1
"""Without the JIT tables are small, and grow by instalments so much earlier."""
SLOTS = 1024 * SCALE
FEW = 64
FULL = SLOTS * 2 * 4 // 5
"""Records with which a set grows by instalments first."""


@pytest.fixture(autouse=True, scope="module")
def small_tables() -> Iterator[None]:
    """What is compiled has the constant in it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradual, "MAX_SLOTS_GROWN_AT_ONCE", SLOTS)
        yield


def some(draw: np.random.Generator, count: int, arity: int) -> np.ndarray:
    """Records of which those with one field, or a few, are likely to be equal to others."""
    wide = draw.integers(-(2**63), 2**63 - 1, (count, arity))
    near = draw.integers(0, 40 * SCALE, (count, arity))
    return np.where(draw.random((count, 1)) < 0.5, wide, near)


def columns_of(records: np.ndarray) -> list[np.ndarray]:
    return [np.ascontiguousarray(records[:, c]) for c in range(records.shape[1])]


class Checked:
    """A table with the dict that says what it has to have."""

    def __init__(self, arity: int, memory: Memory | None = None) -> None:
        self.arity = arity
        self.tables = RecordTables(memory or Memory(None))
        self.ids: dict[bytes, int] = {}
        self.given: list[np.ndarray] = []

    @property
    def table(self) -> StoredRelation:
        return self.tables.table(self.arity)

    @property
    def grows(self) -> bool:
        return self.table.struct[L.relation.next_slots] != 0

    def pack(self, records: np.ndarray) -> None:
        ids = self.tables.pack(self.arity, columns_of(records))
        wanted = [self.ids.setdefault(record.tobytes(), len(self.ids) + 1) for record in records]
        assert ids.tolist() == wanted
        assert self.table.rows == len(self.ids)
        self.given.append(records)

    def check(self) -> None:
        """Every id that was ever given is found, and is the record's."""
        records = np.concatenate(self.given)
        found = Desk(self.table.memory).found(self.table, records.tolist())
        assert found == [self.ids[record.tobytes()] - 1 for record in records]
        fields = self.tables.fields(self.arity, np.array(found, np.int64) + 1)
        assert all(np.array_equal(field, records[:, c]) for c, field in enumerate(fields))

    def until_it_grows(self, draw: np.random.Generator) -> None:
        while not self.grows:
            self.pack(some(draw, FEW, self.arity))


CALLS = st.lists(
    st.tuples(st.sampled_from([1, 3, FEW, 60 * SCALE, 200 * SCALE, 900 * SCALE]), st.sampled_from(["any", "known", "both"])),
    min_size=3,
    max_size=20 if JIT else 6,
)


@examples(40 if JIT else 3)
@given(arity=st.sampled_from([1, 2, 3]), calls=CALLS, seed=st.integers(0, 1000))
def test_a_record_has_the_id_it_was_given_first(arity: int, calls: list[tuple[int, str]], seed: int) -> None:
    draw, checked = np.random.default_rng(seed), Checked(arity)
    for size, kind in calls:
        records = some(draw, size, arity)
        if kind != "any" and checked.given:
            before = np.concatenate(checked.given)
            known = before[draw.integers(0, len(before), size)]
            records = known if kind == "known" else np.where(draw.random((size, 1)) < 0.5, known, records)
        checked.pack(records)
    checked.check()


def test_records_without_fields_are_one() -> None:
    tables = RecordTables(Memory(None))
    assert [tables.pack(0, []).tolist() for _ in range(3)] == [[1], [1], [1]]


def test_calls_of_few_records_have_few_others_enter() -> None:
    draw, checked = np.random.default_rng(3), Checked(2)
    growths, before, grew = 0, 0, False
    while checked.table.rows < 5 * FULL:
        checked.pack(some(draw, FEW, 2))
        if checked.grows:
            entered = checked.table.struct[L.relation.entered]
            assert entered - (before if grew else 0) <= gradual.ROWS_ENTERED_PER_ROW * FEW
            growths, before = growths + (not grew), entered
        grew = checked.grows
    assert growths == 3
    checked.check()


@pytest.mark.parametrize("calls", [0, 1, 5])
def test_what_was_packed_is_found_while_the_set_grows(calls: int) -> None:
    draw, checked = np.random.default_rng(4), Checked(2)
    checked.until_it_grows(draw)
    for _ in range(calls if JIT else min(calls, 1)):
        checked.pack(some(draw, FEW, 2))
    assert checked.grows
    checked.check()
    checked.pack(np.concatenate(checked.given))
    checked.check()


@pytest.mark.skipif(not JIT, reason="huge pages are of large tables")
def test_rows_come_to_a_large_table_when_its_pages_are_there() -> None:
    checked = Checked(2)
    records = np.random.default_rng(5).permutation(700_000).reshape(-1, 1).repeat(2, 1)
    waited = 0
    for start in range(0, len(records), 500):
        ids = checked.tables.pack(2, columns_of(records[start : start + 500]))
        assert np.array_equal(ids, np.arange(start, start + 500) + 1)
        waited += checked.table.struct[L.relation.next_untouched] != 0
        if waited and checked.grows:
            back = np.random.default_rng(start).integers(0, start + 500, 500)
            assert np.array_equal(checked.tables.pack(2, columns_of(records[back])), back + 1)
    assert waited > 1
    assert np.array_equal(checked.tables.pack(2, columns_of(records)), np.arange(len(records)) + 1)


@pytest.mark.skipif(not MAPS or not JIT, reason="blocks have mappings where the system moves pages")
def test_columns_are_not_copied_when_they_are_large() -> None:
    """Each is in a mapping of its own from 2**17 bytes on, and stays there while it fits its first page."""
    tables = RecordTables(Memory(None))
    tables.pack(2, columns_of(np.arange(40_000).reshape(-1, 2)))
    places = [tables.table(2).column_address(c) for c in range(2)]
    assert all(place % HUGE_PAGE <= LINES * LINE for place in places)
    tables.pack(2, columns_of(np.arange(200_000).reshape(-1, 2)))
    assert [tables.table(2).column_address(c) for c in range(2)] == places


def test_a_set_that_cannot_grow_is_as_it_was() -> None:
    """Its memory is that of the call before, and a bit less than growing takes."""
    draw = np.random.default_rng(6)
    first = Checked(2)
    first.until_it_grows(draw)
    memory = Memory(first.table.memory.used - 1)
    checked = Checked(2, memory)
    for records in first.given[:-1]:
        checked.pack(records)
    used = memory.used
    for _ in range(2):
        with pytest.raises(DlogError, match="out of memory"):
            checked.pack(first.given[-1])
        assert (memory.used, checked.table.rows, checked.grows) == (used, len(checked.ids), False)
        checked.check()
    memory.limit = 2**62
    checked.pack(first.given[-1])
    assert checked.grows
    checked.pack(np.concatenate(first.given))
    checked.check()


@pytest.mark.parametrize("limit", [60_000, 200_000, 300_000])
def test_small_sets_are_so_too(limit: int) -> None:
    draw, memory = np.random.default_rng(7), Memory(limit)
    checked = Checked(1, memory)
    with pytest.raises(DlogError, match="out of memory"):
        for _ in range(limit // FEW):
            checked.pack(some(draw, FEW, 1))
    checked.check()


def test_the_account_is_even_when_a_table_that_grows_is_freed() -> None:
    checked = Checked(3)
    checked.until_it_grows(np.random.default_rng(8))
    assert checked.table.memory.used > FULL * 24
    checked.table.free()
    assert checked.table.memory.used == 0


@pytest.mark.parametrize("calls", [0, 1])
@pytest.mark.parametrize("how", ["kernel", "empty", "refill"])
def test_what_is_emptied_while_it_grows_numbers_records_anew(how: str, calls: int) -> None:
    draw, checked = np.random.default_rng(9), Checked(2)
    checked.until_it_grows(draw)
    for _ in range(calls):
        checked.pack(some(draw, FEW, 2))
    kept = np.arange(2 * FEW).reshape(FEW, 2)
    given, checked.given, checked.ids = checked.given, [], {}
    if how == "kernel":
        emptying.empty_relation(checked.table.address, Struct(L.BLOCK).address)
    elif how == "empty":
        checked.table.empty()
    else:
        checked.table.refill(columns_of(kept), FEW)
        checked.ids = {record.tobytes(): n + 1 for n, record in enumerate(kept)}
    checked.pack(kept)
    for records in given:
        checked.pack(records)
    checked.check()
    memory = checked.table.memory
    checked.table.free()
    assert memory.used == 0
