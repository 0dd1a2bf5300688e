"""What somebody left beside facts and outputs, or in them, has nothing else written, and ends in no internal error."""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
from pathlib import Path

import pytest

import dlog
from dlog.engine.formats import sqlite_tables
from dlog.grammar.diagnostics import DlogError

REJECTING = """.decl r(x: number)
.input r(errors="reject:wrong.txt")
.output r
"""
WRITING = """.decl r(x: number)
r(1).
.output r(IO=sqlite)
"""
READING = """.decl r(x: {0})
.input r(IO={1})
.output r
"""


def read(folder: Path, way: str, kind: str = "float") -> list[tuple[object, ...]]:
    return list(dlog.run(READING.format(kind, way), facts=folder, output=folder)["r"])


def database(file: Path, *statements: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            rows = connection.execute(statement).fetchall()
    return rows


@pytest.mark.parametrize("left", ["link", "pipe"])
def test_rejected_lines_take_the_place_of_a_link(tmp_path: Path, left: str) -> None:
    facts, victim = tmp_path / "facts", tmp_path / "victim"
    facts.mkdir()
    victim.write_text("precious")
    (facts / "r.facts").write_text("1\necho planted\n")
    if left == "link":
        (facts / "wrong.txt").symlink_to(victim)
    else:
        os.mkfifo(facts / "wrong.txt")
    with pytest.warns(RuntimeWarning, match="1 wrong row"):
        assert list(dlog.run(REJECTING, facts=facts, output=tmp_path)["r"]) == [(1,)]
    assert (victim.read_text(), (facts / "wrong.txt").read_text()) == ("precious", "echo planted\n")


def test_a_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    main, other = os.openpty()
    name = os.ttyname(other)
    os.set_blocking(main, False)
    dlog.run(f'.decl r(x: number)\nr(1).\n.output r(filename="{name}")\n', output=tmp_path)
    assert (os.read(main, 100), Path(name).is_char_device()) == (b"1\r\n", True)
    os.close(main)
    os.close(other)


@pytest.mark.parametrize("name", ["r.sqlite", "file:{}/r.sqlite?mode=rwc"])
def test_a_database_is_not_written_where_a_link_leads(tmp_path: Path, name: str) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    database(victim, "CREATE TABLE r (x)", "INSERT INTO r VALUES (7)")
    (out / "r.sqlite").symlink_to(victim)
    program = WRITING.replace("IO=sqlite", f'IO=sqlite, dbname="{name.format(out)}"')
    with pytest.raises(DlogError, match="is a link: name the database itself"):
        dlog.run(program, output=out)
    assert database(victim, "SELECT * FROM r") == [(7,)]


def test_a_link_that_is_made_while_a_database_is_opened_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    database(victim, "CREATE TABLE r (x)", "INSERT INTO r VALUES (7)")
    monkeypatch.setattr(sqlite_tables, "_refuse_traps", lambda *given: (out / "r.sqlite").symlink_to(victim))
    with pytest.raises(DlogError, match=r"leads to .*victim: name the database itself"):
        dlog.run(WRITING, output=out)
    assert database(victim, "SELECT * FROM r") == [(7,)]


def plant_journal(file: Path, common: Path) -> None:
    """A database with a journal that would be played back, after which SQLite removes the file `common`."""
    database(file, "PRAGMA page_size = 4096", "CREATE TABLE other (x)")
    page = file.read_bytes()[:4096]
    magic = bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">IIIII", 1, 0, file.stat().st_size // 4096, 512, 4096)
    record = struct.pack(">I", 1) + page + struct.pack(">I", sum(page[i] for i in range(4096 - 200, 0, -200)))
    name = os.fsencode(common)
    tail = struct.pack(">I", 2**30 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    file.with_name(f"{file.name}-journal").write_bytes(header.ljust(512, b"\0") + record + tail)


def test_a_journal_has_no_other_file_removed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    plant_journal(tmp_path / "r.sqlite", victim)
    with pytest.raises(DlogError, match="is of several databases, left half written"):
        dlog.run(WRITING, output=tmp_path)
    assert victim.read_text() == "precious\n"
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as connection:  # it is no harmless one
        connection.execute("SELECT * FROM other").fetchall()
    assert not victim.exists()


def test_a_view_of_a_database_calls_nothing_with_effects(tmp_path: Path) -> None:
    database(tmp_path / "r.sqlite", "CREATE VIEW r AS SELECT load_extension('./planted') AS x")
    with pytest.raises(DlogError, match=r"unsafe use of load_extension\(\)"):
        read(tmp_path, "sqlite")


def test_names_in_a_database_that_are_no_text_are_refused(tmp_path: Path) -> None:
    change = "UPDATE sqlite_master SET sql = CAST(CAST('CREATE TABLE r (\"x' AS BLOB) || x'ff' || CAST('\")' AS BLOB) AS TEXT)"
    database(tmp_path / "r.sqlite", "CREATE TABLE r (x)", "PRAGMA writable_schema = ON", change)
    with pytest.raises(DlogError, match=r"cannot read .*r\.sqlite: 'utf-8' codec can't decode"):
        read(tmp_path, "sqlite")


def test_a_value_of_any_length_is_shown_in_part(tmp_path: Path) -> None:
    database(tmp_path / "r.sqlite", "CREATE VIEW r AS SELECT hex(zeroblob(1000000)) AS x")
    with pytest.raises(DlogError, match=r"'0{12}\.\.\.0{13}' is not a valid number"):
        read(tmp_path, "sqlite", "number")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[" * 100_000 + "]" * 100_000, "values are nested too deeply"),
        (f"[[{'1' * 5000}]]", "a number is too long: Exceeds the limit"),
        (f"[[{'1' * 400}]]", r"row 1 \(`x`\): 1{57}\.\.\. is not a number"),
    ],
)
def test_json_that_nobody_writes_is_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "r.json").write_text(content)
    with pytest.raises(DlogError, match=said):
        read(tmp_path, "jsonfile")
