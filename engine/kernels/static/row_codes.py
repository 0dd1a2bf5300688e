"""Rows as words: each column's value less the least one, in as many bits as the column needs, the first column's highest, so
that words are in the order of their rows."""

from __future__ import annotations

from dlog.engine.kernels.core.jit import entry
from dlog.engine.kernels.machine_structs import Relation, Words
from dlog.engine.kernels.static.storage import load_cell, store_cell


@entry()
def write_codes(relation: Relation, lows: Words, shifts: Words, codes: Words):
    """codes[row] of every row; `lows` and `shifts` have one word a column."""
    rows = relation.rows
    for c in range(relation.arity):
        column = relation.columns[c]
        data, width, low, shift = column.data, column.width, lows[c], shifts[c]
        if c == 0:
            for row in range(rows):
                codes[row] = (load_cell(data, width, row) - low) << shift
        else:
            for row in range(rows):
                codes[row] |= (load_cell(data, width, row) - low) << shift


@entry()
def read_codes(relation: Relation, lows: Words, shifts: Words, codes: Words):
    """Gives the relation the rows of its codes, which ascend, each of them once. The codes are overwritten."""
    kept = 0
    last = -1
    for row in range(relation.rows):
        code = codes[row]
        if code != last:
            codes[kept] = code
            kept += 1
        last = code
    above = 63
    for c in range(relation.arity):
        column = relation.columns[c]
        data, width, low, shift = column.data, column.width, lows[c], shifts[c]
        mask = (1 << (above - shift)) - 1
        for row in range(kept):
            store_cell(data, width, row, (codes[row] >> shift & mask) + low)
        above = shift
    relation.rows = kept
