"""Sessions with a state, as tests open, crash and refuse them."""


from __future__ import annotations

from collections.abc import Callable

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
Open = Callable[..., dlog.Session]


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
