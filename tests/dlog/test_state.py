"""Sessions on disk: a state goes on where it was left, whatever ended the last session."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.embedded import engines
from dlog.engine.embedded.recompute import Recompute
from dlog.engine.kernels.jit import JIT
from dlog.engine.trace.durable import files
from dlog.engine.trace.store import Store
from dlog.grammar.diagnostics import DlogError, InternalError, render_all
from dlog.sessions import state
from tests.dlog.command import ROOT
from tests.dlog.state_model import PROGRAM, all_rows, check, commit, expected

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
Open = Callable[..., dlog.Session]


@pytest.fixture
def reopen(tmp_path: Path) -> Iterator[Open]:
    """Opens a session on the one state of the test, without a closing of the last one if that is still open."""
    sessions: list[dlog.Session] = []

    def open(program: str | None = PATHS, *args: Any, **options: Any) -> dlog.Session:
        if sessions and not sessions[-1]._closed:
            crash(sessions[-1])
        sessions.append(dlog.session(program, *args, **{"state": tmp_path / "state", "threads": 1, **options}))
        return sessions[-1]

    yield open
    for session in sessions:
        with warnings.catch_warnings():
            crash(session)


def crash(session: dlog.Session) -> None:
    """Ends a session as a kill would, as far as the disk is concerned."""
    session._engine.abandon()  # type: ignore[attr-defined]


def runs(session: dlog.Session) -> bool:
    """Whether the session has an engine, that is whether anything has been derived."""
    return session._engine._inner is not None  # type: ignore[attr-defined]


def put(session: dlog.Session, *edges: tuple[int, int]) -> int:
    session.insert("edge", list(edges))
    return int(session.commit())


def refused(open: Callable[[], object]) -> DlogError:
    with pytest.raises(DlogError) as error:
        open()
    return error.value


def code(open: Callable[[], object]) -> str:
    return refused(open).diagnostics[0].code


# ------------------------------------------------------------------------------------------------------------- going on


def test_a_closed_state_is_read_without_deriving_anything(reopen: Open) -> None:
    with reopen() as s:
        assert not s.restored
        put(s, (1, 2), (2, 3))
        put(s, (3, 4))
    s = reopen()
    assert s.restored and s.round == 2
    assert sorted(s["path"]) == [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    assert s.rows("path") == 6 and s.rows("edge") == 3
    assert sorted(s["path"].to_arrow().column("y").to_pylist()) == [2, 3, 3, 4, 4, 4]
    assert sorted(s.query("?- path(1, X), X > 2.")) == [(3,), (4,)]
    with s.at() as view:
        assert len(view["path"]) == 6
    assert [(n, len(c)) for n, c in s.subscribe("path").fetch()] == [(2, 6)]
    assert not runs(s)
    s.remove("edge", (2, 3))
    assert sorted(s.commit().changes("path")) == [((1, 3), -1), ((1, 4), -1), ((2, 3), -1), ((2, 4), -1)]
    assert runs(s) and s.round == 3


def test_what_a_crash_leaves_is_derived_when_it_is_read(reopen: Open) -> None:
    program = f"{PATHS}.decl word(t: symbol) .decl long(t: symbol)\nlong(t) :- word(t), strlen(t) > 2.\n"
    with reopen(program) as s:
        s.insert("word", [("ab",), ("abc",)])
        put(s, (1, 2))
    put(reopen(program), (2, 3))
    s = reopen(program)
    assert sorted(s["edge"]) == [(1, 2), (2, 3)]
    assert sorted(s["long"]) == [("abc",)]
    assert not runs(s)
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]
    assert runs(s)
    s.close()
    s = reopen(program)
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)] and not runs(s)


@pytest.mark.parametrize("incremental", [True, False])
def test_all_kinds_of_values_and_rules_come_back_round_by_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, incremental: bool
) -> None:
    if not incremental:
        monkeypatch.setattr(engines, "make_engine", Recompute)
    monkeypatch.setattr(state, "LEAST", 300)
    for number in range(8):
        session = dlog.session(PROGRAM, state=tmp_path, threads=1, sync="never")
        for rounds in (1, 1, 3, 1):
            commit(session, 5, rounds)
        assert all_rows(session) == expected(5, session.round)
        session.close() if number % 3 else crash(session)
        assert check(tmp_path, 5, close=number % 2 == 0) == 6 * (number + 1) + 1


def test_ids_are_the_same_in_every_session(reopen: Open) -> None:
    program = ".type P = [a: symbol, b: P]\n.decl word(t: symbol)\n.decl pair(p: P)\n"
    with reopen(program) as s:
        s.insert("word", [("one",), ("two",)])
        s.insert("pair", [(("x", None),), (("y", ("x", None)),)])
        s.commit()
        words, pairs = s.at().table("word").columns[0].tolist(), s.at().table("pair").columns[0].tolist()
    s = reopen(program)
    assert sorted(s.at().table("word").columns[0].tolist()) == sorted(words)
    assert sorted(s.at().table("pair").columns[0].tolist()) == sorted(pairs)
    s.insert("word", ("three",))
    s.insert("pair", (("x", None),))
    s.commit()
    s = reopen(program)
    assert sorted(s["word"]) == [("one",), ("three",), ("two",)]
    assert set(s["pair"]) == {(("x", None),), (("y", ("x", None)),)}
    assert len(set(s.at().table("word").columns[0].tolist()) - set(words)) == 1


def test_symbols_need_not_be_text(reopen: Open) -> None:
    program = ".decl word(t: symbol)\n"
    with reopen(program) as s:
        s.insert("word", [("\udcff\udc80",), ("",), ("a\x00b",)])
        s.commit()
    assert set(reopen(program)["word"]) == {("\udcff\udc80",), ("",), ("a\x00b",)}


def test_relations_without_columns_come_back(reopen: Open) -> None:
    program = ".decl flag() .decl raised()\nraised() :- flag().\n"
    with reopen(program) as s:
        s.insert("flag", ())
        s.commit()
    s = reopen(program)
    assert len(s["flag"]) == len(s["raised"]) == 1
    s.remove("flag", ())
    s.commit()
    assert len(reopen(program)["raised"]) == 0


def test_facts_are_for_a_new_state(reopen: Open, tmp_path: Path) -> None:
    program = f"{PATHS}.input edge\nedge(7, 8).\n"
    (tmp_path / "edge.facts").write_text("1\t2\n")
    with reopen(program, str(tmp_path)) as s:
        assert sorted(s["path"]) == [(1, 2), (7, 8)]
        s.remove("edge", [(1, 2), (7, 8)])
        s.commit()
    s = reopen(program, str(tmp_path))
    assert s.round == 2 and sorted(s["path"]) == []
    put(s, (3, 4))
    assert sorted(s["edge"]) == [(3, 4)]


def test_facts_come_before_the_changes_of_the_first_commit(reopen: Open) -> None:
    s = reopen(".decl seen(x: number)\nseen(1). seen(2).\n", {"seen": [(2,), (3,)]})
    assert s.round == 1 and sorted(s["seen"]) == [(1,), (2,), (3,)]
    assert sorted(reopen(".decl seen(x: number)\nseen(1). seen(2).\n")["seen"]) == [(1,), (2,), (3,)]


def test_an_empty_state_is_as_new(reopen: Open) -> None:
    reopen().close()
    s = reopen()
    assert not s.restored and s.round == 0 and len(s["path"]) == 0
    assert list(s.changes("path")) == []


def test_what_the_last_round_of_another_session_changed_is_not_known(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    s = reopen()
    assert code(lambda: s.changes("path")) == "past-round"
    put(s, (2, 3))
    assert len(s.changes("path")) == 2


def test_views_of_the_state_outlive_commits(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    s = reopen()
    with s.at() as before:
        put(s, (2, 3))
        assert sorted(before["path"]) == [(1, 2)] and len(s["path"]) == 3


def test_upserts_see_the_rows_of_the_state(reopen: Open) -> None:
    program = ".decl price(item: symbol, euros: number)\n"
    with reopen(program, {"price": [("tea", 3), ("rum", 9)]}):
        pass
    s = reopen(program)
    s.upsert("price", ("tea", 4))
    s.commit()
    assert sorted(reopen(program)["price"]) == [("rum", 9), ("tea", 4)]


def test_proofs_of_a_state(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    assert reopen().why("path", (1, 3)).height == 2


def test_a_mark_comes_back(reopen: Open) -> None:
    s = reopen()
    assert s.mark is None
    s.insert("edge", (1, 2))
    s.commit(mark=700)
    put(s, (2, 3))
    assert s.mark == 700
    s = reopen()
    assert s.mark == 700
    s.commit_rounds({"edge": [(5, (3, 4), 1)]}, mark=-5)
    s.close()
    s = reopen()
    assert s.mark == -5 and s.round == 5


def test_marks_are_kept_without_a_state_too() -> None:
    s = dlog.session(PATHS)
    s.commit(mark=3)
    s.commit()
    assert s.mark == 3


# ------------------------------------------------------------------------------------------------------------- the program


def test_a_changed_program_keeps_the_inputs_and_says_so(reopen: Open) -> None:
    with reopen(f"{PATHS}edge(8, 9). edge(9, 9).\n") as s:
        put(s, (1, 2), (2, 3))
    changed = PATHS.replace("path(x, z) :- path(x, y), edge(y, z).", "path(y, x) :- edge(x, y).") + "edge(9, 9). edge(5, 6).\n"
    with pytest.warns(RuntimeWarning) as told:
        s = reopen(changed)
    assert str(told[0].message) == (
        "the program is not the one that the state was left with\n"
        "  - path(x, z) :- path(x, y), edge(y, z).\n"
        "  - edge(8, 9).\n"
        "  + path(y, x) :- edge(x, y).\n"
        "  + edge(5, 6).\n"
        "  its inputs are kept, everything else was derived anew: round 3"
    )
    assert told[0].filename == __file__
    assert sorted(s["edge"]) == [(1, 2), (2, 3), (5, 6), (9, 9)]
    assert sorted(s["path"]) == [(1, 2), (2, 1), (2, 3), (3, 2), (5, 6), (6, 5), (9, 9)]
    for _ in range(2):  # from the log, and from layers
        s = reopen(changed)
        assert s.round == 3 and len(s["path"]) == 7
        s.close()


def test_comments_layout_and_order_change_nothing(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lines = PATHS.strip().split("\n")
        s = reopen("// the same\n" + "\n".join([*lines[:2], lines[3], lines[2].replace(" ", "  ")]))
    assert s.round == 1 and sorted(s["path"]) == [(1, 2)] and not runs(s)


def test_a_program_that_fails_on_the_inputs_leaves_the_state_alone(reopen: Open) -> None:
    with reopen() as s:
        put(s, (0, 2))
    assert code(lambda: reopen(f"{PATHS}path(1 / x, y) :- edge(x, y).\n")) == "division-by-zero"
    s = reopen()
    assert s.round == 1 and sorted(s["path"]) == [(0, 2)] and not runs(s)


def test_inputs_of_other_types_are_refused(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    error = refused(
        lambda: reopen(
            PATHS.replace("edge(x: number, y: number)", "edge(x: number, y: symbol)")
            .replace("path(x: number, y: number)", "path(x: number, y: symbol)")
            .replace("path(x, z) :- path(x, y), edge(y, z).", "")
        )
    )
    assert [d.code for d in error.diagnostics] == ["state-program"]
    shown = render_all(error.diagnostics)
    assert "edge(x: number, y: number)" in shown and "edge(x: number, y: symbol)" in shown and "^^^^" in shown


def test_inputs_of_another_arity_are_refused(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    assert code(lambda: reopen(".decl edge(x: number)\n")) == "state-program"


def test_inputs_with_other_records_are_refused(reopen: Open) -> None:
    program = ".type P = [a: number, b: {}]\n.decl r(p: P)\n"
    with reopen(program.format("number"), {"r": [((1, 2),)]}):
        pass
    assert code(lambda: reopen(program.format("symbol"))) == "state-program"


def test_attributes_may_have_other_names_and_types_of_the_same_kind(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
    with pytest.warns(RuntimeWarning):
        s = reopen(".type Node <: number\n" + PATHS.replace("edge(x: number, y: number)", "edge(from: Node, to: Node)"))
    assert s["edge"].attributes == ("from", "to") and sorted(s["edge"]) == [(1, 2)]


def test_the_state_of_another_program_is_refused(reopen: Open) -> None:
    with reopen(f"{PATHS}.decl node(x: number)\n") as s:
        s.insert("node", (1,))
        put(s, (1, 2))
    error = refused(lambda: reopen(".decl word(t: symbol)\n"))
    assert [d.code for d in error.diagnostics] == ["state-program"]
    assert error.diagnostics[0].message == "the state has rows of `edge` and `node`, which the program does not declare"


def test_a_relation_whose_rows_are_all_from_the_text_may_go(reopen: Open) -> None:
    program = f"{PATHS}.decl old(x: number)\nold(1). old(2).\n"
    with reopen(program) as s:
        put(s, (1, 2))
    with pytest.warns(RuntimeWarning):
        assert "old" not in reopen()
    with pytest.warns(RuntimeWarning):
        assert sorted(reopen(f"{PATHS}.decl old(x: number)\n")["old"]) == []
    with reopen(None) as s:
        s.insert("old", (3,))
        s.commit()
    assert code(reopen) == "state-program"


def test_without_a_program_the_state_has_its_own(reopen: Open) -> None:
    with reopen() as s:
        put(s, (1, 2))
        s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- path(x, y).")
    s = reopen(None)
    assert sorted(s["back"]) == [(2, 1)] and not runs(s)
    put(s, (2, 3))
    assert sorted(reopen(None)["back"]) == [(2, 1), (3, 1), (3, 2)]
    with pytest.warns(RuntimeWarning, match=r"(?s)- \.decl back.*- back\(y, x\)"):
        assert "back" not in reopen()


def test_a_new_state_without_a_program_is_empty(reopen: Open) -> None:
    s = reopen(None)
    s.add_rules(".decl seen(x: number)\nseen(1).")
    s = reopen(None)
    assert sorted(s["seen"]) == [(1,)] and s.round == 1


@pytest.mark.parametrize("settled", [True, False])
def test_relations_are_dropped_for_good(reopen: Open, settled: bool) -> None:
    s = reopen(f"{PATHS}.decl node(x: number, t: symbol)\n")
    s.insert("node", [(1, "a"), (2, "b")])
    put(s, (1, 2))
    if settled:
        s.close()
        s = reopen(None)
    s.drop_relation("node")
    s.add_rules(".decl node(x: number)")
    s.insert("node", (5,))
    s.commit()
    for _ in range(2):
        s = reopen(None)
        assert sorted(s["node"]) == [(5,)] and sorted(s["path"]) == [(1, 2)]
        s.close()


@pytest.mark.parametrize("durable", [True, False])
def test_rows_of_a_relation_that_gets_rules_stay(reopen: Open, durable: bool) -> None:
    s = reopen() if durable else dlog.session(PATHS)
    put(s, (1, 2))
    s.add_rules("edge(y, x) :- edge(x, y). path(7, 7).")
    assert sorted(s["edge"]) == [(1, 2), (2, 1)]
    s.add_rules("path(x, x) :- edge(x, _).")
    assert sorted(s["path"]) == [(1, 1), (1, 2), (2, 1), (2, 2), (7, 7)]
    if durable:
        assert sorted(reopen(None)["path"]) == [(1, 1), (1, 2), (2, 1), (2, 2), (7, 7)]


def test_another_version_of_dlog_derives_anew(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with reopen() as s:
        put(s, (1, 2))
    monkeypatch.setattr(state, "__version__", "another")
    s = reopen()
    assert sorted(s["edge"]) == [(1, 2)] and not runs(s)
    assert sorted(s["path"]) == [(1, 2)] and runs(s)


# ----------------------------------------------------------------------------------------------------------------- failures


def test_a_commit_that_fails_is_not_logged(reopen: Open) -> None:
    program = ".decl a(x: number) .decl b(x: number)\nb(1 / x) :- a(x).\n"
    s = reopen(program, {"a": [(1,)]})
    s.insert("a", (0,))
    assert code(s.commit) == "division-by-zero"
    s.rollback()
    s.insert("a", (2,))
    assert int(s.commit()) == 2
    s = reopen(program)
    assert s.round == 2 and sorted(s["a"]) == [(1,), (2,)]


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_round_that_cannot_be_logged_does_not_count(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    s = reopen()
    put(s, (1, 2))
    s.insert("edge", [(2, 3), (5, 6)])
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", full)
        assert code(s.commit) == "state-file"
    assert s.round == 1 and s.staged == {"edge": 2}
    assert sorted(s["path"]) == [(1, 2)]
    s.remove("edge", (5, 6))
    s.commit()
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)] and s.round == 2
    assert sorted(reopen()["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_a_program_that_cannot_be_logged_does_not_count(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    s = reopen()
    put(s, (1, 2))
    with monkeypatch.context() as patched:
        patched.setattr(files, "write_all", full)
        assert code(lambda: s.add_rules(".decl back(x: number) back(y) :- edge(_, y).")) == "state-file"
    assert "back" not in s
    put(s, (2, 3))
    assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)] and s.round == 2
    assert sorted(reopen()["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_an_interruption_waits_until_the_round_is_logged(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    s = reopen(history=5)
    put(s, (1, 2))
    log = Store.append

    def interrupted(store: Store, *args: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        log(store, *args)

    monkeypatch.setattr(Store, "append", interrupted)
    s.insert("edge", (2, 3))
    with pytest.raises(KeyboardInterrupt):
        s.commit()
    monkeypatch.undo()
    assert s.round == 2 and s.staged == {}
    assert sorted(s.changes("path")) == [((1, 3), 1), ((2, 3), 1)]
    assert sorted(s.at(1)["path"]) == [(1, 2)]
    assert put(s, (3, 4)) == 3
    monkeypatch.setattr(Store, "append", interrupted)
    with pytest.raises(KeyboardInterrupt):
        s.add_rules(".decl back(x: number) back(y) :- edge(_, y).")
    monkeypatch.undo()
    assert s.round == 4 and sorted(s["back"]) == [(2,), (3,), (4,)]
    assert put(s, (4, 5)) == 5
    assert sorted(reopen(None)["back"]) == [(2,), (3,), (4,), (5,)]


def test_a_checkpoint_that_fails_loses_nothing(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state, "LEAST", 50)
    s = reopen()
    with monkeypatch.context() as patched:
        patched.setattr(files, "create", full)
        for k in range(20):
            put(s, (k, k + 1))
        assert code(s.close) == "state-file"
    s = reopen()
    assert s.round == 20 and len(s["path"]) == 210


def test_one_session_at_a_time(reopen: Open, tmp_path: Path) -> None:
    s = reopen()
    error = refused(lambda: dlog.session(PATHS, state=tmp_path / "state"))
    assert error.diagnostics[0].code == "state-locked" and str(os.getpid()) in error.diagnostics[0].notes[0]
    s.close()
    reopen()


def test_a_session_that_cannot_begin_lets_go_of_its_state(reopen: Open, tmp_path: Path) -> None:
    with pytest.raises((DlogError, InternalError)):
        dlog.session(f"{PATHS}.input edge\n", tmp_path / "nowhere", state=tmp_path / "state")
    assert reopen().round == 0


def test_a_damaged_state_is_named(reopen: Open, tmp_path: Path) -> None:
    with reopen() as s:
        put(s, (1, 2))
    manifest = tmp_path / "state" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"round": 1', '"round": 9'))
    error = refused(reopen)
    assert error.diagnostics[0].code == "state-corrupt" and str(manifest) in error.diagnostics[0].place


def test_another_folder_is_no_state(reopen: Open, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "letter.txt").write_text("dear")
    assert code(reopen) == "state-foreign"


def test_sync_is_one_of_three(reopen: Open) -> None:
    assert code(lambda: reopen(sync="sometimes")) == "bad-sync"


# -------------------------------------------------------------------------------------------------------------- checkpoints


def test_checkpoints_run_beside_commits(reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state, "LEAST", 200)
    begun = threading.Event()
    going_on = threading.Event()
    make = state.applied

    def slowly(*args: Any) -> Any:
        if threading.current_thread().name == "dlog-checkpoint":
            begun.set()
            assert going_on.wait(30)
        return make(*args)

    monkeypatch.setattr(state, "applied", slowly)
    s = reopen(sync="never")
    k = 0
    while not begun.is_set():
        put(s, (k, k + 1))
        k += 1
    enough = k + 10
    while k < enough:  # while the checkpoint waits
        put(s, (k, k + 1))
        k += 1
    s.remove("edge", (0, 1))
    s.commit()
    going_on.set()
    s._engine._state._wait()  # type: ignore[attr-defined]
    assert 0 < s._engine._state._store.checkpoint_round < s.round  # type: ignore[attr-defined]
    assert len(list((tmp_path / "state").glob("*.log"))) == 1
    last = s.round
    s = reopen()
    assert s.round == last and sorted(s["edge"]) == [(n, n + 1) for n in range(1, k)]


def test_the_log_does_not_outgrow_what_is_stored(reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state, "LEAST", 2000)
    s = reopen(".decl edge(x: number, y: number)\n", sync="never")
    for k in range(600):
        put(s, (k % 50, k))
        s.remove("edge", ((k - 20) % 50, k - 20))
        if k % 100 == 99:  # or all of it is over before the first checkpoint is
            s._engine._state._wait()  # type: ignore[attr-defined]
    used = sum(path.stat().st_size for path in (tmp_path / "state").iterdir())
    assert used < 20_000
    assert len(reopen(".decl edge(x: number, y: number)\n")["edge"]) in (20, 21)


def test_a_bulk_load_comes_back(reopen: Open) -> None:
    rng = np.random.default_rng(1)
    program = ".decl edge(x: number, y: number)\n.decl sink(x: number)\nsink(y) :- edge(_, y), !edge(y, _).\n"
    given = {"x": rng.integers(0, 5000, 30_000), "y": rng.integers(0, 5000, 30_000)}
    with reopen(program, {"edge": given}) as s:
        edges, sinks = set(s["edge"]), set(s["sink"])
    s = reopen(program)
    assert set(s["edge"]) == edges == set(zip(given["x"].tolist(), given["y"].tolist(), strict=True))
    assert set(s["sink"]) == sinks
    assert not runs(s)


# ------------------------------------------------------------------------------------------------------------------- killed


def kill(folder: Path, kills: int, seed: int) -> int:
    """Runs the killer in a process of its own; returns how many rounds there are in the end."""
    command = [sys.executable, "-m", "tests.dlog.state_killing", str(folder), str(kills), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
def test_killed_sessions_lose_nothing(tmp_path: Path) -> None:
    assert kill(tmp_path, 15, 1) > 100


@pytest.mark.slow
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
@pytest.mark.parametrize("seed", [2, 3])
def test_hundreds_of_killed_sessions_lose_nothing(tmp_path: Path, seed: int) -> None:
    assert kill(tmp_path, 200, seed) > 1000
