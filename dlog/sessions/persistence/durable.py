"""An engine whose rounds are on disk before they count.

Opened on a state, nothing runs yet: relations are read as the last session left them. The engine proper is made at the first
commit, or when a relation is read that the state does not have as of its last round: rounds that were logged after the last
checkpoint, by a session that did not come to its end, may have changed what follows from the inputs they changed.

A round is logged when the engine has committed it, so that only rounds that hold are. Until then a reader in another thread may
see it a moment early. If it cannot be logged, the engine is let go, and made anew from the state when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from threading import RLock
from typing import Any, TypeVar, cast
from uuid import uuid4

import numpy as np

from dlog.engine.compile.strata.dependencies import dependencies
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.rounds_engine import MAX_RELAYED_ROWS, Frames, IncompatibleImage, PlainRounds, RoundsEngine
from dlog.engine.runtime.storage.fact_encoder import ConstantRows
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined, prepended
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import stage
from dlog.sessions.engines import Engines
from dlog.sessions.follow.changes import all_of, between, none
from dlog.sessions.follow.history import History, HistoryEntry
from dlog.sessions.ingest.streams import netted
from dlog.sessions.mistakes import mistake, remark
from dlog.sessions.persistence.bulk_files import BulkChange
from dlog.sessions.persistence.external_relation import empty
from dlog.sessions.persistence.folder import State, fingerprint
from dlog.sessions.persistence.recovery import Loaded, Recovery
from dlog.sessions.persistence.running_images import MakeEngine
from dlog.sessions.persistence.saving import Saving, frames_of, gathered, recovered, takes_files
from dlog.sessions.text import Text

Reply = TypeVar("Reply")


class Durable(PlainRounds):
    """See `engine.rounds_engine`. `engines` make the engine proper; `inner` is one that is at the state's round."""

    def __init__(
        self,
        state: State,
        text: Text,
        program: Program,
        engines: Engines,
        inner: RoundsEngine | None = None,
        before: Program | None = None,
    ) -> None:
        """`before` is the program that the state was left with, if that is another one."""
        self.program = program
        known = program.timed.keys() & (program if before is None else before).timed.keys()
        self._restored = frozenset(known if state.round else ())
        self._state, self._text, self._engines, self._inner = state, str(text), engines, inner
        self._fingerprint = fingerprint(text.formatted if not program.functors else [*text.formatted, uuid4().hex])
        """Of what the derived rows follow from: functions of users are not known to be those of another session."""
        self._lock = RLock()
        self._has_last_changes = inner is not None
        """Whether the engine knows what the last round changed."""
        self._history: History | None = None
        self.mark: int | None = None
        """Goes into the log with the next commit."""
        state.means(program)
        self._ruled = program.derived.keys()
        self._stale = self._outdated() if inner is None else self._ruled

    def _outdated(self) -> set[str]:
        """The relations with rules whose rows the state does not have as of its last round."""
        if not self._state.round:
            return set()
        found = {name for name in self._ruled if self._state.derived(name, self._fingerprint) is None}
        changed = {name for name in self.program.relations if self._state.changed(name)}
        changed |= self.program.timed.keys() if self._state.passed else set()
        for stratum in self.program.strata:
            reads = {d.on for rule in stratum.rules for d in dependencies(rule)}
            if stratum.rules and not (found | changed).isdisjoint({*reads, *stratum.relations}):
                found |= set(stratum.relations)
        return found

    @property
    def working(self) -> RoundsEngine | None:
        return self._inner

    @property
    def resumes(self) -> bool:
        """Whether the engine proper can be had without deriving everything."""
        return self._state.imaged_before(self._fingerprint)

    def resumed(self) -> RoundsEngine:
        return self._awake() if self._inner is not None or self.resumes else self

    @property
    def symbols(self) -> SymbolTable:
        return self._state.interned.symbols

    @property
    def records(self) -> RecordTables:
        return self._state.interned.records

    @property
    def round(self) -> int:
        inner = self._inner
        return self._state.round if inner is None else inner.round

    @property
    def last_mark(self) -> int | None:
        """The mark that came with the last commit that had one."""
        return self._state.mark

    # -------------------------------------------------------------------------------------------------------------- commit

    def fitting(self, relation: Relation, rows: Any) -> Any | None:
        """Rows that the engine can write to files of the state without this process: nobody else may change its folder."""
        if not hasattr(rows, "mapInArrow"):
            return None
        path = self._state.path
        self._state.check_there()
        if not takes_files(self._state):
            return None
        return self._ask(lambda inner: inner.fitting(relation, rows) if inner.saves(path) else None)

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        self._state.check_there()
        if not frames:
            return self._committed(inputs, ())
        saving = Saving(self._state, self._awake(), self.program)
        try:
            rows, bulks = saving.saved(frames, self.round + 1)
            both = {name: [u[name] for u in (inputs, rows) if name in u] for name in {**inputs, **rows}}
            given = {name: joined(listed) for name, listed in both.items()}
            return self._committed(given, bulks)
        finally:
            saving.forget()

    def _committed(self, inputs: Mapping[str, Updates], bulks: Sequence[BulkChange]) -> int:
        mark = self.mark
        try:
            return self._commit(inputs, bulks)
        except DlogError as error:
            if not workers_lost(error) or self._inner is not None:
                raise
        self.mark = mark
        return self._commit(inputs, bulks)

    def _commit(self, inputs: Mapping[str, Updates], bulks: Sequence[BulkChange]) -> int:
        before = self._state.round
        given = {name: updates for name, updates in inputs.items() if updates.rows}
        if not before:
            given = self._with_facts(given)
        inner = self._awake()
        try:
            last = inner.commit(given, frames_of(bulks, inner, self._state) or None)
            self._has_last_changes = True
            text = self._text if self._state.text != self._text else None
            noted = self._history_entry(self.program.relations, inner.changes, inner.touched)
            self._state.append(last, given | self._kept(inner), text, self.mark, bulks, noted)
        except BaseException as error:
            if self._state.round == before and (before != inner.round or workers_lost(error)):
                self._let_go()
            raise
        finally:
            self.mark = None
        self._state.checkpoints.begin_if_due(self._state, self._fingerprint, inner, self._beside)
        return last

    def _kept(self, inner: RoundsEngine) -> dict[str, Updates]:
        """The changes of what no input says, by the last commit."""
        return {name: inner.changes(name) for name, timed in self.program.timed.items() if timed.how == "kept"}

    def _newly_kept(self, inner: RoundsEngine, program: Program, round: int) -> dict[str, Updates]:
        """The same where an engine of another program has come to a round."""
        found = {}
        for name in (name for name, timed in program.timed.items() if timed.how == "kept"):
            held = self._state.external(name, program.relations[name].kinds)
            found[name] = between(held, inner.table(name), round)
        return found

    def keep_history(self, history: History) -> None:
        """Has a history go on from that of the state, which keeps what it notes from now on."""
        self._state.keep_history(history)
        self._history = history

    def _history_entry(
        self, relations: Mapping[str, Relation], changes: Callable[[str], Updates], touched: Iterable[str]
    ) -> HistoryEntry | None:
        """What the history notes of a commit, if it goes back further than open views."""
        if self._history is None or not self._history.has_window:
            return None
        return self._history.entry(relations, changes, touched, False)

    def _with_facts(self, given: Mapping[str, Updates]) -> dict[str, Updates]:
        """The changes of the very first commit, with the facts of the program's text before them."""
        facts = self._state.interned.encoder.updates(self.program, self.program.facts, 1, 1)
        both = prepended(facts, given)
        return both | {name: netted(self.program.relations[name], both[name], 0) for name in facts}

    def have_come(self, relations: frozenset[str]) -> None:
        """What these timed relations follow comes with the very first commit, and had come already."""
        self._restored |= relations

    # -------------------------------------------------------------------------------------------------------------- engine

    def _awake(self) -> RoundsEngine:
        """The engine proper, at the state's last round."""
        if self._inner is None:
            with self._lock, stage("evaluation"):
                if self._inner is None:
                    self._inner = self._build_engine()
        return self._inner

    def _build_engine(self) -> RoundsEngine:
        recovery = self._recovery(self._engines)
        try:
            resumed = recovery.from_image(self._state)
        except IncompatibleImage as why:
            remark(f"what the last session's engine kept cannot be gone on from: {why}; everything is derived anew")
            resumed = None
        if resumed is not None:
            return resumed
        return recovery.from_rows(self._state, lambda name, engine: self.loaded(name, engine, self._state.round))

    def _recovery(self, engines: Engines) -> Recovery:
        again = self._text == self._state.text
        return Recovery(self.program, engines, self._fingerprint, self.symbols, self.records, again, self._restored)

    def _beside(self) -> MakeEngine | None:
        """What makes another engine of the program beside this one, which it leaves alone. None where there can be none."""
        engines, state = self._engines.beside(), self._state
        if engines is None or self.program.functors:
            return None
        return partial(self._recovery(engines).from_checkpoint, state.lotted, state.image, state.interned.copied_records)

    def loaded(self, relation: str, engine: RoundsEngine, round: int) -> Loaded:
        return recovered(self._state, self.program.relations[relation], engine, round) if self._state.lotted(relation) else None

    def _let_go(self) -> None:
        """Back to the state. A reader may still be at the engine, so it is not closed."""
        with self._lock:
            self._inner, self._has_last_changes, self._stale = None, False, self._ruled
        self._state.checkpoints.copy_nothing()

    def _ask(self, question: Callable[[RoundsEngine], Reply]) -> Reply:
        """The engine's reply: that of a new one where its workers were lost."""
        try:
            return question(self._awake())
        except DlogError as error:
            if not workers_lost(error):
                raise
        self._let_go()
        return question(self._awake())

    # ------------------------------------------------------------------------------------------------------------- program

    def keep_program(self) -> None:
        """Has the state know its program before there is a round, which brings it along."""
        if not self._state.round and self._state.text != self._text and self._text.strip():
            self._state.keep_text(self._text, self._fingerprint)

    def change_program(self, came: ConstantRows, gone: Mapping[str, Updates]) -> None:
        """Makes this program that of the state: a round in which facts of its text come, and rows go. An engine that is there
        already has had it."""
        behind = self._inner is None
        inner = self._awake()
        round = self._state.round + 1
        parts: dict[str, list[Updates]] = {name: [updates] for name, updates in gone.items()}
        for name, updates in self._state.interned.encoder.updates(self.program, came, 1, round).items():
            parts.setdefault(name, []).append(updates)
        given = {name: joined(listed) for name, listed in parts.items()}
        if behind:
            with stage("evaluation"):
                inner.commit({name: updates for name, updates in given.items() if name in self.program.relations})
        self._state.append(round, given | self._newly_kept(inner, self.program, round), self._text)

    def succeeded_by(
        self,
        inner: RoundsEngine,
        text: Text,
        program: Program,
        changes: Callable[[str], Updates],
        more: Mapping[str, Updates],
    ) -> Durable:
        """Another program from the next round on, at which `inner` is, and its `changes` of that round. Its facts are inserted;
        the rows of relations that it does not have go, `more` change besides."""
        round = self._state.round + 1
        gone = [name for name in self.program.relations if name not in program.relations]
        given = {name: all_of(self.external(name), round).negated() for name in gone}
        new = Durable(self._state, text, program, self._engines, inner)
        new._history = self._history
        try:
            given |= more
            given |= self._state.interned.encoder.updates(program, program.facts, 1, round)
            given |= self._newly_kept(inner, program, round)
            if self._history is not None:
                self._history.drop(gone)
            noted = self._history_entry(program.relations, changes, program.relations)
            self._state.append(round, given, str(text), noted=noted)
        finally:
            if self._state.round != round:
                self._state.means(self.program)
        self._state.checkpoints.begin_if_due(self._state, new._fingerprint, inner, new._beside)
        return new

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def touched(self) -> Iterable[str]:
        inner = self._inner
        return inner.touched if self._has_last_changes and inner is not None else self.program.relations

    def changes(self, relation: str) -> Updates:
        inner = self._inner
        if self._has_last_changes and inner is not None:
            try:
                return inner.changes(relation)
            except DlogError as error:
                if not workers_lost(error):
                    raise
            self._let_go()
        if not self.round:
            return none(self.program.relations[relation].arity)
        message = f"what round {self.round} changed in `{relation}` is not known any more"
        raise mistake("past-round", message, "the state keeps the rows as of its last round, not what became of them in it")

    def table(self, relation: str) -> Table:
        if self._inner is None:
            with self._lock:
                if self._inner is None and self._has_rows_of(relation):
                    return self._stored(relation)
        return self._ask(lambda inner: inner.table(relation))

    def _has_rows_of(self, relation: str) -> bool:
        """Whether the state has the rows as of its last round: of what rounds feed, those that nothing else tells."""
        timed = self.program.timed.get(relation)
        return relation not in self._stale and (timed is None or timed.how == "kept")

    def _stored(self, relation: str) -> Table:
        if relation not in self._ruled:
            return self.external(relation)
        found = self._state.derived(relation, self._fingerprint)
        return empty(self.program.relations[relation].kinds) if found is None else found.table()

    def external(self, relation: str) -> Table:
        inner = self._inner
        if inner is None:
            return self._state.external(relation, self.program.relations[relation].kinds)
        return self._ask(lambda inner: inner.external(relation))

    def rows(self, relation: str) -> int:
        if self._inner is None and self._has_rows_of(relation) and not (self.elsewhere and self._state.lotted(relation)):
            return self.table(relation).rows
        return self._ask(lambda inner: inner.rows(relation))

    def ranks(self, relation: str) -> np.ndarray | None:
        return self._ask(lambda inner: inner.ranks(relation))

    def frame(self, relation: str) -> Any:
        """The rows of a relation where they are elsewhere: what the engine has for them."""
        return self._ask(lambda inner: cast("Any", inner).frame(relation))

    @property
    def pending(self) -> frozenset[str]:
        """As of `RemoteRows`. Relations that rounds feed are none that a question could compute by itself."""
        return frozenset(self._stale) if self._inner is None and not self.program.timed else frozenset()

    @property
    def elsewhere(self) -> bool:
        return self._engines.elsewhere

    def explain(self) -> str:
        return self._ask(lambda inner: inner.explain())

    # ------------------------------------------------------------------------------------------------------------- closing

    def close(self) -> None:
        """Writes what the next session can begin with, if the engine has it, and lets go of the state, and of the engine."""
        inner = self._inner
        with ExitStack() as parts:
            if inner is not None:
                parts.callback(inner.close)
            parts.callback(self._state.close)
            try:
                if inner is not None and self._state.round:
                    self._settle(inner)
            except DlogError as error:
                if not workers_lost(error):  # the next session evaluates
                    raise

    def _settle(self, inner: RoundsEngine) -> None:
        """Writes what the next session can begin with, unless it is there."""
        image = None if self._state.imaged(self._fingerprint) else inner.image()
        always = {name for name in self._ruled if self._is_plain(inner, name)}
        if self._stale or image is not None or not self._state.is_settled(self._fingerprint, always):
            worth = always | {name for name in self._ruled - always if inner.rows(name) <= MAX_RELAYED_ROWS}
            derived = {name: partial(inner.table, name) for name in sorted(worth)}
            self._state.settle(self._fingerprint, derived, image, self._gathered(inner))

    def _is_plain(self, inner: RoundsEngine, relation: str) -> bool:
        """Whether the rows of a relation with rules are written, however many: those that are elsewhere, or pairs of an
        equivalence relation, are rather derived again."""
        return not inner.elsewhere and relation not in self.program.eqrels

    def _gathered(self, inner: RoundsEngine) -> dict[str, Table | BulkChange]:
        """The external rows of relations that have too many bulk changes, in one piece."""
        relations = [self.program.relations[name] for name in self._state.crowded()]
        return {r.name: gathered(self._state, r, inner, r.name in self._ruled) for r in relations}

    def abandon(self) -> None:
        """Lets go of the state as it is."""
        self._state.close()


def workers_lost(error: BaseException) -> bool:
    """Whether an engine failed because those who did its work are no more."""
    return isinstance(error, DlogError) and any(d.code == "no-workers" for d in error.diagnostics)

