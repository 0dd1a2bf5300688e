"""How a path begins with changes of its seed."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.machine_structs import Level
from dlog.engine.kernels.round_structs import Control, Path


@kernel
def start_changes(path: Path, ctl: Control, first, last):
    """Points the worker at changes [first, last) of a path's seed (a path without one has a single row)."""
    levels = ctl.levels[0]
    for number in range(path.levels):
        Level(levels.address + number * Level.size).extra = 0
    levels.at = first
    levels.end = last
    ctl.run_path = path
    ctl.level = 0
    ctl.pc = 0
