"""Event atoms and `now()` in the rules of sessions: what each of their promises is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dlog
from dlog.engine.runtime.incremental.engines.timed import MIN_CROWD, Shown
from dlog.sessions.persistence.inspection import dump_state
from tests.dlog.sessions.events_twin import CLOCKS, DECLARED, EVENTS


def fed(session: dlog.Session, kind: type[Any]) -> list[Any]:
    """The engines of what rounds feed."""
    engine: Any = session._engine
    while not hasattr(engine, "_layers"):
        engine = engine.inner
    return [layer.engine for layer in engine._layers if isinstance(layer.engine, kind)]


def test_proofs_are_there_when_a_state_is_opened(tmp_path: Path) -> None:
    with dlog.session(DECLARED + EVENTS["pay"] + CLOCKS["on"], state=tmp_path / "s") as s:
        s.insert("price", ("tea", 3))
        s.insert("order", (1, "tea"))
        s.insert("spell", [("a", 0, 3), ("b", 2, 3)])
        s.commit()
    with dlog.session(None, state=tmp_path / "s") as s:
        assert str(s.why("on", ("a",))).splitlines()[1:] == ['|-- spell("a", 0, 3)  fact', "`-- now() < 3"]
        assert "no such row is there in this round" in str(s.why_not("on", ("b",)))
    with dlog.session(None, state=tmp_path / "s") as s:
        assert str(s.why("pay", (1, 6))).splitlines()[1:] == ['`-- @order(1, "tea")  came in round 1, with p = 3']


def test_0_10_later_prices_change_no_bill_of_a_rule() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"], history=9)
    s.insert("price", [("tea", 3), ("rum", 8)])
    s.insert("order", (1, "tea"))
    s.commit()
    s.remove("price", ("tea", 3))
    s.insert("price", ("tea", 4))
    s.insert("order", (2, "tea"))
    assert list(s.commit().changes("pay")) == [((2, 8), 1)]
    s.remove("price", ("tea", 4))
    s.commit()
    assert (list(s.touched), sorted(s["pay"]), sorted(s.at(1)["pay"])) == (["price"], [(1, 6), (2, 8)], [(1, 6)])
    assert str(s.why("pay", (1, 6))).endswith('@order(1, "tea")  came in round 1, with p = 3')
    assert "no event has met that" in str(s.why_not("pay", (9, 9)))


def test_0_11_what_a_rule_takes_back_is_of_now_or_what_was_met() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"] + EVENTS["owe"])
    s.insert("price", ("tea", 3))
    for relation in ("order", "lent"):
        s.insert(relation, [(1, "tea"), (2, "tea")])
    s.commit()
    s.upsert("price", ("tea", 4))
    s.commit()
    for relation in ("order", "lent"):
        s.remove(relation, (1, "tea"))
    s.commit()
    assert (sorted(s["pay"]), sorted(s["owe"])) == ([(1, 6), (2, 6)], [(2, 3)])
    s.upsert("price", ("tea", 3))
    s.insert("order", (1, "tea"))
    s.commit()
    s.remove("order", (1, "tea"))
    s.commit()
    assert sorted(s["pay"]) == [(1, 6), (2, 6)]  # 3 has come twice and gone once, 4 has gone once


def test_1_3_advancing_the_clock_of_rules_costs_what_is_due() -> None:
    s = dlog.session(DECLARED + CLOCKS["on"])
    s.insert("spell", [(f"s{n}", 1 + n % 1000, 1001 + n % 1000) for n in range(20_000)])
    s.commit()
    (shown,) = fed(s, Shown)
    assert (shown.visited, s.rows("on")) == (20, 20)
    for _ in range(50):
        s.commit()
    assert (shown.visited, s.rows("on")) == (20 * 51, 20 * 51)
    s.commit()
    assert sorted(s.touched) == ["on"]
    s.apply([(900, "price", 1, ("tea", 1))])
    assert (shown.visited, s.rows("on")) == (20 * 900, 20 * 900)
    s.remove("spell", [(f"s{n}", 1 + n % 1000, 1001 + n % 1000) for n in range(20_000) if n != 999])
    s.commit()
    assert (s.rows("on"), shown.visited <= 20 * 901 + 20_000) == (0, True)
    for _ in range(120):
        s.commit()
    assert (list(s["on"]), shown.visited <= 20 * 901 + 60_000) == ([("s999",)], True)


def test_a_rule_that_is_added_has_events_of_its_own() -> None:
    s = dlog.session(DECLARED + EVENTS["pay"], {"price": [("tea", 3)], "order": [(1, "tea")]})
    s.upsert("price", ("tea", 4))
    s.commit()
    s.add_rules(".decl same(o: number, p: number)\nsame(o, 2 * p) :- @order(o, item), price(item, p).\n")
    s.add_rules("pay(o, p) :- @order(o, item), price(item, p).")
    assert (sorted(s["pay"]), sorted(s["same"])) == ([(1, 4), (1, 6)], [(1, 8)])


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("?- price(X, N), N < now().", "`now()` in a question"),
        ("?- @order(X, Y).", "the event `@order` in a question"),
        (".decl q(x: number) q(x) :- @order(x, _). ?- q(X).", "the event `@order` in a question"),
        ("?- price(X, N), soon(N).", "the question reads an inline relation whose rules have `now()`"),
    ],
)
def test_questions_know_no_time(question: str, expected: str) -> None:
    s = dlog.session(DECLARED + EVENTS["pay"] + ".decl soon(n: number) inline\nsoon(n) :- n <= now(), now() < n + 2.\n")
    s.insert("price", ("tea", 1))
    s.commit()
    with pytest.raises(dlog.DlogError) as raised:
        s.query(question)
    assert expected in str(raised.value)
    assert sorted(s.query("?- price(X, N).")) == [("tea", 1)]


def test_events_and_clocks_of_components_and_alternatives() -> None:
    s = dlog.session("""
    .comp C { .decl e(x: symbol) .decl p(x: symbol, n: number) .decl a(x: symbol, n: number)
    a(x, n) :- @e(x), p(x, n). }
    .init c = C
    .decl out(x: symbol, n: number) .decl one(x: symbol) .decl two(n: number)
    out(x, n) :- @c.e(x), c.p(x, n), n <= now() ; c.p(x, n), n > 8.
    one(x), two(n) :- @c.a(x, n).
    """)
    s.insert("c.p", [("a", 1), ("a", 3), ("b", 9)])
    s.insert("c.e", ("a",))
    s.commit()
    assert (sorted(s["c.a"]), sorted(s["out"])) == ([("a", 1), ("a", 3)], [("a", 1), ("b", 9)])
    s.remove("c.p", ("a", 3))
    s.commit()
    s.apply([(10**12, "c.e", -1, ("a",))])
    assert (sorted(s["c.a"]), sorted(s["one"]), sorted(s["two"])) == ([("a", 3)], [("a",)], [(3,)])


def test_events_of_relations_that_do_not_keep_every_row() -> None:
    s = dlog.session("""
    .decl link(x: symbol, y: symbol) .decl same(x: symbol, y: symbol) eqrel .decl price(x: symbol, p: number)
    .decl got(x: symbol, y: symbol, p: number) .decl given(k: number, v: number)
    .decl first(k: number, v: number) choice-domain k .decl chosen(v: number, p: number)
    same(x, y) :- link(x, y).
    got(x, y, p) :- @same(x, y), price(x, p), x < y.
    first(k, v) :- given(k, v).
    chosen(v, p) :- @first(_, v), price("a", p).
    """)
    s.insert("price", [("a", 1), ("b", 2)])
    s.insert("link", ("a", "b"))
    s.insert("given", [(1, 5), (1, 4)])
    s.commit()
    s.upsert("price", ("a", 9))
    s.insert("link", ("b", "c"))
    s.insert("given", (1, 3))
    s.commit()
    assert sorted(s["got"]) == [("a", "b", 1), ("a", "c", 9), ("b", "c", 2)]
    assert sorted(s["chosen"]) == [(3, 9), (4, 1)]
    assert str(s.why("got", ("a", "c", 9))).endswith('@same("a", "c")  came in round 2, with p = 9')


def test_a_clock_that_stands_between_bounds_visits_no_rule() -> None:
    s = dlog.session(DECLARED + CLOCKS["reach"] + CLOCKS["late"], {"road": [(1, 2, 3, 9)], "spell": [("a", 0, 40)]})
    assert [sorted(s.touched) for _ in range(4) if s.commit()] == [[], ["reach"], [], []]


def test_what_goes_before_its_end_does_not_wait_for_it() -> None:
    s = dlog.session(DECLARED + CLOCKS["on"])
    (shown,) = fed(s, Shown)
    s.insert("spell", [("a", 9, 3002), ("b", 0, 3001)])
    for n in range(3000):
        s.insert("spell", [(f"s{n}", 0, 10**9), (f"t{n}", 10**8, 10**9)])
        s.remove("spell", [(f"s{n - 1}", 0, 10**9), (f"t{n - 1}", 10**8, 10**9)])
        s.commit()
        assert len(shown._calendar) <= MIN_CROWD + 4 * 4
    assert sorted(s["on"]) == [("a",), ("b",), ("s2999",)]
    assert [sorted(s["on"]) for _ in range(2) if s.commit()] == [[("a",), ("s2999",)], [("s2999",)]]


def test_a_limit_of_iterations_holds_in_all_parts_of_a_state_that_is_opened_again(tmp_path: Path) -> None:
    """In those, too, that nothing had come to when it was opened."""
    deep = ".decl start(n: number)\n.decl deep(n: number)\ndeep(n) :- start(n).\ndeep(n + 1) :- deep(n), n < 90.\n"
    text = DECLARED + EVENTS["pay"] + deep
    with dlog.session(text, state=tmp_path, max_iterations=50) as s:
        s.insert("order", (1, "tea"))
        s.commit()
    with dlog.session(text, state=tmp_path, max_iterations=50) as s:
        s.insert("start", (1,))
        with pytest.raises(dlog.DlogError, match="a stratum needs more than 50 iterations"):
            s.commit()
        s.rollback()
        s.insert("start", (80,))
        s.commit()
        assert len(s["deep"]) == 11


def test_with_a_rule_for_each_either_event_meets_what_is_there_of_the_other() -> None:
    declared = ".decl a(x: number) retract(original)\n.decl b(x: number, y: number) retract(original)\n.decl met(y: number)\n"
    with dlog.session(declared + "met(y) :- @a(x), b(x, y).\nmet(y) :- a(x), @b(x, y).\n") as s:
        s.insert("b", (1, 10))
        s.commit()
        s.insert("a", (1,))
        s.commit()
        s.insert("b", [(1, 11), (2, 20)])
        s.commit()
        assert sorted(s["met"]) == [(10,), (11,)]
        s.remove("a", (1,))
        s.commit()
        assert sorted(s["met"]) == [(11,)]  # which came when that was there


def test_a_dump_has_what_events_have_found(tmp_path: Path) -> None:
    """A file for each rule, by its variables. A session goes on with what is in them; where the program of the dump is run
    once, or a session begins with other rows, all events come at once."""
    again = 'pay(o, p) :- @order(o, _), price("rum", p).\n'
    with dlog.session(DECLARED + EVENTS["pay"] + again + EVENTS["owe"], state=tmp_path / "s") as s:
        for order, price in ((1, 3), (2, 4)):
            s.upsert("price", ("tea", price), key="item")
            s.insert("order", (order, "tea"))
            s.insert("lent", (order, "tea"))
            s.commit()
        s.remove("lent", (1, "tea"))
        s.insert("price", ("rum", 9))
        s.insert("order", (3, "gin"))
        s.commit()
    said = dump_state(tmp_path / "s", tmp_path / "out")
    files = {path.name: path.read_text() for path in (tmp_path / "out").glob("*@*.csv")}
    assert files == {
        "ever@order.csv": '1,"tea",1,1\n2,"tea",1,2\n3,"gin",1,3\n',
        "pay@order.csv": '1,"tea",3,1,1\n2,"tea",4,1,2\n',
        "owe@lent.csv": '2,"tea",4,1,2\n',
        "pay@order-2.csv": '3,"gin",9,1,3\n',
    }
    assert f"{tmp_path / 'out' / 'owe@lent.csv'}: 1 row, what events found: o, item, p, how often, the round" in said
    program = tmp_path / "out" / "program.dl"
    with dlog.session(program, tmp_path / "out") as s:
        assert sorted(s["pay"]) == [(1, 6), (2, 8), (3, 9)] and sorted(s["owe"]) == [(2, 4)]
        assert "came in round 2, with p = 4" in s.why("pay", (2, 8)).premises[0].text
        s.insert("order", (4, "tea"))
        s.remove("lent", (2, "tea"))
        s.commit()
        assert sorted(s["pay"]) == [(1, 6), (2, 8), (3, 9), (4, 8), (4, 9)] and sorted(s["owe"]) == []
        s.drop_rules(again)
        assert sorted(s["pay"]) == [(1, 6), (2, 8), (4, 8)]
    assert sorted(dlog.run(program, tmp_path / "out")["pay"]) == [(1, 8), (1, 9), (2, 8), (2, 9), (3, 9)]
    with dlog.session(program, {"order": [(1, "tea")], "price": [("tea", 5)]}) as s:
        assert sorted(s["pay"]) == [(1, 10)]
