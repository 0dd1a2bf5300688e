"""The past of sessions as they keep it, changes in order of their rounds beside the rows of now, and in a spine, in one run.

The same streams of rounds, each with the last thousand rounds kept and with all of them: what a commit takes, and the bytes
afterwards; the first read of a past round after a hundred commits, and later ones of other rounds; all layers written by ten
checkpoints, as a state does, and read again. What is read is compared. Times are processor time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any
from zlib import crc32

import numpy as np

import dlog
from dlog.engine.state.layers import LayerFile, map_layer, write_layer
from dlog.engine.trace.batch import Batch
from dlog.engine.trace.layer import Layer
from tests.bench.past_reads import Shape, replace, session
from tests.bench.process import Options
from tests.bench.report import save, seconds, show
from tests.bench.spine_past import spines

ALL = 1 << 30
"""A window that no round leaves."""
STREAMS = {
    Shape("1M rows, 1 replaced a round", 1_000_000, 1): 4_000,
    Shape("1M rows, 100 replaced", 1_000_000, 100): 1_500,
    Shape("1,000 rows, all replaced", 1_000, 1_000): 1_500,
    Shape("10,000 rows, 10 replaced", 10_000, 10): 20_000,
    Shape("100,000 rows with strings, 10 replaced", 100_000, 10, text=True): 4_000,
}
"""Shapes of relations, and how many rounds they go through."""
WINDOWS = {1_000: "1,000", ALL: "all"}
WAYS: dict[str, Callable[[], AbstractContextManager[None]]] = {"changes": nullcontext, "spine": spines}
COMMITS, REPEATS, CHECKPOINTS = 100, 5, 10
DIFF = 10
"""Rounds of a difference."""
Read = Callable[[dlog.Session, int], Any]
"""Of a session as of a round."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds that a commit takes longer than without history; bytes; seconds of a read of now, of the first one of a past
    round and of later ones, by what is read; seconds and bytes of all checkpoints, and seconds in which their layers are
    read."""

    commit: float
    bytes: int
    now: dict[str, float]
    first: dict[str, float]
    later: dict[str, float]
    written: float
    bytes_written: int
    opened: float


def run(options: Options) -> bool:
    """Measures, prints and saves; false where the two do not read the same."""
    lines: list[tuple[str, dict[str, Figures]]] = []
    right = True
    for shape, rounds in STREAMS.items():
        for window, named in WINDOWS.items():
            plain = _Stream(shape, rounds, 0)
            plain.session.close()
            told, answers = {}, []
            for way, opened in WAYS.items():
                with opened():
                    stream = _Stream(shape, rounds, window)
                    told[way] = stream.figures(plain.commit)
                    answers.append(stream.answers)
                    stream.session.close()
            right &= answers[0] == answers[1]
            lines.append((f"{shape.name}; {named}", told))
    _show(lines)
    save("history-spine", {name: {way: asdict(f) for way, f in told.items()} for name, told in lines}, options.json)
    return right


def _show(lines: list[tuple[str, dict[str, Figures]]]) -> None:
    """A table for what is kept, and one for reads."""

    def header(*names: str) -> list[str]:
        return [f"{name}, {way}" for name in names for way in WAYS]

    kept = [[name, *(cell for of in _KEPT.values() for cell in map(of, told.values()))] for name, told in lines]
    show("what the past takes", ["relation; rounds kept", *header(*_KEPT)], kept)
    reads = [
        [f"{name}: {read}", *map(seconds, (now, *(f.first[read] for f in t.values()), *(f.later[read] for f in t.values())))]
        for name, t in lines
        for read, now in t["changes"].now.items()
    ]
    show("reads of a past round", ["read", "now", *header("first", "later")], reads)


_KEPT: dict[str, Callable[[Figures], str]] = {
    "us a commit": lambda figures: f"{figures.commit * 1e6:.3g}",
    "MB": lambda figures: f"{figures.bytes / 1e6:.3g}",
    "MB written": lambda figures: f"{figures.bytes_written / 1e6:.3g}",
    "written": lambda figures: seconds(figures.written),
    "opened": lambda figures: seconds(figures.opened),
}
"""What the first table shows."""


class _Stream:
    """A session that has gone through the rounds of a stream, and how long a commit took."""

    def __init__(self, shape: Shape, rounds: int, window: int) -> None:
        self.shape, self.window, self.session = shape, window, session(shape, window)
        replace(self.session, shape, COMMITS)
        self.answers: list[tuple[int, ...]] = []
        self._folder = tempfile.TemporaryDirectory()
        self._files: dict[Layer, LayerFile] = {}
        self._written, self._bytes_written, taken = 0.0, 0, []
        for _ in range(CHECKPOINTS):
            started = time.process_time()
            replace(self.session, shape, rounds // CHECKPOINTS)
            taken.append(time.process_time() - started)
            self._checkpoint()
        self.commit = median(taken) / (rounds // CHECKPOINTS)

    def figures(self, plain: float) -> Figures:
        bytes = self.session._followers.history.nbytes
        opened = self._opened()
        taken = {name: self._taken(read) for name, read in self._reads().items()}
        self._folder.cleanup()
        now, first, later = ({name: found[k] for name, found in taken.items()} for k in range(3))
        return Figures(self.commit - plain, bytes, now, first, later, self._written, self._bytes_written, opened)

    def _reads(self) -> dict[str, Read]:
        s, shape = self.session, self.shape
        key = shape.rows // 2 + int(s.round) * shape.replaced
        return {
            "all rows": lambda s, round: s.at(round)["edge"].to_numpy(),
            "one key": lambda s, round: s.at(round).query(f"edge({key}, X)").to_numpy(),
            f"{DIFF} rounds": lambda s, round: s.diff(min(round, s.round - DIFF), min(round + DIFF, s.round))["edge"],
        }

    def _taken(self, read: Read) -> tuple[float, float, float]:
        """Seconds of a read of now after some commits, of the first one of a past round then, and of later ones, each of
        another round, half as far back as they go."""
        s, now, first, later = self.session, list[float](), list[float](), list[float]()
        for k in range(REPEATS):
            replace(s, self.shape, COMMITS)
            back = min(self.window, int(s.round)) // 2 + 7 * k
            for reads, rounds in ((now, 0), (first, back), (later, back + 31), (later, back + 57)):
                started = time.process_time()
                found = read(s, int(s.round) - rounds)
                reads.append(time.process_time() - started)
                self.answers.append(_answer(found))
        return median(now), median(first), median(later)

    # ------------------------------------------------------------------------------------------------------------ in files

    def _checkpoint(self) -> None:
        """Writes the layers that are not written yet."""
        traces = self.session._followers.history.traces
        self.session._followers.history.settle()
        started, folder = time.process_time(), Path(self._folder.name)
        for layer in (layer for _, trace in traces.values() for batch in trace.batches for layer in batch.layers):
            if layer not in self._files:
                self._files[layer] = write_layer(folder, f"{len(self._files)}.layer", layer)
                self._bytes_written += self._files[layer].size
        self._written += time.process_time() - started

    def _opened(self) -> float:
        """Reads the layers of the last checkpoint."""
        started, folder = time.process_time(), Path(self._folder.name)
        for kinds, trace in self.session._followers.history.traces.values():
            read = []
            for batch in trace.batches:
                layers = tuple(map_layer(folder, self._files[layer], len(kinds), verify=True) for layer in batch.layers)
                read.append(Batch(batch.description, layers))
            type(trace).of(len(kinds), read)
        return time.process_time() - started


def _answer(found: Any) -> tuple[int, ...]:
    """What was read: the number of rows, and a checksum of each column, in order of the first, which has each value once."""
    if not isinstance(found, dict):
        return tuple(sorted(map(hash, found)))
    columns = list(found.values())
    order = np.argsort(columns[0], kind="stable")
    return len(order), *(_checksum(column[order]) for column in columns)


def _checksum(column: np.ndarray) -> int:
    return crc32("\0".join(column.tolist()).encode() if column.dtype == object else column.tobytes())
