"""Joins and extensions, run as paths, against nested loops."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.static import extend
from tests.engine.kernels.paths import Store, run
from tests.engine.kernels.workbench import EXAMPLES, MANY, WORDS, Row
from tests.examples import examples

Rows = list[Row]
SIZES = (0, 1, 2, L.BLOCK - 1, L.BLOCK, L.BLOCK + 1, 2 * L.BLOCK + 300) if JIT else (0, 1, 2, L.BLOCK + 1)
LARGE = 2**40
BUDGETS = pytest.mark.parametrize("budget", [2**24, 1])
KEYED = st.lists(st.tuples(st.integers(-4, 4), WORDS), max_size=20)
GROWING = pytest.mark.parametrize("growing", [False, True])


def join(relation: str, key: int, bound: int, free: int) -> nodes.HalfJoin:
    """relation(bound, free), or the other way round for key 1."""
    return nodes.HalfJoin(nodes.Arrangement(relation, (key,)), (Variable(bound),), ((1 - key, free),))


def proposer(relation: str, key: int, bound: int) -> nodes.Proposer:
    return nodes.Proposer(nodes.Arrangement(relation, (key,), (1 - key,)), (Variable(bound),), 1 - key)


# ----------------------------------------------------------------------------------------------------------------- join


@BUDGETS
@GROWING
@pytest.mark.parametrize("factor", [1, LARGE])
def test_a_join_of_groups_of_all_sizes(budget: int, growing: bool, factor: int) -> None:
    """Groups end before, at and behind the borders of blocks; keys without a match stand among them."""
    edges = [(x * factor, y * factor - 5) for x, size in enumerate(SIZES) for y in range(size)]
    seed = [((i * 3) % 9 * factor, i) for i in range(30)]
    store = Store({"a": (2, seed), "e": (2, edges)}, frozenset("e") if growing else frozenset())
    found = run(store, nodes.Scan("a", ((0, 0), (1, 1))), [join("e", 0, 0, 2)], (0, 1, 2), budget)
    expected = [(x, i, y) for x, i in seed for k, y in edges if k == x]
    assert Counter(found) == Counter(expected)


@BUDGETS
def test_three_joins_in_a_row_resume_where_they_stopped(budget: int) -> None:
    edges = [(x, y) for x in range(12) for y in range(x % 5 * 3)]
    seed = [(i,) for i in range(12)]
    store = Store({"a": (1, seed), "e": (2, edges)})
    steps = [join("e", 0, 0, 1), join("e", 0, 1, 2), join("e", 1, 2, 3)]
    found = run(store, nodes.Scan("a", ((0, 0),)), steps, (0, 1, 2, 3), budget)
    after = {x: [y for k, y in edges if k == x] for x in range(15)}
    before = {y: [x for x, k in edges if k == y] for y in range(15)}
    assert Counter(found) == Counter((a, b, c, d) for (a,) in seed for b in after[a] for c in after[b] for d in before[c])


@GROWING
@examples(EXAMPLES)
@given(left=KEYED, right=KEYED)
def test_a_join_is_two_nested_loops(growing: bool, left: Rows, right: Rows) -> None:
    store = Store({"a": (2, left), "e": (2, right)}, frozenset("e") if growing else frozenset())
    found = run(store, nodes.Scan("a", ((0, 0), (1, 1))), [join("e", 0, 0, 2)], (1, 2))
    assert Counter(found) == Counter((v, w) for x, v in set(left) for y, w in set(right) if x == y)


def test_a_join_without_a_key_is_a_product() -> None:
    left, right = [(i,) for i in range(40)], [(i, -i) for i in range(30)]
    store = Store({"a": (1, left), "e": (2, right)})
    step = nodes.HalfJoin(nodes.Arrangement("e", ()), (), ((0, 1), (1, 2)))
    found = run(store, nodes.Scan("a", ((0, 0),)), [step], (0, 1, 2))
    assert Counter(found) == Counter((x, *r) for (x,) in left for r in right)


# --------------------------------------------------------------------------------------------------------------- extend


def extended(relations: dict[str, Rows], growing: Sequence[str], budget: int = 2**24) -> Counter[Row]:
    """a(x, y), then z with e(x, z), f(y, z) and, if it is there, g(z, x)."""
    store = Store({name: (2, rows) for name, rows in relations.items()}, frozenset(growing))
    proposers = [proposer("e", 0, 0), proposer("f", 0, 1)]
    if "g" in relations:
        proposers.append(proposer("g", 1, 0))
    step = nodes.Extend(2, tuple(proposers))
    return Counter(run(store, nodes.Scan("a", ((0, 0), (1, 1))), [step], (0, 1, 2), budget))


def looped(relations: dict[str, Rows]) -> Counter[Row]:
    sets = {name: set(rows) for name, rows in relations.items()}
    after = {name: {x: {z for k, z in rows if k == x} for x, _ in rows} for name, rows in sets.items()}
    found: Counter[Row] = Counter()
    for x, y in sets["a"]:
        for z in after["e"].get(x, set()) & after["f"].get(y, set()):
            if "g" not in sets or (z, x) in sets["g"]:
                found[x, y, z] += 1
    return found


PAIRS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9)), max_size=30)


@pytest.mark.parametrize("growing", ["", "e", "f"])
@examples(EXAMPLES)
@given(a=PAIRS, e=PAIRS, f=PAIRS, g=st.none() | PAIRS, factor=st.sampled_from([1, 2**25, 2**40]))
@example(a=[(0, 0), (0, 1), (0, 2), (1, 2)], e=[(0, z) for z in range(9)], f=[(2, 1), (0, 3)], g=None, factor=1)
def test_an_extension_intersects(growing: str, a: Rows, e: Rows, f: Rows, g: Rows | None, factor: int) -> None:
    """Factors make the range of values too large for marks, then for 4 bytes."""
    given_rows = {"a": a, "e": e, "f": f, **({"g": [(z, x) for x, z in g]} if g is not None else {})}
    relations = {name: [(x * factor, y * factor) for x, y in rows] for name, rows in given_rows.items()}
    assert extended(relations, growing) == looped(relations)


@pytest.mark.slow
@BUDGETS
@pytest.mark.parametrize("growing", ["", "e"])
@pytest.mark.parametrize("proposers", [2, 3])
@pytest.mark.parametrize("factor", [1, 2**24])
def test_an_extension_of_groups_larger_than_a_block(budget: int, proposers: int, factor: int, growing: str) -> None:
    width = 1300 if JIT else 600
    names = ["e", "f", "g"][:proposers]
    relations = {name: [(x, z) for x in range(4) for z in range(0, width, i + x + 1)] for i, name in enumerate(names)}
    if "g" in relations:
        relations["g"] = [(z, x) for x, z in relations["g"]]
    relations["a"] = [(x, y) for x in range(5) for y in range(5)]
    if factor > 1:
        relations = {n: [(x * factor, y * factor) for x, y in rows] for n, rows in relations.items()}
    assert extended(relations, growing, budget) == looped(relations)


@examples(2 * EXAMPLES)
@given(values=st.lists(WORDS, max_size=80), asked=st.lists(WORDS, min_size=1, max_size=10), narrow=st.booleans())
def test_gallop_finds_the_first_position_that_is_not_below(values: list[int], asked: list[int], narrow: bool) -> None:
    if narrow:
        values, asked = [v % 50 for v in values], [v % 50 for v in asked]
    ordered = np.array(sorted(values), np.int32 if narrow else np.int64)
    for start in range(0, len(values), 7):
        for value in (*asked, *values[:5]):
            expected = max(start, bisect_left(ordered.tolist(), value))
            assert extend.gallop(ordered.ctypes.data, ordered.itemsize, start, len(values), value) == expected


# ----------------------------------------------------------------------------------------------------------------- scan


@BUDGETS
def test_a_scan_gives_every_row_in_order(budget: int) -> None:
    rows = [(i, i * 2**33) for i in range(MANY // 2)]
    assert run(Store({"a": (2, rows)}), nodes.Scan("a", ((1, 0), (0, 1))), [], (1, 0), budget) == rows


def test_a_scan_of_changes_gives_those_rows_only() -> None:
    store = Store({"a": (1, [(i,) for i in range(2000)])})
    store.relation("a").struct[L.relation.lo], store.relation("a").struct[L.relation.hi] = 300, 1200
    assert run(store, nodes.Scan("a", ((0, 0),), changes=True), [], (0,)) == [(i,) for i in range(300, 1200)]


@GROWING
def test_semijoins_and_antijoins_divide_the_rows(growing: bool) -> None:
    """By the whole row through the set, by a part of it through an arrangement."""
    rows = [(i, i % 7) for i in range(1500)]
    other = [(i, i % 5) for i in range(0, 1500, 2)]
    store = Store({"a": (2, rows), "b": (2, other)}, frozenset("b") if growing else frozenset())
    seed = nodes.Scan("a", ((0, 0), (1, 1)))
    for args in ((Variable(0), Variable(1)), (Variable(0), None), (None, Variable(1)), (None, None)):
        asked = [c for c, v in enumerate(args) if v is not None]
        known = {tuple(o[c] for c in asked) for o in other}
        kept = [r for r in rows if tuple(r[c] for c in asked) in known]
        assert run(store, seed, [nodes.SemiJoin("b", args)], (0, 1)) == kept
        assert run(store, seed, [nodes.AntiJoin("b", args)], (0, 1)) == [r for r in rows if r not in set(kept)]
