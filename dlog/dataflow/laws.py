"""The laws of groups and semigroups, looked at where they are cheap: for a few of the elements that come with each batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dlog.codec import value_preview
from dlog.grammar.diagnostics import Diagnostic, DlogError

LOOKED_AT = 4
"""Elements of a batch that are looked at."""
Law = tuple[str, np.ndarray, str, np.ndarray]
"""Two sides that are to be the same: how each is written, and what it comes to."""
Laws = Callable[[np.ndarray, np.ndarray, np.ndarray], Iterator[Law]]
"""The laws of some elements x, y and z."""


def check_laws(name: str, laws: Laws, elements: np.ndarray) -> None:
    """Raises DlogError where some of the elements of an algebra, of which there is at least one, break one of its laws."""
    if elements.dtype == np.float64:
        elements = elements[np.isfinite(elements)]  # infinities of two signs have no sum
    x = elements[:: max(1, len(elements) // LOOKED_AT)][:LOOKED_AT]
    y, z = np.roll(x, 1), np.roll(x, 2)
    for left, found, right, other in laws(x, y, z) if len(x) else ():
        for number in np.flatnonzero(~alike(found, other)).tolist():
            named = {"x": x[number], "y": y[number], "z": z[number]}
            raise _broken(name, left, found[number], right, other[number], named)


def alike(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Which elements of two arrays are the same; NaN is."""
    if left.dtype == object:
        return np.fromiter(map(_same, left, right), bool, len(left))
    return np.asarray((left == right) | ((left != left) & (right != right)))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return one is other or bool(one == other)


def _broken(algebra: str, left: str, found: Any, right: str, other: Any, named: dict[str, Any]) -> DlogError:
    written = re.findall(r"\b[xyz]\b", left + right)
    given = ", ".join(f"{name} = {value_preview(_bare(value))}" for name, value in named.items() if name in written)
    message = f"{left} is {value_preview(_bare(found))}, {right} is {value_preview(_bare(other))}, where {given}"
    note = "sums in it would depend on the order of rows"
    if right.count("plus") == 2:
        note += ": if that is because of rounding, a group with `exact=False` keeps values as they come"
    lifted = ("values of a column that are no elements become some by `lift=`",) if left == "plus(zero, x)" else ()
    return DlogError(Diagnostic("broken-law", f"`{algebra}` breaks a law: {message}", notes=(note, *lifted)))


def _bare(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
