"""Rows that cannot be read: all of them are told, or they are left out, or rejected to a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.engine import formats
from dlog.engine.formats import text
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation

MIXED = relation("number", "symbol")
PAIRS = relation("Pair", "number")


def load(folder: Path, content: bytes, shape: Relation, **params: str) -> list[tuple[object, ...]]:
    (folder / "r.facts").write_bytes(content)
    symbols, records = SymbolTable(), Records()
    table = formats.load(directive(**params), shape, program(shape), symbols, records, folder, threads=2)
    columns = []
    for kind, column in zip(table.kinds, table.columns, strict=True):
        columns.append([symbols.text(i) for i in column.tolist()] if kind is Kind.SYMBOL else column.tolist())
    return list(zip(*columns, strict=True))


def mistakes(folder: Path, content: bytes, shape: Relation, **params: str) -> list[str]:
    with pytest.raises(DlogError) as caught:
        load(folder, content, shape, **params)
    return [found.place.replace(f"{folder}/", "") or found.message for found in caught.value.diagnostics]


BAD = b"1\ta\nx\tb\n2\tc\n3\n4\t\xff\n5\te\n"


def test_all_mistakes_of_a_file_are_told(tmp_path: Path) -> None:
    assert mistakes(tmp_path, BAD, MIXED) == ["r.facts:2:1", "r.facts:4:2", "r.facts:5:3"]


def test_up_to_a_limit(tmp_path: Path) -> None:
    found = mistakes(tmp_path, b"1\ta\n" + b"x\tb\n" * 100, MIXED)
    assert found[:20] == [f"r.facts:{line}:1" for line in range(2, 22)]
    assert found[20:] == [f"{tmp_path}/r.facts has 20 wrong lines or more: the rest is not read"]


@pytest.mark.parametrize("block", [8, 1 << 22])
def test_wrong_rows_are_skipped_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(text, "BLOCK", block)
    said = r"3 wrong rows are left out; the first: line 2, column 1 \(`a`\): `x` is not a number"
    with pytest.warns(RuntimeWarning, match=said):
        assert load(tmp_path, BAD, MIXED, errors="skip") == [(1, "a"), (2, "c"), (5, "e")]


def test_wrong_rows_are_rejected_to_a_file(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="3 wrong rows are left out, and written to .*bad.txt"):
        assert load(tmp_path, BAD, MIXED, errors="reject:bad.txt") == [(1, "a"), (2, "c"), (5, "e")]
    assert (tmp_path / "bad.txt").read_bytes() == b"x\tb\n3\n4\t\xff\n"


def test_many_wrong_rows_are_as_good_as_few(tmp_path: Path) -> None:
    content = b"".join(b"%d\tgood\nx\tbad\n" % i for i in range(3000))
    with pytest.warns(RuntimeWarning, match="3000 wrong rows"):
        assert load(tmp_path, content, MIXED, errors="skip") == [(i, "good") for i in range(3000)]


def test_rows_with_quotes_are_skipped_whole(tmp_path: Path) -> None:
    content = b'1,"a\nb"\nx,"c\nd"\n2,"e"f\n3,"g ""h"""\nx\n4,"i\n'
    with pytest.warns(RuntimeWarning, match="4 wrong rows"):
        rows = load(tmp_path, content, MIXED, errors="reject:bad.txt", rfc4180="true")
    assert rows == [(1, "a\nb"), (3, 'g "h"')]
    assert (tmp_path / "bad.txt").read_bytes() == b'x,"c\nd"\n2,"e"f\nx\n4,"i\n'


RECORDS = b"[1, a]\t1\n[x, b]\t2\n[2, c]\tx\n[3, d]\t4\n[4]\t5\n[x, b]\t6\n"


def test_wrong_records_are_wrong_rows(tmp_path: Path) -> None:
    assert mistakes(tmp_path, RECORDS, PAIRS) == ["r.facts:3:8", "r.facts:2", "r.facts:5", "r.facts:6"]
    with pytest.warns(RuntimeWarning, match="4 wrong rows"):
        assert load(tmp_path, RECORDS, PAIRS, errors="reject:bad.txt") == [(1, 1), (2, 4)]
    assert (tmp_path / "bad.txt").read_bytes() == b"[x, b]\t2\n[2, c]\tx\n[4]\t5\n[x, b]\t6\n"


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"errors": "ignore"}, "errors='ignore' says nothing about wrong rows"),
        ({"errors": "reject"}, "errors='reject' says nothing about wrong rows"),
        ({"errors": "skip", "IO": "jsonfile"}, "`errors` is for IO=file, stdin, not for jsonfile"),
        ({"errors": "reject:x", "rfc4180": "true"}, "lines with quotes that hold records cannot be rejected to a file"),
    ],
)
def test_other_words_are_refused(tmp_path: Path, params: dict[str, str], message: str) -> None:
    with pytest.raises(DlogError) as caught:
        load(tmp_path, b"", PAIRS, **params)
    assert caught.value.diagnostics[0].message == message


def test_wrong_rows_of_several_files_are_not_rejected_to_one(tmp_path: Path) -> None:
    (tmp_path / "r2.facts").write_bytes(BAD)
    with pytest.raises(DlogError) as caught:
        load(tmp_path, BAD, MIXED, filename="r*.facts", errors="reject:bad.txt")
    assert caught.value.diagnostics[0].message == "`errors=reject:FILE` is for one file, and r*.facts stands for 2"
    assert not (tmp_path / "bad.txt").exists()
