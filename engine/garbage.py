"""Compiling and planning make many objects and hardly any garbage: looking for it again and again takes up to a third of their
time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def uncollected(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """The function, while which Python's collector does not run."""

    @wraps(function)
    def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        try:
            gc.disable()
            return function(*args, **kwargs)
        finally:
            gc.enable()

    return run
