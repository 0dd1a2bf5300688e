"""A layer: sorted updates as columns in one block of memory, which nothing changes once it is made.

Fields are the row's columns, the coordinates of the time and the diff. A field takes 4 bytes a row where its values allow, else
8, and none at all where all rows have the same value. So settled history - present since ever, once - is rows alone, and a
single update is nothing but words. `words` is what kernels read (a `LayerHeader`); they point into `memory`,
be it this process's own or a mapped file. Rows order by (columns, time) as signed 64-bit words. """

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels.trace.gathering import keep_updates, unpack_layer
from dlog.engine.kernels.trace.seeking import seek
from dlog.engine.kernels.trace.sorting import build_layer
from dlog.engine.kernels.trace.summing import sum_equal_updates, write_equal_sums
from dlog.engine.kernels.trace_structs import EqualSums, Field, LayerHeader, PackedField, Varied
from dlog.engine.times.lattice import Time
from dlog.engine.trace.overflow import HEAVY, check_sums
from dlog.engine.trace.pages import Pages, allocate
from dlog.engine.values.addresses import address_of
from dlog.grammar.diagnostics import InternalError

MAX_ROWS = 2**31 - 1
FEW_SUMS = 256
"""Sums for which there is room before it is known how many there are."""

_HEADER, _FIELD = LayerHeader.place, Field.place
_FIELDS: int = _HEADER.fields
_SIZE: int = _FIELD.size
"""The first field's word in a header, and words of a field."""


@dataclass(slots=True, eq=False)
class Layer:
    """`rows` updates, described by `words`, which lie at `address`."""

    words: np.ndarray
    memory: np.ndarray
    rows: int
    address: int

    @staticmethod
    def of(words: np.ndarray, memory: np.ndarray) -> Layer:
        """A layer with these words, in this memory."""
        return Layer(words, memory, int(words[_HEADER.rows]), address_of(words))

    @property
    def arity(self) -> int:
        return int(self.words[_HEADER.arity])

    @property
    def depth(self) -> int:
        return int(self.words[_HEADER.depth])

    @property
    def fields(self) -> int:
        return (len(self.words) - _FIELDS) // _SIZE

    @property
    def latest(self) -> Time:
        """A time at or after all of its times."""
        at = _FIELDS + _SIZE * self.arity + _FIELD.bound
        return tuple(self.words[at : at + _SIZE * self.depth : _SIZE].tolist())

    @property
    def weight(self) -> int:
        """The sum of all |diff|."""
        return int(self.words[_FIELD.bound - _SIZE])

    @property
    def settled(self) -> bool:
        """Whether every row is there once since the least time, so that no times and no diffs are stored."""
        return self.constant(self.fields - 1) == 1 and not any(self.latest)

    @property
    def indexed(self) -> bool:
        return bool(self.words[_HEADER.index])

    @property
    def nbytes(self) -> int:
        """Bytes of all fields and the index."""
        widths = int(self.words[_FIELDS + _FIELD.width :: _SIZE].sum())
        return self.rows * widths + (4 * (int(self.words[_HEADER.range]) + 1) if self.indexed else 0)

    def width(self, field: int) -> int:
        return int(self.words[_FIELDS + _SIZE * field + _FIELD.width])

    def constant(self, field: int) -> int | None:
        """The one value of a field, where it has just one."""
        at = _FIELDS + _SIZE * field
        return None if self.words[at + _FIELD.width] else int(self.words[at + _FIELD.data])

    def stored(self, field: int) -> np.ndarray:
        """The values of a field that is no constant, as they lie in memory."""
        start, width = int(self.words[_FIELDS + _SIZE * field + _FIELD.data]) - address_of(self.memory), self.width(field)
        return self.memory.view(np.uint8)[start : start + self.rows * width].view(np.int32 if width == 4 else np.int64)

    def values(self, field: int, chosen: np.ndarray | None = None) -> np.ndarray:
        """A field as int64, of all rows or of the chosen ones."""
        constant = self.constant(field)
        if constant is not None:
            return np.full(self.rows if chosen is None else len(chosen), constant, np.int64)
        stored = self.stored(field)
        return (stored if chosen is None else stored[chosen]).astype(np.int64)

    def copy_values(self, field: int, chosen: np.ndarray | None, target: np.ndarray) -> None:
        """Writes a field of all rows, or of the chosen ones, to an array of as many."""
        constant = self.constant(field)
        if constant is not None:
            target[:] = constant
        else:
            target[:] = self.stored(field) if chosen is None else self.stored(field)[chosen]

    def columns(self, chosen: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
        return tuple(self.values(c, chosen) for c in range(self.arity))

    def times(self, chosen: np.ndarray | None = None) -> np.ndarray:
        """Times as (depth, n)."""
        found = np.empty((self.depth, self.rows if chosen is None else len(chosen)), np.int64)
        for c in range(self.depth):
            found[c] = self.values(self.arity + c, chosen)
        return found

    def diffs(self, chosen: np.ndarray | None = None) -> np.ndarray:
        return self.values(self.fields - 1, chosen)

    def unpacked(self) -> np.ndarray:
        """All fields, columns, times and diffs, in one block."""
        fields = np.empty((self.fields, self.rows), np.int64)
        unpack_layer(self.address, address_of(fields))
        return fields

    def updates(self) -> tuple[tuple[np.ndarray, ...], np.ndarray, np.ndarray]:
        """`columns`, `times` and `diffs`, read in one go."""
        fields, arity = self.unpacked(), self.arity
        return tuple(fields[:arity]), fields[arity:-1], fields[-1]

    def index(self) -> np.ndarray | None:
        """The first row of each value of the first column, one entry more than there are values."""
        if not self.indexed:
            return None
        start = int(self.words[_HEADER.index]) - address_of(self.memory)
        return self.memory.view(np.int32)[start // 4 : start // 4 + int(self.words[_HEADER.range]) + 1]

    def seek(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each probe, a column of `keys` (prefix columns, probes; int64, contiguous), the rows that begin with it: first,
        and behind the last."""
        count, probes = keys.shape
        ranges = np.empty((2, probes), np.int64)
        at = address_of(ranges)
        seek(self.address, address_of(keys), count, probes, at, at + 8 * probes)
        return ranges[0], ranges[1]


# ------------------------------------------------------------------------------------------------------------- building


class Described:
    """Updates as kernels read them, in no order: `words`, which lie at `address`, describe them as they would a layer. What
    they point at stays as long as `memory`."""

    __slots__ = ("address", "memory", "words")

    def __init__(self, words: np.ndarray, memory: object) -> None:
        self.words, self.memory, self.address = words, memory, address_of(words)

    @staticmethod
    def of(columns: Sequence[np.ndarray], times: np.ndarray | Time, diffs: np.ndarray | int) -> Described:
        """Fields as `build` takes them."""
        fields = [*columns, *times, diffs]
        return Described(np.array(_describe(len(columns), len(times), fields), np.int64), fields)

    @staticmethod
    def of_block(block: np.ndarray, arity: int) -> Described:
        """A block as `build_block` takes it."""
        return Described(_described(block, arity), block)

    @property
    def rows(self) -> int:
        return int(self.words[_HEADER.rows])

    @property
    def fields(self) -> int:
        return (len(self.words) - _FIELDS) // _SIZE

    def values(self, field: int, chosen: np.ndarray) -> np.ndarray:
        """A field of the chosen updates, of a block."""
        found: np.ndarray = self.memory[field, chosen]  # type: ignore[index]
        return found


def build(
    columns: Sequence[np.ndarray],
    times: np.ndarray | Time,
    diffs: np.ndarray | int,
    pages: Pages | None = None,
    checked: bool = False,
) -> Layer | None:
    """A layer of unsorted updates; None where they cancel out. Columns are int64 (or int32), times (depth, n) or one time for
    all, diffs int64 or one for all. Something must have n entries. Sums of diffs wrap around; where they are `checked`,
    DlogError is raised for those beyond 64 bits."""
    fields = [*columns, *times, diffs]
    described = _describe(len(columns), len(times), fields)
    return _built(np.array(described, np.int64), pages, checked) if described[_HEADER.rows] else None


def build_block(block: np.ndarray, arity: int, pages: Pages | None = None, checked: bool = False) -> Layer | None:
    """The same of updates whose fields lie in a contiguous block of words: so many columns, times, diffs."""
    return _built(_described(block, arity), pages, checked) if block.shape[1] else None


def _built(described: np.ndarray, pages: Pages | None, checked: bool) -> Layer | None:
    """A layer of the updates that these words describe."""
    size, rows, fields = len(described), int(described[_HEADER.rows]), (len(described) - _FIELDS) // _SIZE
    source = allocate(PackedField.place.size * fields + rows * (fields + 3) + 8)
    # How much is needed turns out on the way; of large blocks only that becomes resident.
    memory = allocate(size + rows * fields + (rows + 1) // 2 + 8 if rows > 1 else size, pages)
    writing = address_of(memory)
    build_layer(address_of(described), writing, writing + 8 * size, address_of(source))
    if checked and described[-1] >= HEAVY:  # the sum of all |diff|, which the kernel has left there
        _check_weight(Described(described, None))
    found = int(memory[_HEADER.rows])
    return Layer(memory[:size], memory, found, writing) if found else None


def _check_weight(updates: Described) -> None:
    """Raises DlogError where diffs of equal rows and times add up beyond 64 bits."""
    block = np.empty((updates.fields, updates.rows), np.int64)
    unpack_layer(updates.address, address_of(block))
    check_sums(tuple(block[:-1]), block[-1], "the diffs of a row")


def sums_of_equal(fields: Sequence[np.ndarray], arity: int, components: int) -> np.ndarray:
    """The sums of equal updates, of which there are some, as a block of updates: of each component the sum of its weights times
    the diffs where that is not 0, with the component and 0 as two more columns. The last of the given fields are the weights of
    the components. The sums are known to need no more than 64 bits."""
    held = [np.ascontiguousarray(field, np.int64) for field in fields]
    given, rows = np.array([address_of(field) for field in held], np.int64), len(held[0])
    depth = len(held) - arity - components - 1
    scratch = np.empty(scratch_of_sums(arity + depth, components, rows), np.int64)
    found = np.empty((arity + depth + 3) * FEW_SUMS, np.int64)
    shape = arity, depth, components
    count = sum_equal_updates(address_of(given), rows, *shape, 1, address_of(scratch), FEW_SUMS, address_of(found))
    return sums_found(address_of(given), shape, address_of(scratch), found, count)


def scratch_of_sums(fields: int, components: int, rows: int) -> int:
    """Words that are needed to sum up so many updates."""
    size: int = EqualSums.place.size + Varied.place.size * fields + (components + 3) * rows + 1
    return size


def sums_found(fields: int, shape: tuple[int, int, int], scratch: int, found: np.ndarray, count: int) -> np.ndarray:
    """The sums as a block, where so many have been found, for FEW_SUMS of which there was room."""
    arity, depth, components = shape
    size = arity + depth + 3
    if count > FEW_SUMS:
        found = np.empty(size * count, np.int64)
        write_equal_sums(fields, arity, depth, components, scratch, count, address_of(found))
    return found[: size * count].reshape(size, count)


def keep(block: np.ndarray, mask: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Writes the columns of a block where a mask holds to another block, which has room for just these."""
    (fields, rows), mask = block.shape, np.ascontiguousarray(mask)
    keep_updates(address_of(block), fields, rows, address_of(mask), found.shape[1], address_of(found))
    return found


def _described(block: np.ndarray, arity: int) -> np.ndarray:
    """Words for the updates of a block."""
    fields, rows = block.shape
    if not 0 <= rows <= MAX_ROWS or block.itemsize != 8 or not block.flags.c_contiguous:
        _refuse(None, rows)
    at, step = address_of(block), 8 * rows
    words = [rows, arity, fields - arity - 1, 0, 0, 0]
    for field in range(fields):
        words += (at + field * step, 8, 0)
    return np.array(words, np.int64)


def _describe(arity: int, depth: int, fields: list[np.ndarray | int]) -> list[int]:
    """Words for updates as they are given; non-contiguous columns in `fields` are replaced by copies, which must be kept."""
    words = [-1, arity, depth, 0, 0, 0]
    rows = -1
    for f, field in enumerate(fields):
        if not isinstance(field, np.ndarray):
            words += (int(field), 0, 0)
            continue
        if not field.flags.c_contiguous:
            fields[f] = field = np.ascontiguousarray(field)
        width = field.itemsize
        if field.dtype.kind != "i" or width not in (4, 8) or rows not in (-1, len(field)):
            _refuse(field, rows)
        rows = len(field)
        words += (address_of(field), width, 0)
    if not 0 <= rows <= MAX_ROWS:
        _refuse(None, rows)
    words[_HEADER.rows] = rows
    return words


def _refuse(field: np.ndarray | None, rows: int) -> NoReturn:
    if field is None:
        raise InternalError("trace", f"{rows} updates in one batch")
    raise InternalError("trace", f"a column of updates has {len(field)} values of {field.dtype}, others have {rows}")
