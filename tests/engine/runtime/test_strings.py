"""String functors in programs: what they add to the symbol table, while it grows, on several threads, and where they fail."""

from __future__ import annotations

import pytest

from dlog.grammar.diagnostics import DlogError
from tests.engine.runtime.runs import executor_of, ran, rows_of, variant

NAMED = ".decl named(x: number, n: symbol)\n"
ROWS = [(i, f"n{i % 700}\xe9") for i in range(3000)]


def test_what_is_inside_a_concatenation_makes_no_string() -> None:
    text = NAMED + '.decl p(s: symbol)\np(cat(n, cat("-", cat(to_string(x), to_string(n))))) :- named(x, n).\n'
    executor = executor_of(text, {"named": [(1, "a"), (-2, "b")]})
    executor.run()
    assert sorted(rows_of(executor, "p")) == [("a-1a",), ("b--2b",)]
    assert len(executor.symbols) == len(["a", "b", "-", "a-1a", "b--2b"])


def test_tables_grow_while_rules_run() -> None:
    text = NAMED + '.decl p(x: number, s: symbol)\np(x, cat(n, "/", to_string(x))) :- named(x, n).\n'
    assert ran(text, {"named": ROWS})["p"] == [(x, f"{n}/{x}") for x, n in ROWS]


def test_concatenations_longer_than_a_block_has_room_for() -> None:
    text = NAMED + ".decl p(x: number, s: symbol)\np(x, cat(n, n, n)) :- named(x, n).\n"
    rows = [(i, chr(97 + i % 26) * (i * 7)) for i in range(600)]
    assert ran(text, {"named": rows})["p"] == [(x, n * 3) for x, n in rows]


@pytest.mark.parametrize("threads", [1, 2])
def test_several_workers_compare_strings(threads: int) -> None:
    text = NAMED + '.decl p(x: number, l: number)\np(x, strlen(max(n, "n4"))) :- named(x, n), n < "n5", !contains("1", n).\n'
    executor = executor_of(text, {"named": ROWS}, threads=threads)
    with variant(bulk=True):
        executor.run()
    wanted = [(x, len(max(n, "n4"))) for x, n in ROWS if n < "n5" and "1" not in n]
    assert sorted(rows_of(executor, "p")) == wanted


def test_patterns_that_are_data_and_patterns_that_are_constant_agree() -> None:
    text = (
        NAMED
        + ".decl constant(x: number)\n.decl data(x: number)\n.decl neither(x: number)\n"
        + '.decl pattern(s: symbol)\npattern("n.*7.+").\n'
        + 'constant(x) :- named(x, n), match("n.*7.+", n).\ndata(x) :- named(x, n), pattern(p), match(p, n).\n'
        + 'neither(x) :- named(x, n), !match("n.*7.+", n).\n'
    )
    found = ran(text, {"named": ROWS})
    assert found["constant"] == found["data"] == [(x,) for x, n in ROWS if "7" in n]
    assert found["neither"] == [(x,) for x, n in ROWS if "7" not in n]


def test_a_text_that_is_no_number_is_an_error_at_its_rule() -> None:
    text = NAMED + ".decl p(x: number)\np(to_number(n)) :- named(_, n).\n"
    executor = executor_of(text, {"named": [(i, str(i)) for i in range(2000)] + [(0, "none")]})
    with pytest.raises(DlogError) as raised:
        executor.run()
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.message == 'to_number("none"): the text is not a number'
    assert diagnostic.labels
