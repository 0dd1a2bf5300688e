"""A process that tries what it is sent, within limits of time and memory; what takes too long is killed, and only counted."""

from __future__ import annotations

import multiprocessing
import resource
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from os import chdir
from typing import Any

from tests.fuzz.programs import Outcome

SECONDS = 8.0
"""For one attempt; the first of a process has to import everything."""
STARTING = 60.0
MEMORY = 6 << 30
"""Addresses of the child; most of what kernels reserve they never touch."""


def serve(link: Connection) -> None:
    """Tries what comes until nothing more does, in a folder where it cannot harm."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory() as folder:
        chdir(folder)
        while (task := link.recv()) is not None:
            attempt, subject = task
            link.send(attempt(subject))
        chdir("/")


class Child:
    """A process that tries subjects by `attempt`, started again when it has been killed or has died."""

    def __init__(self, attempt: Callable[[Any], Outcome]) -> None:
        self._attempt = attempt
        self._process: Any = None

    def attempt(self, subject: Any) -> Outcome:
        limit = SECONDS
        if self._process is None:
            self._start()
            limit = STARTING
        try:
            self._link.send((self._attempt, subject))
            if not self._link.poll(limit):
                self.stop()
                return Outcome("slow")
            return self._link.recv()  # type: ignore[no-any-return]
        except (EOFError, ConnectionError):
            self._process.join()
            code, self._process = self._process.exitcode, None
            return Outcome(f"died with {code}")

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._link, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other,), daemon=True)
        self._process.start()
        other.close()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None
