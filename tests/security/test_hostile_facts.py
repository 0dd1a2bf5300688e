"""Facts that somebody made to take time, and parameters that mean nothing: linear time, and mistakes, no internal errors."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dlog
from dlog.__main__ import run_command
from dlog.engine.formats import text, wrong_lines, wrong_rows
from dlog.engine.formats.nested import MAX_DEPTH
from dlog.engine.formats.parameters import TextFormat
from dlog.engine.formats.text import BadLine
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import directive, program, relation

PAIR = relation("number", "Pair")


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


@pytest.mark.parametrize("columns", ["99999999999999999999", "1" * 5000, "2000000000", "١", "²"])
@pytest.mark.parametrize("way", ["file", "jsonfile", "ndjson", "parquet", "sqlite"])
def test_columns_that_no_file_has_are_mistakes(tmp_path: Path, columns: str, way: str) -> None:
    dlog.run(f'.decl r(x: number)\nr(1).\n.output r(IO={way}, filename="f", format=object)\n', output=tmp_path)
    with pytest.raises(DlogError) as caught:
        dlog.run(f'.decl r(x: number)\n.input r(IO={way}, filename="f", columns="{columns}")\n', facts=tmp_path)
    assert caught.value.diagnostics[0].code in ("bad-parameter", "unclear-columns", "wrong-column-count")


def test_a_million_columns_are_as_many_as_a_file_may_have(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("1\t2\n")
    with pytest.raises(DlogError, match="there is no column 1048576, files have 1048576 at most"):
        dlog.run('.decl r(x: number)\n.input r(columns="1048576")\n', facts=tmp_path)
    with pytest.raises(DlogError, match="line 1 has 2 columns, `r` has 1048576"):
        dlog.run('.decl r(x: number)\n.input r(columns="1048575")\n', facts=tmp_path)


def test_wrong_lines_are_not_written_to_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "r.facts").write_text("x\n")
    monkeypatch.chdir(tmp_path)
    for name in (".", ".."):
        with pytest.raises(DlogError, match="cannot write "):
            dlog.run(f'.decl r(x: number)\n.input r(errors="reject:{name}")\n.printsize r\n', facts=".")


@pytest.mark.parametrize("opening", ["[1, ", "[["])
def test_records_deeper_than_anybody_writes_are_refused(tmp_path: Path, opening: str) -> None:
    (tmp_path / "r.facts").write_text(opening * (MAX_DEPTH + 1) + "nil" + "]" * (MAX_DEPTH + 1) + "\n")
    with pytest.raises(DlogError, match=f"has more than {MAX_DEPTH} records inside each other"):
        dlog.run(".type L = [h: number, t: L]\n.decl r(x: L)\n.input r\n", facts=tmp_path)


@pytest.mark.slow
def test_a_list_is_read_without_a_look_at_its_rest_for_each_element(tmp_path: Path) -> None:
    text = "[1, " * MAX_DEPTH + "nil" + "]" * MAX_DEPTH
    (tmp_path / "r.facts").write_text(text + "\n")
    (tmp_path / "wrong.facts").write_text("[1, [2, nil], [3, nil]]\n[1, nil] , [2, nil]\n[1, nil]]\n[1, [2, nil]\n")
    rows = '.type L = [h: number, t: L]\n.decl r(x: L)\n.input r(filename="{}", errors=skip)\n.output r\n'
    assert len(list(dlog.run(rows.format("r.facts"), facts=tmp_path, output=tmp_path)["r"])) == 1
    assert list(dlog.run(rows.format("wrong.facts"), facts=tmp_path, output=tmp_path)["r"]) == []


def test_the_lines_of_wrong_records_are_found_with_one_look_at_those_that_are_no_rows(tmp_path: Path) -> None:
    lines = ["wrong\n" if i % 2 else f"{i}\t[bad]\n" for i in range(4000)]
    (tmp_path / "r.facts").write_text("".join(lines))
    wrong = wrong_rows.WrongRows(directive(), program(PAIR), "r.facts", PAIR, TextFormat(), refuses=False)
    data = np.frombuffer("".join(lines).encode(), np.uint8)
    for i in reversed(range(1, 4000, 2)):
        wrong.line(BadLine(data, sum(map(len, lines[:i]))))
    assert [wrong.line_of(data, row) for row in range(2000)] == list(range(1, 4001, 2))
    assert wrong.before is not None and len(wrong.before) == 2000


def test_the_end_of_a_row_is_looked_for_nearby() -> None:
    class Data(np.ndarray):  # type: ignore[type-arg]
        looked = 0

        def tobytes(self, order: object = None) -> bytes:
            Data.looked += len(self)
            return super().tobytes()

    data = np.frombuffer(b"wrong\n" * 1_000_000, np.uint8).view(Data)
    assert wrong_lines.row_end(data, 6, TextFormat()) == 12 and wrong_lines.line_begin(data, 17) == 12
    assert wrong_lines.row_end(data, 6, TextFormat(b",", rfc4180=True)) == 12 and Data.looked < 1024


@pytest.mark.parametrize("size", [3, 250, 5000, 70_000, 2_000_000])
def test_the_end_of_a_row_is_found_wherever_it_is(size: int) -> None:
    quoted = np.frombuffer(b'1,"' + b"a\n" * (size // 2) + b'""","' + b"b" * size + b'"x\n2,"open\n', np.uint8)
    plain = np.frombuffer(b"a" * size + b"\n" + b"b" * size, np.uint8)
    form = TextFormat(b",", rfc4180=True)
    if size < 1 << 20:
        assert wrong_lines.row_end(quoted, 0, form) == len(quoted) - len(b'2,"open\n')
    assert wrong_lines.row_end(quoted, len(quoted) - len(b'2,"open\n'), form) == len(quoted)
    assert [wrong_lines.row_end(plain, at, TextFormat()) for at in (0, size + 1)] == [size + 1, len(plain)]
    assert [wrong_lines.line_begin(plain, at) for at in (size, len(plain))] == [0, size + 1]


def test_text_that_is_none_has_no_column_interned_again_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    symbols, looked = SymbolTable(), []
    intern = SymbolTable.intern_slices

    def counted(self: SymbolTable, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        looked.append(len(starts))
        return intern(self, data, starts, ends)

    monkeypatch.setattr(SymbolTable, "intern_slices", counted)
    data = np.frombuffer(b"a\t\xff\n" * 2000 + b"a\tb\n", np.uint8)
    heard: list[object] = []
    types = tuple(type_ for _, type_ in relation("symbol", "symbol").attributes)
    table = text.load_text(data, types, TextFormat(), symbols, {}, 1, heard.append, len(data))
    assert (table.rows, len(heard)) == (1, 2000) and sum(looked) < 20 * 2000


@pytest.mark.slow
@pytest.mark.parametrize("line", ["x" * 300_000, "x\t" * 150_000, "[" * 300_000, "1" * 300_000])
@pytest.mark.parametrize("kind", ["number", "L"])
def test_a_wrong_line_of_any_length_is_shown_in_part(tmp_path: Path, line: str, kind: str) -> None:
    (tmp_path / "r.facts").write_text((line + "\n") * 30)
    text = f".type L = [h: number, t: L]\n.decl r(x: {kind})\n.input r{{}}\n"
    with pytest.raises(dlog.DlogError) as found:
        dlog.run(text.format(""), facts=tmp_path)
    assert len(str(found.value)) < 21 * 3_000
    with pytest.warns(RuntimeWarning, match="30 wrong rows are left out") as told:
        dlog.run(text.format("(errors=skip)"), facts=tmp_path)
    assert all(len(str(one.message)) < 1_500 for one in told)


@pytest.mark.parametrize("way", ["1,r,+1,{}", '{{"round": 1, "relation": "r", "diff": 1, "row": ["{}"]}}', "1,{},+1,1", "{}"])
def test_a_wrong_change_of_any_length_is_shown_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], way: str
) -> None:
    (tmp_path / "r.dl").write_text(".decl r(x: number)\n.output r\n")
    (tmp_path / "changes.txt").write_text(way.format("x" * 1_000_000) + "\n")
    monkeypatch.chdir(tmp_path)
    assert run_command(["watch", "r.dl", "changes.txt"]) == 1
    said = capfd.readouterr().err
    assert "changes.txt:1:" in said and 200 < len(said) < 3_000
