"""Python's collector in Spark's worker processes.

Spark has it look for garbage after each task, before the process takes the next one. What modules made when they were imported,
Numba's above all, is no garbage, and looking at it takes some hundredths of a second.
"""

from __future__ import annotations

import gc

MIN_FROZEN_OBJECTS = 10_000
"""Objects that the collector looks at, from which on those that stay are frozen: looking at fewer is soon done."""


def spare() -> None:
    """At the end of a task: what is there now stays, and is not looked at any more."""
    if len(gc.get_objects()) > MIN_FROZEN_OBJECTS:
        gc.collect()
        gc.freeze()
