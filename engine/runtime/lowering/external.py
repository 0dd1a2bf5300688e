"""Instructions that Python evaluates on a block: those on strings that kernels/values/texts.py could not finish."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dlog.engine.runtime.lowering.lower import ExternalCall
from dlog.engine.values.patterns import wanted_verdict
from dlog.engine.values.symbols import SymbolTable


def evaluate(call: ExternalCall, args: Sequence[np.ndarray], symbols: SymbolTable) -> np.ndarray:
    """The call's value for each row of the block; comparisons give 1 or 0."""
    from dlog.engine.values import functions  # needed by programs with string functors only

    if call.verdicts is not None:
        found = call.verdicts.of(int(args[0][0]), args[1], symbols)
        holds: np.ndarray = found == wanted_verdict(call.op == "match")
        return holds.astype(np.int64)
    if call.result is None:
        return functions.compare(call.op, args[0], args[1], symbols).astype(np.int64)
    return functions.evaluate(call.op, args, call.kinds, symbols)
