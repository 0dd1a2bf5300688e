"""Sessions that never pause have images of second engines, which nothing waits for."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Any
from weakref import ref

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.table import Table
from dlog.sessions.persistence import checkpoints, interned, recovery, running_images
from dlog.sessions.persistence.folder import State
from tests.dlog.persistence.state_sessions import PATHS, Open, crash, put
from tests.dlog.persistence.state_stories import images, settle, tell
from tests.examples import examples
from tests.rounds import Story, stories
from tests.strategies import graph_programs, random_programs


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


# ----------------------------------------------------------------------------------------------------------------- the law


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
