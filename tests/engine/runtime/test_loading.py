"""Loading removes rows that repeat, alone or with several threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.storage import relation
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


def test_many_rows_with_few_repetitions() -> None:
    values = np.random.default_rng(4).integers(0, 2**40, (2, 700_000))
    values[:, 600_000:600_100] = values[:, :100]
    stored = StoredRelation("r", (Kind.NUMBER, Kind.NUMBER), Memory(None, 2))
    stored.load(list(values), 700_000)
    kept = np.delete(values, slice(600_000, 600_100), axis=1)
    assert np.array_equal(stored.column(0), kept[0])
    assert np.array_equal(stored.column(1), kept[1])
