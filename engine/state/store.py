"""Durable state: a folder that survives whatever kills the process.

Every append writes the changes of one or several rounds to a log; when it returns they count. From time to time a checkpoint
writes relations as layers and starts the log anew. Opening maps the layers of the last checkpoint; the rounds after it are
replayed:

    store = Store.open(folder, fingerprint)
    store.relations, store.tables        what the last checkpoint wrote, as of `store.checkpoint_round`
    for logged in store.rounds(): ...    what has been appended since
    store.append(round, changes, tables)
    store.checkpoint(round, relations, tables)

Relations and tables are known by name; the store does not ask which relations a program needs. A *table* here is an append-only
list of byte strings: the texts of symbols, the fields of records. The folder is locked while it is open.

    manifest.json   which files count           00000001.log    rounds, one segment between two checkpoints
    manifest.copy   the same, for a repair      00000007.layer  one layer of a batch
    lock            who has it open             00000008.image  what an engine keeps
    0f...c4.parquet part of a relation          symbols.bytes, symbols.ends   a table

Every file has checksums, which are compared before anything in it is used. What a crash can leave at the end of the log is
dropped (`segments.py`), everything else that is not what was written is refused.

Files of rows that others write (`parts.py`) are named by entries of a table, which only its owner understands: it says
which of them count, and sweeps the others.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from dlog.engine.state import checkpoint, files, folders, log, manifest, parts
from dlog.engine.state.checkpoint import History
from dlog.engine.state.contents import map_relation, read_contents
from dlog.engine.state.entries import Entries
from dlog.engine.state.folders import OpenFolder
from dlog.engine.state.images import Content, ImageFile, map_image, write_image
from dlog.engine.state.layers import Stored
from dlog.engine.state.lock import Lock
from dlog.engine.state.log import LoggedRound
from dlog.engine.state.manifest import Manifest
from dlog.engine.state.records import HEADER_SIZE, Framing, Header
from dlog.engine.state.segments import Segment, number_of, segment_path
from dlog.engine.state.sync import OFTEN_SECONDS, Sync
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

_OWN = re.compile(r"(\d+\.(log(\.new)?|layer|image)|[\w.@-]+\.(bytes|ends)|manifest\.(json(\.new)?|copy)|lock|damaged-\d+)\Z")
_WRITTEN = re.compile(r"(\d+\.(log|layer|image)|[\w.@-]+\.(bytes|ends))\Z")
_REPLACED = re.compile(r"(\d+\.(log\.new|layer|image)|manifest\.json\.new)\Z")


class Store:
    """An open state. Everything is for one thread at a time, but for the steps of a checkpoint that has begun: another thread
    than the one that appends may take them, `prepare` one, or add an image. Closing, or beginning another checkpoint, has to
    wait until that is at an end."""

    round: int
    """The last one that was appended, or is of the last checkpoint."""
    _number: int
    _end: int
    _forced: int
    _framing: Framing
    """Of the segment that is written to: its number, its bytes, those of them that are on the disk, what frames its records."""

    def __init__(self, held: OpenFolder, fingerprint: str, sync: Sync, follows: Callable[[str], bool]) -> None:
        """Use `Store.open`."""
        self.path, self.fingerprint, self.sync_policy = held.folder, fingerprint, sync
        self._folder, self._lock = held, Lock(held.folder)
        self._descriptor, self._synced = -1, 0.0
        self._steps: Generator[None] = _no_steps()
        self.prepared = False
        """Whether a checkpoint has been."""
        try:
            self._manifest = self._first_manifest()
            found = read_contents(self.path, self._manifest)
            damage = [d for error in found.damage(follows) for d in error.diagnostics]
            if damage:
                raise DlogError(damage)
            self.lost_relations = found.lost_relations
            """The relations that `follow` and are damaged."""
            self.relations, self.tables, self._file_of = found.relations, found.tables, found.file_of
            self._segments = found.segments
            self._replayed = tuple(self._segments)
            self._remove_leftovers()
            self._open_segment()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def open(
        path: str | Path, fingerprint: str, *, sync: Sync = "always", follows: Callable[[str], bool] = lambda name: False
    ) -> Store:
        """Opens the state in a folder, which is made if it is not there. `fingerprint` stands for the program. Everything but
        the image is read once: what follows from rows that are not those that were written may be anything. Raises DlogError
        if the folder is locked, damaged, of another version, or something else's; a relation that `follows` from others may be
        damaged, and is not among those there are then."""
        folder = Path(path).absolute()  # wherever the process is, later
        with files.refusals(folder, "open"):
            folder.mkdir(parents=True, exist_ok=True)
            held = OpenFolder(folder)
        try:
            foreign = sorted(name for name in folders.names(folder) if not (_OWN.match(name) or parts.is_part(name)))
            if foreign and not folders.exists(folder / manifest.NAME):
                notes = (f"it holds {foreign[0]}; name an empty folder or one that does not exist",)
                raise DlogError(Diagnostic("state-foreign", "the folder is no dlog state", notes=notes, place=str(folder)))
            return Store(held, fingerprint, sync, follows)
        except BaseException:
            held.let_go()
            raise

    # ------------------------------------------------------------------------------------------------------------- reading

    @property
    def checkpoint_round(self) -> int:
        """The round that `relations` and `tables` are of; 0 where there has been no checkpoint."""
        return self._manifest.round

    @property
    def stored_fingerprint(self) -> str:
        """The fingerprint of the program that the last checkpoint was for."""
        return self._manifest.fingerprint

    @property
    def changed(self) -> bool:
        """Whether the last checkpoint was for another program."""
        return self.fingerprint != self.stored_fingerprint

    @property
    def log_bytes(self) -> int:
        """The bytes logged since the last checkpoint: when they are many, it is time for one."""
        return sum(s.end for s in self._segments[:-1]) + self._end

    @property
    def layer_bytes(self) -> int:
        """The bytes of the layers of the last checkpoint."""
        return sum(f.size for r in self._manifest.relations.values() for batch in r.batches for f in batch.layers)

    @property
    def image(self) -> ImageFile | None:
        """The last image that was written, if it is of the program that the last checkpoint was for."""
        return self._manifest.image

    def map_image(self, tables: Mapping[str, Entries]) -> Content | None:
        """The content of the image, for whom its ids are those of `tables`; None where there is none, or what is there is
        damaged. Raises Untrusted if it is not this user's, or of other tables."""
        return None if self._manifest.image is None else map_image(self.path, self._manifest.image, tables)

    def stored(self, relation: str) -> Stored | None:
        """A relation as the last checkpoint wrote it, also one since the state was opened."""
        if relation not in self._manifest.relations:
            return None
        return map_relation(self.path, self._manifest, relation, self._file_of, verify=False)

    @property
    def written(self) -> tuple[str, ...]:
        """The relations that the last checkpoint wrote."""
        return tuple(self._manifest.relations)

    def layers(self, relation: str) -> tuple[str, ...]:
        """The names of the files in which the last checkpoint wrote a relation."""
        found = self._manifest.relations.get(relation)
        return () if found is None else tuple(layer.name for batch in found.batches for layer in batch.layers)

    @property
    def log_path(self) -> Path:
        """The file of the log that is written to."""
        return self._segments[-1].path

    def rounds(self) -> Iterator[LoggedRound]:
        """The rounds appended since the last checkpoint when the state was opened, in order."""
        for segment in self._replayed:
            yield from segment.rounds()

    # ------------------------------------------------------------------------------------------------------------- writing

    def append(self, round: int, changes: Mapping[str, Updates], tables: Mapping[str, Entries] | None = None) -> None:
        """Makes the changes of the rounds up to `round` durable, and what is new in each table since the last append. Raises
        DlogError where the disk refuses; then nothing has been appended."""
        if round <= self.round:
            raise InternalError("store", f"round {round} is appended after round {self.round}")
        self.check_there()
        record = self._framing.framed(log.encode(round, changes, tables or {}), self._end, self.round, round)
        with files.refusals(self._segments[-1].path, "write"):
            files.cut(self._descriptor, self._end)  # an earlier append may have been interrupted
            try:
                files.write_all(self._descriptor, [record])
                forced = self._sync_as_asked()
            except BaseException:
                files.cut(self._descriptor, self._end)
                raise
        self._end += len(record)
        self._forced = self._end if forced else self._forced
        self.round = round

    def check_there(self) -> None:
        """DlogError where the log is no more, or another one has its place: what is appended to the one that is open would be
        lost with it."""
        path = self._segments[-1].path
        try:
            there = os.path.samestat(os.stat(path), os.fstat(self._descriptor))
        except OSError:
            there = False
        if not there:
            message = "the state was removed while it was open: nothing can be saved in it any more"
            notes = ("what the session holds can still be read", "put the folder back, or begin another state with these rows")
            raise DlogError(Diagnostic("state-removed", message, notes=notes, place=str(self.path)))

    def sync(self) -> None:
        """Forces all that has been appended to the disk, and nothing else."""
        with files.refusals(self._segments[-1].path, "write"):
            files.cut(self._descriptor, self._end)  # an append may have failed and not been taken back
            files.sync(self._descriptor)
        self._synced, self._forced = time.monotonic(), self._end

    def _sync_as_asked(self) -> bool:
        """Whether that has been done."""
        match self.sync_policy:
            case "always":
                files.sync(self._descriptor)
            case "often" if time.monotonic() - self._synced >= OFTEN_SECONDS:
                files.sync(self._descriptor)
                self._synced = time.monotonic()
            case "often" | "never":
                return False
            case _:
                assert_never(self.sync_policy)
        return True

    # --------------------------------------------------------------------------------------------------------- checkpoints

    def prepare(self) -> None:
        """Does part of what the beginning of a checkpoint would wait for, while rounds are appended: forces the log to the disk
        as far as it is there, and makes a file for the next segment."""
        beside = self._beside(segment_path(self.path, self._number + 1))
        with files.refusals(beside, "write"):
            files.sync(self._descriptor)
            files.create(beside, [])
        self.prepared = True

    @staticmethod
    def _beside(path: Path) -> Path:
        """The path of a segment before it has its header."""
        return path.with_name(path.name + ".new")

    def checkpoint(
        self,
        round: int,
        relations: Mapping[str, Table | History],
        tables: Mapping[str, Entries] | None = None,
        image: Content | None = None,
    ) -> None:
        """Writes what `relations` and `tables` are after `round`, the last one appended, and starts the log anew."""
        for _ in self.checkpoint_steps(round, relations, tables, image):
            pass

    def checkpoint_steps(
        self,
        round: int,
        relations: Mapping[str, Table | History],
        tables: Mapping[str, Entries] | None = None,
        image: Content | None = None,
    ) -> Iterator[None]:
        """The same in steps, each a file written: rounds may be appended in between. A relation is a table, or its kinds and
        the batches of its history; a table has all entries, not only new ones. Their arrays must not change until the last
        step. A later call gives up an earlier one that is not at its end. Without an image the one before is kept."""
        if round != self.round:
            raise InternalError("store", f"a checkpoint of round {round} after round {self.round} has been appended")
        for name in tables or {}:
            if not _OWN.match(f"{name}.ends"):
                raise InternalError("store", f"a table cannot be called {name!r}")
        self._start_segment()
        self._steps.close()
        self._steps = self._write_checkpoint(round, self._number, relations, tables or {}, image)
        return self._steps

    def add_image(self, round: int, fingerprint: str, content: Content, tables: Mapping[str, Entries]) -> None:
        """Writes an image of a round since the last checkpoint, in the place of the one before; rounds may be appended
        meanwhile. Its ids are those of `tables`, which are on the disk."""
        self.check_there()
        number = self._manifest.next
        written = write_image(self.path, f"{number:08d}.image", round, fingerprint, content, tables)
        self._write_manifest(replace(self._manifest, next=number + 1, image=written))
        self._remove_leftovers()

    def _write_checkpoint(
        self,
        round: int,
        number: int,
        relations: Mapping[str, Table | History],
        tables: Mapping[str, Entries],
        image: Content | None,
    ) -> Generator[None]:
        steps = checkpoint.write_checkpoint(
            self.path, self._manifest, self._file_of, self.fingerprint, round, relations, tables, image
        )
        for done in steps:
            if done is not None:
                written, file_of = done
                self._write_manifest(replace(written, log=number))
                self._file_of, self._replayed = file_of, ()
                self._segments = [s for s in self._segments if s.number >= number]
                self._remove_leftovers()
            yield

    def _write_manifest(self, written: Manifest) -> None:
        """Makes a manifest hold; what has been forced to the disk is written with it. Another state may be in the folder by
        now, whose manifest stays."""
        self.check_there()
        forced = replace(written, forced=(self._number, self._forced))
        manifest.write_manifest(self.path, forced)
        self._manifest = forced

    # ------------------------------------------------------------------------------------------------------- opening, closing

    def _first_manifest(self) -> Manifest:
        """The manifest that holds, made where the folder is new: its segment of the log is there before it is. Raises DlogError
        where there is more already: that is a state whose manifest is gone, and nothing in it is to be removed."""
        found = manifest.read_manifest(self.path)
        if found is None:
            there = [name for name in folders.names(self.path) if _WRITTEN.match(name) or parts.is_part(name)]
            written = sorted(name for name in there if not self._is_first_segment(self.path / name))
            if written:
                raise files.damaged(self.path / manifest.NAME, "the manifest is missing", f"there is {written[0]} of a state")
            found = Manifest.new(self.fingerprint)
            with files.refusals(self.path, "write"):
                files.create(segment_path(self.path, found.log), [Header(found.state, found.log, 0, 0).encode()])
            manifest.write_manifest(self.path, found)
        elif not found.state:
            found = replace(found, state=Manifest.new("").state)
            manifest.write_manifest(self.path, found)
        return found

    def _is_first_segment(self, path: Path) -> bool:
        """Whether a file is what a new state has before its manifest: the first segment of the log, without a record."""
        return path == segment_path(self.path, Manifest.new("").log) and folders.size(path) <= HEADER_SIZE

    def _remove_leftovers(self) -> None:
        """Removes files that the manifest does not name: of an earlier one, or of a checkpoint that did not come to its end."""
        named = self._manifest.named_files()
        for path in map(self.path.joinpath, folders.names(self.path)):
            number = number_of(path)
            if number is not None:
                spent = number < self._manifest.log
            else:
                spent = path.name not in named and _REPLACED.match(path.name) is not None
            if spent:
                with files.refusals(path, "remove"):
                    files.remove(path)

    def _open_segment(self) -> None:
        """Opens the last segment to append to it, without what was torn. One of a former version is not appended to."""
        last = self._segments[-1]
        self.round = last.last_round
        self._use(last.number, max(last.end, HEADER_SIZE))
        with files.refusals(last.path, "write"):
            self._descriptor = files.open_to_append(last.path, last.end)
            if last.end == 0:
                files.write_all(self._descriptor, [last.header.encode()])
                files.sync(self._descriptor)
        if last.former:
            self._end = last.end
            self._start_segment()

    def _use(self, number: int, end: int) -> None:
        """Goes on in a segment that has so many bytes. Its header is on the disk, and what the manifest says."""
        self._number, self._end = number, end
        segment, forced = self._manifest.forced
        self._forced = forced if segment == number and forced else HEADER_SIZE
        self._framing = Framing.of(self._manifest.state, number)

    def _start_segment(self) -> None:
        """Goes on in a new segment; the old one is on the disk by then. Where that is refused there is no new one: the old one
        stays the last, and only that may be torn."""
        self.check_there()
        self.sync()
        header = Header(self._manifest.state, self._number + 1, self.round, self._end)
        path = segment_path(self.path, header.number)
        with files.refusals(path, "write"):
            try:
                if self.prepared:
                    files.fill(self._beside(path), path, header.encode())
                else:
                    files.create(path, [header.encode()])
                files.sync_folder(self.path)
                descriptor = files.open_to_append(path, HEADER_SIZE)
            except BaseException:
                files.remove(path)
                raise
            finally:
                self.prepared = False
        os.close(self._descriptor)
        self._descriptor = descriptor
        self._segments[-1] = replace(self._segments[-1], end=self._end)
        self._segments.append(Segment(path, header, HEADER_SIZE, ()))
        self._use(header.number, HEADER_SIZE)

    def close(self) -> None:
        """Forces what has been appended to the disk, notes how much that is, and lets go of the folder. May be called again."""
        try:
            self._steps.close()
            if self._descriptor >= 0:
                files.remove(self._beside(segment_path(self.path, self._number + 1)))
                self.sync()
                self._note_forced()
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
            self._lock.release()
            self._folder.let_go()

    def _note_forced(self) -> None:
        """Has the manifest say how long the log is, so that one that is shorter is not taken for what a crash leaves. Where
        that cannot be written nothing is lost."""
        if self._manifest.forced != (self._number, self._forced):
            with suppress(DlogError):
                self._write_manifest(self._manifest)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _no_steps() -> Generator[None]:
    yield from ()
