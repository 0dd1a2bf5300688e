"""Helpers: a program text to its rules after passes, and typed programs to the rows of their relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dlog.engine.ir.printing import explicit_rule
from dlog.engine.ir.rules import Program
from dlog.engine.optimize import Pass
from tests.engine.compile.rules_of import compiled

Rows = dict[str, list[str]]

EDGE = ".decl e(x: number, y: number) .decl f(x: number) .decl p(from: number, to: number) .decl q(x: number) "
LEFT = "p(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z). "
RIGHT = "p(x, y) :- e(x, y). p(x, z) :- e(x, y), p(y, z). "


def shown(program: Program) -> list[str]:
    """All rules in the order of their strata."""
    return [explicit_rule(rule) for stratum in program.strata for rule in stratum.rules]


def after(run: Pass, text: str, *observed: str) -> list[str]:
    """The rules of a program after a pass."""
    return shown(run(compiled(text), frozenset(observed)))


def unchanged(run: Pass, text: str, *observed: str) -> bool:
    program = compiled(text)
    return run(program, frozenset(observed)) == program


def execute(program: Program, facts: Mapping[str, Iterable[tuple[Any, ...]]]) -> dict[str, set[tuple[Any, ...]]]:
    """Every declared relation as the executor has it, whatever its rows are worth."""
    from dlog.api import Result
    from dlog.engine.runtime.static.executor import Executor
    from dlog.facts import load_facts

    executor = Executor(program)
    load_facts(executor, program, facts)
    executor.run()
    return {name: set(relation) for name, relation in Result(program, executor).items()}


def written(relations: Mapping[str, set[tuple[Any, ...]]], names: Iterable[str]) -> Rows:
    """Rows as text, sorted: equal only if the values have the same types."""
    return {name: sorted(map(repr, relations[name])) for name in names}
