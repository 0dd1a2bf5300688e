"""Lines of changes, from whatever pieces a file or a pipe gives them in."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from dlog.codec import Codec
from dlog.engine.compiler import compile_source
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source
from dlog.watch import change_lines, line_source
from dlog.watch.line_source import LineSource


@given(text=st.text("ab\n", max_size=60), size=st.integers(1, 9))
def test_lines_are_the_same_in_pieces_of_any_size(text: str, size: int) -> None:
    with TemporaryDirectory() as folder, patch.object(line_source, "_CHUNK", size):
        path = Path(folder, "changes")
        path.write_text(text)
        assert list(LineSource(str(path))) == text.removesuffix("\n").split("\n")[: None if text else 0]


def test_a_line_in_many_pieces_is_put_together_once(tmp_path: Path) -> None:
    """Not once for each piece: a line of 200 MB took a minute and a half."""
    (tmp_path / "changes").write_text("x" * 1000 + "\n")
    with patch.object(line_source, "_CHUNK", 1):
        source = LineSource(str(tmp_path / "changes"))
        pieces = 0
        take = source._take

        def counted(data: bytes) -> None:
            nonlocal pieces
            take(data)
            pieces = max(pieces, len(source._rest))

        with patch.object(source, "_take", counted):
            assert next(iter(source)) == "x" * 1000
    assert pieces == 1000


RECORDS = """.type P = [a: number, s: symbol]
.type T = Leaf {} | Node { p: P, x: number }
.decl e(p: P, t: T)
.decl f(t: T, n: number)
"""
OTHERS = [
    '1,e,+1,"[1, k]","$Leaf"',
    "1,f,+1,nil,x",
    '1,f,+1,"$Other",7',
    '1,f,+1,"$Node([1, k], x)",7',
    '1,e,+1,"[1',
    "1,e,+1,nil",
    '{"round": 1, "relation": "f", "diff": 1, "row": ["$Leaf", 1]}',
    "\udcff",
]
LINES = st.lists(
    st.one_of(
        st.builds(lambda a, x: f'1,e,+1,"[{a}, k]","$Node([{a}, k], {x})"', st.integers(0, 5), st.integers(0, 5)),
        st.builds(lambda x: f'1,f,-1,"$Node([{x}, é], {x})",7', st.integers(0, 5)),
        st.sampled_from(OTHERS),
    ),
    max_size=30,
)
ROWS = [["$Leaf", 1], ["$Node([1, k], 2)", 1], ["$Node([3, k], 2)", 1], ["$Leef", 1], ["$Leaf", "x"], [None, 1], 5]
JSON_LINES = st.lists(
    st.builds(lambda row: json.dumps({"round": 1, "relation": "f", "diff": 1, "row": row}), st.sampled_from(ROWS)), max_size=20
)


def changes_of(content: bytes, ahead: int, cached: int) -> tuple[list[change_lines.Change], str]:
    """The changes that are read with so many lines ahead, and what is said at last."""
    program = compile_source(Source(RECORDS))
    codec = Codec(program, SymbolTable(), RecordTables(Memory(None)))
    found: list[change_lines.Change] = []
    limits = patch.multiple(change_lines, _LINES_AHEAD=ahead, _CACHED_RECORDS=cached)
    with TemporaryDirectory() as folder, limits:
        path = Path(folder, "changes")
        path.write_bytes(content)
        try:
            found.extend(change_lines.ChangeReader(LineSource(str(path)), dict(program.relations), codec))
        except DlogError as error:
            return found, str(error).replace(folder, "")
    return found, ""


@given(lines=st.one_of(LINES, JSON_LINES), ahead=st.integers(1, 9), cached=st.integers(1, 4))
def test_records_are_the_same_with_those_of_later_lines_and_without(lines: list[str], ahead: int, cached: int) -> None:
    """And so is what is said about the first wrong line."""
    content = "\n".join(lines).encode("utf-8", "surrogateescape")
    expected = changes_of(content, 0, 1 << 14)
    assert changes_of(content, ahead, cached) == expected


def test_records_of_many_lines_are_parsed_together() -> None:
    calls = 0
    parse = change_lines.parse_records

    def counted(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return parse(*given)

    lines = [f'1,e,+1,"[{i}, k]","$Node([{i}, k], {i})"' for i in range(5000)]
    with patch.object(change_lines, "parse_records", counted):
        found, said = changes_of("\n".join(lines).encode(), 1000, 1500)
    assert (len(found), said) == (5000, "") and calls <= 2 * (5 + 1)
