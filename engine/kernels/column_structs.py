"""The structs of programs over the columns of updates."""

from __future__ import annotations

from dlog.engine.kernels.core.structs import Array, Inside, Struct, i64
from dlog.engine.kernels.machine_structs import Words


class ColumnInstruction(Struct):
    """What a register becomes, of two others, or of a word."""

    code: i64  # a `ColumnCode`
    left: i64  # register; of FILL the word
    right: i64
    target: i64


class ColumnProgram(Struct):
    """A program. Its registers are the columns of the updates, then arrays for what instructions write."""

    columns: i64
    registers: i64  # written ones
    fills: i64  # instructions that come first, and write the same whatever the updates
    count: i64  # instructions in all
    mask: i64  # the register that says which updates are kept; -1: all are
    factor: i64  # the one that diffs are multiplied by, -1: none,
    sign: i64  # and 1 or -1, by which they are, too
    results: i64  # columns of what comes out,
    weights: i64  # and columns behind its diffs
    shown: Words  # the registers that these are
    code: Inside[Array[ColumnInstruction]]
