"""The pairs of an equivalence relation, from its values and the classes that they are in."""

from __future__ import annotations

import numpy as np

from dlog.engine.values.table import Table


def pair_count(classes: Table) -> int:
    """How many pairs there are, by a table of values and their classes; without making them."""
    _, sizes = np.unique(classes.columns[1], return_counts=True)
    return int((sizes.astype(np.int64) ** 2).sum())


def pairs_of(classes: Table) -> Table:
    """All pairs, by a table of values and their classes."""
    kind, (values, names) = classes.kinds[0], classes.columns
    left, right = paired(values, names)
    return Table((kind, kind), (left, right))


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
