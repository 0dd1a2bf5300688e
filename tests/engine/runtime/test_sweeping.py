"""Last joins that are one with their sink, and changes that come in runs, derive what the naive evaluation derives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels.codes import Operation
from dlog.engine.runtime.static.executor import Executor
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.runtime.runs import executor_of, ran, rows_of, variant
from tests.examples import examples
from tests.naive import evaluate

Pairs = list[tuple[int, int]]

PROGRAMS = {
    "nonlinear": ".decl p(x: T, y: T)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).",
    "linear": ".decl p(x: T, y: T)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "reversed": ".decl p(x: T, y: T)\np(x, y) :- e(x, y). p(z, x) :- p(x, y), p(z, y).",
    "reach": ".decl p(x: T)\np(x) :- e(x, x). p(y) :- p(x), e(x, y).",
    "points-to": ".decl p(x: T, o: T)\np(x, o) :- e(x, o). p(x, o) :- f(x, y), p(y, q), p(q, o). "
    "p(q, o) :- f(x, y), p(x, q), p(y, o).",
    "mutual": ".decl p(x: T, y: T)\n.decl q(x: T, y: T)\n.decl r(x: T, y: T)\np(x, y) :- e(x, y). p(x, y) :- f(x, z), q(z, y). "
    "p(x, y) :- p(x, z), p(z, y). q(x, x) :- f(x, _). q(x, w) :- f(y, x), r(y, z), f(z, w). r(x, y) :- p(z, x), p(z, y). "
    "r(x, y) :- p(z, x), q(z, w), p(w, y).",
    "wide": ".decl p(k: T, x: T, y: T)\np(k, x, y) :- e(x, y), f(k, x). p(k, x, z) :- p(k, x, y), p(k, y, z). "
    "p(x, k, y) :- p(k, x, y), e(k, x).",
    "classes": ".decl p(x: T, y: T)\n.decl s(x: T, y: T) eqrel\np(x, y) :- e(x, y). p(x, z) :- p(y, z), s(x, y). "
    "s(y, z) :- p(x, y), p(x, z), f(y, z).",
    "constants": ".decl p(x: T, y: T)\np(x, y) :- e(x, y). p(C, z) :- p(x, C), p(x, z). p(x, C) :- p(x, y), p(y, C).",
}
KINDS: dict[str, tuple[str, Any]] = {
    "small": ("number", lambda x: x),
    "negative": ("number", lambda x: 7 - 5 * x),
    "sparse": ("number", lambda x: x * 2**41 - 2**42),
    "far": ("unsigned", lambda x: 2**31 + x),
    "symbols": ("symbol", lambda x: f"s{x}"),
}
EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=40)
HUBS = st.booleans()


def text_of(program: str, kind: str) -> str:
    type_, value = KINDS[kind]
    constant = f'"{value(3)}"' if type_ == "symbol" else str(value(3))
    decls = f".decl e(x: {type_}, y: {type_})\n.decl f(x: {type_}, y: {type_})\n"
    return decls + PROGRAMS[program].replace(": T", f": {type_}").replace("C", constant)


def facts_of(kind: str, edges: Pairs, others: Pairs, hub: bool) -> dict[str, set[tuple[Any, Any]]]:
    _, value = KINDS[kind]
    if hub:
        edges = edges + [(5, y) for y in range(12)] + [(x, 5) for x in range(12)]
    return {name: {(value(x), value(y)) for x, y in rows} for name, rows in (("e", edges), ("f", others))}


def check(program: str, kind: str, edges: Pairs, others: Pairs, hub: bool, threads: int = 1, **options: bool) -> None:
    text, facts = text_of(program, kind), facts_of(kind, edges, others, hub)
    expected = {name: sorted(rows) for name, rows in evaluate(parse(Source(text)), facts).items()}
    with variant(swept=True, bulk=threads > 1, **options):
        found = ran(text, facts, threads=threads)
    assert found == {name: expected.get(name, []) for name in found}


@pytest.mark.parametrize("program", list(PROGRAMS))
@examples(25)
@given(kind=st.sampled_from(list(KINDS)), edges=EDGES, others=EDGES, hub=HUBS, paged=HUBS, yielding=HUBS)
def test_sweeps_derive_what_the_rules_say(
    program: str, kind: str, edges: Pairs, others: Pairs, hub: bool, paged: bool, yielding: bool
) -> None:
    check(program, kind, edges, others, hub, paged=paged, yielding=yielding)


@pytest.mark.slow
@pytest.mark.parametrize("program", list(PROGRAMS))
@examples(6)
@given(kind=st.sampled_from(list(KINDS)), edges=EDGES, others=EDGES, hub=HUBS, paged=HUBS, threads=st.sampled_from([2, 3]))
def test_threads_share_sweeps(
    program: str, kind: str, edges: Pairs, others: Pairs, hub: bool, paged: bool, threads: int
) -> None:
    check(program, kind, edges, others, hub, threads, paged=paged)


def pseudo_random(count: int, nodes: int) -> set[tuple[int, int]]:
    return {((i * 2654435761 >> 7) % nodes, (i * 40503 * 40503 >> 9) % nodes) for i in range(1, count)}


def large(**options: Any) -> Executor:
    """A nonlinear closure in which bitmaps' rows have several words, groups are long and runs too; without any variant."""
    text = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z)."
    return executor_of(text, {"e": pseudo_random(1500, 700)}, **options)


@pytest.mark.slow
def test_large_groups_are_swept_by_words_and_in_runs() -> None:
    executor = large()
    executor.run()
    with variant(hashed=True):
        other = large()
        other.run()
    assert executor.catalog.relations["p"].first_stride % 64 == 0
    assert sorted(rows_of(executor, "p")) == sorted(rows_of(other, "p"))
    assert executor.rows("p") > 100_000


@pytest.mark.slow
@pytest.mark.parametrize("program", ["points-to", "mutual", "reversed", "constants"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_sweep_remembers_need_not_go_again(program: str, threads: int) -> None:
    """Groups that grow after a row met them first, and long enough to be remembered."""
    edges = pseudo_random(260, 120) | {(7, y) for y in range(60)} | {(x, 7) for x in range(40, 90)}
    facts = {"e": edges, "f": pseudo_random(90, 120)}
    with variant(hashed=True):
        expected = ran(text_of(program, "small"), facts)
    with variant(swept=True, bulk=threads > 1):
        assert ran(text_of(program, "small"), facts, threads=threads) == expected


def test_a_sweep_counts_what_it_looks_at() -> None:
    executor = large()
    executor.run()
    new = sum(rule.new for rule in executor.profile)
    assert new == executor.rows("p") < sum(rule.derived for rule in executor.profile)


def test_a_growing_arrangement_that_has_no_groups_yet_has_no_matches() -> None:
    """There is no chain to be asked for ahead."""
    text = ".decl e(x: number, y: number)\n.input e\n.decl p(x: number, y: number)\n.decl same(x: number, y: number) eqrel\n"
    text += "p(x + 1, y) :- e(x, y). p(x, z) :- p(y, z), same(x, y). same(y, z) :- p(x, y), p(x, z).\n"
    assert ran(text, {"e": [(0, 0), (1, 1), (2, 2)]})["p"] == [(1, 0), (2, 1), (3, 2)]


def test_rows_that_come_sorted_are_not_sorted_any_more() -> None:
    """A relation whose rows were loaded in order is permuted with its changes: who reads it later must not rely on it."""
    text = (
        ".decl p(x: number, y: number)\n.decl q(x: number, y: number)\n.decl r(x: number, y: number)\n"
        "p(x, z) :- p(x, y), p(y, z). q(y, x) :- p(x, y). r(x, z) :- p(x, y), q(z, y), p(z, x)."
    )
    facts = {"p": sorted(pseudo_random(120, 30))}
    with variant(hashed=True):
        expected = ran(text, facts)
    with variant(swept=True):
        assert ran(text, facts) == expected


@pytest.mark.parametrize("limit", range(200_000, 1_600_000, 100_000))
def test_a_memory_limit_holds_while_changes_are_sorted(limit: int) -> None:
    executor = large(memory=limit)
    try:
        executor.run()
    except DlogError as error:
        assert error.diagnostics[0].code == "out-of-memory"
    else:
        assert executor.rows("p") > 100_000
    assert executor.memory.used <= limit


def test_few_matches_are_joined_block_by_block() -> None:
    """A path's code has sweeps only where they pay."""
    assert Operation.SWEEP not in _operations({(x, x + 1) for x in range(50)})
    assert Operation.SWEEP in _operations({(x, y) for x in range(20) for y in range(20)})


def _operations(edges: set[tuple[int, int]]) -> set[int]:
    from dlog.engine.runtime.static import scope

    seen: set[int] = set()
    text = ".decl e(x: number, y: number)\n.decl p(x: number)\np(0). p(y) :- p(x), e(x, y)."
    with pytest.MonkeyPatch.context() as patch:
        lower = scope.ScopeRun._lower

        def noted(self: Any, *args: Any, **options: Any) -> Any:
            made = lower(self, *args, **options)
            seen.update(level[0] for path in made[0] for level in path.code)
            return made

        patch.setattr(scope.ScopeRun, "_lower", noted)
        ran(text, {"e": edges})
    return seen
