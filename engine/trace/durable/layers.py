"""Layers as files: the bytes of their fields and index, one after the other, mapped when they are read.

A layer's file holds no description of itself: the manifest has that, and refers to a file only when all of it is on the disk.
Files never change; a layer that was written or mapped keeps its file for as long as it is part of the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dlog.engine.kernels.layers import FIELD_SIZE, FIELD_WIDTH, LAYER_FIELDS, LAYER_INDEX
from dlog.engine.program.rules import Kind
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.description import Description
from dlog.engine.trace.durable import files
from dlog.engine.trace.layer import Layer, address_of, build
from dlog.engine.values.table import Table


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A layer on disk. `words` describes it with offsets in the file for addresses."""

    name: str
    size: int
    checksum: int
    words: tuple[int, ...]


def write_layer(folder: Path, name: str, layer: Layer) -> LayerFile:
    """Writes a layer to a new file; nothing refers to it yet."""
    words, at = layer.words.copy(), 8  # no field is at 0, where an index would seem to be none
    pieces: list[files.Bytes] = [bytes(8)]
    parts = [(LAYER_FIELDS + FIELD_SIZE * f, layer.stored(f)) for f in range(layer.fields) if layer.width(f)]
    index = layer.index()
    if index is not None:
        parts.append((LAYER_INDEX, index))
    for word, array in parts:
        words[word] = at
        pieces += [memoryview(np.ascontiguousarray(array)).cast("B"), bytes(-array.nbytes % 8)]
        at += array.nbytes + -array.nbytes % 8
    checksum = 0
    for piece in pieces:
        checksum = files.checksum(piece, checksum)
    path = folder / name
    with files.refusals(path, "write"):
        files.create(path, pieces)
    return LayerFile(name, at, checksum, tuple(words.tolist()))


def map_layer(folder: Path, file: LayerFile, verify: bool) -> Layer:
    """The layer in a file."""
    path = folder / file.name
    memory = files.mapped(path, file.size)
    if path.exists() and path.stat().st_size != file.size:
        raise files.damaged(path, "a layer has another size than was written")
    if verify and files.checksum(memory) != file.checksum:
        raise files.damaged(path, "a layer does not fit its checksum")
    words, base = np.array(file.words, np.int64), address_of(memory)
    for f in range((len(words) - LAYER_FIELDS) // FIELD_SIZE):
        at = LAYER_FIELDS + FIELD_SIZE * f
        if words[at + FIELD_WIDTH]:
            words[at] += base
    if words[LAYER_INDEX]:
        words[LAYER_INDEX] += base
    return Layer.of(words, memory)


# ------------------------------------------------------------------------------------------------------- tables and batches


@dataclass(frozen=True, slots=True)
class Stored:
    """A relation of the state: its kinds, and its history as contiguous batches."""

    kinds: tuple[Kind, ...]
    batches: tuple[Batch, ...]

    def table(self) -> Table:
        """The rows of a relation that is settled, as they were saved from a table; columns may be views of a mapped file."""
        layers = [layer for batch in self.batches for layer in batch.layers]
        if not layers:
            return Table(self.kinds, tuple(_column(kind, np.empty(0, np.int64)) for kind in self.kinds), 0)
        if len(layers) != 1 or not layers[0].settled:
            raise ValueError("the relation has a history: read it with a cursor")
        (layer,) = layers
        stored = (layer.stored(c) if layer.width(c) else layer.values(c) for c in range(layer.arity))
        return Table(self.kinds, tuple(map(_column, self.kinds, stored)), layer.rows)


def _column(kind: Kind, stored: np.ndarray) -> np.ndarray:
    """Raw words, perhaps narrow ones, as a table has them."""
    match kind:
        case Kind.NUMBER:
            return stored
        case Kind.UNSIGNED:
            return stored.astype(np.int64, copy=False).view(np.uint64)
        case Kind.FLOAT:
            return stored.astype(np.int64, copy=False).view(np.float64)
        case Kind.SYMBOL | Kind.RECORD:
            return stored.astype(np.int32, copy=False)


def settled_batch(table: Table, upper: int) -> Batch:
    """A table as the batch of all rounds before `upper`, compacted to the last of them; rows that repeat count once."""
    start, since = Antichain.start(1), Antichain.at(max(upper - 1, 0))
    raw = [c.view(np.int64) if c.dtype.kind in "uf" else c for c in table.columns]
    layer = build(raw, (0,), np.ones(table.rows, np.int64))
    layers = () if layer is None else (_once(layer),)
    return Batch(Description(start, Antichain.at(upper), since), layers)


def _once(layer: Layer) -> Layer:
    """The same rows, each once."""
    words = layer.words.copy()
    words[-FIELD_SIZE :] = 1, 0, layer.rows
    return Layer.of(words, layer.memory)
