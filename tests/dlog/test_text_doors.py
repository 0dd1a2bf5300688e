"""Strings are UTF-8 from every way in: random text comes out as it went in, other bytes are refused where they stand.

The oracle is Python's own decoder.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pyarrow import feather

import dlog
from dlog.__main__ import run_command
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.spark.arrow import ArrowCodec
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from dlog.repl import ReplOptions, run_repl
from dlog.watch.watch import Watch, watch
from tests.engine.formats.fakes import relation
from tests.examples import examples

DECLARED = ".decl p(n: number, x: symbol)\n"
PIECES = st.sampled_from(
    [b"\xc3", b"\xa9", b"\xe2\x82", b"\xac", b"\xed\xa0\x80", b"\xf0\x9f", b"\x98\x80", b"\xff", b"ab", b'"']
)
LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]) | st.sampled_from("é€😀")
TEXT = st.text(LETTERS, max_size=10)
LINES = st.lists(TEXT.map(str.encode) | st.lists(PIECES, max_size=5).map(b"".join), min_size=1, max_size=5)
"""What can stand in a line."""
EACH = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
Door = Callable[[Path, list[bytes]], dlog.Result]


def mistake_in(strings: list[bytes]) -> tuple[int, int] | None:
    """The first string that is not UTF-8, and how many characters it has before."""
    for number, string in enumerate(strings):
        try:
            string.decode()
        except UnicodeDecodeError as error:
            return number, len(string[: error.start].decode())
    return None


def table(strings: list[bytes], type: pa.DataType) -> pa.Table:
    """With invalid bytes even where Arrow says that there are none."""
    column = pa.array(strings, pa.large_binary() if str(type).startswith("large") else pa.binary())
    column = pa.Array.from_buffers(type, len(strings), column.buffers())
    return pa.table({"n": np.arange(len(strings)), "x": column})


def text(folder: Path, content: bytes) -> dlog.Result:
    (folder / "p.facts").write_bytes(content)
    return dlog.run(DECLARED + ".input p\n", facts=folder)


def lines(strings: list[bytes]) -> bytes:
    return b"".join(b"%d\t%s\n" % (i, s) for i, s in enumerate(strings))


def quoted(folder: Path, strings: list[bytes]) -> dlog.Result:
    rows = (b'%d,"%s"\n' % (i, s.replace(b'"', b'""')) for i, s in enumerate(strings))
    (folder / "p.facts").write_bytes(b"".join(rows))
    return dlog.run(DECLARED + '.input p(rfc4180=true, delimiter=",")\n', facts=folder)


def columnar(folder: Path, way: str, data: pa.Table) -> dlog.Result:
    write = pq.write_table if way == "parquet" else feather.write_feather
    write(data, str(folder / f"p.{way}"))
    return dlog.run(DECLARED + f'.input p(filename="p.{way}")\n', facts=folder)


def program(folder: Path, strings: list[bytes]) -> dlog.Result:
    clauses = (b'p(%d, "%s").\n' % (i, s.replace(b"\\", b"\\\\").replace(b'"', b'\\"')) for i, s in enumerate(strings))
    (folder / "p.dl").write_bytes(DECLARED.encode() + b"".join(clauses))
    return dlog.run(folder / "p.dl")


FILES: dict[str, Door] = {
    "lines": lambda folder, strings: text(folder, lines(strings)),
    "gzip": lambda folder, strings: text(folder, gzip.compress(lines(strings))),
    "quoted": quoted,
}
ROWS: dict[str, Door] = {
    "parquet": lambda folder, strings: columnar(folder, "parquet", table(strings, pa.binary())),
    "arrow of bytes": lambda folder, strings: columnar(folder, "arrow", table(strings, pa.large_binary())),
    "arrow of strings": lambda folder, strings: columnar(folder, "arrow", table(strings, pa.string())),
    "a table": lambda _, strings: dlog.run(DECLARED, {"p": table(strings, pa.large_string())}),
    "a table of bytes": lambda _, strings: dlog.run(DECLARED, {"p": table(strings, pa.binary())}),
}


def told(door: Door, folder: Path, strings: list[bytes]) -> str:
    """The first mistake with its place; checks the rows where there is none."""
    try:
        rows = door(folder, strings)["p"]
    except DlogError as error:
        found = error.diagnostics[0]
        return f"{found.place} {found.message}"
    assert sorted(rows) == [(i, s.decode()) for i, s in enumerate(strings)]
    return ""


@EACH
@given(strings=LINES)
@pytest.mark.parametrize("door", FILES.values(), ids=FILES)
def test_text_files(tmp_path: Path, door: Door, strings: list[bytes]) -> None:
    wrong, found = mistake_in(strings), told(door, tmp_path, strings)
    if wrong is None:
        assert found == ""
        return
    number, before = wrong
    start = len(f"{number},")
    if door is quoted:
        start += 1 + strings[number][: len(strings[number].decode("utf-8", "replace")[:before].encode())].count(b'"')
    assert found.startswith(f"{tmp_path / 'p.facts'}:{number + 1}:{start + before + 1} line {number + 1} (`x`): byte 0x")


@EACH
@given(
    strings=st.lists(st.text(max_size=9).map(str.encode) | st.lists(PIECES, max_size=5).map(b"".join), min_size=1, max_size=5)
)
@pytest.mark.parametrize("door", ROWS.values(), ids=ROWS)
def test_columns(tmp_path: Path, door: Door, strings: list[bytes]) -> None:
    wrong, found = mistake_in(strings), told(door, tmp_path, strings)
    assert (found == "") == (wrong is None)
    if wrong is not None:
        assert f"row {wrong[0] + 1}: " in found
        assert "is not UTF-8" in found


@EACH
@given(strings=LINES)
def test_programs(tmp_path: Path, strings: list[bytes]) -> None:
    wrong = mistake_in(strings)
    if wrong is None:
        assert told(program, tmp_path, strings) == ""
        return
    with pytest.raises(DlogError) as caught:
        program(tmp_path, strings)
    assert f"p.dl:{wrong[0] + 2}:" in str(caught.value)
    assert "is not UTF-8 text: byte 0x" in str(caught.value)


ANY = st.text(st.characters() | st.sampled_from("é€😀\ud800\udcff"), max_size=5)


@EACH
@given(strings=st.lists(ANY, min_size=1, max_size=5))
@pytest.mark.parametrize("columns", [False, True])
def test_rows_of_python(strings: list[str], columns: bool) -> None:
    rows = list(enumerate(strings))
    given: Any = {"n": [i for i, _ in rows], "x": strings} if columns else rows
    wrong = [i for i, s in rows if any("\ud800" <= c <= "\udfff" for c in s)]
    with dlog.Session(DECLARED) as session:

        def inserted() -> dlog.Session:
            session.insert("p", given)
            session.commit()
            return session

        for put in (lambda: dlog.run(DECLARED, {"p": given}), inserted):
            if not wrong:
                assert sorted(put()["p"]) == rows
                continue
            with pytest.raises(DlogError, match=f"row {wrong[0] + 1}: .*lone surrogate") as caught:
                put()
            assert [d.code for d in caught.value.diagnostics] == ["bad-fact"]


@EACH
@given(strings=LINES, as_json=st.booleans())
def test_changes(tmp_path: Path, strings: list[bytes], as_json: bool) -> None:
    """The rounds before the bad line come out."""
    (tmp_path / "q.dl").write_text(f"{DECLARED}.decl q(x: symbol)\nq(x) :- p(_, x).\n")
    marked = [s.replace(b"\\", b"\\\\").replace(b'"', b'\\"') if as_json else s.replace(b'"', b'""') for s in strings]
    form = b'{"round": %d, "relation": "p", "diff": 1, "row": [%d, "%s"]}\n' if as_json else b'%d,p,+1,%d,"%s"\n'
    (tmp_path / "changes").write_bytes(b"".join(form % (i + 1, i, s) for i, s in enumerate(marked)))
    wrong, place = mistake_in(strings), ""
    try:
        watch(Watch(tmp_path / "q.dl", str(tmp_path / "changes"), output=str(tmp_path / "out"), format="json"))
    except DlogError as error:
        [found] = error.diagnostics
        place = f"{found.code} {found.place}"
    written = (tmp_path / "out" / "q.changes.jsonl").read_text("utf-8").split("\n")[:-1]
    complete = strings if wrong is None else strings[: wrong[0]]
    assert [json.loads(line)["row"][0] for line in written] == list(dict.fromkeys(s.decode() for s in complete))
    assert place.startswith(f"encoding {tmp_path / 'changes'}:{wrong[0] + 1}:" if wrong else "") and bool(place) == bool(wrong)


def test_standard_input_and_the_repl(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))

    fed("é\n".encode() + b"b\xff\n")
    with pytest.raises(DlogError) as caught:
        dlog.run(".decl p(x: symbol)\n.input p(IO=stdin)\n", facts=".")
    assert str(caught.value) == (
        "error: line 2 (`x`): byte 0xff is not UTF-8\n --> <stdin>:2:2\n  | b\\xff\n  |  ^\n  = text files are UTF-8"
    )
    fed(b'.decl p(x: symbol)\np("\xc3\xa9").\n?- p(x).\np("\xff").\n')
    assert run_repl(ReplOptions()) == 1
    out, err = capsys.readouterr()
    assert "é" in out
    assert 'error: byte 0xff is not UTF-8\n --> <input>:4:4\n  |\n4 | p("\\udcff").\n' in err


def test_records_have_text_in_them(tmp_path: Path) -> None:
    program = ".type R = [a: symbol, b: R]\n.decl p(x: R)\n.input p\n"
    (tmp_path / "p.facts").write_bytes('[é, ["\\"😀", nil]]\n'.encode())
    assert list(dlog.run(program, tmp_path)["p"]) == [(("é", ('"😀', None)),)]
    (tmp_path / "p.facts").write_bytes(b"[a, nil]\n[b, [\xe9, nil]]\n")
    with pytest.raises(DlogError, match="byte 0xe9 is not UTF-8") as caught:
        dlog.run(program, tmp_path)
    assert caught.value.diagnostics[0].place == f"{tmp_path / 'p.facts'}:2:6"


def test_what_spark_hands_over() -> None:
    shape = relation("number", "symbol")
    codec = ArrowCodec({}, SymbolTable(), RecordTables(Memory(None)))
    assert codec.read(shape, table(["é".encode()], pa.string())).rows == 1
    with pytest.raises(DlogError, match=r"input of r, [a-z0-9]+: byte 0xff is not UTF-8"):
        codec.read(shape, table([b"a", b"\xff"], pa.string()))


FUNCTORS = """
.decl p(n: number, x: symbol)
.decl part(x: symbol, i: number, n: number)
part(x, i, n) :- p(_, x), p(i, _), p(n, _).
.decl q(x: symbol, i: number, n: number, length: number, piece: symbol, twice: symbol)
.output q(IO=parquet)
.output q(IO=arrow)
q(x, i, n, strlen(x), substr(x, i, n), cat(x, x)) :- part(x, i, n).
.decl less(x: symbol, y: symbol)
less(x, y) :- p(_, x), p(_, y), x < y.
.decl least(x: symbol)
least(x) :- p(_, x), !less(_, x).
.decl within(x: symbol, y: symbol)
within(x, y) :- p(_, x), p(_, y), contains(x, y).
.decl one(x: symbol)
one(x) :- p(_, x), match("(?s).", x).
"""


@EACH
@given(strings=st.lists(st.text(LETTERS | st.sampled_from("\0\n\uffff\U0010ffff"), max_size=6), min_size=1, max_size=5))
def test_functors_know_characters_and_what_they_make_is_text(tmp_path: Path, strings: list[str]) -> None:
    result = dlog.run(FUNCTORS, {"p": list(enumerate(strings))})
    words, numbers = set(strings), range(len(strings))
    cut = {(x, i, n, len(x), x[i : i + n] if i <= len(x) else "", x + x) for x in words for i in numbers for n in numbers}
    assert set(result["q"]) == cut
    assert set(result["less"]) == {(x, y) for x in words for y in words if x < y}
    assert set(result["least"]) == {(min(words),)}
    assert set(result["within"]) == {(x, y) for x in words for y in words if x in y}
    assert set(result["one"]) == {(x,) for x in words if len(x) == 1}
    found = result["q"].to_arrow()
    found.validate(full=True)
    assert [row["x"] for row in found.to_pylist()] == [row["x"] for row in pl.DataFrame(result["q"]).to_dicts()]
    assert duckdb.sql("select sum(length) from found").fetchall() == [(sum(row[3] for row in cut),)]


def test_files_of_arrow_and_parquet_are_text_to_others(tmp_path: Path) -> None:
    strings = ["é", "😀a", "", "\uffff", "b" * 40]
    (tmp_path / "q.dl").write_text(FUNCTORS.replace(".decl p(n: number, x: symbol)", ".decl p(n: number, x: symbol)\n.input p"))
    (tmp_path / "p.facts").write_bytes(lines([s.encode() for s in strings]))
    assert run_command(["run", str(tmp_path / "q.dl"), "-F", str(tmp_path), "-D", str(tmp_path)]) == 0
    words = {s[i : i + n] if i <= len(s) else "" for s in strings for i in range(5) for n in range(5)}
    parquet, arrow = tmp_path / "q.parquet", tmp_path / "q.arrow"
    for read in (pq.read_table(parquet), feather.read_table(arrow)):
        read.validate(full=True)
        assert set(read["piece"].to_pylist()) == words
    assert set(pl.read_parquet(parquet)["piece"]) == words == set(pl.read_ipc(arrow)["piece"])
    assert {piece for (piece,) in duckdb.sql(f"select piece from '{parquet}'").fetchall()} == words
