"""A copy of what an engine keeps that is made between commits and not within one: in the first pause, piece by piece, and given
up when a commit comes.

Copying takes as long as many small commits. Who commits without a pause waits for it only once much has been logged.
"""

from __future__ import annotations

from threading import Event, Thread
from typing import Protocol
from weakref import ref

from dlog.engine.rounds_engine import Image, RoundsEngine

PAUSE = 0.05
"""Seconds without a commit after which it is tried."""


class Written(Protocol):
    """A state, to which the copy is written."""

    @property
    def round(self) -> int: ...
    @property
    def is_writing(self) -> bool: ...
    def write_image(self, copying: Copying, copy: Image) -> bool: ...


class Copying:
    """A thread that copies, and has the state write the copy. It ends when that is done, when it is told, and with the
    session. `logged` says how much had been logged when it began."""

    def __init__(self, state: Written, engine: RoundsEngine, fingerprint: str, most: int, logged: int) -> None:
        self.fingerprint, self.logged = fingerprint, logged
        self._state, self._engine, self._most = ref(state), ref(engine), most
        self._over = Event()
        self.thread = Thread(target=self._run, name="dlog-image", daemon=True)

    def start(self) -> Copying:
        self.thread.start()
        return self

    def of(self, engine: RoundsEngine, fingerprint: str) -> bool:
        """Whether it is of this engine and program, and goes on."""
        return self._engine() is engine and self.fingerprint == fingerprint and not self._over.is_set()

    def stop(self) -> None:
        """Gives up; returns when nothing is read any more."""
        self._over.set()
        self.thread.join()

    def _run(self) -> None:
        seen = -1
        while not self._over.wait(PAUSE):
            state, engine = self._state(), self._engine()
            if state is None or engine is None:
                break
            if state.round == seen and not state.is_writing and self._copied(state, engine):
                break
            seen = state.round
            del state, engine
        self._over.set()

    def _copied(self, state: Written, engine: RoundsEngine) -> bool:
        try:
            copy = engine.copied_image(self._most)
        except MemoryError:
            return True
        return copy is not None and not self._over.is_set() and state.write_image(self, copy)
