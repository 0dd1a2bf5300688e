"""Temporal filters: rows that are there for some rounds."""

from __future__ import annotations

import numpy as np

from dlog.arguments import MAX_COUNT
from dlog.dataflow.expressions import Expression
from dlog.dataflow.site import Bound, Site, integers
from dlog.engine.operators.delta import Delta, together


def temporal(lower: Expression | None, upper: Expression | None, compared: bool, site: Site) -> Bound:
    """The bounds may be what `now()` is `compared` with."""
    names, meant = ("lower", "upper"), "a column or expression of integers, which are rounds"
    if compared:
        names, meant = ("now()", "now()"), "compared with integers, which are rounds"
    given = zip(names, (lower, upper), strict=True)
    starts, ends = (None if bound is None else integers(site, name, bound, meant) for name, bound in given)

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        start = delta.rounds if starts is None else np.maximum(delta.rounds, _rounds(starts(frame), site.scope.scale))
        came = Delta(delta.columns, np.concatenate([start[None, :], delta.times[1:]]), delta.diffs)
        if ends is None:
            return came
        end = _rounds(ends(frame), site.scope.scale)
        kept = end > start
        gone = Delta(delta.columns, np.concatenate([end[None, :], delta.times[1:]]), -delta.diffs)
        return together([came.only(kept), gone.only(kept)])

    return site.schema, run


def _rounds(bounds: np.ndarray, scale: int) -> np.ndarray:
    """Rounds as a scope counts them, none beyond what nobody comes to."""
    return bounds if scale == 1 else np.clip(bounds, 0, MAX_COUNT - 1) * scale
