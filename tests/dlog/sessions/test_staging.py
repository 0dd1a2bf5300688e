"""What waits for a commit: where some of it is elsewhere, and where memory has a limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dlog
from dlog.sessions.ingest.staged_relation import Staged


def test_frames_that_do_the_opposite_keep_their_order() -> None:
    staged = Staged(1)
    for rows, diff in (({1, 2, 3}, 1), ({2}, -1), ({3, 4}, -1), ({4, 5}, 1)):
        assert staged.takes_frame(diff)
        staged.put_frame(rows, diff)
    assert not staged.takes_rows(1) and not staged.takes_rows(-1)
    assert staged.frames == [({1, 2, 3}, 1), ({2}, -1), ({3, 4}, -1), ({4, 5}, 1)]


@pytest.mark.parametrize("bulk", [False, True])
def test_frames_wait_beside_rows_that_do_the_same_only(bulk: bool) -> None:
    staged = Staged(1)
    if bulk:
        staged.put_many((np.array([7]),), np.array([1]))
    else:
        staged.single[7,] = 1
    assert (staged.takes_frame(1), staged.takes_frame(-1)) == (True, False)
    staged.put_frame({8}, 1)
    assert (staged.takes_rows(1), staged.takes_rows(-1)) == (True, False)
    staged.put_many((np.array([9]),), np.array([-1]))
    assert not staged.takes_frame(1) and not staged.takes_frame(-1)


MANY = np.arange(2**19)


@pytest.mark.parametrize("way", ["rows", "columns", "removed", "upserted", "file", "few"])
def test_no_more_is_staged_than_the_memory_allows(tmp_path: Path, way: str) -> None:
    with dlog.session(".decl r(x: number)\n.decl all(n: number)\nall(n) :- n = sum x : { r(x) }.\n", memory="4M") as s:
        s.insert("r", (7,))
        with pytest.raises(dlog.DlogError, match=r"out of memory: .*4 MiB"):
            match way:
                case "rows":
                    s.insert("r", [(x,) for x in MANY.tolist()])
                case "columns":
                    s.insert("r", {"x": MANY})
                case "removed":
                    s.remove("r", {"x": MANY})
                case "upserted":
                    s.upsert("r", {"x": MANY})
                case "file":
                    (tmp_path / "r.facts").write_text("\n".join(map(str, MANY)))
                    s.load("r", tmp_path / "r.facts")
                case _:
                    for x in MANY.tolist():
                        s.insert("r", (x,))
        assert s.staged["r"] < 20_000
        if way != "few":
            assert s.staged == {"r": 1}
            s.commit()
            assert list(s["all"]) == [(7,)]


def test_a_commit_and_a_rollback_make_room_for_more() -> None:
    with dlog.session(".decl r(x: number)\n", memory="8M") as s:
        for end in (s.commit, s.rollback) * 4:
            rows: dict[str, Any] = {"x": np.arange(2**18)}  # twice as many are too many
            s.insert("r", rows)
            end()
        s.insert("r", rows)
        with pytest.raises(dlog.DlogError, match="changes that are staged take 6 MiB, and a commit makes room"):
            s.insert("r", [(x,) for x in range(2**18 + 2**10)])
