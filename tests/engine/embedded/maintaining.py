"""Engines of small programs over an input `e(x: number, y: number)`, as tests drive and read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.embedded.maintained import Maintained
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source

EDGES = ".decl e(x: number, y: number)\n.input e\n"
COUNTS = EDGES + ".decl n(x: number, c: number)\n.output n\nn(x, c) :- e(x, _), c = count : { e(x, _) }.\n"


@contextmanager
def engine_of(text: str) -> Iterator[Maintained]:
    engine = Maintained(compile_source(Source(text)))
    try:
        yield engine
    finally:
        engine.close()


def commit(engine: Maintained, *changes: tuple[int, int, int, int]) -> None:
    """Changes (round, diff, x, y); rounds are counted from the next one on."""
    rounds, diffs, x, y = (np.array(column, np.int64) for column in zip(*changes, strict=True))
    engine.commit({"e": Updates((x, y), diffs, rounds + engine.round + 1)})


def rows(engine: Maintained, relation: str = "n") -> set[tuple[float, ...]]:
    return set(zip(*(column.tolist() for column in engine.table(relation).columns), strict=True))
