"""Rows that have arrived, as paths read them: where they lie, part by part, or copied together where parts are small."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from dlog.engine.cluster.exchange import Rows, joined
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.storage.relation import StoredRelation

MIN_PART_ROWS = 1 << 14
"""Rows of a part from which on starting a path once more costs less than copying them."""


def readable(parts: Sequence[Rows], widths: Sequence[int]) -> list[Rows]:
    """The parts in columns of these widths, those that are small as one."""
    large = [part for part in parts if part.height >= MIN_PART_ROWS]
    small = [part for part in parts if part.height < MIN_PART_ROWS]
    return [_fitting(part, widths) for part in (*large, *([joined(small)] if small else ()))]


def _fitting(rows: Rows, widths: Sequence[int]) -> Rows:
    """The rows as kernels read them; columns that are so already are not copied."""
    pairs = zip(rows.columns, widths, strict=True)
    return Rows(tuple(np.require(c, np.int32 if w == 4 else np.int64, ["C", "A"]) for c, w in pairs), rows.height)


@contextmanager
def holding(relation: StoredRelation, rows: Rows) -> Iterator[None]:
    """The relation, which has no memory of its own, has these rows meanwhile."""
    fields = relation.struct.keep[L.relation.columns].words  # type: ignore[attr-defined]
    places = slice(L.column.data, L.column.data + L.column.size * relation.arity, L.column.size)
    fields[places] = [c.ctypes.data for c in rows.columns]
    relation.struct[L.relation.rows] = rows.height
    try:
        yield
    finally:
        fields[places] = 0
        relation.struct[L.relation.rows] = 0
