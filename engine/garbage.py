"""Compiling and planning make many objects and hardly any garbage: looking for it again and again takes up to a third of their
time."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

MANY = 10_000
"""Objects that are no longer a few for the collector to go through."""
MOST = 1 << 21
"""Objects that may be kept from the collector before it goes through all that there are."""


def uncollected(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """The function, while which Python's collector does not run. What it makes is old at once: the collector looks at it when
    it looks at everything."""

    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        if not gc.isenabled():
            return function(*args, **kwargs)
        try:
            gc.disable()
            return function(*args, **kwargs)
        finally:
            _old_objects.grow_old()
            gc.enable()

    return run


class _OldObjects:
    """How many objects have become old unseen."""

    def __init__(self) -> None:
        self._count = self._collections = 0

    def grow_old(self) -> None:
        """Makes all objects old, unless they are few, or so many have become so since the collector last went through all that
        it is to see these, or somebody has objects that no collector is to see."""
        made = gc.get_count()[0]
        if made < MANY:
            return
        collections = gc.get_stats()[-1]["collections"]
        if collections != self._collections:
            self._count, self._collections = 0, collections
        if self._count < MOST and not gc.get_freeze_count():
            self._count += made
            gc.freeze()
            gc.unfreeze()


_old_objects = _OldObjects()
