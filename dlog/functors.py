"""Functors of users: Python functions for what a program declares with `.functor`.

    @dlog.functor
    def half(x: int) -> int: ...          called for each row, and compiled where Numba can

    @dlog.functor(blocks=True)
    def halves(x: numpy.ndarray): ...     called with a column of many rows at once

A function that is not declared stateful gives the same value for the same arguments: it is called once for rows that agree in
them, and in whatever order. Records come and go as tuples, nil as None. What goes wrong inside of a function is the user's
mistake, and is told with the arguments and the place.
"""

from __future__ import annotations

import importlib.util
import pickle
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, TracebackType
from typing import Any, Final, TypeAlias, overload

import numpy as np

from dlog.engine.ir.kinds import NUMERIC
from dlog.engine.ir.rules import Program, UserFunctor
from dlog.engine.ir.traversal import functors as functors_of
from dlog.engine.kernels.core.compiler import import_numba
from dlog.engine.values.table import DTYPES
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.values import Codec, value_preview

Function: TypeAlias = Callable[..., Any]
Given: TypeAlias = Mapping[str, Function] | ModuleType | Iterable[ModuleType] | None
"""Functions by the names of functors, or modules that have them."""

_MARK: Final = "__dlog_functor__"
_LOADED: Final = "dlog functors of "
"""Begins the names of the modules that users name, which nobody can import."""
_COMPILED_FROM: Final = 512
"""Rows of a block from which on a function is compiled: fewer are sooner called."""


@overload
def functor(function: Function, /) -> Function: ...
@overload
def functor(*, blocks: bool = False, compiled: bool = True) -> Callable[[Function], Function]: ...
def functor(function: Function | None = None, /, *, blocks: bool = False, compiled: bool = True) -> Any:
    """Marks a function as one for a functor.

    Parameters
    ----------
    blocks
        It takes NumPy arrays, one for each parameter, and returns one with a value for each row: int64, uint64 and float64, or
        objects for symbols and records.
    compiled
        Whether Numba may compile it, where its parameters, at most three, and its result are numbers: then integers are words
        of 64 bits, and what it computes in between wraps around as they do.

    >>> import dlog
    >>> @dlog.functor
    ... def half(x):
    ...     return x // 2
    >>> text = '''
    ... .functor half(x: number): number
    ... .decl r(x: number)
    ... r(@half(7)).
    ... '''
    >>> list(dlog.run(text, functors={"half": half})["r"])
    [(3,)]
    """

    def mark(marked: Function) -> Function:
        setattr(marked, _MARK, (blocks, compiled and not blocks))
        return marked

    return mark if function is None else mark(function)


def linked(program: Program, given: Given) -> Program:
    """The program with functions for the functors that its rules call. Raises DlogError for those that there are none for."""
    if not program.functors:
        return program
    found = {name: _found(name, given) for name in program.functors}
    called = {f.op[1:]: f for s in program.strata for rule in s.rules for f in functors_of(rule) if f.op.startswith("@")}
    missing = []
    for name in called.keys() & {n for n, function in found.items() if function is None}:
        notes = ("name the module that has it with `-l MODULE` (and its folder with `-L DIR`), or functors={...} in Python",)
        label = Label(program.functors[name].span, "declared here")
        message = f"there is no function for the functor `@{name}`"
        missing.append(Diagnostic("missing-functor", message, (label,), notes, program.source))
    if missing:
        raise DlogError(sorted(missing, key=lambda d: d.message))
    made = {n: replace(f, function=_Called(g)) for n, f in program.functors.items() if (g := found[n]) is not None}
    return replace(program, functors={**program.functors, **made})


def functions_of(program: Program) -> dict[str, Function]:
    """The functions that a program has been linked with."""
    return {name: f.function.function for name, f in program.functors.items() if isinstance(f.function, _Called)}


def _found(name: str, given: Given) -> Function | None:
    if given is None:
        return None
    if isinstance(given, Mapping):
        function = given.get(name)
    else:
        modules = [given] if isinstance(given, ModuleType) else list(given)
        function = next((f for m in modules if (f := getattr(m, name, None)) is not None), None)
    if function is not None and not callable(function):
        raise DlogError(Diagnostic("bad-argument", f"what there is for the functor `@{name}` is no function"))
    return function


def load_modules(names: Sequence[str], folders: Sequence[str]) -> list[ModuleType]:
    """The modules that the user has named, from files `NAME.py` in the first folder that has one. Nothing else is looked for:
    neither their folder nor the current one can be imported from."""
    return [_loaded(name, folders or (".",)) for name in names]


class _Source(SourceFileLoader):
    """Runs what the file says, and not what `__pycache__` beside it has for it, which somebody else may have put there."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _loaded(name: str, folders: Sequence[str]) -> ModuleType:
    file = next((f for folder in folders if (f := Path(folder) / f"{name.removesuffix('.py')}.py").is_file()), None)
    if file is None:
        notes = (f"it is looked for in {', '.join(folders)}: name its folder with -L",)
        raise DlogError(Diagnostic("missing-file", f"there is no module {name.removesuffix('.py')}.py", notes=notes))
    name = f"{_LOADED}{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file, loader=_Source(name, str(file)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # for what looks itself up: dataclasses do
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[spec.name]
        where = _place(error.__traceback__, str(file))
        if isinstance(error, SyntaxError):
            where = f"{error.filename}, line {error.lineno}"
        message = f"the module {file} cannot be loaded: {type(error).__name__}: {error}"
        raise DlogError(Diagnostic("functor-failed", message, notes=(f"in {where}",))) from error
    return module


# --------------------------------------------------------------------------------------------------------------------- calls


@dataclass(eq=False)
class _Called:
    """A user's function, on blocks: see `rules.BlockFunction`."""

    function: Function
    _compiled: Any = field(default=None, repr=False)
    _may_compile: bool = True

    def __call__(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int, tables: Any) -> np.ndarray:
        codec = Codec(tables.program, tables.symbols, tables.records)
        blocks, compiled = getattr(self.function, _MARK, (False, False))
        if blocks:
            return self._of_arrays(functor, args, rows, codec)
        if functor.stateful:
            return self._of_rows(functor, args, rows, codec)
        distinct, places = _distinct(args, rows)
        count = len(distinct[0]) if distinct else min(rows, 1)
        made = self._of_compiled(functor, distinct, count) if compiled else None
        if made is None:
            made = self._of_rows(functor, distinct, count, codec)
        values: np.ndarray = made[places]
        return values

    def _of_rows(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int, codec: Codec) -> np.ndarray:
        columns = [codec.to_python(type, column) for type, column in zip(functor.params, args, strict=True)]
        given = list(zip(*columns, strict=True)) if columns else [()] * rows
        values = []
        for arguments in given:
            try:
                value = self.function(*arguments)
            except Exception as error:
                raise _failed(functor, arguments, error) from error
            values.append(value.item() if isinstance(value, np.generic) else value)
        return self._column(functor, values, given, codec)

    def _column(
        self, functor: UserFunctor, values: list[Any], given: Sequence[tuple[Any, ...]] | None, codec: Codec
    ) -> np.ndarray:
        def refuse(place: int, message: str) -> DlogError:
            text = f"the functor `@{functor.name}` gives what it must not: {message}"
            notes = () if given is None else (f"of {_call(functor, given[place])}",)
            return DlogError(Diagnostic("functor-failed", text, notes=notes))

        return codec.column(functor.result, values, refuse)

    def _of_arrays(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int, codec: Codec) -> np.ndarray:
        columns = [codec.to_numpy(type, column) for type, column in zip(functor.params, args, strict=True)]
        try:
            made = np.asarray(self.function(*columns) if columns else self.function(rows))
        except Exception as error:
            raise _failed(functor, None, error) from error
        if made.shape != (rows,):
            message = f"the functor `@{functor.name}` gives an array of shape {made.shape} for {rows} rows"
            raise DlogError(Diagnostic("functor-failed", message))
        wanted = DTYPES.get(functor.result.kind)
        if wanted is not None and made.dtype != object and np.can_cast(made.dtype, wanted, "safe"):
            return codec.column_of_numbers(functor.result, made.astype(wanted, copy=False))
        return self._column(functor, made.tolist(), None, codec)

    def _of_compiled(self, functor: UserFunctor, args: Sequence[np.ndarray], rows: int) -> np.ndarray | None:
        """The values by compiled code; None where it is called row by row: it cannot be compiled, has few rows, or failed, so
        that the mistake is found."""
        types = (*functor.params, functor.result)
        if not self._may_compile or rows < _COMPILED_FROM or any(t.kind not in NUMERIC for t in types):
            return None
        if self._compiled is None:
            self._compiled = _loop_over(self.function, [DTYPES[t.kind] for t in types])
            self._may_compile = self._compiled is not None
        made = np.empty(rows, DTYPES[functor.result.kind])
        try:
            if self._compiled is not None:
                self._compiled(made, *map(np.ascontiguousarray, args))
        except Exception:
            return None
        is_sound = self._compiled is not None and (made.dtype.kind != "f" or bool(np.isfinite(made).all()))
        return made if is_sound else None  # where Python raises, what is compiled may say NaN

    def __getstate__(self) -> dict[str, Any]:
        """As Spark's tasks get it: the function itself where it, or its module, has no name that others could import."""
        return {"function": _by_value(self.function), "_compiled": None, "_may_compile": self._may_compile}

    def __setstate__(self, state: dict[str, Any]) -> None:
        function = state["function"]
        vars(self).update(state, function=pickle.loads(function) if isinstance(function, bytes) else function)


def _by_value(function: Function) -> Function | bytes:
    try:
        from pyspark import cloudpickle
    except ImportError:
        return function
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    if module is not None and module.__name__.startswith(_LOADED):
        cloudpickle.register_pickle_by_value(module)
    made: bytes = cloudpickle.dumps(function)
    return made


def _loop_over(function: Function, dtypes: Sequence[Any]) -> Function | None:
    """Compiled code that fills an array with the values of a function of numbers; None where Numba cannot compile it, or its
    result has another type. The types are those of the parameters, then of the result."""
    numba = import_numba()
    if not 1 < len(dtypes) <= len(_LOOPS) + 1:
        return None
    *args, result = (numba.from_dtype(np.dtype(d)) for d in dtypes)
    try:
        inner: Any = numba.njit(boundscheck=True)(function)  # without it arrays are read beyond their ends
        inner.compile(tuple(args))
        if inner.overloads[tuple(args)].signature.return_type != result:
            return None
        loop: Function = numba.njit(_LOOPS[len(args) - 1](inner))
        return loop
    except Exception:  # whatever Numba says of what it does not know
        return None


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


def _distinct(args: Sequence[np.ndarray], rows: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The distinct arguments, and which of them each row has."""
    if not args:
        return [], np.zeros(rows, np.int64)
    words = np.stack([np.ascontiguousarray(a).view(np.int64) for a in args], axis=1)
    _, firsts, places = np.unique(words, axis=0, return_index=True, return_inverse=True)
    return [a[firsts] for a in args], places.reshape(-1)


def _failed(functor: UserFunctor, arguments: tuple[Any, ...] | None, error: Exception) -> DlogError:
    """The user's mistake: which functor, which arguments, what Python says, and where."""
    message = f"the functor `@{functor.name}` failed: {type(error).__name__}: {error}"
    what = "a block of rows" if arguments is None else _call(functor, arguments)
    notes = (f"it was called for {what}", f"in {_place(error.__traceback__, '')}")
    return DlogError(Diagnostic("functor-failed", message, notes=notes))


def _call(functor: UserFunctor, arguments: tuple[Any, ...]) -> str:
    return f"@{functor.name}({', '.join(map(value_preview, arguments))})"


def _place(trace: TracebackType | None, otherwise: str) -> str:
    frames = [f for f in traceback.extract_tb(trace) if f.filename != __file__ and not f.filename.startswith("<frozen")]
    if not frames:
        return otherwise or "the call itself"
    last = frames[-1]
    return f"{last.filename}, line {last.lineno}: {last.line}"
