"""Users' functions of numbers, compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dlog.engine.kernels.core.compiler import import_numba
from dlog.functors.marks import Function


def loop_over(function: Function, dtypes: Sequence[Any]) -> Function | None:
    """Compiled code that fills an array with the values of a function of numbers; None where Numba cannot compile it, or its
    result has another type. The types are those of the parameters, then of the result."""
    if not 1 < len(dtypes) <= len(_LOOPS) + 1:
        return None
    return _compiled(function, dtypes, _LOOPS[len(dtypes) - 2])


def fold_over(function: Function, dtypes: Sequence[Any]) -> Function | None:
    """Compiled code `fold(states, values, offsets)` that puts the last state of each group in the place of the first one; None
    where there is none, as for `loop_over`."""
    return _compiled(function, dtypes, _fold)


def _compiled(function: Function, dtypes: Sequence[Any], around: Callable[[Function], Function]) -> Function | None:
    numba = import_numba()
    *args, result = (numba.from_dtype(np.dtype(d)) for d in dtypes)
    try:
        inner: Any = numba.njit(boundscheck=True)(function)  # without it arrays are read beyond their ends
        inner.compile(tuple(args))
        if inner.overloads[tuple(args)].signature.return_type != result:
            return None
        loop: Function = numba.njit(around(inner))
        return loop
    except Exception:  # whatever Numba says of what it does not know
        return None


def _fold(f: Function) -> Function:
    def fold(states: Any, values: Any, offsets: Any) -> None:
        for group in range(len(states)):
            state = states[group]
            for i in range(offsets[group], offsets[group + 1]):
                state = f(state, values[i])
            states[group] = state

    return fold


def _loop_of_one(f: Function) -> Function:
    def loop(out: Any, a: Any) -> None:
        for i in range(len(out)):
            out[i] = f(a[i])

    return loop


def _loop_of_two(f: Function) -> Function:
    def loop(out: Any, a: Any, b: Any) -> None:
        for i in range(len(out)):
            out[i] = f(a[i], b[i])

    return loop


def _loop_of_three(f: Function) -> Function:
    def loop(out: Any, a: Any, b: Any, c: Any) -> None:
        for i in range(len(out)):
            out[i] = f(a[i], b[i], c[i])

    return loop


_LOOPS: Final = (_loop_of_one, _loop_of_two, _loop_of_three)
"""By how many parameters a function has; one with more is not compiled."""
