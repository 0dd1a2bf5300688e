"""Linear operators by functions in Python: of the values of a row, of the columns of a batch, of a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.dataflow.given import check_calls, check_shape, columns_given, diffs_of, lists_of, numbers_of, pair_of
from dlog.dataflow.kinds import decode
from dlog.dataflow.rows import RowReader, shown_time, time_words, words_of
from dlog.dataflow.schema import Schema
from dlog.dataflow.site import Bound, Site
from dlog.engine.operators.delta import Delta
from dlog.engine.trace.overflow import products
from dlog.grammar.diagnostics import Diagnostic, DlogError


def map_batches(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    schema, reader = site.schema.with_columns(made.names, made.kinds), RowReader(made, site.objects)

    def run(delta: Delta) -> Delta:
        columns, rows = reader.read(function(values_of(site, delta)))
        if rows != delta.rows:
            message = f"the function of `map_batches` must give a row for each of {delta.rows}, not {rows}"
            raise DlogError(Diagnostic("bad-rows", message))
        return delta.with_columns((*columns, *site.hidden(delta)))

    return schema, run


def flat_map(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    check_calls("flat_map", function, len(site.schema.names), columns_given(site.schema.names))
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found = lists_of("flat_map", "rows", function, site.rows(delta))
        columns, _ = words_of(made, [row for rows in found for row in rows], site.objects)
        chosen = delta.only(np.repeat(np.arange(delta.rows), [len(rows) for rows in found]))
        return chosen.with_columns((*columns, *site.hidden(chosen)))

    return schema, run


def flat_map_batches(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found, owners = pair_of("flat_map_batches", "(columns, numbers of rows)", function(values_of(site, delta)))
        columns, rows = words_of(made, found, site.objects)
        chosen = delta.only(numbers_of("flat_map_batches", "row", owners, rows, delta.rows))
        return chosen.with_columns((*columns, *site.hidden(chosen)))

    return schema, run


def values_of(site: Site, delta: Delta) -> dict[str, np.ndarray]:
    """The columns as arrays of the function's own, which may write to them: others read the delta, too."""
    named = zip(site.schema.names, site.schema.kinds, delta.columns, strict=False)
    decoded = ((name, words, decode(kind, words, site.objects)) for name, kind, words in named)
    return {name: values.copy() if values is words else values for name, words, values in decoded}


def join_function(function: Callable[..., Any], made: Schema, site: Site) -> Bound:
    check_calls("join_function", function, len(site.schema.names), columns_given(site.schema.names))
    schema = site.schema.with_columns(made.names, made.kinds)

    def run(delta: Delta) -> Delta:
        found = lists_of("join_function", "(row, time, diff)", function, site.rows(delta))
        flat = [each for updates in found for each in updates]
        check_shape("join_function", "(row, time, diff)", flat, 3)
        columns, _ = words_of(made, [row for row, _, _ in flat], site.objects)
        times = [time_words(time, site.scope.depth, site.scope.scale) for _, time, _ in flat]
        diffs = diffs_of("join_function", [diff for _, _, diff in flat])
        chosen = delta.only(np.repeat(np.arange(delta.rows), [len(updates) for updates in found]))
        met = np.maximum(chosen.times, np.array(times, np.int64).reshape(len(times), -1).T) if times else chosen.times
        return Delta((*columns, *site.hidden(chosen)), met, products(chosen.diffs, diffs, "`join_function`"))

    return schema, run


def delay(function: Callable[[Any], Any], site: Site) -> Bound:
    depth, scale = site.scope.depth, site.scope.scale

    def run(delta: Delta) -> Delta:
        different, places = np.unique(delta.times, axis=1, return_inverse=True)
        moved = [time_words(function(shown_time(tuple(t), scale)), depth, scale) for t in different.T.tolist()]
        times = np.array(moved, np.int64).reshape(len(moved), depth).T[:, places.reshape(-1)]
        if (times < delta.times).any():
            raise DlogError(Diagnostic("bad-time", "`delay` must not move updates to earlier times"))
        return Delta(delta.columns, np.ascontiguousarray(times), delta.diffs)

    return site.schema, run
