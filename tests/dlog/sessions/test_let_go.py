"""Sessions that nobody holds any more: their memory, and on Spark their workers, are given back at once."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any

import pytest

import dlog

PROGRAM = """
.decl e(x: number)
.decl p(x: number)
.decl q(x: number)
.decl t(name: symbol)
p(x) :- e(x).
q(x) :- @e(x), x < now().
"""


@pytest.mark.parametrize("kept", [{}, {"history": 5}, {"state": True}, {"state": True, "history": 5}], ids=str)
def test_a_session_that_is_let_go_is_gone_without_a_search_for_cycles(kept: dict[str, Any], tmp_path: Path) -> None:
    gc.collect()
    gc.disable()
    try:
        s = dlog.session(PROGRAM, threads=1, **(kept | ({"state": tmp_path / "s"} if "state" in kept else {})))
        s.insert("e", [(1,), (2,)])
        s.insert("t", ("one",))
        s.commit()
        assert sorted(s["p"]) == [(1,), (2,)] and list(s["t"]) == [("one",)]
        held = [weakref.ref(each) for each in (s, s._engine, s._engine.symbols)]  # type: ignore[attr-defined]
        del s
        assert [each() for each in held] == [None, None, None]
    finally:
        gc.enable()
