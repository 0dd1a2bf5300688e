"""Each query over ten rounds of inserts and deletes: its answer is DuckDB's after each of them."""

from __future__ import annotations

import decimal
import re
from itertools import pairwise

import pyarrow as pa
import pytest

import dlog
from dlog.pipeline import compile_program
from tests.conftest import ROOT, RunText
from tests.tpch.conftest import ROUNDS, Data, Expected
from tests.tpch.data import KEYS, numbers
from tests.tpch.engines import Maintained, same, same_order
from tests.tpch.queries import NAMES, Query

FIXED = {"q2", "q11", "q16"}
"""They read neither orders nor items: nothing changes."""
STILL = {"q8", "q17", "q20", "q22"}
"""A hundredth of the parts and customers is too few for these: what changes concerns none of their rows."""


def follow(name: str, data: Data) -> list[pa.Table]:
    """The answers at first and after each round, each compared with what is expected."""
    query, expected = Query(name, data.scale), iter(data.answers[name])
    with Maintained(query, data.first, threads=1) as maintained:
        found = [checked(query, maintained.rows(), next(expected))]
        for inserted, deleted in data.rounds:
            maintained.change(inserted, deleted)
            found.append(checked(query, maintained.rows(), next(expected)))
    return found


def changes(answers: list[pa.Table]) -> bool:
    return any(not a.equals(b) for a, b in pairwise(answers))


def checked(query: Query, rows: pa.Table, expected: Expected) -> pa.Table:
    assert same(rows, expected.whole)
    assert same_order(query, query.presented(rows), expected.presented)
    return rows


@pytest.mark.parametrize("name", NAMES)
def test_answers_are_right_after_each_round(name: str, hundredth: Data) -> None:
    answers = follow(name, hundredth)
    assert len(answers) == ROUNDS + 1
    assert changes(answers) == (name not in FIXED | STILL)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_right_at_a_tenth_of_the_scale(name: str, tenth: Data) -> None:
    answers = follow(name, tenth)
    assert min(answer.num_rows for answer in answers) > 0
    assert changes(answers) == (name not in FIXED)


@pytest.mark.parametrize("name", NAMES)
def test_a_run_answers_as_well(name: str, hundredth: Data) -> None:
    query = Query(name, hundredth.scale)
    facts = {relation: hundredth.first[relation] for relation in query.inputs}
    result = dlog.run(query.program, facts, threads=1)
    checked(query, result["answer"].to_arrow(), hundredth.answers[name][0])


WORKERS = [pytest.param("shards", marks=pytest.mark.slow), pytest.param("spark", marks=pytest.mark.spark)]


@pytest.mark.parametrize("run_text", WORKERS, indirect=True, scope="session")
@pytest.mark.parametrize("name", NAMES)
def test_two_workers_answer_as_well(run_text: RunText, name: str, hundredth: Data) -> None:
    query, expected = Query(name, hundredth.scale), hundredth.answers[name][0]
    text = query.program.read_text(encoding="ascii")
    relations = compile_program(query.program).relations
    names = {relation: [column for column, _ in found.attributes] for relation, found in relations.items()}
    tables = {relation: hundredth.first[relation].select(names[relation]) for relation in query.inputs}
    facts = {name: list(zip(*(c.to_pylist() for c in table.columns), strict=True)) for name, table in tables.items()}
    answer = [dict(zip(names["answer"], row, strict=True)) for row in run_text(text, facts, threads=2)["answer"]]
    checked(query, pa.Table.from_pylist(answer) if answer else expected.whole.slice(0, 0), expected)


# ----------------------------------------------------------------------------------------------------------- what is compared


def test_as_many_orders_come_and_go_with_all_of_their_items(hundredth: Data) -> None:
    there = {name: rows(hundredth.first[name]) for name in KEYS}
    for inserted, deleted in hundredth.rounds:
        assert (inserted["orders"].num_rows, deleted["orders"].num_rows) == (750, 750)
        for tables in (inserted, deleted):
            assert set(tables["lineitem"]["l_orderkey"].to_pylist()) == set(tables["orders"]["o_orderkey"].to_pylist())
        for name in KEYS:
            assert not rows(inserted[name]) & there[name]
            assert rows(deleted[name]) <= there[name]
            there[name] = there[name] | rows(inserted[name]) - rows(deleted[name])


def rows(table: pa.Table) -> set[tuple[int, int]]:
    """Keys of rows: of an order and, of an item, its line."""
    lines = table["l_linenumber"] if "l_linenumber" in table.column_names else table["o_shippriority"]
    return set(zip(table[0].to_pylist(), lines.to_pylist(), strict=True))


def test_decimals_are_numbers() -> None:
    amounts = pa.chunked_array([pa.array([decimal.Decimal("12.34"), decimal.Decimal("-0.05")], pa.decimal128(15, 2))])
    assert numbers(amounts).to_pylist() == [1234, -5]
    assert numbers(amounts.slice(1)).to_pylist() == [-5]


def test_answers_differ_where_a_row_does() -> None:
    one = pa.table({"a": [1, 2, 2], "b": [0.5, 0.25, 0.25]})
    assert same(one, one.take([2, 0, 1]))
    assert same(one, pa.table({"a": [2, 1, 2], "b": [0.25, 0.5 + 1e-12, 0.25]}))
    assert not same(one, one.slice(1))
    assert not same(one, one.take([0, 0, 1]))
    assert not same(one, pa.table({"a": [1, 2, 2], "b": [0.5, 0.25, 0.26]}))
    assert same(pa.table({"a": pa.array([], pa.int64())}), pa.table({"a": pa.array([None], pa.int64())}))


def test_what_sql_says_of_order_is_read() -> None:
    third = Query("q3", 1.0)
    assert (third.order, third.limit) == ([("revenue", "descending"), ("o_orderdate", "ascending")], 10)
    assert "limit" not in third.whole_sql
    assert "order by revenue desc" in third.whole_sql
    assert (Query("q6", 1.0).order, Query("q6", 1.0).limit) == ([], None)
    assert "/ 1000 from" in Query("q11", 0.1).sql
    rows = pa.table({"l_orderkey": [1, 2, 3], "revenue": [5, 9, 9], "o_orderdate": [1, 2, 1]})
    assert third.presented(rows)["l_orderkey"].to_pylist() == [3, 2, 1]


def test_the_page_shows_what_the_programs_say() -> None:
    programs = [Query(name, 1.0).program.read_text(encoding="ascii") for name in NAMES]
    blocks = re.findall(r"```prolog\n(.*?)```", (ROOT / "docs" / "tpch.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    assert all(any(block in program for program in programs) for block in blocks)
