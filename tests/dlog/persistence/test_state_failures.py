"""Sessions on disk whose disk or process fails, and the checkpoints that they write meanwhile."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.state import files
from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError, InternalError
from dlog.sessions.engines import Engines
from dlog.sessions.follow.followers import Followers
from dlog.sessions.persistence import checkpoints, external_relations, running_images
from dlog.sessions.persistence.folder import State
from tests.dlog.command import ROOT
from tests.dlog.persistence.state_sessions import PATHS, Open, code, put, refused, runs

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


@pytest.mark.skipif(os.name == "nt", reason="files that are open are not removed there")
def test_a_state_that_is_removed_under_a_session_is_noticed_and_nothing_in_memory_lost(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    s = dlog.session(PATHS, {"edge": [(1, 2)]}, state=folder)
    s.insert("edge", (2, 3))
    shutil.rmtree(folder)
    for change in (s.commit, lambda: s.add_rules(".decl back(x: number, y: number) back(y, x) :- edge(x, y).\n")):
        with pytest.raises(DlogError, match="the state was removed while it was open"):
            change()
        assert (s.round, s.staged, sorted(s["path"])) == (1, {"edge": 1}, [(1, 2)])
    folder.mkdir()
    assert code(s.commit) == "state-removed"
    assert code(s.close) == "state-removed"
    assert list(folder.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="files that are open are not removed there")
def test_an_error_on_its_way_out_is_not_hidden_by_one_of_closing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError) as caught, dlog.session(PATHS, {"edge": [(1, 2)]}, state=tmp_path / "state") as s:
        shutil.rmtree(tmp_path / "state")
        s.insert("edge", (2, 3))
        1 // 0  # noqa: B018
    (note,) = caught.value.__notes__
    assert note.startswith("and the session could not be closed: ")
    with pytest.raises(DlogError), dlog.session(PATHS, {"edge": [(1, 2)]}, state=tmp_path / "state"):
        shutil.rmtree(tmp_path / "state")


def test_a_state_that_is_put_back_goes_on(tmp_path: Path) -> None:
    folder, away = tmp_path / "state", tmp_path / "away"
    with dlog.session(PATHS, {"edge": [(1, 2)]}, state=folder) as s:
        s.insert("edge", (2, 3))
        folder.rename(away)
        assert code(s.commit) == "state-removed"
        away.rename(folder)
        assert int(s.commit()) == 2
    with dlog.session(None, state=folder) as again:
        assert sorted(again["path"]) == [(1, 2), (1, 3), (2, 3)]


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


SEEN = f"{PATHS}.decl seen(x: number)\n"


def refuse_to_drop(session: dlog.Session, patch: pytest.MonkeyPatch) -> None:
    """Has a relation be dropped on a disk that is full, but for who writes beside the commits."""
    write_all = files.write_all

    def refuse(*given: Any) -> None:
        (full if threading.current_thread() is threading.main_thread() else write_all)(*given)

    with patch.context() as patched:
        patched.setattr(files, "write_all", refuse)
        assert code(lambda: session.drop_relation("seen")) == "state-file"
        session._engine._state.checkpoints.wait()  # type: ignore[attr-defined]


def test_a_checkpoint_that_begins_meanwhile_has_the_relations_of_before_a_program_that_cannot_be_logged(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, changed = threading.Event(), threading.Event()
    frozen, means = State.frozen, State.means

    def slow(self: State) -> Any:
        begun.set()
        changed.wait(0.2)
        return frozen(self)

    s = reopen(SEEN, sync="never")
    s.insert("seen", (1,))
    monkeypatch.setattr(State, "frozen", slow)
    monkeypatch.setattr(State, "means", lambda self, program: means(self, program) or changed.set())
    monkeypatch.setattr(checkpoints.Checkpoints, "_image_bytes", lambda self, engine: 0)
    s._engine._state.checkpoints._due = 0  # type: ignore[attr-defined]
    s.commit()
    assert begun.wait(5)
    refuse_to_drop(s, monkeypatch)
    assert s._engine._state._store.checkpoint_round == 1  # type: ignore[attr-defined]
    assert sorted(reopen(None)["seen"]) == [(1,)]


def test_an_image_that_is_copied_meanwhile_comes_with_no_checkpoint_of_a_program_that_cannot_be_logged(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed, tried = threading.Event(), threading.Event()
    copied, means = running_images.Copying._copied, State.means

    def late(self: Any, state: Any, engine: Any) -> bool:
        if not changed.is_set():
            return False
        done = copied(self, state, engine)
        tried.set()
        return done

    def noted(self: State, program: Any) -> None:
        means(self, program)
        changed.set()
        assert tried.wait(5)

    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(checkpoints, "FIRST_IMAGE_BYTES", 0)
    monkeypatch.setattr(checkpoints, "MAX_UNPAUSED_IMAGE_BYTES", 0)
    monkeypatch.setattr(running_images.Copying, "_copied", late)
    s = reopen(SEEN, sync="never")
    s.insert("seen", (1,))
    put(s, (1, 2))
    monkeypatch.setattr(State, "means", noted)
    refuse_to_drop(s, monkeypatch)
    assert sorted(reopen(None)["seen"]) == [(1,)]


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


@pytest.mark.parametrize("ends", ["close", "crash"])
def test_a_relation_that_is_declared_anew_with_other_columns_has_no_rows(reopen: Open, ends: str) -> None:
    s = reopen(SEEN)
    s.insert("seen", [(1,), (2,)])
    s.commit()
    s.drop_relation("seen")
    s.add_rules(".decl seen(x: number, y: number)\n.decl first(x: number)\nfirst(x) :- seen(x, _).\n")
    if ends == "close":
        s.close()
    s = reopen(None)
    assert sorted(s["seen"]) == [] and sorted(s["first"]) == []
    s.insert("seen", (3, 4))
    s.commit()
    assert sorted(reopen(None)["first"]) == [(3,)]


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
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 50)
    s = reopen()
    with monkeypatch.context() as patched:
        patched.setattr(files, "create", full)
        for k in range(20):
            put(s, (k, k + 1))
        assert code(s.close) == "state-file"
    s = reopen()
    assert s.round == 20 and len(s["path"]) == 210


def test_what_fails_as_a_session_is_closed_keeps_nothing_open(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(Engines, "close", lambda engines: closed.append("what engines share"))
    s = reopen()
    put(s, (1, 2))
    monkeypatch.setattr(type(s._engine._inner), "close", lambda engine: closed.append("the engine"))  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(files, "create", full)
        assert code(s.close) == "state-file"
    assert closed == ["the engine", "what engines share"]
    s = reopen()
    put(s, (2, 3))
    monkeypatch.setattr(Followers, "close", full)
    with pytest.raises(OSError):
        s.close()
    assert closed == 2 * ["the engine", "what engines share"] and reopen().round == 2


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


@pytest.mark.parametrize("relation", ["path/rows", "edge"])
def test_a_damaged_layer_is_derived_anew_if_it_follows_from_others(reopen: Open, tmp_path: Path, relation: str) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    written = json.loads((tmp_path / "state" / "manifest.json").read_text())["relations"][relation]
    layer = next(tmp_path / "state" / f["file"] for batch in written["batches"] for f in batch["layers"])
    content = bytearray(layer.read_bytes())
    content[len(content) // 2] ^= 1
    layer.write_bytes(content)
    for image in (tmp_path / "state").glob("*.image"):
        image.write_bytes(b"")
    if relation == "edge":
        assert refused(reopen).diagnostics[0].code == "state-corrupt"
        return
    with pytest.warns(RuntimeWarning) as told:
        s = reopen()
        assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]
    assert any(layer.name in str(w.message) and "`path` is derived anew" in str(w.message) for w in told)
    s.close()
    with reopen() as s:
        assert sorted(s["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_a_damaged_text_of_the_program_is_named(reopen: Open, tmp_path: Path) -> None:
    with reopen() as s:
        put(s, (1, 2))
    texts = tmp_path / "state" / "program.bytes"
    content = bytearray(texts.read_bytes())
    content[len(content) // 2] ^= 1
    texts.write_bytes(content)
    assert code(lambda: reopen(None)) == "state-corrupt"


def test_another_folder_is_no_state(reopen: Open, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "letter.txt").write_text("dear")
    assert code(reopen) == "state-foreign"


def test_sync_is_one_of_three(reopen: Open) -> None:
    assert code(lambda: reopen(sync="sometimes")) == "bad-sync"


# -------------------------------------------------------------------------------------------------------------- checkpoints


def test_checkpoints_run_beside_commits(reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 200)
    begun = threading.Event()
    going_on = threading.Event()
    make = external_relations.applied

    def slowly(*args: Any) -> Any:
        if threading.current_thread().name == "dlog-checkpoint":
            begun.set()
            assert going_on.wait(30)
        return make(*args)

    monkeypatch.setattr(external_relations, "applied", slowly)
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
    s._engine._state.checkpoints.wait()  # type: ignore[attr-defined]
    assert 0 < s._engine._state._store.checkpoint_round < s.round  # type: ignore[attr-defined]
    assert len(list((tmp_path / "state").glob("*.log"))) == 1
    last = s.round
    s = reopen()
    assert s.round == last and sorted(s["edge"]) == [(n, n + 1) for n in range(1, k)]


def test_the_log_does_not_outgrow_what_is_stored(reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 2000)
    s = reopen(".decl edge(x: number, y: number)\n", sync="never")
    for k in range(600):
        put(s, (k % 50, k))
        s.remove("edge", ((k - 20) % 50, k - 20))
        if k % 100 == 99:  # or all of it is over before the first checkpoint is
            s._engine._state.checkpoints.wait()  # type: ignore[attr-defined]
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
    command = [sys.executable, "-m", "tests.dlog.persistence.state_killing", str(folder), str(kills), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
def test_killed_sessions_lose_nothing(tmp_path: Path) -> None:
    assert kill(tmp_path, 15, 1) > 100


@pytest.mark.exhaustive
@pytest.mark.skipif(not JIT or not hasattr(os, "fork"), reason="needs fork, and quick kernels")
@pytest.mark.parametrize("seed", [2, 3])
def test_hundreds_of_killed_sessions_lose_nothing(tmp_path: Path, seed: int) -> None:
    assert kill(tmp_path, 200, seed) > 1000
