"""Tables of Arrow's as words."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from itertools import product
from typing import Any, Self

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow
from dlog.dataflow.arrow import TableReader
from dlog.dataflow.kinds import Kind, Objects, decode
from dlog.dataflow.schema import Schema
from dlog.grammar.diagnostics import DlogError
from tests.examples import examples

FEW = st.sampled_from(["", "a", "b", "ab", "a\0", "a\0\0", "eight by", "eight byt", "eight bytes and more", "\u00e9"])
SCHEMA = Schema(("a", "b", "c"), (int, str, float))


class Plain(pa.ExtensionType):
    """A type from outside, which has no hash."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.plain")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Self:
        return cls()


def words(reader: TableReader, table: pa.Table) -> tuple[np.ndarray, ...]:
    block = np.empty((len(reader.schema.names), table.num_rows), np.int64)
    reader.fill(table, block, [])
    return tuple(block)


def read(schema: Schema, table: pa.Table) -> list[list[Any]]:
    objects = Objects()
    columns = words(TableReader(schema, objects), table)
    return [decode(kind, column, objects).tolist() for kind, column in zip(schema.kinds, columns, strict=True)]


@examples(100)
@given(st.lists(st.one_of(FEW, st.text(max_size=20))), st.integers(0, 5), st.booleans(), st.booleans())
def test_texts_are_read_as_they_are(texts: list[str], skipped: int, many: bool, chunked: bool) -> None:
    every = [*texts, *(str(k) for k in range(100 * many))] * 2
    column = pa.chunked_array([pa.array(every, pa.string())] * (1 + chunked), pa.string()).slice(skipped)
    assert read(Schema(("x",), (str,)), pa.table({"x": column})) == [(every * (1 + chunked))[skipped:]]


@examples(100)
@given(st.lists(st.tuples(st.lists(st.one_of(FEW, FEW, st.text(max_size=20))), st.integers(0, 2)), max_size=5))
def test_a_reader_knows_the_texts_of_tables_before(tables: list[tuple[list[str], int]]) -> None:
    reader = TableReader(Schema(("x", "y"), (str, str)), Objects())
    for texts, many in tables:
        left = [*texts, *(f"{len(texts)} {k}" for k in range(25 * many))]
        given_table = pa.table({"x": pa.array(left, pa.string()), "y": pa.array(left[::-1], pa.string())})
        found = [decode(str, column, reader.objects).tolist() for column in words(reader, given_table)]
        assert found == [left, left[::-1]]


@pytest.mark.parametrize("type", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()], ids=str)
def test_integers_of_all_widths_are_read(type: pa.DataType) -> None:
    least = 0 if pa.types.is_unsigned_integer(type) else -(2 ** (type.bit_width - 1))
    most = min(2 ** (type.bit_width - (least < 0)), 2**63) - 1
    numbers = [7, least, most, 0]
    assert read(Schema(("x",), (int,)), pa.table({"x": pa.array(numbers, type)}).slice(1)) == [numbers[1:]]


@pytest.mark.parametrize("type", [pa.float32(), pa.float64()], ids=str)
def test_floats_have_one_nan_and_one_zero(type: pa.DataType) -> None:
    values = np.array([-math.inf, -1.5, -0.0, 0.0, 2.0, math.inf, math.nan, -math.nan], np.float64)
    objects = Objects()
    (found,) = words(TableReader(Schema(("x",), (float,)), objects), pa.table({"x": pa.array(values).cast(type)}))
    assert found[2] == found[3] and found[6] == found[7]
    assert np.all(np.diff(found[[0, 1, 2, 4, 5, 6]]) > 0)
    assert decode(float, found, objects)[:2].tolist() == [-math.inf, -1.5]


@pytest.mark.parametrize("values", [pl.Series([1, 2, 2]), pl.concat([pl.Series([1]), pl.Series([2, 2])], rechunk=False)])
def test_a_series_is_the_only_column(values: pl.Series) -> None:
    flow = Dataflow()
    numbers, pairs = flow.input(x=int), flow.input(x=int, y=int)
    found, both = numbers.capture(), pairs.capture()
    numbers.insert(values)
    pairs.insert(pl.DataFrame({"x": values, "y": values}).to_struct())  # structs are as good as a table
    flow.commit()
    assert found.counts() == {(1,): 1, (2,): 2} and both.counts() == {(1, 1): 1, (2, 2): 2}


@examples(50)
@given(st.lists(st.tuples(st.integers(0, 3), st.booleans())))
def test_masked_values_are_none_among_objects_and_nothing_elsewhere(values: list[tuple[int, bool]]) -> None:
    column = np.ma.array([value for value, _ in values], int, mask=[masked for _, masked in values])
    flow = Dataflow()
    numbers, objects, rows = flow.input(x=int), flow.input(x=object), flow.input(x=object, y=object)
    captured = [each.capture() for each in (numbers, objects, rows)]
    objects.insert({"x": column})
    rows.insert(np.ma.column_stack([column, column]))
    if any(masked for _, masked in values):
        with pytest.raises(DlogError, match="a masked value in row"):
            numbers.insert(column)
    else:
        numbers.insert(column)
    flow.commit()
    expected = [None if masked else value for value, masked in values]
    assert captured[0].counts() == (Counter((x,) for x in expected) if None not in expected else {})
    assert [each.counts() for each in captured[1:]] == [Counter((x,) for x in expected), Counter((x, x) for x in expected)]


def test_decimals_are_floats_or_whole_numbers() -> None:
    prices = pa.table({"x": pa.array([Decimal("1.25"), Decimal("-3.00")], pa.decimal128(15, 2))})
    assert read(Schema(("x",), (float,)), prices) == [[1.25, -3.0]]
    assert read(Schema(("x",), (int,)), prices.slice(1)) == [[-3]]
    for refused, message in ((prices, "100 times as much"), (pa.table({"x": [Decimal(2**70)]}), "cannot be read")):
        with pytest.raises(DlogError, match=message):
            read(Schema(("x",), (int,)), refused)


def test_columns_are_found_by_name_and_else_by_place() -> None:
    one = pa.table({"c": [0.5], "a": [1], "b": ["x"]})
    assert read(SCHEMA, one) == [[1], ["x"], [0.5]]
    assert read(SCHEMA, one.select(["a", "b", "c"]).rename_columns(["p", "q", "r"])) == [[1], ["x"], [0.5]]
    with pytest.raises(DlogError, match="a table of c, a is no rows of"):
        read(SCHEMA, one.select(["c", "a"]))
    assert read(SCHEMA, one.append_column("d", pa.array([7])).select(["d", "c", "b", "a"])) == [[1], ["x"], [0.5]]
    for unclear in (["b", "p", "q"], ["a", "c", "q"], ["a", "b", "a"], ["c", "b", "A"]):
        with pytest.raises(DlogError, match=r"is not in its place(.|\n)*the columns are") as error:
            read(SCHEMA, one.rename_columns(unclear))
        assert error.value.diagnostics[0].code == "unclear-columns"


@pytest.mark.parametrize("names", list(product("xyab", repeat=2)))
def test_tables_go_into_inputs_as_into_relations(names: tuple[str, str]) -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=names)
    flow = Dataflow()
    rows, s = flow.input(x=int, y=int), dlog.session(".decl r(x: number, y: number)")
    captured = rows.capture()
    try:
        s.insert("r", table)
    except DlogError as error:
        with pytest.raises(DlogError) as same:
            rows.insert(table)
        assert same.value.diagnostics[0].code == error.diagnostics[0].code == "unclear-columns"
    else:
        rows.insert(table)
        flow.commit()
        s.commit()
        assert set(captured) == set(s["r"])


def test_a_reader_that_has_refused_a_table_reads_the_next_one() -> None:
    reader, one = TableReader(SCHEMA, Objects()), pa.table({"c": [0.5], "a": [1], "b": ["x"]})
    for _ in range(2):
        assert words(reader, one)[0].tolist() == [1]
        with pytest.raises(DlogError, match="is not in its place"):
            words(reader, one.rename_columns(["b", "p", "q"]))


def test_an_array_is_the_only_column_there_is() -> None:
    flow = Dataflow()
    floats, texts = flow.input(x=float), flow.input(s=str)
    captured, named = floats.capture(), texts.capture()
    floats.insert(pa.chunked_array([[1.5], [2.5]]))
    floats.insert(pa.array([3.5]))
    texts.insert(pa.chunked_array([["a"], ["b", "a"]]))
    texts.insert(pa.array(["c"]).dictionary_encode())
    floats.insert(pa.chunked_array([[{"x": 4.5}]]))
    flow.commit()
    assert captured.counts() == {(1.5,): 1, (2.5,): 1, (3.5,): 1, (4.5,): 1}
    assert named.counts() == {("a",): 2, ("b",): 1, ("c",): 1}
    with pytest.raises(DlogError, match=r"Arrow does not take these rows of \(x: int, y: int\)"):
        Dataflow().input(x=int, y=int).insert(pa.chunked_array([[1, 2]]))


def test_one_reader_reads_tables_of_several_schemas() -> None:
    reader = TableReader(SCHEMA, Objects())
    plain = pa.table({"a": [1], "b": ["x"], "c": [0.5]})
    texts, floats = pa.array(["x"]).dictionary_encode(), pa.array([0.5], pa.float32())
    strange = pa.table({"b": texts, "c": floats, "a": pa.array([1], pa.int8())})
    found = [[column.tolist() for column in words(reader, table)] for table in (plain, strange, plain)]
    assert found[0] == found[1] == found[2]


def test_tables_without_rows_and_of_many_chunks_are_read() -> None:
    one = pa.table({"a": [1], "b": ["x"], "c": [0.5]})
    assert read(SCHEMA, one.slice(1)) == read(SCHEMA, one.schema.empty_table()) == [[], [], []]
    chunks = pa.concat_tables([one, one.slice(1), pa.table({"a": [2], "b": ["y"], "c": [1.5]}), one])
    assert read(SCHEMA, chunks) == [[1, 2, 1], ["x", "y", "x"], [0.5, 1.5, 0.5]]


@pytest.mark.parametrize("column", ["a", "b", "c"])
def test_nulls_are_refused_and_none_among_the_rows_is_not(column: str) -> None:
    full = pa.table({"a": pa.array([1, 2]), "b": pa.array(["x", "y"]), "c": [0.5, 0.5]})
    place = full.column_names.index(column)
    holed = full.set_column(place, column, pa.array([None, full[column][1].as_py()], full[column].type))
    assert read(SCHEMA, holed.slice(1)) == [[2], ["y"], [0.5]]
    with pytest.raises(DlogError, match=f"column `{column}` has a null in row 1"):
        read(SCHEMA, holed)


def test_nulls_of_columns_are_told_with_their_rows() -> None:
    rows = Dataflow().input(a=int, b=bool, c=float)
    holed = ("a", [1, None]), ("a", [None, None]), ("b", [True, None]), ("c", [0.5, None]), ("c", [None, None])
    for name, column in [(name, pa.array(values)) for name, values in holed]:
        given = {"a": [1, 2], "b": [True, False], "c": [0.5, 1.5], name: column}
        with pytest.raises(DlogError, match=f"column `{name}` has a null in row {2 - (column.null_count == 2)}, where"):
            rows.insert(given)


def test_texts_beyond_their_memory_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 100, 1], np.int32))
    beyond = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    with pytest.raises(DlogError, match="not within its memory"):
        read(Schema(("x",), (str,)), pa.table({"x": beyond}))


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("kind", [str, object])
def test_texts_that_are_none_are_refused(kind: Kind, numbered: bool) -> None:
    none = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(np.array([0, 1], np.int32)), pa.py_buffer(b"\xff")])
    dictionary = pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), none)
    holed = pa.chunked_array([none, pa.array([None], pa.string())])
    for column in (none, none.cast(pa.large_string()), dictionary, holed):
        with pytest.raises(DlogError, match="a text is none: 'utf-8' codec"):
            held = frozenset() if numbered else frozenset({0})
            words(TableReader(Schema(("x",), (kind,)), Objects(), held), pa.table({"x": column}))


def test_columns_that_the_kernel_does_not_read_are_not_put_together_unchecked() -> None:
    texts, index = pa.chunked_array([["a"], ["b"]]), pa.array([2**40], pa.int64())
    beyond = pa.DictionaryArray.from_arrays(index, pa.array(["x"]), safe=False)
    other = pa.DictionaryArray.from_arrays(pa.array([0], pa.int64()), pa.array(["y"]))
    with pytest.raises(DlogError, match="a value is not in its dictionary"):
        read(Schema(("x", "y"), (str, str)), pa.table({"x": texts, "y": pa.chunked_array([beyond, other])}))


@pytest.mark.parametrize("kind", [str, object])
def test_dictionaries_that_do_not_fit_together_are_read(kind: Kind) -> None:
    many = [[f"{k}{end}" for k in range(100)] for end in "ab"]
    parts = [pa.DictionaryArray.from_arrays(pa.array([0, 99], pa.int8()), pa.array(texts)) for texts in many]
    table = pa.table({"x": pa.chunked_array([["p", "q"], ["q", "r"]]), "y": pa.chunked_array(parts)})
    assert read(Schema(("x", "y"), (str, kind)), table) == [["p", "q", "q", "r"], ["0a", "99a", "0b", "99b"]]


TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


@pytest.mark.parametrize("type", TEXT_TYPES, ids=str)
def test_texts_of_all_types_are_read(type: pa.DataType) -> None:
    schema = Schema(("x",), (str,))
    texts = pa.array(["a", "", "a", "b\0"]).cast(type)
    assert read(schema, pa.table({"x": texts})) == [["a", "", "a", "b\0"]]
    assert read(schema, pa.table({"x": texts[:0]})) == read(schema, pa.table({"x": pa.chunked_array([], type)})) == [[]]


def test_types_from_outside_are_read_as_what_they_are_stored_as() -> None:
    table = pa.table({"x": pa.ExtensionArray.from_storage(Plain(), pa.array([1, 2]))})
    assert read(Schema(("x",), (int,)), table) == read(Schema(("x",), (object,)), table) == [[1, 2]]
    with pytest.raises(DlogError, match="1 is no str"):
        read(Schema(("x",), (str,)), table)


def test_columns_that_arrow_cannot_hand_out_are_refused() -> None:
    table = pa.table({"x": pa.array([1], pa.time64("ns"))})
    with pytest.raises(DlogError, match=r"a column of time64\[ns\] cannot be read: .*nanoseconds"):
        read(Schema(("x",), (int,)), table)
