"""What Arrow's readers take as files have it: places that are beyond a dictionary, and links in the place of files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog import unfinished
from dlog.dataflow import Dataflow
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from dlog.streaming import _Feed, _write_changes
from tests.security.planted import dlog as command

ROOT = Path(__file__).parents[2]
PROGRAM = """.decl r(a: symbol)
.decl s(a: symbol)
.input r(IO=parquet, filename="r.parquet")
.output s
s(a) :- r(a).
"""
LAST = 69_999
"""Of a dictionary: its places take three bytes."""


def forged(path: Path, place: int, **others: list[int]) -> None:
    """A file whose text, 64 times the same, is at a place of its dictionary that may not be there."""
    texts = pa.array([f"t{i}" for i in range(LAST + 1)])
    columns = {"a": pa.DictionaryArray.from_arrays(pa.array([LAST] * 64, pa.int32()), texts), **others}
    plain = {"compression": "none", "write_statistics": False, "dictionary_pagesize_limit": 1 << 26}
    pq.write_table(pa.table(columns), path, **plain)
    content, begin = path.read_bytes(), bytes([3, 0, 0, 0, 0x80, 1, 1])  # none of 64 is null
    run = begin + bytes([17, 0x80, 1]) + LAST.to_bytes(3, "little")
    assert content.count(run) == 1
    path.write_bytes(content.replace(run, begin + bytes([24, 0x80, 1]) + place.to_bytes(3, "little")))


def without_file(folder: Path) -> dlog.Session:
    (folder / "p.dl").write_text(PROGRAM.replace(".input", "//"))
    return dlog.session(folder / "p.dl")


@pytest.mark.slow
def test_a_parquet_file_whose_texts_are_not_in_its_dictionary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    forged(tmp_path / "r.parquet", LAST)
    assert command("run", "p.dl", "-D", "-", cwd=tmp_path).returncode == 0
    forged(tmp_path / "r.parquet", 0xFFFFFF)
    done = command("run", "p.dl", "-D", "-", cwd=tmp_path)
    assert done.returncode == 1 and "r.parquet is not a parquet file" in done.stderr


def test_rows_whose_texts_are_not_in_their_dictionary_are_refused(tmp_path: Path) -> None:
    forged(tmp_path / "r.parquet", 0xFFFFFF)
    with without_file(tmp_path) as session, pytest.raises(DlogError, match="not in its dictionary"):
        session.insert("r", pq.read_table(tmp_path / "r.parquet"))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_offsets_of_texts_may_lie_in_a_buffer_of_any_size(kind: pa.DataType) -> None:
    whole = pa.array(["one", "two", "three"], kind)
    offsets = pa.py_buffer(whole.buffers()[1].to_pybytes() + b"\0")
    texts = pa.Array.from_buffers(kind, 3, [None, offsets, whole.buffers()[2]])
    symbols = SymbolTable()
    assert [symbols.text(id) for id in symbols.intern_arrow(texts[1:])] == ["two", "three"]


def from_a_file(kind: pa.DataType) -> pa.Table:
    """What Arrow reads of a file in which one of many texts is a GiB further on."""
    good = pa.array([f"a text of its own, number {i}" for i in range(100)], kind)
    file = pa.BufferOutputStream()
    with pa.ipc.new_file(file, pa.schema({"a": kind})) as writer:
        writer.write_table(pa.table({"a": good}))
    where = bytearray(good.buffers()[1].to_pybytes()[: 16 * 100 if kind == pa.string_view() else 4 * 101])
    content = file.getvalue().to_pybytes()
    assert content.count(where) == 1
    forged = where.copy()
    place = 16 * 7 + 12 if kind == pa.string_view() else 4 * 7
    forged[place : place + 4] = (1 << 30).to_bytes(4, "little")
    return pa.ipc.open_file(pa.BufferReader(content.replace(where, forged))).read_all()


@pytest.mark.parametrize("kind", [pa.string(), pa.string_view()])
def test_tables_whose_texts_are_not_in_their_memory_are_refused(kind: pa.DataType) -> None:
    bad, good = from_a_file(kind), pa.array(["x"] * 100)
    ids, attribute = pa.table({"src": bad["a"], "dst": good}), pa.table({"src": good, "dst": good, "w": bad["a"]})
    flow = Dataflow()
    texts = flow.input(a=str)
    graph = dlog.graph([("x", "y")])
    for use in (
        lambda: dlog.session(".decl r(a: symbol)").insert("r", bad),
        lambda: dlog.run(".decl r(a: symbol)\n.input r\n.output r", {"r": bad}),
        lambda: texts.insert(bad),
        lambda: dlog.graph(ids),
        lambda: dlog.graph(attribute),
        lambda: dlog.graph(bad["a"], pa.table({"src": good, "dst": good})),
        lambda: graph.live().add_edges(ids),
    ):
        with pytest.raises(DlogError, match=r"memory|out of bounds|range 1073741824"):
            use()


def beyond(*names: str) -> pa.Table:
    """What Arrow reads of a stream whose columns of numbers say that they are a hundred thousand times as long."""
    rows, first, stream = 77, (5).to_bytes(8, "little"), pa.BufferOutputStream()
    table = pa.table({name: pa.array(range(5, 5 + rows), pa.int64()) for name in names})
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    content = stream.getvalue().to_pybytes()
    head, body = content[: content.index(first)], content[content.index(first) :]
    count = rows.to_bytes(8, "little")
    assert count in head
    return pa.ipc.open_stream(head.replace(count, (1 << 23).to_bytes(8, "little")) + body).read_all()


def into_a_session(rows: Callable[[pa.Table], object]) -> None:
    dlog.session(".decl e(x: number)").insert("e", rows(beyond("x")))


def into_pairs(rows: Callable[[pa.Table], object]) -> None:
    dlog.session(".decl e(x: number, y: number)").insert("e", rows(beyond("x", "y")))


def into_a_dataflow(rows: Callable[[pa.Table], object]) -> None:
    Dataflow().input(x=int).insert(rows(beyond("x")))


def into_a_graph(rows: Callable[[pa.Table], object]) -> None:
    dlog.graph(rows(beyond("src", "dst")))


def marked(table: pa.Table) -> None:
    dlog.session(".decl e(x: number)").commit_rounds({"e": {"x": range(1 << 23), "round": table["x"]}})


WAYS: dict[str, Callable[[], object]] = {
    "a table": lambda: into_a_session(lambda table: table),
    "columns": lambda: into_a_session(lambda table: {"x": table["x"]}),
    "a column": lambda: into_a_session(lambda table: table["x"]),
    "a piece of a column": lambda: into_a_session(lambda table: table["x"].chunk(0)),
    "structs": lambda: into_a_session(lambda table: table.to_struct_array()),
    "structs of a batch": lambda: into_pairs(lambda table: table.to_batches()[0].to_struct_array()),
    "batches": lambda: into_pairs(lambda table: table.to_batches()),
    "a batch": lambda: into_a_session(lambda table: table.to_batches()[0]),
    "a reader": lambda: into_a_session(lambda table: table.to_reader()),
    "marks": lambda: marked(beyond("x")),
    "columns of a run": lambda: dlog.run_text(".decl e(x: number) .output e", {"e": {"x": beyond("x")["x"]}}),
    "a table of a dataflow": lambda: into_a_dataflow(lambda table: table),
    "columns of a dataflow": lambda: into_a_dataflow(lambda table: {"x": table["x"]}),
    "a batch of a dataflow": lambda: into_a_dataflow(lambda table: table.to_batches()[0]),
    "a table of a graph": lambda: into_a_graph(lambda table: table),
    "a batch of a graph": lambda: into_a_graph(lambda table: table.to_batches()[0]),
    "a reader of a graph": lambda: into_a_graph(lambda table: table.to_reader()),
}
USE = """
import sys
from dlog.grammar.diagnostics import DlogError
from tests.security.test_arrow import WAYS
try:
    WAYS[sys.argv[1]]()
except DlogError as mistake:
    print(mistake)
"""


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_numbers_that_are_not_in_their_memory_are_refused(way: str) -> None:
    """In a process of its own, which would end by a signal."""
    done = subprocess.run([sys.executable, "-c", USE, way], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    refused = re.search("memory|too small|out of bounds|a RecordBatch", done.stdout)
    assert done.returncode == 0 and refused, (done.returncode, done.stdout)


def test_changes_of_a_stream_are_not_recovered_from_texts_that_are_not_there(tmp_path: Path) -> None:
    """Arrow would put together dictionaries by places that it never looked at."""
    with without_file(tmp_path) as session:
        for text in ("x", "y"):
            session.insert("r", [(text,)])
            session.commit()
        feed, folder = _Feed(session, ("r",), ("s",), tmp_path, None), tmp_path / "s"
        folder.mkdir()
        forged(folder / "round-000000000001.parquet", 0xFFFFFF, diff=[1] * 64, round=[1] * 64)
        with pytest.raises(pa.ArrowInvalid, match="out of bounds"):
            feed._recover(folder, "s")


def test_changes_of_a_stream_are_not_written_where_a_link_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, elsewhere = tmp_path / "s" / "round-000000000001.parquet", tmp_path / "elsewhere"
    target.parent.mkdir()
    elsewhere.write_text("mine")
    tokens = ["0" * 12, "1" * 12]
    (target.parent / f".{target.name}.{tokens[0]}.part").symlink_to(elsewhere)
    monkeypatch.setattr(unfinished.secrets, "token_hex", lambda _: tokens.pop(0))
    _write_changes(pa.table({"a": ["x"]}), target)
    assert elsewhere.read_text() == "mine" and pq.read_table(target).num_rows == 1 and not tokens
    assert len(list(target.parent.iterdir())) == 2
