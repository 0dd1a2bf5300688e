"""Brings the kernels that every run needs from the cache into the process, by using each once on almost nothing.

Linking cached machine code costs tens of milliseconds; done here it is part of starting, not of the first evaluation. Numba
imports the larger part of itself then, and cannot a second time: an interruption waits.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from dlog.engine.embedded.arrangement import StoredArrangement
from dlog.engine.embedded.interruption import Delayed
from dlog.engine.embedded.lower import Tables
from dlog.engine.embedded.native import Struct
from dlog.engine.embedded.relation import Memory, StoredRelation
from dlog.engine.embedded.worker import Worker
from dlog.engine.kernels import layout as L
from dlog.engine.program.rules import Kind


@cache
def preload() -> None:
    """Once per process: loads a relation, sorts an arrangement of it, and runs an empty loop."""
    with Delayed():
        _use_each()


def _use_each() -> None:
    memory = Memory(None)
    relation = StoredRelation("@preload", (Kind.NUMBER, Kind.NUMBER), memory)
    relation.load([np.array([0, 1]), np.array([1, 0])], 2)
    arrangement = StoredArrangement(relation, (1,), (), growing=False)
    arrangement.build((0,))
    relation.ensure_set()
    worker = Worker(memory)
    worker.prepare(Tables())
    worker.control[L.CTL_PHASE] = 2
    worker.run_loop(Struct(L.LOOP_SIZE), lambda call, args: args[0], lambda: None)
    arrangement.free()
    relation.free()
