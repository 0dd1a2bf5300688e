"""Which files are read, and as what: names with wildcards, .csv, encodings; text that is not read as it was written."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from dlog.engine import formats
from dlog.engine.formats.unreadable import symbols_with
from dlog.engine.ir.rules import Kind, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from tests.engine.formats.fakes import Records, directive, program, relation
from tests.engine.formats.test_text import EDGE, WORD, WORDS, rows_of

TYPED = relation("symbol", "number")


def load(folder: Path, shape: Relation, **params: str) -> list[tuple[object, ...]]:
    symbols = SymbolTable()
    return rows_of(formats.load(directive(**params), shape, program(shape), symbols, Records(), folder), symbols)


def refusal(folder: Path, shape: Relation, **params: str) -> tuple[str, str, tuple[str, ...]]:
    with pytest.raises(DlogError) as caught:
        load(folder, shape, **params)
    (found,) = caught.value.diagnostics
    return found.code, found.message.replace(f"{folder}/", ""), tuple(found.notes)


@pytest.mark.parametrize(
    ("content", "shape", "params", "expected"),
    [
        ("a,1\nb,2\n", TYPED, {}, [("a", 1), ("b", 2)]),
        ("a\t1\nb\t2\n", TYPED, {}, [("a", 1), ("b", 2)]),  # as Souffle reads it
        ('"a, b",1\n"c ""d""",2\n', TYPED, {}, [("a, b", 1), ('c "d"', 2)]),
        ("b,a\n1,x\n", TYPED, {"headers": "true"}, [("x", 1)]),
        ("n,x,w\n1,2,y\n", TYPED, {"columns": "w:n"}, [("y", 1)]),
        ("a,b\n", WORD, {}, [("a,b",)]),  # one attribute: the line, as Souffle reads it
        ("b,a\nx,y\n", WORD, {"headers": "true"}, [("y",)]),
        ("a,b;1\n", TYPED, {"delimiter": ";"}, [("a,b", 1)]),
    ],
)
def test_csv_files_have_commas_where_souffle_would_find_one_column(
    tmp_path: Path, content: str, shape: Relation, params: dict[str, str], expected: list[object]
) -> None:
    (tmp_path / "x.csv").write_text(content)
    assert load(tmp_path, shape, filename="x.csv", **params) == expected
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content.encode()))
    assert load(tmp_path, shape, filename="x.csv.gz", **params) == expected


def test_other_files_have_tabs(tmp_path: Path) -> None:
    (tmp_path / "x.facts").write_text("a,1\n")
    code, message, notes = refusal(tmp_path, TYPED, filename="x.facts")
    assert (code, message) == ("wrong-column-count", "line 1 has 1 column, `r` has 2 columns")
    assert "did you mean delimiter=','?" in notes


def test_columns_beyond_the_relations_are_left_out_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("a\t1\tx\nb\t2\n")
    with pytest.warns(RuntimeWarning, match=r"line 1 of .*r\.facts has 3 columns: the first 2 of them are read for `r`"):
        assert load(tmp_path, TYPED) == [("a", 1), ("b", 2)]
    (tmp_path / "r.facts").write_text("a\t1\nb\t2\tx\n")
    assert refusal(tmp_path, TYPED)[1] == "line 2 has 3 columns, `r` has 2 columns"


def test_columns_that_are_named_must_be_there(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_text("who\twhom\na\tb\n")
    assert load(tmp_path, WORDS, columns="whom:who") == [("b", "a")]
    code, message, notes = refusal(tmp_path, WORDS, columns="whom:when")
    assert (code, message) == ("unclear-columns", "no column of r.facts is called `when`")
    assert notes == ("its columns are who, whom",)


def test_a_pattern_is_all_files_that_match_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name, text in (("e-2.facts", "3\t4\n"), ("e-1.facts", "1\t2\n"), ("f.facts", "5\t6\n")):
        (tmp_path / name).write_text(text)
    assert load(tmp_path, EDGE, filename="e-*.facts") == [(1, 2), (3, 4)]
    assert load(tmp_path, EDGE, filename="[f].facts") == [(5, 6)]
    (tmp_path / "e-*.facts").write_text("7\t8\n")  # a file of this very name comes first
    assert load(tmp_path, EDGE, filename="e-*.facts") == [(7, 8)]
    assert refusal(tmp_path, EDGE, filename="g-*.facts")[:2] == ("missing-file", "cannot open fact file g-*.facts")


def test_other_encodings_are_read_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "r.facts").write_bytes("ä\tß\n".encode("latin-1"))
    assert load(tmp_path, WORDS, encoding="latin-1") == [("ä", "ß")]
    assert refusal(tmp_path, WORDS)[0] == "encoding"
    assert refusal(tmp_path, WORDS, encoding="klingon")[:2] == ("bad-parameter", "encoding='klingon' is not known")
    assert refusal(tmp_path, WORDS, encoding="ascii")[:2] == ("encoding", "byte 1: r.facts is not ascii")
    (tmp_path / "r.facts").write_text("ä\tß\n", encoding="utf-16")
    assert load(tmp_path, WORDS, encoding="UTF-16") == [("ä", "ß")]
    expected = "r.facts is UTF-16, by its first bytes", ('encoding="utf-16" reads it',)
    assert refusal(tmp_path, WORDS)[1:] == expected
    message = "`encoding` is for IO=file, stdin, json, jsonfile, ndjson, not for parquet"
    assert refusal(tmp_path, WORDS, encoding="latin-1", IO="parquet")[1] == message


# -------------------------------------------------------------------------------------------------------------- writing


def save(folder: Path, texts: list[str], **params: str) -> str:
    symbols = SymbolTable()
    table = Table((Kind.SYMBOL,), (symbols.intern_texts(texts),), len(texts))
    formats.save(directive("output", **params), WORD, program(WORD), table, symbols, Records(), folder)
    return (folder / "r.csv").read_text()


@pytest.mark.parametrize(("bad", "what"), [("a\tb", r"the delimiter '\t'"), ("a\nb", "a line end")])
def test_text_that_cannot_be_read_back_is_warned_of_but_in_quotes(tmp_path: Path, bad: str, what: str) -> None:
    message = f"`a` of `r` has text with {what}, which will not be read as it is: {bad!r}; rfc4180=true writes quotes"
    with pytest.warns(RuntimeWarning, match=re.escape(message)):
        save(tmp_path, ["fine", bad])
    save(tmp_path, ["fine", bad], rfc4180="true")
    assert load(tmp_path, WORD, filename="r.csv", rfc4180="true") == [(bad,), ("fine",)]


def test_delimiters_of_several_characters_part_nothing_by_halves(tmp_path: Path) -> None:
    assert save(tmp_path, ["a=b>c"], delimiter="=>") == "a=b>c\n"
    with pytest.warns(RuntimeWarning, match="the delimiter '=>'"):
        save(tmp_path, ["a=>c"], delimiter="=>")


def test_symbols_are_found_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.formats.unreadable.CHUNK", 3)
    symbols = SymbolTable()
    symbols.intern_texts(["ab", "xaby", "a", "b", "", "aab"])
    assert symbols_with(b"ab", *symbols.strings).tolist() == [0, 1, 5]  # not where one text ends and the next begins
    assert symbols_with(b"a", *symbols.strings).tolist() == [0, 1, 2, 5]
    assert symbols_with(b"z", *symbols.strings).tolist() == []
    assert symbols_with(b"z", *SymbolTable().strings).dtype == np.int64
