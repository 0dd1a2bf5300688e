"""A session's folder on disk: the log of its rounds and what checkpoints made of it (see `dlog.engine.state.store`).

What counts is the program and, of every relation, the external rows: every round logs their changes, the symbols and records
that are new, and the program's text where that is another one. The rows of relations with rules follow from these. A checkpoint
when the session is closed writes them too, so that they can be read when it is opened again without deriving them; one while it
runs would be out of date a round later, and leaves them out. Rows that were too many to pass through this process are *bulk
changes* (`dlog.sessions.persistence.bulk_files`): files that a record of the log names, and that stay as they are. An *image*
is what the engine keeps to go on without deriving anything. It is large, so that only some checkpoints have one; what became of
the external rows since then is a round for the engine that goes on from it. A checkpoint runs beside the commits, in a thread
of its own, and works on what has been logged, not on the engine's relations, and on a copy of what the engine keeps. A small
one is copied within the commit that finds it due, a large one when no commit comes for a moment
(`dlog.sessions.persistence.pauses`). """

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Lock, RLock, Thread, current_thread
from typing import get_args

import numpy as np

from dlog.caches import Untrusted
from dlog.engine.interruption import Delayed
from dlog.engine.ir.rules import Kind, Program, Relation, Type
from dlog.engine.rounds_engine import Image, IncompatibleImage, RoundsEngine
from dlog.engine.state import parts
from dlog.engine.state.checkpoint import History as Batches
from dlog.engine.state.entries import Entries, paths_of
from dlog.engine.state.files import damaged
from dlog.engine.state.layers import Stored
from dlog.engine.state.manifest import NAME
from dlog.engine.state.store import Store, Sync
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.follow.changes import none, typed
from dlog.sessions.follow.history import History, Noted, Window
from dlog.sessions.mistakes import mistake, remark
from dlog.sessions.persistence.bulk_files import TABLE, BulkChange, BulkDecoder
from dlog.sessions.persistence.external_relation import Chunk, ExternalRows, FrozenEpoch, applied, last_changes
from dlog.sessions.persistence.external_relations import DERIVED, FOLLOWING, CheckpointSource, ExternalRelations, FrozenRows
from dlog.sessions.persistence.interned import Interned
from dlog.sessions.persistence.pauses import Copying
from dlog.sessions.persistence.references import References, are_ids
from dlog.sessions.persistence.stored_history import PAST, StoredHistory, contents, entries_of
from dlog.version import __version__

MIN_LOG_BYTES = 1 << 20
"""Bytes of the log below which no checkpoint begins while the session runs: trades replaying them against writing a
checkpoint."""
CHECKPOINT_SLACK_BYTES = 1 << 17
"""Bytes of the log by which a checkpoint may be earlier or later, so that it can be prepared: fewer are not worth that."""
PROGRAM = "program"
"""The table of texts that the program has had; the last one holds."""
FIRST_IMAGE_BYTES = 1 << 22
"""Bytes of a first image from which on it is written before anything else makes a checkpoint due: less is soon derived
again."""
MAX_RUNNING_IMAGE_BYTES = 1 << 30
"""Bytes of an image above which it is only written when the session is closed: its copy takes as much memory again."""
MIN_IMAGE_LOG_BYTES = 1 << 24
"""Bytes of the log below which no later image is written while the session runs: trades replaying them against writing an
image."""
IMAGE_SHARE = 4
"""An image is due when so many times what has been logged since the last one is as much as that."""
MAX_UNPAUSED_IMAGE_BYTES = 1 << 20
"""Bytes of an image up to which it is copied within a commit, which waits for that."""
OVERDUE_LOG_BYTES = 1 << 26
"""Bytes that are logged while a larger one waits for a pause, after which it is copied within a commit all the same: else a
session that never pauses would be derived anew after a crash."""
TEXT_MOST = 1 << 28
"""Bytes of a program's text: a packed one that somebody else wrote may say that it has any number of them."""
MARK = "/mark"
"""A relation of one row, the mark; no program can declare it."""


class State:
    """An open state. `relations` are those of the program as it is now; `round` is the last one in the log, `mark` the number
    that came with it or an earlier one."""

    def __init__(self, folder: str | Path, sync: Sync, memory: int | None) -> None:
        if sync not in get_args(Sync):
            note = f"it is one of {', '.join(get_args(Sync))}"
            raise mistake("bad-sync", f"{sync!r} does not say when to force the log to the disk", note)
        self._store = Store.open(folder, "", sync=sync, follows=lambda name: name.endswith(FOLLOWING))
        for name, error in self._store.lost.items():
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
            """The program's text in the canonical layout; None before the first round."""
            self._lock = Lock()
            self._logging = RLock()
            """Of who appends to the log or begins a checkpoint."""
            self._history: History | None = None
            """The history that is kept here, too."""
            self._copying: Copying | None = None
            """The image that is to be copied."""
            self._writing: Thread | None = None
            self._restore()
            self._due = self._next_due()
            self._memory = memory
            self._asked = 0
            """How often there was no image, and one might have been written."""
            self._unimaged = 0
            """Bytes logged between the last image and the last checkpoint."""
        except BaseException:
            self._store.close()
            raise

    def _restore(self) -> None:
        """Maps what the last checkpoint wrote and takes in what has been logged since. Bulk changes that do not count are
        removed."""
        tables = {name: [(paths_of(self.path, name)[0], entries)] for name, entries in self._store.tables.items()}
        rounds = list(self._store.rounds())
        self._held = ExternalRelations.of(self.path, self._store.relations, self._store.tables, rounds)
        for logged in rounds:
            for name, entries in logged.tables.items():
                tables.setdefault(name, []).append((self._store.log_path, entries))
        lost = any(name.endswith(PAST) for name in self._store.lost)
        self._left = StoredHistory.of(self._store.checkpoint_round, {} if lost else self._store.relations, rounds)
        for part in self._held.parts():
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
        parts.sweep(self.path, {part.name for part in self._held.parts()})

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
            return self._held.rows.setdefault(relation, ExternalRows()).frozen()

    @property
    def decoder(self) -> BulkDecoder:
        """The decoder of bulk files."""
        return BulkDecoder(self.path, self.relations, self._types, self.interned.symbols, self.interned.records)

    def means(self, program: Program) -> None:
        """The program as it is from now on."""
        self.relations, self._types, self._references = program.relations, program.types, None
        self._believed = set()

    def externals(self) -> Iterable[str]:
        """The relations that may have external rows."""
        return [name for name in self._held.rows if name != MARK]

    def changed(self, relation: str) -> bool:
        """Whether the external rows may be others than at the last checkpoint."""
        return relation in self._held.rows and self._held.rows[relation].changed

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
            content = self._store.map_image(self._tables())
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
            rows = self._held.rows.get(relation)
            if rows is None:
                return none(len(kinds))
            *before, last = rows.frozen()
        stored = before[0].came if before else last.came
        loaded = any(epoch.chunks for epoch in before) or (last.bulk is not None and last.came is None)
        if round != self._store.checkpoint_round or loaded or (stored is not None and stored.kinds != kinds):
            return None
        if any(len(columns) != len(kinds) for columns, _ in last.chunks):
            return None
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
        kinds = self.relations[relation].kinds
        if not are_ids(kinds, changes.columns):
            raise ValueError("words are no ids")
        self._refuse_strange(relation, typed(kinds, changes))

    def keep_history(self, history: History) -> None:
        """Has a history go on from what it was left with, as far as that fits, and keeps it from now on."""
        try:
            self._left.restore(history, self.relations, self._refuse_strange_changes)
        except ValueError as error:
            remark(f"{self.path}: the history makes no sense ({error}); it begins anew")
            history.begin(self.round)
        if history.last != self.round:
            history.begin(self.round)
        self._history, self._left = history, StoredHistory(0, {}, ())

    def check_history(self) -> None:
        """Raises DlogError where `keep_history` would have the history begin anew."""
        try:
            self._left.restore(History(Window()), self.relations, self._refuse_strange_changes)
        except ValueError as error:
            raise damaged(self.path / NAME, f"the history makes no sense ({error})") from None

    # ------------------------------------------------------------------------------------------------------------- logging

    def check_there(self) -> None:
        """DlogError where nothing can be logged as the folder has been removed."""
        self._store.check_there()

    def append(
        self,
        round: int,
        changes: Mapping[str, Updates],
        text: str | None = None,
        mark: int | None = None,
        bulks: Sequence[BulkChange] = (),
        noted: Noted | None = None,
    ) -> None:
        """Logs the rounds up to `round`: what they change in external rows, also by `bulks`, the program's `text` if it is a
        new one, a mark if there is one, and what is `noted` for the history. When this returns they count; when it raises
        DlogError they do not. Interruptions wait."""
        fresh = self.interned.fresh()
        new = [] if text is None else [_packed(text)]
        given = {name: updates for name, updates in changes.items() if updates.rows}
        if mark is not None:
            given[MARK] = _marking(self.mark, mark, round)
        dropped = self._held.dropped(self.relations, [*given, *(bulk.relation for bulk in bulks)])
        entries = [bulk.entry for bulk in (*dropped, *bulks)]
        tables = {name: Entries.of(listed) for name, listed in ((PROGRAM, new), (TABLE, entries)) if listed}
        before, past = self.round, {} if noted is None else entries_of(noted, round)
        with Delayed(), self._logging:
            self._store.append(round, given | past, fresh | tables)
            if noted is not None and self._history is not None:
                self._history.note(before, round, noted)
            self.interned.saved(fresh)
            self._texts += new
            self.text = self.text if text is None else text
            self.mark = self.mark if mark is None else mark
            with self._lock:
                self._held.note(given, entries)

    # --------------------------------------------------------------------------------------------------------- checkpoints

    def checkpoint_if_due(self, fingerprint: str, engine: RoundsEngine) -> None:
        """Begins a checkpoint of the external rows if much has been logged since the last one, and now and then of what the
        engine keeps, which is copied first. It runs on by itself."""
        if self.is_writing:
            return
        due = self._store.log_bytes >= self._due
        if (
            self._store.log_bytes >= CHECKPOINT_SLACK_BYTES
            and abs(self._store.log_bytes - self._due) < CHECKPOINT_SLACK_BYTES
            and not self._store.prepared
        ):
            self._writing = Thread(target=self._prepare, name="dlog-checkpoint")
            self._writing.start()
            return
        overdue = self._copying is not None and self._logged - self._copying.logged >= OVERDUE_LOG_BYTES
        if self._copying is not None and (overdue or not self._copying.of(engine, fingerprint)):
            self.copy_nothing()
        image = self._image_of(engine) if self._copying is None and (overdue or self._image_due(fingerprint, due)) else None
        if image is not None and image.bytes > MAX_UNPAUSED_IMAGE_BYTES and self.interned.stays and not overdue:
            if due or image.bytes >= FIRST_IMAGE_BYTES:
                self._copying = Copying(self, engine, fingerprint, self._most_copied, self._logged).start()
            image = None
        if not due and (image is None or image.bytes < FIRST_IMAGE_BYTES):
            return
        with self._logging:
            steps = self._begun(fingerprint, None if image is None else image.copied)
            if steps is not None:
                self._writing = Thread(target=self._write, args=(steps,), name="dlog-checkpoint")
                self._writing.start()

    def _prepare(self) -> None:
        """Has less to wait for when a checkpoint begins, which says what is wrong if anything is."""
        try:
            self._store.prepare()
        except DlogError:
            self._due = 0

    @property
    def _logged(self) -> int:
        """Bytes since the last image."""
        return self._unimaged + self._store.log_bytes

    @property
    def is_writing(self) -> bool:
        """Whether a checkpoint runs."""
        return self._writing is not None and self._writing.is_alive()

    def write_image(self, copying: Copying, image: Image) -> bool:
        """Writes a checkpoint with a copy of what the engine kept after the round of now; false if that is over, or another
        checkpoint runs."""
        with self._logging:
            ready = self._copying is copying and self.round == image.round and self.interned.stays
            if not ready or self.is_writing:
                return False
            steps = self._begun(copying.fingerprint, lambda: image, self.interned.logged)
            self._copying, self._writing = None, current_thread()
        if steps is not None:
            self._write(steps)
        return True

    def copy_nothing(self) -> None:
        """Gives up an image that is to be copied: the engine is another one."""
        with self._logging:
            copying, self._copying = self._copying, None
        if copying is not None:
            copying.stop()

    def _begun(
        self, fingerprint: str, image: Callable[[], Image] | None, tables: Callable[[], dict[str, Entries]] | None = None
    ) -> Iterator[None] | None:
        """The steps of a checkpoint; None where it cannot begin: the log has it all, and closing will say what is wrong."""
        try:
            return self._begin(fingerprint, {}, None if image is None else image(), tables)
        except (DlogError, MemoryError):
            self._due = 2 * self._store.log_bytes
            return None

    def _image_due(self, fingerprint: str, due: bool) -> bool:
        """Whether there should be an image with a checkpoint, be one due for other reasons or not."""
        file = self._store.image
        if file is None or not self.imaged_before(fingerprint):
            # Asking an engine for its size takes as long as a small commit: it is done after 1, 2, 4, 8 ... of them.
            self._asked += 1
            return due or self._asked & (self._asked - 1) == 0
        return due and self._logged >= max(MIN_IMAGE_LOG_BYTES, file.size // IMAGE_SHARE)

    def _image_of(self, engine: RoundsEngine) -> Image | None:
        """The engine's image, if there is room for it twice, and it is copied in no time that matters."""
        image = engine.image()
        return None if image is None or image.bytes > self._most_copied else image

    @property
    def _most_copied(self) -> int:
        """Bytes of the largest image that there is room for twice."""
        return MAX_RUNNING_IMAGE_BYTES if self._memory is None else min(MAX_RUNNING_IMAGE_BYTES, self._memory // 2)

    def lotted(self, relation: str) -> bool:
        """Whether there are rows in bulk changes."""
        return relation in self._held.rows and self._held.rows[relation].bulks

    def crowded(self) -> list[str]:
        """The relations of the program that have too many bulk changes."""
        return [name for name in self._held.crowded() if name in self.relations]

    def settle(
        self,
        fingerprint: str,
        derived: Mapping[str, Callable[[], Table]],
        image: Image | None,
        gathered: Mapping[str, Table | BulkChange] | None = None,
    ) -> None:
        """Writes everything: the external rows, some of them `gathered` in one piece, and, of relations with rules, all rows,
        and what the engine keeps."""
        self._wait()
        for name, piece in (gathered or {}).items():
            self._held.gather(name, piece, self.relations[name].kinds)
        for _ in self._begin(fingerprint, {name + DERIVED: read for name, read in derived.items()}, image):
            pass
        self._sweep()

    @property
    def settled(self) -> bool:
        """Whether nothing has been logged since the last checkpoint."""
        return self.round == self._store.checkpoint_round

    def _begin(
        self,
        fingerprint: str,
        derived: Mapping[str, Callable[[], Table]],
        image: Image | None,
        entries: Callable[[], dict[str, Entries]] | None = None,
    ) -> Iterator[None]:
        """Freezes the present round for a checkpoint; returns its steps."""
        with self._lock:
            frozen = self._held.frozen()
        kinds = {MARK: (Kind.NUMBER,), **{name: relation.kinds for name, relation in self.relations.items()}}
        past = contents(None if self._history is None or self._history.last != self.round else self._history.frozen())
        readers: dict[str, CheckpointSource] = {**derived, **past, **frozen.checkpoint_contents(kinds)}
        self._store.fingerprint = fingerprint
        tables = self._tables(entries)
        self._unimaged = 0 if image is not None else self._unimaged + self._store.log_bytes
        content = None if image is None else (image.head, image.arrays)
        return self._steps(self._store.checkpoint_steps(self.round, _Read(readers), tables, content), frozen)

    def _tables(self, interned: Callable[[], dict[str, Entries]] | None = None) -> dict[str, Entries]:
        """All tables of the state, with all entries that `interned` has, by default those in memory."""
        with self._lock:
            own = {PROGRAM: Entries.of(self._texts), TABLE: Entries.of(self._held.entries)}
        return (interned or self.interned.every)() | own

    def _steps(self, steps: Iterator[None], frozen: FrozenRows) -> Iterator[None]:
        """A checkpoint's steps; after the last one the external rows are those it has written."""
        yield from steps
        with self._lock:
            frozen.rebase(self._store.stored)
        self._due = self._next_due()

    def _write(self, steps: Iterator[None]) -> None:
        try:
            for _ in steps:
                pass
        except DlogError:
            self._due = 2 * self._store.log_bytes

    def _next_due(self) -> int:
        """A checkpoint writes about as many bytes as the layers have: it should be worth that."""
        return max(MIN_LOG_BYTES, self._store.layer_bytes // 2)

    def _wait(self) -> None:
        """Waits until no checkpoint runs, and none will begin by itself."""
        self.copy_nothing()
        if self._writing is not None:
            self._writing.join()
            self._writing = None

    def close(self) -> None:
        """Lets go of the folder. May be called again."""
        try:
            self._wait()
        finally:
            self._store.close()


class _Read(Mapping[str, "Table | Batches"]):
    """Relations that are made when they are written."""

    def __init__(self, readers: Mapping[str, CheckpointSource]) -> None:
        self._readers = readers

    def __getitem__(self, name: str) -> Table | Batches:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


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
