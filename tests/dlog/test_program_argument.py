"""What a run and a session are given as program, threads and memory, whichever of them is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

FACT = ".decl a(x: number) a(1)."


def ran(program: Any, **options: Any) -> list[Any]:
    return list(dlog.run(program, **options)["a"])


def opened(program: Any, **options: Any) -> list[Any]:
    with dlog.session(program, **options) as s:
        return list(s["a"])


BOTH = pytest.mark.parametrize("way", [ran, opened])
Way = Callable[..., list[Any]]


@BOTH
@pytest.mark.parametrize("text", [FACT, f" {FACT} ", f"{FACT}\n", ".decl a(x: number)\n\na(1)."])
def test_text_is_text_with_or_without_a_line_break(way: Way, text: str) -> None:
    assert way(text) == [(1,)]


@BOTH
@pytest.mark.parametrize("name", ["p.dl", "p (1).dl", "p", "a(x) :- b.dl", ".decl a.dl"])
def test_what_names_a_file_is_that_file(way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(FACT)
    assert way(name) == way(Path(name)) == way(tmp_path / name) == [(1,)]


@BOTH
@pytest.mark.parametrize("text", [FACT, f" {FACT} "])
def test_text_is_text_whatever_files_there_are(way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """Who can write to the current folder could otherwise have another program run."""
    monkeypatch.chdir(tmp_path)
    Path(text).write_text(FACT.replace("1", "2"))
    assert way(text) == [(1,)] and way(Path(text)) == [(2,)]


@BOTH
@pytest.mark.parametrize("text", ["a(x) :- b(x).", "a(1).", ".decl a(x: number", "a(1), b(2)"])
def test_mistakes_in_a_text_are_those_of_a_text(way: Way, text: str) -> None:
    with pytest.raises(DlogError) as caught:
        way(text)
    assert all(d.source is not None and d.source.name == "<text>" for d in caught.value.diagnostics)


@BOTH
@pytest.mark.parametrize("text", ["p.dl", "edges (2).dl", "", "a", "x" * 5000, "a\0b", "folder/"])
def test_what_is_neither_says_so(way: Way, text: str) -> None:
    with pytest.raises(DlogError, match="is neither a file that exists nor the text of a program") as caught:
        way(text)
    assert caught.value.diagnostics[0].notes == (
        "a string without a line break is a file's name, unless it is a clause or a directive, such as `a(1).` or `.input a`",
    )


@BOTH
def test_memory_is_a_size(way: Way) -> None:
    for size in ("2G", "512M", " 1.5 GiB ", 10**9, None):
        assert way(FACT, memory=size) == [(1,)]
    for wrong in ("2X", "", "-1", "0", 0, -5, 1.5, True, b"2G"):
        with pytest.raises(DlogError, match="`memory` must be a number of bytes, 1 or more, or a size such as"):
            way(FACT, memory=wrong)


@BOTH
def test_threads_are_counted(way: Way) -> None:
    assert way(FACT, threads=1) == way(FACT, threads=None) == [(1,)]
    for wrong in (-1, 0, "2", 1.5, True, 10**6):
        with pytest.raises(DlogError, match="`threads` must be a whole number, 1 or more"):
            way(FACT, threads=wrong)
    with pytest.raises(DlogError, match="`threads` must be a whole number"):
        dlog.graph([(1, 2)], threads=-1)
    with pytest.raises(DlogError, match="`threads` must be a whole number"):
        dlog.run_text(f"{FACT}\n", {}, threads=-1)


@BOTH
def test_includes_and_macros_are_lists(way: Way) -> None:
    assert way(".decl a(x: number) a(N).", macros=["N=1"]) == [(1,)]
    for wrong in ("N=1", 3, [3]):
        for name in ("macros", "include"):
            with pytest.raises(DlogError, match=f"`{name}` must be a list of"):
                way(FACT, **{name: wrong})
