"""Histories that somebody has forged with all checksums right: they begin anew, and no memory is touched."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.engine.state import files
from dlog.engine.state.manifest import _checksum
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.folder import State
from dlog.sessions.persistence.inspection import check_state
from dlog.sessions.persistence.stored_history import PAST
from tests.dlog.persistence.state_sessions import crash

PROGRAM = """.decl name(x: number, text: symbol) history(20)
.decl long(x: number, n: number)
long(x, strlen(text)) :- name(x, text).
"""
RULES = """.decl gone(x: number, text: symbol)
gone(x, text) :- name@-1(x, text), !name(x, text).
"""
ROWS, NOBODYS = 300, 1 << 29
Words = list[int]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A state of five rounds, all in its history."""
    return stored(tmp_path / "state", PROGRAM)


def stored(folder: Path, program: str) -> Path:
    with opened(folder, program) as session:
        for round in range(5):
            session.insert("name", [(round, f"text {round}")])
            session.commit()
    return folder


def opened(folder: Path, program: str = PROGRAM) -> dlog.Session:
    return dlog.session(program, state=folder, threads=1, sync="never", history=20)


def forge(folder: Path, *batches: dict[str, Any]) -> None:
    """Has the manifest say that these are the history of `name`."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["relations"]["name" + PAST]["batches"] = batches
    manifest.pop("checksum")
    text = json.dumps({**manifest, "checksum": _checksum(manifest)})
    for copy in ("manifest.json", "manifest.copy"):
        (folder / copy).write_text(text)


def batch(lower: int, upper: int, *layers: dict[str, Any], since: int = 0) -> dict[str, Any]:
    return {"lower": [[lower]], "upper": [[upper]], "since": [[since]], "layers": list(layers)}


class Forger:
    """Layers of one file, whose first column it has; all else is constant."""

    def __init__(self, folder: Path) -> None:
        self.content = bytes(8) + np.arange(ROWS, dtype=np.int64).tobytes()
        (folder / "99999999.layer").write_bytes(self.content)

    def layer(self, text: int, time: Words, diff: Words) -> dict[str, Any]:
        words = [ROWS, 2, 1, 0, 0, 0, 8, 8, 0, text, 0, 0, *time, *diff]
        checksum = files.checksum(self.content)
        return {"file": "99999999.layer", "size": len(self.content), "checksum": checksum, "words": words}


def at(round: int) -> Words:
    return [round, 0, round]


ONCE = [1, 0, ROWS]


def refused(folder: Path, why: str) -> None:
    """A check says why; a session has the history begin anew, and goes on, with reads of past rounds between commits."""
    with pytest.raises(DlogError, match=why) as error:
        check_state(folder)
    assert {d.code for d in error.value.diagnostics} == {"state-corrupt"}
    with pytest.warns(RuntimeWarning, match=r"begins anew"):
        session = opened(folder)
    try:
        assert session._followers.oldest() == session.round
        used(session)
    finally:
        crash(session)


def used(session: dlog.Session) -> None:
    first = session.round
    for round in range(8):
        session.insert("name", [(round + 100, f"another {round}")])
        session.remove("name", [(round, f"text {round}")])
        session.commit()
        for past in range(session._followers.oldest(), session.round):
            with session.at(past) as view:
                assert len(list(view["long"])) == len(list(view["name"])) == 5 + max(0, past - first - 5)


def bounds(forger: Forger) -> Iterator[tuple[Words, Words]]:
    """Times and diffs that are not what their bounds say."""
    yield [2, 0, 0], ONCE
    yield [8, 8, 0], ONCE
    yield [-1, 0, -1], ONCE
    yield [2, 0, 3], ONCE
    yield at(2), [0, 0, 0]
    yield at(2), [1, 0, 1]
    yield at(2), [-(1 << 62), 0, 0]
    yield at(2), [8, 8, 0]
    yield at(2), [8, 8, ROWS * (ROWS - 1) // 2]


@pytest.mark.parametrize("number", range(9))
def test_bounds_of_fields_are_checked(folder: Path, number: int) -> None:
    forger = Forger(folder)
    time, diff = list(bounds(forger))[number]
    forge(folder, *(batch(k, k + 1, forger.layer(0, time, diff)) for k in range(4)))
    refused(folder, "the times or diffs of a layer are not as the manifest says")


FORGED = [(0, [2, 0, 0], 0), (NOBODYS, [0, 0, 0], 0), (0, [8, 0, 8], 0), (0, [3, 0, 3], 3)]


@pytest.mark.parametrize(("text", "time", "since"), FORGED)
def test_rules_on_past_rounds_have_none_to_read(tmp_path: Path, text: int, time: Words, since: int) -> None:
    folder = stored(tmp_path / "state", PROGRAM + RULES)
    forge(folder, batch(1, 4, Forger(folder).layer(text, time, ONCE), since=since))
    with pytest.warns(RuntimeWarning, match="begins anew"):
        session = opened(folder, PROGRAM + RULES)
    with pytest.raises(DlogError, match="of `name` cannot be read"):
        session.insert("name", [(99, "text")])
        session.commit()
    crash(session)


@pytest.mark.parametrize(("lower", "upper", "round"), [(0, 3, 0), (2, 3, 1), (2, 3, 3), (2, 3, 8), (1, 3, 1 << 40)])
def test_times_outside_their_batch_are_refused(folder: Path, lower: int, upper: int, round: int) -> None:
    diff = [-1, 0, ROWS]  # rows that are there once may be older
    forge(folder, batch(lower, upper, Forger(folder).layer(0, at(round), diff)))
    refused(folder, "changes are not of the rounds of their batch")


def test_rounds_are_not_given_up_that_marks_say_are_kept(folder: Path) -> None:
    forge(folder, batch(1, 4, Forger(folder).layer(0, at(3), ONCE), since=3))
    refused(folder, "it does not tell rounds apart that can be read")


@pytest.mark.parametrize("wrong", [batch(3, 3), batch(3, 2), batch(0, 1 << 62), batch(1, 4, since=1 << 62)])
def test_rounds_that_do_not_ascend_are_refused(folder: Path, wrong: dict[str, Any]) -> None:
    wrong["layers"] = [Forger(folder).layer(0, at(1), ONCE)]
    forge(folder, wrong)
    refused(folder, "rounds do not ascend")


@pytest.mark.parametrize("rounds", [(0, 0), (1, 1), (1, 2)])
def test_a_batch_has_layers_as_merges_make_them(folder: Path, rounds: tuple[int, ...]) -> None:
    forger = Forger(folder)
    layers = [forger.layer(0, at(round), ONCE) for round in rounds]
    forge(folder, batch(0, 4, *layers))
    refused(folder, "layers that make no sense together")


@pytest.mark.parametrize("round", [0, 2])
def test_ids_of_nothing_are_refused_whatever_their_rounds(folder: Path, round: int) -> None:
    """Settled rows are of no round that is read."""
    forge(folder, batch(0, 4, Forger(folder).layer(NOBODYS, at(round), ONCE)))
    refused(folder, "ids of nothing")


@pytest.mark.parametrize("round", [3, 5])
def test_logged_changes_are_of_their_commit(folder: Path, round: int) -> None:
    state = State(folder, "never", None)
    last = state.round + 1
    about = Updates((np.array([0]), np.array([1])), np.array([1]), np.array([last]))
    changes = Updates((np.array([7]), np.array([0])), np.array([1]), np.array([round]))
    state._store.append(last, {PAST: about, "name" + PAST: changes}, {})
    state.close()
    refused(folder, "rounds do not ascend")


def test_words_without_an_index_are_not_what_was_in_memory(folder: Path) -> None:
    relations = json.loads((folder / "manifest.json").read_text())["relations"].values()
    layers = [layer["words"] for r in relations for b in r["batches"] for layer in b["layers"]]
    assert layers and all(words[3] or words[4:6] == [0, 0] for words in layers)


def test_a_history_of_many_merges_is_read_again(tmp_path: Path) -> None:
    """With rows that settled, rounds that were given up, and relations that changed late."""
    said: dict[int, set[Any]] = {0: set()}
    folder = tmp_path / "state"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(6):
            with dlog.session(PROGRAM, state=folder, threads=1, sync="never", history=12) as session:
                for past in range(session._followers.oldest(), session.round):
                    with session.at(past) as view:
                        assert set(view["name"]) == said[past]
                for _ in range(9):
                    session.insert("name", [(session.round, "a"), (session.round % 4, "b")])
                    session.remove("name", [(session.round - 3, "a"), ((session.round + 1) % 4, "b")])
                    session.commit()
                    said[session.round] = set(session["name"])
            check_state(folder)
