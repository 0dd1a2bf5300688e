"""Rows that do not pass through the process of a session with a state: files of their own, and what becomes of them."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dlog
from dlog.engine.state import manifest, parts
from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError
from dlog.sessions import options
from dlog.sessions.persistence import bulk_files, external_relations, saving
from tests.dlog.persistence.state_frames import Frame, TakesFrames, named_parts, parts_of, taking_frames
from tests.dlog.persistence.state_sessions import Open, code, crash

options_maker = options.Options._maker
EDGES = [(1, 2), (2, 3), (3, 4)]
TYPED = """.type Pair = [number: number, text: symbol]
.decl r(n: number, s: symbol, u: unsigned, f: float, p: Pair)
.decl all(n: number, s: symbol, u: unsigned, f: float, p: Pair)
all(n, s, u, f, p) :- r(n, s, u, f, p).
"""


@pytest.fixture(autouse=True)
def frames() -> Iterator[None]:
    with taking_frames():
        yield


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of lots came to this process, each time."""
    found: list[int] = []

    def counted(*args: Any) -> Any:
        columns, rows = real(*args)
        found.append(rows)
        return columns, rows

    real = bulk_files.read_parts
    monkeypatch.setattr(bulk_files, "read_parts", counted)
    monkeypatch.setattr(saving, "read_parts", counted)
    return found


def load(session: dlog.Session, *rows: tuple[Any, ...], relation: str = "edge") -> int:
    session.insert(relation, Frame.of(*rows))
    return int(session.commit())


def test_a_lot_is_not_read_here_and_comes_back(reopen: Open, read: list[int], tmp_path: Path) -> None:
    session = reopen()
    assert load(session, *EDGES) == 1
    assert len(parts_of(tmp_path / "state")) == 2
    assert session["path"].rows == 6
    for closed in (False, True, False):
        if closed:
            session.close()
        session = reopen()
        assert session.round == 1
        session.remove("edge", (7, 7))
        session.rollback()
        assert session._engine._awake().rows("path") == 6  # type: ignore[attr-defined]
        assert parts_of(tmp_path / "state") == named_parts(session)
    assert read == []
    assert sorted(session["edge"]) == EDGES
    assert reopen()._engine.external("edge").rows == 3 and sum(read) == 3  # type: ignore[attr-defined]


def test_what_changes_after_a_lot_is_kept_apart_from_it(reopen: Open, read: list[int], tmp_path: Path) -> None:
    session = reopen(facts={"edge": [(0, 1), (1, 2)]})
    load(session, *EDGES, (8, 9))
    session.remove("edge", [(2, 3), (0, 1)])
    session.insert("edge", (5, 6))
    session.commit()
    load(session, (2, 3), (9, 9))
    session.remove("edge", [(9, 9), (8, 9)])
    session.commit()
    expected = [(1, 2), (2, 3), (3, 4), (5, 6)]
    for closed in (False, True, True, False):
        paths = sorted(session["path"])
        session.close() if closed else crash(session)
        session = reopen()
        assert sorted(session._engine._awake().table("path").columns[0]) == [x for x, _ in paths]  # type: ignore[attr-defined]
        assert read == []
        assert len(parts_of(tmp_path / "state")) == 4
    assert sorted(session["edge"]) == expected
    session = reopen()
    assert sorted(session["edge"]) == expected and read


def test_a_lot_that_is_damaged_while_a_session_has_it_is_named_when_it_is_read(reopen: Open, tmp_path: Path) -> None:
    session = reopen()
    load(session, *EDGES)
    session = reopen()
    name = min(parts_of(tmp_path / "state"))
    content = (tmp_path / "state" / name).read_bytes()
    for damaged in (content[:-9], content[:40] + bytes([content[40] ^ 1]) + content[41:]):
        (tmp_path / "state" / name).write_bytes(damaged)
        with pytest.raises(DlogError, match="does not fit its checksum") as raised:
            sorted(session["edge"])
        assert raised.value.diagnostics[0].place.endswith(name)
    (tmp_path / "state" / name).write_bytes(content)
    assert sorted(session["edge"]) == EDGES


def test_few_rows_are_logged_themselves(reopen: Open, read: list[int], tmp_path: Path) -> None:
    with taking_frames(few=3):
        session = reopen()
        load(session, *EDGES)
        assert (sum(read), parts_of(tmp_path / "state")) == (3, set())
        load(session, *EDGES, (4, 5))
        assert len(parts_of(tmp_path / "state")) == 2
        assert sorted(reopen()["path"]) == sorted((x, y) for x in range(1, 6) for y in range(x + 1, 6))


def test_rows_that_go_in_a_lot(reopen: Open) -> None:
    session = reopen()
    load(session, *EDGES)
    session.remove("edge", Frame.of((2, 3), (7, 7)))
    session.commit()
    load(session, (2, 3), (4, 5))
    session.remove("edge", Frame.of((1, 2)))
    session.commit()
    for closed in (False, True):
        session.close() if closed else crash(session)
        session = reopen()
        assert sorted(session["edge"]) == [(2, 3), (3, 4), (4, 5)]


def test_lots_that_go_are_not_read_here_either(reopen: Open, read: list[int]) -> None:
    """Rows that come and go in one round, in either order, before and after others that are logged themselves."""
    session = reopen(facts={"edge": [(0, 1), (9, 1)]})
    session.insert("edge", Frame.of(*EDGES))
    session.remove("edge", Frame.of((2, 3), (9, 1), (5, 5)))
    session.insert("edge", Frame.of((2, 3), (4, 5)))
    session.remove("edge", Frame.of((4, 5), (3, 4)))
    session.commit()
    session.insert("edge", [(3, 4), (9, 1)])
    session.remove("edge", (2, 3))
    session.commit()
    expected = [(0, 1), (1, 2), (3, 4), (9, 1)]
    for closed in (False, True, True):
        session.close() if closed else crash(session)
        session = reopen()
        assert session._engine._awake().external("edge").rows == len(expected)  # type: ignore[attr-defined]
        assert session._engine._awake().rows("path") == 6  # type: ignore[attr-defined]
        assert read == []
    assert sorted(session["edge"]) == expected


def test_every_kind_of_value_comes_back(reopen: Open) -> None:
    columns = {
        "n": pa.array([1, -(2**63), 1]),
        "s": pa.array(["a", "grün", "a"]),
        "u": pa.array([Decimal(2**64 - 1), Decimal(0), Decimal(2)], pa.decimal128(20, 0)),
        "f": pa.array([-0.0, 0.5, 1e300]),
        "p": pa.array(["[1, x]", "nil", "[2, y z]"]),
    }
    session = reopen(TYPED)
    session.insert("r", Frame(pa.table(columns)))
    session.commit()
    here = sorted(map(repr, session["all"]))
    session.remove("r", [row for row in session["r"] if row[0] == 1 and row[3] > 1])
    session.commit()
    assert len(here) == 3
    left = sorted(map(repr, session["all"]))
    for closed in (False, True):
        session.close() if closed else crash(session)
        session = reopen(TYPED)
        assert sorted(map(repr, session["all"])) == left == [row for row in here if "1e+300" not in row]


def test_a_commit_that_fails_leaves_no_files(reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = reopen()
    load(session, *EDGES)
    before = parts_of(tmp_path / "state")
    session.insert("edge", Frame.of((4, 5)))

    def refuse(*args: Any) -> int:
        raise DlogError([])

    with monkeypatch.context() as patch:
        patch.setattr(TakesFrames, "commit", refuse)
        with pytest.raises(DlogError):
            session.commit()
    assert parts_of(tmp_path / "state") == before
    session.commit()
    assert len(parts_of(tmp_path / "state")) == 4
    assert reopen()["path"].rows == 10


def test_files_that_no_record_names_are_removed(reopen: Open, tmp_path: Path) -> None:
    session = reopen()
    load(session, *EDGES)
    folder = tmp_path / "state"
    before = parts_of(folder)
    (folder / f"{'0' * 32}.parquet").write_bytes(b"torn")
    (folder / "incoming-1").mkdir()
    (folder / "incoming-1" / "part-0.parquet").write_bytes(b"torn")
    session = reopen()
    assert parts_of(folder) == before == named_parts(session)
    assert sorted(session["edge"]) == EDGES


INSTANTS: dict[str, tuple[Any, str, int]] = {
    "files are written": (TakesFrames, "save", 1),
    "one of them is taken in": (parts, "_taken_in", 1),
    "all are taken in": (parts, "take_in", 1),
    "the engine has committed": (TakesFrames, "commit", 1),
    "the round is logged": (Store, "append", 2),
    "the checkpoint at the end is written": (manifest, "write_manifest", 2),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("instant", INSTANTS)
def test_a_process_that_is_killed_loses_and_doubles_nothing(reopen: Open, tmp_path: Path, instant: str) -> None:
    """Right after each step of a commit of a frame, and of the closing after it."""
    owner, name, round = INSTANTS[instant]
    session = reopen()
    load(session, *EDGES)
    session.close()
    child = os.fork()
    if child == 0:
        try:
            session = reopen()
            session.insert("edge", Frame.of((3, 4), (4, 5)))
            setattr(owner, name, _and_dies(getattr(owner, name)))
            session.commit()
            session.close()
        finally:
            os._exit(1)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1])
    session = reopen()
    assert session.round == round
    assert sorted(session["edge"]) == EDGES + [(4, 5)] * (round - 1)
    assert session["path"].rows == (6, 10)[round - 1]
    assert parts_of(tmp_path / "state") == named_parts(session)
    session.remove("edge", (3, 4))
    session.commit()
    assert sorted(reopen()["edge"]) == EDGES[:2] + [(4, 5)] * (round - 1)


def _and_dies(function: Any) -> Any:
    def called(*args: Any, **named: Any) -> None:
        function(*args, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    return called


@pytest.mark.parametrize("torn", [True, False])
def test_a_damaged_lot_is_named(reopen: Open, tmp_path: Path, torn: bool) -> None:
    load(reopen(), *EDGES)
    part = tmp_path / "state" / min(parts_of(tmp_path / "state"))
    if torn:
        part.write_bytes(part.read_bytes()[:-1] + b"?")
    else:
        part.unlink()
    assert code(reopen) == "state-corrupt"


def test_a_relation_that_is_dropped_takes_its_lots_along(reopen: Open, tmp_path: Path) -> None:
    session = reopen(".decl edge(x: number, y: number)\n.decl other(x: number)\n")
    load(session, *EDGES)
    session.drop_relation("edge")
    session.add_rules(".decl edge(x: symbol, y: symbol)")
    assert session["edge"].rows == 0
    session.insert("edge", ("a", "b"))
    session.commit()
    for closed in (False, True, False):
        session.close() if closed else crash(session)
        session = reopen(None)
        assert sorted(session["edge"]) == [("a", "b")]
    assert parts_of(tmp_path / "state") == set()


def test_an_engine_that_takes_no_frames_reads_lots(reopen: Open, read: list[int]) -> None:
    load(reopen(), *EDGES)
    with taking_frames():
        options.Options._maker = options_maker  # type: ignore[method-assign]
        session = reopen()
        session.insert("edge", Frame.of((4, 5)))
        session.commit()
        assert session["path"].rows == 10 and sum(read) == 3


def test_a_program_that_changes_keeps_lots(reopen: Open) -> None:
    session = reopen()
    load(session, *EDGES)
    session.add_rules(".decl back(y: number, x: number)\nback(y, x) :- path(x, y).")
    assert session["back"].rows == 6
    session = reopen(None)
    assert session["back"].rows == 6
    with pytest.warns(RuntimeWarning, match="its inputs are kept"):
        session = reopen(".decl edge(x: number, y: number)\n.decl n(c: number)\nn(c) :- c = count : { edge(_, _) }.\n")
    assert list(session["n"]) == [(3,)]


@pytest.mark.parametrize("few", [0, 3])
def test_too_many_lots_become_one_when_a_session_is_closed(
    reopen: Open, read: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(external_relations, "MAX_BULK_CHANGES", 2)
    session = reopen()
    load(session, *EDGES)
    session.remove("edge", (1, 2))
    session.commit()
    load(session, (4, 5), (7, 7))
    session.close()
    assert len(parts_of(tmp_path / "state")) == 4
    session = reopen()
    load(session, (5, 6), (7, 7))
    session.remove("edge", [(7, 7), (2, 3)])
    session.commit()
    monkeypatch.setattr(saving, "MAX_RELAYED_ROWS", few)
    session.close()
    assert len(parts_of(tmp_path / "state")) == (0 if few else 2)
    assert read == [] or few
    for _ in range(2):
        session = reopen()
        assert parts_of(tmp_path / "state") == named_parts(session)
        assert sorted(session["edge"]) == [(3, 4), (4, 5), (5, 6)]
        assert session._engine._awake().rows("path") == 6  # type: ignore[attr-defined]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_lots_and_changes_in_any_order(reopen: Open, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(external_relations, "MAX_BULK_CHANGES", seed)
    rng = random.Random(seed)
    session, edges = reopen(), set[tuple[int, int]]()
    for _ in range(40):
        some = {(rng.randrange(6), rng.randrange(6)) for _ in range(rng.randrange(1, 6))}
        given = Frame.of(*some) if rng.random() < 0.4 else sorted(some)
        match rng.randrange(8):
            case 0 | 1 | 2 | 3:
                session.insert("edge", given)
                edges |= some
                session.commit()
            case 4 | 5:
                session.remove("edge", given)
                edges -= some
                session.commit()
            case 6:
                session.close()
                session = reopen()
            case 7 if rng.random() < 0.5:
                session.insert("edge", given)
                session.remove("edge", Frame.of((0, 1), *list(some)[1:]))
                edges = (edges | some) - {(0, 1), *list(some)[1:]}
                session.commit()
            case 7:
                session = reopen()
        if rng.random() < 0.3:
            assert set(session["edge"]) == edges
        elif rng.random() < 0.5:
            assert session._engine._awake().external("edge").rows == len(edges)  # type: ignore[attr-defined]
    assert set(session["edge"]) == edges
    assert set(session["path"]) == closure(edges)


def closure(edges: set[tuple[int, int]]) -> set[tuple[int, int]]:
    found = set(edges)
    while new := {(x, z) for x, y in found for v, z in edges if v == y} - found:
        found |= new
    return found
