"""What is typed is cut into statements, and what is not complete is waited for."""

from __future__ import annotations

import doctest

import pytest

from dlog.repl import statements
from dlog.repl.statements import Statement, forced, grouped, is_complete, joined, split


def kinds(text: str) -> list[tuple[str, str]]:
    found, rest = split(text)
    assert not rest
    return [(statement.kind, statement.text) for statement in found]


def test_statements_of_all_kinds_stand_on_one_line() -> None:
    assert kinds("edge(1, 2). +edge(2, 3). ?- edge(X, Y), X < 1.5.  -edge(1,2), edge(2,3).") == [
        ("program", "edge(1, 2)."),
        ("change", "+edge(2, 3)."),
        ("query", "?- edge(X, Y), X < 1.5."),
        ("change", "-edge(1,2), edge(2,3)."),
    ]


def test_a_clause_goes_on_until_its_final_dot() -> None:
    assert not is_complete("path(x, z) :-\n  path(x, y),\n")
    assert is_complete("path(x, z) :-\n  path(x, y),\n  edge(y, z).")
    assert kinds("a(x) :- b.c(x), x < 2.5.\n") == [("program", "a(x) :- b.c(x), x < 2.5.")]


def test_dots_in_strings_comments_and_brackets_end_nothing() -> None:
    assert not is_complete('name("Dr. X", ')
    assert not is_complete("a(x) :- // the end.\n")
    assert not is_complete("a(x) :- /* b(x). */")
    assert is_complete('a("\\".").')
    assert kinds("// nothing\n/* at all. */\n") == []
    assert not is_complete("a(1). /* open")


def test_a_declaration_ends_with_its_line_once_its_brackets_are_closed() -> None:
    assert kinds(".decl a(x: number)\na(1).\n") == [("program", ".decl a(x: number)"), ("program", "a(1).")]
    assert not is_complete(".decl a(x: number,\n")
    assert not is_complete(".comp C {\n.decl a(x: number)\n")
    assert kinds(".type T = A {x: number}\n  | B {}\n?- a(X).") == [
        ("program", ".type T = A {x: number}\n  | B {}"),
        ("query", "?- a(X)."),
    ]
    assert kinds(".decl b(x: number) b(y) :-\n  a(y).\n") == [("program", ".decl b(x: number) b(y) :-\n  a(y).")]
    assert kinds(".decl e(x: number) ?- e(X).") == [("program", ".decl e(x: number)"), ("query", "?- e(X).")]


def test_commands_are_one_line() -> None:
    assert kinds(".why path(1, 2)\n.plan path\nbegin\ncommit.\nquit") == [
        ("command", ".why path(1, 2)"),
        ("command", ".plan path"),
        ("command", "begin"),
        ("command", "commit."),
        ("command", "quit"),
    ]
    assert kinds("a(x) :- b(x), c(x). .plan 0:(2,1)\n") == [("program", "a(x) :- b(x), c(x). .plan 0:(2,1)")]


@pytest.mark.parametrize("text", ["?- edge(1,", "+edge(1, 2)", "-", "?-"])
def test_queries_and_changes_are_waited_for(text: str) -> None:
    assert not is_complete(text)


def test_what_will_never_be_complete_is_a_statement_too() -> None:
    assert forced("a(1).\n\n  ?- a(X", 3) == [Statement("program", "a(1).", 3), Statement("query", "?- a(X", 5)]


def test_the_example_in_the_documentation_is_true() -> None:
    assert doctest.testmod(statements).failed == 0


def test_parts_of_a_program_come_together_and_keep_their_lines() -> None:
    found, _ = split("a(1).\n\na(2). +a(3).\na(4).\n", 7)
    assert [[s.line for s in group] for group in grouped(found)] == [[7, 9], [9], [10]]
    assert joined(grouped(found)[0]) == Statement("program", "a(1).\n\na(2).", 7)
    assert joined(found[3:]).placed == "\n" * 9 + "a(4)."
