"""Parquet and Arrow files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from dlog.engine import formats
from dlog.engine.ir.rules import Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation
from tests.engine.formats.test_text import rows_of


def read(folder: Path, table: pa.Table, shape: Relation, **params: str) -> list[tuple[object, ...]]:
    pq.write_table(table, folder / "r.parquet")
    symbols = SymbolTable()
    loaded = formats.load(directive(IO="parquet", **params), shape, program(shape), symbols, Records(), folder)
    assert [c.dtype.kind for c in loaded.columns] == [{"unsigned": "u", "float": "f"}.get(k.value, "i") for k in loaded.kinds]
    return rows_of(loaded, symbols)


@pytest.mark.parametrize(
    ("columns", "shape", "params", "expected"),
    [
        ({"b": [1, 2], "x": [0, 0], "a": ["p", "q"]}, relation("symbol", "number"), {}, [("p", 1), ("q", 2)]),
        ({"u": ["p"], "v": [5]}, relation("symbol", "number"), {}, [("p", 5)]),
        ({"a": ["p"], "v": [5]}, relation("symbol", "number"), {}, [("p", 5)]),
        ({"u": [7], "v": ["p"], "w": [5]}, relation("symbol", "number"), {"columns": "1:2"}, [("p", 5)]),
        ({"a": [1, 2]}, relation("float"), {}, [(1.0,), (2.0,)]),
        ({"a": pa.array([1], pa.int8())}, relation("unsigned"), {}, [(1,)]),
        ({"a": pa.array(["x", "y", "x"]).dictionary_encode()}, relation("symbol"), {}, [("x",), ("y",), ("x",)]),
        ({"a": pa.array([], pa.int64())}, relation("number"), {}, []),
    ],
)
def test_reads(tmp_path: Path, columns: dict, shape: Relation, params: dict[str, str], expected: list) -> None:
    assert read(tmp_path, pa.table(columns), shape, **params) == expected


@pytest.mark.parametrize(
    ("columns", "shape", "code", "message"),
    [
        ({"u": [1], "v": [2], "w": [3]}, relation("number"), "wrong-column-count", "r.parquet has 3 columns, `r` has 1"),
        ({"b": [1], "v": [2]}, relation("number", "number"), "unclear-columns", "r.parquet: a column is called `b`, but "),
        ({"a": ["x"]}, relation("number"), "wrong-type", "column `a` of r.parquet holds string, not number"),
        ({"a": [1.5]}, relation("number"), "wrong-type", "column `a` of r.parquet holds double, not number"),
        ({"a": [1]}, relation("symbol"), "wrong-type", "column `a` of r.parquet holds int64, not text"),
        ({"a": [1, None]}, relation("number"), "null-value", "column `a` of r.parquet has a null; relations hold none"),
        ({"a": [1, None, None]}, relation("number"), "null-value", "column `a` of r.parquet has 2 nulls; relations hold none"),
        ({"a": [-1]}, relation("unsigned"), "number-out-of-range", "column `a` of r.parquet does not fit unsigned: "),
        ({"a": ["[1, x"]}, relation("Pair"), "bad-record", "column `a` of r.parquet: `[1, x` is not a record `Pair`"),
    ],
)
def test_refuses_at_the_directive(tmp_path: Path, columns: dict, shape: Relation, code: str, message: str) -> None:
    with pytest.raises(DlogError) as caught:
        read(tmp_path, pa.table(columns), shape)
    (found,) = caught.value.diagnostics
    assert found.code == code and found.message.startswith(message)
    assert found.labels[0].span == directive().span and found.source is not None


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").write_text("1\t2\n")
    shape = relation("number")
    with pytest.raises(DlogError, match="is not a parquet file"):
        formats.load(directive(filename="r.parquet"), shape, program(shape), SymbolTable(), Records(), tmp_path)


@pytest.mark.parametrize("name", ["f.parquet", "f.arrow", "f.feather"])
def test_saved_rows_load_again(tmp_path: Path, name: str) -> None:
    shape = relation("number", "symbol", "unsigned", "float", "Pair")
    symbols, records = SymbolTable(), Records()
    pairs = records.pack(2, [np.array([1, 2]), symbols.intern_texts(['say "hi"', "a]b"]).astype(np.int64)])
    columns = (
        np.array([3, -(2**63), 5], np.int64),
        symbols.intern_texts(["x", "", "x"]),
        np.array([1, 2, 2**64 - 1], np.uint64),
        np.array([0.5, -0.0, np.inf]),
        np.array([pairs[1], 0, pairs[0]], np.int32),
    )
    table = Table(shape.kinds, columns)
    formats.save(directive("output", filename=name), shape, program(shape), table, symbols, records, tmp_path)
    loaded = formats.load(directive(filename=name), shape, program(shape), symbols, records, tmp_path)
    order = [1, 0, 2]
    for before, after in zip(columns, loaded.columns, strict=True):
        assert after.tolist() == before[order].tolist()


def test_other_tools_read_what_is_written(tmp_path: Path) -> None:
    shape = relation("number", "symbol")
    symbols = SymbolTable()
    table = Table(shape.kinds, (np.array([2, 1], np.int32), symbols.intern_texts(["x", "y"])))
    formats.save(directive("output", IO="arrow"), shape, program(shape), table, symbols, Records(), tmp_path)
    assert feather.read_table(tmp_path / "r.arrow").to_pydict() == {"a": [1, 2], "b": ["y", "x"]}


PLACES = np.array([0, 1, 1, 0], np.int32)
ENDS = np.array([0, 3, 8, 10, 15], np.int32)


@pytest.mark.parametrize("far", [-1, -(1 << 30), 16, 1 << 20, 1 << 30])
@pytest.mark.parametrize("what", [PLACES, ENDS])
@pytest.mark.parametrize("at", [1, 3])
def test_an_arrow_file_that_says_that_texts_are_elsewhere_is_refused(
    tmp_path: Path, what: np.ndarray, at: int, far: int
) -> None:
    """Arrow believes it: memory of the process would become symbols, or the process end."""
    made = pa.table({"a": ["one", "three", "is", "there"], "b": pa.array(["x", "y", "y", "x"]).dictionary_encode()})
    with pa.OSFile(str(tmp_path / "r.arrow"), "wb") as sink, pa.ipc.new_file(sink, made.schema) as writer:
        writer.write_table(made)
    content = (tmp_path / "r.arrow").read_bytes()
    forged = what.copy()
    forged[at] = far
    assert content.count(what.tobytes()) == 1
    (tmp_path / "r.arrow").write_bytes(content.replace(what.tobytes(), forged.tobytes()))
    shape = relation("symbol", "symbol")
    with pytest.raises(DlogError, match="is not a arrow file"):
        formats.load(directive(IO="arrow"), shape, program(shape), SymbolTable(), Records(), tmp_path)


def test_the_first_form_of_feather_is_refused(tmp_path: Path) -> None:
    """Its reader takes lengths that go beyond the file: what follows in memory would be read as offsets of texts."""
    with pytest.warns(DeprecationWarning):
        feather.write_feather(pa.table({"a": ["x"] * 10}), str(tmp_path / "r.arrow"), version=1)
    content = (tmp_path / "r.arrow").read_bytes()
    at = content.rindex((10).to_bytes(8, "little"), 0, len(content) - 64)
    shape = relation("symbol")
    for forged in (content, content[:at] + (500_000_000).to_bytes(8, "little") + content[at + 8 :]):
        (tmp_path / "r.arrow").write_bytes(forged)
        with pytest.raises(DlogError, match="is not a arrow file"):
            formats.load(directive(IO="arrow"), shape, program(shape), SymbolTable(), Records(), tmp_path)


@pytest.mark.parametrize("way", ["parquet", "arrow"])
def test_a_column_whose_name_is_no_text_is_refused(tmp_path: Path, way: str) -> None:
    path, made, shape = tmp_path / f"r.{way}", pa.table({"name": [1]}), relation("number")
    if way == "parquet":
        pq.write_table(made, path, store_schema=False)
    else:
        feather.write_feather(made, str(path), compression="uncompressed")
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(DlogError, match=f"is not a {way} file"):
        formats.load(directive(IO=way), shape, program(shape), SymbolTable(), Records(), tmp_path)
