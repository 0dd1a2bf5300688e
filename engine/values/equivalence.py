"""The pairs of an equivalence relation, from its values and the classes that they are in."""

from __future__ import annotations

from typing import Final

import numpy as np

from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError

PAIRS_MAX: Final = 2**31 - 2
"""Pairs that can be had at once: as many as any relation has rows."""


def pair_count(classes: Table) -> int:
    """How many pairs there are, by a table of values and their classes; without making them."""
    _, sizes = np.unique(classes.columns[1], return_counts=True)
    return int((sizes.astype(np.int64) ** 2).sum())


def pairs_of(classes: Table) -> Table:
    """All pairs, by a table of values and their classes. Raises DlogError where there are too many, or too little memory."""
    if (count := pair_count(classes)) > PAIRS_MAX:
        message = f"an equivalence relation of {count:,} pairs cannot be listed"
        notes = ("its size, and questions about some of its values, need no pairs",)
        raise DlogError(Diagnostic("too-many-rows", message, notes=notes))
    try:
        return Table((classes.kinds[0],) * 2, paired(*classes.columns))
    except MemoryError as error:
        message = f"out of memory for the {count:,} pairs of an equivalence relation"
        raise DlogError(Diagnostic("out-of-memory", message)) from error


def first_pairs(classes: Table, most: int) -> Table:
    """So many of the pairs."""
    names = classes.columns[1][:most]
    values, names = (column[np.isin(classes.columns[1], names)] for column in classes.columns)
    some = np.concatenate([np.flatnonzero(names == name)[:most] for name in np.unique(names)] or [np.empty(0, np.int64)])
    left, right = paired(values[some], names[some])
    return Table((classes.kinds[0],) * 2, (left[:most], right[:most]))


def paired(values: np.ndarray, names: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The columns of all pairs of values whose names are the same."""
    order = np.argsort(names, kind="stable")
    values, names = values[order], names[order]
    starts = np.flatnonzero(np.concatenate((np.ones(min(len(names), 1), bool), names[1:] != names[:-1])))
    sizes = np.diff(np.append(starts, len(names)))
    own = np.repeat(sizes, sizes)
    left = np.repeat(values, own)
    before = np.repeat(np.cumsum(own) - own, own)
    right = values[np.arange(len(left)) - before + np.repeat(np.repeat(starts, sizes), own)]
    return left, right
