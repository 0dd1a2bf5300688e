"""Rows that a program is given by the names of their relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from dlog import arguments
from dlog.codec import Codec, Row
from dlog.engine.ir import rules
from dlog.engine.runtime.static.executor import Executor
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.suggest import closest
from dlog.pipeline import stage
from dlog.rows import table_of

Facts: TypeAlias = Iterable[Row] | Any
"""Rows as Python tuples, a dict of columns, an array of two dimensions, or whatever speaks Arrow: a table of pyarrow, pandas,
polars, DuckDB ... (`dlog.rows`)."""


def load_facts(executor: Executor, program: rules.Program, facts: Mapping[str, Facts]) -> None:
    """Loads rows by relation name."""
    codec = Codec(program, executor.symbols, executor.records)
    for name, rows in facts.items():
        with stage(f"loading {name}"):
            executor.load(name, table_of(program.relations[name], codec, rows))


def check_names(program: rules.Program, facts: Mapping[str, Facts]) -> list[str]:
    """The relations whose rows are given. Raises DlogError for those that the program does not declare, all together."""
    arguments.by_relation("facts", facts, "a folder, or rows by the name of their relation")
    unknown = []
    for name in facts:
        if name not in program.relations:
            close = closest(name, program.relations) if isinstance(name, str) else None
            notes = () if close is None else (f"did you mean `{close}`?",)
            unknown.append(Diagnostic("unknown-relation", f"facts are given for `{name}`, which is not declared", notes=notes))
    if unknown:
        raise DlogError(unknown)
    return list(facts)
