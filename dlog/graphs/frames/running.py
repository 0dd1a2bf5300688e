"""Execution of programs on graphs in Spark: DataFrames in, relations that stay with Spark out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlog.dataclass import dataclass
from dlog.graphs.library import Program

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dlog.engine.ir.rules import Program as Typed
    from dlog.engine.ir.rules import Type
    from dlog.engine.spark.session_engine import SharedWorkers
    from dlog.spark import SparkResult

Facts = Mapping[str, Any]
"""DataFrames, or what the driver has, as Arrow tables."""


@dataclass(frozen=True, slots=True)
class SparkRunning:
    """The engine of a graph's programs. `shared` are resident workers, which hold the rows of all sessions."""

    spark: SparkSession
    shared: SharedWorkers | None = None

    def run(self, program: Program, facts: Facts, wanted: Sequence[str]) -> SparkResult:
        """The relations `wanted` of a program that has been run on `facts`; nothing else is computed."""
        return self.run_source(program.source, facts, wanted, program.macros)

    def run_beside(self, program: Program, rules: str, facts: Facts, wanted: Sequence[str], **options: Any) -> SparkResult:
        """The same with rules beside those of the program."""
        return self.run_source(f"{program.text}{rules}" if rules else program.source, facts, wanted, program.macros, **options)

    def run_source(
        self, source: Path | str, facts: Facts, wanted: Sequence[str], macros: Sequence[str] = (), **options: Any
    ) -> SparkResult:
        """The same with a program file or a program's text."""
        from dlog.engine.ir.rules import Io
        from dlog.engine.spark.application import need_context
        from dlog.spark import run_on_rows

        need_context(self.spark)
        typed = _compiled(source, tuple(macros))
        shown = tuple(io for io in typed.io if io.action == "input" or io.relation in wanted)
        missing = [name for name in wanted if all(io.relation != name for io in shown)]
        shown += tuple(Io("output", name) for name in missing)
        return run_on_rows(replace(typed, io=shown), facts, self.spark, None, **options)

    def session(self, program: Program, facts: Facts) -> Any:
        """A `dlog.Session` on a program and its first facts."""
        from dlog.sessions import session

        options: dict[str, Any] = {"macros": program.macros, "spark": self.shared or self.spark}
        return session(program.source, facts, engine="spark", **options)


def attributes(program: Program, relation: str) -> tuple[tuple[str, Type], ...]:
    """The names and types of a relation's columns."""
    return _compiled(program.source, program.macros).relations[relation].attributes


@lru_cache(32)
def _compiled(source: Path | str, macros: tuple[str, ...]) -> Typed:
    """A program that reads those of the library: they do not change."""
    from dlog.pipeline import compile_program

    return compile_program(source, (), macros)


@dataclass(frozen=True, slots=True)
class Answer:
    """Rows of numbers, or `named` with ids for those of vertices; `owners` are the runs whose rows they are, `count` how many
    if that is known."""

    rows: DataFrame
    owners: tuple[Any, ...] = ()
    count: int | None = None
    named: bool = False

    def release(self) -> None:
        for owner in self.owners:
            owner.release()
