"""JSON: lists of lists, lists of objects, one row on each line; what is none is refused with its place."""

from __future__ import annotations

import gzip
import io as streams
import json
from pathlib import Path

import numpy as np
import pytest

from dlog.engine import formats
from dlog.engine.formats import json_rows
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation

ROW = relation("number", "symbol", "float", "unsigned")
NESTED = relation("Pair", "List")


class Desk:
    """Reads and writes files with one table of symbols and of records."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.symbols, self.records = folder, SymbolTable(), Records()

    def load(self, content: str, shape: Relation, name: str = "r.json", **params: str) -> Table:
        (self.folder / name).write_text(content, encoding="utf-8")
        io = directive(filename=name, **params)
        return formats.load(io, shape, program(shape), self.symbols, self.records, self.folder)

    def save(self, table: Table, shape: Relation, name: str = "out.json", **params: str) -> str:
        io = directive("output", filename=name, **params)
        formats.save(io, shape, program(shape), table, self.symbols, self.records, self.folder)
        return (self.folder / name).read_text(encoding="utf-8")

    def copied(self, content: str, shape: Relation, **params: str) -> str:
        return self.save(self.load(content, shape), shape, **params)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


LISTS = '[[-1, "a\\n\\"b\\"", 0.5, 18446744073709551615],\n[2, "ü", 3.0, 0]]\n'
OBJECTS = '[{"a": -1, "b": "x%s", "c": 0.5, "d": 1},\n{"a": 2, "b": "", "c": 3.0, "d": 0}]\n'


def test_lists_and_objects_are_read_and_written(desk: Desk) -> None:
    assert desk.copied(LISTS, ROW) == LISTS
    assert desk.copied(OBJECTS, ROW, format="object") == OBJECTS
    assert desk.copied('[{"d": 1, "e": [], "c": 1, "b": "x", "a": 2}]', ROW) == '[[2, "x", 1.0, 1]]\n'
    assert desk.copied("[]", ROW) == "[]\n"


def test_records_are_lists_or_objects_and_nil_is_null(desk: Desk) -> None:
    lists = '[[[1, "a, [b]"], null],\n[[2, "\\\\"], [3, [4, null]]]]\n'
    objects = (
        '[{"a": {"x": 1, "name": "a, [b]"}, "b": null},\n'
        '{"a": {"x": 2, "name": "\\\\"}, "b": {"head": 3, "tail": {"head": 4, "tail": null}}}]\n'
    )
    assert desk.copied(lists, NESTED) == lists
    assert desk.copied(lists, NESTED, format="object") == objects
    assert desk.copied(objects, NESTED) == lists


@pytest.mark.parametrize("name", ["r.ndjson", "r.jsonl"])
def test_one_row_on_each_line(desk: Desk, name: str) -> None:
    content = '{"b": "x", "a": 1, "c": 2, "d": 18446744073709551615, "more": {"y": [1]}}\n\n'
    content += '{"a": -2, "b": "y", "c": 0.5, "d": 0}\n'
    table = desk.load(content, ROW, name)
    written = '{"a": -2, "b": "y", "c": 0.5, "d": 0}\n{"a": 1, "b": "x", "c": 2.0, "d": 18446744073709551615}\n'
    assert desk.save(table, ROW, "out.ndjson") == written
    assert desk.save(table, ROW, "out.ndjson", format="list") == '[-2, "y", 0.5, 0]\n[1, "x", 2.0, 18446744073709551615]\n'
    records = desk.load('{"a": [1, "x"], "b": null}\n{"a": null, "b": [1, null]}\n', NESTED, name)
    assert desk.save(records, NESTED, "out.ndjson", format="list") == '[null, [1, null]]\n[[1, "x"], null]\n'
    assert desk.save(Table(ROW.kinds, tuple(c[:0] for c in table.columns), 0), ROW, "out.ndjson") == ""


def test_packed_files_and_other_columns(desk: Desk) -> None:
    (desk.folder / "r.json.gz").write_bytes(gzip.compress(b'[{"from": 1, "to": 2}]'))
    pair = relation("number", "number")
    io = directive(filename="r.json.gz", columns="to:from")
    table = formats.load(io, pair, program(pair), desk.symbols, desk.records, desk.folder)
    assert desk.save(table, pair) == "[[2, 1]]\n"
    assert desk.save(desk.load("[[1, 2, 3]]", pair, columns="2:0"), pair) == "[[3, 1]]\n"


def test_floats_that_json_does_not_have(desk: Desk) -> None:
    shape = relation("float")
    assert desk.copied("[[NaN], [Infinity], [-Infinity], [1]]", shape) == "[[-Infinity],\n[1.0],\n[Infinity],\n[NaN]]\n"


def test_rows_are_written_by_the_block(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "ROWS", 3)
    shape = relation("number")
    table = Table((Kind.NUMBER,), (np.arange(10),), 10)
    assert json.loads(desk.save(table, shape)) == [[i] for i in range(10)]
    assert desk.save(table, shape, "out.jsonl", format="list") == "".join(f"[{i}]\n" for i in range(10))


def test_standard_streams(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"[[1]]")))
    shape, out = relation("number"), streams.BytesIO()
    table = formats.load(directive(IO="json"), shape, program(shape), desk.symbols, desk.records, desk.folder)
    formats.save(directive("output", IO="json"), shape, program(shape), table, desk.symbols, desk.records, ".", 1, out)
    assert out.getvalue() == b"[[1]]\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('[[1, "a", 1, 1],\n[1, ]]', "bad-json r.json:2:5: line 2: not JSON: expecting value"),
        ('{"a": 1}', "bad-json r.json: r.json does not hold a list of rows"),
        ('[[1, "a", 1]]', "wrong-column-count r.json: row 1 has 3 values, `r` has 4 attributes"),
        ('[[1, "a", 1, 1], 5]', "bad-json r.json: row 2 is 5, neither a list of values nor an object"),
        ('[{"a": 1, "B": "a", "c": 1, "d": 1}]', "wrong-column-count r.json: row 1 has no `b`"),
        ('[["1", "a", 1, 1]]', 'bad-json r.json: row 1 (`a`): "1" is not a number'),
        ('[[1, "a", 1, 1], [1.5, "a", 1, 1]]', "bad-json r.json: row 2 (`a`): 1.5 is not a number"),
        ('[[true, "a", 1, 1]]', "bad-json r.json: row 1 (`a`): true is not a number"),
        ('[[9223372036854775808, "a", 1, 1]]', "bad-json r.json: row 1 (`a`): 9223372036854775808 is not a number"),
        ("[[1, null, 1, 1]]", "bad-json r.json: row 1 (`b`): null is not text"),
        ('[[1, "a", "x", 1]]', 'bad-json r.json: row 1 (`c`): "x" is not a number'),
        ('[[1, "a", 1, -1]]', "bad-json r.json: row 1 (`d`): -1 is not an unsigned number"),
        ('[[1, "\\ud800", 1, 1]]', "encoding r.json: row 1 (`b`): half of a surrogate pair is no text"),
    ],
)
def test_what_does_not_fit_is_refused(desk: Desk, content: str, expected: str) -> None:
    assert refusal(desk, content, ROW) == expected


def refusal(desk: Desk, content: str, shape: Relation, name: str = "r.json", **params: str) -> str:
    with pytest.raises(DlogError) as caught:
        desk.load(content, shape, name, **params)
    (found,) = caught.value.diagnostics
    return f"{found.code} {found.place}: {found.message}".replace(f"{desk.folder}/", "")


def test_lines_and_records_that_do_not_fit_are_refused(desk: Desk) -> None:
    good = '{"a": 1, "b": "", "c": 1, "d": 1}\n'
    assert refusal(desk, f"{good}nonsense\n", ROW, "r.ndjson") == "bad-json r.ndjson:2:1: line 2: not JSON: expecting value"
    assert refusal(desk, f'{good}{{"a": 1}}', ROW, "r.ndjson") == "wrong-column-count r.ndjson: row 2 has no `b`"
    wrong = '{"a": "x", "b": "", "c": 1, "d": 1}\n'
    assert refusal(desk, f"{good}{wrong}", ROW, "r.ndjson") == 'bad-json r.ndjson: row 2 (`a`): "x" is not a number'
    said = refusal(desk, '[[[1, "a"], null], [[1], null]]', NESTED)
    assert said == "bad-record r.json: row 2 (`a`): [1] is not a record `Pair` with 2 fields"
    assert refusal(desk, '[["x", null]]', NESTED).startswith('bad-record r.json: row 1 (`a`): "x" is not a record')


def test_the_format_is_one_of_two(desk: Desk) -> None:
    with pytest.raises(DlogError, match="format='table' is neither list nor object"):
        desk.copied("[]", ROW, format="table")
