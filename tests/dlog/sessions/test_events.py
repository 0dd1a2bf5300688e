"""Event atoms and `now()` in the rules of sessions, against what they mean, round by round: through restarts, kills, rules that
come and go, and many rounds in one commit."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.runtime.incremental.engines import kept, timed
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.engines.timed import MIN_CROWD
from dlog.sessions.persistence import checkpoints, recovery, running_images
from dlog.sessions.persistence.inspection import dump_state
from tests.dlog.sessions.events_twin import CLOCKS, DECLARED, EVENTS, Driven, drive, rounds, steps
from tests.examples import examples

few_rows = st.tuples(*map(st.sampled_from, ([-1, 3, timed.FEW], [0, 2, kept.MAX_WAITING], [0, 5, kept.MAX_HEAPED])))


@contextmanager
def taken_as_few(sizes: tuple[int, int, int]) -> Iterator[None]:
    """Changes that are taken as rows up to so many, of which so many wait to be kept; of others so many lie in a heap."""
    few, waiting, heaped = sizes
    patches = patch.object(kept, "MAX_WAITING", waiting), patch.object(kept, "MAX_HEAPED", heaped)
    with patch.object(timed, "FEW", few), patches[0], patches[1]:
        yield


@examples(60)
@given(st.sets(st.sampled_from([*EVENTS, *CLOCKS]), max_size=4), steps, st.booleans(), few_rows)
def test_rules_in_time_are_what_they_mean_at_every_round(
    rules: set[str], done: list[tuple[str, Any]], crowded: bool, few: tuple[int, int, int]
) -> None:
    """With `crowded`, all that waits is scheduled again with every commit."""
    with patch.object(timed, "MIN_CROWD", -1000 if crowded else MIN_CROWD), taken_as_few(few):
        drive(None, sorted(rules), done)


@examples(40)
@given(st.sets(st.sampled_from([*EVENTS, *CLOCKS]), max_size=4), steps, st.booleans(), few_rows)
def test_rules_in_time_survive_restarts_and_kills(
    rules: set[str], done: list[tuple[str, Any]], imaged: bool, few: tuple[int, int, int]
) -> None:
    """With `imaged`, engines go on from images, however much has changed since."""
    folder, ends = Path(mkdtemp()), [("restart", None), ("commit", []), ("kill", None), ("commit", [])]
    least = 0 if imaged else recovery.MIN_ROWS_PER_CHANGE
    try:
        with patch.object(recovery, "MIN_ROWS_PER_CHANGE", least), taken_as_few(few):
            drive(folder / "state", sorted(rules), [*done, *ends])
    finally:
        shutil.rmtree(folder)


@examples(20)
@given(st.sets(st.sampled_from([name for name in EVENTS if name != "offer"])), st.lists(rounds, max_size=4), st.booleans())
def test_a_session_goes_on_from_a_dump(rules: set[str], made: list[list[Any]], stored: bool) -> None:
    """As if it had not ended: with another state, or none. (Rounds are counted anew.)"""
    folder, half = Path(mkdtemp()), len(made) // 2
    driven = Driven(folder / "state", sorted(rules))
    try:
        for changed in made[:half]:
            driven.step("commit", changed)
        driven.session.close()
        dump_state(folder / "state", folder / "out")
        state = folder / "again" if stored else None
        driven.session = dlog.session(folder / "out" / "program.dl", folder / "out", state=state, sync="never")
        driven.now, driven.state = driven.session.round, state
        for what, changed in [("restart", ""), *(("commit", changed) for changed in made[half:]), ("restart", "")]:
            driven.step(what, changed)
    finally:
        driven.session.close()
        shutil.rmtree(folder)


def test_a_state_is_gone_on_from_by_an_image(tmp_path: Path) -> None:
    def opened(program: str | None = None) -> dlog.Session:
        return dlog.session(program, state=tmp_path / "s", sync="never")

    with opened(DECLARED + EVENTS["pay"] + EVENTS["owe"] + CLOCKS["on"]) as s:
        s.insert("price", [("tea", 3), *(("rum", n) for n in range(500))])
        s.insert("spell", [("a", 2, 4), ("b", 3, 5), ("c", 0, 2)])
        s.insert("order", (1, "tea"))
        s.insert("lent", (1, "tea"))
        s.commit()
    resumed: list[int] = []
    resume = Layered.resume

    def noted(self: Layered, image: Any) -> None:
        resumed.append(image.round)
        resume(self, image)

    with patch.object(Layered, "resume", noted):
        s = opened()
        s.upsert("price", ("tea", 4), key=("item", "p"))
        s.remove("price", ("tea", 3))
        s.insert("order", (2, "tea"))
        s.commit()
        assert (resumed, sorted(s["pay"]), sorted(s["on"])) == ([1], [(1, 6), (2, 8)], [("a",)])
        s._engine.abandon()  # type: ignore[attr-defined]
        s = opened()
        s.remove("lent", (1, "tea"))
        s.remove("order", (1, "tea"))
        s.commit()
        assert (resumed, sorted(s["pay"]), sorted(s["owe"])) == ([1, 1], [(1, 6), (2, 8)], [])
        assert sorted(s["on"]) == [("a",), ("b",)]
        s.close()


def test_a_session_that_pauses_has_an_image_to_go_on_from(tmp_path: Path) -> None:
    """It is copied part by part; a commit in between gives it up, and the next pause makes it."""
    resumed: list[int] = []
    resume, copied = Layered.resume, Maintained.copied_image
    orders = iter([11, 12])

    def noted(self: Layered, image: Any) -> None:
        resumed.append(image.round)
        resume(self, image)

    def disturbed(self: Maintained, most: int) -> Any:
        found = copied(self, most)
        for order in islice(orders, 1):
            s.insert("order", (order, "tea"))
            s.commit()
        return found

    with ExitStack() as patches:
        for owner, name, value in (
            (checkpoints, "FIRST_IMAGE_BYTES", 0),
            (checkpoints, "MAX_UNPAUSED_IMAGE_BYTES", 0),
            (running_images, "PAUSE_SECONDS", 0.001),
            (Layered, "resume", noted),
            (Maintained, "copied_image", disturbed),
        ):
            patches.enter_context(patch.object(owner, name, value))
        s = dlog.session(DECLARED + EVENTS["pay"] + CLOCKS["on"], state=tmp_path / "s", sync="never")
        s.insert("price", [("tea", 3), *(("rum", n) for n in range(500))])
        s.insert("spell", [("a", 2, 4), ("b", 6, 9)])
        s.commit()
        s._engine._state.checkpoints._copying.thread.join()  # type: ignore[attr-defined]
        s.insert("order", (2, "tea"))
        s.upsert("price", ("tea", 4), key="item")
        s.commit()
        s._engine.abandon()  # type: ignore[attr-defined]
        s = dlog.session(None, state=tmp_path / "s", sync="never")
        s.insert("order", (3, "tea"))
        s.commit()
        assert resumed == [3] and s.round == 5
        assert sorted(s["pay"]) == [(2, 8), (3, 8), (11, 6), (12, 6)] and sorted(s["on"]) == []
        s.close()


@pytest.mark.parametrize("name", [*EVENTS, *CLOCKS])
def test_each_rule_in_time_alone(name: str) -> None:
    done: list[tuple[str, Any]] = [
        ("commit", [("price", 1, ("tea", 3)), ("order", 1, (2, "tea")), ("spell", 1, ("tea", 1, 3)), ("lent", 1, (1, "tea"))]),
        ("commit", [("price", -1, ("tea", 3)), ("price", 1, ("tea", 1)), ("road", 1, (1, 2, 3, 4))]),
        ("batch", [(1, [("order", 1, (3, "tea")), ("road", 1, (2, 3, 4, 6))]), (2, [("order", -1, (2, "tea"))])]),
        ("commit", [("lent", -1, (1, "tea")), ("order", 1, (2, "tea")), ("spell", 1, ("rum", 0, 8))]),
        ("batch", [(1, [("order", -1, (2, "tea"))]), (1, [("order", 1, (2, "tea"))]), (1, [("order", -1, (2, "tea"))])]),
        ("commit", []),
    ]
    drive(None, [name], done)
    drive(None, [], [*done[:3], ("add", name), *done[3:]])
