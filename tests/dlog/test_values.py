"""Python, NumPy and Arrow values to columns and back, with a table of records made of dicts."""

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog.codec import Codec, Row
from dlog.engine.ir.rules import Kind, Program, Relation, Type
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source

NUMBER = Type("number", Kind.NUMBER)
UNSIGNED = Type("unsigned", Kind.UNSIGNED)
FLOAT = Type("float", Kind.FLOAT)
SYMBOL = Type("symbol", Kind.SYMBOL)
LIST = Type("List", Kind.RECORD, (("head", "number"), ("tail", "List")))
MIXED = Type("Mixed", Kind.RECORD, (("text", "symbol"), ("real", "float"), ("big", "unsigned"), ("list", "List")))
TYPES = {type.name: type for type in (NUMBER, UNSIGNED, FLOAT, SYMBOL, LIST, MIXED)}


class DictRecords:
    """Records by arity in dicts: slow, and right by looking at it."""

    def __init__(self) -> None:
        self.rows: dict[int, list[Row]] = {}

    def fields(self, arity: int, ids: np.ndarray) -> list[np.ndarray]:
        chosen = [self.rows[arity][id - 1] for id in ids.tolist()]
        return [np.array([row[i] for row in chosen], np.int64) for i in range(arity)]

    def pack(self, arity: int, columns: list[np.ndarray]) -> np.ndarray:
        known = self.rows.setdefault(arity, [])
        ids = []
        for row in zip(*(column.tolist() for column in columns), strict=True):
            if row not in known:
                known.append(row)
            ids.append(known.index(row) + 1)
        return np.array(ids, np.int32)


@pytest.fixture
def codec() -> Codec:
    program = Program(Source(""), TYPES, {}, {}, (), (), {})
    return Codec(program, SymbolTable(), DictRecords())


def relation(*types: Type) -> Relation:
    return Relation("r", tuple((f"c{i}", type) for i, type in enumerate(types)))


EACH = [
    (NUMBER, [0, -(2**63), 2**63 - 1, 0]),
    (UNSIGNED, [0, 2**64 - 1]),
    (FLOAT, [0.5, -1e300, float("inf")]),
    (SYMBOL, ["a", "", "a", "\u00e4\u20ac", "\U0001f600"]),
    (LIST, [None, (1, None), (2, (1, None)), (1, None), (-5, (2, (1, None)))]),
    (MIXED, [("x", 0.25, 2**64 - 1, (7, None)), None, ("y", -0.5, 0, None)]),
]


@pytest.mark.parametrize(("type", "values"), EACH, ids=lambda value: getattr(value, "name", ""))
def test_python_values_come_back(codec: Codec, type: Type, values: list[object]) -> None:
    table = codec.table(relation(type), [(value,) for value in values])
    assert table.rows == len(values)
    assert codec.to_python(type, table.columns[0]) == values


@pytest.mark.parametrize(("type", "values"), EACH, ids=lambda value: getattr(value, "name", ""))
def test_numpy_values_have_one_dtype_for_each_kind(codec: Codec, type: Type, values: list[object]) -> None:
    [column] = codec.table(relation(type), [(value,) for value in values]).columns
    array = codec.to_numpy(type, column)
    dtypes = {Kind.NUMBER: np.int64, Kind.UNSIGNED: np.uint64, Kind.FLOAT: np.float64}
    assert array.dtype == dtypes.get(type.kind, np.dtype(object))
    assert array.tolist() == values


def test_narrow_numbers_are_widened(codec: Codec) -> None:
    assert codec.to_numpy(NUMBER, np.array([1, -1], np.int32)).dtype == np.int64


@pytest.mark.slow
def test_deep_records_do_not_exhaust_the_stack(codec: Codec) -> None:
    deep = None
    for i in range(5000):
        deep = (i, deep)
    [column] = codec.table(relation(LIST), [(deep,)]).columns
    [value] = codec.to_python(LIST, column)
    for i in reversed(range(5000)):
        assert value[0] == i
        value = value[1]
    assert value is None


@pytest.mark.slow
def test_a_wrong_value_deep_inside_is_refused_with_its_row(codec: Codec) -> None:
    deep = ("x", None)
    for i in range(5000):
        deep = (i, deep)  # type: ignore[assignment]
    with pytest.raises(DlogError, match="row 2: c0: 'x' is not of type number"):
        codec.table(relation(LIST), [(None,), (deep,), ((1, None),)])


def test_arrow_shows_records_as_files_do(codec: Codec) -> None:
    [column] = codec.table(relation(LIST), [(None,), ((1, (2, None)),), (None,)]).columns
    assert codec.to_arrow(LIST, column).to_pylist() == ["nil", "[1, [2, nil]]", "nil"]
    [column] = codec.table(relation(SYMBOL), [("b",), ("a",)]).columns
    assert codec.to_arrow(SYMBOL, column).to_pylist() == ["b", "a"]
    assert codec.to_arrow(NUMBER, np.array([3], np.int32)).type == pa.int64()


def test_arrow_tables_become_columns(codec: Codec) -> None:
    data = pa.table({"x": pa.array([1, 2], pa.int16()), "y": ["a", "b"], "z": [0.5, 1.5], "l": [[1, None], None]})
    table = codec.table_from_arrow(relation(NUMBER, SYMBOL, FLOAT, LIST), data)
    types = (NUMBER, SYMBOL, FLOAT, LIST)
    columns = [codec.to_python(type, column) for type, column in zip(types, table.columns, strict=True)]
    assert columns == [[1, 2], ["a", "b"], [0.5, 1.5], [(1, None), None]]


def test_no_columns_are_counted_by_height(codec: Codec) -> None:
    assert codec.table(relation(), [(), ()]).rows == 2
    assert codec.table(relation(), []).rows == 0


@pytest.mark.parametrize(
    ("type", "value", "message"),
    [
        (NUMBER, "x", "row 2: c0: 'x' is not of type number"),
        (NUMBER, 1.5, "1.5 is not of type number"),
        (NUMBER, 2**63, "is not of type number"),
        (UNSIGNED, -1, "-1 is not of type unsigned"),
        (FLOAT, "1", "'1' is not of type float"),
        (SYMBOL, 1, "1 is not of type symbol"),
        (SYMBOL, None, "None is not of type symbol"),
        (LIST, (1,), "is not of type List"),
        (LIST, (1, ("x", None)), "row 2: c0: 'x' is not of type number"),
    ],
)
def test_wrong_values_are_refused_with_their_row(codec: Codec, type: Type, value: object, message: str) -> None:
    good = {Kind.NUMBER: 1, Kind.UNSIGNED: 1, Kind.FLOAT: 1.0, Kind.SYMBOL: "a", Kind.RECORD: None}[type.kind]
    with pytest.raises(DlogError) as caught:
        codec.table(relation(type), [(good,), (value,)])
    assert message in str(caught.value)
    assert caught.value.diagnostics[0].code == "bad-fact"


def test_wrong_shapes_are_refused(codec: Codec) -> None:
    for rows in ([(1, 2)], [7], ["a"]):
        with pytest.raises(DlogError, match="is not a tuple of 1 values"):
            codec.table(relation(NUMBER), rows)
    with pytest.raises(DlogError, match="2 columns, the relation 1"):
        codec.table_from_arrow(relation(NUMBER), pa.table({"a": [1], "b": [2]}))
    with pytest.raises(DlogError, match="c0: the column has nulls"):
        codec.table_from_arrow(relation(NUMBER), pa.table({"a": [1, None]}))
    with pytest.raises(DlogError, match="c0: "):
        codec.table_from_arrow(relation(NUMBER), pa.table({"a": ["one"]}))


def test_zero_and_minus_zero_are_two_values_that_compare_as_equal() -> None:
    """Souffle's tests/evaluation/float_equality, and what its tests/semantic/comparison has of zeros."""
    text = """
    .decl zero(x: float, n: number)
    .decl fact(x: float)
    .decl next(x: float)
    .decl same(n: number)
    zero(0.0, 1). zero(-0.0, 2). zero(1.0, 3).
    fact(-0.0). fact(0.0). fact(0.0). fact(1.0). fact(1).
    next(x + 1) :- zero(x, _), x = -0.0.
    same(n) :- zero(x, n), y = 0.0, x = y.
    """
    result = dlog.run(text)
    assert sorted(repr(x) for (x,) in result["fact"]) == ["-0.0", "0.0", "1.0"]
    assert sorted(result["next"]) == [(1.0,)]
    assert sorted(result["same"]) == [(1,), (2,)]
