"""Strings as ids: the table that every symbol of a run lives in.

Ids are dense from 0 in order of first appearance. The table's layout is that of kernels/values/symbols.py: here are its arrays,
and what makes them grow. No Python object per string. Strings are UTF-8: bytes that are not are refused here, whichever way
they came, so nothing that reads the table need look.

Arrays only ever grow by replacement and entries never change, so a reader may use the arrays it took while another thread, or
compiled code, interns. Large ones lie in address space that is theirs for long: they grow by touching it, without being copied.
Interning from here holds a lock; within it, as in compiled code, the table's own is held by whoever enters a string or replaces
an array.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.engine.interruption import Delayed, DelayedInFinalizer
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.blocks import HUGE_PAGE
from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.core.memory import MAPS
from dlog.engine.kernels.core.page_maker import MAKER
from dlog.engine.kernels.values.symbols import STRINGS_TOGETHER, begin_writing, drop_slots, end_writing, find_symbol, intern
from dlog.engine.kernels.values.words import copy_bytes
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

MIN_RESERVING_BYTES = 1 << 20
"""Bytes from which on an array has address space to grow in: below, copying it costs little."""
RESERVED_BYTES = 1 << 30
"""Bytes of that address space: more than strings usually need, and little beside what a process may have."""
MIN_BYTES = 64
"""Texts of one byte each for which it pays to look these up by themselves."""
_NO_RESERVE = 0x4000
"""Linux's MAP_NORESERVE: what is not touched is on nobody's account."""


class NotText(DlogError):
    """Bytes that were to become symbols are not UTF-8. Who knows where they are from says so."""

    def __init__(self, index: int, offset: int, byte: int) -> None:
        self.index = index
        """Which of the strings."""
        self.offset = offset
        """The place in it of the first byte that is wrong."""
        self.reason = f"byte 0x{byte:02x} is not UTF-8"
        super().__init__(Diagnostic("encoding", self.reason))

    def __reduce__(self) -> tuple[type[DlogError], tuple[list[Diagnostic]]]:
        return DlogError, (list(self.diagnostics),)


@entry("u8[:]", "i64[:]", "i64[:]", "u8[:]")
def _gather(heap, starts, offsets, out):  # type: ignore[no-untyped-def]
    """Copies the piece of `heap` at `starts[i]` to `out[offsets[i]:offsets[i + 1]]`."""
    source, target = np.int64(heap.ctypes.data), np.int64(out.ctypes.data)
    for i in range(starts.size):
        at = offsets[i]
        copy_bytes(source + starts[i], target + at, offsets[i + 1] - at, source + heap.size, target + out.size)


def gather_slices(heap: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The pieces `heap[starts[i]:][:lengths[i]]` one after the other, and the int64 offsets, one more, that part them."""
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _gather(np.ascontiguousarray(heap), np.ascontiguousarray(starts), offsets, out)
    return out, offsets


def gather(heap: np.ndarray, offsets: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strings `ids` of a heap one after the other, and the offsets that part them."""
    starts = offsets[ids]
    return gather_slices(heap, starts, offsets[1:][ids] - starts)


def sort_ranks(data: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The int32 rank of each string `data[offsets[i]:offsets[i + 1]]` in the order of bytes; equal strings rank by place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count = len(offsets) - 1
    strings = pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    ranks = np.empty(count, np.int32)
    if count:  # not by to_numpy(), which imports pandas
        order = np.frombuffer(pc.sort_indices(strings).buffers()[1], np.uint64, count)
        ranks[order] = np.arange(count, dtype=np.int32)
    return ranks


class SymbolTable:
    """The strings of a run and their ids."""

    _is_made = False

    def __init__(self) -> None:
        self._heap = np.empty(1 << 12, np.uint8)
        self._offsets = np.zeros(1 << 8, np.int64)
        self._table = np.zeros(L.symbols.size, np.int64)
        self._table[L.symbols.maker] = MAKER
        self._lock = Lock()
        self._hashes = np.empty(STRINGS_TOGETHER, np.int64)
        self._hashes_at = int(self._hashes.ctypes.data)
        self._ranks = np.empty(0, np.int32)
        self._ids_of_bytes: np.ndarray | None = None
        """The ids of texts of one byte, by that; -1 where it has not been seen."""
        self.address = int(self._table.ctypes.data)
        """Where kernels find the table; it stays."""
        self._publish()
        self._is_made = True

    def __del__(self) -> None:
        if self._is_made and sys is not None and not sys.is_finalizing():
            with DelayedInFinalizer():
                drop_slots(self.address)

    def _publish(self) -> None:
        """Tells kernels where the arrays are."""
        for field, array in ((L.symbols.heap, self._heap), (L.symbols.offsets, self._offsets)):
            self._table[field] = array.ctypes.data
            self._table[field + 1] = array.size

    def __len__(self) -> int:
        return int(self._table[L.symbols.count])

    @property
    def strings(self) -> tuple[np.ndarray, np.ndarray]:
        """The heap of bytes and the int64 offsets into it (one more than there are ids)."""
        count = len(self)
        return self._heap, self._offsets[: count + 1]

    def intern_slices(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The int32 ids of the strings `data[starts[i]:ends[i]]`; `data` is uint8, the others int64. Raises
        `NotText`."""
        data = np.ascontiguousarray(data)
        starts, ends = (np.ascontiguousarray(a, np.int64) for a in (starts, ends))
        return self._intern(data, int(data.ctypes.data), starts, int(starts.ctypes.data), ends, int(ends.ctypes.data))

    def _intern(
        self, data: np.ndarray, source: int, starts: np.ndarray, starts_at: int, ends: np.ndarray, ends_at: int
    ) -> np.ndarray:
        """`intern_slices` of arrays at these addresses, the bounds int32 or int64."""
        count, bound = len(starts), starts.itemsize
        ids = np.empty(count, np.int32)
        out = int(ids.ctypes.data), 4, self._hashes_at
        with self._lock:
            done = 0
            while done < count:
                done = intern(self.address, source, len(data), starts_at, ends_at, bound, done, count, *out)
                if done < count:
                    start, end = int(starts[done]), int(ends[done])
                    _check(data, start, end, done)
                    self._make_room(end - start)
        return ids

    def interning(self, kernel: Callable[[int, int], int]) -> int:
        """What a kernel returns that enters strings itself: it gets the address of the table, and of room for hashes."""
        with self._lock:
            return kernel(self.address, self._hashes_at)

    def _make_room(self, needed: int) -> None:
        """Makes room for one string of `needed` bytes."""
        with Delayed():  # kernels are to know of no array that is gone
            begin_writing(self.address)
            try:
                self._grow(needed)
                self._publish()
            finally:
                end_writing(self.address)

    def _grow(self, needed: int) -> None:
        count, used = int(self._table[L.symbols.count]), int(self._table[L.symbols.used])
        wanted = used + needed
        if wanted <= self._heap.size and count + 1 < self._offsets.size:
            raise MemoryError  # it was the slots that could not grow
        if wanted > self._heap.size:
            self._heap = _larger(self._heap, used, wanted)
        if count + 1 >= self._offsets.size:
            self._offsets = _larger(self._offsets, count + 1, count + 2)

    def intern(self, text: str) -> int:
        """The id of `text`, new if it has not been seen; UnicodeEncodeError for lone surrogates."""
        data = _encode(text)
        return int(self.intern_slices(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))[0])

    def intern_texts(self, texts: Sequence[str]) -> np.ndarray:
        """The int32 ids of `texts`: for the constants of a program, not for data; UnicodeEncodeError for lone surrogates."""
        pieces = [t.encode() for t in texts]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(p) for p in pieces], out=offsets[1:])
        return self.intern_slices(np.frombuffer(b"".join(pieces), np.uint8), offsets[:-1], offsets[1:])

    def find(self, text: str) -> int:
        """The id of `text`, or -1 where it has none."""
        data = _encode(text)
        return int(find_symbol(self.address, int(data.ctypes.data), len(data)))

    def text(self, id: int) -> str:
        """The string of an id."""
        return self._heap[self._offsets[id] : self._offsets[id + 1]].tobytes().decode()

    def gather(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the strings of `ids`, one after the other, and the int64 offsets that part them."""
        heap, offsets = self.strings
        return gather(heap, offsets, ids)

    def intern_arrow(self, strings: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """The int32 ids of an Arrow array of (large, dictionary-encoded) strings or bytes without nulls. Raises `NotText`."""
        import pyarrow as pa

        chunks = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
        parts: list[np.ndarray] = []
        for chunk in chunks:
            try:
                parts.append(self._intern_chunk(chunk))
            except NotText as mistake:
                mistake.index += sum(map(len, parts))
                raise
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _intern_chunk(self, strings: pa.Array) -> np.ndarray:
        import pyarrow as pa

        if pa.types.is_dictionary(strings.type):
            return self._intern_entries(strings.dictionary, strings.indices.to_numpy())
        if pa.types.is_string(strings.type) or pa.types.is_binary(strings.type):
            width: type[np.signedinteger] = np.int32
        else:
            width = np.int64
            if not (pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type)):
                strings = strings.cast(pa.large_string())
        _, offsets_buffer, data_buffer = strings.buffers()
        if not len(strings):
            return np.empty(0, np.int32)
        size = 4 if width is np.int32 else 8
        first = strings.offset * size
        offsets = np.frombuffer(offsets_buffer, width, len(strings) + 1, first)  # the buffer may end in a part of one more
        if data_buffer is None:
            return self.intern_slices(np.empty(0, np.uint8), offsets[:-1], offsets[1:])
        data, at = np.frombuffer(data_buffer, np.uint8), offsets_buffer.address + first
        starts, ends = offsets[:-1], offsets[1:]
        if ends[-1] - starts[0] == len(starts) >= MIN_BYTES and (ends - starts == 1).all():
            return self._intern_bytes(data, int(starts[0]), len(starts))
        return self._intern(data, data_buffer.address, starts, at, ends, at + size)

    def _intern_bytes(self, data: np.ndarray, first: int, count: int) -> np.ndarray:
        """The ids of so many texts of one byte each, from a place on: flags, which come again and again."""
        known, texts = self._ids_of_bytes, data[first : first + count]
        if known is None:
            known = self._ids_of_bytes = np.full(256, -1, np.int32)
        found: np.ndarray = known[texts]
        if found.min() < 0:
            starts = np.arange(first, first + count)
            known[texts] = found = self.intern_slices(data, starts, starts + 1)
        return found

    def _intern_entries(self, strings: pa.Array, indices: np.ndarray) -> np.ndarray:
        try:
            ids: np.ndarray = self._intern_chunk(strings)[indices]
        except NotText as mistake:
            mistake.index = int(np.argmax(indices == mistake.index))
            raise
        return ids

    def to_arrow(self, ids: np.ndarray) -> pa.Array:
        """The strings of `ids` as an Arrow string array (large_string where int32 offsets do not reach)."""
        import pyarrow as pa

        data, offsets = self.gather(ids)
        if offsets[-1] < 2**31:
            narrow = pa.py_buffer(offsets.astype(np.int32))
            return pa.StringArray.from_buffers(len(ids), narrow, pa.py_buffer(data))
        return pa.LargeStringArray.from_buffers(len(ids), pa.py_buffer(offsets), pa.py_buffer(data))

    def ranks(self) -> np.ndarray:
        """The int32 rank of each id in the order of bytes, kept until the table grows."""
        heap, offsets = self.strings
        if len(self._ranks) != len(offsets) - 1:
            self._ranks = sort_ranks(heap, np.ascontiguousarray(offsets))
        return self._ranks


def _check(data: np.ndarray, start: int, end: int, index: int) -> None:
    """Raises where these bytes are why string `index` did not become a symbol."""
    try:
        data[start:end].tobytes().decode()
    except UnicodeDecodeError as error:
        raise NotText(index, error.start, int(data[start + error.start])) from None


def _encode(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _larger(array: np.ndarray, used: int, least: int) -> np.ndarray:
    """An array with at least so many items, at least twice as many as that, which begins with the same."""
    larger = _room(max(2 * array.size, least), array.dtype)
    larger[:used] = array[:used]
    return larger


def _room(size: int, dtype: np.dtype[Any]) -> np.ndarray:
    """An array of at least so many items. A large one has more than are soon needed: who touches none of them owes nothing."""
    wanted = size * dtype.itemsize
    if MAPS and wanted >= MIN_RESERVING_BYTES:
        try:
            pages = mmap.mmap(-1, max(wanted, RESERVED_BYTES), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE)
        except (OSError, ValueError):  # a limit of the address space
            return np.empty(size, dtype)
        pages.madvise(mmap.MADV_HUGEPAGE, HUGE_PAGE)  # to the first page comes what was there before, at once
        room: np.ndarray = np.frombuffer(pages, dtype, len(pages) // dtype.itemsize)
        return room
    return np.empty(size, dtype)
