"""Sessions on disk go on from what the last engine kept, without deriving anything."""

from __future__ import annotations

import gc
import itertools
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Event, Thread, current_thread, main_thread
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.ir.rules import Kind
from dlog.engine.rounds_engine import Image
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.incremental.engines import maintained
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.state import files
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.engines import Engines
from dlog.sessions.persistence import checkpoints, interned, recovery, running_images
from dlog.sessions.persistence.folder import State
from tests.dlog.persistence.state_model import PROGRAM, all_rows, check, commit, expected
from tests.dlog.persistence.state_sessions import PATHS, Open, code, crash, put, runs
from tests.dlog.persistence.test_state_failures import full
from tests.examples import examples
from tests.rounds import Story, states_of, stories
from tests.strategies import graph_programs, random_programs


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes each engine that starts from nothing."""
    noted: list[str] = []
    make = Engines.make
    monkeypatch.setattr(Engines, "make", lambda *args: noted.append("made") or make(*args))
    return noted


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints all the time, each with an image, which is gone on from whatever has changed since."""
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 300)
    monkeypatch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
    monkeypatch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)


def images(folder: Path) -> list[Path]:
    return sorted((folder / "state").glob("*.image"))


def test_the_first_commit_after_opening_derives_nothing_anew(reopen: Open, made: list[str], tmp_path: Path) -> None:
    with reopen() as s:
        put(s, *((k, k + 1) for k in range(50)))
    assert len(images(tmp_path)) == 1
    made.clear()
    s = reopen()
    assert sorted(s.commit().changes("path")) == [] and runs(s)
    assert put(s, (50, 51)) == 3
    assert len(s.changes("path")) == 51
    s.remove("edge", (25, 26))
    assert len(s.commit().changes("path")) == 26 * 26
    assert s.rows("path") == 51 * 52 // 2 - 26 * 26
    assert made == []
    s.close()
    assert len(images(tmp_path)) == 1


def test_rounds_after_the_image_are_applied_to_it(
    reopen: Open, made: list[str], always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with reopen() as s:
        put(s, *((k, k + 1) for k in range(20)))
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 1 << 20)
    made.clear()
    s = reopen()
    put(s, (20, 21))
    s.remove("edge", [(10, 11), (0, 1)])
    s.commit()
    put(s, (0, 1))
    s = reopen()
    assert s.round == 4 and not runs(s)
    assert sorted(s["path"]) == sorted((x, y) for x in range(21) for y in range(x + 1, 22) if not x <= 10 < y)
    assert made == []


def test_an_image_outlives_checkpoints_without_one(
    reopen: Open, made: list[str], always: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with reopen() as s:
        put(s, *((k, k + 1) for k in range(20)))
    monkeypatch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 1 << 40)
    before = images(tmp_path)
    made.clear()
    s = reopen()
    for k in range(20, 60):
        put(s, (k, k + 1))
    s._engine._state.checkpoints.wait()  # type: ignore[attr-defined]
    assert images(tmp_path) == before
    assert s._engine._state._store.checkpoint_round > 1  # type: ignore[attr-defined]
    s = reopen()
    assert s.rows("path") == 60 * 61 // 2
    assert made == []


def test_a_large_engine_has_its_first_image_while_it_runs(reopen: Open, made: list[str], tmp_path: Path) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(20)))
    assert images(tmp_path) == []
    put(s, *((k, k + 1) for k in range(20, 600)))
    pause(s)
    assert len(images(tmp_path)) == 1
    put(s, (600, 601))
    made.clear()
    s = reopen()
    assert s.rows("path") == 601 * 602 // 2 and made == []


def pause(session: dlog.Session) -> None:
    """Waits for the image that is to be copied when no commit comes."""
    copying = session._engine._state.checkpoints._copying  # type: ignore[attr-defined]
    assert copying is not None
    copying.thread.join()


def test_a_session_that_is_closed_after_a_pause_leaves_all_relations(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 0.001)
    with reopen(sync="never") as s:
        put(s, *((k, k + 1) for k in range(600)))
        pause(s)
        before = images(tmp_path)
    s = reopen()
    assert s.rows("path") == 600 * 601 // 2 and not runs(s)
    assert len(before) == 1 and images(tmp_path) == before


@pytest.mark.parametrize("image_bytes", [0, 1 << 19, 1 << 23])
def test_commits_hold_where_no_thread_can_be_started(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, image_bytes: int
) -> None:
    def refuse(thread: Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(checkpoints.Checkpoints, "_next_due", lambda self: 0)
    monkeypatch.setattr(checkpoints.Checkpoints, "_image_bytes", lambda self, engine: image_bytes)
    s = reopen(sync="never")
    s._engine._state.checkpoints._due = 0  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(Thread, "start", refuse)
        assert put(s, (1, 2)) == 1 and put(s, (2, 3)) == 2
        s.close()
    assert sorted(reopen()["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_a_commit_gives_up_the_copy_of_a_large_image_and_the_next_pause_makes_it(
    reopen: Open, made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(maintained, "IMAGE_PIECE_BYTES", 1 << 12)
    s = reopen(sync="never")
    taken: list[int | None] = []
    rows = itertools.count(600)

    def disturbed(self: Image, piece: int) -> Any:
        copy, pieces = copies(self, piece)
        disturbing = len(taken) < 3

        def given() -> Any:
            for number, pair in enumerate(pieces):
                if disturbing and number == len(pieces) // 2:
                    at = next(rows)
                    put(s, (at, at + 1))
                yield pair
            taken.append(self.round)

        if disturbing:
            taken.append(None)
        return copy, given()

    copies = Image.copies
    monkeypatch.setattr(Image, "copies", disturbed)
    put(s, *((k, k + 1) for k in range(600)))
    pause(s)
    assert taken == [None, None, None, 4] and len(images(tmp_path)) == 1
    put(s, (700, 701))
    made.clear()
    s = reopen()
    assert s.rows("path") == 603 * 604 // 2 + 1 and made == []


@pytest.fixture
def unpaused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No commit is followed by a pause, and images are soon overdue."""
    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 3600)
    monkeypatch.setattr(running_images, "SECONDS_BETWEEN", 0)
    monkeypatch.setattr(checkpoints, "OVERDUE_LOG_BYTES", 1 << 10)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is logged until there is another image, which goes on from the one before."""
    monkeypatch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
    monkeypatch.setattr(checkpoints, "IMAGE_SHARE", 1 << 20)
    monkeypatch.setattr(checkpoints.Checkpoints, "_next_due", lambda self: 1 << 10)
    monkeypatch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)


def settle(session: dlog.Session) -> None:
    """Waits until nothing is written beside the commits."""
    writing = session._engine._state.checkpoints._writing  # type: ignore[attr-defined]
    if writing is not None:
        writing.join()


def commit_until_imaged(session: dlog.Session, folder: Path, first: int = 1000) -> None:
    """Commits until there is another image than now."""
    before = images(folder)
    for start in range(first, first + 39_000, 1000):
        put(session, *((k, k) for k in range(start, start + 40)))
        settle(session)
        if images(folder) != before:
            return
    raise AssertionError("there is no image")


def commit_until(session: dlog.Session, event: Event) -> None:
    """Commits until something has happened beside the commits."""
    for first in range(1000, 40_000, 1000):
        put(session, *((k, k) for k in range(first, first + 40)))
        writing = session._engine._state.checkpoints.is_writing  # type: ignore[attr-defined]
        if event.wait(0.1 if writing else 0):
            return
    raise AssertionError("it has not happened")


def test_a_session_without_a_pause_has_an_image_of_a_second_engine_once_much_was_logged(
    reopen: Open, made: list[str], unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    own = s._engine.working  # type: ignore[attr-defined]
    assert images(tmp_path) == []
    taken = image.take
    monkeypatch.setattr(image, "take", lambda flow, round: _not_of(own, flow) and taken(flow, round))
    commit_until_imaged(s, tmp_path)
    s.remove("edge", (300, 301))
    s.commit()
    expected = s.rows("path")
    made.clear()
    s = reopen()
    assert s.rows("path") == expected and made == []


def _not_of(engine: Any, flow: Any) -> bool:
    """The image that is taken is another engine's."""
    assert flow is not engine._flow
    return True


def test_a_second_engine_goes_on_from_the_image_before(
    reopen: Open, made: list[str], unpaused: None, soon: None, tmp_path: Path
) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until_imaged(s, tmp_path)
    made.clear()
    s.remove("edge", (300, 301))
    commit_until_imaged(s, tmp_path, 50_000)
    assert made == []
    expected = s.rows("path")
    s = reopen()
    assert s.rows("path") == expected and made == []


def forge(folder: Path, relation: str, rows: Table) -> None:
    """Has the last checkpoint of a state have other rows of a relation, with all checksums right."""
    state = State(folder, "never", None)
    store = state._store
    store.fingerprint = store.stored_fingerprint
    others: dict[str, Any] = {name: (stored.kinds, stored.batches) for name, stored in store.relations.items()}
    store.checkpoint(store.round, others | {relation: rows})
    state.close()


def test_no_second_engine_is_made_of_rows_that_somebody_has_forged(
    reopen: Open, unpaused: None, soon: None, tmp_path: Path
) -> None:
    program = f"{PATHS}.decl name(x: number, text: symbol)\n.decl long(n: number)\nlong(strlen(text)) :- name(_, text).\n"
    with reopen(program) as s:
        s.insert("name", (1, "one"))
        put(s, *((k, k + 1) for k in range(600)))
    forge(tmp_path / "state", "name", Table((Kind.NUMBER, Kind.SYMBOL), (np.array([1]), np.array([5], np.int32)), 1))
    before = images(tmp_path)
    s = reopen(program, sync="never")
    with pytest.raises(AssertionError, match="there is no image"):
        commit_until_imaged(s, tmp_path)
    assert len(before) == 1 and sorted(s["long"]) == [(3,)]


def test_symbols_that_rules_make_are_on_the_disk_before_an_image_of_them(
    reopen: Open, made: list[str], unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = f"{PATHS}.decl name(x: symbol)\nname(cat(to_string(x), to_string(y))) :- path(x, y), x < 10.\n"
    s = reopen(program, sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until_imaged(s, tmp_path)
    put(s, (600, 601))
    expected = sorted(s["name"])
    made.clear()
    s = reopen(program)
    assert sorted(s["name"]) == expected and made == []
    s.insert("edge", (601, 602))
    assert len(s.commit().changes("name")) == 10


def test_an_image_is_not_written_before_the_symbols_that_only_a_second_engine_has_made_are_on_the_disk(
    reopen: Open, unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    looked, from_rows, logged = Event(), recovery.Recovery.from_rows, running_images.SecondEngines._are_logged

    def more(self: Any, rows: Any, loaded: Any) -> Any:
        if current_thread() is not main_thread():
            self.symbols.intern(f"made in round {rows.round}")
        return from_rows(self, rows, loaded)

    monkeypatch.setattr(recovery.Recovery, "from_rows", more)
    monkeypatch.setattr(running_images, "MAX_LOOKS", 3)
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    with pytest.raises(AssertionError, match="there is no image"):
        commit_until_imaged(s, tmp_path)
    monkeypatch.setattr(running_images, "MAX_LOOKS", 500)
    monkeypatch.setattr(running_images.SecondEngines, "_are_logged", lambda *args: looked.set() or logged(*args))
    commit_until(s, looked)
    put(s, (0, 0))
    settle(s)
    assert len(images(tmp_path)) == 1


RECORDS = f"""{PATHS}
.type List = [head: number, tail: List]
.decl way(x: number, l: List)
way(x, [x, nil]) :- edge(x, _), x < 30.
way(x, [x, [y, nil]]) :- path(x, y), x < 20.
"""


def test_records_are_those_of_a_second_engine(
    reopen: Open, made: list[str], unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    s = reopen(RECORDS, sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    own = s._engine.working  # type: ignore[attr-defined]
    taken = image.take
    monkeypatch.setattr(image, "take", lambda flow, round: _not_of(own, flow) and taken(flow, round))
    commit_until_imaged(s, tmp_path)
    put(s, (600, 601))
    s.remove("edge", (10, 11))
    s.commit()
    expected = sorted(s["way"], key=repr)
    made.clear()
    s = reopen(RECORDS)
    assert sorted(s["way"], key=repr) == expected and made == []
    s.insert("edge", (601, 602))
    assert len(s.commit().changes("way")) == 9


def test_an_image_with_records_that_only_a_second_engine_has_is_none(
    reopen: Open, made: list[str], unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    copied, wanted = interned.Interned.copied_records, Event()

    def fewer(self: Any) -> Any:
        wanted.set()
        tables, every = RecordTables(Memory(None)), copied(self)
        tables.pack(2, [np.ascontiguousarray(c[:-1]) for c in every.fields(2, np.arange(1, every.sizes[2] + 1))])
        return tables

    monkeypatch.setattr(interned.Interned, "copied_records", fewer)
    s = reopen(RECORDS, sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, wanted)
    settle(s)
    assert images(tmp_path) == []


@pytest.mark.parametrize("ends", ["close", "crash"])
def test_a_second_engine_is_given_up_when_the_session_ends(
    reopen: Open, unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ends: str
) -> None:
    begun, go = Event(), Event()
    from_rows = recovery.Recovery.from_rows

    def slow(self: Any, rows: Any, loaded: Any) -> Any:
        if current_thread() is not main_thread():
            begun.set()
            go.wait()
        return from_rows(self, rows, loaded)

    monkeypatch.setattr(recovery.Recovery, "from_rows", slow)
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, begun)
    put(s, (600, 601))
    expected = s.rows("path")
    ending = Thread(target=s.close if ends == "close" else lambda: crash(s))
    ending.start()
    ending.join(0.05)
    go.set()
    ending.join()
    assert len(images(tmp_path)) == (ends == "close")
    s = reopen()
    assert s.rows("path") == expected


@dataclass
class Held:
    """A second engine whose image is not written before `go`; when that is next, `made` is set."""

    made: Event
    go: Event


@pytest.fixture
def held(unpaused: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Held]:
    found = Held(Event(), Event())
    logged = running_images.SecondEngines._are_logged

    def later(self: Any, content: Any, symbols: int) -> bool:
        found.made.set()
        found.go.wait()
        return logged(self, content, symbols)

    monkeypatch.setattr(running_images.SecondEngines, "_are_logged", later)
    yield found
    found.go.set()


def test_an_engine_that_has_grown_too_large_for_an_image_is_not_asked_by_each_commit(
    reopen: Open, unpaused: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    settle(s)
    asked: list[int] = []
    monkeypatch.setattr(checkpoints.Checkpoints, "_image_bytes", lambda self, engine: asked.append(0) or 0)
    for k in range(1000, 1100):
        put(s, (k, k))
    assert len(asked) < 10


def test_no_second_engine_is_made_while_a_copied_image_is_written(
    reopen: Open, unpaused: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The commit looks whether a checkpoint runs, then takes so long that there is a pause."""
    writing, go, seconds = Event(), Event(), list[str]()
    write, rested = checkpoints.Checkpoints._write, running_images.SecondEngines.is_rested.fget

    def held(self: Any, steps: Any) -> bool:
        if current_thread().name == "dlog-image":
            writing.set()
            go.wait()
        return write(self, steps)

    def slow(self: Any) -> bool:
        writing.wait()
        return bool(rested(self))

    monkeypatch.setattr(checkpoints.Checkpoints, "_write", held)
    monkeypatch.setattr(running_images.SecondEngines, "is_rested", property(slow))
    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 0.3)
    second = recovery.Recovery.from_checkpoint
    monkeypatch.setattr(recovery.Recovery, "from_checkpoint", lambda *args: seconds.append("made") or second(*args))
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    settle(s)
    commit_until(s, writing)
    go.set()
    settle(s)
    assert seconds == [] and len(images(tmp_path)) == 1


def test_an_image_of_rules_that_have_gone_is_not_written(reopen: Open, held: Held, tmp_path: Path) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, held.made)
    s.drop_rules("path")
    s.add_rules("path(y, x) :- edge(x, y).")
    expected = sorted(s["path"])
    held.go.set()
    settle(s)
    assert images(tmp_path) == []
    s = reopen(None)
    assert sorted(s["path"]) == expected


def test_no_second_engine_is_made_of_rules_that_have_gone(
    reopen: Open, unpaused: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go, made = Event(), Event(), list[str]()
    from_rows = recovery.Recovery.from_rows

    def slow(self: Any, rows: Any, loaded: Any) -> Any:
        if current_thread() is main_thread():
            return from_rows(self, rows, loaded)
        begun.set()
        go.wait()
        engine = from_rows(self, rows, loaded)
        made.append("made")
        return engine

    monkeypatch.setattr(recovery.Recovery, "from_rows", slow)
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, begun)
    s.add_rules("path(y, x) :- edge(x, y), x > 500.")
    go.set()
    settle(s)
    assert made == []


def test_an_image_is_not_written_to_another_state_that_was_begun_in_the_folder(
    reopen: Open, held: Held, tmp_path: Path
) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, held.made)
    for path in (tmp_path / "state").iterdir():
        path.unlink()
    with dlog.session(PATHS, state=tmp_path / "state", threads=1) as other:
        put(other, (1, 2), (2, 3))
    held.go.set()
    settle(s)
    with dlog.session(None, state=tmp_path / "state", threads=1) as other:
        assert sorted(other["path"]) == [(1, 2), (1, 3), (2, 3)]


def test_a_session_that_nobody_has_any_more_leaves_no_engine_behind_but_the_one_that_is_made(
    reopen: Open, held: Held, tmp_path: Path
) -> None:
    s = dlog.session(PATHS, state=tmp_path / "state", threads=1, sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, held.made)
    engine, state = ref(s._engine.working), s._engine._state  # type: ignore[attr-defined]
    del s
    gc.collect()
    assert engine() is None
    held.go.set()
    state.close()


def test_an_image_is_not_written_when_the_session_ends(reopen: Open, held: Held, tmp_path: Path) -> None:
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    commit_until(s, held.made)
    ending = Thread(target=lambda: crash(s))
    ending.start()
    ending.join(0.05)
    held.go.set()
    ending.join()
    assert images(tmp_path) == []


@pytest.mark.parametrize("other", ["x: number, y: number", "x: symbol"])
def test_an_image_has_no_rows_of_a_relation_that_has_been_another_one_meanwhile(
    reopen: Open, made: list[str], monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    monkeypatch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)
    program = ".decl r(x: number)\n.decl next(x: number)\nnext(x + 1) :- r(x).\n"
    with reopen(program) as s:
        s.insert("r", [(1,), (2,), (3,)])
        s.commit()
    s = reopen(None)
    row = ("one",) if "symbol" in other else (1, 2)
    s.drop_relation("r", "next")
    s.add_rules(f".decl r({other})\n")
    s.insert("r", row)
    s.commit()
    s.remove("r", row)
    s.commit()
    s.drop_relation("r")
    s.add_rules(program)
    s.insert("r", (7,))
    s.commit()
    made.clear()
    s = reopen(None)
    s.commit()
    assert sorted(s["next"]) == [(8,)] and sorted(s["r"]) == [(7,)] and made == []


def test_sessions_end_and_go_on_with_other_rules_while_an_image_waits_for_a_pause(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(running_images, "PAUSE_SECONDS", 3600.0)
    s = reopen(sync="never")
    put(s, *((k, k + 1) for k in range(600)))
    first = s._engine._state.checkpoints._copying  # type: ignore[attr-defined]
    s.add_rules(".decl far(x: number)\nfar(x) :- path(0, x), x > 598.\n")
    put(s, (600, 601))
    assert first is not None and not first.thread.is_alive()
    second = s._engine._state.checkpoints._copying  # type: ignore[attr-defined]
    s.close()
    assert second is None or not second.thread.is_alive()
    assert len(images(tmp_path)) == 1


def test_there_is_no_image_where_there_is_no_room_for_a_copy(reopen: Open, tmp_path: Path) -> None:
    s = reopen(sync="never", memory=17 << 20)
    put(s, *((k, k + 1) for k in range(600)))
    s._engine._state.checkpoints.wait()  # type: ignore[attr-defined]
    assert s._engine.working.memory.used > 10 << 20  # type: ignore[attr-defined]
    assert images(tmp_path) == []
    s.close()
    assert len(images(tmp_path)) == 1


def test_where_much_has_changed_everything_is_derived_anew(reopen: Open, made: list[str]) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    made.clear()
    put(reopen(), (3, 4))
    assert made == []
    s = reopen()
    assert len(s["path"]) == 6 and made == ["made"]


def test_a_damaged_image_is_said_and_costs_no_more_than_time(reopen: Open, made: list[str], tmp_path: Path) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    (found,) = images(tmp_path)
    content = bytearray(found.read_bytes())
    content[-20] ^= 1
    found.write_bytes(content)
    made.clear()
    s = reopen()
    assert len(s["path"]) == 3 and not runs(s)
    with pytest.warns(RuntimeWarning, match=r"\.image is damaged; everything is derived anew"):
        put(s, (3, 4))
    assert len(s["path"]) == 6 and made == ["made"]
    s.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        put(reopen(), (4, 5))
    assert made == ["made"]


def test_an_image_of_other_kernels_is_said(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    monkeypatch.setattr(image, "version", lambda: "another")
    s = reopen()
    with pytest.warns(RuntimeWarning, match="another version of dlog"):
        put(s, (3, 4))
    assert len(s["path"]) == 6


def test_an_image_is_of_one_program(reopen: Open, made: list[str], tmp_path: Path) -> None:
    with reopen() as s:
        put(s, (1, 2), (2, 3))
    changed = PATHS.replace("path(x, z) :- path(x, y), edge(y, z).", "path(y, x) :- edge(x, y).")
    with pytest.warns(RuntimeWarning):
        s = reopen(changed)
    assert len(s["path"]) == 4
    put(s, (3, 4))
    s.close()
    assert len(images(tmp_path)) == 1
    made.clear()
    put(reopen(changed), (4, 5))
    assert made == []


def test_rules_that_came_and_went_in_a_session_are_part_of_the_image(reopen: Open, made: list[str]) -> None:
    s = reopen()
    put(s, (1, 2), (2, 3), (5, 5))
    s.add_rules(".decl loop(x: number)\nloop(x) :- path(x, x).")
    s.drop_rules("path")
    s.add_rules("path(x, y) :- edge(y, x).")
    s.insert("edge", (7, 7))
    s.commit()
    s.close()
    made.clear()
    s = reopen(None)
    s.insert("edge", (8, 8))
    assert sorted(s.commit().changes("loop")) == [((8,), 1)]
    assert sorted(s["loop"]) == [(5,), (7,), (8,)] and sorted(s["path"]) == [(2, 1), (3, 2), (5, 5), (7, 7), (8, 8)]
    assert made == []


def test_a_disk_without_room_for_the_image_keeps_the_state(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    s = reopen()
    put(s, (1, 2))
    create = files.create
    with monkeypatch.context() as patched:
        patched.setattr(files, "create", lambda path, *a: full() if path.suffix == ".image" else create(path, *a))
        assert code(s.close) == "state-file"
    s = reopen()
    assert put(s, (2, 3)) == 2 and len(s["path"]) == 3
    s.close()
    assert len(reopen()["path"]) == 3


def test_too_little_memory_for_the_image_is_a_mistake_of_the_users(reopen: Open) -> None:
    with reopen() as s:
        put(s, *((k, k + 1) for k in range(300)))
    s = reopen(memory=1 << 20)
    s.insert("edge", (1000, 1001))
    with pytest.raises(DlogError) as raised:
        s.commit()
    assert raised.value.diagnostics[0].code == "out-of-memory"
    s = reopen()
    assert put(s, (1000, 1001)) == 2


@pytest.mark.slow
def test_all_kinds_of_values_and_rules_come_back_whatever_the_last_checkpoint_had(tmp_path: Path, always: None) -> None:
    for number in range(10):
        session = dlog.session(PROGRAM, state=tmp_path, threads=1, sync="never")
        for rounds in (1, 1, 3, 1):
            commit(session, 5, rounds)
        assert all_rows(session) == expected(5, session.round)
        session.close() if number % 3 else crash(session)
        assert check(tmp_path, 5, close=number % 4 == 0) == 6 * (number + 1) + 1


# ----------------------------------------------------------------------------------------------------------------- the law


def tell(story: Story, seed: int, ends: float = 0.6) -> None:
    """Tells a story to a session that is closed, or killed, and opened again between any two rounds."""
    rng = Random(seed)
    states = states_of(story.case, story.rounds)
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"state": folder, "threads": 1, "sync": "never"}
        session = dlog.session(story.case.text, **options)
        try:
            for round, expected in zip(story.rounds, states, strict=True):
                if rng.random() < 0.7:
                    settle(session)
                if rng.random() < ends:
                    session.close() if rng.random() < 0.5 else crash(session)
                    session = dlog.session(story.case.text, **options)
                for name, row, diff in round:
                    (session.insert if diff > 0 else session.remove)(name, row)
                session.commit()
                rows = {name: {repr(row) for row in session[name]} for name in session}
                assert rows == {name: set(held) for name, held in expected.items()}
        finally:
            crash(session)


@examples(25)
@given(story=stories(random_programs()), seed=st.integers(0, 99))
def test_random_programs_live_on(story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "MIN_LOG_BYTES", 200)
        patch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 500)
        patch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)
        tell(story, seed)


def always_second(patch: pytest.MonkeyPatch) -> None:
    """All images are of second engines, which go on from the image before, and are made all the time."""
    patch.setattr(checkpoints.Checkpoints, "_next_due", lambda self: 0)
    patch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
    patch.setattr(checkpoints, "IMAGE_SHARE", 1 << 40)
    patch.setattr(checkpoints, "MAX_UNPAUSED_IMAGE_BYTES", 0)
    patch.setattr(checkpoints, "FIRST_IMAGE_BYTES", 0)
    patch.setattr(checkpoints, "OVERDUE_LOG_BYTES", 0)
    patch.setattr(running_images, "PAUSE_SECONDS", 3600)
    patch.setattr(running_images, "SECONDS_BETWEEN", 0)
    patch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)


@examples(25)
@given(story=stories(graph_programs(), most=10), seed=st.integers(0, 99))
def test_programs_on_graphs_live_on_from_second_engines(story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        always_second(patch)
        tell(story, seed, ends=0.3)


@pytest.mark.parametrize("small", [0, 32])
@examples(25)
@given(story=stories(random_programs(), most=10), seed=st.integers(0, 99))
def test_random_programs_live_on_from_second_engines(small: int, story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        always_second(patch)
        patch.setattr(interned, "MAX_SMALL_PIECES", small)
        patch.setattr(interned, "MIN_LARGE_ROWS", 2)
        tell(story, seed, ends=0.3)


@examples(25)
@given(story=stories(graph_programs(), most=10), seed=st.integers(0, 99))
def test_programs_on_graphs_live_on(story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "MIN_LOG_BYTES", 200)
        patch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
        patch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)
        tell(story, seed)


def test_another_program_keeps_what_follows_as_before(reopen: Open) -> None:
    program = f"{PATHS}edge(0, 1). edge(90, 91).\n"
    with reopen(program) as s:
        put(s, *((k, k + 1) for k in range(1, 50)))
    more = ".decl far(x: number)\nfar(x) :- path(0, x), x > 45.\n"
    with pytest.warns(RuntimeWarning, match=r"so is what follows as before \(path\), everything else .*: round 3"):
        s = reopen(f"{PATHS}edge(0, 1). edge(50, 51).\n{more}")
    assert s.rows("path") == 51 * 52 // 2
    assert sorted(s["far"]) == [(x,) for x in range(46, 52)]
    s.remove("edge", (50, 51))
    assert sorted(s.commit().changes("far")) == [((51,), -1)]
    assert s.rows("path") == 50 * 51 // 2
    crash(s)
    s = reopen(f"{PATHS}edge(0, 1). edge(50, 51).\n{more}")
    assert s.round == 4 and s.rows("path") == 50 * 51 // 2 and sorted(s["far"]) == [(x,) for x in range(46, 51)]


def test_another_program_that_fails_leaves_a_state_with_an_image_alone(reopen: Open) -> None:
    with reopen() as s:
        put(s, (0, 2), (2, 3))
    assert code(lambda: reopen(f"{PATHS}.decl q(x: number)\nq(1 / x) :- edge(x, _).\n")) == "division-by-zero"
    s = reopen()
    assert s.round == 1 and sorted(s["path"]) == [(0, 2), (0, 3), (2, 3)]


@examples(20)
@given(data=st.data())
def test_another_program_says_what_it_says_of_the_rows_alone(data: st.DataObject) -> None:
    """Whatever rules come and go between sessions, each state is that of a session that has only ever had its inputs."""
    rules = [
        "path(x, y) :- edge(x, y).",
        "path(x, z) :- path(x, y), edge(y, z).",
        "back(y, x) :- path(x, y).",
        "out(x, n) :- edge(x, _), n = count : { edge(x, _) }.",
        "apart(x, y) :- path(x, _), path(y, _), !path(x, y).",
    ]
    declared = "".join(f".decl {name}(x: number, y: number)\n" for name in ("edge", "path", "back", "out", "apart"))
    edges, chosen = st.tuples(st.integers(0, 5), st.integers(0, 5)), st.lists(st.sampled_from(rules), unique=True)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            text = declared + "\n".join(data.draw(chosen)) + "\n"
            with dlog.session(text, state=folder) as s:
                for come in data.draw(st.lists(st.booleans(), max_size=3)):
                    (s.insert if come else s.remove)("edge", data.draw(st.lists(edges, max_size=5)))
                    s.commit()
                with dlog.session(text, {"edge": list(s["edge"])}) as fresh:
                    for name in fresh:
                        assert sorted(s[name]) == sorted(fresh[name]), name
