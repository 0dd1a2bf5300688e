"""The compiler on one screen: text -> syntax tree -> components expanded -> typed program
-> strata. Every stage can be stopped at and printed.

Nothing here imports numpy, numba or pyarrow: checking a program is quick.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from dlog.engine.compile.check import Checked, check
from dlog.engine.compile.components import expand
from dlog.engine.compile.resolve import resolve
from dlog.engine.compile.strata.stratify import Remarks, stratify
from dlog.engine.garbage import uncollected
from dlog.engine.ir.rules import Program
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Source

Stage: TypeAlias = Literal["ast", "typed", "strata"]
STAGES: Final[tuple[Stage, ...]] = ("ast", "typed", "strata")


@uncollected
def compile_source(source: Source, on_warnings: Callable[[list[Diagnostic]], None] | None = None) -> Program:
    """The typed, normalized, stratified program; raises DlogError with all mistakes of the first stage that has some.
    `on_warnings` hears what is right and may not be meant, once, even if that is nothing."""
    expansion = expand(parse(source), source)
    remarks: Remarks = []
    with expansion.reported():
        program = stratify(check_tree(expansion.program, source), remarks)
    if on_warnings is not None:
        from dlog.engine.compile.warnings import find_warnings

        on_warnings(find_warnings(expansion, source, remarks))
    return program


@uncollected
def parse(source: Source) -> syntax.Program:
    from dlog.grammar.parser import parse as parse_text

    return parse_text(source)


@uncollected
def check_tree(tree: syntax.Program, source: Source) -> Checked:
    """A syntax tree without components to typed rules: names are resolved, clauses checked and normalized."""
    return check(resolve(tree, source))


def compile_until(source: Source, stage: Stage) -> syntax.Program | Checked | Program:
    """The program after a stage."""
    tree = parse(source)
    if stage == "ast":
        return tree
    expansion = expand(tree, source)
    with expansion.reported():
        checked = check_tree(expansion.program, source)
        return checked if stage == "typed" else stratify(checked)


def print_stage(source: Source, stage: Stage) -> str:
    """The result of a stage as text for people."""
    from dlog.engine.compile import typed_text

    result = compile_until(source, stage)
    match result:
        case Program():
            return typed_text.show(result)
        case Checked():
            return typed_text.show_checked(result)
        case syntax.Program():
            from dlog.grammar.unparse import format_program

            return format_program(result)
