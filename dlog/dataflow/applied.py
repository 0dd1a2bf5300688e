"""Functions of numbers that Numba compiles, as expressions: `apply`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataclass import dataclass
from dlog.dataflow.expressions import Expression, Literal, column_or
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import DeltaFrame, Values
from dlog.dataflow.schema import Schema
from dlog.engine.kernels.core.compiler import import_numba
from dlog.grammar.diagnostics import Diagnostic, DlogError

NUMBERS = (int, float, bool)
FEW_FUNCTIONS = 256
"""Functions that stay compiled, to be used by more than one expression."""
_RESULTS = {int: "bi", float: "biuf", bool: "biuf"}
"""Kinds of NumPy's of what a function may give where a kind is meant: nothing is lost of them, or only truth is asked for."""


@dataclass(frozen=True, eq=False)
class Applied(Expression):
    """A function of all of its arguments, defaults included: one more would be taken by Numba as where to write to."""

    function: Callable[..., Any]
    arguments: tuple[Expression, ...]
    result: Kind

    def __repr__(self) -> str:
        return f"apply({', '.join([name_of(self.function), *map(repr, self.arguments)])})"

    def kind(self, schema: Schema) -> Kind:
        return self.result

    def values(self, schema: Schema) -> Values:
        self._check(schema)
        function, arguments = compiled(self.function), [argument.values(schema) for argument in self.arguments]

        def run(frame: DeltaFrame) -> np.ndarray:
            if not frame.rows:
                return np.empty(0, self.result)
            return np.asarray(function(*(argument(frame) for argument in arguments)), self.result)

        return run

    def _check(self, schema: Schema) -> None:
        """Raises DlogError where the function, of arguments of these kinds, does not give values of the kind that is meant."""
        kinds = [argument.kind(schema) for argument in self.arguments]
        for kind in kinds:
            if kind not in NUMBERS:
                raise bad_argument("arguments", "columns of numbers, or expressions of such", kind.__name__)
        found = result_of(self.function, kinds)
        if found.kind not in _RESULTS[self.result] and not (found.kind == "u" and found.itemsize < 8):
            message = f"`{name_of(self.function)}` gives {found}, which is no {self.result.__name__}"
            note = "`apply(..., kind=float)` takes floats as they are; `//` and `int(...)` make whole numbers"
            raise DlogError(Diagnostic("bad-argument", message, notes=(note,)))


@lru_cache(FEW_FUNCTIONS)
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of values as one of arrays."""
    return import_numba().vectorize(nopython=True)(function)  # type: ignore[no-any-return]


def result_of(function: Callable[..., Any], kinds: Sequence[Kind]) -> np.dtype[Any]:
    """What a function gives of arguments of some kinds: it is compiled for them, and not called. Raises DlogError where Numba
    cannot do that."""
    try:
        return np.asarray(compiled(function)(*(np.empty(0, kind) for kind in kinds))).dtype
    except Exception as error:  # Numba raises all sorts
        lines = (line for line in str(error).splitlines() if line.strip() and not line.startswith("Failed in "))
        shown = ", ".join(kind.__name__ for kind in kinds)
        message = f"Numba cannot compile `{name_of(function)}` of ({shown}): {next(lines, type(error).__name__)}"
        note = "`apply` is for functions that give a number for numbers; `flat_map` takes any function in Python"
        raise DlogError(Diagnostic("bad-argument", message, notes=(note,))) from error


def apply(function: Callable[..., Any], *arguments: Any, kind: Kind = int) -> Expression:
    """A scalar function of numbers, which Numba compiles, of columns (or expressions): of all its arguments but those that have
    a default. What it gives has to be of the `kind`.

    >>> from dlog.dataflow import Dataflow, apply
    >>> flow = Dataflow()
    >>> numbers = flow.input(x=int)
    >>> squares = numbers.map(square=apply(lambda x: x * x, "x")).capture()
    >>> numbers.insert([(3,)])
    >>> flow.commit()
    >>> squares.counts()
    {(9,): 1}
    """
    if kind not in NUMBERS:
        raise bad_argument("kind", "int, float or bool", kind)
    given = tuple(column_or(argument) for argument in arguments)
    return Applied(function, (*given, *_defaults(function, len(given))), kind)


def name_of(function: Callable[..., Any]) -> str:
    return getattr(function, "__name__", "apply")


def _defaults(function: Callable[..., Any], given: int) -> tuple[Expression, ...]:
    """The arguments that a function has beside those that are given. Raises DlogError for another number than it takes."""
    parameters = _parameters(function)
    required = sum(parameter.default is Parameter.empty for parameter in parameters)
    if not required <= given <= len(parameters) or not parameters:
        most = f"{required} to {len(parameters)}" if required < len(parameters) else f"{required}"
        message = f"`{name_of(function)}` is applied to {given} arguments, and takes {most}"
        note = "a value that is the same for all rows is `lit(...)`"
        raise DlogError(Diagnostic("bad-argument", message, notes=() if parameters else (note,)))
    defaults = [parameter.default for parameter in parameters[given:]]
    for default in defaults:
        if not isinstance(default, int | float):
            raise bad_argument("function", "one whose defaults are numbers", default)
    return tuple(map(Literal, defaults))


def _parameters(function: Any) -> list[Parameter]:
    """The parameters of a function of Python's, compiled already or not. Raises DlogError for what is none, and for any number
    of arguments."""
    plain = getattr(function, "py_func", function)
    if not isinstance(plain, FunctionType):
        raise bad_argument("function", "a function in Python", function, "`lambda x: np.sqrt(x)` makes one of another")
    found = [*signature(plain).parameters.values()]
    for each in found:
        if each.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
            raise bad_argument("function", f"one of a fixed number of arguments by position, without `{each}`", function)
    return found
