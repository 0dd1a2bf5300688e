"""Calls of users' functions on the columns of a block, as values or as arrays."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np

from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import Domain, Type, UserFunctor
from dlog.engine.values.table import DTYPES
from dlog.functors.compiled import fold_over, loop_over
from dlog.functors.failures import failed, wrong_value
from dlog.functors.folds import Groups, ascending
from dlog.functors.marks import Function, mark_of
from dlog.functors.modules import LOADED
from dlog.grammar.diagnostics import Diagnostic, DlogError

_COMPILED_FROM: Final = 512
"""Rows of a block from which on a function is compiled: fewer are sooner called."""


@dataclass(eq=False)
class Called:
    """A user's function, on blocks: see `rules.BlockFunction`."""

    function: Function
    _loops: dict[str, Function | None] = field(default_factory=dict, repr=False)
    """What is compiled, None where that cannot be."""

    def __call__(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int, tables: Any) -> np.ndarray:
        codec = _codec(tables)
        mark = mark_of(self.function)
        if mark.blocks:
            arrays = [_array(mark.blocks, codec, type, column) for type, column in zip(functor.params, args, strict=True)]
            return self._of_arrays(functor, arrays or [rows], rows, codec)
        if functor.stateful:
            return self._of_rows(functor, args, rows, codec)
        distinct, places = _distinct(args, rows)
        count = len(distinct[0]) if distinct else min(rows, 1)
        found = self._of_compiled(functor, distinct, count) if mark.compiled else None
        if found is None:
            found = self._of_rows(functor, distinct, count, codec)
        values: np.ndarray = found[places]
        return values

    def fold(self, functor: UserFunctor, init: np.ndarray, values: np.ndarray, numbers: np.ndarray, tables: Any) -> np.ndarray:
        codec = _codec(tables)
        groups = ascending(functor.params[1], values, numbers, len(init), codec)
        mark = mark_of(self.function)
        if mark.blocks:
            states = _array(mark.blocks, codec, functor.params[0], init)
            return self._of_arrays(functor, [states, *_grouped(mark.blocks, functor, groups, codec)], len(init), codec)
        found = self._folded_compiled(functor, init, groups) if mark.compiled else None
        return self._folded(functor, init, groups, codec) if found is None else found

    # ---------------------------------------------------------------------------------------------------------- by values

    def _of_rows(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int, codec: Codec) -> np.ndarray:
        columns = [codec.to_python(type, column) for type, column in zip(functor.params, args, strict=True)]
        given = list(zip(*columns, strict=True)) if columns else [()] * rows
        values = [self._value(functor, arguments) for arguments in given]
        return self._column(functor, values, given, codec)

    def _folded(self, functor: UserFunctor, init: np.ndarray, groups: Groups, codec: Codec) -> np.ndarray:
        states = codec.to_python(functor.params[0], init)
        values = codec.to_python(functor.params[1], groups.values)
        last: list[tuple[Any, ...]] = []
        for group, state in enumerate(states):
            arguments: tuple[Any, ...] = ()
            for value in values[groups.offsets[group] : groups.offsets[group + 1]]:
                arguments = (state, value)
                state = self._value(functor, arguments)
            states[group] = state
            last.append(arguments)
        return self._column(functor, states, last, codec)

    def _value(self, functor: UserFunctor, arguments: tuple[Any, ...]) -> Any:
        try:
            value = self.function(*arguments)
        except Exception as error:
            raise failed(functor, arguments, error) from error
        return value.item() if isinstance(value, np.generic) else value

    def _column(
        self, functor: UserFunctor, values: list[Any], given: Sequence[tuple[Any, ...]] | None, codec: Codec
    ) -> np.ndarray:
        def refuse(place: int, message: str) -> DlogError:
            return wrong_value(functor, message, None if given is None else given[place])

        return codec.column(functor.result, values, refuse)

    # ---------------------------------------------------------------------------------------------------------- by arrays

    def _of_arrays(self, functor: UserFunctor, arrays: Sequence[Any], rows: int, codec: Codec) -> np.ndarray:
        try:
            found = self.function(*arrays)
            found = found if mark_of(self.function).blocks == "arrow" else np.asarray(found)
        except Exception as error:
            raise failed(functor, None, error) from error
        if mark_of(self.function).blocks == "arrow":
            return _from_arrow(functor, found, rows, codec)
        if found.shape != (rows,):
            message = f"the functor `@{functor.name}` gives an array of shape {found.shape} for {rows} rows"
            raise DlogError(Diagnostic("functor-failed", message))
        wanted = DTYPES.get(functor.result.kind)
        if wanted is not None and found.dtype != object and np.can_cast(found.dtype, wanted, "safe"):
            return codec.column_of_numbers(functor.result, found.astype(wanted, copy=False))
        return self._column(functor, found.tolist(), None, codec)

    # ----------------------------------------------------------------------------------------------------------- compiled

    def _of_compiled(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int) -> np.ndarray | None:
        """The values by compiled code; None where it is called row by row: it cannot be compiled, has few rows, or failed, so
        that the mistake is found."""
        loop = self._loop("loop", loop_over, functor, rows)
        found = np.empty(rows, DTYPES.get(functor.result.kind, np.int64))
        return None if loop is None else _sound(loop, found, *map(np.ascontiguousarray, args))

    def _folded_compiled(self, functor: UserFunctor, init: np.ndarray, groups: Groups) -> np.ndarray | None:
        """The last states by compiled code; None as for `_of_compiled`."""
        fold = self._loop("fold", fold_over, functor, len(groups.values))
        if fold is None:
            return None
        dtype = DTYPES[functor.params[1].kind]
        values = np.ascontiguousarray(groups.values.astype(dtype, copy=False))
        return _sound(fold, init.astype(DTYPES[functor.result.kind]), values, groups.offsets)

    def _loop(
        self, name: str, compiled: Callable[[Function, Sequence[Any]], Function | None], functor: UserFunctor, rows: int
    ) -> Function | None:
        types = (*functor.params, functor.result)
        if rows < _COMPILED_FROM or any(t.kind not in NUMERIC or t.domain is not Domain.PLAIN for t in types):
            return None
        if name not in self._loops:
            self._loops[name] = compiled(self.function, [DTYPES[t.kind] for t in types])
        return self._loops[name]

    # ------------------------------------------------------------------------------------------------------------ pickling

    def __getstate__(self) -> dict[str, Any]:
        """As Spark's tasks get it: the function itself where it, or its module, has no name that others could import."""
        return {"function": _by_value(self.function), "_loops": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        function = state["function"]
        vars(self).update(state, function=pickle.loads(function) if isinstance(function, bytes) else function)


def _codec(tables: Any) -> Codec:
    return Codec(tables.program, tables.symbols, tables.records)


def _sound(loop: Function, found: np.ndarray, *args: np.ndarray) -> np.ndarray | None:
    """What compiled code makes of an array; None where it failed, or says NaN, where Python may raise."""
    try:
        loop(found, *args)
    except Exception:
        return None
    return found if found.dtype.kind != "f" or bool(np.isfinite(found).all()) else None


def _array(blocks: str, codec: Codec, type: Type, column: np.ndarray) -> Any:
    return codec.to_arrow(type, column) if blocks == "arrow" else codec.to_numpy(type, column)


def _grouped(blocks: str, functor: UserFunctor, groups: Groups, codec: Codec) -> list[Any]:
    """The values of all groups: Arrow's lists, or an array and where each group begins and ends in it."""
    values = _array(blocks, codec, functor.params[1], groups.values)
    if blocks != "arrow":
        return [values, groups.offsets]
    import pyarrow as pa

    return [pa.LargeListArray.from_arrays(pa.array(groups.offsets), values)]


def _from_arrow(functor: UserFunctor, found: Any, rows: int, codec: Codec) -> np.ndarray:
    import pyarrow as pa

    def refuse(place: int | None, message: str) -> DlogError:
        return wrong_value(functor, message, None)

    if not isinstance(found, pa.Array | pa.ChunkedArray):
        message = f"the functor `@{functor.name}` gives a value of type `{type(found).__name__}`, which is no Arrow array"
        raise DlogError(Diagnostic("functor-failed", message))
    if len(found) != rows:
        message = f"the functor `@{functor.name}` gives {len(found)} values for {rows} rows"
        raise DlogError(Diagnostic("functor-failed", message))
    chunked = found if isinstance(found, pa.ChunkedArray) else pa.chunked_array([found])
    return codec.column_from_arrow(functor.result, chunked, refuse)


def _by_value(function: Function) -> Function | bytes:
    try:
        from pyspark import cloudpickle
    except ImportError:
        return function
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is not None and module.__name__.startswith(LOADED):
        cloudpickle.register_pickle_by_value(module)
    pickled: bytes = cloudpickle.dumps(function)
    return pickled


def _distinct(args: Sequence[np.ndarray], rows: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The distinct arguments, and which of them each row has."""
    if not args:
        return [], np.zeros(rows, np.int64)
    words = np.stack([np.ascontiguousarray(a).view(np.int64) for a in args], axis=1)
    _, firsts, places = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return [a[firsts] for a in args], places.reshape(-1)
