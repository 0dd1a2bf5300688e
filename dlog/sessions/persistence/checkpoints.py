"""When a state has a checkpoint written while its session runs, what it consists of, and when it has an image.

A checkpoint runs beside the commits, in a thread of its own, and works on what has been logged, not on the engine's relations,
and on a copy of what the engine keeps. A small one is copied within the commit that finds it due, which begins the checkpoint
then; `running_images` is about large ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from threading import RLock, Thread, current_thread

from dlog.engine.rounds_engine import Image, RoundsEngine
from dlog.engine.state.checkpoint import History as Batches
from dlog.engine.state.store import Store
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.external_relations import CheckpointSource, FrozenRows
from dlog.sessions.persistence.running_images import Content, Copying, Interning, MakeEngine, SecondEngines

MIN_LOG_BYTES = 1 << 20
"""Bytes of the log below which no checkpoint begins while the session runs: trades replaying them against writing a
checkpoint."""
CHECKPOINT_SLACK_BYTES = 1 << 17
"""Bytes of the log by which a checkpoint may be earlier or later, so that it can be prepared: fewer are not worth that."""
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
"""Bytes that are logged while a larger one waits for a pause, after which it is made of a second engine: else a session that
never pauses would be derived anew after a crash."""


class Checkpoints:
    """The checkpoints of a state, written to `store`. `logging` is held by who appends to the log or begins one. A state has
    them, they have no state: what they write is told each time, so that a state that nobody has any more goes at once."""

    def __init__(self, store: Store, logging: RLock, memory: int | None) -> None:
        self._store, self._logging, self._memory = store, logging, memory
        self._copying: Copying | None = None
        """The image that is to be copied."""
        self._second_engines = SecondEngines(store, self._most_copied)
        self._writing: Thread | None = None
        self._image_checks = 0
        """How often there was no image, and one might have been written."""
        self._unimaged = 0
        """Bytes logged between the last image and the last checkpoint."""
        self._due = self._next_due()

    def begin_if_due(
        self, content: Content, fingerprint: str, engine: RoundsEngine, beside: Callable[[], MakeEngine | None]
    ) -> None:
        """Begins a checkpoint of the external rows if much has been logged since the last one, and now and then of what the
        engine keeps, which is copied first, or of what one keeps that is made `beside` it. It runs on by itself."""
        if self.is_writing:
            return
        due = self._store.log_bytes >= self._due
        if (
            self._store.log_bytes >= CHECKPOINT_SLACK_BYTES
            and abs(self._store.log_bytes - self._due) < CHECKPOINT_SLACK_BYTES
            and not self._store.prepared
        ):
            self._start(self._prepare)
            return
        copying = self._copying
        if copying is not None and not copying.of(engine, fingerprint, content.program_changes):
            self.copy_nothing()
            copying = None
        overdue = copying is not None and self._logged - copying.logged >= OVERDUE_LOG_BYTES
        if overdue and self._second_engines.is_rested:
            self.copy_nothing()
            make = beside() if self._image_bytes(engine) else None
            if make is not None:
                self._start(self._write_second, content, fingerprint, content.program_changes, make)
                return
        asked = self._copying is None and (overdue or self._image_due(fingerprint, due))
        size = self._image_bytes(engine) if asked else 0
        if size > MAX_UNPAUSED_IMAGE_BYTES:
            if due or size >= FIRST_IMAGE_BYTES:
                self._copying = Copying(content, engine, fingerprint, self._most_copied, self._logged).start()
            size = 0
        if not due and size < FIRST_IMAGE_BYTES:
            return
        image = engine.image() if size else None
        if image is None:
            self._start(self._write_beside, content, fingerprint, content.program_changes)
            return
        with self._logging:
            copied = None if image is None else image.copied
            steps = None if self.is_writing else self._begin_steps(content, fingerprint, copied)
            if steps is not None:
                self._start(self._write, steps)

    def _start(self, target: Callable[..., object], *args: object) -> None:
        """Unless a copied image has come to be written since the commit looked, or there is no thread to be had, as when the
        process ends: the log has it all."""
        with self._logging:
            if self.is_writing:
                return
            thread = Thread(target=target, args=args, name="dlog-checkpoint")
            try:
                thread.start()
            except RuntimeError:
                self._due = 2 * self._store.log_bytes
            else:
                self._writing = thread

    def _write_beside(self, content: Content, fingerprint: str, program_changes: int) -> bool:
        """A whole checkpoint, which forces much to the disk also as it begins: of the round of then. None is written where the
        program has changed since it was found due, or entries may move."""
        with self._logging:
            if content.program_changes != program_changes:
                return False
            steps = self._begin_steps(content, fingerprint, None)
        return steps is not None and self._write(steps)

    def _write_second(self, content: Content, fingerprint: str, program_changes: int, make: MakeEngine) -> None:
        """The same, and then an image of it."""
        written = self._write_beside(content, fingerprint, program_changes)
        if written and self._second_engines.write(content, fingerprint, program_changes, make):
            self._unimaged = 0

    def _prepare(self) -> None:
        """Has less to wait for when a checkpoint begins, which says what is wrong if anything is."""
        try:
            self._store.prepare()
        except DlogError:
            self._due = 0

    def _image_due(self, fingerprint: str, due: bool) -> bool:
        """Whether there should be an image with a checkpoint, be one due for other reasons or not."""
        file = self._store.image
        if file is None or file.fingerprint != fingerprint:
            # Asking an engine for its size takes as long as a small commit: it is done after 1, 2, 4, 8 ... of them.
            self._image_checks += 1
            return due or self._image_checks & (self._image_checks - 1) == 0
        return due and self._logged >= max(MIN_IMAGE_LOG_BYTES, file.size // IMAGE_SHARE)

    def _image_bytes(self, engine: RoundsEngine) -> int:
        """The bytes of the engine's image; 0 if it keeps none, or there is no room for it twice."""
        size = engine.image_bytes() or 0
        return size if size <= self._most_copied else 0

    @property
    def _most_copied(self) -> int:
        """Bytes of the largest image that there is room for twice."""
        return MAX_RUNNING_IMAGE_BYTES if self._memory is None else min(MAX_RUNNING_IMAGE_BYTES, self._memory // 2)

    @property
    def _logged(self) -> int:
        """Bytes since the last image."""
        return self._unimaged + self._store.log_bytes

    @property
    def is_writing(self) -> bool:
        """Whether a checkpoint runs."""
        return self._writing is not None and self._writing.is_alive()

    def _begin_steps(
        self, content: Content, fingerprint: str, image: Callable[[], Image] | None
    ) -> Iterator[None] | None:
        """The steps of a checkpoint; None where it cannot begin: the log has it all, and closing will say what is wrong."""
        try:
            return self.begin(content, fingerprint, {}, None if image is None else image(), content.interned.logged)
        except (DlogError, MemoryError):
            self._due = 2 * self._store.log_bytes
            return None

    def _write(self, steps: Iterator[None]) -> bool:
        """Whether the disk took it."""
        try:
            for _ in steps:
                pass
        except DlogError:
            self._due = 2 * self._store.log_bytes
            return False
        return True

    def write_image(self, content: Content, copying: Copying, image: Image) -> bool:
        """Writes a checkpoint with a copy of what the engine kept after the round of now; false if that is over, or another
        checkpoint runs."""
        with self._logging:
            same = self._copying is copying and content.program_changes == copying.program_changes
            if not same or content.round != image.round or self.is_writing:
                return False
            steps = self._begin_steps(content, copying.fingerprint, lambda: image)
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

    def begin(
        self,
        content: Content,
        fingerprint: str,
        derived: Mapping[str, CheckpointSource],
        image: Image | None,
        interned: Interning | None = None,
    ) -> Iterator[None]:
        """The steps of a checkpoint of the present round: of the content, of relations with rules that are `derived`, and of
        what the engine keeps."""
        frozen, sources = content.frozen()
        self._store.fingerprint = fingerprint
        tables = content.tables(interned)
        self._unimaged = 0 if image is not None else self._unimaged + self._store.log_bytes
        arrays = None if image is None else (image.head, image.arrays)
        steps = self._store.checkpoint_steps(content.round, _LazyRelations({**derived, **sources}), tables, arrays)
        return self._steps(content, steps, frozen)

    def _steps(self, content: Content, steps: Iterator[None], frozen: FrozenRows) -> Iterator[None]:
        """A checkpoint's steps; after the last one the external rows are those it has written."""
        yield from steps
        content.rebase(frozen)
        self._due = self._next_due()

    def _next_due(self) -> int:
        """A checkpoint writes about as many bytes as the layers have: it should be worth that."""
        return max(MIN_LOG_BYTES, self._store.layer_bytes // 2)

    def wait(self) -> None:
        """Waits until no checkpoint runs, and none will begin by itself. An image of a second engine is given up."""
        self.copy_nothing()
        if self._writing is not None:
            self._second_engines.over.set()
            self._writing.join()
            self._second_engines.over.clear()
            self._writing = None


class _LazyRelations(Mapping[str, "Table | Batches"]):
    """Relations that are made when they are written."""

    def __init__(self, readers: Mapping[str, CheckpointSource]) -> None:
        self._readers = readers

    def __getitem__(self, name: str) -> Table | Batches:
        return self._readers[name]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)
