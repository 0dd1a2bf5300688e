"""`dlog watch`: a program over a stream of changes, round by round.

A round is complete when a later one begins or the stream ends. Complete rounds are committed, many at once where many have
arrived, and what they change in the outputs is written, each round whole and by itself. What facts give before the first
change is round 0. With a state the last round of the stream is kept in it: a stream that is read again goes on behind that.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from io import TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any, TextIO, TypeAlias

from dlog.branch import Branch
from dlog.caches import stays
from dlog.display.render import quoted_text, value_text
from dlog.engine.formats import TO_STDOUT
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.state.files import open_to_append
from dlog.engine.state.store import Sync
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import stage
from dlog.sessions import Session
from dlog.spark import quieten
from dlog.values import Row
from dlog.watch.change_lines import Change, ChangeReader, LineSource

_MAX_CHANGES = 1 << 16
"""Changes committed together, if the rounds end there: trades the latency of the first against the cost of a commit."""


Format: TypeAlias = str
"""`csv` or `json`."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One use of `dlog watch`. `format` None: as the stream's."""

    program: Path
    stream: str = "-"
    follow: bool = False
    facts: str | None = None
    output: str = TO_STDOUT
    format: Format | None = None
    include: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    threads: int = 1
    memory: int | None = None
    max_iterations: int | None = None
    state: Path | None = None
    sync: Sync = "always"
    engine: str = "embedded"
    workers: int | None = None
    modules: tuple[str, ...] = ()
    module_folders: tuple[str, ...] = ()


def watch(job: Watch) -> None:
    """Runs until the stream ends."""
    with stage("reading changes"):
        source = LineSource(job.stream, job.follow)
    limits = {"memory": job.memory, "max_iterations": job.max_iterations}
    options = {"threads": job.threads, "include": job.include, "macros": job.macros, "state": job.state, "sync": job.sync}
    engine: dict[str, Any] = {"engine": job.engine, "workers": job.workers}
    if job.modules:
        from dlog.functors import load_modules

        engine["functors"] = load_modules(job.modules, job.module_folders)
    if job.engine == "spark":
        quieten()
    with Session(job.program, job.facts, **options, **limits, **engine) as session:  # type: ignore[arg-type]
        reader = ChangeReader(source, changeable(session.program), session.codec)
        _Watcher(session, reader, job).run()


def changeable(program: Program) -> dict[str, Relation]:
    """The relations whose rows may come from outside: those without rules, and inputs."""
    derived = program.derived.keys() - program.inputs - program.plain_eqrels
    return {name: relation for name, relation in program.relations.items() if name not in derived}


def watched(program: Program) -> list[str]:
    """The outputs or, if the program names none, all relations that follow from rules."""
    outputs = dict.fromkeys(io.relation for io in program.io if io.action == "output")
    return list(outputs) or list(program.derived)


class _Watcher:
    """Collects rounds, commits the complete ones and writes what they change."""

    def __init__(self, session: Session, reader: ChangeReader, job: Watch) -> None:
        self.session = session
        self.reader = reader
        self.relations = watched(session.program)
        self.job = job
        self._writer: Writer | None = None
        self._rounds: list[tuple[int, list[Change]]] = []
        self._size = 0
        self._mark = session.mark or 0
        self._new = not session.restored
        """Whether there is a first round that is to be written."""

    def run(self) -> None:
        if self._new and self.session.round and self.job.format is not None:
            self._write([0])
        try:
            self._follow()
        except DlogError:
            finished = bool(self._rounds) and self.reader.past(self._rounds[-1][0])
            self._flush(self._rounds if finished else self._rounds[:-1])  # the bad line may belong to the last one
            raise
        self._flush(self._rounds)
        self._opened()

    def _follow(self) -> None:
        """Takes the whole stream; commits a round once a later one has begun."""
        for change in self._unread():
            if not self._rounds or self._rounds[-1][0] != change[0]:
                if self._size >= _MAX_CHANGES:
                    self._flush(self._rounds)
                self._rounds.append((change[0], []))
            self._rounds[-1][1].append(change)
            self._size += 1
            if len(self._rounds) > 1 and not self.reader.source.ready:
                self._flush(self._rounds[:-1])

    def _unread(self) -> Iterator[Change]:
        """The changes of rounds that are not in the state."""
        told = False
        for change in self.reader:
            if change[0] > self._mark:
                yield change
            elif not told:
                told = True
                warnings.warn(f"rounds up to {self._mark} are in the state: they are left out", RuntimeWarning, stacklevel=1)

    def _flush(self, complete: list[tuple[int, list[Change]]]) -> None:
        """Commits these first rounds of those that wait."""
        self._opened()
        if not complete:
            return
        self._rounds = self._rounds[len(complete) :]
        self._size = sum(len(changes) for _, changes in self._rounds)
        try:
            self._commit(complete)
        except DlogError:
            if len(complete) == 1:
                raise
            for round in complete:  # all up to the one that fails
                self._commit([round])

    def _commit(self, complete: list[tuple[int, list[Change]]]) -> None:
        now = self.session.round
        numbered = enumerate(complete, now + 1)
        stream = ((number, name, diff, row) for number, (_, cs) in numbered for _, name, diff, row in cs)
        self.session.apply(stream, mark=complete[-1][0])
        self._write([label for label, _ in complete])

    def _opened(self) -> Writer:
        """The writer; the first round is written when it is known how."""
        if self._writer is None:
            format = self.job.format or ("json" if self.reader.is_json else "csv")
            self._writer = Writer(self.job.output, format, self.session.program, self.relations, self._new)
            if self._new and self.session.round and self.job.format is None:
                self._write([0])
        return self._writer

    def _write(self, labels: list[int]) -> None:
        """Writes the changes of the last commit; its rounds are called by these labels."""
        writer = self._opened()
        first = self.session.round - len(labels) + 1
        found: list[dict[str, list[tuple[int, Row]]]] = [{} for _ in labels]
        for name in self.relations:
            changes = self.session.changes(name)
            for (row, diff), round in zip(changes, changes.rounds.tolist(), strict=True):
                found[round - first].setdefault(name, []).append((diff, row))
        with whole():
            for label, changed in zip(labels, found, strict=True):
                for name, rows in changed.items():
                    writer.write(label, name, sorted(rows, key=_order))
            writer.flush()


def _order(change: tuple[int, Row]) -> tuple[int, list[tuple[str, object]]]:
    """The sort key of a change: removals before additions; numbers by value, anything else by its text."""
    diff, row = change
    return diff, [("", v) if isinstance(v, int | float) else ("text", value_text(v)) for v in row]


class Writer:
    """Changes as lines, on standard output or in one file for each relation, which is begun anew or goes on."""

    def __init__(self, output: str, format: Format, program: Program, relations: list[str], anew: bool) -> None:
        self._line: Callable[[int, str, int, Row], str] = _csv_line if format == "csv" else _json_line
        self._files: dict[str, TextIO] = {}
        if output == TO_STDOUT and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # as files are, whatever the terminal's
        if output != TO_STDOUT:
            with stage("writing changes"):
                os.makedirs(output, exist_ok=True)
                for name in relations:
                    suffix = "csv" if format == "csv" else "jsonl"
                    self._files[name] = _begun(Path(output, f"{name}.changes.{suffix}"), anew)

    def write(self, round: int, relation: str, rows: list[tuple[int, Row]]) -> None:
        file = self._files.get(relation, sys.stdout)
        file.write("".join([self._line(round, relation, diff, row) for diff, row in rows]))

    def flush(self) -> None:
        for file in self._files.values() or (sys.stdout,):
            file.flush()


def _begun(path: Path, anew: bool) -> TextIO:
    """The file, to write at its end. Where others can put something in its place it is not what a link or a pipe leads to."""
    if stays(path.parent, path.parent.stat()):
        return path.open("w" if anew else "a", encoding="utf-8", newline="")
    return os.fdopen(open_to_append(path, 0 if anew else sys.maxsize), "a", encoding="utf-8", newline="")


def _csv_line(round: int, relation: str, diff: int, row: Row) -> str:
    return ",".join([str(round), relation, "+1" if diff > 0 else "-1", *map(_csv_value, row)]) + "\n"


def _csv_value(value: object) -> str:
    text = f"{value:.17g}" if isinstance(value, float) else value_text(value)
    if any(c in text for c in ',"\n\r['):
        text = '"' + text.replace('"', '""') + '"'
    return text


def _json_line(round: int, relation: str, diff: int, row: Row) -> str:
    item = {"round": round, "relation": relation, "diff": diff, "row": [_json_value(value) for value in row]}
    return json.dumps(item, ensure_ascii=False) + "\n"


@contextmanager
def whole() -> Iterator[None]:
    """A block that an interruption waits for, so that no round is written in part."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


def _json_value(value: object) -> object:
    """Values of algebraic data types are text, as in files."""
    match value:
        case Branch():
            return quoted_text(value)
        case tuple():
            return [_json_value(field) for field in value]
        case date():
            return value_text(value)
        case _:
            return value
