"""A journal of commits: their changes as kernels append them, until somebody wants those of each relation.

To make arrays of what a commit of a row has changed takes as long as the commit. Here it is one call of a kernel, whatever the
relations; the changes of many commits are gathered at once.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import numpy as np

from dlog.engine.kernels.incremental.loop.journal import RECORD, append_records, gather_records
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.native import Struct
from dlog.engine.values.addresses import address_of
from dlog.engine.values.updates import Updates, joined

MAX_WORDS = 1 << 14
"""Words of a journal: some hundred commits of a row."""


class Journal:
    """The changes of commits that are over, each of one batch. `control` is that of who runs batches."""

    def __init__(self, control: Struct) -> None:
        self._control = control
        self._words: np.ndarray | None = None
        self._view = memoryview(b"")
        """Of the words: single ones are read faster than from an array."""
        self._address = self._end = 0
        self._collections: Mapping[int, tuple[str, Collection]] = {}
        """By their addresses, those of the dataflow that records are of, with their names."""
        self._gathered: dict[str, list[Updates]] = {}
        """Changes of dataflows before that one."""

    def append(self, flow: Dataflow, first: int) -> int | None:
        """Adds what the last batch, which began at the round `first`, has changed, and returns how many words that takes; None,
        with nothing added, where there is no room for it."""
        if self._collections is not flow.by_address:
            self._gather()
            self._collections = flow.by_address
        if self._words is None:
            self._words = np.empty(MAX_WORDS, np.int64)
            self._view, self._address = self._words.data, address_of(self._words)
        end = append_records(flow.work.address, self._control.address, first, self._address, self._end, MAX_WORDS)
        if end < 0:
            return None
        before, self._end = self._end, end
        return int(end - before)

    def take(self) -> dict[str, Updates]:
        """All that it has, by collection, by round; it is empty then."""
        self._gather()
        taken, self._gathered = self._gathered, {}
        return {name: joined(parts) if len(parts) > 1 else parts[0] for name, parts in taken.items()}

    def _gather(self) -> None:
        """Makes columns of all records."""
        for address, found in self._records().items():
            if address in self._collections:
                name, collection = self._collections[address]
                self._gathered.setdefault(name, []).append(self._changes(collection, found))
        self._end = 0

    def _records(self) -> dict[int, list[int]]:
        """By the addresses of collections, where their records with changes begin."""
        found: dict[int, list[int]] = {}
        words, at, end = self._view, 0, self._end
        while at < end:
            next, address, rows = words[at : at + 3]
            if rows:
                found.setdefault(address, []).append(at)
            at = next
        return found

    def _changes(self, collection: Collection, records: list[int]) -> Updates:
        assert self._words is not None
        words, fields = self._view, collection.arity + 2
        if len(records) == 1:  # somebody reads after every commit
            (at,) = records
            start, room = at + RECORD, words[at + 3]
            block = self._words[start : start + fields * room].reshape(fields, room)[:, : words[at + 2]].copy()
        else:
            rows = sum([words[at + 2] for at in records])
            block, starts = np.empty((fields, rows), np.int64), array("q", records)
            gather_records(self._address, starts.buffer_info()[0], len(records), fields, address_of(block), rows)
        *columns, rounds, diffs = block
        return Updates(tuple(columns), diffs, rounds)
