"""The search of homes finds what trying everything finds, and finds it where there is too much to try."""

from __future__ import annotations

from itertools import product
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.plan.exchange.decomposable import decomposable_plan
from dlog.engine.plan.exchange.home_search import Charge, Homes, cheapest_homes, possible
from dlog.engine.plan.exchange.places import choose_homes
from dlog.pipeline import compile_program
from tests.examples import examples

NAMES = "abcd"
COSTS = st.sampled_from([0.0, 1.0, 2.0, 5.0, inf])
Table = tuple[frozenset[str], dict[tuple[int, ...], float]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """What a rule that depends on some relations costs, for each of their homes."""
    of = draw(st.frozensets(st.sampled_from(NAMES), max_size=3))
    return of, {key: draw(COSTS) for key in product(range(3), repeat=len(of))}


def looked_up(table: Table, homes: Homes) -> float:
    of, costs = table
    return costs[tuple(homes[name] for name in sorted(of))]


def charge(table: Table) -> Charge:
    return Charge(table[0], lambda homes: looked_up(table, homes))


def total(rules: list[Table], homes: Homes) -> float:
    return sum(looked_up(rule, homes) for rule in rules)


@examples(200)
@given(
    rules=st.lists(tables(), max_size=5),
    choices=st.fixed_dictionaries({name: st.lists(st.integers(0, 2), max_size=3, unique=True) for name in NAMES}),
    below=st.sampled_from([0.0, 4.0, 9.0, inf]),
)
def test_the_first_of_the_cheapest_is_found(rules: list[Table], choices: dict[str, list[int]], below: float) -> None:
    every = [dict(zip(choices, places, strict=True)) for places in product(*choices.values())]
    best = min(every, key=lambda homes: total(rules, homes), default=None)
    expected = best if best is not None and total(rules, best) < below else None
    assert cheapest_homes(choices, [charge(rule) for rule in rules], below) == expected


def test_a_search_that_ends_early_returns_the_best_it_has_seen() -> None:
    choices = {"a": range(1000)}
    falling = [Charge(frozenset("a"), lambda homes: 1000.0 - homes["a"])]
    assert cheapest_homes(choices, falling) == {"a": 999}
    assert cheapest_homes(choices, falling, visits=11) == {"a": 9}


def test_many_relations_need_no_deep_stack() -> None:
    choices = {f"r{n}": (0, 1) for n in range(3000)}
    last = [Charge(frozenset({name}), lambda homes, name=name: possible(homes[name] == 1)) for name in choices]
    assert cheapest_homes(choices, last) == dict.fromkeys(choices, 1)


RING = 8
"""Relations of four columns that derive each other: 65,536 assignments, of which one will do, the last."""


def ring() -> str:
    names = [f"r{n}" for n in range(RING)]
    declared = "".join(f".decl {name}(a: number, b: number, c: number, d: number)\n.output {name}\n" for name in names)
    edges = ".decl e(a: number, b: number, c: number, d: number)\n.input e\n"
    turned = "".join(
        f"{name}(c, a, b, d) :- {before}(a, b, c, d), e(b, c, a, _).\n"
        for before, name in zip(names, names[1:] + names[:1], strict=True)
    )
    return edges + declared + "r0(a, b, c, d) :- e(a, b, c, d).\n" + turned


def test_homes_that_recursion_passes_on_are_found_among_very_many() -> None:
    homes = choose_homes(compile_program(ring()))
    assert {homes[f"r{n}"] for n in range(RING)} == {3}


def test_strata_of_many_relations_are_found_to_be_decomposable() -> None:
    plan = decomposable_plan(compile_program(ring()), 2)
    assert plan.alone is None
    assert {plan.answers[f"r{n}"].place for n in range(RING)} == {3}
