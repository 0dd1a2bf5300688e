"""How diagnostics look, suggestions, and the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest

from dlog.grammar.diagnostics import Diagnostic, Label, render
from dlog.grammar.source import Source, Span
from dlog.grammar.suggest import closest

TEXT = "a(x) :- b(x),\n\tc(y).\n\n\n\n\n\n\n\nd(x) :- e(x).\n"


def span(what: str) -> Span:
    return Span(TEXT.index(what), TEXT.index(what) + len(what))


def shown(*labels: Label, notes: tuple[str, ...] = (), source: Source | None = None) -> str:
    return render(Diagnostic("code", "message", labels, notes, source or Source(TEXT, "f.dl")))


def test_the_span_is_underlined_and_notes_follow() -> None:
    assert shown(Label(span("b(x)"), "here"), notes=("a note", "another")) == (
        "error: message\n --> f.dl:1:9\n  |\n1 | a(x) :- b(x),\n  |         ^^^^ here\n  = a note\n  = another"
    )


def test_tabs_are_widened_in_line_and_underline() -> None:
    assert shown(Label(span("c(y)"))).splitlines()[3:] == ["2 |     c(y).", "  |     ^^^^"]


def test_all_labels_are_shown_in_order_of_lines() -> None:
    assert shown(Label(span("e(x)"), "this"), Label(span("a(x)"), "first"), Label(span("b(x)"))).splitlines() == [
        "error: message",
        "  --> f.dl:10:9",
        "   |",
        " 1 | a(x) :- b(x),",
        "   | ---- first",
        "   |         ----",
        "   ...",
        "10 | d(x) :- e(x).",
        "   |         ^^^^ this",
    ]


def test_a_span_over_lines_is_underlined_on_its_first() -> None:
    assert shown(Label(Span(8, 20))).splitlines()[-1] == "  |         ^^^^^"


def test_an_empty_span_has_one_caret_even_behind_the_text() -> None:
    assert shown(Label(Span(13, 13))).splitlines()[-1] == "  |              ^"
    assert shown(Label(Span(len(TEXT), len(TEXT)))).splitlines()[-1] == "   | ^"


def test_labels_in_another_file_name_it() -> None:
    source = Source("a.\nb.", "f.dl", [("f.dl", 1), ("g.dl", 7)], {"f.dl": ["a."], "g.dl": [""] * 6 + ["b."]})
    assert shown(Label(Span(0, 1)), Label(Span(3, 4), "there"), source=source).splitlines()[1:] == [
        " --> f.dl:1:1",
        "  |",
        "1 | a.",
        "  | ^",
        " ::: g.dl:7:1",
        "7 | b.",
        "  | - there",
    ]


def test_a_place_in_a_data_file_shows_its_line() -> None:
    diagnostic = Diagnostic("bad-number", "not a number", place="facts/e.facts:3:2", line="1\tx", notes=("column y",))
    assert render(diagnostic) == "error: not a number\n --> facts/e.facts:3:2\n  | 1\tx\n  |  ^\n  = column y"
    third = Diagnostic("bad-number", "not a number", place="facts/e.facts:3:3", line="1\tx")
    assert render(third) == "error: not a number\n --> facts/e.facts:3:3\n  | 1\tx\n  |  \t^"
    assert render(Diagnostic("bad-number", "not a number", place="e.facts", line="x")).endswith("\n  | x")


def test_of_a_long_line_of_data_what_is_around_the_place_is_shown() -> None:
    line = "a" * 10_000 + "\tX" + "b" * 10_000
    found = render(Diagnostic("code", "wrong", place="e.facts:3:10002", line=line)).splitlines()
    assert found[2:] == ["  | ..." + "a" * 199 + "\tX" + "b" * 199 + "...", "  | " + " " * 202 + "\t^"]
    first = render(Diagnostic("code", "wrong", place="e.facts:3:1", line=line)).splitlines()
    assert first[2:] == ["  | " + "a" * 200 + "...", "  | ^"]
    last = render(Diagnostic("code", "wrong", place="e.facts:3:20003", line=line)).splitlines()
    assert last[2:] == ["  | ..." + "b" * 200, "  | " + " " * 203 + "^"]
    assert render(Diagnostic("code", "wrong", place="e.facts", line=line)).splitlines()[2:] == ["  | " + "a" * 200 + "..."]
    as_it_is = "a" * 400
    assert render(Diagnostic("code", "wrong", place="e.facts:3:9", line=as_it_is)).splitlines()[2] == "  | " + as_it_is


def test_of_a_long_line_of_a_program_what_is_around_each_place_is_shown() -> None:
    text = "a" * 1_000 + "X" + "b" * 1_000 + "YZ" + "c" * 1_000
    labels = Label(Span(1_000, 1_001), "here"), Label(Span(2_001, 3_000), "there")
    assert shown(*labels, source=Source(text, "f.dl")).splitlines()[1:] == [
        " --> f.dl:1:1001",
        "  |",
        "1 | ..." + "a" * 200 + "X" + "b" * 199 + "...",
        "  | " + " " * 203 + "^ here",
        "1 | ..." + "b" * 200 + "YZ" + "c" * 198 + "...",
        "  | " + " " * 203 + "-" * 203 + " there",
    ]


def test_a_message_with_a_long_value_is_shown_with_its_begin_and_end() -> None:
    found = render(Diagnostic("code", f"`{'a' * 100_000}` is no number", notes=("n" * 5_000,))).splitlines()
    assert found[0] == "error: `" + "a" * 499 + "..." + "a" * 486 + "` is no number"
    assert found[1] == "  = " + "n" * 500 + "..." + "n" * 500


def test_a_warning_says_so() -> None:
    assert render(Diagnostic("code", "look", severity="warning")) == "warning[code]: look"


@pytest.mark.parametrize(
    ("name", "candidates", "guess"),
    [
        ("egde", ["edge", "path"], "edge"),
        ("Edge", ["edge", "edges"], "edge"),
        ("edge", ["edge"], None),
        ("xyzzy", ["edge", "path"], None),
        ("nodes", ["node", "edges"], "node"),
        ("x", [], None),
    ],
)
def test_closest(name: str, candidates: list[str], guess: str | None) -> None:
    assert closest(name, candidates) == guess


@pytest.mark.parametrize("module", ["diagnostics", "parser", "preprocess", "printer", "suggest"])
def test_examples_in_docstrings(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(f"dlog.grammar.{module}"))
    assert tried and not failed
