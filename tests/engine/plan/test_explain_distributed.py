"""What `dlog plan --engine spark` prints: homes, copies, and where each path sends its rows."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest

from dlog.engine.plan.exchange.costs import Sizes
from dlog.engine.plan.exchange.distribute import distribute
from dlog.engine.plan.exchange.explain import explain_distributed
from dlog.engine.plan.exchange.numbering import counts
from dlog.engine.plan.exchange.places import choose_homes
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.statistics import Declared
from dlog.pipeline import compile_program
from tests.conftest import ROOT
from tests.dlog.command import closure, dlog

DECLARATIONS = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\n.output p\n"


def drawn(rules: str, everywhere: int = 0, sizes: Mapping[str, int] | None = None, workers: int = 2) -> str:
    """The strata that have rules, for relations of these sizes (10,000 rows else)."""
    program = compile_program(DECLARATIONS + rules)
    homes, statistics = choose_homes(program), Declared(sizes or {})
    parts = []
    for stratum in (s for s in program.strata if s.rules):
        scope = build_scope(stratum, program, statistics)
        plan = distribute(scope, program, homes, Sizes(statistics, workers), everywhere, movable=stratum.relations)
        parts.append(explain_distributed(plan, program, homes))
    return "\n".join(parts)


def expected(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


def test_a_recursion_that_passes_its_home_on_sends_nothing_where_what_it_reads_is_small() -> None:
    assert drawn("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).", everywhere=10_000) == expected("""
        stratum p, recursive, on several workers
          homes
            e by 0
            p by 0
          copies
            e all
          enter: p(x, y) :- e(x, y).
            scan e(x, y)
            insert p(x, y)
          loop: p(x, z) :- p(x, y), e(y, z).
            changes p(x, y)
            join @e all[0](y, z)                         ~8 rows each
            insert p(x, z)
        """)


def test_a_relation_too_large_to_copy_is_where_rows_are_sent() -> None:
    assert drawn("p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).", workers=64) == expected("""
        stratum p, recursive, on several workers
          homes
            e by 0
            p by 0
          enter: p(x, y) :- e(x, y).
            scan e(x, y)
            insert p(x, y)
          loop: p(x, z) :- p(x, y), e(y, z).
            changes p(x, y)
            send to the owner of y: x, y
            join e[0](y, z)                              ~8 rows each
            insert p(x, z)                               sent to the owner of x
        """)


def test_a_growing_relation_that_is_looked_up_by_another_column_has_a_copy_that_grows() -> None:
    assert drawn("p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).", workers=64) == expected("""
        stratum p, recursive, on several workers
          homes
            e by 0
            p by 0
          copies
            p by 1                                   grows with it
          enter: p(x, y) :- e(x, y).
            scan e(x, y)
            insert p(x, y)
          loop: p(x, z) :- p(x, y), p(y, z).
            changes p(x, y)
            send to the owner of y: x, y
            join p[0](y, z) at alt                       ~32 rows each
            insert p(x, z)                               sent to the owner of x
          loop: p(x, z) :- p(x, y), p(y, z).
            changes p(y, z)
            join @p by 1[1](x, y) at neu                 ~32 rows each
            insert p(x, z)                               sent to the owner of x
        """)


def test_rows_go_to_all_workers_where_these_are_few_and_the_results_many() -> None:
    found = drawn("p(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).")
    assert found[found.index("    changes p(y, z)") :] == expected("""
        X
            changes p(y, z)
            send to all: z, y
            join p[1](x, y) at neu                       ~32 rows each
            insert p(x, z)
        """).removeprefix("X\n")


def test_rows_go_to_the_owner_of_their_results_before_they_become_many() -> None:
    same = drawn("p(x, y) :- e(p, x), e(p, y). p(x, y) :- p(p, q), e(p, x), e(q, y).", everywhere=10_000, workers=16)
    assert same[same.index("    changes p(p, q)") :] == expected("""
        X
            changes p(p, q)
            join e[0](p, x)                              ~8 rows each
            send to the owner of x: x, q
            join @e all[0](q, y)                         ~8 rows each
            insert p(x, y)
        """).removeprefix("X\n")


def test_a_copy_of_what_grows_has_only_rows_that_lead_anywhere() -> None:
    rules = ".decl l(x: number, y: number)\n.input l\np(x, o) :- e(x, o). p(x, o) :- l(x, y), p(y, q), p(q, o)."
    found = drawn(rules, everywhere=10_000, sizes={"l": 500})
    assert "    p all                                    grows with it, only rows that lead anywhere\n" in found
    assert found[found.index("    changes p(y, q)") :] == expected("""
        X
            changes p(y, q)
            if @l all(_, y)
            send to all: y, q
            join @l all[1](x, y)                         ~1 rows each
            join p[0](q, o) at alt                       ~32 rows each
            insert p(x, o)
          loop: p(x, o) :- l(x, y), p(y, q), p(q, o).
            changes p(q, o)
            join @p all[1 | @l all[1]](y, q) at neu      ~32 rows each
            join @l all[1](x, y)                         ~0.4 rows each
            insert p(x, o)
        """).removeprefix("X\n")


def test_a_relation_that_only_the_stratum_makes_gets_the_home_that_sends_least() -> None:
    rules = "p(x, o) :- e(x, o). p(x, o) :- e(x, y), p(y, o). p(x, o) :- e(x, y), p(y, q), p(q, o)."
    assert "p by 1\n" in drawn(rules, everywhere=10_000)


def test_parts_of_a_total_are_brought_together_and_those_of_groups_at_home_are_not() -> None:
    total_rule = ".decl q(n: number)\n.output q\nq(n) :- n = sum y : { e(_, y) }."
    groups, total = drawn(f"p(x, n) :- e(x, _), n = count : {{ e(x, _) }}.\n{total_rule}").split("\n\n")
    assert "brought home" not in groups
    assert "  each worker's part is brought home\n    @1\n" in total
    assert "@1 at the root" in total


SHARED = [path for path in sorted((ROOT / "programs").glob("*/program.dl")) if not counts(compile_program(path))]


@pytest.mark.parametrize("program", SHARED, ids=lambda path: path.parent.name)
def test_every_program_can_be_drawn_for_several_workers(program: Path) -> None:
    text = compile_program(program)
    homes = choose_homes(text)
    for stratum in (s for s in text.strata if s.rules):
        scope = build_scope(stratum, text, Declared())
        for everywhere in (0, 10**6):
            drawing = explain_distributed(distribute(scope, text, homes, Sizes(Declared()), everywhere), text, homes)
            assert drawing.startswith(f"stratum {', '.join(stratum.relations)}")
            assert drawing.count("\n  enter: ") == len(scope.enter)
            assert drawing.count("\n  loop: ") == len(scope.loop)


@pytest.mark.slow
def test_the_command_shows_it_and_refuses_what_it_is_not_for(tmp_path: Path) -> None:
    closure(tmp_path)
    assumed = dlog("plan", "closure.dl", "--engine", "spark", cwd=tmp_path)
    assert assumed.code == 0, assumed.err
    assert "stratum path, recursive, on several workers\n  homes\n    edge by 0\n    path by 0\n" in assumed.out
    loaded = dlog("plan", "closure.dl", "--engine", "spark", "-F", "facts", cwd=tmp_path)
    assert "~1 rows each" in loaded.out
    refused = dlog("plan", "closure.dl", "--engine", "spark", "--rounds", cwd=tmp_path)
    assert refused.code == 1
    assert "`--engine spark` is for the plan of a run" in refused.err
