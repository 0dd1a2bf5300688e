"""Components of diffs of an Abelian group: what `explode` may have in a tuple beside numbers.

`of` makes one of a zero, a sum and what takes an element away; some there are already. Rows may come and go, in loops, too: a
sum is of those that are there.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np

from dlog.arguments import bad_argument, truth, whole
from dlog.dataflow.algebra import Group
from dlog.dataflow.components import Folded, folded
from dlog.dataflow.expressions import column_or
from dlog.dataflow.folds import Elements, Weight
from dlog.dataflow.kinds import Kind
from dlog.grammar.diagnostics import Diagnostic, DlogError

FEW_GROUPS = 256
"""Groups that are the same one when they are asked for again."""


def of(
    kind: Kind,
    *,
    zero: Any,
    plus: Callable[..., Any],
    negate: Callable[..., Any],
    times: Callable[..., Any] | None = None,
    lift: Callable[..., Any] | None = None,
    lower: Callable[..., Any] | None = None,
    result: Kind | None = None,
    exact: bool | None = None,
) -> Elements:
    """A group of one's own. Of kind int, float or bool its functions get arrays of elements; of kind object one or two of them,
    any Python objects. `times` makes of an element so many, by doubling if it is not given; `lift` the element of a value of a
    column, and `lower` of an element what `count` shows, of the kind `result`. Where `plus` rounds it is not `exact`, as floats
    are not: values are then kept as they come, and added up anew.

    >>> from fractions import Fraction
    >>> from dlog.dataflow import Dataflow, group
    >>> shares = group.of(object, zero=0, plus=lambda a, b: a + b, negate=lambda a: -a, lift=Fraction)
    >>> flow = Dataflow()
    >>> rows = flow.input(name=str, share=str)
    >>> sums = rows.explode("name", diff=(1, shares("share"))).count("rows", "share").capture()
    >>> rows.insert([("a", "1/3"), ("a", "1/6"), ("b", "2/7")])
    >>> flow.commit()
    >>> sorted(sums)
    [('a', 2, Fraction(1, 2)), ('b', 1, Fraction(2, 7))]
    """
    others = {"times": times, "lift": lift, "lower": lower, "result": result, "exact": exact}
    return Elements(Group("group.of", kind, plus, zero, negate, **others))


def xor(column: Any) -> Weight:
    """Bits that are set in an odd number of rows, of integers or truth values: hashes of sets of rows."""
    return Weight(column_or(column), "group.xor", _xor)


def modulo(column: Any, modulus: int) -> Weight:
    """The sum of integers modulo another one, from 0 on."""
    group = _modulo(whole("modulus", modulus, 1, "a whole number, 1 or more"))
    return Weight(column_or(column), group.name, partial(_of_integers, group))


def sum(column: Any, zero: Any = 0, *, exact: bool = True) -> Weight:
    """The sum of values of any kind, or of integers beyond 64 bits: by `+` and `-` of Python, from `zero` on."""
    if zero.__hash__ is None:
        raise bad_argument("zero", "hashable, as values of kind object are", zero, "`group.of` makes a group of any elements")
    group = _sum(zero, truth("exact", exact))
    return Weight(column_or(column), group.name, partial(_of_no_floats, group))


def _negated_bits(elements: np.ndarray) -> np.ndarray:
    return elements


def _odd_times(elements: np.ndarray, counts: np.ndarray) -> np.ndarray:
    return np.where(counts & 1, elements, np.zeros_like(elements))


_XOR = {
    kind: Group("group.xor", kind, np.bitwise_xor, kind(), _negated_bits, times=_odd_times) for kind in (int, bool)
}


def _xor(kind: Kind) -> Folded:
    if kind not in _XOR:
        raise bad_argument("diff", "of int or bool in `group.xor`", kind.__name__)
    return folded(_XOR[kind], kind)


@lru_cache(FEW_GROUPS)
def _modulo(modulus: int) -> Group:
    return Group(
        "group.modulo", int, lambda a, b: (a + b) % modulus, 0, lambda a: -a % modulus, lift=lambda values: values % modulus
    )


@lru_cache(FEW_GROUPS, typed=True)
def _sum(zero: Any, exact: bool) -> Group:
    times, negate = _of_values(operator.mul), _of_values(operator.neg)
    return Group("group.sum", object, _of_values(operator.add), zero, negate, times=times, exact=exact)


def _of_values(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python's operators, which tells of values that have none."""

    def run(*values: Any) -> Any:
        try:
            return function(*values)
        except TypeError as error:
            note = "`zero=` is what sums begin with, and of the type of values that do not go with 0: `zero=timedelta(0)`"
            raise DlogError(Diagnostic("bad-rows", f"`group.sum` cannot add up such values: {error}", notes=(note,))) from error

    return run


def _of_integers(group: Group, kind: Kind) -> Folded:
    if kind not in (int, bool):
        raise bad_argument("diff", f"of int in `{group.name}`", kind.__name__)
    return folded(group, kind)


def _of_no_floats(group: Group, kind: Kind) -> Folded:
    if kind is float:
        note = '`diff=col("x")` is the sum of floats, which is exact'
        raise bad_argument("diff", f"of another kind in `{group.name}`", kind.__name__, note)
    return folded(group, kind)
