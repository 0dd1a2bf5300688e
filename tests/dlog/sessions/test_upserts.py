"""Upserts among other changes, against a set of rows: by rows and by columns, staged, committed and rolled back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from tests.examples import examples

TEXT = """
.decl p(item: symbol, place: number, euros: number)
.input p
.decl q(item: symbol, euros: number)
q(i, e) :- p(i, _, e).
"""
NAMES = ("item", "place", "euros")
Row = tuple[str, int, int]
ROWS = st.tuples(st.sampled_from(["tea", "rum", "oil"]), st.integers(0, 2), st.sampled_from([0, 1, -5, 2**40]))
STEPS = st.tuples(
    st.sampled_from(["upsert", "insert", "remove", "commit", "rollback"]),
    st.lists(ROWS, min_size=1, max_size=6),
    st.booleans(),
    st.sampled_from([("item",), ("item", "place"), ("place",)]),
)


def as_given(rows: list[Row], bulk: bool) -> Any:
    return pa.table(dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))) if bulk else rows


def upserted(held: set[Row], row: Row, key: tuple[str, ...]) -> set[Row]:
    places = [NAMES.index(name) for name in key]
    return {old for old in held if any(old[k] != row[k] for k in places)} | {row}


@examples(60)
@given(steps=st.lists(STEPS, max_size=12))
def test_upserts_mix_with_all_other_changes(steps: list[tuple[str, list[Row], bool, tuple[str, ...]]]) -> None:
    held: set[Row] = set()
    committed: set[Row] = set()
    with dlog.session(TEXT) as s:
        for what, rows, bulk, key in steps:
            match what:
                case "upsert":
                    s.upsert("p", as_given(rows, bulk), key=key)
                    for row in rows:
                        held = upserted(held, row, key)
                case "insert":
                    s.insert("p", as_given(rows, bulk))
                    held = held | set(rows)
                case "remove":
                    s.remove("p", as_given(rows, bulk))
                    held = held - set(rows)
                case "commit":
                    s.commit()
                    committed = held
                case _:
                    s.rollback()
                    held = committed
            if what == "commit":
                assert set(s["p"]) == committed
                assert set(s["q"]) == {(item, euros) for item, _, euros in committed}
        s.commit()
        assert set(s["p"]) == held


@pytest.mark.parametrize("memory", ["40MB"])
def test_an_upsert_that_memory_refuses_stages_nothing(memory: str) -> None:
    with dlog.session(TEXT, memory=memory) as s:
        s.insert("p", ("tea", 1, 2))
        s.commit()
        many = {"item": ["tea"] * 2_000_000, "place": range(2_000_000), "euros": range(2_000_000)}
        with pytest.raises(dlog.DlogError, match="memory"):
            s.upsert("p", many, key=("item", "place"))
        s.upsert("p", ("tea", 1, 3), key=("item", "place"))
        s.commit()
        assert set(s["p"]) == {("tea", 1, 3)}
