"""Series of numbers: a row for each."""

from __future__ import annotations

import numpy as np

from dlog.dataflow.expressions import Expression
from dlog.dataflow.schema import check_names
from dlog.dataflow.site import Bound, Site, integers
from dlog.engine.operators.delta import Delta, repeated
from dlog.grammar.diagnostics import Diagnostic, DlogError

MOST_NUMBERS = 2**30
"""Numbers that `generate_series` gives of the rows that come at once: each is a row, with some words of memory."""


def generate_series(start: Expression, stop: Expression, name: str, site: Site) -> Bound:
    first_of, last_of = integers(site, "start", start), integers(site, "stop", stop)
    check_names((*site.schema.names, name), "`name=` gives the column of numbers another name")
    schema = site.schema.with_columns((*site.schema.names, name), (*site.schema.kinds, int))
    split = len(site.schema.names)

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        owners, numbers = series(first_of(frame), last_of(frame))
        chosen = delta.only(owners)
        return chosen.with_columns((*chosen.columns[:split], numbers, *chosen.columns[split:]))

    return schema, run


def series(first: np.ndarray, last: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All numbers from the first ones to the last ones, and of which these they are. Raises DlogError for too many."""
    sizes = np.maximum(last.astype(np.float64) - first + 1, 0)
    if np.add.reduce(sizes) > MOST_NUMBERS:
        raise _too_many(first, last, int(sizes.argmax()), f"more than {MOST_NUMBERS:,} rows")
    try:
        return repeated(first, np.where(last < first, 0, last - first + 1))
    except MemoryError:
        raise _too_many(first, last, int(sizes.argmax()), "more rows than there is memory for") from None


def _too_many(first: np.ndarray, last: np.ndarray, most: int, what: str) -> DlogError:
    message = f"`generate_series` gives {what} at once, the most of them from {first[most]} to {last[most]}"
    return DlogError(Diagnostic("too-many-numbers", message))
