"""Records in files."""

from __future__ import annotations

import io as streams
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine import formats
from dlog.engine.formats.nested import parse_records
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import LIST, TREE, TYPES, Records, directive, program, relation
from tests.examples import examples

PAIRS = st.none() | st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=6))
TREES = st.recursive(
    st.none(),
    lambda trees: st.tuples(trees, st.floats(allow_nan=False), PAIRS, trees),
    max_leaves=12,
)


def naive_text(value: object) -> str:
    """A record as quoted text."""
    match value:
        case None:
            return "nil"
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case float():
            return format(value, ".17g")
        case tuple():
            return "[" + ", ".join(map(naive_text, value)) + "]"
        case _:
            return str(value)


def parse_all(texts: list[str], table: SymbolTable, type_: Type, symbols: SymbolTable, records: Records) -> np.ndarray:
    ids = table.intern_texts(texts)
    return parse_records(table, type_, TYPES, symbols, records)[ids]


@examples(60)
@given(st.lists(TREES, min_size=1, max_size=8))
def test_quoted_trees_parse_and_print_again(trees: list[object]) -> None:
    symbols, records = SymbolTable(), Records()
    texts = [naive_text(tree) for tree in trees]
    ids = parse_all(texts, SymbolTable(), TREE, symbols, records)
    assert [i == 0 for i in ids.tolist()] == [tree is None for tree in trees]
    assert len(set(ids.tolist())) == len(set(texts))
    heap, which = record_texts(TREE, ids, TYPES, symbols, records, True)
    printed = [heap.data[heap.offsets[w] : heap.offsets[w + 1]].tobytes().decode() for w in which]
    assert printed == texts


@pytest.mark.slow
def test_a_deep_list_needs_no_recursion() -> None:
    depth = 3000
    text = "".join(f"[{i}, " for i in range(depth)) + "nil" + "]" * depth
    symbols, records = SymbolTable(), Records()
    records.pack = lambda arity, columns: _append(records, arity, columns)  # type: ignore[method-assign]
    ids = parse_all([text, "nil"], SymbolTable(), LIST, symbols, records)
    assert ids.tolist() == [depth, 0]
    heap, which = record_texts(LIST, ids, TYPES, symbols, records, False)
    assert heap.data[heap.offsets[which[0]] : heap.offsets[which[0] + 1]].tobytes().decode() == text


def _append(records: Records, arity: int, columns: list[np.ndarray]) -> np.ndarray:
    """`pack` without looking for equal rows."""
    rows = records.rows.setdefault(arity, [])
    rows.extend(zip(*(c.tolist() for c in columns), strict=True))
    return np.arange(len(rows) - len(columns[0]), len(rows), dtype=np.int32) + 1


@pytest.mark.parametrize(
    ("content", "params", "expected"),
    [
        ("[1, a]\t[2, b c]\nnil\t[ 3 ,x]\n", {}, "[1, a]\t[2, b c]\nnil\t[3, x]\n"),
        ("[1, a],[2, b]\n", {"delimiter": ","}, "[1, a],[2, b]\n"),
        ("[1, a], nil\n", {"delimiter": ", "}, "[1, a], nil\n"),
        ('"[1, ""a, \\""b]""]",nil\n', {"rfc4180": "true"}, '"[1, ""a, \\""b]""]","nil"\n'),
        ('[1, "a, b]"]\tnil\n', {}, "[1, a, b]]\tnil\n"),
    ],
)
def test_records_in_files(tmp_path: Path, content: str, params: dict[str, str], expected: str) -> None:
    (tmp_path / "r.facts").write_text(content)
    shape = relation("Pair", "Pair")
    symbols, records = SymbolTable(), Records()
    table = formats.load(directive(**params), shape, program(shape), symbols, records, tmp_path)
    assert table.kinds == (Kind.RECORD, Kind.RECORD)
    out = streams.BytesIO()
    formats.save(directive("output", IO="stdout", **params), shape, program(shape), table, symbols, records, ".", 1, out)
    lines = out.getvalue().decode().split("===============\n")[1]
    assert sorted(lines.splitlines()) == sorted(expected.splitlines())


@pytest.mark.parametrize(
    ("content", "message", "place"),
    [
        ("[1, a]\n[2 a]\n", "line 2, column 1 (`a`): `[2 a]` is not a record `Pair` with 2 fields", ":2"),
        ("[1, a, 3]\n", "line 1, column 1 (`a`): `[1, a, 3]` is not a record `Pair` with 2 fields", ":1"),
        ("nil\n[1, a\n", "line 2, column 1 (`a`): `[1, a` is not a record `Pair` with 2 fields", ":2"),
        ("[x, a]\n", "line 1, column 1 (`a`): `[x, a]` has the field `x`, not a valid number", ":1"),
        ("\n", "line 1, column 1 (`a`): `` is not a record `Pair` with 2 fields", ":1"),
    ],
)
def test_wrong_records_are_refused(tmp_path: Path, content: str, message: str, place: str) -> None:
    (tmp_path / "r.facts").write_text(content)
    shape = relation("Pair")
    with pytest.raises(DlogError) as caught:
        formats.load(directive(), shape, program(shape), SymbolTable(), Records(), tmp_path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.place) == ("bad-record", message, f"{tmp_path}/r.facts{place}")


def test_a_relation_of_records_without_rows() -> None:
    shape, out = relation("Pair"), streams.BytesIO()
    table = Table(shape.kinds, (np.empty(0, np.int32),))
    formats.save(directive("output", IO="stdout"), shape, program(shape), table, SymbolTable(), Records(), ".", 1, out)
    assert out.getvalue().decode() == "---------------\nr\n===============\n===============\n"
