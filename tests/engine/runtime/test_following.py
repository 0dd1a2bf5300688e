"""Programs with events whose rules change: what comes about as before goes on, and only the rest is derived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest

import dlog
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.sessions.replacing import go_back, succeed

TEXT = """.decl order(id: number, item: symbol)
.decl price(item: symbol, euros: number)
.decl spell(id: number, from: number, to: number)
.decl big(id: number)
.decl pay(id: number, euros: number)
.decl on(id: number)
big(o) :- order(o, _), o > 10.
pay(o, p) :- @order(o, item), price(item, p).
on(s) :- spell(s, from, to), from <= now(), now() < to.
"""
OWN = {"order", "price", "spell", "big", "pay", "on"}


@pytest.fixture
def s() -> Iterator[dlog.Session]:
    rows = {"price": [("tea", 3)], "spell": [(1, 0, 4), (2, 3, 9)], "order": [(1, "tea"), (11, "tea")]}
    with dlog.session(TEXT, rows) as made:
        made.upsert("price", ("tea", 4))
        made.commit()
        yield made


def reused(session: dlog.Session) -> set[str]:
    """The declared relations that were not derived anew when the program changed."""
    return {name for name in session._engine.reused_relations if "@" not in name}


def layers(session: dlog.Session) -> Layered:
    engine = session._engine
    assert isinstance(engine, Layered)
    return engine


@pytest.mark.parametrize(
    ("rule", "relation", "rows", "anew"),
    [
        (".decl n(c: number)\nn(c) :- c = count : { pay(_, _) }.", "n", [(2,)], set()),
        (".decl one(id: number)\none(o) :- order(o, _), !big(o).", "one", [(1,)], set()),
        (".decl due(id: number, euros: number)\ndue(o, p) :- @order(o, i), price(i, p).", "due", [(1, 4), (11, 4)], set()),
        (".decl other(id: number)\nother(o) :- @big(o), on(_).", "other", [(11,)], set()),
        (".decl late(id: number)\nlate(s) :- spell(s, _, to), to - 2 < now().", "late", [(1,)], set()),
        (".decl more(x: number)\nmore(1).\nbig(o) :- more(o).", "big", [(1,), (11,)], {"big"}),
        ("pay(o, 0) :- big(o).", "pay", [(1, 3), (11, 0), (11, 3)], {"pay"}),
    ],
)
def test_rules_that_are_added_derive_what_they_say(
    s: dlog.Session, rule: str, relation: str, rows: list[tuple[Any, ...]], anew: set[str]
) -> None:
    told = s.add_rules(rule)
    assert sorted(s[relation]) == rows
    assert reused(s) == OWN - anew
    assert sorted(s["on"]) == [(1,), (2,)]  # round 3
    assert [(row, diff) for row, diff in told.changes("on")] == [((2,), 1)]
    s.insert("order", [(2, "tea"), (12, "tea")])
    s.upsert("price", ("tea", 5))
    s.commit()
    assert {(1, 3), (11, 3), (2, 5), (12, 5)} <= set(s["pay"])
    assert sorted(s["on"]) == [(2,)]
    assert {(11,), (12,)} <= set(s["big"])


def test_parts_that_are_as_they_were_are_not_visited(s: dlog.Session) -> None:
    before = {id(layer.engine) for layer in layers(s)._layers}
    with patch.object(Maintained, "commit", autospec=True, side_effect=Maintained.commit) as committed:
        s.add_rules(".decl n(c: number)\nn(c) :- c = count : { order(_, _) }.")
    kept = [layer for layer in layers(s)._layers if id(layer.engine) in before]
    assert {layer.part.timed.split("@")[0] for layer in kept if layer.part.timed} == {"changed", "kept", "shown"}
    visited = {name for call in committed.call_args_list for name in call.args[0].program.derived}
    assert "n" in visited and "pay" not in visited


def test_events_of_a_relation_that_gets_rules_are_the_rows_that_come_with_them(s: dlog.Session) -> None:
    s.add_rules(".decl seen(id: number, euros: number)\nseen(o, p) :- @big(o), price(_, p).")
    s.upsert("price", ("tea", 5))
    s.commit()
    s.add_rules(".decl more(x: number)\nmore(1).\nmore(11).\nbig(o) :- more(o).")
    assert sorted(s["seen"]) == [(1, 5), (11, 4)]
    s.upsert("price", ("tea", 6))
    s.commit()
    s.drop_rules("big(o) :- more(o).")
    assert sorted(s["seen"]) == [(1, 5), (11, 4)]  # what goes takes back what it would find now


@pytest.mark.parametrize("fails_at", ["own", "later"])
def test_rules_that_are_refused_leave_all_as_it_was(s: dlog.Session, fails_at: str) -> None:
    rules = {
        "own": ".decl bad(x: number)\nbad(1 / (o - 11)) :- big(o).",
        "later": ".decl n(c: number)\nn(c) :- c = count : { big(_) }.\n.decl bad(x: number)\nbad(1 / (p - 3)) :- pay(_, p).",
    }
    before = {name: sorted(s[name]) for name in OWN}
    for _ in range(2):
        with pytest.raises(dlog.DlogError, match="division by zero"):
            s.add_rules(rules[fails_at])
        assert {name: sorted(s[name]) for name in OWN} == before
        assert s.round == 2
    s.insert("order", (3, "tea"))
    s.commit()
    assert sorted(s["pay"]) == [(1, 3), (3, 4), (11, 3)] and sorted(s["on"]) == [(1,), (2,)]
    s.add_rules(".decl n(c: number)\nn(c) :- c = count : { pay(_, _) }.")
    assert sorted(s["n"]) == [(3,)] and reused(s) == OWN


def test_the_old_engine_goes_on_where_the_new_one_is_not_to_be(s: dlog.Session) -> None:
    """Its round is over, but cannot be kept: the state's folder is full, say."""
    old = s._engine
    program = dlog.session(TEXT + ".decl n(c: number)\nn(c) :- c = count : { pay(_, _) }.\n").program
    made = succeed(old, s.program, program, s._engines, {})
    assert made.engine.rows("n") == 1 and old.round == 2
    go_back(old, made.engine)
    s.insert("order", (3, "tea"))
    s.commit()
    assert sorted(s["pay"]) == [(1, 3), (3, 4), (11, 3)] and sorted(s["on"]) == [(1,), (2,)]


def test_a_plan_that_left_out_what_is_asked_for_is_made_anew(s: dlog.Session) -> None:
    s.add_rules(".decl twice(a: number, b: number)\ntwice(a, b) :- pay(a, p), pay(b, p), a < b.")
    assert sorted(s["twice"]) == [(1, 11)]
    s.insert("order", (3, "tea"))
    s.commit()
    assert sorted(s["twice"]) == [(1, 11)] and (3, 4) in set(s["pay"])
