"""The image that a session has while it runs, where a commit should not wait for it.

It is copied from the engine when no commit comes for a moment. Who commits without a pause has it of a second engine, which
another thread makes from what a checkpoint wrote, as if the state had been opened again: its round is that of the checkpoint,
and nothing waits for it. Both engines share the symbols, which are for any number of threads; the second one has records of its
own, in the same order.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from threading import Event, Thread
from typing import Protocol, TypeAlias
from weakref import ref

from dlog.engine.interruption import Abandoned, abandonable, check
from dlog.engine.rounds_engine import Image, RoundsEngine
from dlog.engine.state.entries import Entries
from dlog.engine.state.store import Store
from dlog.grammar.diagnostics import DlogError
from dlog.sessions.persistence.external_relations import CheckpointSource, FrozenRows
from dlog.sessions.persistence.interned import Interned

PAUSE_SECONDS = 0.05
"""Seconds without a commit after which an image is copied."""
SECONDS_BETWEEN = 8
"""Seconds until another second engine is made for each that the last one took: it has a ninth of a core at most."""
MAX_DOUBLINGS = 10
"""How often that doubles where there are no images."""
LOGGED_SECONDS = 0.01
"""Seconds until it is looked again whether the ids of an image are on the disk: the next commit brings them there."""
MAX_LOOKS = 500
"""How often it is looked: who commits nothing for so long has an image at the next pause."""
Interning: TypeAlias = Callable[[], Mapping[str, Entries]]
"""All entries of the tables of symbols and records as of some time."""
MakeEngine: TypeAlias = Callable[[Store], "RoundsEngine | None"]
"""Makes a second engine of what the last checkpoint wrote; None where there can be none of that."""


class Checkpointing(Protocol):
    """The checkpoints of a state, as far as images are concerned."""

    @property
    def is_writing(self) -> bool: ...
    def write_image(self, content: Content, copying: Copying, image: Image) -> bool: ...


class Content(Protocol):
    """What is written: a state."""

    interned: Interned
    program_changes: int

    @property
    def round(self) -> int: ...
    @property
    def checkpoints(self) -> Checkpointing: ...
    def frozen(self) -> tuple[FrozenRows, Mapping[str, CheckpointSource]]: ...
    def rebase(self, frozen: FrozenRows) -> None: ...
    def tables(self, interned: Interning | None = None) -> Mapping[str, Entries]: ...


class Copying:
    """A copy of what an engine keeps that is made between commits and not within one: in the first pause, piece by piece, and
    given up when a commit comes.

    It is a thread that has the checkpoints write the copy. It ends when that is done, when it is told, and with the session.
    `logged` says how much had been logged when it began."""

    def __init__(self, state: Content, engine: RoundsEngine, fingerprint: str, most: int, logged: int) -> None:
        self.fingerprint, self.logged, self.program_changes = fingerprint, logged, state.program_changes
        self._state, self._engine, self._most = ref(state), ref(engine), most
        self._over = Event()
        self.thread = Thread(target=self._run, name="dlog-image", daemon=True)

    def start(self) -> Copying:
        """It is over where there is no thread to be had."""
        try:
            self.thread.start()
        except RuntimeError:
            self._over.set()
        return self

    def of(self, engine: RoundsEngine, fingerprint: str, program_changes: int) -> bool:
        """Whether it is of this engine and program, and goes on."""
        same = self._engine() is engine and (self.fingerprint, self.program_changes) == (fingerprint, program_changes)
        return same and not self._over.is_set()

    def stop(self) -> None:
        """Gives up; returns when nothing is read any more."""
        self._over.set()
        if self.thread.is_alive():
            self.thread.join()

    def _run(self) -> None:
        seen = -1
        while not self._over.wait(PAUSE_SECONDS):
            state, engine = self._state(), self._engine()
            if state is None or engine is None:
                break
            if state.round == seen and not state.checkpoints.is_writing and self._copied(state, engine):
                break
            seen = state.round
            del state, engine
        self._over.set()

    def _copied(self, state: Content, engine: RoundsEngine) -> bool:
        try:
            copy = engine.copied_image(self._most)
        except MemoryError:
            return True
        return copy is not None and not self._over.is_set() and state.checkpoints.write_image(state, self, copy)


class SecondEngines:
    """Makes images of second engines, now and then. `over` is set when none is wanted any more."""

    def __init__(self, store: Store, most: int) -> None:
        self._store, self._most = store, most
        self.over = Event()
        self._rest = 0.0
        self._failures = 0
        """How often in a row there was no image: memory may not suffice for one, so that the pauses between them double."""

    @property
    def is_rested(self) -> bool:
        """Whether another one may be made."""
        return time.monotonic() >= self._rest

    def write(self, content: Content, fingerprint: str, program_changes: int, make: MakeEngine) -> bool:
        """Writes the image of what the last checkpoint wrote; false where there is none, or it is not wanted any more: also as
        the program has changed since. Pauses before the next one double only where it was wanted."""
        begun = time.monotonic()
        try:
            written = self._tried(content, fingerprint, program_changes, make)
        except Abandoned:
            written = False  # which says nothing of the next one
        else:
            self._failures = 0 if written else min(self._failures + 1, MAX_DOUBLINGS)
        now = time.monotonic()
        self._rest = now + (SECONDS_BETWEEN << self._failures) * (now - begun)
        return written

    def _tried(self, content: Content, fingerprint: str, program_changes: int, make: MakeEngine) -> bool:
        try:
            with abandonable(lambda: self.over.is_set() or content.program_changes != program_changes), ExitStack() as parts:
                check()
                engine = make(self._store)
                if engine is None:
                    return False
                parts.callback(engine.close)
                return self._written(content, fingerprint, program_changes, engine)
        except (DlogError, MemoryError):
            return False

    def _written(self, content: Content, fingerprint: str, program_changes: int, engine: RoundsEngine) -> bool:
        image = engine.image()
        if image is None or image.bytes > self._most or not self._are_logged(content, len(engine.symbols)):
            return False
        if content.program_changes != program_changes:
            return False
        tables = content.tables(content.interned.logged)
        self._store.add_image(image.round, fingerprint, (image.head, image.arrays), tables)
        return True

    def _are_logged(self, content: Content, symbols: int) -> bool:
        """Whether so many symbols are on the disk, which is waited for."""
        for _ in range(MAX_LOOKS):
            check()
            if content.interned.logged_symbols >= symbols:
                return True
            time.sleep(LOGGED_SECONDS)
        return False
