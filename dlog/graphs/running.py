"""Execution of graph programs: the one seam between graphs and engines.

A graph is relations of numbers by the time it comes here. An engine takes a program of the library and those relations and
gives back relations; everything else about graphs is the same whatever the engine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dlog.dataclass import dataclass
from dlog.graphs.library import Program
from dlog.graphs.mistakes import mistake

if TYPE_CHECKING:
    from dlog.sessions.text import Text

Columns = tuple[NDArray[Any], ...]
"""A relation: one array for each column, all of one length."""
Relations = Mapping[str, Columns]


@dataclass(frozen=True, slots=True)
class Running:
    """The engine of a graph's programs, and its threads (None: one per core). With Spark, the driver hands over a graph of
    arrays and receives the answers; graphs in Spark are run by `frames.running`."""

    engine: str = "embedded"
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.engine not in ("embedded", "spark"):
            message = f"graphs cannot be analysed by the engine {self.engine!r}"
            raise mistake("unknown-engine", message, "there are `embedded` and `spark`")

    def run(self, program: Program, facts: Relations, wanted: Sequence[str]) -> dict[str, Columns]:
        """The relations `wanted` of a program that has been run on `facts`."""
        return self.run_source(program.source, facts, wanted, program.macros)

    def run_source(
        self, source: Path | str, facts: Relations, wanted: Sequence[str], macros: Sequence[str] = ()
    ) -> dict[str, Columns]:
        """The same with a program file or a program's text."""
        from dlog.api import run

        options: dict[str, Any] = {"threads": self.threads, "macros": macros}
        result = run(source, as_facts(facts), engine=self.engine, **options)
        return {name: as_columns(result[name].to_arrow()) for name in wanted}

    def maintained(self, program: Program) -> Text | None:
        """The text of a program if all of its rules can be maintained in this process."""
        from dlog.engine.runtime.incremental.engines.choice import is_incremental
        from dlog.pipeline import readable
        from dlog.sessions.text import read_text

        if self.engine != "embedded":
            return None
        text = read_text(program.source, (), program.macros)
        return text if is_incremental(readable(text.compiled())) else None

    def session(self, program: Program, facts: Relations) -> Any:
        """A `dlog.Session` on a program and its first facts."""
        return self.session_on(program.source, facts, program.macros)

    def session_on(self, source: Path | str, facts: Relations, macros: Sequence[str] = ()) -> Any:
        """The same with a program file or a program's text."""
        from dlog.sessions import session

        options: dict[str, Any] = {"threads": self.threads, "macros": macros}
        return session(source, as_facts(facts), engine=self.engine, **options)


def as_facts(relations: Relations) -> dict[str, pa.Table]:
    """Relations in the form that loads fastest."""
    return {name: as_table(columns) for name, columns in relations.items()}


def as_table(columns: Columns) -> pa.Table:
    """A relation as an Arrow table, without a copy."""
    return pa.table({f"c{i}": pa.array(np.ascontiguousarray(column)) for i, column in enumerate(columns)})


def as_columns(table: pa.Table) -> Columns:
    """A relation from an Arrow table."""
    return tuple(np.asarray(column.to_numpy()) for column in table.columns)
