"""Rules that walk lists down or up, against the naive evaluator on random sets of lists that share their tails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.runtime.runs import executor_of, rows_of, variant
from tests.examples import examples
from tests.naive import evaluate

PROGRAM = """
.type List = [head: number, tail: List]
.decl list(l: List)
.decl keep(x: number)
.decl member(l: List, x: number)
member(l, x) :- l = [x, _], list(l).
member(l, x) :- list(l), l = [_, r], member(r, x), !keep(x).
.decl length(l: List, n: number)
length(nil, 0).
length(l, n + 1) :- length(r, n), list(l), l = [_, r].
.decl same(l: List, m: List)
same(nil, nil).
same(l, m) :- same(r, s), list(l), l = [x, r], list(m), m = [x, s].
same(l, m) :- same(l, r), list(m), m = [x, r], keep(x).
.decl after(l: List, m: List)
after(l, m) :- list(l), l = [x, _], list(m), m = [y, r], x + 1 = y, r != nil.
.decl pairs(l: List, n: number)
pairs(l, x * 10 + y) :- list(l), l = [x, r], list(r), r = [y, _].
"""
"""Changes bind the tail, both tails and a head, one of two tails; two heads that differ by one; a tail that is a row itself."""

Cell = tuple[int, "Cell"] | None


@st.composite
def lists(draw: st.DrawFn) -> list[Cell]:
    """Up to 40 lists; the tail of each is nil or an earlier one, which need not be in the relation."""
    made: list[Cell] = [None]
    for _ in range(draw(st.integers(0, 40))):
        made.append((draw(st.integers(0, 3)), made[draw(st.integers(max(0, len(made) - 6), len(made) - 1))]))
    return [cell for cell in made[draw(st.integers(0, 1)) :] if draw(st.integers(0, 9)) > 0]


@pytest.mark.slow
@pytest.mark.parametrize("computed", [False, True])
@examples(60)
@given(rows=lists(), keep=st.sets(st.integers(0, 3), max_size=2))
def test_lists_are_walked_as_the_naive_evaluator_does(computed: bool, rows: list[Cell], keep: set[int]) -> None:
    facts = {"list": [(cell,) for cell in rows], "keep": [(x,) for x in keep]}
    with variant(computed=computed):
        executor = executor_of(PROGRAM, facts)
        executor.run()
    expected = evaluate(parse(Source(PROGRAM)), facts)
    for name in ("member", "length", "same", "after", "pairs"):
        assert sorted(map(repr, rows_of(executor, name))) == sorted(map(repr, expected[name]))
