"""Past rounds: every one within the window is what the program says of that round's inputs, also after a restart."""

from __future__ import annotations

import json
import tempfile
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.ir.rules import Kind
from dlog.engine.trace import changes, past_rows
from dlog.engine.trace.changes import ChangeTrace
from dlog.engine.trace.past_rows import KnownTables
from dlog.sessions.follow import history
from dlog.sessions.persistence import checkpoints
from tests.dlog.persistence.state_sessions import PATHS, Open, code, crash, put
from tests.examples import examples
from tests.rounds import State, Story, grouped, states_of, stories
from tests.strategies import random_programs

Texts = set[str]


def commit(session: dlog.Session, rounds: list[Any]) -> None:
    """The next rounds, all in one commit."""
    now = session.round
    session.apply((now + k, name, diff, row) for k, round in enumerate(rounds, 1) for name, row, diff in round)
    while session.round < now + len(rounds):
        session.commit()


def texts(rows: Any) -> Texts:
    return set(map(repr, rows))


def check_window(session: dlog.Session, states: dict[int, State], oldest: int) -> None:
    """Every round from the oldest one on, and the difference of any two."""
    readable = range(oldest, session.round + 1)
    for round in readable:
        with session.at(round) as view:
            for name in session:
                assert texts(view[name]) == states[round][name].keys(), f"{name} as of round {round} of {session.round}"
    for earlier, later in [*pairwise(readable), (oldest, session.round), (session.round, oldest)]:
        with session.diff(earlier, later) as diff:
            for name in session:
                before, after = states[earlier][name].keys(), states[later][name].keys()
                expected = dict.fromkeys(after - before, 1) | dict.fromkeys(before - after, -1)
                found = [(repr(row), sign) for row, sign in diff[name]]
                assert len(found) == len(expected) and dict(found) == expected, f"{name} from {earlier} to {later}"
    if oldest:
        assert code(lambda: session.at(oldest - 1)) == "unknown-round"


def check_value(session: dlog.Session, states: dict[int, State], name: str, round: int, asked: int) -> None:
    """The rows of a relation as of a round that have the value of a column that some row has in one of the rounds."""
    relation = session.program.relations[name]
    rows = [row for state in states.values() for row in state[name].values()]
    columns = [c for c, kind in enumerate(relation.kinds) if kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.SYMBOL)]
    if not rows or not columns:
        return
    column = columns[asked % len(columns)]
    value = rows[asked % len(rows)][column]
    literal = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    names = [f"V{c}" if c != column else literal for c in range(relation.arity)]
    expected = {repr((*row[:column], *row[column + 1 :])) for row in states[round][name].values() if row[column] == value}
    moment = f"{name}@{round}" if asked % 2 and round else name
    with session.at(session.round if moment != name else round) as view:
        found = view.query(f"{moment}({', '.join(names)})")
        assert texts(found) == expected, f"{name} with {literal} as of round {round} of {session.round}"


def states_by_round(story: Story, first: int) -> dict[int, State]:
    """The relations as of each round of a session whose program's facts are its round `first`, if that is 1."""
    empty: State = {r.name: {} for r in story.case.relations}
    facts = {1: states_of(story.case, [[]])[0]} if first else {}
    return {0: empty, **facts, **dict(enumerate(states_of(story.case, story.rounds), first + 1))}


@examples(40)
@given(story=stories(random_programs(), most=8), window=st.integers(0, 4))
def test_every_round_of_the_window_is_what_its_inputs_give(story: Story, window: int) -> None:
    with dlog.session(story.case.text, history=window, threads=1) as s:
        first = s.round
        states, done = states_by_round(story, first), 0
        for size in grouped(len(story.rounds), story.groups):
            commit(s, story.rounds[done : done + size])
            done += size
            check_window(s, states, max(0, s.round - window))


@examples(60)
@given(
    story=stories(random_programs(), most=10),
    window=st.integers(1, 8),
    per_change=st.sampled_from([0, 2, 1000]),
    reads=st.lists(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), max_size=4), min_size=1, max_size=5),
)
def test_rounds_are_read_in_any_order_whatever_commits_keep(
    story: Story, window: int, per_change: int, reads: list[list[tuple[int, int]]]
) -> None:
    """After each commit some relations are read as of some rounds; which rows are kept depends on what was read before."""
    with pytest.MonkeyPatch.context() as patch, dlog.session(story.case.text, history=window, threads=1) as s:
        for module in (history, past_rows):
            patch.setattr(module, "MANY_CHANGES", 1)
        values = {"ROWS_OF_A_COPY": 0, "ROWS_PER_CHANGE": per_change, "KEPT_ROWS_PER_CHANGE": 1000}
        for constant, value in values.items():
            patch.setattr(past_rows, constant, value)
        states, done, names = states_by_round(story, s.round), 0, list(s)
        for k, size in enumerate(grouped(len(story.rounds), story.groups)):
            commit(s, story.rounds[done : done + size])
            done += size
            for which, back in reads[k % len(reads)] if names else ():
                name, round = names[which % len(names)], s.round - back % (min(window, s.round) + 1)
                if back >= 50:
                    check_value(s, states, name, round, back)
                else:
                    assert texts(s.at(round)[name]) == states[round][name].keys(), f"{name} as of round {round} of {s.round}"
        check_window(s, states, max(0, s.round - window))


@examples(25)
@given(
    story=stories(random_programs(), most=8),
    window=st.integers(1, 6),
    ends=st.lists(st.sampled_from(["goes on", "closes", "crashes", "checkpoints"]), min_size=1, max_size=6),
)
def test_2_18_history_survives_however_a_session_ends(story: Story, window: int, ends: list[str]) -> None:
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        s = dlog.session(story.case.text, history=window, threads=1, state=place, sync="never")
        states, done = states_by_round(story, s.round), 0
        for k, size in enumerate(grouped(len(story.rounds), story.groups)):
            commit(s, story.rounds[done : done + size])
            done += size
            end = ends[k % len(ends)]
            patch.setattr(checkpoints, "MIN_LOG_BYTES", 0 if end == "checkpoints" else 1 << 20)
            if end in ("closes", "crashes"):
                s.close() if end == "closes" else crash(s)
                s = dlog.session(story.case.text, history=window, threads=1, state=place, sync="never")
            if s.round and (names := list(s)):
                check_value(s, states, names[k % len(names)], max(1, s.round - window), k)
            check_window(s, states, max(0, s.round - window))
        s.close()


def test_history_goes_on_where_it_was_left(reopen: Open) -> None:
    with reopen(history=10) as s:
        for x in range(1, 5):
            put(s, (x, x + 1))
        s.remove("edge", (1, 2))
        s.commit()
    s = reopen(history=10)
    assert [len(s.at(round)["path"]) for round in range(6)] == [0, 1, 3, 6, 10, 6]
    assert sorted(s.diff(2, 5)["edge"]) == [((1, 2), -1), ((3, 4), 1), ((4, 5), 1)]
    put(s, (5, 6))
    s = reopen(history=2)
    assert len(s.at(4)["path"]) == 10
    assert code(lambda: s.at(3)) == "unknown-round"
    s = reopen()
    assert code(lambda: s.at(4)) == "unknown-round"


def test_history_begins_with_another_program(reopen: Open) -> None:
    with reopen(history=10) as s:
        put(s, (1, 2))
        s.add_rules("path(x, x) :- edge(x, _).")
        put(s, (2, 3))
        assert sorted(s.at(1)["path"]) == [(1, 2)]
    with reopen(None, history=10) as s:
        assert [sorted(s.at(round)["path"]) for round in (1, 2)] == [[(1, 2)], [(1, 1), (1, 2)]]
    with pytest.warns(RuntimeWarning, match="not the one that the state was left with"):
        s = reopen(PATHS, history=10)
    assert s.round == 4
    assert code(lambda: s.at(3)) == "unknown-round"


def test_a_program_that_changes_in_a_session_leaves_its_history(reopen: Open) -> None:
    s = reopen(history=10)
    put(s, (1, 2))
    s.add_rules(".decl back(x: number, y: number) back(y, x) :- edge(x, y).")
    put(s, (2, 3))
    s.drop_relation("back")
    s.add_rules(".decl back(x: symbol)")
    s.insert("back", ("a",))
    s.commit()
    for _ in range(2):
        assert [sorted(s.at(round)["back"]) for round in range(1, 7)] == [[], [], [], [], [], [("a",)]]
        assert [len(s.at(round)["path"]) for round in range(1, 7)] == [1, 1, 3, 3, 3, 3]
        s = reopen(None, history=10)


def test_damaged_history_begins_anew(reopen: Open, tmp_path: Path) -> None:
    with reopen(history=10) as s:
        put(s, (1, 2))
        put(s, (2, 3))
    relations = json.loads((tmp_path / "state" / "manifest.json").read_text())["relations"]
    batches = [batch for name, found in relations.items() if name.endswith("/past") for batch in found["batches"]]
    layers = [layer["file"] for batch in batches for layer in batch["layers"]]
    assert len(layers) == 3
    for layer in (tmp_path / "state" / name for name in layers):
        content = layer.read_bytes()
        layer.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
        with pytest.warns(RuntimeWarning, match="the history begins anew"):
            s = reopen(history=10)
        assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]
        assert code(lambda s=s: s.at(1)) == "unknown-round"  # type: ignore[misc]
        crash(s)
        layer.write_bytes(content)
    assert len(reopen(history=10).at(1)["path"]) == 1


def test_history_by_time_has_the_rounds_of_a_while() -> None:
    now = 0
    s = dlog.session(PATHS, history=timedelta(seconds=10))
    s._followers.history._clock = lambda: now
    for x in range(1, 30):
        now = x * 1_000_000_000
        put(s, (x, x + 1))
        assert len(s.at(max(0, x - 10))["edge"]) == max(0, x - 10)
        if x > 12:
            assert code(lambda x=x: s.at(x - 12)) == "unknown-round"  # type: ignore[misc]
    s.history(timedelta(seconds=2))
    assert code(lambda: s.at(20)) == "unknown-round"
    assert len(s.at(27)["edge"]) == 27


def test_history_by_time_survives_a_restart(reopen: Open) -> None:
    with reopen(history=timedelta(hours=1)) as s:
        put(s, (1, 2))
        put(s, (2, 3))
    put(reopen(history=timedelta(hours=1)), (3, 4))
    s = reopen(history=timedelta(hours=1))
    assert [len(s.at(round)["edge"]) for round in range(4)] == [0, 1, 2, 3]


def test_a_difference_keeps_its_rounds_while_it_is_open() -> None:
    s = dlog.session(PATHS, {"edge": [(1, 2)]})
    diff = s.diff(1)
    assert (diff.rounds, list(diff), len(diff["path"])) == ((1, 1), [], 0)
    with s.at(1) as before:
        put(s, (2, 3))
        with s.diff(1, 2) as changed:
            put(s, (3, 4))
            assert sorted(changed) == ["edge", "path"]
            assert sorted(changed["path"]) == [((1, 3), 1), ((2, 3), 1)]
            assert changed["path"].rounds.tolist() == [2, 2]
        assert len(before["path"]) == 1
    assert code(lambda: s.diff(0)) == "unknown-round"
    assert code(lambda: s.diff(1, 9)) == "unknown-round"
    assert code(lambda: changed["edge"].name and s.diff(3, 3)["none"]) == "unknown-relation"


def test_the_memory_of_history_is_that_of_its_window() -> None:
    """Fifty rows of which each round replaces one, in rounds of many and of one."""
    s = dlog.session(".decl seen(x: number, y: number)\n", {"seen": [(x, -x) for x in range(50)]}, history=1000)
    history = s._followers.history
    for start in range(0, 40_000, 4000):
        s.apply(
            (s.round + 1 + k, "seen", diff, (x, -x)) for k in range(4000) for x, diff in ((start + k, -1), (start + k + 50, 1))
        )
        assert history.rows <= 4 * 2 * 4000
    for k in range(40_000, 43_000):
        s.remove("seen", (k, -k))
        s.insert("seen", (k + 50, -k - 50))
        s.commit()
        assert history.rows <= 4 * 2 * 4000
    assert history.rows <= 4 * 2 * 1000 and history.nbytes <= 20 * history.rows
    assert {x for x, _ in s.at(s.round - 1000)["seen"]} == set(range(42_000, 42_050))
    s.history(0)
    assert history.rows == 0


def replace_half(s: dlog.Session, rows: int, rounds: int = 1) -> None:
    """Replaces half of the rows of `seen`, of which there are so many, in each round."""
    for _ in range(rounds):
        first = (int(s.round) - 1) * rows // 2
        s.remove("seen", [(x,) for x in range(first, first + rows // 2)])
        s.insert("seen", [(x,) for x in range(first + rows, first + rows + rows // 2)])
        s.commit()


def seen_as_of(s: dlog.Session, rows: int, round: int) -> bool:
    first = (round - 1) * rows // 2
    return sorted(s.at(round)["seen"].to_numpy()["x"].tolist()) == list(range(first, first + rows))


@pytest.mark.parametrize("rows", [1_000, 20_000])
def test_what_a_commit_has_kept_is_read_without_its_changes(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a thousand rows stay with the engine then."""
    s = dlog.session(".decl seen(x: number)\n", {"seen": [(x,) for x in range(rows)]}, history=10, threads=1)
    replace_half(s, rows, 3)
    assert seen_as_of(s, rows, s.round - 1)
    replace_half(s, rows)
    kept = s._followers.history._kept
    assert (kept is not None) == (rows == 1_000)
    monkeypatch.setattr(changes, "changed_at_once", None)
    monkeypatch.setattr(changes, "PickedChanges", None)
    for _ in range(2):
        replace_half(s, rows)
        assert seen_as_of(s, rows, s.round - 1)
    assert kept is None or s._followers.history._kept is not None


def test_batches_are_made_by_commits_not_by_who_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    s = dlog.session(".decl seen(x: number)\n", {"seen": [(0,)]}, history=1000)
    seal, read, made = ChangeTrace._seal, False, 0

    def counted(trace: ChangeTrace) -> None:
        nonlocal made
        assert not read
        made += 1
        seal(trace)

    monkeypatch.setattr(ChangeTrace, "_seal", counted)
    for x in range(1, 3 * changes.MAX_WAITING):
        s.insert("seen", (x,))
        s.commit()
        read = True
        assert len(s.at(s.round - 1)["seen"]) == x
        read = False
    assert made


def test_a_commit_is_done_where_there_is_no_memory_to_keep_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    s = dlog.session(".decl seen(x: number)\n", {"seen": [(x,) for x in range(1_000)]}, history=10)
    replace_half(s, 1_000, 3)
    assert seen_as_of(s, 1_000, 3)
    monkeypatch.setattr(KnownTables, "keep_present", _no_memory)
    replace_half(s, 1_000)
    assert s.round == 5
    assert seen_as_of(s, 1_000, 4)


def _no_memory(*_: object) -> None:
    raise MemoryError


def test_a_relation_that_takes_the_name_of_one_that_was_read_has_rows_of_its_own() -> None:
    s = dlog.session(".decl seen(x: number)\n.decl other(x: number)\n", {"seen": [(x,) for x in range(1_000)]}, history=10)
    replace_half(s, 1_000, 2)
    assert seen_as_of(s, 1_000, 2)
    replace_half(s, 1_000)
    s.drop_relation("seen")
    s.add_rules(".decl seen(x: number)")
    s.insert("seen", [(x,) for x in range(5_000)])
    s.commit()
    assert [len(s.at(round)["seen"]) for round in range(4, 8)] == [0, 0, 0, 5_000]
