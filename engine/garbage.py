"""Compiling and planning make many objects and hardly any garbage: looking for it again and again takes up to a third of their
time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def uncollected(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """The function, while which Python's collector does not run."""

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        try:
            gc.disable()
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
