"""What an answer about vertices was before a commit."""

from __future__ import annotations

import numpy as np

from dlog.graphs.names import Codes
from dlog.graphs.running import Columns
from dlog.graphs.shared import changed

NEW = -1
"""The value before a commit of a vertex that came with it."""
_NONE = np.empty(0, np.int64)


class FormerValues:
    """What an answer said of vertices before a commit, where it may say another thing now."""

    def __init__(self) -> None:
        self._vertices: list[Codes] = []
        self._values: list[Codes] = []

    def were(self, vertices: Codes, values: Codes) -> None:
        """Notes values of vertices; of the same vertex the first one counts."""
        self._vertices.append(vertices)
        self._values.append(values)

    def come(self, vertices: Codes) -> None:
        """Notes vertices of which nothing was said."""
        self.were(vertices, np.full(len(vertices), NEW))

    def changes(self, now: Codes) -> Columns:
        """The rows (vertex, value) that came and those that went, then their diffs; `now` has the value of each vertex."""
        vertices, first = np.unique(np.concatenate([_NONE, *self._vertices]), return_index=True)
        before = np.concatenate([_NONE, *self._values])[first]
        there = before != NEW
        return changed((vertices[there], before[there]), (vertices, now[vertices]))
