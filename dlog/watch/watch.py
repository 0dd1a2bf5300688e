"""`dlog watch`: a program over a stream of changes, round by round.

A round is complete when a later one begins or the stream ends. Complete rounds are committed, many at once where many have
arrived, and what they change in the outputs is written, each round whole and by itself. What facts give before the first
change is round 0. With a state the last round of the stream is kept in it: a stream that is read again goes on behind that.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dlog.arguments import MAX_COUNT
from dlog.dataclass import dataclass
from dlog.engine.compile.past import moment
from dlog.engine.formats import TO_STDOUT
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.state.sync import Sync
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.interruption import whole
from dlog.pipeline import stage
from dlog.sessions import Session
from dlog.sessions.follow.envelopes import Form
from dlog.spark import quieten
from dlog.watch.change_lines import Change, ChangeReader, weight
from dlog.watch.line_source import LineSource
from dlog.watch.writing import Format, Line, Writer, lines_of

_MAX_CHANGES = 1 << 16
"""Changes committed together, if the rounds end there: trades the latency of the first against the cost of a commit."""


@dataclass(frozen=True, slots=True)
class Watch:
    """One use of `dlog watch`. `format` None: as the stream's; `snapshot` None: where there is no state from before. A key, or
    an order, is `relation=column,column`."""

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
    up_to: int | None = None
    keys: tuple[str, ...] = ()
    envelope: Form = "upsert"
    orders: tuple[str, ...] = ()


def watch(job: Watch) -> None:
    """Runs until the stream ends."""
    with stage("reading changes"):
        source = LineSource(job.stream, job.follow, job.memory)
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
    return {name: relation for name, relation in program.relations.items() if name not in derived and moment(name) is None}


def watched(program: Program) -> list[str]:
    """The outputs or, if the program names none, all relations that follow from rules."""
    outputs = dict.fromkeys(io.relation for io in program.io if io.action == "output")
    return list(outputs) or list(program.derived)


def columns_of(given: Sequence[str], relations: Sequence[str], what: str, code: str) -> dict[str, list[str]]:
    """Columns by relation, of `what`: keys or orders. Raises DlogError, with a code, for what is none."""
    found = {}
    for text in given:
        name, equals, columns = text.partition("=")
        if not equals or not columns or name not in relations:
            notes = (f"changes are written of {', '.join(relations)}",) if equals and columns else ()
            raise DlogError(Diagnostic(code, f"`{text}` is no {what}: write relation=column,column", notes=notes))
        found[name] = columns.split(",")
    return found


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
        self._new = not session.restored
        """Whether the session begins: its files are begun, too."""
        snapshot = self._new if job.snapshot is None else job.snapshot
        there = job.progress or (snapshot and session.round > 0)
        self._first = (0 if self._new else self._mark) if there else None
        """The label of what there is at first, if that is to be written."""
        names = watched(session.program)
        keys, orders = columns_of(job.keys, names, "key", "bad-key"), columns_of(job.orders, names, "order", "bad-order")
        if job.envelope != "upsert" and not keys:
            message = f"`--envelope {job.envelope}` is about keys: name some, --key relation=column"
            raise DlogError(Diagnostic("bad-key", message))
        self._ordered = orders.keys()
        self._following = {
            name: session.subscribe(
                name,
                snapshot=snapshot,
                key=keys.get(name),
                envelope=job.envelope if name in keys else None,
                order=orders.get(name),
                limit=MAX_COUNT,
            )
            for name in names
        }

    def run(self) -> None:
        if self._first is not None and self.job.format is not None:
            self._write([self._first])
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
            self._writer = Writer(self.job.output, format, list(self._following), self._new)
            if self._first is not None and self.job.format is None:
                self._write([self._first])
        return self._writer

    def _write(self, labels: list[int]) -> None:
        """Writes the changes of the last commit; its rounds are called by these labels."""
        writer = self._opened()
        first = self.session.round - len(labels) + 1
        found: list[list[list[Line]]] = [[] for _ in labels]
        for name, subscription in self._following.items():
            for round, delivered in subscription.fetch():
                found[round - first].append(list(lines_of(labels[round - first], name, delivered, name in self._ordered)))
        with whole():
            for label, changed in zip(labels, found, strict=True):
                for lines in changed:
                    writer.write(lines)
                if self.job.progress:
                    writer.progress(label)
            writer.flush()
