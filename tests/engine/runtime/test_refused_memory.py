"""Memory that the system refuses, whatever the limit: a commit that meets it leaves the rows of the last round."""

from __future__ import annotations

import pytest

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental import access
from dlog.engine.runtime.incremental.batches.last_commit import LastCommit
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.storage.native import Struct
from dlog.grammar.diagnostics import DlogError
from tests.engine.runtime.maintaining import EDGES, commit, engine_of, rows

STEPS = EDGES + ".decl r(x: number, y: number)\n.output r\nr(x, z) :- e(x, y), e(y, z).\n"
COUNTS = EDGES + ".decl r(x: number, n: number)\n.output r\nr(x, n) :- e(x, _), n = count : { e(x, _) }.\n"
NEVER = 1 << 50
"""Words of an item that no system has memory for."""


def refuse(engine: Maintained, *fields: int) -> None:
    """Has a list of the input refuse to grow: one that has no memory yet."""
    assert engine._flow is not None
    found = engine._flow.collections["e"].struct
    for field in fields:
        inner = found.keep[field]
        assert isinstance(inner, Struct)
        found = inner
    assert found[L.items.data] == 0
    found[L.items.words] = NEVER


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "places",
    [
        (L.collection.outer, L.history.items),
        (L.collection.outer, L.history.entries),
        (L.collection.log,),
        (L.collection.new_rows,),
    ],
)
@pytest.mark.parametrize("wide", [0, 1 << 40])
@pytest.mark.parametrize("program", [STEPS, COUNTS])
def test_half_a_change_of_an_input_is_not_left(program: str, wide: int, places: tuple[int, ...], sign: int) -> None:
    """Wide values are no pairs (kernels/incremental/store/pairs.py)."""
    with engine_of(program) as engine:
        commit(engine, (0, 1, 0, 1), (0, 1, 1, 2), (0, 1, 1, wide))
        edges, derived = rows(engine, "e"), rows(engine, "r")
        refuse(engine, *places)
        try:
            commit(engine, (0, sign, *((1, 2) if sign < 0 else (2, wide))))
        except DlogError as error:
            assert error.diagnostics[0].code == "out-of-memory"
            assert rows(engine, "e") == edges and rows(engine, "r") == derived
            commit(engine, (0, 1, 3, 4))
            assert rows(engine, "e") == {*edges, (3, 4)}


@pytest.mark.parametrize(("owner", "name"), [(LastCommit, "_rows_before"), (Maintained, "_build")])
def test_going_back_that_fails_is_done_when_something_is_asked(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """Rows in between were those of half a commit, or none at all."""
    with engine_of(STEPS) as engine:
        commit(engine, (0, 1, 0, 1), (0, 1, 1, 2))
        refuse(engine, L.collection.outer, L.history.items)
        genuine = getattr(owner, name)

        def fail(*_: object) -> None:
            raise MemoryError

        monkeypatch.setattr(owner, name, fail)
        with pytest.raises(MemoryError):
            commit(engine, (0, 1, 2, 3))
        with pytest.raises(MemoryError):
            rows(engine, "r")
        with pytest.raises(MemoryError):
            commit(engine, (0, 1, 2, 3))
        assert engine.image() is None
        monkeypatch.setattr(owner, name, genuine)
        assert rows(engine, "e") == {(0, 1), (1, 2)} and rows(engine, "r") == {(0, 2)} and engine.round == 1
        commit(engine, (0, 1, 2, 3))
        assert rows(engine, "r") == {(0, 2), (1, 3)}


def test_taking_back_from_an_heir_that_fails_is_done_when_something_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_of(STEPS) as engine:
        commit(engine, (0, 1, 0, 1), (0, 1, 1, 2))
        with engine_of(STEPS + ".decl q(x: number)\n.output q\nq(x) :- r(x, _).\n", old=engine) as successor:
            successor.commit({})
            assert successor.reused_relations and rows(successor, "q") == {(0,)}
            genuine = engine._build

            def fail(*_: object) -> None:
                raise MemoryError

            monkeypatch.setattr(engine, "_build", fail)
            for attempt in (lambda: engine.take_back(successor), lambda: rows(engine, "r")):
                with pytest.raises(MemoryError):
                    attempt()
            monkeypatch.setattr(engine, "_build", genuine)
            assert rows(engine, "e") == {(0, 1), (1, 2)} and rows(engine, "r") == {(0, 2)} and engine.round == 1


def test_nobody_reads_while_a_commit_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows were gone for readers whose turn came then."""
    with engine_of(STEPS, memory=1 << 21) as engine:
        commit(engine, *((0, 1, n % 50, n) for n in range(3000)))
        engine.worker.control[L.control.budget] = 1
        engine._access.waiting = 1
        gone: list[bool] = []
        monkeypatch.setattr(access.time, "sleep", lambda _: gone.append(engine._flow is None))
        with pytest.raises(DlogError, match="out of memory"):
            commit(engine, *((0, 1, n, n % 50) for n in range(3000)))
        engine._access.waiting = 0
        assert gone and not any(gone)
