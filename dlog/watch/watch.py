"""`dlog watch`: a program over a stream of changes, round by round.

A round is complete when a later one begins or the stream ends. Complete rounds are committed, many at once where many have
arrived, and what they change in the outputs is written, each round whole and by itself. What facts give before the first
change is round 0. With a state the last round of the stream is kept in it: a stream that is read again goes on behind that. The
session numbers its rounds by itself; with a history it knows which of the stream they are, by their marks.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dlog.dataclass import dataclass
from dlog.engine.compile.past import is_declared, moments
from dlog.engine.formats import TO_STDOUT
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.state.sync import Sync
from dlog.grammar.diagnostics import DlogError
from dlog.interruption import whole
from dlog.pipeline import stage
from dlog.sessions import Session
from dlog.sessions.follow.envelopes import Form
from dlog.spark import quieten
from dlog.watch.change_lines import Change, ChangeReader, weight
from dlog.watch.following import Following, Forms, labels_from
from dlog.watch.line_source import LineSource
from dlog.watch.writing import Format, Line, Writer, lines_of

_MAX_CHANGES = 1 << 16
"""Changes committed together, if the rounds end there: trades the latency of the first against the cost of a commit."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One use of `dlog watch`. `format` None: as the stream's; `snapshot` None: where there is no state from before, or as of a
    round. A key, or an order, is `relation=column,column`; a question is followed in the place of outputs, `name: question`."""

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
    snapshot: bool | None = None
    progress: bool = False
    as_of: int | None = None
    up_to: int | None = None
    history: int = 0
    questions: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    envelope: Form = "upsert"
    orders: tuple[str, ...] = ()


def watch(job: Watch) -> None:
    """Runs until the stream ends."""
    with stage("reading changes"):
        source = LineSource(job.stream, job.follow, job.memory)
    limits = {"memory": job.memory, "max_iterations": job.max_iterations}
    options = {"threads": job.threads, "include": job.include, "macros": job.macros, "state": job.state, "sync": job.sync}
    options["history"] = job.history
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
    return {name: relation for name, relation in program.relations.items() if name not in derived and is_declared(name)}


class _Watcher:
    """Collects rounds, commits the complete ones and writes what they change."""

    def __init__(self, session: Session, reader: ChangeReader, job: Watch) -> None:
        self.session = session
        self.reader = reader
        self.job = job
        self._writer: Writer | None = None
        self._rounds: list[tuple[int, list[Change]]] = []
        self._size = 0
        self._weight = 0
        """Bytes of the changes of the last round, where there is a limit."""
        self._mark = session.mark or 0
        self._clocked = bool(session.program.timed) and not moments(session.program.relations)
        self._new = not session.restored
        """Whether the session begins: its files are begun, too."""
        snapshot = (self._new or job.as_of is not None) if job.snapshot is None else job.snapshot
        self._following = Following(session, job.questions, Forms(job.keys, job.envelope, job.orders), snapshot)
        self._first: dict[int, int] = {}
        """The rounds that are there at first and are to be written, by those of the session."""
        self._awaited: int | None = None
        """The round to come that is to be the first."""
        self._ended_before = 0
        """The round at which the stream was left, if it was."""
        if job.as_of is None:
            self._following.begin()
            if job.progress or (snapshot and session.round > 0):
                self._first = {session.round: self._mark}
        elif job.as_of > self._mark:
            self._awaited = job.as_of
        else:
            self._begin_as_of(job.as_of)

    def _begin_as_of(self, wanted: int) -> None:
        """Begins with a round of the stream that has been committed."""
        past = wanted < self._mark
        labels = labels_from(self.session, wanted, self._mark, self._clocked) if past else {self.session.round: wanted}
        self._following.begin(min(labels) if past else None)
        self._first = {round: label for round, label in labels.items() if self.job.up_to is None or label < self.job.up_to}

    def run(self) -> None:
        if self._first and self.job.format is not None:
            self._write(self._first)
        try:
            self._follow()
        except DlogError:
            finished = bool(self._rounds) and self.reader.past(self._rounds[-1][0])
            self._flush(self._rounds if finished else self._rounds[:-1])  # the bad line may belong to the last one
            raise
        self._flush(self._rounds)
        self._opened()
        if self._awaited is not None and self._awaited < self._ended_before:
            self._begin_awaited(self._awaited)

    def _follow(self) -> None:
        """Takes the whole stream; commits a round once a later one has begun."""
        for change in self._unread():
            if not self._rounds or self._rounds[-1][0] != change[0]:
                if self._size >= _MAX_CHANGES:
                    self._flush(self._rounds)
                self._rounds.append((change[0], []))
                self._weight = 0
            self._check_room(change)
            self._rounds[-1][1].append(change)
            self._size += 1
            if len(self._rounds) > 1 and not self.reader.source.ready:
                self._flush(self._rounds[:-1])

    def _check_room(self, change: Change) -> None:
        """Raises DlogError where a round takes more than there is: rounds before it do not wait for more than what was read at
        once."""
        if self.job.memory is not None:
            self._weight += weight(change[3])
            if self._weight > self.job.memory:
                raise self.reader.too_much(change[0], self._weight, self.job.memory)

    def _unread(self) -> Iterator[Change]:
        """The changes of rounds that are not in the state."""
        told = False
        for change in self.reader:
            if self.job.up_to is not None and change[0] >= self.job.up_to:
                self._ended_before = change[0]
                return
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
        first = 0 if self._awaited is None else sum(label <= self._awaited for label, _ in complete)
        for part in (complete[:first], complete[first:]):
            if part:
                self._commit_part(part)

    def _commit_part(self, part: list[tuple[int, list[Change]]]) -> None:
        try:
            self._commit(part)
        except DlogError:
            if len(part) == 1:
                raise
            for round in part:  # all up to the one that fails
                self._commit([round])

    def _commit(self, complete: list[tuple[int, list[Change]]]) -> None:
        """Commits rounds, up to the one that is to be the first or after it, and writes what they change."""
        awaited, passed = self._awaited, dict[int, int]()
        if awaited is not None and complete[0][0] > awaited:
            if self._clocked and self.session.round < awaited:  # which the clock passes now
                self._awaited, passed = None, {awaited: awaited}
                self._following.begin(awaited)
            else:
                self._begin_awaited(awaited)
        labels = self._apply(complete)
        if self._awaited is None:
            self._write({**passed, **labels})
        elif complete[-1][0] == self._awaited:
            self._begin_awaited(self._awaited)

    def _begin_awaited(self, awaited: int) -> None:
        """Begins with a round that is over."""
        self._awaited = None
        self._following.begin()
        self._write({self.session.round: awaited})

    def _apply(self, complete: list[tuple[int, list[Change]]]) -> dict[int, int]:
        """Commits rounds; returns what they are by the session's: the next ones or, where rules look at the clock, those of the
        same numbers, as far as these are still to come."""
        number, labels = self.session.round, {}
        for label, _ in complete:
            number = max(number + 1, label if self._clocked else 0)
            labels[number] = label
        numbered = zip(labels, (changes for _, changes in complete), strict=True)
        self.session.apply(((n, name, diff, row) for n, changes in numbered for _, name, diff, row in changes), mark=labels)
        return labels

    def _opened(self) -> Writer:
        """The writer; the first round is written when it is known how."""
        if self._writer is None:
            format = self.job.format or ("json" if self.reader.is_json else "csv")
            anew = self._new or self.job.as_of is not None
            self._writer = Writer(self.job.output, format, list(self._following.followed), anew)
            if self._first and self.job.format is None:
                self._write(self._first)
        return self._writer

    def _write(self, labels: dict[int, int]) -> None:
        """Writes what has come of these rounds, which are called by their labels, and of others that the clock has passed
        before one of them; what has come of others, after the last one that is asked for, is dropped."""
        writer = self._opened()
        last = max(labels, default=0)
        found: dict[int, list[list[Line]]] = {round: [] for round in labels}
        for name, subscription in self._following.subscriptions.items():
            for round, delivered in subscription.fetch():
                if round in labels or (self._clocked and round < last):
                    lines = lines_of(labels.get(round, round), name, delivered, name in self._following.orders)
                    found.setdefault(round, []).append(list(lines))
        with whole():
            for round, changed in sorted(found.items()):
                for listed in changed:
                    writer.write(listed)
                if self.job.progress and round in labels:
                    writer.progress(labels[round])
            writer.flush()
