"""What the executor knows of a column's values before it is filled, and what it does where it is wrong about inputs."""

from __future__ import annotations

import pytest

from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.codes import SetKind
from dlog.engine.runtime.storage.extent import EMPTY, Extent, width_of
from tests.engine.runtime.runs import executor_of, load, ran, rows_of

EDGES = ".decl e(x: number, y: number)\n.decl p(x: number, y: number)\n"
EDGE_ROWS = [(1, 10), (2, 30), (3, 20)]
CLOSURE = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z)."


@pytest.mark.parametrize(
    ("rule", "extents"),
    [
        ("p(x, y) :- e(x, y).", [Extent(1, 3), Extent(10, 30)]),
        ("p(y, x) :- e(x, y).", [Extent(10, 30), Extent(1, 3)]),
        ("p(y, -7) :- e(_, y).", [Extent(10, 30), Extent(-7, -7)]),
        ("p(x, x) :- e(x, _). p(5, y) :- e(_, y).", [Extent(1, 5), Extent(1, 30)]),
        ("p(x, y + 1) :- e(x, y).", [Extent(1, 3), None]),
        ("p(x, z) :- e(x, y), z = y.", [Extent(1, 3), Extent(10, 30)]),
        ("p(x, n) :- e(x, _), n = count : { e(_, _) }.", [Extent(1, 3), None]),
        (CLOSURE, [Extent(1, 3), Extent(10, 30)]),
        ("p(x, y) :- e(x, y). p(y, x) :- p(x, y).", [Extent(1, 30), Extent(1, 30)]),
        ("p(x, y) :- e(x, y), x > 100. p(y, x) :- p(x, y), p(y, x).", [Extent(1, 30), Extent(1, 30)]),
    ],
)
def test_extents_follow_copies_and_constants_and_stop_at_arithmetic(rule: str, extents: list[Extent | None]) -> None:
    executor = executor_of(EDGES + rule, {"e": EDGE_ROWS})
    executor.run()
    assert executor.catalog.extents("p") == extents


def test_a_union_with_nothing_changes_nothing() -> None:
    assert Extent(1, 2).union(EMPTY) == EMPTY.union(Extent(1, 2)) == Extent(1, 2)
    assert Extent(1, 2).union(Extent(-5, 0)) == Extent(-5, 2)
    assert (EMPTY.span, Extent(7, 7).span) == (0, 1)


@pytest.mark.parametrize(
    ("kind", "extent", "width"),
    [
        (Kind.NUMBER, Extent(-(2**31), 2**31 - 1), 4),
        (Kind.NUMBER, Extent(0, 2**31), 8),
        (Kind.NUMBER, Extent(-(2**31) - 1, 0), 8),
        (Kind.NUMBER, None, 8),
        (Kind.UNSIGNED, Extent(0, 5), 4),
        (Kind.FLOAT, None, 8),
        (Kind.SYMBOL, None, 4),
        (Kind.RECORD, None, 4),
    ],
)
def test_a_column_takes_four_bytes_where_that_is_enough(kind: Kind, extent: Extent | None, width: int) -> None:
    assert width_of(kind, extent) == width


@pytest.mark.parametrize("factor", [1, 2**30, 2**40])
def test_the_set_of_a_closure_follows_the_range_of_its_values(factor: int) -> None:
    executor = executor_of(EDGES + CLOSURE, {"e": [(i * factor, (i + 1) * factor) for i in range(50)]})
    executor.catalog.forget = lambda name: None  # type: ignore[method-assign]
    executor.run()
    relation = executor.catalog.relations["p"]
    assert relation.set_kind == (SetKind.BITS if factor == 1 else SetKind.HASH)
    assert relation.widths == [4 if factor == 1 else 8] * 2
    assert sorted(rows_of(executor, "p")) == [(x * factor, y * factor) for x in range(51) for y in range(x + 1, 51)]


# ------------------------------------------------------------------------------------------------------------- widening

WIDE = 2**40


@pytest.mark.parametrize("threads", [1, 2])
def test_rules_may_add_wide_values_to_narrow_rows(threads: int) -> None:
    text = ".decl a(x: number, y: number)\n.decl b(x: number)\na(1, 2). a(3, 4). a(x * 1099511627776, x) :- b(x)."
    assert ran(text, {"b": [(5,), (-5,), (0,)]}, threads=threads)["a"] == [
        (-5 * WIDE, -5), (0, 0), (1, 2), (3, 4), (5 * WIDE, 5),
    ]  # fmt: skip


def test_loads_facts_and_rules_add_up() -> None:
    text = ".decl a(x: number)\n.decl b(x: number)\na(1). a(2). a(1). a(x + 1) :- b(x). a(x) :- a(x), b(x)."
    executor = executor_of(text, {"a": [(2,), (3,), (3,)], "b": [(7,), (1,)]})
    load(executor, "a", [(WIDE,), (3,), (-WIDE,)])
    load(executor, "a", [])
    load(executor, "b", [(2,)])
    executor.run()
    assert sorted(rows_of(executor, "a")) == [(-WIDE,), (1,), (2,), (3,), (8,), (WIDE,)]
    assert sorted(rows_of(executor, "b")) == [(1,), (2,), (7,)]


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("unsigned", [0, 1, 2**31, 2**63, 2**64 - 1]),
        ("number", [-(2**63), -(2**31) - 1, -(2**31), -1, 0, 2**31 - 1, 2**31, 2**63 - 1]),
        ("float", [-1.5, -0.0, 5e-324, 1e308, float("inf")]),
        ("symbol", ["", "a", "b c", "\u20ac", "x" * 1000]),
    ],
)
def test_values_come_back_as_they_were_loaded(type: str, values: list[object]) -> None:
    """In two loads, of which the first is narrow; and copied by a rule and by a recursive one."""
    decls = f".decl a(x: {type})\n.decl b(x: {type})\n.decl c(x: {type}, y: {type})\n"
    text = decls + "b(x) :- a(x). c(x, y) :- a(x), b(y). c(y, x) :- c(x, y)."
    executor = executor_of(text)
    middle = len(values) // 2
    load(executor, "a", [(v,) for v in values[middle : middle + 1]])
    load(executor, "a", [(v,) for v in values])
    executor.run()
    for name in "ab":
        assert sorted(map(repr, rows_of(executor, name))) == sorted(repr((v,)) for v in values)
    assert sorted(map(repr, rows_of(executor, "c"))) == sorted(repr((v, w)) for v in values for w in values)


def test_nullary_relations_hold_one_row_at_most() -> None:
    text = ".decl a()\n.decl b()\n.decl c()\n.decl d(x: number)\na(). a(). b() :- d(_). c() :- d(_), !a(). d(1) :- a(), b()."
    assert ran(text, {"d": [(1,), (2,)]}) == {"a": [()], "b": [()], "c": [], "d": [(1,), (2,)]}
    assert ran(text, {"d": []}) == {"a": [()], "b": [], "c": [], "d": []}
