"""Ctrl-C at any moment of any call leaves a session at its last committed round, usable, and loses no interruption.

Each call is repeated with a SIGINT at moments of it (`interrupting`): at some of them here, at all of them in the slow test.
"""

from __future__ import annotations

import gc
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import dlog
from tests.dlog.sessions.interrupting import Moments

PROGRAM = """.decl edge(x: symbol, y: number)
.decl path(x: symbol, y: number)
.decl pairs(n: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(to_string(y), z).
pairs(n) :- n = count : { path(_, _) }.
"""
EDGES = {("1", 2), ("2", 3)}
LATER = [{*EDGES, ("3", 4)}, {*EDGES, ("3", 4), ("4", 5)}]
"""The edges that there may be instead when a call had its effect."""
SOME = 8
"""Moments of each call that are tried by default."""

Call = Callable[[dlog.Session], object]


def transaction(s: dlog.Session) -> None:
    with s.transaction():
        s.upsert("edge", ("3", 4))


def view(s: dlog.Session) -> None:
    with s.at() as now:
        list(now["path"])


def subscription(s: dlog.Session) -> None:
    with s.subscribe("path") as paths:
        s.insert("edge", ("3", 4))
        s.commit()
        paths.fetch()


CALLS: dict[str, Call] = {
    "insert": lambda s: s.insert("edge", [("3", 4), ("new", 5)]),
    "remove": lambda s: s.remove("edge", [("3", n) for n in range(100)]),
    "upsert": lambda s: s.upsert("edge", [("1", 7), ("2", 8)]),
    "commit": lambda s: (s.insert("edge", ("3", 4)), s.commit()),
    "commit_rounds": lambda s: s.commit_rounds({"edge": [(s.round + 1, ("3", 4), 1), (s.round + 2, ("4", 5), 1)]}),
    "transaction": transaction,
    "selection": lambda s: list(s.query('?- path("1", X).')),
    "query": lambda s: list(s.query('.decl f(x: symbol) f(x) :- path(x, y), y > 2. ?- f(X).')),
    "why": lambda s: str(s.why("path", ("1", 3))),
    "view": view,
    "subscription": subscription,
    "add_rules": lambda s: s.add_rules(".decl q(x: symbol) q(x) :- path(x, 3)."),
    "drop_rules": lambda s: s.drop_rules("pairs"),
    "reading": lambda s: (list(s["path"]), s["path"].to_arrow(), s.changes("path").rows, s.explain(), repr(s)),
}


def closure(edges: set[Any]) -> set[Any]:
    paths: set[Any] = set()
    new = set(edges)
    while new:
        paths |= new
        new = {(x, z) for x, y in new for w, z in edges if str(y) == w} - paths
    return paths


def opened(state: Path | None) -> dlog.Session:
    if state is None:
        return dlog.session(PROGRAM, {"edge": list(EDGES)})
    return dlog.session(PROGRAM, {"edge": list(EDGES)}, state=state, sync="never")


def check(s: dlog.Session) -> None:
    """It is at a committed round, and goes on from there."""
    s.rollback()
    edges = set(s["edge"])
    assert edges in (EDGES, *LATER)
    assert set(s["path"]) == closure(edges)
    s.insert("edge", ("9", 1))
    s.commit()
    edges.add(("9", 1))
    assert set(s["edge"]) == edges
    assert set(s["path"]) == closure(edges)
    if "pairs" in s and s["pairs"].rows:
        assert set(s["pairs"]) == {(len(closure(edges)),)}
    assert set(s.query('?- path("9", X).')) == {(y,) for x, y in closure(edges) if x == "9"}


@pytest.fixture
def unraisable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What finalizers raised."""
    found: list[str] = []

    def note(what: sys.UnraisableHookArgs) -> None:
        found.append(type(what.exc_value).__name__)

    monkeypatch.setattr(sys, "unraisablehook", note)
    yield found
    gc.collect()


def interrupted(call: Call, state: Path | None, at: int | None, unraisable: list[str]) -> Moments:
    """The call in a session of its own, interrupted at one moment; then what `check` asks for holds."""
    s = opened(state)
    moments = Moments(at)
    error = moments.run(lambda: call(s))
    if error is None and moments.where:
        error = awaited_interruption(unraisable)
    assert error is None or isinstance(error, KeyboardInterrupt), moments.where
    assert (error is None) == (not moments.where), f"lost at {moments.where}"
    del error
    try:
        check(s)
        s.close()
        if state is not None:
            with dlog.session(None, state=state, sync="never") as again:
                assert ("9", 1) in set(again["edge"])
    except Exception as raised:
        raised.add_note(f"interrupted at {moments.where}")
        raise
    return moments


def awaited_interruption(unraisable: list[str]) -> BaseException | None:
    """One that hit a finalizer, which passes it on a moment later; where it came before the finalizer's first instruction, or
    after its last one, Python tells of it itself."""
    if unraisable == ["KeyboardInterrupt"]:
        return KeyboardInterrupt(unraisable.pop())
    try:
        time.sleep(2)
    except KeyboardInterrupt as error:
        return error
    return None


def moments_of(call: Call, folder: Path | None, unraisable: list[str]) -> int:
    """How many there are, once all modules are imported and the kernels it needs are linked."""
    interrupted(call, None if folder is None else folder / "first", None, unraisable)
    return interrupted(call, None if folder is None else folder / "counted", None, unraisable).count


@pytest.mark.slow
@pytest.mark.parametrize("has_state", [False, True], ids=["", "state"])
@pytest.mark.parametrize("name", CALLS)
def test_an_interrupted_call_leaves_a_session_that_goes_on(
    name: str, has_state: bool, tmp_path: Path, unraisable: list[str]
) -> None:
    folder = tmp_path if has_state else None
    count = moments_of(CALLS[name], folder, unraisable)
    for at in sorted(random.Random(name).sample(range(1, count + 1), min(SOME, count))):
        interrupted(CALLS[name], None if folder is None else folder / str(at), at, unraisable)
    assert unraisable == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("has_state", [False, True], ids=["", "state"])
@pytest.mark.parametrize("name", CALLS)
def test_at_every_moment(name: str, has_state: bool, tmp_path: Path, unraisable: list[str]) -> None:
    """At most a thousand moments of a call."""
    folder = tmp_path if has_state else None
    count = moments_of(CALLS[name], folder, unraisable)
    for at in sorted(random.Random(name).sample(range(1, count + 1), min(1000, count))):
        interrupted(CALLS[name], None if folder is None else folder / str(at), at, unraisable)
    assert unraisable == []


@pytest.mark.slow
@pytest.mark.parametrize("share", [n / 12 for n in range(12)])
@pytest.mark.parametrize("has_state", [False, True], ids=["", "state"])
def test_an_interrupted_close_can_be_repeated_and_loses_nothing(has_state: bool, share: float, tmp_path: Path) -> None:
    counted = opened(tmp_path / "counted" if has_state else None)
    whole = Moments()
    whole.run(counted.close)
    s = opened(tmp_path / "state" if has_state else None)
    moments = Moments(1 + int(share * whole.count))
    error = moments.run(s.close)
    assert error is None or isinstance(error, KeyboardInterrupt)
    s.close()
    if has_state:
        with dlog.session(PROGRAM, state=tmp_path / "state", sync="never") as again:
            check(again)


@pytest.mark.slow
@pytest.mark.parametrize("share", [n / 12 for n in range(12)])
def test_an_interrupted_opening_leaves_a_state_that_opens(share: float, tmp_path: Path) -> None:
    opened(tmp_path / "state").close()
    whole = Moments()
    whole.run(lambda: opened(tmp_path / "state").close())
    moments = Moments(1 + int(share * whole.count))
    error = moments.run(lambda: opened(tmp_path / "state"))
    assert error is None or isinstance(error, KeyboardInterrupt)
    del error
    gc.collect()
    with opened(tmp_path / "state") as s:
        check(s)
