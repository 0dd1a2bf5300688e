"""A session's folder on disk: the log of its rounds and what checkpoints made of it (see `dlog.engine.state.store`).

What counts is the program and, of every relation, the external rows: every round logs their changes, the symbols and records
that are new, and the program's text where that is another one. The rows of relations with rules follow from these. A checkpoint
when the session is closed writes them too, so that they can be read when it is opened again without deriving them; one while it
runs would be out of date a round later, and leaves them out. Rows that were too many to pass through this process are *bulk
changes* (`dlog.sessions.persistence.bulk_files`): files that a record of the log names, and that stay as they are. An *image*
is what the engine keeps to go on without deriving anything. It is large, so that only some checkpoints have one; what became of
the external rows since then is a round for the engine that goes on from it. When there is one, and with an image,
is the business of `dlog.sessions.persistence.checkpoints`. """

from __future__ import annotations

import hashlib
import zlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from threading import Lock, RLock
from typing import cast, get_args

import numpy as np

from dlog.caches import Untrusted
from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Kind, Program, Relation, Type
from dlog.engine.rounds_engine import Image, IncompatibleImage
from dlog.engine.state import parts
from dlog.engine.state.entries import Entries, paths_of
from dlog.engine.state.files import damaged
from dlog.engine.state.layers import Stored
from dlog.engine.state.manifest import NAME
from dlog.engine.state.store import Store
from dlog.engine.state.sync import Sync
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.sessions.follow.changes import none, typed
from dlog.sessions.follow.history import History, HistoryEntry, Window
from dlog.sessions.marks import MARK
from dlog.sessions.mistakes import mistake, remark
from dlog.sessions.persistence.bulk_files import TABLE, BulkChange, BulkDecoder
from dlog.sessions.persistence.checkpoints import Checkpoints
from dlog.sessions.persistence.external_relation import Chunk, ExternalRows, FrozenEpoch, applied, last_changes
from dlog.sessions.persistence.external_relations import DERIVED, FOLLOWING, CheckpointSource, ExternalRelations, FrozenRows
from dlog.sessions.persistence.interned import Interned
from dlog.sessions.persistence.references import References, are_ids
from dlog.sessions.persistence.running_images import Interning
from dlog.sessions.persistence.stored_history import PAST, StoredHistory, contents, entries_of
from dlog.version import __version__

PROGRAM = "program"
"""The table of texts that the program has had; the last one holds."""
TEXT_MOST = 1 << 28
"""Bytes of a program's text: a packed one that somebody else wrote may say that it has any number of them."""


class State:
    """An open state. `relations` are those of the program as it is now; `round` is the last one in the log, `mark` the number
    that came with it or an earlier one."""

    def __init__(self, folder: str | Path, sync: Sync, memory: int | None) -> None:
        if sync not in get_args(Sync):
            note = f"it is one of {', '.join(get_args(Sync))}"
            raise mistake("bad-sync", f"{sync!r} does not say when to force the log to the disk", note)
        self._store = Store.open(folder, "", sync=sync, follows=lambda name: name.endswith(FOLLOWING))
        for name, error in self._store.lost_relations.items():
            what = f"`{name.removesuffix(DERIVED)}` is derived anew" if name.endswith(DERIVED) else "the history begins anew"
            remark(f"{error.diagnostics[0].place}: {error.diagnostics[0].message}; {what}")
        try:
            self.interned = Interned(memory)
            self.relations: Mapping[str, Relation] = {}
            self._types: Mapping[str, Type] = {}
            self._references: References | None = None
            self._believed: set[str] = set()
            """The relations whose rows from the last checkpoint have been found to be of the program's types."""
            self._texts: list[bytes] = []
            self.text: str | None = None
            """The program's text in the canonical layout; None where there never was one."""
            self._lock = Lock()
            self.program_changes = 0
            """How often the program has become another one."""
            self._logging = RLock()
            """Of who appends to the log or begins a checkpoint."""
            self._history: History | None = None
            """The history that is kept here, too."""
            self._restore()
            self.checkpoints = Checkpoints(self._store, self._logging, memory)
        except BaseException:
            self._store.close()
            raise

    def _restore(self) -> None:
        """Maps what the last checkpoint wrote and takes in what has been logged since. Bulk changes that do not count are
        removed."""
        tables = {name: [(paths_of(self.path, name)[0], entries)] for name, entries in self._store.tables.items()}
        rounds = list(self._store.rounds())
        self._external_relations = ExternalRelations.of(self.path, self._store.relations, self._store.tables, rounds)
        for logged in rounds:
            for name, entries in logged.tables.items():
                tables.setdefault(name, []).append((self._store.log_path, entries))
        lost = any(name.endswith(PAST) for name in self._store.lost_relations)
        self._stored_history = StoredHistory.of(self._store.checkpoint_round, {} if lost else self._store.relations, rounds)
        for part in self._external_relations.parts():
            parts.check(self.path, part)
        self._sweep()
        self.interned.restore(tables)
        self._texts = [piece for _, entries in tables.get(PROGRAM, ()) for piece in entries.pieces()]
        if self._texts:
            self.text = self._program(self._texts[-1])
        marks = self.external(MARK, (Kind.NUMBER,)).columns[0].tolist()
        self.mark: int | None = marks[0] if marks else None

    def _sweep(self) -> None:
        """Removes files that belong to no bulk change."""
        parts.sweep(self.path, {part.name for part in self._external_relations.parts()})

    def _program(self, packed: bytes) -> str:
        """The text of a program from the table of them. Raises DlogError where it is damaged."""
        try:
            unpacking = zlib.decompressobj()
            text = unpacking.decompress(packed, TEXT_MOST)
            if not unpacking.eof:
                raise zlib.error("it is too long, or ends early")
            return text.decode()
        except (zlib.error, UnicodeDecodeError):
            raise damaged(self.path / NAME, "the text of its program cannot be read") from None

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def round(self) -> int:
        return self._store.round

    @property
    def passed(self) -> bool:
        """Whether rounds have been logged since the last checkpoint."""
        return self.round != self._store.checkpoint_round

    @property
    def path(self) -> Path:
        return self._store.path

    def external(self, relation: str, kinds: tuple[Kind, ...]) -> Table:
        """The external rows as of the last round; columns may be views of a mapped file."""
        return self.rows_of(relation, self.epochs(relation), kinds)

    def rows_of(self, relation: str, epochs: Sequence[FrozenEpoch], kinds: tuple[Kind, ...]) -> Table:
        """The rows after these epochs. Raises DlogError where they make no sense."""
        try:
            found = applied(epochs, kinds, self.decoder.rows)
            self._refuse_strange(relation, found)
        except ValueError as error:
            changed = any(s.bulk is not None or s.chunks for s in epochs)
            raise damaged(self._place(relation, changed), f"rows of `{relation}` make no sense ({error})") from None
        return found

    def _refuse_strange(self, relation: str, table: Table) -> None:
        """Raises ValueError where ids in rows of a relation of the program stand for nothing."""
        if relation not in self.relations:
            return
        types = [type for _, type in self.relations[relation].attributes]
        if [type.kind for type in types] != [*table.kinds]:
            raise ValueError("they are of other types")
        if self._references is None:
            interned = self.interned
            self._references = References(self._types, interned.symbols, interned.records, interned.restored)
        if not self._references.hold(types, table.columns):
            raise ValueError("they hold ids of nothing")

    def _place(self, stored: str, changed: bool) -> Path:
        """The file that rows are from: the log where it has changed them."""
        layers = () if changed else self._store.layers(stored)
        return self.path / layers[0] if layers else self._store.log_path

    def epochs(self, relation: str) -> list[FrozenEpoch]:
        """The same as they are kept: a bulk change begins each but the first."""
        with self._lock:
            return self._external_relations.rows.setdefault(relation, ExternalRows()).frozen()

    @property
    def decoder(self) -> BulkDecoder:
        """The decoder of bulk files."""
        return BulkDecoder(self.path, self.relations, self._types, self.interned.symbols, self.interned.records)

    def means(self, program: Program) -> None:
        """The program as it is from now on, not within the beginning of a checkpoint, which is of one program."""
        with self._logging:
            self.program_changes += 1
            self.relations, self._types, self._references = program.relations, program.types, None
            self._believed = set()

    def externals(self) -> Iterable[str]:
        """The relations that may have external rows."""
        return [name for name in self._external_relations.rows if name != MARK]

    def changed(self, relation: str) -> bool:
        """Whether the external rows may be others than at the last checkpoint."""
        return relation in self._external_relations.rows and self._external_relations.rows[relation].changed

    def derived(self, relation: str, fingerprint: str) -> Stored | None:
        """All rows of a relation as of the last checkpoint, if that was for this program and wrote them."""
        name = relation + DERIVED
        if self._store.stored_fingerprint != fingerprint or name not in self._store.relations:
            return None
        stored = self._store.relations[name]
        if name not in self._believed:
            try:
                self._refuse_strange(relation, stored.table())
            except ValueError as error:
                remark(f"{self._place(name, False)}: rows of `{relation}` make no sense ({error}); they are derived anew")
                del self._store.relations[name]
                return None
            self._believed.add(name)
        return stored

    def image(self, fingerprint: str) -> Image | None:
        """The engine's arrays as of the last image, if that was for this program. Raises IncompatibleImage where it is damaged,
        or somebody else's."""
        file = self._store.image
        if file is None or file.fingerprint != fingerprint:
            return None
        try:
            content = self._store.map_image(self.tables(self.interned.logged))
        except Untrusted as why:
            raise IncompatibleImage(str(why)) from None
        if content is None:
            raise IncompatibleImage(f"{self.path / file.name} is damaged")
        return Image(file.round, *content)

    def imaged(self, fingerprint: str) -> bool:
        """Whether there is an image of the last round, for this program."""
        file = self._store.image
        return file is not None and (file.round, file.fingerprint) == (self.round, fingerprint)

    def imaged_before(self, fingerprint: str) -> bool:
        """Whether there is an image of any round, for this program."""
        file = self._store.image
        return file is not None and file.fingerprint == fingerprint

    def since(self, round: int, relation: str, kinds: tuple[Kind, ...]) -> Updates | None:
        """The changes of the external rows of a relation after a round, as changes of the last one; None where that is not
        known any more."""
        with self._lock:
            rows = self._external_relations.rows.get(relation)
            if rows is None:
                return none(len(kinds))
            *before, last = rows.frozen()
        stored = before[0].inserted if before else last.inserted
        loaded = any(epoch.chunks for epoch in before) or (last.bulk is not None and last.inserted is None)
        if round != self._store.checkpoint_round or loaded or (stored is not None and stored.kinds != kinds):
            return None
        if any(len(columns) != len(kinds) for columns, _ in last.chunks):
            return None
        if stored is None and relation in self._store.written:
            return None  # it has been another relation since
        found = last_changes(last.chunks, len(kinds), self.round)
        try:
            self._refuse_strange_changes(relation, found)
        except ValueError:
            return None  # whether rows of that kind are left is seen when all are read
        return found

    def after_lot(self, relation: str, stretch: FrozenEpoch) -> Chunk:
        """What became of rows of a relation after a lot came. Raises DlogError where that makes no sense."""
        try:
            changes = stretch.changes()
            if len(changes.columns) != self.relations[relation].arity:
                raise ValueError("rows have other columns than their relation")
        except ValueError as error:
            raise damaged(self._store.log_path, f"rows of `{relation}` make no sense ({error})") from None
        return changes.columns, changes.diffs

    def believed(self, relation: str, changes: Updates) -> Updates:
        """Changes that were read from here. Raises DlogError where they make no sense."""
        try:
            self._refuse_strange_changes(relation, changes)
        except ValueError as error:
            raise damaged(self._store.log_path, f"rows of `{relation}` make no sense ({error})") from None
        return changes

    def _refuse_strange_changes(self, relation: str, changes: Updates) -> None:
        if relation == MARK:
            return
        kinds = self.relations[relation].kinds
        if not are_ids(kinds, changes.columns):
            raise ValueError("words are no ids")
        self._refuse_strange(relation, typed(kinds, changes))

    def keep_history(self, history: History) -> None:
        """Has a history go on from what it was left with, as far as that fits, and keeps it from now on."""
        try:
            self._stored_history.restore(history, self.relations, self._refuse_strange_changes)
        except ValueError as error:
            remark(f"{self.path}: the history makes no sense ({error}); it begins anew")
            history.begin(self.round)
        if history.last != self.round:
            history.begin(self.round)
        self._history, self._stored_history = history, StoredHistory(0, {}, ())

    def check_history(self) -> None:
        """Raises DlogError where `keep_history` would have the history begin anew."""
        try:
            self._stored_history.restore(History(Window()), self.relations, self._refuse_strange_changes)
        except ValueError as error:
            raise damaged(self.path / NAME, f"the history makes no sense ({error})") from None

    # ------------------------------------------------------------------------------------------------------------- logging

    def check_there(self) -> None:
        """DlogError where nothing can be logged as the folder has been removed."""
        with self._logging:
            self._store.check_there()

    def append(
        self,
        round: int,
        changes: Mapping[str, Updates],
        text: str | None = None,
        mark: int | None = None,
        bulks: Sequence[BulkChange] = (),
        noted: HistoryEntry | None = None,
    ) -> None:
        """Logs the rounds up to `round`: what they change in external rows, also by `bulks`, the program's `text` if it is a
        new one, a mark if there is one, and what is `noted` for the history. When this returns they count; when it raises
        DlogError they do not. Interruptions wait."""
        fresh = self.interned.fresh()
        new = [] if text is None else [_packed(text)]
        given = {name: updates for name, updates in changes.items() if updates.rows}
        if mark is not None:
            given[MARK] = _marking(self.mark, mark, round)
        dropped = self._external_relations.dropped(self.relations, [*given, *(bulk.relation for bulk in bulks)])
        entries = [bulk.entry for bulk in (*dropped, *bulks)]
        tables = {name: Entries.of(listed) for name, listed in ((PROGRAM, new), (TABLE, entries)) if listed}
        before, past = self.round, {} if noted is None else entries_of(noted, round)
        with Delayed(), self._logging:
            self._store.append(round, given | past, fresh | tables)
            if noted is not None and self._history is not None:
                self._history.note(before, round, noted)
            self.interned.saved(fresh)
            self._texts += new
            self.program_changes += len(new)
            self.text = self.text if text is None else text
            self.mark = self.mark if mark is None else mark
            with self._lock:
                self._external_relations.note(given, entries)

    def keep_text(self, text: str, fingerprint: str) -> None:
        """Writes the program's text where there is no round yet: a checkpoint of nothing else."""
        packed = _packed(text)
        with Delayed(), self._logging:
            self._texts.append(packed)
            self.text = text
            for _ in self.checkpoints.begin(self, fingerprint, {}, None):
                pass

    # --------------------------------------------------------------------------------------------------------- checkpoints

    def lotted(self, relation: str) -> bool:
        """Whether there are rows in bulk changes."""
        return relation in self._external_relations.rows and self._external_relations.rows[relation].bulks

    def crowded(self) -> list[str]:
        """The relations of the program that have too many bulk changes."""
        return [name for name in self._external_relations.crowded() if name in self.relations]

    def is_settled(self, fingerprint: str, derived: Iterable[str]) -> bool:
        """Whether nothing has been logged since the last checkpoint, and that has all rows of these relations with rules."""
        if self.round != self._store.checkpoint_round or fingerprint != self._store.stored_fingerprint:
            return False
        return {name + DERIVED for name in derived} <= set(self._store.written)

    def settle(
        self,
        fingerprint: str,
        derived: Mapping[str, Callable[[], Table]],
        image: Image | None,
        gathered: Mapping[str, Table | BulkChange] | None = None,
    ) -> None:
        """Writes everything: the external rows, some of them `gathered` in one piece, and, of relations with rules, all rows,
        and what the engine keeps."""
        self.checkpoints.wait()
        for name, piece in (gathered or {}).items():
            self._external_relations.gather(name, piece, self.relations[name].kinds)
        for _ in self.checkpoints.begin(self, fingerprint, {name + DERIVED: read for name, read in derived.items()}, image):
            pass
        self._sweep()

    def frozen(self) -> tuple[FrozenRows, dict[str, CheckpointSource]]:
        """The external rows as they are now, and by name what a checkpoint writes of them and of the history."""
        with self._lock:
            frozen = self._external_relations.frozen()
        kinds = {MARK: (Kind.NUMBER,), **{name: relation.kinds for name, relation in self.relations.items()}}
        past = contents(None if self._history is None or self._history.last != self.round else self._history.frozen())
        return frozen, {**past, **frozen.checkpoint_contents(kinds)}

    def rebase(self, frozen: FrozenRows) -> None:
        """A checkpoint has written these rows, and they are read from its files from now on."""
        with self._lock:
            frozen.rebase(self._store.stored)

    def tables(self, interned: Interning | None = None) -> Mapping[str, Entries]:
        """All tables, with all entries that `interned` has, by default those in memory."""
        with self._lock:
            own = {PROGRAM: Entries.of(self._texts), TABLE: Entries.of(self._external_relations.entries)}
        return ChainMap(own, cast("dict[str, Entries]", (interned or self.interned.every)()))

    def close(self) -> None:
        """Lets go of the folder. May be called again."""
        try:
            self.checkpoints.wait()
        finally:
            self._store.close()


def _packed(text: str) -> bytes:
    """The text of a program for the table of them."""
    encoded = text.encode()
    if len(encoded) > TEXT_MOST:
        raise mistake("text-too-long", f"the program's text has {len(encoded):,} bytes, a state keeps {TEXT_MOST:,} at most")
    return zlib.compress(encoded)


def _marking(old: int | None, new: int, round: int) -> Updates:
    """One mark in the place of another."""
    marks = [new] if old is None else [old, new]
    return Updates((np.array(marks),), np.array([-1, 1][-len(marks) :]), np.full(len(marks), round))


def fingerprint(items: Iterable[str]) -> str:
    """Stands for a program, whatever the order of its clauses and declarations, under this version of dlog."""
    return hashlib.sha256("\n".join([__version__, *sorted(items)]).encode()).hexdigest()
