"""What the last commit changed: its batches that are over, and the one whose changes still lie in the kernels' memory."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dlog.engine.kernels import layout as L
from dlog.engine.runtime.incremental.batches.changes import insertions
from dlog.engine.runtime.incremental.batches.fused import FusedBatches, batch_changes, take_changes
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.plan_changes.rebuilding import Before
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.values.differences import apply_changes
from dlog.engine.values.updates import Updates, joined


class LastCommit:
    """The last commit of an engine, or the one that is under way."""

    __slots__ = ("batches", "before", "first", "fused", "is_forgotten", "is_undone", "new_relations")

    def __init__(self, first: int) -> None:
        self.begin(first)

    def begin(self, first: int) -> None:
        """Another commit takes the place of this one."""
        self.batches: list[Mapping[str, Updates]] = []
        """What its batches that are over changed, but for the last one."""
        self.first = first
        """The round at which the last batch begins."""
        self.fused: FusedBatches | None = None
        """The last batch, if it was several fused ones."""
        self.before: Before | None = None
        """What there was before, if the commit began anew."""
        self.new_relations: frozenset[str] = frozenset()
        """If it took over from another engine: the relations that were not taken over."""
        self.is_forgotten = False
        """Whether the engine is at its last round without knowing what that changed."""
        self.is_undone = False
        """Whether it failed, and the way back is not done yet."""

    @property
    def shows_settled(self) -> bool:
        """Whether what readers would see, in the midst of it, is the last round that is over."""
        return not self.batches and not self.is_undone and (self.fused is None or not self.fused.has_changed)

    @property
    def is_plain(self) -> bool:
        """Whether it is one batch, whose changes lie in the kernels' memory."""
        return not self.batches and self.fused is None and self.before is None and not self.new_relations

    @property
    def is_over(self) -> bool:
        """Whether its last batch has gone through all rounds, where that was fused ones."""
        return self.fused is None or self.fused.is_over

    def keep_batch(self, flow: Dataflow) -> None:
        """Takes the changes of the last batch out of the kernels' memory: another one follows."""
        self.batches.append(take_changes(flow, self.fused, self.first))
        self.fused = None

    def changes(self, relation: str, collection: Collection, round: int) -> Updates:
        """What it changed in a relation; `round` is the one that it ended with."""
        if relation in self.new_relations:
            columns, rows = collection.read()
            return insertions(tuple(c.astype(np.int64, copy=False) for c in columns), rows, round)
        if self.before is not None:
            return self.before.changes(relation, round)
        last = batch_changes(collection, self.fused, self.first)
        return joined([*(b[relation] for b in self.batches if relation in b), last]) if self.batches else last

    def touched(self, flow: Dataflow) -> tuple[str, ...]:
        """The names of collections that may have changed, each once."""
        last = flow.touched() if self.fused is None else flow.touched_by_fused_batches()
        if not self.batches and not self.new_relations and self.before is None:
            return last
        found = {name for batch in self.batches for name in batch}.union(last, self.new_relations)
        return tuple(found.union(() if self.before is None else self.before.relations))

    def inputs_before(self, flow: Dataflow) -> dict[str, Updates]:
        """The rows of all inputs before it, to be inserted, where it has failed. Whatever is raised, nothing is lost."""
        known = (self.batches, self.first, self.fused)
        self.batches = [*self.batches]
        try:
            self._keep_unfinished(flow)
            return {name: self._rows_before(flow, given) for name, given in flow.inputs()}
        except BaseException:
            self.batches, self.first, self.fused = known
            raise

    def _keep_unfinished(self, flow: Dataflow) -> None:
        """Takes note of what the last batch has changed, as far as it got."""
        unkept = True
        if self.fused is not None:
            unkept, first = self.fused.is_begun, self.fused.struct[L.fused.first]
            self.keep_batch(flow)
            self.first = first
        if flow.phase == "after" and unkept:
            self.keep_batch(flow)

    def _rows_before(self, flow: Dataflow, given: Collection) -> Updates:
        """The external rows of an input: those before the last batch, less what earlier batches changed."""
        rows = given.present(before=flow.phase == "during")
        columns, count = given.raw_columns(rows), len(rows)
        for batch in reversed(self.batches):
            if given.name in batch:
                undone = batch[given.name]
                backwards = tuple(column[::-1] for column in undone.columns)
                columns, count = apply_changes(columns, count, backwards, -undone.diffs[::-1])
        return insertions(columns, count, 1)
