"""Strings as ids: the table that every symbol of a run lives in.

Ids are dense from 0 in order of first appearance. The bytes of all strings lie in one heap, string `i` at
`offsets[i]:offsets[i + 1]`; an open-addressing table of `(hash << 32) | (id + 1)` finds them, 0 marking a free slot. All are
NumPy arrays worked on by kernels: no Python object per string. Strings are bytes: text that is not UTF-8 comes back with
surrogate escapes, so files of any encoding survive.

Arrays only ever grow by replacement and entries never change, so a reader may use the arrays it took while another thread
interns; interning itself holds a lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from dlog.engine.kernels.jit import kernel
from dlog.engine.kernels.memory import prefetch
from dlog.engine.values.words import copy_bytes, equal_bytes, hash_bytes

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 32  # strings whose table slots are fetched together


@kernel
def _intern(source, source_limit, starts, ends, begin, ids, heap, offsets, slots, state):  # type: ignore[no-untyped-def]
    """Writes the id of the bytes `starts[i]` to `ends[i]` behind address `source` to `ids[i]` for i from `begin`. `state` is
    (count, bytes used). Stops before the first new string that does not fit and returns its index; the number of strings when
    done."""
    mask = np.uint64(slots.size - 1)
    hashes = np.empty(_BATCH, np.uint64)
    total = starts.size
    room = slots.size - slots.size // 4
    target = np.int64(heap.ctypes.data)
    target_limit = target + heap.size
    slots_address, offsets_address = np.int64(slots.ctypes.data), np.int64(offsets.ctypes.data)
    for base in range(begin, total, _BATCH):
        size = min(_BATCH, total - base)
        for k in range(size):
            hashed = hash_bytes(source + starts[base + k], ends[base + k] - starts[base + k], source_limit)
            hashes[k] = hashed
            prefetch(slots_address + np.int64(hashed & mask) * 8)
        for k in range(size):
            entry = slots[np.int64(hashes[k] & mask)]
            if entry != 0 and entry >> np.uint64(32) == hashes[k]:
                prefetch(offsets_address + np.int64(entry & np.uint64(0xFFFFFFFF)) * 8)
        for k in range(size):
            start = starts[base + k]
            length = ends[base + k] - start
            hashed = hashes[k]
            slot = np.int64(hashed & mask)
            while True:
                entry = slots[slot]
                if entry == 0:
                    found = state[0]
                    used = state[1]
                    if found + 1 >= offsets.size or found + 1 >= room or used + length > heap.size:
                        return base + k
                    copy_bytes(source + start, target + used, length, source_limit, target_limit)
                    offsets[found + 1] = used + length
                    slots[slot] = (hashed << np.uint64(32)) | np.uint64(found + 1)
                    state[0] = found + 1
                    state[1] = used + length
                    break
                if entry >> np.uint64(32) == hashed:
                    found = np.int64(entry & np.uint64(0xFFFFFFFF)) - 1
                    at = offsets[found]
                    if offsets[found + 1] - at == length and equal_bytes(
                        source + start, source_limit, target + at, target_limit, length
                    ):
                        break
                slot = (slot + 1) & np.int64(mask)
            ids[base + k] = found
    return total


@kernel
def _rehash(old, slots):  # type: ignore[no-untyped-def]
    """Enters every entry of `old` into the empty table `slots`."""
    mask = slots.size - 1
    for entry in old:
        if entry != 0:
            slot = np.int64(entry >> np.uint64(32)) & mask
            while slots[slot] != 0:
                slot = (slot + 1) & mask
            slots[slot] = entry


@kernel
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
    ranks[pc.sort_indices(strings).to_numpy()] = np.arange(count, dtype=np.int32)
    return ranks


class SymbolTable:
    """The strings of a run and their ids."""

    def __init__(self) -> None:
        self._heap = np.empty(1 << 12, np.uint8)
        self._offsets = np.zeros(1 << 8, np.int64)
        self._slots = np.zeros(1 << 9, np.uint64)
        self._state = np.zeros(2, np.int64)
        self._lock = Lock()
        self._ranks = np.empty(0, np.int32)

    def __len__(self) -> int:
        return int(self._state[0])

    @property
    def nbytes(self) -> int:
        return sum(a.nbytes for a in (self._heap, self._offsets, self._slots, self._ranks))

    @property
    def strings(self) -> tuple[np.ndarray, np.ndarray]:
        """The heap of bytes and the int64 offsets into it (one more than there are ids)."""
        count = len(self)
        return self._heap, self._offsets[: count + 1]

    def intern_slices(self, data: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """The int32 ids of the strings `data[starts[i]:ends[i]]`; `data` is uint8, the others int64."""
        data, starts, ends = (np.ascontiguousarray(a) for a in (data, starts, ends))
        ids = np.empty(len(starts), np.int32)
        source, limit = data.ctypes.data, data.ctypes.data + len(data)  # an address, as read-only arrays are another type
        with self._lock:
            done = 0
            while done < len(ids):
                done = _intern(
                    source, limit, starts, ends, done, ids, self._heap, self._offsets, self._slots, self._state
                )
                if done < len(ids):
                    self._grow(int(ends[done] - starts[done]), len(ids) - done)
        return ids

    def _grow(self, needed: int, left: int) -> None:
        """Makes room for at least one string of `needed` bytes; `left` strings are still to come."""
        count, used = (int(v) for v in self._state)
        if used + needed > self._heap.size:
            self._heap = _larger(self._heap, used, max(2 * self._heap.size, used + needed))
        if count + 1 >= self._offsets.size:
            self._offsets = _larger(self._offsets, count + 1, 2 * self._offsets.size)
        if count + 1 >= self._slots.size - self._slots.size // 4:
            # Rehashing a small table often costs more than one of the likely final size, half of whose strings are new.
            factor = 8 if left > 4 * self._slots.size else 2
            slots = np.zeros(factor * self._slots.size, np.uint64)
            _rehash(self._slots, slots)
            self._slots = slots

    def intern(self, text: str) -> int:
        """The id of `text`, new if it has not been seen."""
        data = _encode(text)
        return int(self.intern_slices(data, np.zeros(1, np.int64), np.array([len(data)], np.int64))[0])

    def intern_texts(self, texts: Sequence[str]) -> np.ndarray:
        """The int32 ids of `texts`: for the constants of a program, not for data."""
        pieces = [t.encode("utf-8", "surrogateescape") for t in texts]
        offsets = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(p) for p in pieces], out=offsets[1:])
        return self.intern_slices(np.frombuffer(b"".join(pieces), np.uint8), offsets[:-1], offsets[1:])

    def find(self, text: str) -> int:
        """The id of `text`, or -1 where it has none."""
        data = _encode(text)
        hashed = int(hash_bytes(data.ctypes.data, len(data), data.ctypes.data + len(data)))
        slots, heap, offsets = self._slots, self._heap, self._offsets
        slot = hashed & (slots.size - 1)
        while (entry := int(slots[slot])) != 0:
            found = (entry & 0xFFFFFFFF) - 1
            if entry >> 32 == hashed and heap[offsets[found] : offsets[found + 1]].tobytes() == data.tobytes():
                return found
            slot = (slot + 1) & (slots.size - 1)
        return -1

    def text(self, id: int) -> str:
        """The string of an id."""
        return self._heap[self._offsets[id] : self._offsets[id + 1]].tobytes().decode("utf-8", "surrogateescape")

    def gather(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The bytes of the strings of `ids`, one after the other, and the int64 offsets that part them."""
        heap, offsets = self.strings
        return gather(heap, offsets, ids)

    def intern_arrow(self, strings: pa.Array | pa.ChunkedArray) -> np.ndarray:
        """The int32 ids of an Arrow array of (large, dictionary-encoded) strings without nulls."""
        import pyarrow as pa

        chunks = strings.chunks if isinstance(strings, pa.ChunkedArray) else [strings]
        parts = [self._intern_chunk(chunk) for chunk in chunks]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _intern_chunk(self, strings: pa.Array) -> np.ndarray:
        import pyarrow as pa

        if pa.types.is_dictionary(strings.type):
            return self._intern_chunk(strings.dictionary)[strings.indices.to_numpy()]
        if pa.types.is_string(strings.type) or pa.types.is_binary(strings.type):
            width = np.int32
        else:
            width = np.int64
            if not (pa.types.is_large_string(strings.type) or pa.types.is_large_binary(strings.type)):
                strings = strings.cast(pa.large_string())
        _, offsets_buffer, data_buffer = strings.buffers()
        if not len(strings):
            return np.empty(0, np.int32)
        offsets = np.frombuffer(offsets_buffer, width)[strings.offset : strings.offset + len(strings) + 1].astype(np.int64)
        data = np.empty(0, np.uint8) if data_buffer is None else np.frombuffer(data_buffer, np.uint8)
        return self.intern_slices(data, offsets[:-1], offsets[1:])

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


def _encode(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-8", "surrogateescape"), np.uint8)


def _larger(array: np.ndarray, used: int, size: int) -> np.ndarray:
    larger = np.empty(size, array.dtype)
    larger[:used] = array[:used]
    return larger
