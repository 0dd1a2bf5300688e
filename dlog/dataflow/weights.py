"""Diffs that linear operators multiply: by a weight of each row, or by one for each component."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.dataflow.exact import digits_by_place, digits_of
from dlog.dataflow.expressions import Expression
from dlog.dataflow.kinds import Kind
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Delta
from dlog.engine.trace.layer import sums_of_equal
from dlog.engine.trace.overflow import HEAVY, check_sums, largest, products, weight_of


def weighted(delta: Delta, weights: np.ndarray, what: str) -> Delta:
    """Diffs times whole numbers, zeros left out. Raises DlogError where one needs more than 64 bits."""
    diffs = products(delta.diffs, weights.astype(np.int64), what)
    return _without_zeros(Delta(delta.columns, delta.times, diffs))


def constant(weight: Expression, schema: Schema) -> int | None:
    """The size of a weight that is the same for all rows."""
    operand = weight.operand(schema)
    return abs(int(operand)) if isinstance(operand, np.generic) and weight.kind(schema) is not float else None


def summed_parts(delta: Delta, weights: Sequence[np.ndarray], constants: Sequence[int | None]) -> Delta:
    """All components of diffs, which are integers: of each row and time the sums of its weights times their diffs, as often far
    fewer than there are rows. There is an array of `weights` for each component; `constants` has the size of those that are the
    same for all rows."""
    weight = weight_of(delta.diffs)
    for each, same in zip(weights, constants, strict=True):
        if weight * (largest(each) if same is None else same) >= HEAVY:
            parts = products(delta.diffs, each.astype(np.int64), "`explode`")
            check_sums((*delta.columns, *delta.times), parts, "the diffs of a row")
    fields = (*delta.columns, *delta.times, delta.diffs, *weights)
    return Delta.of_block(sums_of_equal(fields, delta.arity, len(weights)), delta.arity + 2)


def number_parts(delta: Delta, numbers: Sequence[tuple[int, Kind, np.ndarray]]) -> list[Delta]:
    """The components of diffs that are sums of numbers: which ones, of which kind, and the weights of the rows, each of which
    counts as often as its diff."""
    summed = _summed_numbers(delta, numbers)
    return [_part(delta, *each) for each in numbers] if summed is None else [summed]


def _summed_numbers(delta: Delta, numbers: Sequence[tuple[int, Kind, np.ndarray]]) -> Delta | None:
    """Their sums for each row and time, of which there are often far fewer; None where they need many places, or bits."""
    components: list[int] = []
    places: list[int] = []
    weights: list[np.ndarray] = []
    for component, kind, values in numbers:
        digits = digits_by_place(values) if kind is float else (np.zeros(1, np.int64), values[None, :])
        if digits is None:
            return None
        components += [component] * len(digits[0])
        places += digits[0].tolist()
        weights += [*digits[1]]
    heaviest = max(map(largest, weights), default=0)
    if not delta.rows or not weights or weight_of(delta.diffs) * heaviest >= HEAVY:
        return None
    block = sums_of_equal((*delta.columns, *delta.times, delta.diffs, *weights), delta.arity, len(weights))
    numbered = block[delta.arity].copy()
    block[delta.arity], block[delta.arity + 1] = np.array(components)[numbered], np.array(places)[numbered]
    return Delta.of_block(block, delta.arity + 2)


def _part(delta: Delta, component: int, kind: Kind, weights: np.ndarray) -> Delta:
    """One component of diffs: the sum of the weights of the rows, each times its diff. Of floats that is a sum of digits."""
    if kind is float:
        rows, values, diffs = digits_of(weights, delta.diffs)
        delta = delta.only(rows)
    else:
        values, diffs = np.zeros(delta.rows, np.int64), products(delta.diffs, weights.astype(np.int64), "`explode`")
    columns = (*delta.columns, np.full(delta.rows, component, np.int64), values)
    return _without_zeros(Delta(columns, delta.times, diffs))


def _without_zeros(delta: Delta) -> Delta:
    return delta.only(delta.diffs != 0)
