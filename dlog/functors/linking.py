"""Functions for the functors that a program calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import ModuleType
from typing import TypeAlias

from dlog.engine.ir.aggregates import functor_of
from dlog.engine.ir.rules import Program
from dlog.engine.ir.traversal import functors as functors_of_rule
from dlog.engine.ir.traversal import user_aggregates
from dlog.functors.calls import Called
from dlog.functors.marks import Function, is_marked
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label

FunctorSource: TypeAlias = Mapping[str, Function] | ModuleType | Iterable[ModuleType] | None
"""Functions by the names of functors, or modules that have them."""


def linked(program: Program, given: FunctorSource) -> Program:
    """The program with functions for the functors that its rules call. Raises DlogError for those that there are none for."""
    if not program.functors:
        return program
    found = {name: _look_up(name, given) for name in program.functors}
    missing = []
    for name in set(_called(program)) & {n for n, function in found.items() if function is None}:
        notes = ("name the module that has it with `-l MODULE` (and its folder with `-L DIR`), or functors={...} in Python",)
        if isinstance(given, MarkedFunctions):
            notes = ("the program of a state calls functions of modules that are marked with `@dlog.functor`, and no others",)
        label = Label(program.functors[name].span, "declared here")
        message = f"there is no function for the functor `@{name}`"
        missing.append(Diagnostic("missing-functor", message, (label,), notes, program.source))
    if missing:
        raise DlogError(sorted(missing, key=lambda d: d.message))
    functions = {n: replace(f, function=Called(g)) for n, f in program.functors.items() if (g := found[n]) is not None}
    return replace(program, functors={**program.functors, **functions})


def _called(program: Program) -> Iterator[str]:
    """The names of the functors that rules call, or aggregate with."""
    for rule in (rule for stratum in program.strata for rule in stratum.rules):
        yield from (f.op[1:] for f in functors_of_rule(rule) if f.op.startswith("@"))
        yield from (functor_of(aggregate.op) for aggregate in user_aggregates(rule.body))


def functions_of(program: Program) -> dict[str, Function]:
    """The functions that a program has been linked with."""
    return {name: f.function.function for name, f in program.functors.items() if isinstance(f.function, Called)}


class MarkedFunctions(dict[str, Function]):
    """Those of modules that are marked as functors."""


def for_stored_program(given: FunctorSource) -> FunctorSource:
    """What a program can call that comes from the folder of a state, where somebody else may have written it: of modules only
    the functions that are marked, and none that the modules have or import for themselves."""
    if given is None or isinstance(given, Mapping):
        return given
    modules = [given] if isinstance(given, ModuleType) else list(given)
    return MarkedFunctions((n, f) for module in reversed(modules) for n, f in vars(module).items() if is_marked(f))


def _look_up(name: str, given: FunctorSource) -> Function | None:
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
