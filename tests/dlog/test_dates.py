"""Dates and times: what they are in programs, files, Python, Arrow and sessions."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog import DlogError

DECLARED = """
.type Birthday <: date
.type Event = [what: symbol, at: timestamp]
.decl born(name: symbol, day: Birthday)
.decl seen(at: timestamp, event: Event)
"""
RULES = """
.decl copy(name: symbol, day: date)
copy(n, d) :- born(n, d).
.decl later(at: timestamp, event: Event)
later(add_seconds(t, 1), [w, add_seconds(u, -1)]) :- seen(t, e), e = [w, u].
.output copy, later
"""
ADA, NOON = date(1815, 12, 10), datetime(2026, 11, 25, 12, 30, 0, 250_000)
FACTS: dict[str, Any] = {"born": [("Ada", ADA)], "seen": [(NOON, ("a", NOON))]}
LATER = [(NOON + timedelta(seconds=1), ("a", NOON - timedelta(seconds=1)))]


def message(*args: Any, **options: Any) -> str:
    with pytest.raises(DlogError) as caught:
        dlog.run(*args, **options)
    return str(caught.value)


def test_python_gives_and_gets_dates_and_times() -> None:
    result = dlog.run(DECLARED + RULES, FACTS)
    assert list(result["copy"]) == [("Ada", ADA)] and list(result["later"]) == LATER
    assert result["copy"].to_numpy()["day"].tolist() == [ADA]
    assert result["copy"].to_numpy()["day"].dtype == "datetime64[D]"
    assert result["copy"].to_arrow().schema.field("day").type == pa.date32()
    assert result["later"].to_arrow().schema.field("at").type == pa.timestamp("us")
    assert result["later"].to_arrow()["event"].to_pylist() == ["[a, 2026-11-25T12:29:59.250000]"]
    assert "1815-12-10" in repr(result["copy"])


def test_columns_of_arrow_and_numpy_are_taken() -> None:
    days, times = np.array(["2026-11-25"], "datetime64[D]"), np.array(["2026-11-25T12:30:00.25"], "datetime64[ms]")
    program = ".decl e(d: date, t: timestamp)\n.input e\n.output e\n"
    for rows in (
        {"d": days, "t": times},
        pa.table({"d": pa.array([date(2026, 11, 25)]), "t": pa.array(times)}),
        pa.table({"d": pa.array([date(2026, 11, 25)], pa.date64()), "t": pa.array([NOON.replace(tzinfo=UTC)])}),
        [(date(2026, 11, 25), NOON.replace(tzinfo=UTC).astimezone(timezone(timedelta(hours=2))))],
        [(days[0], times[0])],
    ):
        assert list(dlog.run(program, {"e": rows})["e"]) == [(date(2026, 11, 25), NOON)]


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        ([(NOON, NOON)], "is not of type date"),
        ([(20782, NOON)], "is not of type date"),
        ([("2026-11-25", NOON)], "is not of type date"),
        ([(ADA, ADA)], "is not of type timestamp"),
        ({"d": [1], "t": [NOON]}, "int64 is not date"),
        (pa.table({"d": [NOON], "t": [NOON]}), "timestamp[us] is not date"),
        (pa.table({"d": [ADA], "t": pa.array([1], pa.timestamp("ns"))}), "would lose data"),
    ],
)
def test_what_is_no_date_or_time_is_refused(rows: Any, wrong: str) -> None:
    assert wrong in message(".decl e(d: date, t: timestamp)\n.input e\n.output e\n", {"e": rows})


def test_days_that_python_has_no_date_for_are_numbers() -> None:
    facts = 'p(date("9999-12-31") + 1). p(date("-0001-12-31")). p(date("0001-01-01")). p(-9223372036854775807 - 1).'
    result = dlog.run(f".decl p(d: date)\n{facts}\n.output p\n")
    assert set(result["p"]) == {(2932897,), (-719529,), (date(1, 1, 1),), (-(2**63),)}


# ----------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow", ".json", ".ndjson"])
def test_files_of_all_kinds_keep_dates_and_times(tmp_path: Path, suffix: str) -> None:
    ways = f'(filename="b{suffix}")', f'(filename="s{suffix}")'
    out = DECLARED + f".output born{ways[0]}\n.output seen{ways[1]}\n"
    dlog.run(out, FACTS, output=tmp_path)
    back = DECLARED + RULES + f".input born{ways[0]}\n.input seen{ways[1]}\n"
    result = dlog.run(back, facts=tmp_path)
    assert list(result["copy"]) == [("Ada", ADA)] and list(result["later"]) == LATER


def test_text_has_iso_dates(tmp_path: Path) -> None:
    dlog.run(DECLARED + ".output born, seen\n", FACTS, output=tmp_path)
    assert (tmp_path / "born.csv").read_text() == "Ada\t1815-12-10\n"
    assert (tmp_path / "seen.csv").read_text() == "2026-11-25T12:30:00.250000\t[a, 2026-11-25T12:30:00.250000]\n"


def test_json_has_texts(tmp_path: Path) -> None:
    dlog.run(DECLARED + ".output seen(IO=jsonfile)\n", FACTS, output=tmp_path)
    (file,) = tmp_path.glob("*.json")
    time = "2026-11-25T12:30:00.250000"
    assert json.loads(file.read_text()) == [[time, ["a", time]]]


def test_sqlite_has_texts(tmp_path: Path) -> None:
    program = '.decl e(d: date, t: timestamp)\n{} e(IO=sqlite, filename="e.db")\n'
    dlog.run(program.format(".output"), {"e": [(ADA, NOON)]}, output=tmp_path)
    with closing(sqlite3.connect(tmp_path / "e.db")) as connection:
        assert connection.execute("SELECT * FROM e").fetchall() == [("1815-12-10", "2026-11-25T12:30:00.250000")]
        connection.execute("INSERT INTO e VALUES ('1815-12-32', '2026-11-25')")
        connection.commit()
    said = message(program.format(".input") + ".output e", facts=tmp_path)
    assert "column `d` of 'e', row 2: '1815-12-32' is not a valid date" in said


LINES = """2026-11-25\t2026-11-25T12:30:00.25
2026-02-29\t2026-11-25
2024-02-29\t2026-11-25 12:30+02:00
2026-11-25 \t2026-11-25
26-11-25\t2026-11-25
2026-11-25\t2026-11-25T25:00
-0044-03-15\t+12026-11-25T00:00:00Z
"""


def test_wrong_dates_are_wrong_rows(tmp_path: Path) -> None:
    (tmp_path / "e.facts").write_text(LINES)
    program = ".decl e(d: date, t: timestamp)\n.input e{}\n.output e\n"
    said = message(program.format(""), facts=tmp_path)
    assert "e.facts:2:1\n" in said and "line 2, column 1 (`d`): `2026-02-29` is not a date" in said
    assert "a date is a day that there is, as 2026-11-25" in said
    assert "e.facts:6:12\n" in said and "line 6, column 2 (`t`): `2026-11-25T25:00` is not a time" in said
    with pytest.warns(RuntimeWarning, match="4 wrong rows are left out"):
        result = dlog.run(program.format("(errors=skip)"), facts=tmp_path, output=tmp_path)
    assert len(result["e"]) == 3
    assert (tmp_path / "e.csv").read_text().splitlines() == [
        "-0044-03-15\t+12026-11-25T00:00:00",
        "2024-02-29\t2026-11-25T10:30:00",
        "2026-11-25\t2026-11-25T12:30:00.250000",
    ]


def test_a_wrong_date_in_a_record_is_a_wrong_row(tmp_path: Path) -> None:
    (tmp_path / "seen.facts").write_text("2026-11-25\t[a, 2026-13-25]\n")
    said = message(DECLARED + ".input seen\n.output seen\n", facts=tmp_path)
    assert "has the field `2026-13-25`, not a valid timestamp" in said


# -------------------------------------------------------------------------------------------------------------- sessions


def test_sessions_queries_and_proofs_speak_of_dates() -> None:
    with dlog.session(DECLARED + RULES) as session:
        session.insert("born", ("Ada", ADA))
        session.insert("seen", FACTS["seen"])
        changes = session.commit()
        assert changes.changes("copy").rows == [(("Ada", ADA), 1)]
        assert changes.changes("later").to_numpy()["at"].dtype == "datetime64[us]"
        assert list(session.query('?- born(N, D), D < date("1900-01-01"), E = D, Y = year(D).')) == [("Ada", ADA, ADA, 1815)]
        assert str(session.why("copy", ("Ada", ADA))).startswith('copy("Ada", date("1815-12-10"))')
        session.remove("born", ("Ada", ADA))
        assert session.commit().changes("copy").rows == [(("Ada", ADA), -1)]
        with pytest.raises(DlogError, match="is not of type Birthday"):
            session.insert("born", ("Bob", 12))


def test_functors_of_users_get_and_give_dates() -> None:
    program = ".decl e(d: date)\n.functor next(d: date): date\n.decl p(d: date)\np(@next(d)) :- e(d).\n.output p\n"
    for rows in ([(ADA,)], [(ADA + timedelta(n),) for n in range(100)]):
        result = dlog.run(program + ".input e", {"e": rows}, functors={"next": lambda d: d + timedelta(1)})
        assert set(result["p"]) == {(d + timedelta(1),) for (d,) in rows}


def test_a_program_may_declare_types_of_these_names() -> None:
    program = '.type date <: symbol\n.decl p(d: date)\np("monday").\n.decl year(y: number)\nyear(3).\n.output p, year\n'
    result = dlog.run(program)
    assert list(result["p"]) == [("monday",)] and list(result["year"]) == [(3,)]


def test_a_text_that_is_no_date_stops_the_run() -> None:
    said = message('.decl s(x: symbol)\ns("2026-11-31").\n.decl p(d: date)\np(date(x)) :- s(x).\n.output p\n')
    assert 'date("2026-11-31"): the text is not a date' in said
