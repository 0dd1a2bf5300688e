"""The order of vertices that keeps core numbers: labels ascend along each level, wherever vertices are put."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.graphs import core_order
from dlog.engine.runtime.storage.native import Struct
from tests.examples import examples

MOST = 400


class Level:
    """One level of so many vertices, of which few are in it at first."""

    def __init__(self) -> None:
        self.cores = Struct(L.cores.size)
        self.arrays = {name: np.zeros(MOST, np.int32) for name in ("before", "after", "first", "last")}
        self.labels = np.zeros(MOST, np.int64)
        for name in ("before", "after", "first", "last"):
            self.cores[getattr(L.cores, name)] = int(self.arrays[name].ctypes.data)
        self.cores[L.cores.labels] = int(self.labels.ctypes.data)

    @property
    def listed(self) -> list[int]:
        """The vertices from the first one on; from the last one back they are the same."""
        forth, back = self._from("first", "after"), self._from("last", "before")
        assert back[::-1] == forth and (np.diff(self.labels[forth]) > 0).all()
        return forth

    def _from(self, begin: str, step: str) -> list[int]:
        found, at = [], int(self.arrays[begin][0])
        while at:
            found.append(at - 1)
            at = int(self.arrays[step][at - 1])
        return found


MOVE = st.tuples(st.sampled_from(["first", "last", "behind", "behind"]), st.integers(0, 1), st.integers(1, 30))


@examples(60)
@given(moves=st.lists(MOVE, max_size=25))
@example(moves=[("last", 0, 3), *[("behind", 0, 30)] * 12])
def test_labels_ascend_also_where_all_are_put_at_one_place(moves: list[tuple[str, int, int]]) -> None:
    level, expected, new = Level(), [0], 1
    core_order.put_last(level.cores.address, 0, 0)
    for where, place, count in moves:
        come = list(range(new, min(new + count, MOST)))
        new += len(come)
        if where == "behind" and come:
            other = expected[min(place, len(expected) - 1)]
            vertices = np.array(come, np.int32)
            core_order.put_behind(level.cores.address, int(vertices.ctypes.data), len(come), other, 0)
            at = expected.index(other) + 1
            expected[at:at] = come
        else:
            for vertex in come:
                getattr(core_order, f"put_{where}")(level.cores.address, vertex, 0)
                expected.insert(0 if where == "first" else len(expected), vertex)
        assert level.listed == expected
