"""Programs over the columns of updates: columns are computed, diffs multiplied, and updates kept for which a condition holds,
in one call. Instructions work on some updates at a time, of which the registers stay in the cache."""

from __future__ import annotations

from dlog.engine.kernels.codes import ColumnCode
from dlog.engine.kernels.column_structs import ColumnProgram
from dlog.engine.kernels.core.jit import entry, kernel
from dlog.engine.kernels.machine_structs import WordColumns, Words
from dlog.engine.kernels.static.storage import behind, copy_words
from dlog.engine.kernels.trace.summing import float_size, largest_size, sum_equal_updates

CHUNK = 1 << 10
"""Updates that instructions work on at a time."""
MOST = 2.0**62
"""Products below are computed without a look at each."""


@kernel
def _register(program: ColumnProgram, fields: WordColumns, written: Words, chunk, number, start) -> Words:
    """The words of a register for the updates from one on."""
    if number < program.columns:
        return behind(fields[number], start)
    return behind(written, (number - program.columns) * chunk)


@kernel
def _quotient(number, divisor):
    if divisor == 0:
        return 0
    return -number if divisor == -1 else number // divisor


@kernel
def _remainder(number, divisor):
    return 0 if divisor == 0 or divisor == -1 else number % divisor


@kernel
def _compute(code, left: Words, right: Words, target: Words, rows):
    if code == ColumnCode.ADD:
        for row in range(rows):
            target[row] = left[row] + right[row]
    elif code == ColumnCode.SUBTRACT:
        for row in range(rows):
            target[row] = left[row] - right[row]
    elif code == ColumnCode.MULTIPLY:
        for row in range(rows):
            target[row] = left[row] * right[row]
    elif code == ColumnCode.DIVIDE:
        for row in range(rows):
            target[row] = _quotient(left[row], right[row])
    elif code == ColumnCode.REMAINDER:
        for row in range(rows):
            target[row] = _remainder(left[row], right[row])
    elif code == ColumnCode.EQUAL:
        for row in range(rows):
            target[row] = 1 if left[row] == right[row] else 0
    elif code == ColumnCode.DIFFERENT:
        for row in range(rows):
            target[row] = 1 if left[row] != right[row] else 0
    elif code == ColumnCode.LESS:
        for row in range(rows):
            target[row] = 1 if left[row] < right[row] else 0
    elif code == ColumnCode.AT_MOST:
        for row in range(rows):
            target[row] = 1 if left[row] <= right[row] else 0
    elif code == ColumnCode.AND:
        for row in range(rows):
            target[row] = left[row] & right[row]
    else:
        for row in range(rows):
            target[row] = left[row] | right[row]


@kernel
def _fill(program: ColumnProgram, written: Words, chunk):
    for k in range(program.fills):
        word, target = program.code[k].left, behind(written, (program.code[k].target - program.columns) * chunk)
        for row in range(chunk):
            target[row] = word


@kernel
def _multiply(diffs: Words, factors: Words, sign, target: Words, rows):
    """Writes diffs times factors and a sign; false where a product may need more than 64 bits."""
    if not factors:
        for row in range(rows):
            target[row] = sign * diffs[row]
        return True
    if float_size(largest_size(diffs, rows)) * float_size(largest_size(factors, rows)) >= MOST:
        return False
    for row in range(rows):
        target[row] = sign * diffs[row] * factors[row]
    return True


@kernel
def _write(source: Words, mask: Words, some, rows, target: Words):
    """Writes all words, or where there are `some` alone to be kept, those of a mask."""
    if not some:
        copy_words(target, source, rows)
        return
    at = 0
    for row in range(rows):
        target[at] = source[row]
        at += mask[row]


@kernel
def _kept(mask: Words, rows):
    count = 0
    for row in range(rows):
        count += mask[row]
    return count


@kernel
def _find_fields(fields: WordColumns, count, block, rows):
    """Writes where so many fields of a block are; without a block they are known."""
    if block != 0:
        for f in range(count):
            fields[f] = Words(block + 8 * rows * f)


@kernel
def _run(program: ColumnProgram, fields: WordColumns, written: Words, chunk, start, count):
    """Runs the instructions, those that fill registers have been run, on so many updates from one on."""
    for k in range(program.fills, program.count):
        each = program.code[k]
        left = _register(program, fields, written, chunk, each.left, start)
        right = _register(program, fields, written, chunk, each.right, start)
        _compute(each.code, left, right, _register(program, fields, written, chunk, each.target, start), count)


@kernel
def _mask_of(program: ColumnProgram, fields: WordColumns, written: Words, chunk, start) -> Words:
    if program.mask < 0:
        return Words(0)
    return _register(program, fields, written, chunk, program.mask, start)


@kernel
def _diffs_of(program: ColumnProgram, fields: WordColumns, depth, written: Words, chunk, start, count) -> Words:
    """The diffs of so many updates from one on; null where they may need more than 64 bits."""
    diffs = behind(fields[program.columns + depth], start)
    if program.factor < 0 and program.sign > 0:
        return diffs
    factors, product = Words(0), behind(written, program.registers * chunk)
    if program.factor >= 0:
        factors = _register(program, fields, written, chunk, program.factor, start)
    return product if _multiply(diffs, factors, program.sign, product, count) else Words(0)


@entry()
def apply_program(program: ColumnProgram, block, fields: WordColumns, depth, rows, written: Words, found: Words):
    """Applies a program to updates, of which there are some: in a block, their columns, coordinates and diffs one behind the
    other, or where `fields` says. Writes the same of what comes out, and returns how many updates that are; or -1 where diffs
    may need more than 64 bits. `found` has room for all updates, `written` for one array more than the program writes, of as
    many words as there are updates, CHUNK at most; `fields` for an address of each field."""
    chunk, results, columns, kept = min(rows, CHUNK), program.results, program.columns, 0
    _find_fields(fields, columns + depth + 1, block, rows)
    _fill(program, written, chunk)
    for start in range(0, rows, chunk):
        count = min(chunk, rows - start)
        _run(program, fields, written, chunk, start, count)
        mask = _mask_of(program, fields, written, chunk, start)
        here = _kept(mask, count) if mask else count
        diffs = _diffs_of(program, fields, depth, written, chunk, start, count)
        if not diffs:
            return -1
        target = behind(found, kept)
        for k in range(results):
            source = _register(program, fields, written, chunk, program.shown[k], start)
            _write(source, mask, here < count, count, behind(target, k * rows))
        for d in range(depth):
            source = behind(fields[columns + d], start)
            _write(source, mask, here < count, count, behind(target, (results + d) * rows))
        _write(diffs, mask, here < count, count, behind(target, (results + depth) * rows))
        kept += here
    if kept < rows:
        for f in range(1, results + depth + 1):
            copy_words(behind(found, f * kept), behind(found, f * rows), kept)
    return kept


@entry()
def sum_program(
    program: ColumnProgram,
    block,
    fields: WordColumns,
    depth,
    rows,
    first,
    count,
    written: Words,
    scratch: Words,
    room,
    parts: Words,
):
    """Sums up by row what comes out of `count` updates from `first` on (`sum_equal_updates`): returns how many sums there are,
    or -1. `written` has room for as many words of each array; `fields` besides for an address of each column that comes out,
    each coordinate, the diffs and each weight, which are there then."""
    results, columns, diff = program.results, program.columns, program.columns + depth
    _find_fields(fields, diff + 1, block, rows)
    _fill(program, written, count)
    _run(program, fields, written, count, first, count)
    diffs = _diffs_of(program, fields, depth, written, count, first, count)
    if not diffs:
        return -1
    mask = _mask_of(program, fields, written, count, first)
    if mask:  # what is not kept adds 0
        product = behind(written, program.registers * count)
        for row in range(count):
            product[row] = diffs[row] * mask[row]
        diffs = product
    summed = WordColumns(fields.address + 8 * (diff + 1))
    for k in range(results + program.weights):
        source = _register(program, fields, written, count, program.shown[k], first)
        summed[k if k < results else k + depth + 1] = source
    for d in range(depth):
        summed[results + d] = behind(fields[columns + d], first)
    summed[results + depth] = diffs
    return sum_equal_updates(summed, count, results, depth, program.weights, 0, scratch, room, parts)
