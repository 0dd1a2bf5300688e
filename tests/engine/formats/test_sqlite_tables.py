"""SQLite: tables are found by name, columns by the rule for named columns; what is written replaces what was there."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import numpy as np
import pytest

from dlog.engine import formats
from dlog.engine.formats import sqlite_tables
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation
from tests.engine.formats.test_text import rows_of

ROW = relation("number", "symbol", "float", "unsigned")
PAIR = relation("symbol", "symbol")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def execute(folder: Path, *statements: str, name: str = "r.sqlite") -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(folder / name)) as connection, connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


def load(folder: Path, shape: Relation, **params: str) -> list[tuple[object, ...]]:
    symbols = SymbolTable()
    io = directive(IO="sqlite", **params)
    return rows_of(formats.load(io, shape, program(shape), symbols, Records(), folder), symbols)


def save(folder: Path, shape: Relation, rows: list[tuple[object, ...]], **params: str) -> None:
    symbols, columns = SymbolTable(), []
    for kind, values in zip(shape.kinds, zip(*rows, strict=True), strict=True):
        dtype = {Kind.UNSIGNED: np.uint64, Kind.FLOAT: np.float64}.get(kind, np.int64)
        columns.append(symbols.intern_texts(list(values)) if kind is Kind.SYMBOL else np.array(values, dtype))
    table = Table(shape.kinds, tuple(columns), len(rows))
    formats.save(directive("output", IO="sqlite", **params), shape, program(shape), table, symbols, Records(), folder)


ROWS = [(-1, "it's", 0.5, 7), (2, "", 3.0, 2**63 - 1)]


def test_what_is_written_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_tables, "ROWS", 1)
    save(folder, ROW, ROWS)
    assert execute(folder, 'SELECT "b", "a" FROM r') == [("it's", -1), ("", 2)]
    assert load(folder, ROW) == ROWS


def test_columns_are_found_by_name_else_by_order(folder: Path) -> None:
    execute(folder, "CREATE TABLE r (b TEXT, n INTEGER, a TEXT)", "INSERT INTO r VALUES ('x', 5, 'y')")
    assert load(folder, PAIR) == [("y", "x")]
    assert load(folder, PAIR, columns="n:b") == [("5", "x")]
    assert load(folder, relation("symbol", "number"), columns="0:1") == [("x", 5)]
    execute(folder, "CREATE VIEW v AS SELECT b AS who, a AS whom, n FROM r")
    assert load(folder, PAIR, table="v") == [("x", "y")]


def test_null_is_empty_text_and_numbers_may_be_text(folder: Path) -> None:
    execute(folder, "CREATE TABLE r (a, b, c, d)", "INSERT INTO r VALUES ('12', NULL, '0.5', 3.0)")
    assert load(folder, ROW) == [(12, "", 0.5, 3)]


def test_a_database_may_be_named_as_in_souffle(folder: Path) -> None:
    save(folder, PAIR, [("x", "y")], dbname="all.db", name="other")
    save(folder, PAIR, [("z", "z")], filename="all.db")
    assert execute(folder, "SELECT * FROM other", name="all.db") == [("x", "y")]
    assert load(folder, PAIR, dbname="all.db", name="other") == [("x", "y")]
    assert load(folder, PAIR, filename=f"file:{folder}/all.db") == [("z", "z")]


def test_a_table_or_view_of_its_name_is_replaced_and_others_stay(folder: Path) -> None:
    execute(folder, "CREATE TABLE _r (x)", "INSERT INTO _r VALUES (1)", "CREATE VIEW r AS SELECT x FROM _r")
    for rows in ([("x", "y")], [("z", "z")]):
        save(folder, PAIR, rows)
        assert load(folder, PAIR) == rows
    assert execute(folder, "SELECT * FROM _r") == [(1,)]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("'x'", "column `a` of 'r', row 2: 'x' is not a valid number"),
        ("1.5", "column `a` of 'r', row 2: 1.5 is not a valid number"),
        ("NULL", "column `a` of 'r', row 2: None is not a valid number"),
        ("9e999", "column `a` of 'r', row 2: inf is not a valid number"),
    ],
)
def test_values_that_do_not_fit_are_refused(folder: Path, value: str, message: str) -> None:
    execute(folder, "CREATE TABLE r (a)", "INSERT INTO r VALUES (1)", f"INSERT INTO r VALUES ({value})")
    assert refusal(folder, relation("number")) == message


def refusal(folder: Path, shape: Relation, **params: str) -> str:
    with pytest.raises(DlogError) as caught:
        load(folder, shape, **params)
    return "; ".join([caught.value.diagnostics[0].message, *caught.value.diagnostics[0].notes]).replace(f"{folder}/", "")


def test_mistakes_are_told(folder: Path) -> None:
    assert refusal(folder, PAIR).startswith("cannot open fact file r.sqlite")
    execute(folder, "CREATE TABLE edges (a, c)")
    missing = "the database has no table or view 'edge'; it has edges; did you mean table='edges'?"
    assert refusal(folder, PAIR, table="edge", filename="r.sqlite") == missing
    assert refusal(folder, PAIR, table="edges", columns="a:b") == "'edges' has no column `b`; its columns are a, c"
    many = "'edges' has 2 columns, `r` has 4; its columns are a, c"
    assert refusal(folder, ROW, table="edges") == many
    (folder / "x.sqlite").write_text("no database at all, but text that is long enough")
    assert refusal(folder, PAIR, filename="x.sqlite").startswith("cannot read x.sqlite: file is not a database")


def test_what_a_database_cannot_hold_is_refused_and_changes_nothing(folder: Path) -> None:
    shape = relation("unsigned")
    save(folder, shape, [(1,)])
    with pytest.raises(DlogError, match="unsigned numbers of 2\\^63 and more"):
        save(folder, shape, [(2**63,)])
    assert load(folder, shape) == [(1,)]
    with pytest.raises(DlogError, match="`r` has no attributes: sqlite needs columns"):
        save(folder, relation(), [()])


@pytest.mark.parametrize("beside", ["-wal", "-journal"])
def test_reading_changes_nothing_where_somebody_left_a_database_half_written(folder: Path, beside: str) -> None:
    execute(folder, "PRAGMA journal_mode = wal", "CREATE TABLE r(a, b)")
    (folder / "there").mkdir()
    with closing(sqlite3.connect(folder / "r.sqlite")) as writer:
        writer.execute("INSERT INTO r VALUES ('z', 'z')")
        writer.commit()
        for name in ("r.sqlite", "r.sqlite-wal"):
            shutil.copy(folder / name, folder / "there" / name.replace("-wal", beside))
    before = {file.name: file.read_bytes() for file in (folder / "there").iterdir()}
    if beside == "-wal":
        assert load(folder / "there", PAIR) == [("z", "z")]
    else:
        with suppress(DlogError):
            load(folder / "there", PAIR)
    assert {file.name: file.read_bytes() for file in (folder / "there").iterdir()} == before


@pytest.mark.parametrize("left", ["nothing", "an empty log", "changes"])
def test_reading_a_database_with_a_log_of_changes_leaves_nothing_of_its_own_beside_it(folder: Path, left: str) -> None:
    execute(folder, "PRAGMA journal_mode = wal", "CREATE TABLE r(a, b)", "INSERT INTO r VALUES ('x', 'y')")
    if left == "an empty log":
        (folder / "r.sqlite-wal").touch()
    with closing(sqlite3.connect(folder / "r.sqlite")) as writer:
        if left == "changes":
            writer.execute("INSERT INTO r VALUES ('z', 'z')")
            writer.commit()
        before = (folder / "r.sqlite").read_bytes()
        expected = [("x", "y"), ("z", "z")] if left == "changes" else [("x", "y")]
        assert load(folder, PAIR) == expected
        assert (folder / "r.sqlite").read_bytes() == before
    assert load(folder, PAIR) == expected
    there = {"r.sqlite", "r.sqlite-wal"} if left == "an empty log" else {"r.sqlite"}
    assert {file.name for file in folder.iterdir()} == there
