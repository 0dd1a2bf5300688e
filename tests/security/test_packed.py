"""Small files that hold much are refused before they take the memory."""

from __future__ import annotations

import gzip
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import json as arrow_json

import dlog
from dlog.engine.formats import json_rows
from dlog.engine.ir.rules import Kind
from dlog.engine.state.entries import Entries
from dlog.engine.state.parts import Part
from dlog.grammar.diagnostics import DlogError
from dlog.memory import peak_bytes
from dlog.sessions.persistence.bulk_files import TABLE, BulkChange
from dlog.sessions.persistence.folder import State
from dlog.sessions.persistence.inspection import check_state


@pytest.mark.parametrize("line", [b"a" * 40_000_000, b"\n" * 40_000_000], ids=["one text", "empty lines"])
def test_packed_text_is_refused_above_the_limit(tmp_path: Path, line: bytes) -> None:
    (tmp_path / "r.facts").write_bytes(gzip.compress(line) + gzip.compress(b"b\n"))
    program = ".decl r(x: symbol)\n.input r\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.facts holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


def test_members_of_packed_text_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes(b"".join(gzip.compress(f"{i}\n".encode()) for i in range(2000)) + b"ignored")
    program = ".decl r(x: number)\n.input r\n.output r\n"
    assert list(dlog.run(program, facts=tmp_path, output=tmp_path, memory="32M")["r"]) == [(i,) for i in range(2000)]
    (tmp_path / "r.facts").write_bytes(gzip.compress(b"1\n" * 1000)[:-9])
    with pytest.raises(DlogError, match="is not whole gzip: it ends before its end mark"):
        dlog.run(program, facts=tmp_path)


def test_a_parquet_file_of_many_equal_numbers_is_refused_above_the_limit(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.ones(5_000_000, np.int64)}), tmp_path / "r.parquet", compression="zstd")
    assert (tmp_path / "r.parquet").stat().st_size < 100_000
    program = ".decl r(x: number)\n.input r(IO=parquet)\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.parquet holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("jsonfile", "[" + "[]," * 500_000 + "[]]"),
        ("jsonfile", "[" + '["b"],' * 500_000 + '["b"]]'),
        ("ndjson", "\n" * 20_000_000 + "[1]\n"),
    ],
    ids=["lists", "texts", "lines"],
)
def test_values_of_json_are_counted(tmp_path: Path, way: str, text: str) -> None:
    (tmp_path / "r.json").write_text(text)
    program = f'.decl r(x: symbol)\n.input r(IO={way}, filename="r.json")\n.printsize r\n'
    with pytest.raises(DlogError, match=r"out of memory: .*r\.json holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


@pytest.mark.parametrize("packed", [False, True])
def test_views_of_one_long_text_are_counted_each_for_itself(tmp_path: Path, packed: bool) -> None:
    one = pa.array(["a" * 4_000_000], pa.string_view())
    _, views, text = one.buffers()
    try:
        many = pa.Array.from_buffers(one.type, 40, [None, pa.py_buffer(views.to_pybytes() * 40), text])
    except ValueError:
        pytest.skip("this PyArrow makes no views of buffers that are given (before 18)")
    column = pa.DictionaryArray.from_arrays(pa.array(range(40), pa.int8()), many) if packed else many
    table = pa.table({"x": column})
    with pa.ipc.new_file(tmp_path / "r.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(table)
    assert (tmp_path / "r.arrow").stat().st_size < 2_000
    program = ".decl r(x: symbol)\n.input r(IO=arrow)\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.arrow holds more than the 100 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="100M")
    assert list(dlog.run(program, facts=tmp_path, memory="400M")["r"]) == [("a" * 4_000_000,)]


def test_a_text_that_a_database_computes_is_not_made_above_the_limit(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute("create view r as select hex(zeroblob(200000000)) x")
    program = ".decl r(x: symbol)\n.input r(IO=sqlite)\n.printsize r\n"
    before = peak_bytes()
    with pytest.raises(DlogError, match=r"out of memory: .*r\.sqlite holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")
    assert peak_bytes() - before < 250 << 20


@pytest.mark.parametrize("type", ["symbol", "number"])
@pytest.mark.parametrize("value", ["printf('%.*c', 4000000, 'a')", "zeroblob(4000000)"])
def test_a_column_that_a_database_computes_is_refused_above_the_limit(tmp_path: Path, type: str, value: str) -> None:
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute("create table n(n)")
        database.executemany("insert into n values (?)", [(i,) for i in range(40)])
        database.execute(f"create view r as select {value} x from n")
    program = f".decl r(x: {type})\n.input r(IO=sqlite)\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.sqlite holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


def test_texts_of_a_database_are_counted_once_for_all_rows(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "r.sqlite")) as database, database:
        database.execute("create table r(x, n)")
        database.executemany("insert into r values (?, ?)", [("a" * 100, i) for i in range(200_000)])
    program = ".decl r(x: symbol, n: number)\n.input r(IO=sqlite)\n.decl n(n: number)\nn(n) :- n = count : { r(_, _) }.\n"
    assert list(dlog.run(program + ".output n\n", facts=tmp_path, output=tmp_path, memory="30M")["n"]) == [(200_000,)]


@pytest.mark.slow
def test_a_long_text_of_many_rows_in_a_parquet_file_is_kept_once(tmp_path: Path) -> None:
    """Parquet says that there is one; as a column of texts they would be 2 GiB."""
    texts = pa.array(["a" * (1 << 20)]).take(pa.array(np.zeros(2000, np.int32)))
    way = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "store_schema": False, "write_statistics": False}
    pq.write_table(pa.table({"x": texts, "y": np.arange(2000)}), tmp_path / "r.parquet", **way)
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    program = ".decl r(x: symbol, y: number)\n.input r(IO=parquet)\n.decl n(n: number)\nn(n) :- n = count : { r(_, _) }.\n"
    assert list(dlog.run(program, facts=tmp_path, memory="256M")["n"]) == [(2000,)]
    assert pool.max_memory() - before < 1 << 30


def test_batches_of_an_arrow_file_are_counted_one_after_the_other(tmp_path: Path) -> None:
    batch = pa.record_batch({"x": np.ones(1_000_000, np.int64)})
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.OSFile(str(tmp_path / "r.arrow"), "wb") as file, pa.ipc.new_file(file, batch.schema, options=packed) as writer:
        for _ in range(20):
            writer.write_batch(batch)
    program = ".decl r(x: number)\n.input r(IO=arrow)\n.printsize r\n"
    with pytest.raises(DlogError, match=r"out of memory: .*r\.arrow holds more than the 32 MiB that there are"):
        dlog.run(program, facts=tmp_path, memory="32M")


NAMES = ".decl name(x: number, text: symbol)\n.input name\n"


def with_a_part(folder: Path, rows: pa.Table) -> Path:
    """A state with a bulk change from these rows, all checksums right."""
    with dlog.session(NAMES, state=folder, threads=1) as session:
        session.insert("name", [(-1, "one")])
        session.commit()
    way = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "store_schema": False, "write_statistics": False}
    state = State(folder, "never", None)
    pq.write_table(rows, folder / f"{0:032x}.parquet", **way)
    content = (folder / f"{0:032x}.parquet").read_bytes()
    part = Part(f"{0:032x}.parquet", len(content), zlib.crc32(content))
    entry = BulkChange("name", (Kind.NUMBER, Kind.SYMBOL), 1, (part,)).entry
    state._store.append(state.round + 1, {}, {TABLE: Entries.of([entry])})
    state.close()
    return folder


def test_a_long_text_of_many_rows_in_a_state_is_kept_once(tmp_path: Path) -> None:
    texts = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2000, np.int32)), pa.array(["a" * (1 << 20)]))
    folder = with_a_part(tmp_path / "state", pa.table({"x": np.arange(2000), "text": texts}))
    pool = pa.default_memory_pool()
    before = pool.max_memory()
    assert check_state(folder)[0] == "round 2"
    with dlog.session(None, state=folder, threads=1) as session:
        assert session.rows("name") == 2001
    assert pool.max_memory() - before < 1 << 30


def test_what_a_state_holds_packed_is_counted_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({"x": np.zeros(3_000_000, np.int64), "text": pa.array(["a"]).take(pa.array(np.zeros(3_000_000, np.int32)))})
    folder = with_a_part(tmp_path / "state", rows)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1 << 20
    monkeypatch.setattr("dlog.engine.formats.budget._available_memory", lambda: 32 << 20)
    with pytest.raises(DlogError, match=r"out of memory: .*\.parquet holds more than the 32 MiB that there are"):
        check_state(folder)


@pytest.mark.parametrize("line", ["{}", '{"a0": 1}', ", ".join(f'"a{i}": 1' for i in range(20)).join("{}")])
def test_objects_on_lines_are_counted_by_the_columns_that_are_made_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """Those that lack values are refused by them, or for the memory that it takes to say where."""
    made: list[int] = []
    read = arrow_json.read_json

    def noted(*given: Any, **named: Any) -> Any:
        found = read(*given, **named)
        made.append(found.get_total_buffer_size())
        return found

    monkeypatch.setattr(arrow_json, "read_json", noted)
    program = f".decl r({', '.join(f'a{i}: number' for i in range(20))})\n.input r(IO=ndjson)\n.output r\n"
    (tmp_path / "r.ndjson").write_text(f"{line}\n" * 200_000)
    with pytest.raises(DlogError, match="out of memory"):
        dlog.run(program, facts=tmp_path, output=tmp_path, memory="16M")
    assert sum(made) < 32 << 20
    (tmp_path / "r.ndjson").write_text(f"{line}\n" * 20)
    if line.count(":") == 20:
        assert list(dlog.run(program, facts=tmp_path, output=tmp_path, memory="16M")["r"]) == [(1,) * 20]
    else:
        with pytest.raises(DlogError, match="row 1 has no `a"):
            dlog.run(program, facts=tmp_path, output=tmp_path, memory="16M")


def test_objects_are_the_same_in_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'{{"x": {i}, "t": "{"{" * (i % 90)}"}}' + "\n" * (i % 3 + 1) for i in range(3000)]
    (tmp_path / "r.ndjson").write_text("".join(lines))
    monkeypatch.setattr(json_rows, "PIECE", 4096)
    monkeypatch.setattr(json_rows, "SMALL_PIECE", 64)
    program = ".decl r(x: number, t: symbol)\n.input r(IO=ndjson)\n.output r\n"
    assert sorted(dlog.run(program, facts=tmp_path, output=tmp_path)["r"]) == [(i, "{" * (i % 90)) for i in range(3000)]
