"""Events, and what they meet, pass: they are there for one batch, whatever comes after."""

from __future__ import annotations

from collections.abc import Iterator
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.plan.incremental.layers import parts
from dlog.engine.plan.incremental.passing import passing_relations
from dlog.engine.runtime.incremental.engines.choice import storing_engine
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source

DECLARED = """.decl order(o: number, item: number)
.decl price(item: number, p: number)
.decl gone(item: number)
.decl pay(o: number, p: number)
.input order, price, gone
.output pay
"""
PAY = "pay(o, p) :- @order(o, item), price(item, p), !gone(item).\n"
Rows = list[tuple[int, ...]]


def compiled(rules: str) -> Program:
    return compile_source(Source(DECLARED + rules))


@pytest.fixture
def engine() -> Iterator[Layered]:
    made = storing_engine(compiled(PAY))
    assert isinstance(made, Layered)
    yield made
    made.close()


def commit(engine: Layered, **changes: list[tuple[int, ...]]) -> None:
    """Rows of values, a diff, and how many rounds after the last one."""
    given = {}
    for name, rows in changes.items():
        *columns, diffs, rounds = np.array(sorted(rows, key=lambda row: row[-1]), np.int64).T.copy()
        given[name] = Updates(tuple(columns), diffs, engine.round + rounds)
    engine.commit(given)


def rows(engine: Layered, relation: str = "pay") -> Rows:
    table = engine.table(relation)
    return sorted(zip(*[column.tolist() for column in table.columns], strict=True))


def passing(engine: Layered) -> dict[str, int]:
    """The living rows of relations that pass, by the beginnings of their names."""
    flows = [layer.engine._flow for layer in engine._layers if isinstance(layer.engine, Maintained)]
    found = {n: c for flow in flows if flow is not None for n, c in flow.collections.items() if n[:4] in ("chan", "met@")}
    assert all(collection.struct[L.collection.passing] for collection in found.values())
    return {name.split("@")[0]: collection.struct[L.collection.live] for name, collection in found.items()}


@pytest.mark.parametrize(
    ("rule", "passes"),
    [
        (PAY, True),
        ("pay(o, p + 1) :- @order(o, item), price(item, p), order(o, _), p < 7.\n", True),
        ("pay(o, item) :- @order(o, item), price(item, _).\npay(1, 2) :- price(1, 2).\n", True),
        ("pay(o, p) :- @order(o, p), p >= now().\n", True),
        ("pay(o, 10 / p) :- @order(o, item), price(item, p).\n", True),
        ("pay(o, p) :- @order(o, item), price(item, q), p = 10 / q.\n", False),
        ("pay(o, p) :- @order(o, item), p = count : { price(item, _) }.\n", False),
    ],
)
def test_events_pass_where_their_plan_needs_nothing_but_their_changes(rule: str, passes: bool) -> None:
    program = compiled(rule)
    assert {name.split("@")[0] for name in passing_relations(program)} == ({"changed", "met"} if passes else set())
    met = next(number for number, stratum in enumerate(program.strata) if stratum.relations[0].startswith("met@"))
    assert not passing_relations(program, {met})
    made = parts(program, {}, passing_relations(program))
    assert [part.passing for part in made if part.timed.startswith("changed@")] == [passes]


def test_a_rule_of_events_has_one_path() -> None:
    made = storing_engine(compiled(PAY))
    text = made.explain()
    made.close()
    met = text[text.index("stratum met@") : text.index("kept@")]
    assert met.count("changes ") == 1 and "changes changed@" in met
    assert "price[0](item, p) at neu" in met and "not gone" in met.replace("!", "not ")


def test_a_rule_of_the_same_shape_has_all_paths() -> None:
    """Plans of one shape are shared, but not those of rules of events."""
    copied = "also(o, item, p, r) :- seen(o, item, 1, r), price(item, p), !gone(item).\n"
    declared = "".join(f".decl {name}(o: number, i: number, p: number, r: number)\n" for name in ("seen", "also"))
    made = storing_engine(compiled(declared + ".input seen\n" + PAY + copied))
    text = made.explain()
    made.close()
    assert text[text.index("stratum also") :].split("stratum")[1].count("changes ") == 3


def test_nothing_is_left_of_events_that_have_passed(engine: Layered) -> None:
    commit(engine, price=[(item, 10 * item, 1, 1) for item in range(3)], order=[(o, o % 3, 1, 1) for o in range(2000)])
    assert passing(engine) == {"changed": 2000, "met": 2000}
    commit(engine, order=[(5000, 1, 1, 1)])
    assert passing(engine) == {"changed": 1, "met": 1}
    commit(engine, order=[(6000 + k, 1, 1, 1 + k) for k in range(40)])
    assert passing(engine) == {"changed": 40, "met": 40}
    commit(engine, order=[(6000, 1, -1, 1), (5000, 1, -1, 1), (7000, 9, 1, 2)])
    assert passing(engine) == {"changed": 3, "met": 2}
    commit(engine, price=[(1, 7, 1, 1)])  # no events: what has passed lies until the next ones come
    commit(engine, order=[(8000, 1, 1, 1)])
    assert passing(engine) == {"changed": 1, "met": 2}
    assert [row for row in rows(engine) if row[0] >= 5000] == [*((6000 + k, 10) for k in range(1, 40)), (8000, 7), (8000, 10)]


changes = st.dictionaries(
    st.tuples(st.sampled_from(["order", "price", "gone"]), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(st.booleans(), st.integers(1, 2)),
    max_size=6,
)


@given(st.lists(changes, min_size=2, max_size=8))
def test_an_engine_that_begins_anew_meets_no_event_again(commits: list[dict[tuple[str, int, int], tuple[bool, int]]]) -> None:
    """Beside one that does not, and one whose events come and go like other rows."""
    anew, plain = (storing_engine(compiled(PAY)) for _ in range(2))
    with patch.object(Layered, "here", False):
        staying = storing_engine(compiled(PAY))
    there: set[tuple[str, tuple[int, ...]]] = set()
    for made in commits:
        listed: dict[str, Rows] = {}
        rounds = max([round for _, round in made.values()], default=1)
        for (name, x, y), (comes, round) in made.items():
            row = (x,) if name == "gone" else (x, y)
            if ((name, row) in there) != comes:
                there ^= {(name, row)}
                listed.setdefault(name, []).append((*row, 1 if comes else -1, round))
        for engine in (anew, plain, staying):
            assert isinstance(engine, Layered)
            with patch.object(Maintained, "_begins_anew", return_value=engine is anew and rounds == 1):
                commit(engine, **listed)
        assert rows(anew) == rows(plain) == rows(staying)  # type: ignore[arg-type]
    for engine in (anew, plain, staying):
        engine.close()
