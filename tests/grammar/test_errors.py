"""Syntax errors: golden messages for each `errors/*.dl`, and what holds for any broken text.

`DLOG_ACCEPT=1` writes the golden files anew; read the difference before keeping it.
"""

from __future__ import annotations

import os
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.grammar import recovery
from dlog.grammar.diagnostics import DlogError, render_all
from dlog.grammar.parser import parse
from dlog.grammar.printer import format_source
from dlog.grammar.source import Source
from dlog.repl.statements import tokens
from tests.examples import examples

ERRORS = Path(__file__).with_name("errors")


@pytest.mark.parametrize("path", sorted(ERRORS.glob("*.dl")), ids=lambda p: p.stem)
def test_golden_errors(path: Path) -> None:
    with pytest.raises(DlogError) as caught:
        parse(Source(path.read_text(), path.name))
    said = render_all(caught.value.diagnostics) + "\n"
    golden = path.with_suffix(".err")
    if os.environ.get("DLOG_ACCEPT"):
        golden.write_text(said)
    assert said == golden.read_text()


PROGRAM = """\
.decl edge(x: number, y: symbol) inline
.type List = [head: number, tail: List]
.comp C<T> { .decl r(x: T) r(x) :- edge(x, "a"), !s([x, nil]). }
.init c = C<number>
path(x, z) :- edge(x, y), (path(y, z); z = count : { edge(y, _) }), x + 1 < -z * 2.
.plan 0: (1, 2)
r(x) <= r(y) :- x < y.
edge(1, "two"). edge($A(3), "four\\n").
.output path(IO=file)
"""
PIECES = [*'.,()[]{}!"x1 \n=<$@\0', ":-", ".decl ", ".foo", "/*"]


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """The program with a few stretches cut out and pieces put in."""
    text = PROGRAM
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + draw(st.sampled_from(["", *PIECES])) + text[at + draw(st.integers(0, 6)) :]
    return text


@examples(200)
@given(broken_texts() | st.text(st.sampled_from("".join(PIECES) + "abc"), max_size=30))
def test_any_text_parses_or_has_errors_with_places(text: str) -> None:
    try:
        parse(Source(text))
    except DlogError as error:
        starts = [d.labels[0].span.start for d in error.diagnostics]
        assert starts and starts == sorted(starts)
        assert all(0 <= label.span.start <= label.span.end <= len(text) for d in error.diagnostics for label in d.labels)
        assert render_all(error.diagnostics).startswith("error: ")


@pytest.mark.parametrize("broken", ["edge(1 2).", "edge(1, 2", "p(x) :- .", ".decl a(x)", 'p("a).', "p('a')."])
def test_one_mistake_gives_one_message(broken: str) -> None:
    before, after = "good(1).\n.decl a(x: number)\n", "\ngood(2).\nlast(x) :- good(x).\n.output last\n"
    with pytest.raises(DlogError) as caught:
        parse(Source(before + broken + after))
    assert [d.source and d.source.locate(d.labels[0].span.start).line for d in caught.value.diagnostics] == [3]


def test_messages_are_limited() -> None:
    with pytest.raises(DlogError) as caught:
        parse(Source("p(1 2).\n" * 100))
    assert len(caught.value.diagnostics) == 20


@pytest.mark.parametrize("text", ['a(x) :- x = "{}".', 'a("{}'], ids=["whole", "without an end"])
def test_a_long_string_takes_no_memory_for_each_character(text: str) -> None:
    source = Source(f".decl a(x: symbol)\n{text.format('b' * 300_000)}\n", "a.dl")
    tracemalloc.start()
    with suppress(DlogError):
        parse(source)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 30 << 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('r("' + 100_000 * " " + "x", "this string has no end"),
        ('r("' + 100_000 * ") . " + "// x", "this string has no end"),
        (100_000 * "/* ", "this comment has no end"),
        (100_000 * '"\\', "this string has no end"),
    ],
    ids=["blanks", "marks", "comments", "escapes"],
)
def test_what_has_no_end_is_told_in_time(text: str, message: str) -> None:
    """The first took time with the cube of its length, days, and the last with the square."""
    with pytest.raises(DlogError) as caught:
        parse(Source(f".decl r(x: symbol)\n{text}\n"))
    assert caught.value.diagnostics[0].message == message


def test_texts_without_an_end_are_searched_once() -> None:
    for text in (100_000 * '"\\', 100_000 * "/*a", 100_000 * '"\\' + "\n" + 100_000 * "/*a"):
        assert sum(len(t.text) for t in tokens(text)) == len(text)
        with pytest.raises(DlogError):
            format_source(Source(text))


def test_a_comment_without_an_end_is_none_in_a_string() -> None:
    with pytest.raises(DlogError) as caught:
        parse(Source('a("b /* ).\na("c"). // /*\nb(x :- c /* d */ "\n/* b\n'))
    found = [d.message for d in caught.value.diagnostics]
    assert found[0] == found[-2] == "this string has no end" and found[-1] == "this comment has no end"


def test_what_is_open_is_not_copied_for_each_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of brackets that are never closed would take time with the square of their number."""
    copies = []
    copied = recovery._Parser.stacks
    monkeypatch.setattr(recovery._Parser, "stacks", lambda parser: copies.append(copied(parser)) or copies[-1])
    with pytest.raises(DlogError):
        parse(Source(".decl a(x: number)\n" + "a(" * 500, "a.dl"))
    assert len(copies) < 10
