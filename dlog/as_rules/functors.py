"""Functions of `apply` as functors of the program: called with columns, and compiled by Numba, as a dataflow does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dlog.as_rules.program import Program, distinct_names
from dlog.dataclass import dataclass
from dlog.dataflow.applied import Applied, compiled, name_of
from dlog.dataflow.kinds import Kind
from dlog.dataflow.schema import Schema
from dlog.functors import Function, functor


class Functors:
    """The functors that a program needs, by name."""

    def __init__(self, program: Program) -> None:
        self.functions: dict[str, Function] = {}
        self._program = program
        self._names: dict[tuple[Any, ...], str] = {}

    def name(self, applied: Applied, schema: Schema) -> str:
        """The functor of a function: one for all uses of it with arguments of the same kinds."""
        kinds = tuple(argument.kind(schema) for argument in applied.arguments)
        key = id(applied.function), kinds, applied.result
        if key not in self._names:
            hint = name_of(applied.function)
            (name,) = distinct_names(["apply" if hint == "<lambda>" else hint], self.functions)
            self.functions[name] = functor(blocks=True)(_OfColumns(applied.function, kinds, applied.result))
            self._program.functor(name, kinds, applied.result)
            self._names[key] = name
        return self._names[key]


@dataclass(eq=False)
class _OfColumns:
    """A function of values as one of columns, in which true is 1."""

    function: Callable[..., Any]
    kinds: tuple[Kind, ...]
    result: Kind

    def __call__(self, *columns: np.ndarray) -> np.ndarray:
        if not len(columns[0]):
            return np.empty(0, np.float64 if self.result is float else np.int64)
        values = [column != 0 if kind is bool else column for column, kind in zip(columns, self.kinds, strict=True)]
        found: np.ndarray = np.asarray(compiled(self.function)(*values), self.result)
        return found.astype(np.int64) if self.result is bool else found
