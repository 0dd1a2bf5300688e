"""Sessions on disk go on from what the last engine kept, without deriving anything."""

from __future__ import annotations

import itertools
import tempfile
import warnings
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.rounds_engine import Image
from dlog.engine.runtime.incremental import image
from dlog.engine.runtime.incremental.engines import maintained
from dlog.engine.state import files
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence import checkpoints, recovery, running_images
from tests.dlog.persistence.state_model import PROGRAM, all_rows, check, commit, expected
from tests.dlog.persistence.state_sessions import PATHS, Open, code, crash, put, runs
from tests.dlog.persistence.state_stories import images, tell
from tests.dlog.persistence.test_state_failures import full
from tests.examples import examples
from tests.rounds import Story, stories
from tests.strategies import graph_programs, random_programs


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints all the time, each with an image, which is gone on from whatever has changed since."""
    monkeypatch.setattr(checkpoints, "MIN_LOG_BYTES", 300)
    monkeypatch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 0)
    monkeypatch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)


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


@examples(25)
@given(story=stories(random_programs()), seed=st.integers(0, 99))
def test_random_programs_live_on(story: Story, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "MIN_LOG_BYTES", 200)
        patch.setattr(checkpoints, "MIN_IMAGE_LOG_BYTES", 500)
        patch.setattr(recovery, "MIN_ROWS_PER_CHANGE", 0)
        tell(story, seed)


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
