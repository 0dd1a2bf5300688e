"""Questions and rules about past rounds: `r@-1(x)`, `r@17(x)`, and relations that keep a history of their own."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import dlog
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.sessions.persistence.inspection import dump_state
from tests.dlog.command import Finished
from tests.dlog.command import dlog as command
from tests.dlog.persistence.state_sessions import Open, code, crash
from tests.dlog.sessions.test_history import commit, texts
from tests.examples import examples
from tests.naive import TooBig
from tests.naive_past import states_with_past
from tests.rounds import BUDGET, Story, grouped, stories
from tests.strategies import random_programs

RULES = """
.decl r(x: number)
.decl new(x: number)
.decl ever(x: number)
new(x) :- r(x), !r@-1(x).
ever(x) :- r(x).
ever(x) :- ever@-1(x).
"""


def put(s: dlog.Session, *rows: int, gone: tuple[int, ...] = ()) -> None:
    s.insert("r", [(x,) for x in rows])
    s.remove("r", [(x,) for x in gone])
    s.commit()


# -------------------------------------------------------------------------------------------------------------- questions


def test_questions_read_past_rounds() -> None:
    s = dlog.session(".decl r(x: number)\n", history=3)
    for x in range(1, 7):
        put(s, x, gone=(x - 2,))
    assert sorted(s.query("?- r@4(x).")) == [(3,), (4,)]
    assert sorted(s.query("?- r@-1(x), r(x).")) == [(5,)]
    assert sorted(s.query("?- r(x), !r@-2(x).")) == [(5,), (6,)]
    assert sorted(s.query("?- n = count : { r@-3(_) }, r@3(n).")) == [(2,)]
    assert sorted(s.at(5).query("?- r@-1(x).")) == [(3,), (4,)]
    assert sorted(s.query(".decl both(x: number) both(x) :- r@-1(x), r@4(x).\n?- both(x).")) == [(4,)]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("?- r@2(x).", "round 2 of `r` cannot be read: there are rounds 3 to 6"),
        ("?- r@-4(x).", "round 2 of `r` cannot be read: there are rounds 3 to 6"),
        ("?- r@7(x).", "round 7 of `r` cannot be read: there are rounds 3 to 6"),
        ("?- q@1(x).", "unknown relation `q`"),
        ("?- r@1(x, y).", "`r@1` has 1 attribute, but 2 arguments here"),
        ("?- r@-0(x).", "unexpected `@`"),
    ],
)
def test_rounds_that_cannot_be_read_are_refused(question: str, expected: str) -> None:
    s = dlog.session(".decl r(x: number)\n", history=3)
    for x in range(1, 7):
        put(s, x)
    with pytest.raises(dlog.DlogError) as raised:
        s.query(question)
    assert expected in str(raised.value)


def test_a_view_does_not_see_what_comes_after_it() -> None:
    s = dlog.session(".decl r(x: number)\n", history=3)
    for x in range(1, 4):
        put(s, x)
    with s.at(2) as view:
        assert code(lambda: view.query("?- r@3(x).")) == "unknown-round"


# ------------------------------------------------------------------------------------------------------------------ rules


def test_rules_read_the_round_before() -> None:
    s = dlog.session(RULES)
    for x in range(4):
        put(s, x, gone=(x - 1,))
        assert sorted(s["new"]) == [(x,)]
    s.commit()
    assert (sorted(s["new"]), sorted(s["ever"])) == ([], [(0,), (1,), (2,), (3,)])
    assert (list(s), len(s), "r@-1" in s) == (["r", "new", "ever"], 3, False)
    assert len(s.at(s.round - 1)["r"]) == 1


def test_many_rounds_at_once_are_one_after_the_other() -> None:
    s = dlog.session(RULES)
    new = s.subscribe("new")
    done = s.apply([(1, "r", 1, (7,)), (4, "r", 1, (8,)), (4, "r", -1, (7,))])
    expected = [(1, [((7,), 1)]), (2, [((7,), -1)]), (4, [((8,), 1)])]
    assert [(n, sorted(c)) for n, c in done.changes("new").by_round()] == expected
    assert [(n, sorted(c)) for n, c in new.fetch()] == expected
    assert (done.first, done.number, sorted(done)) == (1, 4, ["ever", "new", "r"])


def test_relations_of_components_have_a_past() -> None:
    text = ".comp C { .decl p(x: number) .decl gone(x: number)\ngone(x) :- p@-1(x), !p(x). }\n.init c = C\n"
    s = dlog.session(text + ".decl out(x: number)\nout(x) :- c.gone@-1(x).\n", {"c.p": [(1,), (2,)]})
    s.remove("c.p", (1,))
    s.commit()
    assert (sorted(s["c.gone"]), sorted(s["out"])) == ([(1,)], [])
    s.commit()
    assert (sorted(s["c.gone"]), sorted(s["out"])) == ([], [(1,)])
    assert sorted(s.query("?- c.gone@-1(x).")) == [(1,)]


def test_lattices_and_equivalences_have_a_past_of_rows() -> None:
    s = dlog.session("""
    .lattice number<> { Bottom -> 0, Lub -> _ bor _, Glb -> _ band _ }
    .decl given(k: symbol, v: number)
    .decl best(k: symbol, v: number<>)
    .decl same(x: symbol, y: symbol) eqrel
    .decl before(k: symbol, v: number)
    .decl were(x: symbol, y: symbol)
    best(k, v) :- given(k, v).
    same(k, l) :- given(k, v), given(l, v).
    before(k, v) :- best@-1(k, v).
    were(x, y) :- same@-1(x, y), x != y.
    """)
    s.insert("given", [("a", 1), ("b", 1)])
    s.commit()
    s.insert("given", [("a", 2)])
    s.remove("given", [("b", 1)])
    s.commit()
    assert sorted(s["before"]) == [("a", 1), ("b", 1)]
    assert sorted(s["were"]) == [("a", "b"), ("b", "a")]
    s.commit()
    assert sorted(s["before"]) == [("a", 3)] and len(s["were"]) == 0


def test_the_past_of_a_state_is_not_dumped(reopen: Open, tmp_path: Path) -> None:
    with reopen(RULES) as s:
        put(s, 1)
        put(s, 2)
    dump_state(tmp_path / "state", tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["program.dl", "r.csv"]


def test_rules_about_a_certain_round_keep_it() -> None:
    s = dlog.session(".decl r(x: number)\n", history=2)
    for x in range(5):
        put(s, x)
    s.add_rules(".decl later(x: number) later(x) :- r(x), !r@4(x). .decl old(x: number) old(x) :- r@-2(x).")
    assert (sorted(s["later"]), sorted(s["old"])) == ([(4,)], [(0,), (1,), (2,), (3,)])
    for x in range(5, 9):
        put(s, x)
    assert (sorted(s["later"]), sorted(s["old"])) == ([(x,) for x in range(4, 9)], [(x,) for x in range(7)])
    s.drop_relation("later", "old")
    assert list(s) == ["r"]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("q(x) :- r@9(x).", "round 9 of `r` cannot be read: there are rounds 1 to 2"),
        ("q(x) :- r@-5(x).", None),
        ("r@-1(x) :- r(x).", "`r@-1` is a past round: rules and facts are for the present one"),
        ("r@1(3).", "`r@1` is a past round: rules and facts are for the present one"),
        (".decl i(x: number) inline i(x) :- r(x).\nq(x) :- i@-1(x).", "the relation `i` is inline: it has no rows"),
    ],
)
def test_rules_that_cannot_be_are_refused(rules: str, expected: str | None) -> None:
    s = dlog.session(".decl r(x: number)\n.decl q(x: number)\n", history=1)
    put(s, 1)
    put(s, 2)
    if expected is None:
        s.add_rules(rules)
        return
    with pytest.raises(dlog.DlogError) as raised:
        s.add_rules(rules)
    assert expected in str(raised.value)
    assert s.round == 2
    put(s, 3)


def test_past_rounds_take_no_rows_and_are_not_followed_by_questions() -> None:
    s = dlog.session(RULES)
    for act in (lambda: s.insert("r@-1", (1,)), lambda: s.subscribe("?- r@-1(x).")):
        assert code(act) == "past-atom"
    assert code(lambda: s["r@-1"]) == "unknown-relation"
    assert code(lambda: dlog.session(".decl r(x: number)\n.decl q(x: number)\nq(x) :- r@5(x).")) == "unknown-round"


def test_a_program_without_rounds_has_no_past(tmp_path: Path) -> None:
    with pytest.raises(dlog.DlogError, match="`r@-1` is a past round: there are none where a program is run once"):
        dlog.run(RULES)
    (tmp_path / "p.dl").write_text(RULES + ".output new\n")
    refused: Finished = command("run", "p.dl", cwd=tmp_path)
    assert refused.code == 1
    assert "p.dl:5:18" in refused.err and "rounds are those of a session" in refused.err
    assert command("check", "p.dl", cwd=tmp_path).code == 0
    stream = "1,r,+1,1\n2,r,+1,2\n2,r,-1,1\n3,r,+1,1\n"
    assert command("watch", "p.dl", cwd=tmp_path, stdin=stream).out == (
        "1,new,+1,1\n2,new,-1,1\n2,new,+1,2\n3,new,-1,2\n3,new,+1,1\n"
    )


# ---------------------------------------------------------------------------------------------------------------- windows


def test_a_relation_may_keep_a_history_of_its_own() -> None:
    s = dlog.session(".decl r(x: number) history(3)\n.decl q(x: number)\nq(x) :- r(x).\n")
    for x in range(6):
        put(s, x)
    assert sorted(s.at(3)["r"]) == [(0,), (1,), (2,)]
    assert code(lambda: s.at(2)) == "unknown-round"
    with pytest.raises(dlog.DlogError, match="round 3 of `q` cannot be read: there are rounds 6 to 6"):
        s.at(3)["q"]
    with s.at() as view:
        put(s, 6)
        assert len(view["q"]) == 6
    s.history(1)
    put(s, 7)
    assert len(s.at(s.round - 1)["q"]) == 7 and len(s.at(s.round - 3)["r"]) == 5


def test_a_history_of_its_own_survives(reopen: Open) -> None:
    program = ".decl r(x: number) history(3)\n.decl q(x: number)\nq(x) :- r(x).\n"
    s = reopen(program)
    for x in range(4):
        put(s, x)
        s = reopen(program)
    s.close()
    s = reopen(program)
    assert [len(s.at(round)["r"]) for round in (1, 2, 3)] == [1, 2, 3]
    assert code(lambda: s.at(3)["q"]) == "unknown-round"


@pytest.mark.parametrize("ends", ["closes", "crashes"])
def test_rules_about_the_past_go_on_after_a_restart(reopen: Open, ends: str) -> None:
    s = reopen(RULES)
    for x in range(6):
        put(s, x, gone=(x - 1,))
        assert (sorted(s["new"]), len(s["ever"])) == ([(x,)], x + 1)
        if ends == "closes":
            s.close()
        s = reopen(RULES)
    with pytest.raises(dlog.DlogError, match="rules about `r@-2` cannot be new where a state is opened"):
        reopen(RULES + "new(x) :- r@-2(x).\n")


def test_the_word_history_is_no_reserved_one() -> None:
    text = ".decl history(x: number) history(2)\nhistory(5).\n.decl q(x: number)\nq(x) :- history(x), history(5).\n"
    assert sorted(dlog.run(text)["q"]) == [(5,)]
    with pytest.raises(dlog.DlogError, match=r"`history\(3\)` contradicts `history\(2\)`"):
        dlog.run(".decl q(x: number) history(2) history(3)\n")


# -------------------------------------------------------------------------------------------------------------------- law


def with_past(story: Story, data: st.DataObject) -> str:
    """The program of a story with rules about past rounds of its relations, and some that read those."""
    text = story.case.text
    for k in range(data.draw(st.integers(1, 2))):
        r = data.draw(st.sampled_from(story.case.relations))
        columns = ", ".join(f"c{i}: {t}" for i, t in enumerate(r.types))
        v, n = ", ".join(f"v{i}" for i in range(len(r.types))), data.draw(st.integers(-3, -1))
        text += f".decl past{k}({columns})\n.decl ever{k}({columns})\n"
        text += data.draw(
            st.sampled_from(
                [
                    f"past{k}({v}) :- {r.name}@{n}({v}), !{r.name}({v}).\n",
                    f"past{k}({v}) :- {r.name}@{n}({v}), {r.name}@{n - 1}({v}).\n",
                    f"past{k}({v}) :- {r.name}({v}), n = count : {{ past{k}@-1({', '.join('_' * len(r.types))}) }}, n < 3.\n",
                ]
            )
        )
        text += f"ever{k}({v}) :- {r.name}({v}).\never{k}({v}) :- ever{k}@{n}({v}), !past{k}({v}).\n"
    return text


@pytest.mark.slow
@examples(40)
@given(
    story=stories(random_programs(), most=7),
    data=st.data(),
    ends=st.lists(st.sampled_from(["goes on", "goes on", "closes", "crashes"]), min_size=1, max_size=5),
)
def test_rules_about_past_rounds_read_what_was_there_then(story: Story, data: st.DataObject, ends: list[str]) -> None:
    text = with_past(story, data)
    with tempfile.TemporaryDirectory() as place:
        s = dlog.session(text, threads=1, state=place, sync="never")
        states = expected_states(text, story, s.round)
        done = 0
        for k, size in enumerate(grouped(len(story.rounds), story.groups)):
            commit(s, story.rounds[done : done + size])
            done += size
            for name in s:
                assert texts(s[name]) == texts(states[s.round][name]), f"{name} after round {s.round} of\n{text}"
            if ends[k % len(ends)] != "goes on":
                s.close() if ends[k % len(ends)] == "closes" else crash(s)
                s = dlog.session(text, threads=1, state=place, sync="never")
        s.close()


def expected_states(text: str, story: Story, first: int) -> list[Any]:
    held: dict[str, dict[str, Any]] = {r.name: {} for r in story.case.relations}
    given = [{name: [] for name in held}] * first
    for round in story.rounds:
        for name, row, diff in round:
            if diff > 0:
                held[name][repr(row)] = row
            else:
                held[name].pop(repr(row), None)
        given.append({name: list(rows.values()) for name, rows in held.items()})
    try:
        return states_with_past(parse(Source(text)), given, BUDGET)
    except TooBig:
        reject()


def test_a_number_of_rounds_may_have_any_length() -> None:
    many = "9" * 5000
    declared = f".decl r(x: number) history({many})\n.decl q(x: number)\n"
    with dlog.session(declared) as session:
        session.insert("r", [(1,)])
        session.commit()
        assert set(session["r"]) == {(1,)}
    with pytest.raises(dlog.DlogError):
        dlog.session(f"{declared}q(x) :- r@{many}(x).\n")
