"""Records in a segment of the log: where they begin and end, and whether they are what was written.

    segment: header | records       header: magic, state, number, round and size of the log before it, seal
    record:  head | payload | seal of the payload       head: mark, length, round before, round, seal

A seal is a checksum and a byte that is not zero: where that byte is zero, what it ends was never written. The seal of a head is
over its place, too (the state, the segment, the offset), so that a record is found wherever reading has lost its way, and found
nowhere else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from dlog.dataclass import dataclass
from dlog.engine.state import files

MAGIC = b"dloglog2"
FORMER = b"dloglog1"
"""Begins segments of states of versions 1 and 2: nothing follows but records, each length, checksum and payload."""
_MARK = b"\xd1rec"
_HEADER = struct.Struct("<8sQQqQ")
_HEAD = struct.Struct("<4sQqq")
_PLACED = struct.Struct("<QQqq")  # offset, length, round before, round: what the seal of a head is over
_SEAL = struct.Struct("<IB")
_SEALED = 0xFF
_FORMER_HEAD = struct.Struct("<QI")
_ROUND = struct.Struct("<qII")  # begins each payload
HEADER_SIZE = _HEADER.size + _SEAL.size
_HEAD_SIZE = _HEAD.size + _SEAL.size


def _seal(content: files.Bytes, seed: int = 0) -> bytes:
    return _SEAL.pack(files.checksum(content, seed), _SEALED)


@dataclass(frozen=True, slots=True)
class Header:
    """Begins segment `number` of a state, which follows on a round, and on a segment of `size` bytes."""

    state: int
    number: int
    before: int
    size: int

    def encode(self) -> bytes:
        content = _HEADER.pack(MAGIC, self.state, self.number, self.before, self.size)
        return content + _seal(content)

    @staticmethod
    def decode(content: bytes) -> Header | None:
        """The header of a segment; None where it is not intact."""
        if content[_HEADER.size : HEADER_SIZE] != _seal(content[: _HEADER.size]):
            return None
        magic, *fields = _HEADER.unpack_from(content)
        return Header(*fields) if magic == MAGIC else None


@dataclass(frozen=True, slots=True)
class Record:
    """The rounds after `before` up to `round`: the payload is content[start:end], another record may begin at `next`."""

    start: int
    end: int
    next: int
    before: int
    round: int


@dataclass(frozen=True, slots=True)
class Framing:
    """The framing of records in one segment of a state."""

    seed: int

    @staticmethod
    def of(state: int, number: int) -> Framing:
        return Framing(files.checksum(struct.pack("<QQ", state, number)))

    def framed(self, payload: bytes, offset: int, before: int, round: int) -> bytes:
        """A whole record of the rounds after `before` up to `round`, to be written at an offset."""
        placed = _PLACED.pack(offset, len(payload), before, round)
        head = _HEAD.pack(_MARK, len(payload), before, round)
        return b"".join((head, _seal(placed, self.seed), payload, _seal(payload)))

    def whole(self, content: bytes) -> Iterator[Record]:
        """The records from the header on, as far as they are intact."""
        at = HEADER_SIZE
        while (found := self.head(content, at)) is not None and _is_whole(content, found):
            yield found
            at = found.next

    def whole_behind(self, content: bytes, at: int) -> Iterator[Record]:
        """The records that are intact behind a bad one, wherever they are."""
        while (at := content.find(_MARK, at + 1)) >= 0:
            found = self.head(content, at)
            if found is not None and _is_whole(content, found):
                yield found
                at = found.next - 1

    def head(self, content: bytes, at: int) -> Record | None:
        """The record whose head is here and intact; its payload may be anything, or not all there."""
        start = at + _HEAD_SIZE
        if start > len(content):
            return None
        mark, size, before, round = _HEAD.unpack_from(content, at)
        if mark != _MARK or content[at + _HEAD.size : start] != _seal(_PLACED.pack(at, size, before, round), self.seed):
            return None
        return Record(start, start + size, start + size + _SEAL.size, before, round)

    def is_torn(self, content: bytes, at: int) -> bool:
        """Whether what is here can be a record whose writing was cut off: the file ends in it or in its head, or what ends
        these was never written; and none follows."""
        head = self.head(content, at)
        end = at + _HEAD_SIZE if head is None else head.next
        return end > len(content) or (not content[end - 1] and next(self.whole_behind(content, at), None) is None)


def _is_whole(content: bytes, record: Record) -> bool:
    return content[record.end : record.next] == _seal(memoryview(content)[record.start : record.end])


def former_records(content: bytes) -> Iterator[Record]:
    """The records of a segment of a former version, as far as they are intact."""
    at, before = len(FORMER), 0
    while at + _FORMER_HEAD.size <= len(content):
        size, checksum = _FORMER_HEAD.unpack_from(content, at)
        start, at = at + _FORMER_HEAD.size, at + _FORMER_HEAD.size + size
        if size < _ROUND.size or at > len(content) or files.checksum(memoryview(content)[start:at]) != checksum:
            return
        round = _ROUND.unpack_from(content, start)[0]
        yield Record(start, at, at, before, round)
        before = round


def is_torn_former(content: bytes, at: int) -> bool:
    """The same as `Framing.is_torn` as far as a segment of a former version can tell."""
    if at + _FORMER_HEAD.size > len(content):
        return True
    size, _ = _FORMER_HEAD.unpack_from(content, at)
    behind = at + _FORMER_HEAD.size + size
    return behind > len(content) or next(former_records(FORMER + content[behind:]), None) is None
