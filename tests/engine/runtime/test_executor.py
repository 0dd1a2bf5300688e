"""Executor: memory and its limit, mistakes that show while it runs, limits, reports."""

from __future__ import annotations

import gc

import pytest

from dlog.engine.runtime.storage.memory import Memory
from dlog.grammar.diagnostics import DlogError, InternalError
from dlog.memory import current_bytes
from dlog.pipeline import compile_program
from tests.engine.runtime.runs import executor_of, ran, rows_of, variant
from tests.engine.runtime.test_thread_pool import DECLS, EDGES, PROGRAMS, WEIGHTS

CHAIN = [(i, i + 1) for i in range(120)]
PAIRS = 120 * 121 // 2
CLOSURE = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."


# --------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_executor_that_is_gone_has_given_everything_back(name: str, hashed: bool, threads: int) -> None:
    with variant(hashed=hashed, bulk=threads > 1):
        executor = executor_of(DECLS + PROGRAMS[name], {"e": EDGES, "w": WEIGHTS}, threads=threads)
        executor.run()
        executor.explain()
        memory = executor.memory
        assert memory.used > len(EDGES) * 8
        del executor
        gc.collect()
    assert memory.used == 0


@pytest.mark.slow
def test_many_runs_do_not_grow_the_process() -> None:
    """Each holds some megabytes while it runs, outside of NumPy's arrays too."""
    text = CLOSURE + """
.decl q(x: number, d: number)
q(x, d) :- e(x, _), d = min c : { x = 0, e(x, _), c = 0 ; q(y, b), e(y, x), c = b + 1 }."""
    facts = {"e": [(i, (i + 1) % 200) for i in range(200)]}

    def run(times: int) -> None:
        for _ in range(times):
            executor = executor_of(text, facts)
            executor.run()
            assert executor.memory.used > 100_000
            del executor
        gc.collect()

    run(20)
    before = current_bytes()
    run(200)
    assert current_bytes() - before < 24 * 2**20


def outcome(text: str, facts: dict[str, list[tuple[int, ...]]], **options: int) -> object:
    """The rows, or the codes of the mistakes."""
    try:
        return ran(text, facts, **options)
    except DlogError as error:
        return [d.code for d in error.diagnostics]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["closure", "wide values", "mutual", "aggregates", "distances", "records", "triangles"])
@pytest.mark.parametrize("hashed", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_with_too_little_memory_says_so(name: str, hashed: bool, threads: int) -> None:
    """Limits of all sizes: each run gives the right answer or the mistake, and the more it may use the better."""
    facts = {"e": EDGES, "w": WEIGHTS}
    with variant(hashed=hashed, bulk=threads > 1):
        right = ran(DECLS + PROGRAMS[name], facts)
        found = [outcome(DECLS + PROGRAMS[name], facts, memory=int(1000 * 1.25**i), threads=threads) for i in range(50)]
    assert all(f == right or f == ["out-of-memory"] for f in found)
    assert (found[0], found[-1]) == (["out-of-memory"], right)
    assert found == sorted(found, key=lambda f: f == right)


def test_the_mistake_names_the_limit() -> None:
    with pytest.raises(DlogError, match=r"out of memory: the limit is 1 MiB"):
        ran(CLOSURE, {"e": [(i, i * 17 % 3001) for i in range(3000)]}, memory=2**20)


def test_the_mistake_shows_the_rule_that_needed_the_memory() -> None:
    text = """.decl n(x: number)
n(x) :- x = range(0, 3000).
.decl p(x: number, y: number, z: number)
p(x, y, z) :- n(x), n(y), z = x * y % 977."""
    with pytest.raises(DlogError, match="out of memory") as raised:
        ran(text, memory=60 * 2**20)
    (label,) = raised.value.diagnostics[0].labels
    assert label.message == "while evaluating this rule"
    assert compile_program(text).source.text[label.span.start : label.span.end].startswith("p(x, y, z) :-")


def test_address_space_that_is_not_used_is_no_memory() -> None:
    """A relation with a bitmap reserves room for millions of rows; few are there."""
    text = ".decl a(x: number, y: number)\n.decl b(x: number, y: number)\nb(x, y) :- a(y, x). b(x, y) :- b(y, x)."
    rows = [(0, 3999), (3999, 5), (17, 0)]
    found = ran(text, {"a": rows}, memory=4 * 2**20)
    assert found["b"] == sorted({*rows, *((y, x) for x, y in rows)})


def test_without_a_limit_only_use_is_told() -> None:
    (diagnostic,) = Memory(None).exhausted().diagnostics
    assert (diagnostic.message, diagnostic.notes) == ("out of memory", ("0 B are in use",))


# ------------------------------------------------------------------------------------------------------------- mistakes

DIVISIONS = {
    "b(10 / x) :- a(x).": "number",
    "b(x % (x - 1)) :- a(x).": "number",
    "b(10 / x) :- a(x). ": "unsigned",
    "b(x) :- a(x), x % (x - x) = x.": "unsigned",
    "b(s) :- a(x), s = sum 1 / y : { a(y), y <= x }.": "number",
    "b(x) :- a(x). b(x / (x - 1)) :- b(x).": "number",
}


@pytest.mark.parametrize("rule", list(DIVISIONS))
@pytest.mark.parametrize("threads", [1, 2])
def test_a_division_by_zero_is_shown_at_its_rule(rule: str, threads: int) -> None:
    type = DIVISIONS[rule]
    text = f".decl a(x: {type})\n.decl b(x: {type})\n.decl c(x: {type})\nc(x) :- a(x).\n{rule}\nc(x) :- b(x).\n"
    with variant(bulk=True):
        executor = executor_of(text, {"a": [(i,) for i in range(1000)]}, threads=threads)
        with pytest.raises(DlogError) as caught:
            executor.run()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code == "division-by-zero"
    span, source = diagnostic.labels[0].span, diagnostic.source
    assert source is not None
    shown = source.text[span.start : span.end]
    assert shown in rule and ("/" in shown or "%" in shown)


def test_a_division_that_no_row_reaches_is_no_mistake() -> None:
    text = ".decl a(x: number)\n.decl b(x: number)\nb(10 / x) :- a(x), x != 0."
    assert ran(text, {"a": [(0,), (5,), (-3,)]})["b"] == [(-3,), (2,)]


# --------------------------------------------------------------------------------------------------------------- limits


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("limit", "rows"), [(10, 10), (1, 1), (500, 301)])
def test_a_size_limit_ends_the_loop_of_its_stratum(threads: int, limit: int, rows: int) -> None:
    text = f""".decl e(x: number, y: number)
.decl r(x: number)
.decl s(x: number)
.limitsize r(n={limit})
r(0). r(y) :- r(x), e(x, y).
s(x) :- r(x)."""
    with variant(bulk=threads > 1):
        found = ran(text, {"e": [(i, i + 1) for i in range(300)]}, threads=threads)
    assert found["r"] == found["s"] == [(i,) for i in range(rows)]


# -------------------------------------------------------------------------------------------------------------- reports


def test_explain_shows_the_plan_before_and_after_a_run() -> None:
    executor = executor_of(CLOSURE, {"e": CHAIN})
    before = executor.explain()
    assert rows_of(executor, "p") == []
    executor.run()
    for plan in (before, executor.explain()):
        assert plan.startswith("stratum p, recursive\n")
        for line in ("  enter: p(x, y) :- e(x, y).", "  loop: p(x, z) :- p(x, y), e(y, z).", "    changes p(x, y)"):
            assert line in plan.splitlines()


def test_explain_follows_the_sizes_of_the_input() -> None:
    """The join starts from the smaller relation."""
    text = ".decl a(x: number)\n.decl b(x: number)\n.decl c(x: number)\nc(x) :- a(x), b(x)."
    few, many = [(1,)], [(i,) for i in range(1000)]
    assert "scan a(x)" in executor_of(text, {"a": few, "b": many}).explain()
    assert "scan b(x)" in executor_of(text, {"a": many, "b": few}).explain()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_profile_counts_what_each_rule_made(threads: int) -> None:
    text = CLOSURE + "\n.decl q(x: number)\nq(x) :- p(x, _), x % 2 = 0."
    with variant(bulk=threads > 1):
        executor = executor_of(text, {"e": [*CHAIN, (0, 2)]}, threads=threads)
        executor.run()
    enter, loop, last = executor.profile
    assert (enter.text, enter.derived, enter.new) == ("p(x, y) :- e(x, y).", 121, 121)
    assert loop.text == "p(x, z) :- p(x, y), e(y, z)."
    assert loop.new == PAIRS - 121
    assert loop.derived > loop.new
    assert enter.iterations == loop.iterations == 121 - 1
    assert (last.derived, last.iterations) == (sum(120 - x for x in range(0, 120, 2)), 0)
    assert all(0 <= rule.seconds < 60 for rule in executor.profile)


# ------------------------------------------------------------------------------------------------------------- loaded rows


def test_rows_loaded_into_a_derived_relation_are_not_derived_again() -> None:
    text = ".decl e(x: number)\n.decl d()\n.decl f(x: number)\nd() :- e(_).\nf(x + 1) :- e(x)."
    executor = executor_of(text, {"e": [(1,), (2,)], "d": [()], "f": [(2,), (9,)]})
    executor.run()
    assert executor.rows("d") == 1
    assert sorted(rows_of(executor, "f")) == [(2,), (3,), (9,)]


def test_an_executor_runs_once() -> None:
    executor = executor_of(".decl a(x: number)\na(1).\n.decl b(x: number)\nb(x) :- a(x).")
    executor.run()
    with pytest.raises(InternalError, match="an executor runs once"):
        executor.run()
    assert rows_of(executor, "b") == [(1,)]
