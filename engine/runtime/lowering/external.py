"""Instructions that Python evaluates on a block: those on strings that kernels/values/texts.py could not finish, counters,
table functions, and functors of users."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from dlog.engine.ir.rules import AUTOINC, BlockFunction, UserFunctor, printed_types
from dlog.engine.runtime.lowering.lowered import ExternalCall
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.values.backtracking import within
from dlog.engine.values.patterns import wanted_verdict
from dlog.grammar.diagnostics import Diagnostic, DlogError


def evaluate(call: ExternalCall, args: Sequence[np.ndarray], rows: int, catalog: Catalog) -> np.ndarray:
    """The call's value for each row of the block; comparisons give 1 or 0."""
    if call.op == AUTOINC:
        return catalog.next_numbers(rows)
    if (types := printed_types(call.op)) is not None:
        return catalog.printer.write(types, args, rows, catalog)
    if call.op.startswith("@"):
        return call_functor(call.op, args, rows, catalog)
    room = max(0, catalog.memory.limit - catalog.memory.used)
    with within(room) if catalog.memory.limited else nullcontext():
        return _evaluate_builtin(call, args, rows, catalog, room)


def _evaluate_builtin(call: ExternalCall, args: Sequence[np.ndarray], rows: int, catalog: Catalog, room: int) -> np.ndarray:
    if call.produced is not None:
        from dlog.engine.values.generated import generated

        try:
            call.produced.take(*generated(call.op, args, call.kinds, room, catalog.symbols))
        except MemoryError:
            raise catalog.memory.exhausted() from None
        return np.zeros(rows, np.int64)
    from dlog.engine.values import functions  # needed by programs with string functors only

    symbols = catalog.symbols
    if call.verdicts is not None:
        found = call.verdicts.of(int(args[0][0]), args[1], symbols)
        holds: np.ndarray = found == wanted_verdict(call.op == "match")
        return holds.astype(np.int64)
    if call.result is None:
        return functions.compare(call.op, args[0], args[1], symbols).astype(np.int64)
    return functions.evaluate(call.op, args, call.kinds, symbols)


def call_functor(op: str, args: Sequence[np.ndarray], rows: int, catalog: Catalog) -> np.ndarray:
    """The values of a user's functor, `@f`."""
    functor, function = function_of(op[1:], catalog)
    values: np.ndarray = function(functor, args, rows, catalog)
    return values


def function_of(name: str, catalog: Catalog) -> tuple[UserFunctor, BlockFunction]:
    """A user's functor, and the function that there must be for it."""
    functor = catalog.program.functors[name]
    if functor.function is None:
        raise DlogError(Diagnostic("missing-functor", f"the functor `@{name}` has no function"))
    return functor, functor.function
