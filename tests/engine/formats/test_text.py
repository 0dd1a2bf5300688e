"""Text files: reading them right, writing what can be read, and saying what is wrong."""

from __future__ import annotations

import csv
import gzip
import io as streams
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine import formats
from dlog.engine.formats import registry, text
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation
from tests.examples import examples


def rows_of(table: Table, symbols: SymbolTable) -> list[tuple[object, ...]]:
    columns = []
    for kind, column in zip(table.kinds, table.columns, strict=True):
        columns.append([symbols.text(i) for i in column.tolist()] if kind is Kind.SYMBOL else column.tolist())
    return list(zip(*columns, strict=True)) if columns else [()] * table.rows


def read(folder: Path, content: bytes | str, shape: Relation, **params: str) -> list[tuple[object, ...]]:
    (folder / "r.facts").write_bytes(content if isinstance(content, bytes) else content.encode())
    symbols = SymbolTable()
    table = formats.load(directive(**params), shape, program(shape), symbols, Records(), folder, threads=2)
    assert table.kinds == shape.kinds
    return rows_of(table, symbols)


def refusal(folder: Path, content: bytes | str, shape: Relation, **params: str) -> str:
    """The error as text: code and place, message, notes, the line shown."""
    with pytest.raises(DlogError) as caught:
        read(folder, content, shape, **params)
    (found,) = caught.value.diagnostics
    place = found.place.replace(str(folder) + "/", "")
    notes = [f"note: {note}" for note in found.notes]
    return "\n".join([f"{found.code} {place}", found.message, *notes, *filter(None, [found.line])])


EDGE = relation("number", "number")
WORD = relation("symbol")
WORDS = relation("symbol", "symbol")


@pytest.mark.parametrize(
    ("content", "shape", "params", "expected"),
    [
        ("1\t2\n3\t-4\n", EDGE, {}, [(1, 2), (3, -4)]),
        ("1\t2\n3\t4", EDGE, {}, [(1, 2), (3, 4)]),
        ("1\t2\r\n3\t4\r\n", EDGE, {}, [(1, 2), (3, 4)]),
        ("1\t2\r\n3\t4\r", EDGE, {}, [(1, 2), (3, 4)]),
        ("", EDGE, {}, []),
        ("\ufeff1\t2\n", EDGE, {}, [(1, 2)]),
        ("a\tb\n", EDGE, {"headers": "true"}, []),
        ("a\tb\n7\t8\n", EDGE, {"headers": "true"}, [(7, 8)]),
        ("b\ta\n7\t8\n", EDGE, {"headers": "true"}, [(8, 7)]),  # names of attributes in another order
        ("b\ta\n7\t8\n", EDGE, {"headers": "true", "columns": "0:1"}, [(7, 8)]),
        ("b\tc\ta\n7\tx\t8\n", EDGE, {"headers": "true"}, [(8, 7)]),
        ("b\tc\ta\n7\tx\t8\n", WORDS, {"columns": "c:a"}, [("x", "8")]),
        ("x\ty\n7\t8\n", EDGE, {"headers": "true"}, [(7, 8)]),  # other names: by order
        ("a\ty\n7\t8\n", EDGE, {"headers": "true"}, [(7, 8)]),
        ("# edges\n7\t8\n", EDGE, {"headers": "true"}, [(7, 8)]),
        ('\ufeff"b", a\r\n7,8\r\n', EDGE, {"headers": "true", "rfc4180": "true"}, [(8, 7)]),
        ("1 2\n", EDGE, {"delimiter": " "}, [(1, 2)]),
        ("1, 2\n3, 4", EDGE, {"delimiter": ", "}, [(1, 2), (3, 4)]),
        ("1,  2\n", EDGE, {"delimiter": ","}, [(1, 2)]),
        ("1=>2\n", EDGE, {"delimiter": "=>"}, [(1, 2)]),
        ("+5\t007\n", EDGE, {}, [(5, 7)]),
        ("9223372036854775807\t-9223372036854775808\n", EDGE, {}, [(2**63 - 1, -(2**63))]),
        ("5000000000\t1\n", EDGE, {}, [(5_000_000_000, 1)]),
        ("\n\n", WORD, {}, [("",), ("",)]),
        ("\t\n", WORDS, {}, [("", "")]),
        ('"a"\tb"\n', WORDS, {}, [('"a"', 'b"')]),
        ("a b\tc\n", WORDS, {}, [("a b", "c")]),
        ("a[1,2],b\n", WORDS, {"delimiter": ","}, [("a[1,2]", "b")]),
        ("()\n", relation(), {}, [()]),
        ("\n", relation(), {}, [()]),
        ("", relation(), {}, []),
        ("0xFF\t0b101\n18446744073709551615\t0\n", relation("unsigned", "unsigned"), {}, [(255, 5), (2**64 - 1, 0)]),
        ("x\t1\ty\t2\tz\n", EDGE, {"columns": "3:1"}, [(2, 1)]),
        ("1\t2\textra\n", EDGE, {"columns": "0:1"}, [(1, 2)]),
        ("a\t5\tb\nc\t6\td\n", WORDS, {"columns": "0:2"}, [("a", "b"), ("c", "d")]),
        ("a\tx\tb\nc\t6\td\n", WORDS, {"headers": "true"}, [("c", "d")]),
        ("1,2\n", EDGE, {"rfc4180": "true"}, [(1, 2)]),
        ('"a ""b""\nc",d\r\n"",x\n', WORDS, {"rfc4180": "true"}, [('a "b"\nc', "d"), ("", "x")]),
        ('"1","2"\n', EDGE, {"rfc4180": "true"}, [(1, 2)]),
        ('a"b;"c;d"\n', WORDS, {"rfc4180": "true", "delimiter": ";"}, [('a"b', "c;d")]),
    ],
)
def test_reads(tmp_path: Path, content: str, shape: Relation, params: dict[str, str], expected: list[object]) -> None:
    assert read(tmp_path, content, shape, **params) == expected


FIELDS = {
    "symbol": st.text("abc \u00e9", max_size=3),
    "number": st.integers(-(2**40), 2**40),
    "unsigned": st.integers(0, 2**40),
    "float": st.sampled_from([0.5, -2.0, 3.25]),
}


@examples(100)
@given(st.data())
def test_some_columns_of_many_are_read_in_any_order(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(FIELDS)), min_size=1, max_size=6))
    rows = data.draw(st.lists(st.tuples(*(FIELDS[kind] for kind in kinds)), min_size=1, max_size=5))
    chosen = data.draw(st.lists(st.sampled_from(range(len(kinds))), min_size=1, unique=True))
    quoted = data.draw(st.booleans())
    lines = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    params = {"columns": ":".join(map(str, chosen))} | ({"rfc4180": "true", "delimiter": "\t"} if quoted else {})
    with TemporaryDirectory() as folder:
        found = read(Path(folder), lines, relation(*(kinds[place] for place in chosen)), **params)
    assert found == [tuple(row[place] for place in chosen) for row in rows]


@pytest.mark.parametrize(
    "number",
    [
        *("0", "-0", "1.5", "1e3", "-2.5E-3", "123456789012345678", "0.1", "1e-320", "inf", "-inf", "1.7976931348623157e308"),
        *(".5", "5.", "00000.000000000000001"),
    ],
)
def test_floats_read_as_python_reads_them(tmp_path: Path, number: str) -> None:
    ((value,),) = read(tmp_path, number, relation("float"))
    assert np.float64(value).tobytes() == np.float64(float(number)).tobytes()


@examples(100)
@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30))
def test_floats_written_read_back(values: list[float]) -> None:
    assert written(relation("float"), Table((Kind.FLOAT,), (np.array(values),))).splitlines() == [
        format(v, ".17g") for v in sorted(values, key=lambda v: (v, np.copysign(1, v)))
    ]


@pytest.mark.parametrize(
    ("content", "shape", "params", "expected"),
    [
        (
            "1\t2\n3\tAA\n",
            EDGE,
            {},
            "bad-number r.facts:2:3\nline 2, column 2 (`b`): `AA` is not a number\n3\tAA",
        ),
        (
            "b\tc\n7\t8\n",
            EDGE,
            {"headers": "true"},
            "unclear-columns r.facts:1:1\n"
            "a column is called `b`, but is not in its place, and others are called like no attribute\n"
            "note: no column is called `a`\nb\tc",
        ),
        (
            "b\ta\nx\t8\n",
            EDGE,
            {"headers": "true"},
            "bad-number r.facts:2:1\nline 2, column 1 (`b`): `x` is not a number\nx\t8",
        ),
        (
            "x\ty\n3\t4\n",
            EDGE,
            {},
            "bad-number r.facts:1:1\nline 1, column 1 (`a`): `x` is not a number\n"
            "note: if the first line holds names, say headers=true\nx\ty",
        ),
        (
            "1\t2\n3\n",
            EDGE,
            {},
            "wrong-column-count r.facts:2:2\nline 2 has 1 column, `r` has 2 columns\nnote: columns are parted by '\\t'\n3",
        ),
        (
            "1,2\n",
            EDGE,
            {},
            "wrong-column-count r.facts:1:4\nline 1 has 1 column, `r` has 2 columns\n"
            "note: columns are parted by '\\t'\nnote: did you mean delimiter=','?\n1,2",
        ),
        (
            "a,b\n",
            WORDS,
            {},
            "wrong-column-count r.facts:1:4\nline 1 has 1 column, `r` has 2 columns\n"
            "note: columns are parted by '\\t'\nnote: did you mean delimiter=','?\na,b",
        ),
        (
            "1\t2\n1\t2\t3\n",
            EDGE,
            {},
            "wrong-column-count r.facts:2:5\nline 2 has 3 columns, `r` has 2 columns\n"
            'note: to read some columns of many, say which: columns="0:1"\n1\t2\t3',
        ),
        ("1\t2\n\n", EDGE, {}, "bad-number r.facts:2:1\nline 2, column 1 (`a`): `` is not a number"),
        (
            "1\t2\n1\t9223372036854775808\n",
            EDGE,
            {},
            "number-out-of-range r.facts:2:3\nline 2, column 2 (`b`): `9223372036854775808` does not fit\n"
            "note: a number lies between -9223372036854775808 and 9223372036854775807\n1\t9223372036854775808",
        ),
        (
            "1\n-1\n",
            relation("unsigned"),
            {},
            "bad-number r.facts:2:1\nline 2, column 1 (`a`): `-1` is not an unsigned number\n"
            "note: an unsigned number has no sign\n-1",
        ),
        (
            "1\n0x1\n",
            relation("number"),
            {},
            "bad-number r.facts:2:1\nline 2, column 1 (`a`): `0x1` is not a number\n"
            "note: fact files hold `number` in decimal; hexadecimal and binary are read for `unsigned`\n0x1",
        ),
        (
            "0.5\n0.12e\n",
            relation("float"),
            {},
            "bad-number r.facts:2:1\nline 2, column 1 (`a`): `0.12e` is not a float\n0.12e",
        ),
        (
            "1\n1e999\n",
            relation("float"),
            {},
            "number-out-of-range r.facts:2:1\nline 2, column 1 (`a`): `1e999` does not fit\n"
            "note: a float is at most 1.8e308 in size\n1e999",
        ),
        (
            'a,b\nc,"d\n',
            WORDS,
            {"rfc4180": "true"},
            'unbalanced r.facts:2:3\nline 2: this quote is never closed\nc,"d',
        ),
        (
            'a,"b"c\n',
            WORDS,
            {"rfc4180": "true"},
            'unbalanced r.facts:1:3\nline 1: text follows the closing quote\na,"b"c',
        ),
        ("a[,b\n", WORDS, {"delimiter": ","}, "unbalanced r.facts:1:1\nline 1: a bracket `[` is never closed\na[,b"),
        (
            "name\t1\n\u00e4\u00e4\tx\n",
            relation("symbol", "number"),
            {},
            "bad-number r.facts:2:4\nline 2, column 2 (`b`): `x` is not a number\n\u00e4\u00e4\tx",
        ),
        (
            "1\t2\n",
            EDGE,
            {"columns": "1:01"},
            "bad-parameter \ncolumns='1:01' does not name one column of the file per attribute of `r` (2)\n"
            'note: they are names, as in columns="src:dst", or count from 0, as in columns="0:2"',
        ),
        ("1\t2\n", EDGE, {"delimiter": ""}, "bad-parameter \ndelimiter '' cannot part the columns of a line"),
        ("1\t2\n", EDGE, {"delimiter": "\r"}, "bad-parameter \ndelimiter '\\r' cannot part the columns of a line"),
        (
            "1\t2\n",
            EDGE,
            {"columns": "0"},
            "bad-parameter \ncolumns='0' does not name one column of the file per attribute of `r` (2)\n"
            'note: they are names, as in columns="src:dst", or count from 0, as in columns="0:2"',
        ),
        (
            "",
            EDGE,
            {"IO": "tape"},
            "unsupported \nnot supported yet: IO=tape\n"
            "note: `.input` can use IO=file, stdin, parquet, arrow, json, jsonfile, ndjson, sqlite",
        ),
    ],
)
def test_refuses(tmp_path: Path, content: str, shape: Relation, params: dict[str, str], expected: str) -> None:
    assert refusal(tmp_path, content, shape, **params) == expected


def test_a_missing_file_is_an_error_with_the_close_name(tmp_path: Path) -> None:
    (tmp_path / "edges.facts").touch()
    with pytest.raises(DlogError) as caught:
        formats.load(directive(name="edge"), EDGE, program(EDGE), SymbolTable(), Records(), tmp_path)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("missing-file", "cannot open fact file edge.facts")
    assert "did you mean `edges.facts`?" in found.notes
    assert found.labels[0].span == directive().span


def test_the_first_wrong_line_of_a_large_file_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "BLOCK", 1000)
    lines = [f"{i}\t{i}" for i in range(5000)]
    lines[3210] = "1\toops"
    assert refusal(tmp_path, "\n".join(lines), EDGE).startswith("bad-number r.facts:3211:3\n")


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_join_to_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    monkeypatch.setattr(text, "BLOCK", 1000)
    rows = [(i * 7919 % 100_003 - 50_000, f"s{i % 77}", i / 8) for i in range(20_000)]
    with (tmp_path / "r.facts").open("w", newline="") as file:
        csv.writer(file, delimiter="\t", lineterminator="\n").writerows(rows)
    symbols, shape = SymbolTable(), relation("number", "symbol", "float")
    table = formats.load(directive(), shape, program(shape), symbols, Records(), tmp_path, threads)
    assert rows_of(table, symbols) == rows
    assert [symbols.text(i) for i in range(77)] == [f"s{i}" for i in range(77)]
    assert table.columns[0].dtype == np.int32


def test_gzip_is_recognized_by_content_even_in_several_members(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(b"1\t2\n3") + gzip.compress(b"\t4\n"), EDGE) == [(1, 2), (3, 4)]


def test_broken_gzip_is_an_error(tmp_path: Path) -> None:
    assert refusal(tmp_path, b"\x1f\x8bnonsense", EDGE).startswith("bad-gzip r.facts")


@pytest.mark.parametrize("kept", [3, 12, 40, -9, -1])
def test_gzip_that_was_cut_off_is_an_error(tmp_path: Path, kept: int) -> None:
    whole = gzip.compress(b"".join(b"%d\t%d\n" % (i, i * 7919) for i in range(100)))
    assert refusal(tmp_path, whole[:kept], EDGE).startswith("bad-gzip r.facts")
    assert refusal(tmp_path, whole + whole[:kept], EDGE).startswith("bad-gzip r.facts")


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"a\tb\n1\t2\n")))
    table = formats.load(directive(IO="stdin", headers="true"), EDGE, program(EDGE), SymbolTable(), Records(), Path("."))
    assert rows_of(table, SymbolTable()) == [(1, 2)]


def test_mistakes_in_standard_input_are_placed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", streams.TextIOWrapper(streams.BytesIO(b"1\t2\n1\n")))
    with pytest.raises(DlogError) as caught:
        formats.load(directive(IO="stdin"), EDGE, program(EDGE), SymbolTable(), Records(), Path("."))
    assert caught.value.diagnostics[0].place == "<stdin>:2:2"


# -------------------------------------------------------------------------------------------------------------- writing


def written(shape: Relation, table: Table, symbols: SymbolTable | None = None, **params: str) -> str:
    """What `-D -` prints between the lines of equals signs."""
    out = streams.BytesIO()
    io = directive("output", IO="stdout", **params)
    formats.save(io, shape, program(shape), table, symbols or SymbolTable(), Records(), ".", 2, out)
    head, body, tail = out.getvalue().decode("utf-8", "surrogateescape").partition("===============\n")
    assert head.startswith("---------------\nr\n") and tail.endswith("===============\n") and body
    return tail.removesuffix("===============\n")


def test_rows_are_sorted_by_value_and_symbols_by_text() -> None:
    symbols = SymbolTable()
    ids = symbols.intern_texts(["b", "a", "c"])
    table = Table((Kind.SYMBOL, Kind.NUMBER), (ids[[0, 0, 2, 1]], np.array([10, -9, 0, 5])))
    assert written(relation("symbol", "number"), table, symbols) == "a\t5\nb\t-9\nb\t10\nc\t0\n"


def test_extreme_numbers_are_written_and_sorted() -> None:
    numbers = np.array([2**63 - 1, -(2**63), 0, -1])
    table = Table((Kind.NUMBER, Kind.UNSIGNED), (numbers, numbers.view(np.uint64)))
    assert written(relation("number", "unsigned"), table) == (
        "-9223372036854775808\t9223372036854775808\n-1\t18446744073709551615\n0\t0\n"
        "9223372036854775807\t9223372036854775807\n"
    )


def test_stdout_block_is_souffles() -> None:
    out = streams.BytesIO()
    io = directive("output")
    table = Table(EDGE.kinds, (np.array([1]), np.array([2])))
    formats.save(io, EDGE, program(EDGE), table, SymbolTable(), Records(), "-", 1, out)
    assert out.getvalue() == b"---------------\nr\na\tb\n===============\n1\t2\n===============\n"


def test_printsize_line() -> None:
    out = streams.BytesIO()
    table = Table(EDGE.kinds, (np.arange(3), np.arange(3)))
    formats.save(directive("printsize"), EDGE, program(EDGE), table, SymbolTable(), Records(), ".", 1, out)
    assert out.getvalue() == b"r\t3\n"


def test_limitsize_needs_a_number() -> None:
    assert formats.size_limit(directive("limitsize", n="47"), program(EDGE)) == 47
    with pytest.raises(DlogError, match="needs a number of rows"):
        formats.size_limit(directive("limitsize"), program(EDGE))


def test_a_nullary_relation_is_a_line_of_parentheses() -> None:
    assert written(relation(), Table((), (), 1)) == "()\n"
    assert written(relation(), Table((), (), 0)) == ""


TEXT = st.text(st.characters(exclude_characters="\t\n\r", exclude_categories=["Cs"]), max_size=12)
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NUMBERS = st.one_of(st.integers(-9, 9), st.integers(-(2**63), 2**63 - 1))
ROW = st.tuples(NUMBERS, TEXT, st.integers(0, 2**64 - 1), st.floats(allow_nan=False))


@examples(60)
@given(st.lists(ROW, max_size=20), st.sampled_from([{}, {"delimiter": "\t|"}, {"headers": "true"}, {"compress": "true"}]))
def test_saved_rows_load_again(rows: list[tuple], params: dict[str, str]) -> None:
    round_trip(rows, params)


@examples(60)
@given(st.lists(st.tuples(NUMBERS, ANY_TEXT, st.integers(0, 9), st.floats(0, 1)), max_size=20))
def test_quoted_rows_load_again_whatever_their_text(rows: list[tuple]) -> None:
    round_trip(rows, {"rfc4180": "true"})


def round_trip(rows: list[tuple], params: dict[str, str]) -> None:
    shape = relation("number", "symbol", "unsigned", "float")
    symbols = SymbolTable()
    numbers, words, naturals, floats = zip(*rows, strict=True) if rows else ((), (), (), ())
    table = Table(
        shape.kinds,
        (np.array(numbers, np.int64), symbols.intern_texts(words), np.array(naturals, np.uint64), np.array(floats, np.float64)),
    )
    with TemporaryDirectory() as name:
        folder = Path(name)
        formats.save(directive("output", filename="f", **params), shape, program(shape), table, symbols, Records(), folder, 2)
        loaded = formats.load(directive(filename="f", **params), shape, program(shape), symbols, Records(), folder, 2)
        assert [f.name for f in folder.iterdir()] == ["f"]
    ordered = sorted(rows, key=lambda r: (r[0], r[1].encode(), r[2], r[3], np.copysign(1, r[3])))
    assert rows_of(loaded, symbols) == ordered


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(registry, "_write_all", fail)
    (tmp_path / "r.csv").write_text("old\n")
    table = Table(WORD.kinds, (np.zeros(0, np.int32),))
    with pytest.raises(KeyboardInterrupt):
        formats.save(directive("output"), WORD, program(WORD), table, SymbolTable(), Records(), tmp_path)
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("r.csv", "old\n")]


def test_writing_into_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    table = Table(EDGE.kinds, (np.arange(3), np.arange(3)))
    with pytest.raises(DlogError, match=r"cannot write .*r\.csv: No such file or directory"):
        formats.save(directive("output"), EDGE, program(EDGE), table, SymbolTable(), Records(), tmp_path / "no")


@pytest.mark.parametrize(("written", "meant"), [("fielname", "filename"), ("delimeter", "delimiter"), ("Headers", "headers")])
def test_a_misspelled_parameter_is_remarked_upon(tmp_path: Path, written: str, meant: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"`{written}` of `.input r` means nothing: did you mean `{meant}`?"):
        formats.remark_parameters(directive("input", **{written: "x"}))
    assert read(tmp_path, "1\t2\n", EDGE, **{written: "x"}) == [(1, 2)]


@pytest.mark.parametrize(
    ("action", "io", "said"),
    [
        ("input", "json", "IO=json reads standard input; did you mean IO=jsonfile"),
        ("input", "stdin", "IO=stdin reads standard input; did you mean IO=file"),
        ("output", "stdout", "IO=stdout writes to standard output; did you mean IO=file"),
    ],
)
def test_a_file_that_is_named_for_a_stream_is_remarked_upon(action: str, io: str, said: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"`filename` of `.{action} r` means nothing: {said}"):
        formats.remark_parameters(directive(action, IO=io, filename="r.json"))


@pytest.mark.parametrize("io", ["file", "jsonfile", "spark", "sqlite"])
def test_a_file_that_is_named_for_files_is_not(io: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        formats.remark_parameters(directive("input", IO=io, filename="r.json"))


@pytest.mark.parametrize("other", ["dbname", "attributeNames", "auto-schema"])
def test_parameters_for_other_readers_are_left_alone(tmp_path: Path, other: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        formats.remark_parameters(directive("input", **{other: "x"}))
        assert read(tmp_path, "1\t2\n", EDGE, **{other: "x"}) == [(1, 2)]
