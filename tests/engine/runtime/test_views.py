"""Views have no rows of their own, and are read, followed and taken over as if they had."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import dlog
from dlog.engine.compiler import compile_source
from dlog.engine.plan.incremental.views import View, separate_views
from dlog.engine.runtime.incremental.engines import viewed
from dlog.engine.runtime.incremental.engines.choice import make_engine, storing_engine
from dlog.engine.runtime.incremental.engines.viewed import Viewed, stored
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from dlog.pipeline import explain_rounds
from tests.examples import examples
from tests.rounds import Driver, Story, check, stories
from tests.strategies_views import staged_programs

EDGES = ".decl e(x: number, y: number)\n.input e\n"
PAIR = ".decl {}(x: number, y: number)\n"
MAPS = {
    "permuted": "p(y, x) :- e(x, y).",
    "the same": "p(x, y) :- e(x, y).",
    "of a closure": "p(y, x) :- r(x, y).\n.decl r(x: number, y: number)\nr(x, y) :- e(x, y).\nr(x, z) :- r(x, y), e(y, z).",
}
FILTERS = {
    "without loops": "p(y, x) :- e(x, y), x != y.",
    "without a number": "p(x, y) :- e(x, y), 3 != x, y != 4.",
    "in order": "p(x, y) :- e(x, y), x < y.",
    "by functors": "p(x, y) :- e(x, y), x * 2 + y > 4 - y band 3, x % 3 = 1.",
    "loops": "p(x, y) :- e(x, y), x = y.",
    "one column": "p(x, 4) :- e(x, 4).",
}
COMPUTED = {
    "in the head": "p(x, y + 1) :- e(x, y).",
    "in the body": "p(x, z) :- z = 7 - w, w = -y, e(x, y).",
    "by bits": "p(y bxor 5, bnot(x - 2)) :- e(x, y).",
}
OTHERS = {
    "a projection": "p(x, 1) :- e(x, _).",
    "a column twice": "p(x, x) :- e(x, _).",
    "a column that is lost": "p(x, x) :- e(x, y), y != 1.",
    "two rules": "p(x, y) :- e(x, y).\np(x, y) :- e(y, x).",
    "a fact": "p(1, 2).\np(x, y) :- e(x, y).",
    "an input": ".input p\np(x, y) :- e(x, y).",
    "recursion": "p(x, y) :- q(x, y).\n.decl q(x: number, y: number)\nq(x, y) :- e(x, y).\nq(x, z) :- p(x, y), e(y, z).",
    "computed of two": "p(x, y + x * 0) :- e(x, y).",
    "computed so that two become one": "p(x, y * 2) :- e(x, y).",
    "computed by what may stop": "p(x, 8 / y) :- e(x, y).",
    "an aggregate": "p(x, y) :- e(x, y), count : { e(_, _) } > 1.",
    "a limit": ".limitsize p(n=5)\np(x, y) :- e(x, y).",
    "what may stop": "p(x, y) :- e(x, y), x % y = 0.",
    "text": 'p(x, y) :- e(x, y), contains("1", to_string(x)).',
    "an eqrel": ".decl q(x: number, y: number) eqrel\nq(x, y) :- e(x, y).\np(x, y) :- q(x, y).",
}
ALONE = ".decl q(x: number)\nq(x) :- p(x, _).\n"
COUNTED = ".decl q(x: number, n: number)\nq(x, n) :- e(x, _), n = count : { p(x, _) }.\n"
JOINED = ".decl q(x: number)\nq(x) :- p(x, y), e(y, _).\n"
DENIED = ".decl q(x: number)\nq(x) :- e(x, y), !p(x, y).\n"
TWO = ALONE + ALONE.replace("q", "o")


def program_of(rules: str) -> str:
    return EDGES + PAIR.format("p") + rules + "\n"


def views_of(text: str) -> dict[str, View]:
    return separate_views(compile_source(Source(text)))[1]


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("reader", ["", ALONE, COUNTED, JOINED, DENIED, TWO])
def test_relations_of_all_rows_of_another_one_are_views(name: str, reader: str) -> None:
    assert views_of(program_of(MAPS[name]) + reader).keys() == {"p"}


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(("reader", "is_view"), [("", 1), (ALONE, 1), (COUNTED, 1), (JOINED, 0), (DENIED, 0), (TWO, 0)])
def test_filters_are_views_where_one_rule_reads_their_rows_as_they_come(name: str, reader: str, is_view: bool) -> None:
    assert ("p" in views_of(program_of(FILTERS[name]) + reader)) is bool(is_view)


@pytest.mark.parametrize("name", COMPUTED)
@pytest.mark.parametrize(("reader", "is_view"), [("", 1), (ALONE, 1), (JOINED, 0), (DENIED, 0), (TWO, 1)])
def test_maps_that_compute_are_views_where_no_rule_looks_for_that(name: str, reader: str, is_view: bool) -> None:
    assert ("p" in views_of(program_of(COMPUTED[name]) + reader)) is bool(is_view)


def test_what_is_computed_beside_all_columns_is_read_by_whoever_does_not_look_for_it() -> None:
    text = ".decl w(x: number, y: number, s: number)\nw(x, y, x * x + y) :- e(x, y).\n.decl q(x: number)\n"
    for body, is_view in [
        ("w(x, y, _), e(y, _)", True),
        ("w(x, _, s), s > 5, e(_, x)", True),
        ("w(x, _, 5)", False),
        ("w(x, _, s), e(s, _)", False),
        ("e(x, y), !w(x, y, _)", True),
        ("e(x, y), !w(x, y, x)", False),
        ("e(x, _), sum s : { w(x, _, s) } > 9", True),
        ("e(x, _), count : { w(x, _, s), s > 3 } > 1", False),
    ]:
        assert ("w" in views_of(f"{EDGES}{text}q(x) :- {body}.\n")) is is_view, body


def test_so_many_views_compute_of_one_another_and_no_more() -> None:
    text = EDGES + PAIR.format("p0") + "p0(y, x) :- e(x, y).\n"
    text += "".join(f"{PAIR.format(f'p{n}')}p{n}(x, y + {n}) :- p{n - 1}(x, y).\n" for n in range(1, 41))
    assert views_of(text).keys() == {f"p{n}" for n in range(41)} - {"p17", "p34"}
    with dlog.session(text) as s:
        s.insert("e", [(5, 7)])
        s.commit()
        assert set(s["p40"]) == {(7, 5 + sum(range(41)))} == {row for row, _ in s.changes("p40")}


def test_definitions_that_double_make_no_view_of_exponential_size() -> None:
    defined = "".join(f", a{n} = a{n - 1} * a{n - 1}" for n in range(1, 61))
    for body in ("e(x, a0)", "e(x, a0), e(a0, _)"):
        text = f"{EDGES}.decl p(x: number, y: number, z: number)\np(x, a0, a60) :- {body}{defined}.\n"
        assert "p" not in views_of(text)
        with dlog.session(text) as s:
            s.insert("e", [(1, 1), (2, 0)])
            s.commit()
            assert (1, 1, 1) in s["p"]


@pytest.mark.parametrize("name", OTHERS)
def test_others_are_not(name: str) -> None:
    assert "p" not in views_of(program_of(OTHERS[name]))


def test_a_map_with_other_columns_is_a_view_where_nobody_compares_them() -> None:
    text = ".decl w(x: number, n: number, y: number, again: number)\nw(x, 7, y, x) :- e(x, y).\n.decl q(x: number)\n"
    for body, is_view in [
        ("w(x, _, _, _)", True),
        ("w(x, 7, _, _)", True),
        ("w(x, 8, _, _)", False),
        ("e(x, y), !w(x, 7, y, _)", True),
        ("w(x, n, _, _), n > x", False),
        ("w(x, _, _, y), x < y", False),
    ]:
        assert ("w" in views_of(f"{EDGES}{text}q(x) :- {body}.\n")) is is_view, body


@pytest.mark.parametrize("share", [0, viewed.MIN_SOURCE_SHARE])
@examples(100)
@given(story=stories(staged_programs()))
def test_every_round_equals_naive_evaluation_on_programs_with_stages(share: int, story: Story) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(viewed, "MIN_SOURCE_SHARE", share)  # 0: of all filters that are read rows are kept
        check(make_engine, story)


def test_floats_and_unsigned_numbers_are_compared_as_such() -> None:
    text = (
        ".decl e(x: float, n: unsigned)\n.input e\n.decl p(x: float, n: unsigned)\np(x, n) :- e(x, n), x = 0.0, n > 9.\n"
        ".decl o(x: float, n: unsigned)\no(x, n) :- e(x, n), x != x.\n"
    )
    with dlog.session(text) as s:
        s.insert("e", [(0.0, 2**64 - 1), (-0.0, 10), (0.0, 9), (1.0, 10), (float("nan"), 5)])
        s.commit()
        assert set(s["p"]) == {(0.0, 2**64 - 1), (-0.0, 10)} and len(s["o"]) == 1
        assert views_of(text).keys() == {"p", "o"}


def test_strings_of_views_are_there_when_a_state_is_opened_again(tmp_path: Path) -> None:
    text = '.decl e(x: symbol)\n.decl p(x: symbol, kind: symbol)\np(x, "kind") :- e(x), x != "no".\n'
    for number in range(3):
        with dlog.session(text, state=tmp_path / "state") as s:
            s.insert("e", [(f"s{number}",), ("no",)])
            s.commit()
            assert set(s["p"]) == {(f"s{n}", "kind") for n in range(number + 1)}


@pytest.mark.parametrize(
    ("rule", "fresh"),
    [
        ("p(y, x, 0) :- e(x, y).", False),
        ("p(y, x, x) :- e(x, y).", False),
        ("p(x, y, 0) :- e(x, y), x < 3.", False),
        ("q(y, x) :- e(x, y).", True),
    ],
)
def test_columns_of_a_view_are_its_readers_own_where_nobody_else_has_them(rule: str, fresh: bool) -> None:
    text = f"{EDGES}{PAIR.format('q')}.decl p(x: number, y: number, z: number)\n{rule}\n"
    assert views_of(text).keys() == {rule[0]}
    with dlog.session(text) as s:
        s.insert("e", [(n, n + 1) for n in range(100)])
        s.commit()
        before, table = set(s[rule[0]]), s.at().table(rule[0])
        assert table.fresh is fresh and len(before) == table.rows
        if fresh:
            for column in table.columns:
                column[:] = -1
        assert set(s[rule[0]]) == before


def test_rows_of_a_filter_that_keeps_few_are_not_looked_for_again_at_each_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real: Callable[..., Any] = viewed.seen_table

    def seen_table(view: View, table: Any, *others: Any) -> Any:
        made.append(table.rows)
        return real(view, table, *others)

    monkeypatch.setattr(viewed, "seen_table", seen_table)
    with dlog.session(program_of("p(x, y) :- e(x, y), x < 3.")) as s:
        s.insert("e", [(n, n) for n in range(1000)])
        s.commit()
        assert len(s["p"]) == 3 and made == [1000]
        for round in range(20):
            s.insert("e", (round % 5, -round - 1))
            s.remove("e", (2, 2))
            s.commit()
            if round % 4:
                assert set(s["p"]) == {(x, y) for x, y in s["e"] if x < 3}
        assert made == [1000]
        for _ in range(viewed.MAX_COMMITS_UNREAD + 2):
            s.insert("e", (5, s.round))
            s.commit()
        assert s._engine._cached == {}  # type: ignore[attr-defined]
        assert set(s["p"]) == {(x, y) for x, y in s["e"] if x < 3} and len(made) == 2
        s.insert("e", [(1, -n) for n in range(1000)])
        s.commit()
        assert set(s["p"]) == {(x, y) for x, y in s["e"] if x < 3} and len(made) == 3


def test_chains_of_stages_may_be_long() -> None:
    names = ["e", *(f"s{n}" for n in range(2500))]
    rules = "".join(
        PAIR.format(b) + f"{b}(y, x) :- {a}(x, y){', x != y' if n % 2 else ''}.\n" for n, (a, b) in enumerate(pairwise(names))
    )
    driver = Driver(make_engine, EDGES + rules)
    assert isinstance(driver.engine, Viewed) and len(driver.engine.views) == 2500
    for number in range(3):
        driver.commit([[("e", (number, 9 * number), 1)]])
        assert driver.rows("s2499") == {(n, 9 * n) for n in range(1, number + 1)}
        assert driver.changes("s2499") == ({number + 1: {repr((number, 9 * number)): 1}} if number else {})
    made = make_engine(driver.program, old=driver.engine)
    made.commit({})
    assert isinstance(made, Viewed) and (made.rows("s2499"), made.changes("s2499").rows) == (2, 0)


def test_a_commit_touches_views_of_what_it_has_touched_and_no_others() -> None:
    names = [f"{a}{i}" for i in range(4) for a in "abc"]
    text = "".join(f".decl {name}(x: number)\n" for name in names)
    text += "".join(f"b{i}(x) :- a{i}(x), x > 3.\nc{i}(x) :- b{i}(x).\n" for i in range(4))
    with dlog.session(text) as s:
        s.insert("a1", [(1,)])
        s.commit()
        s.insert("a2", [(1,), (5,)])
        done = s.commit()
        assert list(s.touched) == list(done) == ["a2", "b2", "c2"]
        s.insert("a3", [(1,)])
        assert list(s.commit()) == ["a3"]


CHAIN = program_of("p(y, x) :- e(x, y).") + PAIR.format("q") + "q(y, x) :- p(x, y), x != y.\n"
READERS = {
    "none": "",
    "a join": PAIR.format("r") + "r(x, z) :- p(x, y), e(y, z).\n",
    "a negation": PAIR.format("r") + "r(x, y) :- e(x, y), !p(x, y).\n",
    "a count": PAIR.format("r") + "r(x, n) :- e(x, _), n = count : { p(x, _) }.\n",
    "recursion": PAIR.format("r") + "r(x, y) :- p(x, y).\nr(x, z) :- r(x, y), p(y, z).\n",
    "a copy": PAIR.format("r") + "r(y, x) :- q(x, y).\n",
    "a count of the filter": ".decl r(x: number, n: number)\nr(x, n) :- e(x, _), n = count : { q(x, _) }.\n",
    "a count of its values": ".decl r(x: number, n: number)\nr(x, n) :- e(x, _), n = count : { q(z, _), z < x }.\n",
    "a sum of its rows": ".decl r(n: number)\nr(n) :- n = sum y : { q(_, y) }.\n",
    "a sum of rows that agree": ".decl r(n: number)\nr(n) :- n = sum 3 : { q(x, x) }.\n",
    "a column of the filter": ".decl r(n: number)\nr(y) :- q(_, y), y > 2.\n",
    "what is computed anew": ".decl r(x: number)\nr(0).\nr(z) :- r(x), p(x, y), z = (y + 1) / (x + 1).\n"
    ".decl v(x: number)\nv(x) :- r(x), x > 1.\n",
    "a join of the filter": PAIR.format("r") + "r(x, z) :- q(x, y), q(y, z).\n",
}


def rounds(seed: int) -> list[list[tuple[str, tuple[int, int], int]]]:
    random = np.random.default_rng(seed)
    there: set[tuple[int, int]] = set()
    told = []
    for _ in range(12):
        changed = {(int(x), int(y)) for x, y in random.integers(0, 6, (7, 2))}
        told.append([("e", row, -1 if row in there else 1) for row in sorted(changed)])
        there ^= changed
    return told


@pytest.mark.parametrize("name", READERS)
def test_views_are_as_relations_with_rows_after_each_round(name: str) -> None:
    seeing, storing = (Driver(make, CHAIN + READERS[name]) for make in (make_engine, storing_engine))
    assert isinstance(seeing.engine, Viewed)
    told = rounds(len(name))
    for size in (1, 1, 3, 1, 4, 2):
        part, told = told[:size], told[size:]
        for driver in (seeing, storing):
            driver.commit(part)
        for relation in seeing.program.relations:
            assert seeing.rows(relation) == storing.rows(relation)
            assert seeing.changes(relation) == storing.changes(relation)
        assert {n for n in storing.engine.program.relations if storing.changes(n)} <= set(seeing.engine.touched)
    assert not told
    for driver in (seeing, storing):
        driver.engine.close()


def held(text: str, rows: int) -> int:
    engine = make_engine(compile_source(Source(text)))
    columns = np.arange(rows), np.arange(rows) * 7919 % 10007
    engine.commit({"e": Updates(columns, np.ones(rows, np.int64), np.ones(rows, np.int64))})
    kept = stored(engine)
    used = int(kept.memory.used)  # type: ignore[attr-defined]
    assert engine.rows("e") == rows
    engine.close()
    return used


def test_stages_that_map_or_filter_hold_no_rows() -> None:
    rows = 20_000
    names = ["e", *(f"s{n}" for n in range(4))]
    maps = "".join(PAIR.format(b) + f"{b}(y, x) :- {a}(x, y).\n" for a, b in pairwise(names))
    filters = "".join(PAIR.format(b) + f"{b}(x, y) :- {a}(x, y), x != y.\n" for a, b in pairwise(names))
    last = PAIR.format("t") + "t(x, y) :- s3(x, y), x < y + 20000.\n"
    alone = held(EDGES, rows)
    assert held(EDGES + maps + last, rows) <= alone + 1024
    assert held(EDGES + filters + last, rows) <= alone + 1024
    counts = ".decl c(n: number)\nc(n) :- n = count : {{ {}(_, _) }}.\n"
    assert held(EDGES + filters + counts.format("s3"), rows) <= held(EDGES + counts.format("e"), rows) + 1024
    assert held(EDGES + last.replace("s3(x, y)", "e(x, _), y = x"), rows) > alone + 10 * rows


def test_a_view_may_become_a_relation_with_rows_and_a_view_again_while_a_session_lives() -> None:
    with dlog.session(program_of("p(y, x) :- e(x, y), x != y.")) as s:
        s.insert("e", [(1, 2), (2, 2), (2, 3)])
        s.commit()
        assert set(s["p"]) == {(2, 1), (3, 2)}
        s.add_rules(PAIR.format("r") + "r(x, z) :- p(x, y), p(y, z).")
        assert set(s["r"]) == {(3, 1)}
        assert set(s["p"]) == {(2, 1), (3, 2)}
        s.insert("e", [(3, 4)])
        s.commit()
        assert list(s.changes("p")) == [((4, 3), 1)]
        s.drop_relation("r")
        s.remove("e", [(1, 2)])
        s.commit()
        assert set(s["p"]) == {(3, 2), (4, 3)}
        assert list(s.changes("p")) == [((2, 1), -1)]


def test_subscriptions_past_rounds_queries_and_proofs_know_views() -> None:
    seen: list[object] = []
    with dlog.session(program_of("p(y, x) :- e(x, y), x != y."), history=5) as s:
        s.subscribe("p", lambda round, changes: seen.append((round, list(changes))))
        s.insert("e", [(1, 2), (2, 2)])
        s.commit()
        s.insert("e", [(2, 3)])
        s.commit()
        assert seen == [(1, [((2, 1), 1)]), (2, [((3, 2), 1)])]
        assert set(s.at(1)["p"]) == {(2, 1)}
        assert list(s.query("p(x, 2)")) == [(3,)]
        assert "e(2, 3)" in str(s.why("p", (3, 2)))
        assert "p: view of e" in s.explain()


def test_a_state_is_opened_again_with_its_views(tmp_path: Path) -> None:
    text = program_of("p(y, x) :- e(x, y), x != y.") + PAIR.format("r") + "r(x, z) :- e(x, y), e(y, z).\n"
    with dlog.session(text, state=tmp_path / "state") as s:
        s.insert("e", [(1, 2), (2, 2)])
        s.commit()
    with dlog.session(text, state=tmp_path / "state") as s:
        assert set(s["p"]) == {(2, 1)}
        s.insert("e", [(2, 3)])
        s.commit()
        assert list(s.changes("p")) == [((3, 2), 1)]
        assert set(s["p"]) == {(2, 1), (3, 2)}


def test_a_session_without_views_goes_on_where_rules_with_one_are_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Viewed, relation: str) -> Updates:
        raise KeyboardInterrupt

    with dlog.session(EDGES + PAIR.format("r") + "r(x, z) :- e(x, y), e(y, z).\n", threads=1) as s:
        s.insert("e", [(1, 2), (2, 3)])
        s.commit()
        with monkeypatch.context() as patch:
            patch.setattr(Viewed, "changes", interrupted)
            with pytest.raises(KeyboardInterrupt):
                s.add_rules(PAIR.format("p") + "p(y, x) :- r(x, y).\n" + PAIR.format("q") + "q(x, z) :- p(x, y), e(y, z).")
        assert set(s["r"]) == {(1, 3)}
        s.insert("e", [(3, 4)])
        s.commit()
        assert set(s["r"]) == {(1, 3), (2, 4)}
        assert list(s.changes("r")) == [((2, 4), 1)]


@pytest.mark.parametrize("rule", ["p(x, y) :- f(x, y).", "p(x, y) :- e(x, y), x > 5."])
def test_a_round_that_changes_a_view_and_what_it_is_of_tells_both(rule: str) -> None:
    with dlog.session(program_of("p(y, x) :- e(x, y).") + PAIR.format("f"), threads=1) as s:
        s.insert("e", [(1, 2)])
        s.commit()
        done = s.add_rules(f"{rule}\ne(7, 8).")
        now = {(2, 1), (8, 7), *({(7, 8)} if "x > 5" in rule else ())}
        assert set(s["p"]) == now
        assert set(done.changes("p")) == {(row, 1) for row in now - {(2, 1)}}
        done = s.drop_rules(rule)
        assert set(s["p"]) == {(2, 1), (8, 7)} and len(done.changes("p")) == len(now) - 2


def test_plans_name_views(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(program_of(FILTERS["in order"]) + ALONE)
    told = explain_rounds(tmp_path / "p.dl", (), ())
    assert told.endswith("\np: view of e, without rows of its own\n") and "stratum p," not in told
