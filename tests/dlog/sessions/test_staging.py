"""What waits for a commit, where some of it is elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

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
