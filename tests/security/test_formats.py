"""What somebody left beside facts and outputs, or in them, has nothing else written, and ends in no internal error."""

from __future__ import annotations

import itertools
import os
import sqlite3
import struct
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog.engine.formats import sqlite_files, sqlite_tables
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


def test_results_are_not_written_where_a_link_leads_that_was_one_to_a_device(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may put something else under a name after each look at it."""
    victim, name = tmp_path / "victim", tmp_path / "r.csv"
    victim.write_text("kept\n")
    left = [lambda: name.symlink_to(os.devnull), name.touch, lambda: name.symlink_to(victim)]
    left[0]()
    looks = itertools.count(1)
    look = Path.stat

    def stat(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        found = look(path, follow_symlinks=follow_symlinks)
        if path == name:
            name.unlink()
            left[min(next(looks), 2)]()
        return found

    monkeypatch.setattr(Path, "stat", stat)
    dlog.run('.decl r(x: number)\nr(1).\n.output r(filename="r.csv")', output=tmp_path)
    assert next(looks) > 1, "nobody looked"
    assert victim.read_text() == "kept\n"


@pytest.mark.parametrize("name", ["r.sqlite", "file:{}/r.sqlite"])
def test_a_database_is_not_written_where_a_link_leads(tmp_path: Path, name: str) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    out.mkdir()
    database(victim, "CREATE TABLE r (x)", "INSERT INTO r VALUES (7)")
    (out / "r.sqlite").symlink_to(victim)
    program = WRITING.replace("IO=sqlite", f'IO=sqlite, dbname="{name.format(out)}"')
    with pytest.raises(DlogError, match="is a link: name the database itself"):
        dlog.run(program, output=out)
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


def shared(folder: Path, shares: bool) -> Path:
    """A folder, of the user's own or in which all can write."""
    folder.mkdir()
    folder.chmod(0o777 if shares else 0o700)
    return folder


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("program", [WRITING, READING.format("number", 'sqlite, dbname="{}"')])
@pytest.mark.parametrize("name", ["r.sqlite", "file:{}/r.sqlite"])
def test_a_journal_has_no_other_file_removed(tmp_path: Path, shares: bool, program: str, name: str) -> None:
    victim, folder = tmp_path / "victim", shared(tmp_path / "f", shares)
    victim.write_text("precious\n")
    plant_journal(folder / "r.sqlite", victim)
    with pytest.raises(DlogError, match=r"r\.sqlite-journal (is of several databases,|was) left half written"):
        dlog.run(program.replace("{}", name).replace("{}", str(folder)), facts=folder, output=folder)
    assert victim.read_text() == "precious\n"
    with closing(sqlite3.connect(folder / "r.sqlite")) as connection:  # it is no harmless one
        connection.execute("SELECT * FROM other").fetchall()
    assert not victim.exists()


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("left", ["link", "hard link", "pipe"])
@pytest.mark.parametrize("suffix", ["-journal", "-wal", "-shm"])
@pytest.mark.parametrize("program", [WRITING, READING.format("number", "sqlite")])
def test_what_lies_beside_a_database_is_no_way_to_another_file(
    tmp_path: Path, shares: bool, left: str, suffix: str, program: str
) -> None:
    victim, folder = tmp_path / "victim", shared(tmp_path / "f", shares)
    victim.write_bytes(b"precious\n" * 5000)
    with closing(sqlite3.connect(tmp_path / "from.sqlite")) as source:  # with a log, as there is one in use
        for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE r (x)", "INSERT INTO r VALUES (5)"):
            source.execute(statement)
        source.commit()
        for end in ("", "-wal"):
            (folder / f"r.sqlite{end}").write_bytes((tmp_path / f"from.sqlite{end}").read_bytes())
    (folder / f"r.sqlite{suffix}").unlink(missing_ok=True)
    match left:
        case "link":
            (folder / f"r.sqlite{suffix}").symlink_to(victim)
        case "hard link":
            os.link(victim, folder / f"r.sqlite{suffix}")
        case _:
            os.mkfifo(folder / f"r.sqlite{suffix}")
    try:
        dlog.run(program, facts=folder, output=folder)
    except DlogError as error:
        assert error.diagnostics[0].code in ("unreadable-file", "unwritable-file", "missing-table", "sqlite")
    assert victim.read_bytes() == b"precious\n" * 5000


@pytest.mark.parametrize("name", ["r.sqlite", "file:{}/r.sqlite"])
def test_reading_makes_no_file_where_a_link_leads(tmp_path: Path, name: str) -> None:
    (tmp_path / "r.sqlite").symlink_to(tmp_path / "created")
    with pytest.raises(DlogError, match="cannot open fact file"):
        read(tmp_path, f'sqlite, dbname="{name.format(tmp_path)}"')
    assert not (tmp_path / "created").exists()


@pytest.mark.parametrize("left", ["link", "journal"])
def test_what_others_leave_while_a_database_is_written_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    out, victim = shared(tmp_path / "out", True), tmp_path / "victim"
    victim.write_text("precious\n")
    plant_journal(tmp_path / "r.sqlite", victim)
    replace = sqlite_files._put_in_place

    def late(*given: Any) -> None:
        if left == "link":
            (out / "r.sqlite").symlink_to(tmp_path / "created")
        else:
            (out / "r.sqlite-journal").write_bytes((tmp_path / "r.sqlite-journal").read_bytes())
        replace(*given)

    monkeypatch.setattr(sqlite_files, "_put_in_place", late)
    dlog.run(WRITING, output=out)
    assert (victim.read_text(), (tmp_path / "created").exists()) == ("precious\n", False)
    assert (out / "r.sqlite").is_file() and not (out / "r.sqlite").is_symlink()


def test_a_database_in_a_folder_of_others_is_read_with_its_log_and_written_as_a_whole(tmp_path: Path) -> None:
    folder = shared(tmp_path / "f", True)
    with closing(sqlite3.connect(folder / "r.sqlite")) as other:
        for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE r (x)", "INSERT INTO r VALUES (5)"):
            other.execute(statement)
        other.commit()
        before = sorted(file.name for file in folder.iterdir())
        assert read(folder, "sqlite", "number") == [(5,)]
        assert sorted(file.name for file in folder.iterdir() if not file.name.endswith(".csv")) == before
        with pytest.raises(DlogError, match=r"r\.sqlite-wal was left half written, or is in use"):
            dlog.run(WRITING, output=folder)
    (folder / "r.sqlite").chmod(0o664)
    database(folder / "r.sqlite", "CREATE TABLE other (x)")
    dlog.run(WRITING, output=folder)
    assert database(folder / "r.sqlite", "SELECT * FROM r") == [(1,)]
    assert database(folder / "r.sqlite", "SELECT * FROM other") == []
    assert (folder / "r.sqlite").stat().st_mode & 0o777 == 0o664


def test_a_database_of_others_that_is_in_use_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_files, "PATIENCE", 0.0)
    folder = shared(tmp_path / "f", True)
    database(folder / "r.sqlite", "CREATE TABLE r (x)", "INSERT INTO r VALUES (5)")
    script = (
        "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('BEGIN IMMEDIATE')\nprint('ready', flush=True)\nsys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(folder / "r.sqlite")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "ready\n"
        with pytest.raises(DlogError, match="is in use"):
            dlog.run(WRITING, output=folder)
        assert read(folder, "sqlite", "number") == [(5,)]
        other.communicate()


@pytest.mark.parametrize(
    "uri", ["file:{}/r.sqlite?mode=rwc", "file:{}/r.sqlite?vfs=x", "file://host/r.sqlite", "file:", "file:r%00.db"]
)
def test_uris_say_where_a_database_is_and_no_more(tmp_path: Path, uri: str) -> None:
    database(tmp_path / "r.sqlite", "CREATE TABLE r (x)", "INSERT INTO r VALUES (5)")
    for good in ("file:r.sqlite", f"file:{tmp_path}/r.sqlite?mode=ro", f"file:{tmp_path}/r.sqlite?immutable=1"):
        assert read(tmp_path, f'sqlite, dbname="{good}"', "number") == [(5,)]
    with pytest.raises(DlogError, match=r"is not for the URI of a database|names no file to use"):
        read(tmp_path, f'sqlite, dbname="{uri.format(tmp_path)}"')


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


@pytest.mark.parametrize("scheme", ["hdfs", "viewfs", "s3", "file"])
def test_a_name_of_a_file_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheme: str) -> None:
    """Arrow would ask a file system for it, whose library it may look for in the current folder."""
    folder = tmp_path / f"{scheme}:data"
    folder.mkdir()
    with (folder / "r.parquet").open("wb") as file:
        pq.write_table(pa.table({"x": [1.5, 2.5]}), file)
    monkeypatch.chdir(tmp_path)
    found = dlog.run(READING.format("float", "parquet"), facts=Path(folder.name), output=tmp_path)
    assert sorted(found["r"]) == [(1.5,), (2.5,)]
    (folder / "r.parquet").rename(f"{scheme}:r.parquet")
    named = READING.format("float", f'parquet, filename="{scheme}:r.parquet"')
    assert sorted(dlog.run(named, facts=Path(), output=tmp_path)["r"]) == [(1.5,), (2.5,)]


@pytest.mark.parametrize("left", ["nothing in it", "a log", "a log, and no word of it", "a log that was written"])
def test_reading_a_database_leaves_what_lies_beside_it_as_it_is(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "f"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(tmp_path / "from.sqlite")) as source:
        for statement in ("PRAGMA journal_mode = WAL", "CREATE TABLE r (x)", "INSERT INTO r VALUES (5)"):
            source.execute(statement)
        source.commit()
        for end in ("", "-wal"):
            (folder / f"r.sqlite{end}").write_bytes((tmp_path / f"from.sqlite{end}").read_bytes())
    (folder / "r.sqlite-shm").write_bytes(b"precious\n")
    match left:
        case "nothing in it":
            (folder / "r.sqlite").write_bytes(b"")
        case "a log, and no word of it":
            content = bytearray((folder / "r.sqlite").read_bytes())
            content[18:20] = b"\1\1"
            (folder / "r.sqlite").write_bytes(content)
        case "a log that was written":
            (folder / "r.sqlite-wal").unlink()
            (folder / "r.sqlite-shm").write_bytes(b"q" * 40_000)
        case _:
            pass
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    try:
        dlog.run(READING.format("number", "sqlite"), facts=folder, output=tmp_path)
    except DlogError as error:
        assert error.diagnostics[0].code in ("unreadable-file", "missing-table", "sqlite")
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def with_empty_log(folder: Path, rows: int) -> Path:
    """A database that keeps a log of changes, with none beside it."""
    folder.mkdir(mode=0o700)
    file = folder / "r.sqlite"
    numbers = f"WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) SELECT x FROM n"
    database(file, "PRAGMA journal_mode = WAL")
    database(file, f"CREATE TABLE r AS {numbers}", "CREATE TABLE other (x)", "INSERT INTO other VALUES (0)")
    long_ago = time.time() - 3600
    os.utime(file, (long_ago, long_ago))
    return file


@pytest.mark.parametrize("written", ["long ago", "just now", "with a journal"])
def test_nothing_is_made_beside_a_database_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    file = with_empty_log(tmp_path / "f", rows=3)
    if written == "just now":
        os.utime(file)
    journals = [file.with_name("r.sqlite-journal")] if written == "with a journal" else []
    for journal in journals:
        journal.write_bytes(bytes(600))
    there = sorted(os.listdir(file.parent))
    content, seen, columns = file.read_bytes(), [], sqlite_tables._columns

    def look(*given: Any) -> Any:
        seen.append(sorted(os.listdir(file.parent)))
        return columns(*given)

    monkeypatch.setattr(sqlite_tables, "_columns", look)
    facts = dlog.run(READING.format("number", "sqlite"), facts=file.parent, output=tmp_path)["r"]
    assert (sorted(facts), seen, os.listdir(file.parent)) == ([(1,), (2,), (3,)], [there], there)
    assert file.read_bytes() == content


KILLED_WHILE_WRITING = """import os, signal, sqlite3, sys
c = sqlite3.connect(sys.argv[1], isolation_level=None)
for statement in ("PRAGMA cache_size = 1", "BEGIN", "UPDATE r SET x = -x", "CREATE TABLE more AS SELECT s.x AS y FROM r, r s"):
    c.execute(statement)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_database_that_was_being_written_by_who_was_killed_is_read_as_it_was_before(tmp_path: Path) -> None:
    """And is left as it is: who writes it next brings it back."""
    file = with_empty_log(tmp_path / "f", rows=300)
    database(file, "PRAGMA journal_mode = DELETE")
    facts = "".join(f"r({x}). " for x in range(1, 4))
    killed = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, file], check=False)
    there = {path.name: path.read_bytes() for path in file.parent.iterdir()}
    assert (killed.returncode, sorted(there)) == (-9, ["r.sqlite", "r.sqlite-journal"])
    found = dlog.run(READING.format("number", "sqlite"), facts=file.parent, output=tmp_path)["r"]
    assert sorted(found) == [(x,) for x in range(1, 301)]
    assert {path.name: path.read_bytes() for path in file.parent.iterdir()} == there
    dlog.run(f".decl r(x: number)\n{facts}\n.output r(IO=sqlite)\n", output=file.parent)
    assert sorted(database(file, "SELECT x FROM r")) == [(1,), (2,), (3,)] and os.listdir(file.parent) == ["r.sqlite"]


READ_AT_ONCE = """import pathlib, sys, dlog
from dlog.engine.formats import sqlite_tables
columns = sqlite_tables._columns
def told(*given):
    print(flush=True)
    sys.stdin.readline()
    return columns(*given)
sqlite_tables._columns = told
print(len(dlog.run(sys.argv[1], facts=sys.argv[2])["r"]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("end", ["by themselves", "killed"])
def test_those_who_read_a_database_at_once_leave_nothing_beside_it(tmp_path: Path, end: str) -> None:
    """Nor among the temporary files, behind the next one, though that may read it in its place."""
    file = with_empty_log(tmp_path / "f", rows=3)
    (tmp_path / "tmp").mkdir()
    command = [sys.executable, "-c", READ_AT_ONCE, READING.format("number", "sqlite"), str(file.parent)]
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": str(Path(__file__).parents[2])}
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment, "text": True}
    readers = []
    for journal in (b"", bytes(600)):  # with which the second one reads a copy
        (file.parent / "r.sqlite-journal").write_bytes(journal)
        readers.append(subprocess.Popen(command, **pipes))
        assert readers[-1].stdout is not None and readers[-1].stdout.readline() == "\n"
    assert len(os.listdir(tmp_path / "tmp")) == 1
    if end == "killed":
        for reader in readers:
            reader.kill()
    counts = [reader.communicate("\n\n")[0].split()[-1:] for reader in readers]
    assert end == "killed" or counts == [["3"], ["3"]]
    (file.parent / "r.sqlite-journal").unlink()
    done = subprocess.run(command, input="\n", stdout=subprocess.PIPE, env=environment, text=True, check=True)
    assert (done.stdout.split(), os.listdir(tmp_path / "tmp"), os.listdir(file.parent)) == (["3"], [], ["r.sqlite"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "change", ["DELETE FROM r WHERE x > 9", "UPDATE r SET x = -x", "DROP TABLE r", "UPDATE other SET x = 1"]
)
def test_a_database_that_is_written_while_it_is_read_is_read_before_or_after_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    file = with_empty_log(tmp_path / "f", rows=100_000)
    copied, columns, copy = [], sqlite_tables._columns, sqlite_files._copy_to_read

    def written_meanwhile(*given: Any) -> Any:
        if not copied and not (file.parent / "done").exists():
            database(file, change)
            (file.parent / "done").touch()
        return columns(*given)

    def noted(*given: Any) -> Path:
        copied.append(file)
        return copy(*given)

    monkeypatch.setattr(sqlite_tables, "_columns", written_meanwhile)
    monkeypatch.setattr(sqlite_files, "_copy_to_read", noted)
    if change == "DROP TABLE r":
        with pytest.raises(DlogError, match="the database has no table or view 'r'"):
            dlog.run(READING.format("number", "sqlite"), facts=file.parent, output=tmp_path)
    else:
        found = dlog.run(READING.format("number", "sqlite"), facts=file.parent, output=tmp_path)["r"]
        assert sorted(found) == sorted(database(file, "SELECT x FROM r"))
    assert copied == [file]


def test_no_database_is_copied_while_it_gets_pages_from_a_new_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who opens a database for the first time makes its log, from which pages come to a file that is being copied."""
    file = with_empty_log(tmp_path / "f", rows=3)
    file.parent.chmod(0o777)
    copy = sqlite_files._copy

    def written_meanwhile(*given: Any) -> bytes:
        found = copy(*given)
        script = "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as c: c.execute('DELETE FROM r')\n"
        subprocess.run([sys.executable, "-c", script + "c.execute('PRAGMA wal_checkpoint')", file], check=True)
        return found

    monkeypatch.setattr(sqlite_files, "_copy", written_meanwhile)
    with pytest.raises(DlogError, match=r"r\.sqlite is being written"):
        dlog.run(READING.format("number", "sqlite"), facts=file.parent, output=tmp_path)
