"""Table functions: instructions that make the rows of ranges, and those that Python has left for a block.

A level remembers in which row of its input it stands and, of a range, how it goes on; of rows that are there, which are left.
"""

from __future__ import annotations

from enum import auto

from dlog.engine.kernels.codes import Code, RangeForm
from dlog.engine.kernels.core.jit import kernel
from dlog.engine.kernels.core.memory import as_bits, as_float, wrapped_sum
from dlog.engine.kernels.instructions import Binds, CalledRows, Range
from dlog.engine.kernels.layout import BLOCK, NO_REGISTER
from dlog.engine.kernels.machine_structs import Level, Words
from dlog.engine.kernels.round_structs import Control
from dlog.engine.kernels.static.storage import register
from dlog.engine.kernels.values.floats import float_word

_SIGN = -9223372036854775808


class Way(Code):
    """Which way a level's range goes on (`Level.left`)."""

    NONE = auto()
    UP = auto()
    DOWN = auto()
    ONCE = auto()  # its one value is next


@kernel
def range_values(ctl: Control, code: Range, level: Level, source: Words):
    """The values of each row's range: target[k] belongs to row source[k]. Returns how many."""
    rows = level.rows
    target = register(ctl, code.target)
    n = 0
    while n < BLOCK:
        if level.remaining == Way.NONE:
            if level.row + 1 >= rows:
                break
            level.row += 1
            open_range(ctl, code, level, level.row)
        elif code.form == RangeForm.FLOAT:
            n = fill_floats(level, source, target, n)
        else:
            n = fill_integers(level, source, target, n, _SIGN if code.form == RangeForm.UNSIGNED else 0)
    return n


@kernel
def open_range(ctl: Control, code: Range, level: Level, row):
    """Points the level at the first value of a row's range. Integers are kept so that they compare as signed ones."""
    first = register(ctl, code.first)[row]
    end = register(ctl, code.end)[row]
    step = 0
    if code.step != NO_REGISTER:
        step = register(ctl, code.step)[row]
    if code.form == RangeForm.FLOAT:
        open_floats(level, first, end, step, code.step != NO_REGISTER)
        return
    unsigned = code.form == RangeForm.UNSIGNED
    a = first ^ _SIGN if unsigned else first
    b = end ^ _SIGN if unsigned else end
    up = step > 0 or (unsigned and step != 0)
    if code.step == NO_REGISTER:
        up = a <= b
        step = 1 if up else -1
    level.at = a
    level.end = b
    level.extra = step
    level.remaining = Way.NONE
    if step == 0:
        level.remaining = Way.ONCE if a != b else Way.NONE
    elif up:
        level.remaining = Way.UP if a < b else Way.NONE
    else:
        level.remaining = Way.DOWN if b < a else Way.NONE


@kernel
def open_floats(level: Level, first, end, step_bits, has_step):
    a = as_float(first)
    b = as_float(end)
    step = as_float(step_bits)
    if not has_step:
        step = 1.0 if a <= b else -1.0
    level.at = first
    level.end = end
    level.extra = as_bits(step)
    level.remaining = Way.NONE
    if step > 0.0:
        level.remaining = Way.UP if a < b else Way.NONE
    elif step < 0.0:
        level.remaining = Way.DOWN if b < a else Way.NONE
    else:
        level.remaining = Way.ONCE if a != b else Way.NONE


@kernel
def fill_integers(level: Level, source: Words, target: Words, n, sign):
    """Values of the row's range up to the end of the block, or until the next one would be no value of the kind."""
    value = level.at
    end = level.end
    step = level.extra
    row = level.row
    way = level.remaining
    while n < BLOCK and way != Way.NONE:
        source[n] = row
        target[n] = value ^ sign
        n += 1
        following = wrapped_sum(value, step)
        goes_on = False
        if way == Way.UP:
            goes_on = value < following and following < end
        elif way == Way.DOWN:
            goes_on = following < value and end < following
        if not goes_on:
            way = Way.NONE
        value = following
    level.at = value
    level.remaining = way
    return n


@kernel
def fill_floats(level: Level, source: Words, target: Words, n):
    """Values of the row's range up to the end of the block, or until a step no longer changes them."""
    value = as_float(level.at)
    end = as_float(level.end)
    step = as_float(level.extra)
    row = level.row
    way = level.remaining
    while n < BLOCK and way != Way.NONE:
        source[n] = row
        target[n] = float_word(value)
        n += 1
        following = value + step
        goes_on = False
        if way == Way.UP:
            goes_on = value < following and following < end
        elif way == Way.DOWN:
            goes_on = following < value and end < following
        if not goes_on:
            way = Way.NONE
        value = following
    level.at = as_bits(value)
    level.remaining = way
    return n


@kernel
def called_rows(ctl: Control, code: CalledRows, level: Level, source: Words, places: Words):
    """The rows that a table function has made for each row of the block: row k belongs to row source[k]. Returns how many."""
    offsets = code.produced.offsets
    rows = level.rows
    row = level.row
    at = level.at
    end = level.end
    n = 0
    while n < BLOCK:
        if at >= end:
            if row + 1 >= rows:
                break
            row += 1
            at = offsets[row]
            end = offsets[row + 1]
            continue
        count = min(end - at, BLOCK - n)
        for j in range(count):
            source[n + j] = row
            places[n + j] = at + j
        n += count
        at += count
    level.row = row
    level.at = at
    level.end = end
    binds = Binds(code.moves[code.carried])
    for c in range(code.bound):
        values = Words(code.produced.values.address + binds[c].column * code.produced.stride * 8)
        target = register(ctl, binds[c].target)
        for i in range(n):
            target[i] = values[places[i]]
    return n
