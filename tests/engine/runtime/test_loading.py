"""Loading removes rows that repeat: of many by sorting them, where a row is a word, else by a table, alone or with several
threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.storage import relation
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.relation import StoredRelation
from tests.examples import examples

VALUES = st.one_of(st.integers(-3, 3), st.sampled_from([2**31, -(2**62), 2**62]))


@examples(60)
@given(rows=st.lists(st.tuples(VALUES, VALUES), max_size=60), threads=st.integers(1, 3))
def test_the_first_of_equal_rows_stays_in_its_place(rows: list[tuple[int, int]], threads: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation, "SHARED_ROWS", 0)
        stored = StoredRelation("r", (Kind.NUMBER, Kind.NUMBER), Memory(None, threads))
        stored.load([np.array([r[c] for r in rows], np.int64) for c in range(2)], len(rows))
    assert list(zip(stored.column(0).tolist(), stored.column(1).tolist(), strict=True)) == list(dict.fromkeys(rows))


@st.composite
def columns_within(draw: st.DrawFn, bits: int) -> list[np.ndarray]:
    """Columns whose ranges together have at most so many bits, the last one of them the rest."""
    cuts = sorted(draw(st.lists(st.integers(0, bits), max_size=3)))
    widths = [end - begin for begin, end in zip([0, *cuts], [*cuts, bits], strict=True)]
    rows = draw(st.integers(1, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    columns = []
    for width in widths:
        low = int(random.integers(-(2**62), 2**62 - 2**width)) if width < 62 else -(2**62)
        column = low + random.integers(0, 2**width, rows)
        column[random.random(rows) < 0.5] = random.choice([low, low + 2**width - 1])
        columns.append(column)
    return columns


@examples(100)
@given(columns=st.integers(0, 63).flatmap(columns_within))
def test_many_rows_that_fit_a_word_are_sorted(columns: list[np.ndarray]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(relation, "SORTED_ROWS", 0)
        stored = StoredRelation("r", (Kind.NUMBER,) * len(columns), Memory(None, 1))
        stored.load(columns, len(columns[0]))
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    kept = list(zip(*(stored.column(c).tolist() for c in range(len(columns))), strict=True))
    assert kept == sorted(set(rows))
    assert stored.sorted_by == tuple(range(len(columns)))


def test_an_index_by_the_first_column_of_rows_that_were_sorted_is_those_rows() -> None:
    values = np.random.default_rng(5).integers(0, 5_000, (2, relation.SORTED_ROWS))
    stored = StoredRelation("r", (Kind.NUMBER, Kind.NUMBER), Memory(None, 1))
    stored.load(list(values), relation.SORTED_ROWS)
    before = stored.column_address(0), stored.column_address(1)
    index = StoredArrangement(stored, (0,), (1,), growing=False)
    index.build((1,))
    assert (stored.column_address(0), stored.column_address(1)) == before


def test_many_rows_with_few_repetitions() -> None:
    values = np.random.default_rng(4).integers(0, 2**40, (2, 700_000))
    values[:, 600_000:600_100] = values[:, :100]
    stored = StoredRelation("r", (Kind.NUMBER, Kind.NUMBER), Memory(None, 2))
    stored.load(list(values), 700_000)
    kept = np.delete(values, slice(600_000, 600_100), axis=1)
    assert np.array_equal(stored.column(0), kept[0])
    assert np.array_equal(stored.column(1), kept[1])
