"""Chooses paths whose last join, or the runs of whose seed, and sink can be one loop (kernels/static/sweep.py)."""

from __future__ import annotations

from typing import Protocol

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Variable
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import KeyMap, SetKind
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.relation import StoredRelation

MIN_MATCHES_PER_ROW = 8.0
"""Matches per row of a relation that does not change from which on they are swept: fewer are better joined block by block."""
MIN_SWEPT_ROWS = 2**20
"""Rows of a relation that does not change from which on it is swept anyway: no cache holds it, and a sweep prefetches."""


class Relations(Protocol):
    def relation(self, name: str) -> StoredRelation: ...


def has_bitmap(relation: StoredRelation) -> bool:
    return not relation.keyed and relation.set_kind in (SetKind.BITS, SetKind.PAGES)


def is_plain(sink: nodes.Insert | nodes.Accumulate, storage: Relations) -> bool:
    """Whether the sink's relation has a bitmap and takes values that a path has without computing them."""
    if not isinstance(sink, nodes.Insert) or not sink.distinct or not has_bitmap(storage.relation(sink.relation)):
        return False
    return all(isinstance(term, Variable | Constant) for term in sink.terms)


def swept_columns(
    path: nodes.Path, step: nodes.HalfJoin, storage: Relations, arrangement: StoredArrangement
) -> tuple[int, int] | None:
    """The joined column that the sink takes, and its place there, where `step` is the last and its groups are long enough.
    Those of a feedback relation are."""
    if step is not path.steps[-1] or not is_plain(path.sink, storage):
        return None
    if not arrangement.growing and step.rows < MIN_MATCHES_PER_ROW and arrangement.relation.rows < MIN_SWEPT_ROWS:
        return None
    assert isinstance(path.sink, nodes.Insert)
    bound = {variable: column for column, variable in step.binds}
    places = [(bound[t.id], c) for c, t in enumerate(path.sink.terms) if isinstance(t, Variable) and t.id in bound]
    return places[0] if len(places) == 1 else None


def is_twin(arrangement: StoredArrangement, column: int, target: StoredRelation, place: int) -> bool:
    """Whether the bits of a group's rows are words that lie as those of the target's rows: both have pairs, and the same
    second column."""
    source = arrangement.relation
    if not arrangement.growing or arrangement.key != (0,) or arrangement.struct[L.arrangement.map] != KeyMap.DENSE:
        return False
    if (source.arity, target.arity, column, place) != (2, 2, 1, 1):
        return False
    if {source.set_kind, target.set_kind} != {SetKind.BITS} or source.first_stride % 64 or target.first_stride % 64:
        return False
    mine, other = source.extents[1], target.extents[1]
    return mine is not None and other is not None and mine.low == other.low and mine.span <= other.span
