"""Which arrangements of a recursion hold only the rows that lead on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.nodes import Only, arrangements
from dlog.engine.ir.rules import Lattice
from dlog.engine.plan.check import check
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.restrict import restrict
from tests.engine.plan.rules_text import program
from tests.engine.plan.test_shapes import Sizes

FEW = (400, (400, 400))
MANY = (40_000, (4000, 4000))
START = "p(x, y) :- e(x, y).\n"


def only_of(rule: str, load: tuple[int, tuple[int, ...]]) -> dict[tuple[str, tuple[int, ...]], Only | None]:
    """The restriction of each arrangement that the loop reads of p."""
    stratum, whole = program(START + rule, recursive=True)
    scope = restrict(build_scope(stratum, whole, Sizes(e=(4000, (4000, 4000)), load=load)))
    check(scope, whole)
    return {(a.relation, a.key): a.only for a in arrangements(scope) if a.relation == "p"}


def test_rows_that_a_later_join_drops_are_left_out() -> None:
    found = only_of("p(x, o) :- load(x, y), p(y, q), p(q, o).", FEW)
    assert found[("p", (1,))] == Only(0, "load", 1)
    assert found[("p", (0,))] is None


def test_lattices_stay_whole() -> None:
    lattice = Lattice("p", Dominance.LEAST, 1)
    stratum, whole = program(START + "p(x, o) :- load(x, y), p(y, q), p(q, o).", recursive=True)
    scope = build_scope(stratum, whole, Sizes(e=(4000, (4000, 4000)), load=FEW))
    assert any(a.only for a in arrangements(restrict(scope)))
    assert not any(a.only for a in arrangements(restrict(replace(scope, lattices=(lattice,)))))


def test_where_most_rows_lead_on_all_are_there() -> None:
    assert set(only_of("p(x, o) :- load(x, y), p(y, q), p(q, o).", MANY).values()) == {None}


@pytest.mark.parametrize("rule", ["p(y, o) :- load(y, q), p(y, q), p(q, o).", "p(x, z) :- p(x, y), p(y, z)."])
def test_joins_by_several_columns_and_of_the_recursion_itself_restrict_nothing(rule: str) -> None:
    assert set(only_of(rule, FEW).values()) == {None}
