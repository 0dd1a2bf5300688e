"""Temporal filters: rows that are there for some rounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from dlog.arguments import MAX_COUNT
from dlog.dataflow.bounds import Limit
from dlog.dataflow.expressions import Expression, column_or
from dlog.dataflow.given import check_calls
from dlog.dataflow.site import Bound, Site
from dlog.engine.operators.delta import Delta, together


def limit_of(given: Any) -> Limit:
    """A bound as it is given: a column's name, an expression, a value, or a function of columns."""
    if callable(given) and not isinstance(given, Expression | type):
        check_calls("temporal", given, 1, "a dict of columns")
        return Limit(given)
    return Limit(column_or(given))


def temporal(lower: Limit | None, upper: Limit | None, compared: bool, site: Site) -> Bound:
    """The bounds may be what `now()` is `compared` with."""
    names, meant = ("lower", "upper"), "a column or expression of integers, which are rounds"
    if compared:
        names, meant = ("now()", "now()"), "compared with integers, which are rounds"
    given = zip(names, (lower, upper), strict=True)
    starts, ends = (None if bound is None else bound.rounds(name, meant, site) for name, bound in given)

    def run(delta: Delta) -> Delta:
        start, null = (delta.rounds, None) if starts is None else starts(delta)
        end, endless = (None, None) if ends is None else ends(delta)
        nulls = [each for each in (null, endless) if each is not None]
        if nulls:
            kept = np.flatnonzero(~np.logical_or.reduce(nulls))
            delta, start, end = delta.only(kept), start[kept], None if end is None else end[kept]
        if starts is not None:
            start = np.maximum(delta.rounds, _rounds(start, site.scope.scale))
        return _between(delta, start, None if end is None else _rounds(end, site.scope.scale))

    return site.schema, run


def _between(delta: Delta, start: np.ndarray, end: np.ndarray | None) -> Delta:
    """Updates that are there from a round on, and until before another one."""
    came = Delta(delta.columns, np.concatenate([start[None, :], delta.times[1:]]), delta.diffs)
    if end is None:
        return came
    kept = end > start
    gone = Delta(delta.columns, np.concatenate([end[None, :], delta.times[1:]]), -delta.diffs)
    return together([came.only(kept), gone.only(kept)])


def _rounds(bounds: np.ndarray, scale: int) -> np.ndarray:
    """Rounds as a scope counts them, none beyond what nobody comes to."""
    return bounds if scale == 1 else np.clip(bounds, 0, MAX_COUNT - 1) * scale
