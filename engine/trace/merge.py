"""The merge of adjacent batches, done a little at a time.

While it goes on the batches stay as they are and in use; when it is done one replaces them. Times are advanced to the
frontier that was `since` when the merge began, equal (row, time) pairs add up, zeros go. Nothing but merging compacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from dlog.engine.kernels.trace.merge_plans import MERGE_DONE, MERGE_PAUSED, MERGE_TOGETHER, plan_merge, start_merge
from dlog.engine.kernels.trace.merging import merge_layers
from dlog.engine.kernels.trace_structs import LayerHeader, MergeHeader, MergeInput, OpenUpdate, Stored, WaitingUpdate
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer
from dlog.engine.trace.pages import Pages, allocate
from dlog.engine.values.addresses import address_of

ALL = 2**50
"""Fuel enough for any merge."""

_HISTORY = 64  # updates of one row that fit before the scratch grows
_MERGE, _INPUT = MergeHeader.place, MergeInput.place


class Merge:
    """Of at most 32 batches, the oldest first. `work` until it says that it is done, then take the `result`."""

    __slots__ = ("_address", "_control", "_layers", "_outputs", "_pages", "_result", "_scratch", "batches", "description")

    def __init__(self, batches: Sequence[Batch], since: Antichain, pages: Pages | None = None) -> None:
        self.batches, self._pages = batches, pages
        descriptions = (batch.description for batch in batches)
        self.description = reduce(lambda earlier, later: earlier.followed_by(later, since), descriptions)
        self._layers = tuple(layer for batch in batches for layer in batch.layers)
        self._result: Batch | None = None
        if self._layers:
            self._prepare(split=batches[0].oldest)
        else:
            self._result = Batch(self.description, ())

    def work(self, fuel: int) -> bool:
        """Merges about `fuel` updates; True when all is done."""
        while self._result is None:
            status = merge_layers(self._address, fuel)
            if status == MERGE_PAUSED:
                return False
            if status == MERGE_DONE:
                self._finish()
            else:
                size = 2 * int(self._control[_MERGE.needed])
                self._scratch = np.empty(size * (self._layers[0].depth + 1), np.int64)
                self._use_history(address_of(self._scratch), size)
        return True

    @property
    def result(self) -> Batch:
        """The merged batch, worked out to the end if need be."""
        self.work(ALL)
        assert self._result is not None
        return self._result

    def _prepare(self, split: bool) -> None:
        layers, elements = self._layers, self.description.since.elements
        depth, stride = layers[0].depth, len(layers[0].words)
        block = min(sum(layer.rows for layer in layers), MERGE_TOGETHER)
        # Behind the inputs: both outputs' headers, the frontier, the least time, columns, updates that wait, a row's history.
        outputs = _MERGE.inputs + _INPUT.size * len(layers)
        frontier = outputs + 2 * stride
        waiting = frontier + (len(elements) + 1) * depth + Stored.place.size * len(layers)
        history = waiting + block * (WaitingUpdate.place.size + OpenUpdate.place.size + depth)
        self._control = control = np.zeros(history + _HISTORY * (depth + 1), np.int64)
        control[_MERGE.input_count], control[_MERGE.elements] = len(layers), len(elements)
        control[_MERGE.split], control[_MERGE.block] = split, block
        control[_MERGE.inputs + _INPUT.layer : outputs : _INPUT.size] = [layer.address for layer in layers]
        control[frontier : frontier + len(elements) * depth] = [coordinate for time in elements for coordinate in time]
        self._address = address_of(control)
        plan_merge(self._address)
        self._use_history(self._address + 8 * history, _HISTORY)
        self._outputs = [self._reserve(int(control[size])) for size in (_MERGE.settled_bytes, _MERGE.open_bytes)]
        start_merge(self._address, *(address for _, address in self._outputs))

    def _reserve(self, size: int) -> tuple[np.ndarray, int]:
        """Memory for an output, the layer's header in front, and the address behind them."""
        stride = len(self._layers[0].words)
        memory = allocate(stride + size // 8 + 1, self._pages)
        return memory, address_of(memory) + 8 * stride

    def _use_history(self, address: int, size: int) -> None:
        """Has histories of up to so many updates gathered there."""
        depth = self._layers[0].depth
        self._control[_MERGE.times], self._control[_MERGE.diffs] = address, address + 8 * size * depth
        self._control[_MERGE.room] = size

    def _finish(self) -> None:
        made = []
        stride = len(self._layers[0].words)
        for header, (memory, address) in zip((_MERGE.settled_layer, _MERGE.open_layer), self._outputs, strict=True):
            at = (int(self._control[header]) - self._address) // 8
            rows = int(self._control[at + LayerHeader.place.rows])
            if rows:
                memory[:stride] = self._control[at : at + stride]
                made.append(Layer(memory[:stride], memory, rows, address - 8 * stride))
        self._result = Batch(self.description, tuple(made))
        self._layers = ()
