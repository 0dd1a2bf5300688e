"""The log as it is found: its segments in order, and what is wrong with them.

What a crash leaves at the end of the last segment never counted and is dropped: the beginning of a record, or one whose end was
never written. Everything else that is not what was written is damage: a bad record that good ones follow, a bad one that is all
there, a log that ends before what had been forced to the disk.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from dlog.dataclass import dataclass
from dlog.engine.state import files, folders
from dlog.engine.state.log import LoggedRound, decode
from dlog.engine.state.records import FORMER, HEADER_SIZE, Framing, Header, Record, former_records, is_torn_former
from dlog.grammar.diagnostics import DlogError

Extent = tuple[int, int]
"""A segment, and how many bytes of it."""
_MISSING = 100
"""So many are named; whatever number somebody gave to a file."""
_SEGMENT = re.compile(r"\d+\.log\Z")


@dataclass(frozen=True, slots=True)
class Start:
    """The beginning of a log: in segment `number` of a state, after a round. At least `forced` was on the disk."""

    state: int
    number: int
    round: int
    forced: Extent


@dataclass(frozen=True, slots=True)
class Damage:
    """The damage of a segment, and the last round that is known to have been in it."""

    what: str
    last: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of the log. It begins with the header, its records end at `end`; what is behind never counted, unless there is
    `damage`. Where the making of it was cut off `end` is 0."""

    path: Path
    header: Header
    end: int
    records: tuple[Record, ...]
    former: bool = False
    damage: Damage | None = None

    @property
    def number(self) -> int:
        return self.header.number

    @property
    def last_round(self) -> int:
        return self.records[-1].round if self.records else self.header.before

    @property
    def error(self) -> DlogError | None:
        """The error of the damage, if there is any."""
        return None if self.damage is None else files.damaged(self.path, self.damage.what, *self.damage.notes)

    def rounds(self) -> Iterator[LoggedRound]:
        """The payloads of all records, in order. Raises DlogError where they are not any more what they were."""
        content = files.content(self.path)[: self.end]
        if _records(content, self.header, self.former) != self.records:
            raise files.damaged(self.path, "its records are not any more what they were when the state was opened")
        for record in self.records:
            try:
                yield decode(memoryview(content)[record.start : record.end], record.round)
            except (ValueError, struct.error):
                raise files.damaged(self.path, f"the record at byte {record.start} of the log makes no sense") from None


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:08d}.log"


def number_of(path: Path) -> int | None:
    """The number of a segment; None where the file is none. They are numbered without gaps."""
    return int(path.stem) if _SEGMENT.match(path.name) else None


def span(first: int, last: int) -> str:
    """`round 3`, or `rounds 3 to 7`."""
    return f"round {first}" if first == last else f"rounds {first} to {last}"


# ----------------------------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _SegmentContent:
    """A segment with its content, None where there is none, and the header that was found in it, if that is intact."""

    segment: Segment
    content: bytes | None
    header: Header | None


def read_log(folder: Path, start: Start) -> list[Segment]:
    """All segments from the first one that counts to the last one there is, or has been, each with what is wrong with it."""
    there = [n for n in map(number_of, map(folder.joinpath, folders.names(folder))) if n is not None]
    read: list[_SegmentContent] = []
    last = min(max([start.number, start.forced[0], *there]), start.number + len(there) + _MISSING)
    for number in range(start.number, last + 1):
        read.append(_read(segment_path(folder, number), number, start, read[-1] if read else None))
    judged: list[Segment] = []
    for here, behind in zip(read, [*read[1:], None], strict=True):
        judged.append(_judged(here, judged[-1] if judged else None, behind, start))
    return judged


def _read(path: Path, number: int, start: Start, before: _SegmentContent | None) -> _SegmentContent:
    if not folders.exists(path):
        last = before.segment.last_round if before is not None else start.round
        return _SegmentContent(Segment(path, Header(start.state, number, last, 0), 0, ()), None, None)
    content = files.content(path)
    found = Header.decode(content)
    former = content.startswith(FORMER)
    if found is not None and (found.state, found.number) == (start.state, number):
        header = found
    elif before is None:
        header = Header(start.state, number, start.round, 0)
    else:
        header = Header(start.state, number, before.segment.last_round, len(before.content or b""))
    records = _records(content, header, former)
    end = records[-1].next if records else len(FORMER) if former else HEADER_SIZE
    return _SegmentContent(Segment(path, header, end, records, former), content, found)


def _records(content: bytes, header: Header, former: bool) -> tuple[Record, ...]:
    return tuple(former_records(content) if former else Framing.of(header.state, header.number).whole(content))


# ----------------------------------------------------------------------------------------------------------------- judging


def _judged(here: _SegmentContent, before: Segment | None, behind: _SegmentContent | None, start: Start) -> Segment:
    segment, content, last = here.segment, here.content, behind is None
    if content is None:
        return replace(segment, damage=Damage("a segment of the log is missing", segment.last_round))
    forced = start.forced[1] if last and start.forced[0] == segment.number else 0
    if last and before is not None and not forced and _is_begun(content):
        return replace(segment, end=0)
    size = None if behind is None or behind.header is None else behind.segment.header.size
    damage = (
        _wrong_header(segment, content, here.header, before or start)
        or _wrong_size(segment, len(content), forced, size)
        or _wrong_record(segment, content, last, forced)
    )
    return replace(segment, damage=damage)


def _is_begun(content: bytes) -> bool:
    """Whether this is what is there of a segment when its making is cut off."""
    return len(content) < HEADER_SIZE or not any(content)


def _wrong_header(segment: Segment, content: bytes, found: Header | None, before: Segment | Start) -> Damage | None:
    if segment.former:
        return None
    last = segment.last_round
    if found is None:
        intact = ("the rounds in it are intact",) if segment.records and segment.end == len(content) else ()
        return Damage("a header of the log does not fit its checksum", last, intact)
    if found != segment.header:
        return Damage("this segment of the log is another one's, or another state's", last)
    ends, sure = (before.round, True) if isinstance(before, Start) else (before.last_round, before.damage is None)
    if sure and found.before != ends:
        return Damage(f"this segment of the log follows on round {found.before}, and what is before it ends with {ends}", last)
    if segment.records and segment.records[0].before != found.before:
        return Damage(f"the first record of the log follows on round {segment.records[0].before}, not on {found.before}", last)
    return None


def _wrong_size(segment: Segment, there: int, forced: int, size: int | None) -> Damage | None:
    """Whether a segment is shorter than what was forced to the disk, or another one than when the next one was begun."""
    last = segment.last_round
    intact = (f"the rounds up to {last} are intact",)
    if there < forced:
        return Damage(f"the log ends at byte {there}, and had {forced} bytes at least", last, intact)
    if size is not None and there < size:
        return Damage(f"this segment of the log ends at byte {there}, and had {size} bytes", last, intact)
    if size is not None and there > size:
        return Damage(f"this segment of the log has {there} bytes, and had {size}", last, intact)
    return None


def _wrong_record(segment: Segment, content: bytes, last: bool, forced: int) -> Damage | None:
    """The damage behind the records that are whole, unless a crash can have left it."""
    end = segment.end
    if end == len(content) or (last and forced <= end and _is_torn(segment, content)):
        return None
    framing = Framing.of(segment.header.state, segment.number)
    head = None if segment.former else framing.head(content, end)
    behind = [] if segment.former else list(framing.whole_behind(content, end))
    first = segment.last_round + 1
    notes = [f"up to round {segment.last_round} all rounds are intact"]
    if head is not None or behind:
        notes.append(f"the record has {span(first, head.round if head is not None else behind[0].before)}")
    if behind:
        notes.append(f"behind it {span(behind[0].before + 1, behind[-1].round)} can be read, which do not count without it")
    rounds = [segment.last_round, *([head.round] if head else []), *(record.round for record in behind)]
    return Damage(f"the record at byte {end} of the log does not fit its checksum", max(rounds), tuple(notes))


def _is_torn(segment: Segment, content: bytes) -> bool:
    if segment.former:
        return is_torn_former(content, segment.end)
    return Framing.of(segment.header.state, segment.number).is_torn(content, segment.end)
