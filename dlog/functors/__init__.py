"""Functors of users: Python functions for what a program declares with `.functor`.

    @dlog.functor
    def half(x: int) -> int: ...            called for each row, and compiled where Numba can

    @dlog.functor(blocks=True)
    def halves(x: numpy.ndarray): ...       called with a column of many rows at once

A function that is not declared stateful gives the same value for the same arguments: it is called once for rows that agree in
them, and in whatever order. Records come and go as tuples, nil as None. What goes wrong inside of a function is the user's
mistake, and is told with the arguments and the place.

A functor of a state and a value is an aggregate, too: `@@f x : init, { ... }`. Then the function gets the values of a group in
ascending order, those of records by their fields, and, over blocks, all values of many groups at once.
"""

from dlog.functors.linking import FunctorSource, for_stored_program, functions_of, linked
from dlog.functors.marks import Function, functor
from dlog.functors.modules import load_modules

__all__ = ["Function", "FunctorSource", "for_stored_program", "functions_of", "functor", "linked", "load_modules"]
