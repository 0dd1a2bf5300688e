"""Aggregates that are computed for the bindings of their outer variables as they come, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Kind
from dlog.engine.runtime.static.folding import group_numbers
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.values.generated import Generated

RunScope = Callable[[nodes.Scope, str], list[np.ndarray]]
"""Runs a scope and gives the columns of one of its relations."""

NOTHING: Final = -1


def aggregated(nested: nodes.Nested, args: Sequence[np.ndarray], rows: int, catalog: Catalog, run: RunScope) -> Generated:
    """The value for each row of a block, or none, as the rows of a table function."""
    words = np.stack([np.ascontiguousarray(a).view(np.int64) for a in args], axis=1)
    distinct, places = np.unique(words, axis=0, return_inverse=True)
    groups = list(np.ascontiguousarray(distinct.T))
    given = catalog.add(nested.groups.relation, [Kind(k) for k in nested.groups.kinds])
    try:
        given.load(groups, len(distinct))
        catalog.complete.add(given.name)
        *keys, values = run(nested.scope, nested.result)
    finally:
        catalog.remove(given.name)
    row_of = np.full(len(distinct), NOTHING, np.int64)
    row_of[group_numbers(groups, keys, len(distinct), len(values))] = np.arange(len(values))
    return _spread(row_of[places.reshape(-1)], values, rows, _default(nested))


def _default(nested: nodes.Nested) -> int | None:
    """The word of the value where there is none."""
    if nested.default is None or nested.kind != Kind.FLOAT.value:
        return nested.default
    return int(np.float64(nested.default).view(np.int64))


def _spread(found: np.ndarray, values: np.ndarray, rows: int, default: int | None) -> Generated:
    """The value at its place for each row, the default or none for the rows without."""
    has_value = found != NOTHING
    column = np.full(rows, default or 0, np.int64)
    column[has_value] = values[found[has_value]]
    if default is None:
        column = column[has_value]
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(has_value)]), [column]
    return np.arange(rows + 1), [column]
