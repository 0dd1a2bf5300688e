"""Errors of compiled code as errors for users."""

from __future__ import annotations

from dataclasses import replace

from dlog.engine.ir.rules import Program
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Error
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.static.worker import VALUES
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.native import Struct
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError, Label


def mistake(control: Struct, memory: Memory, flow: Dataflow, program: Program, iterations: int | None) -> Exception:
    """The kernels' error as one for users; it is cleared. `iterations` is the limit of them."""
    code, control[L.control.error] = control[L.control.error], 0
    if code == Error.MEMORY:
        return memory.exhausted()
    if code == Error.ROWS:
        return DlogError(Diagnostic("too-many-rows", "a relation would have more than 2147483646 rows"))
    if code in VALUES:
        return at_rule(control, flow, program, DlogError(Diagnostic(*VALUES[code])))
    if code == Error.ITERATIONS:
        return DlogError(Diagnostic("too-many-iterations", f"a stratum needs more than {iterations} iterations"))
    return InternalError("evaluation", f"kernel error {code}")


def at_rule(control: Struct, flow: Dataflow, program: Program, error: DlogError) -> DlogError:
    """A mistake, shown at the rule that was being evaluated where it has no place yet."""
    found = flow.rule_of(control[L.control.run_path])
    if found is None or found[1] < 0 or any(d.labels or d.place for d in error.diagnostics):
        return error
    stratum, rule = found
    label = Label(stratum.rules[rule].span, "while evaluating this rule")
    return DlogError([replace(d, labels=(label,), source=program.source) for d in error.diagnostics])
