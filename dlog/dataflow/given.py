"""What users' functions give, looked at before it is used: mistakes are told by the operator that has called them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from dlog.codec import value_preview
from dlog.engine.trace.overflow import diff_overflow
from dlog.grammar.diagnostics import Diagnostic, DlogError


def wrong_outcome(operator: str, expected: str, given: Any) -> DlogError:
    """
    >>> print(wrong_outcome("flat_map", "rows", None))
    error: the function of `flat_map` must give rows, not None
    """
    return DlogError(Diagnostic("bad-rows", f"the function of `{operator}` must give {expected}, not {value_preview(given)}"))


def check_calls(operator: str, function: Callable[..., Any], count: int, given: str) -> None:
    """Raises DlogError for a function that cannot be called with so many arguments, which are those `given`. What does not say
    what it takes, such as some of those in C, passes.

    >>> check_calls("flat_map", lambda x: [], 2, "the columns a, b")
    Traceback (most recent call last):
    dlog.grammar.diagnostics.DlogError: error: the function of `flat_map` gets the columns a, b, but it takes (x)
    """
    try:
        taken = signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        taken.bind(*(None,) * count)
    except TypeError:
        message = f"the function of `{operator}` gets {given}, but it takes {taken}"
        raise DlogError(Diagnostic("bad-argument", message)) from None


def columns_given(names: Sequence[str]) -> str:
    """The values of a row, as a function gets them.

    >>> columns_given(["a", "b"]), columns_given(["a"]), columns_given([])
    ('the columns a, b', 'the column a', 'no column')
    """
    return f"the column{'s'[: len(names) > 1]} {', '.join(names)}" if names else "no column"


def lists_of(operator: str, expected: str, function: Callable[..., Any], calls: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """What a function gives for each call, which is to be any number of something. Raises DlogError for what is no iterable."""
    found = []
    for arguments in calls:
        given = function(*arguments)
        try:
            each = iter(given)
        except TypeError:
            raise wrong_outcome(operator, f"any number of {expected}", given) from None
        found.append(list(each))
    return found


def check_shape(operator: str, expected: str, given: Iterable[Any], size: int) -> None:
    """Raises DlogError for what is no tuple, or list, of so many values."""
    for each in given:
        if not isinstance(each, tuple | list) or len(each) != size:
            raise wrong_outcome(operator, f"any number of {expected}", each)


def pair_of(operator: str, expected: str, given: Any) -> tuple[Any, Any]:
    """Columns, and for each row the number of what it is for."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise wrong_outcome(operator, expected, given)
    return given[0], given[1]


def numbers_of(operator: str, what: str, given: Any, rows: int, count: int) -> np.ndarray:
    """For each of some rows the number of what it is for, of which there are so many. Raises DlogError for others."""
    array = np.asarray(given)
    if array.shape != (rows,):
        raise wrong_outcome(operator, f"the number of a {what} for each of {rows} rows", given)
    if array.dtype.kind not in "iu" and rows:
        raise wrong_outcome(operator, f"whole numbers of {what}s", given)
    if rows and not 0 <= array.min() <= array.max() < count:
        strange = next(number for number in array.tolist() if not 0 <= number < count)
        raise wrong_outcome(operator, f"numbers of {what}s from 0 to {count - 1}", strange)
    return array.astype(np.int64)


def diffs_of(operator: str, given: list[Any]) -> np.ndarray:
    """Whole numbers as diffs. Raises DlogError for what is none, or needs more than 64 bits."""
    array = np.asarray(given) if given else np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "biu":
        strange = [each for each in given if not isinstance(each, int | np.integer)]
        if strange:
            raise wrong_outcome(operator, "whole numbers as diffs", strange[0])
        raise diff_overflow(f"`{operator}` gives diffs")
    if array.dtype == np.uint64 and (array >= 2**63).any():
        raise diff_overflow(f"`{operator}` gives diffs")
    return array.astype(np.int64)
