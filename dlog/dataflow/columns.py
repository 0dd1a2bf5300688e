"""Linear operators by which rows have other columns, or are left out: functions of expressions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataflow import programs
from dlog.dataflow.expressions import Column, Expression, column_or
from dlog.dataflow.schema import mismatch
from dlog.dataflow.site import Bound, Site
from dlog.engine.operators.column_programs import Programmed
from dlog.engine.operators.delta import Delta, together
from dlog.engine.operators.feedback import negated
from dlog.engine.values.array_pool import RecurringBlocks
from dlog.grammar.diagnostics import Diagnostic, DlogError


def expressions_of(columns: Iterable[str | Expression], named: Mapping[str, Any]) -> list[tuple[str, Expression]]:
    chosen = []
    for each in columns:
        found = column_or(each)
        if found.label is None:
            raise bad_argument("columns", "names, or expressions with a name", each, "write `name=expression`")
        chosen.append((found.label, found))
    return chosen + [(name, column_or(value)) for name, value in named.items()]


def map_columns(chosen: list[tuple[str, Expression]], keep: bool, site: Site) -> Bound:
    if keep:
        given = dict(chosen)
        names = [*site.schema.names, *(name for name in given if name not in site.schema.names)]
        chosen = [(name, given.get(name, Column(name))) for name in names]
    names = [name for name, _ in chosen]
    schema = site.schema.with_columns(names, [e.kind(site.schema) for _, e in chosen])

    words = [e.words(site.schema) for _, e in chosen]

    def run(delta: Delta) -> Delta:
        frame = site.frame(delta)
        return delta.with_columns((*[each(frame) for each in words], *site.hidden(delta)))

    def run_quietly(delta: Delta) -> Delta:
        with np.errstate(all="ignore"):
            return run(delta)

    function = run_quietly if any(e.noisy(site.schema) for _, e in chosen) else run
    return schema, Programmed(function, programs.mapped([e for _, e in chosen], site))


def rename(names: Mapping[str, str], site: Site) -> Bound:
    site.schema.places(list(names.values()))
    back = {old: new for new, old in names.items()}
    for new, old in names.items():
        if back[old] != new:
            note = f"`map({new}={old!r}, {back[old]}={old!r})` makes two columns of one"
            raise DlogError(Diagnostic("bad-argument", f"`{old}` would have two names, {new} and {back[old]}", notes=(note,)))
    schema = site.schema.with_columns([back.get(name, name) for name in site.schema.names], site.schema.kinds)
    return schema, Programmed(lambda delta: delta, programs.unchanged)


def negate(site: Site) -> Bound:
    return site.schema, Programmed(negated, programs.negated)


def filter_rows(predicate: Expression, site: Site) -> Bound:
    if predicate.kind(site.schema) is not bool:
        raise bad_argument("predicate", "an expression that is true or false", predicate.kind(site.schema).__name__)

    holds, blocks = predicate.values(site.schema), RecurringBlocks()

    extend = programs.kept(predicate, site)
    return site.schema, Programmed(lambda delta: delta.only(holds(site.frame(delta)), blocks), extend)


def unpack_changes(halves: list[tuple[Mapping[str, str], str, int]], site: Site) -> Bound:
    bound = []
    for names, present, sign in halves:
        chosen: list[tuple[str, Expression]] = [(name, Column(column)) for name, column in names.items()]
        schema, run = map_columns(chosen, False, site)
        bound.append((schema, run, Column(present).values(site.schema), sign))
    if bound[0][0] != bound[1][0]:
        note = "`before` and `after` make the same columns, of one kind each"
        raise mismatch("unpack_changes", bound[0][0], bound[1][0], note)

    def unpack(delta: Delta) -> Delta:
        parts = []
        for _, run, present, sign in bound:
            kept = delta.only(present(site.frame(delta)).astype(bool))
            parts.append(run(kept) if sign > 0 else negated(run(kept)))
        return together(parts)

    return bound[0][0], unpack
