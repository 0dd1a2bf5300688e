"""Layers as files: the bytes of their fields and index, one after the other, mapped when they are read.

A layer's file holds no description of itself: the manifest has that, and refers to a file only when all of it is on the disk.
Files never change; a layer that was written or mapped keeps its file for as long as it is part of the state.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Kind
from dlog.engine.kernels.trace_structs import Field, LayerHeader
from dlog.engine.state import files, folders
from dlog.engine.times.frontier import Antichain
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.description import Description
from dlog.engine.trace.layer import MAX_ROWS, Layer, build
from dlog.engine.values.addresses import address_of
from dlog.engine.values.table import Table

_HEADER, _FIELD = LayerHeader.place, Field.place
_FIELDS: int = _HEADER.fields
_SIZE: int = _FIELD.size
"""The first field's word in a header, and words of a field."""


@dataclass(frozen=True, slots=True)
class LayerFile:
    """A layer on disk. `words` are its header, with offsets in the file for addresses."""

    name: str
    size: int
    checksum: int
    words: tuple[int, ...]


def write_layer(folder: Path, name: str, layer: Layer) -> LayerFile:
    """Writes a layer to a new file; nothing refers to it yet."""
    words, at = layer.words.copy(), 8  # no field is at 0, where an index would seem to be none
    pieces: list[files.Bytes] = [bytes(8)]
    parts = [(_FIELDS + _SIZE * f + _FIELD.data, layer.stored(f)) for f in range(layer.fields) if layer.width(f)]
    index = layer.index()
    if index is None:
        words[[_HEADER.low, _HEADER.range]] = 0  # nobody has set them: they are whatever was in memory
    else:
        parts.append((_HEADER.index, index))
    for word, array in parts:
        words[word] = at
        pieces += [np.ascontiguousarray(array).data.cast("B"), bytes(-array.nbytes % 8)]
        at += array.nbytes + -array.nbytes % 8
    checksum = 0
    for piece in pieces:
        checksum = files.checksum(piece, checksum)
    path = folder / name
    with files.refusals(path, "write"):
        files.create(path, pieces)
    return LayerFile(name, at, checksum, tuple(words.tolist()))


def map_layer(folder: Path, file: LayerFile, arity: int, verify: bool) -> Layer:
    """The layer of rows of an arity in a file. Raises DlogError where that is not what was written, or nobody can have
    written it: kernels ask no more."""
    path = folder / file.name
    memory = files.mapped(path, file.size)
    if (about := folders.about(path)) is not None and about.st_size != file.size:
        raise files.damaged(path, "a layer has another size than was written")
    if verify and files.checksum(memory) != file.checksum:
        raise files.damaged(path, "a layer does not fit its checksum")
    if not _is_described(file, arity):
        raise files.damaged(path, "a layer is not where the manifest says, or of other columns")
    words, base = np.array(file.words, np.int64), address_of(memory)
    fields = words[_FIELDS:].reshape(-1, _SIZE)
    fields[fields[:, _FIELD.width] != 0, _FIELD.data] += base
    if words[_HEADER.index]:
        words[_HEADER.index] += base
    layer = Layer.of(words, memory)
    if verify and not (_ascends(layer) and _is_indexed(layer)):
        raise files.damaged(path, "the rows of a layer are not in order")
    if verify and not (_is_bounded(layer) and _is_weighed(layer)):
        raise files.damaged(path, "the times or diffs of a layer are not as the manifest says")
    return layer


def _is_described(file: LayerFile, arity: int) -> bool:
    """Whether words describe rows that are in the file."""
    words = np.array(file.words, np.int64)
    if len(words) < _FIELDS:
        return False
    rows, depth, index, values = (file.words[at] for at in (_HEADER.rows, _HEADER.depth, _HEADER.index, _HEADER.range))
    if file.words[_HEADER.arity] != arity or not 0 < rows <= MAX_ROWS:
        return False
    if depth < 0 or len(words) != _FIELDS + _SIZE * (arity + depth + 1):
        return False
    fields = words[_FIELDS:].reshape(-1, _SIZE)
    widths = fields[:, _FIELD.width]
    parts = [(at, rows * width) for at, width in zip(fields[:, _FIELD.data].tolist(), widths.tolist(), strict=True) if width]
    if index:
        parts.append((index, 4 * (values + 1)))
    inside = all(8 <= at <= at + size <= file.size and at % 8 == 0 for at, size in parts)
    return inside and bool(np.isin(widths, (0, 4, 8)).all()) and (not index or (values > 0 and arity > 0))


def _ascends(layer: Layer) -> bool:
    """Whether each row, with its time, is there once, and behind all that are less."""
    equal = np.ones(layer.rows - 1, bool)
    for field in range(layer.fields - 1):
        if layer.width(field):
            values = layer.stored(field)
            if (equal & (values[1:] < values[:-1])).any():
                return False
            equal &= values[1:] == values[:-1]
    return not equal.any()


def _is_indexed(layer: Layer) -> bool:
    """Whether the index, if there is one, says where the values of the first column begin."""
    index = layer.index()
    if index is None:
        return True
    low = int(layer.words[_HEADER.low])
    return np.array_equal(index, np.searchsorted(layer.values(0), low + np.arange(len(index))))


def _is_bounded(layer: Layer) -> bool:
    """Whether no time is before the first one, nor after its bound: merges reserve memory by it."""
    for field, bound in enumerate(layer.latest, layer.arity):
        constant = layer.constant(field)
        if constant is None:
            values = layer.stored(field)
            low, high = int(values.min()), int(values.max())
        else:
            low, high = constant, bound  # a constant is its own bound
        if low < 0 or high > bound or constant not in (None, bound):
            return False
    return True


def _is_weighed(layer: Layer) -> bool:
    """Whether no diff is 0, and their bound is the sum of all |diff|."""
    constant = layer.constant(layer.fields - 1)
    if constant is not None:
        return constant != 0 and layer.weight == abs(constant) * layer.rows
    diffs = layer.diffs()
    sizes = np.abs(diffs).view(np.uint64)
    # Halves of so many words add up without overflow.
    weight = (int((sizes >> np.uint64(32)).sum()) << 32) + int((sizes & np.uint64(0xFFFFFFFF)).sum())
    return bool(diffs.all()) and layer.weight == weight


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
        ids = (c for c, kind in enumerate(self.kinds) if kind in (Kind.SYMBOL, Kind.RECORD))
        if any(layer.width(c) == 8 or not 0 <= (layer.constant(c) or 0) < 1 << 31 for c in ids):
            raise ValueError("words are no ids")
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
    diff = words[-_SIZE:]
    diff[_FIELD.data], diff[_FIELD.width], diff[_FIELD.bound] = 1, 0, layer.rows
    return Layer.of(words, layer.memory)
