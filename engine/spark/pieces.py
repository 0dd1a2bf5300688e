"""Messages in pieces of bounded size, so that nobody need take a large one from somebody who has not said yet who he is.

ZeroMQ takes a frame into memory before it is complete, a stranger's too. So listeners refuse frames that are longer than a
piece (secrets.py), and what is longer is sent as several. The first frame of a message has the sizes of its parts. A small
message is one frame, as each costs sender and receiver microseconds: it has the number of parts, their sizes, then the parts.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Iterator, Sequence
from typing import Any

MAX_FRAME_BYTES = 1 << 20
"""Bytes of a frame at most."""
SMALL_BYTES = 1 << 15
"""Bytes of a message's parts up to which it is one frame. A round of a session has ten parts for a worker; as frames they took
0.14 of the driver's 1.1 ms."""
WORD = 8
"""Parts in one frame begin at multiples of so many bytes: arrays are views of them."""
_PADDING = [bytes(size) for size in range(WORD)]


def parts_of(message: Any) -> list[Any]:
    """An object as a pickle and its arrays, all of them bytes."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    return [head, *(b.raw() for b in buffers)]


def frames_of(message: Any) -> list[Any]:
    """An object as frames to send."""
    return cut(parts_of(message))


def message_of(frames: Sequence[Any]) -> Any:
    """The object that frames are; its arrays are views of them, or of what they were put together to."""
    head, *buffers = joined(frames)
    return pickle.loads(head, buffers=buffers)


def cut(parts: Sequence[Any]) -> list[Any]:
    """Parts as frames to send."""
    sizes = [len(part) for part in parts]
    if sum(sizes) <= SMALL_BYTES:
        return [_together(parts, sizes)]
    return [struct.pack(f"<{len(sizes)}Q", *sizes), *(piece for part in parts for piece in _pieces(memoryview(part)))]


def _together(parts: Sequence[Any], sizes: Sequence[int]) -> bytes:
    listed = [struct.pack(f"<{len(sizes) + 1}Q", len(sizes), *sizes)]
    for part, size in zip(parts, sizes, strict=True):
        listed += (part, _PADDING[-size % WORD])
    return b"".join(listed)


def _pieces(view: memoryview) -> Iterator[memoryview]:
    for start in range(0, view.nbytes, MAX_FRAME_BYTES):
        yield view[start : start + MAX_FRAME_BYTES]


def joined(frames: Sequence[Any]) -> list[memoryview]:
    """The parts that frames, as they were received, are."""
    if len(frames) == 1:
        return _apart(memoryview(bytearray(frames[0].buffer)))
    left = iter(frames[1:])
    return [_part(size, left) for (size,) in struct.iter_unpack("<Q", frames[0].buffer)]


def _apart(frame: memoryview) -> list[memoryview]:
    (count,) = struct.unpack_from("<Q", frame)
    parts, at = [], (1 + count) * WORD
    for size in struct.unpack_from(f"<{count}Q", frame, WORD):
        parts.append(frame[at : at + size])
        at += size + -size % WORD
    return parts


def _part(size: int, frames: Iterator[Any]) -> memoryview:
    if size <= MAX_FRAME_BYTES:
        return memoryview(next(frames).buffer if size else b"")
    whole = memoryview(bytearray(size))
    for start in range(0, size, MAX_FRAME_BYTES):
        whole[start : start + MAX_FRAME_BYTES] = next(frames).buffer
    return whole
