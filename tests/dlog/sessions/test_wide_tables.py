"""Wide Arrow tables that come in batches: a session has the rows of Python's sets after each, however they repeat and go."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

PROGRAM = """.decl item(order: number, line: number, price: number, part: float, day: date, flag: symbol, comment: symbol)
.input item
.decl flagged(flag: symbol, n: number, total: number)
flagged(f, n, t) :- item(_, _, _, _, _, f, _), n = count : { item(_, _, _, _, _, f, _) },
    t = sum p : { item(_, _, p, _, _, f, _) }.
.decl commented(comment: symbol, order: number)
commented(c, o) :- item(o, _, _, _, _, _, c), !match(".*x.*", c).
.output flagged, commented, item
"""
NAMES = ("order", "line", "price", "part", "day", "flag", "comment")
TYPES = (pa.int64(), pa.int64(), pa.int64(), pa.float64(), pa.date32(), pa.string(), pa.string())
Row = tuple[int, int, int, float, date, str, str]


def row(random: Random, large: bool) -> Row:
    price = random.choice([2**40, -(2**50), 2**31]) if large and random.random() < 0.02 else random.randrange(50)
    day = date(2026, 1, 1) + timedelta(random.randrange(9))
    comment = "".join(random.choices("abxé語", k=random.randrange(5)))
    return random.randrange(9), random.randrange(9), price, random.choice([0.5, -1.0]), day, random.choice("ANR"), comment


def table(rows: list[Row], random: Random) -> pa.Table:
    """The rows, in one chunk or two, texts as they are or in dictionaries, with a column that the program does not have."""
    columns = {name: pa.array(values, type) for name, type, values in zip(NAMES, TYPES, zip(*rows, strict=True), strict=True)}
    if random.random() < 0.3:
        columns["flag"] = columns["flag"].dictionary_encode()
    columns["other"] = pa.array(range(len(rows)))
    whole = pa.table(dict(random.sample(list(columns.items()), len(columns))))
    cut = random.randrange(len(rows) + 1)
    return pa.concat_tables([whole.slice(0, cut), whole.slice(cut)]) if random.random() < 0.5 else whole


def expected(rows: set[Row]) -> tuple[set[Any], set[Any]]:
    flagged = {(f, sum(r[5] == f for r in rows), sum(r[2] for r in rows if r[5] == f)) for f in {r[5] for r in rows}}
    return flagged, {(r[6], r[0]) for r in rows if "x" not in r[6]}


def check(session: dlog.Session, rows: set[Row]) -> None:
    assert set(session["item"]) == rows
    assert (set(session["flagged"]), set(session["commented"])) == expected(rows)


@examples(40)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([70, 150, 300]), large=st.booleans())
def test_batches_of_wide_rows_come_and_go(seed: int, size: int, large: bool) -> None:
    random, there = Random(seed), set[Row]()
    with dlog.session(PROGRAM, threads=1) as session:
        known: list[Row] = []
        for _ in range(5):
            known += [row(random, large) for _ in range(size)]
            coming = random.choices(known, k=size)
            going = random.sample(known, size // random.choice([2, 9]))
            session.insert("item", table(coming, random))
            session.remove("item", table(going, random))
            there = (there | set(coming)) - set(going)
            session.commit()
            check(session, there)


@examples(20)
@given(seed=st.integers(0, 2**32), size=st.sampled_from([70, 300, 5000]), threads=st.sampled_from([1, 2]))
def test_rows_that_count_up_are_there_after_a_state_is_opened_again(seed: int, size: int, threads: int) -> None:
    random, there = Random(seed), set[Row]()
    order = 0
    with TemporaryDirectory() as folder:
        for _ in range(3):
            with dlog.session(PROGRAM, state=folder, threads=threads) as session:
                check(session, there)
                for _ in range(2):
                    coming = {(order + number // 3, *row(random, False)[1:]) for number in range(size)}
                    order += size
                    late = {row(random, False) for _ in range(random.choice([0, 0, 2]))}
                    going = set(random.sample(sorted(there), len(there) // 5))
                    session.insert("item", table(sorted(coming | late), random))
                    if going:
                        session.remove("item", table(sorted(going), random))
                    there = (there | coming | late) - going
                    session.commit()
                    check(session, there)


def test_columns_with_bits_for_nulls_are_read_where_there_are_none() -> None:
    """Casts leave such bits, of which slices begin anywhere."""
    numbers = pa.array([None, *range(100)], pa.int32()).cast(pa.int64())
    with dlog.session(".decl n(a: number, b: number)\n.decl t(a: number, b: symbol)\n", threads=1) as session:
        for first in (1, 3, 30):
            data = pa.table({"a": numbers, "b": numbers}).slice(first)
            assert data.column("a").chunk(0).buffers()[0] is not None
            session.insert("n", data)
        texts = pa.array([None, *map(str, range(100))]).slice(1)
        session.insert("t", pa.table({"a": numbers.slice(1), "b": texts}))
        session.commit()
        assert set(session["n"]) == {(n, n) for n in range(100)}
        assert set(session["t"]) == {(n, str(n)) for n in range(100)}
        with pytest.raises(DlogError, match="nulls"):
            session.insert("n", pa.table({"a": numbers, "b": numbers}))


@pytest.mark.parametrize("count", [3, 100])
def test_floats_of_tables_have_one_nan_and_two_zeros(count: int) -> None:
    values = [0.0, -0.0, float("nan"), -float("nan"), float("inf"), -1.5] * count
    with dlog.session(".decl f(x: float, y: unsigned)\n", threads=1) as session:
        session.insert("f", pa.table({"x": pa.array(values), "y": pa.array([2**63] * len(values), pa.uint64())}))
        session.commit()
        assert sorted(map(str, session["f"])) == sorted(str((x, 2**63)) for x in (0.0, -0.0, float("nan"), float("inf"), -1.5))


def test_a_batch_that_is_refused_changes_nothing() -> None:
    random = Random(7)
    before, after = {row(random, True) for _ in range(200)}, {row(random, True) for _ in range(50_000)}
    with dlog.session(PROGRAM, threads=1, memory="4 MB") as session:
        session.insert("item", table(list(before), random))
        session.commit()
        with pytest.raises(DlogError):
            for _ in range(9):
                session.insert("item", table(list(after | {row(random, True) for _ in range(50_000)}), random))
                session.commit()
        session_rows = set(session["item"])
        assert before <= session_rows
        assert (set(session["flagged"]), set(session["commented"])) == expected(session_rows)


@pytest.mark.parametrize("place", [0, 70, 199])
def test_texts_that_are_none_are_told_with_their_row(place: int) -> None:
    random = Random(3)
    made = table([row(random, False) for _ in range(200)], random)
    at = made.schema.get_field_index("comment")
    texts = [b"good"] * 200
    texts[place] = b"\xff"
    wrong = made.set_column(at, "comment", pa.array(texts, pa.binary()).view(pa.string()))
    with dlog.session(PROGRAM, threads=1) as session, pytest.raises(DlogError, match=f"{place + 1}.*byte 0xff"):
        session.insert("item", wrong)


def test_decimals_of_tables_go_where_they_are_whole_or_floats() -> None:
    prices = pa.table({"x": pa.array([Decimal("1.25"), Decimal("-3.00")], pa.decimal128(15, 2))})
    with dlog.session(".decl whole(x: number)\n.decl real(x: float)\n") as s:
        s.insert("real", prices)
        s.insert("whole", prices.slice(1))
        with pytest.raises(DlogError, match=r"digits behind the point: give .* 100 times as much"):
            s.insert("whole", prices)
        s.commit()
        assert (sorted(s["real"]), list(s["whole"])) == ([(-3.0,), (1.25,)], [(-3,)])
