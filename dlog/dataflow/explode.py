"""Linear operators that multiply diffs: by numbers, or into those of another group."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.arguments import bad_argument
from dlog.dataflow import programs
from dlog.dataflow.columns import map_columns
from dlog.dataflow.components import Component, ValueComponent, part
from dlog.dataflow.expressions import Expression
from dlog.dataflow.folds import Weight
from dlog.dataflow.schema import Schema, plain
from dlog.dataflow.site import Bound, Site, integers
from dlog.dataflow.weights import constant, number_parts, summed_parts, weighted
from dlog.engine.operators.column_programs import Programmed
from dlog.engine.operators.delta import Delta, together

MEANT = "a number, or a tuple of one or more numbers, extremes and elements of groups"


def explode(chosen: list[tuple[str, Expression]], weights: list[Expression | Weight], site: Site) -> Bound:
    mapped, run_map = map_columns(chosen, False, site)
    components = tuple(_component(weight, site.schema) for weight in weights)
    values = [w.of.words(site.schema) if isinstance(w, Weight) else w.values(site.schema) for w in weights]
    columns = [e for _, e in chosen]
    if components == (int,):
        extend = programs.multiplied(_plain_weights(weights)[0], columns, site)
        return mapped, Programmed(
            lambda delta: weighted(run_map(delta), values[0](site.frame(delta)), "`explode`"), extend
        )
    plain(site.schema, "`explode` to another group")
    schema = Schema(mapped.names, mapped.kinds, components)
    if set(components) == {int}:
        sums = _plain_weights(weights)
        constants = [constant(weight, site.schema) for weight in sums]

        def run_sums(delta: Delta) -> Delta:
            frame = site.frame(delta)
            return summed_parts(run_map(delta), [value(frame) for value in values], constants)

        return schema, Programmed(run_sums, programs.summed(columns, sums, site))

    def run(delta: Delta) -> Delta:
        rows, frame, numbers, parts = run_map(delta), site.frame(delta), [], []
        for number, (component, value) in enumerate(zip(components, values, strict=True)):
            if isinstance(component, ValueComponent):
                parts.append(part(rows, number, value(frame)))
            else:
                numbers.append((number, component, value(frame)))
        return together([*parts, *number_parts(rows, numbers)])

    return schema, run


def _plain_weights(weights: Sequence[Expression | Weight]) -> list[Expression]:
    """Those that are numbers."""
    return [weight for weight in weights if not isinstance(weight, Weight)]


def _component(weight: Expression | Weight, schema: Schema) -> Component:
    if isinstance(weight, Weight):
        return weight.component(weight.of.kind(schema))
    kind = weight.kind(schema)
    if kind not in (int, float, bool):
        raise bad_argument("diff", MEANT, kind.__name__)
    return float if kind is float else int


def repeat_row(times: Expression, site: Site) -> Bound:
    values = integers(site, "times", times)
    extend = programs.multiplied(times, None, site)
    return site.schema, Programmed(lambda delta: weighted(delta, values(site.frame(delta)), "`repeat_row`"), extend)
