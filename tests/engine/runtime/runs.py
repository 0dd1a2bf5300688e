"""Programs run through the executor, and the ways in which it can be made to take its rarer paths on small data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from dlog.codec import Codec
from dlog.engine.plan.joins import computed as plan_computed
from dlog.engine.plan.static import restrict as plan_restrict
from dlog.engine.runtime.lowering import lower_runs, sweeping
from dlog.engine.runtime.static import cycle, scope, thread_pool, worker
from dlog.engine.runtime.static.executor import Executor
from dlog.engine.runtime.storage import row_set
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.pipeline import compile_program

Row = tuple[Any, ...]
Rows = Mapping[str, Iterable[Row]]


def executor_of(text: str, facts: Rows | None = None, **options: Any) -> Executor:
    """An executor of the program with its facts loaded, not run yet."""
    executor = Executor(compile_program(text + "\n"), **options)
    for name, rows in (facts or {}).items():
        load(executor, name, rows)
    return executor


def load(executor: Executor, name: str, rows: Iterable[Row]) -> None:
    executor.load(name, codec(executor).table(executor.program.relations[name], rows))


def codec(executor: Executor) -> Codec:
    return Codec(executor.program, executor.symbols, executor.records)


def rows_of(executor: Executor, name: str) -> list[Row]:
    """A relation's rows as Python values, as often as they are stored."""
    table = executor.table(name)
    types = [type for _, type in executor.program.relations[name].attributes]
    columns = [codec(executor).to_python(type, column) for type, column in zip(types, table.columns, strict=True)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.rows


def ran(text: str, facts: Rows | None = None, **options: Any) -> dict[str, list[Row]]:
    """Every relation after a run, sorted."""
    executor = executor_of(text, facts, **options)
    executor.run()
    return {name: sorted(rows_of(executor, name)) for name in executor.program.relations}


@contextmanager
def variant(
    hashed: bool = False,
    bulk: bool = False,
    yielding: bool = False,
    computed: bool = False,
    restricted: bool = False,
    swept: bool = False,
    paged: bool = False,
) -> Iterator[None]:
    """`hashed`: no bitmaps and no dense maps. `bulk`: any work is worth several threads. `yielding`: kernels return to Python
    after every block. `computed`: no relation is too small for a temporary of the values computed from its rows. `restricted`:
    arrangements hold only what leads on, however much that is. `swept`: every last join is swept, few changes are sorted to
    runs, and rows of bitmaps begin with a word. `paged`: bitmaps have pages."""
    with pytest.MonkeyPatch.context() as patch:
        if hashed:
            for limit in ("BITS_LIMIT", "PAGES_LIMIT", "DENSE_LIMIT"):
                patch.setattr(row_set, limit, 0)
            patch.setattr(StoredArrangement, "_dense_limit", lambda self: 0)
        if paged:
            patch.setattr(row_set, "BITS_LIMIT", 0)
        if swept:
            patch.setattr(lower_runs, "RUNS_LEAST", 1)
            patch.setattr(sweeping, "MIN_MATCHES_PER_ROW", 0.0)
            patch.setattr(row_set, "MIN_WORD_VALUES", 1)
        if bulk:
            patch.setattr(thread_pool, "BULK_ROWS", 1)
            patch.setattr(scope, "BULK_ROWS", 1)
            patch.setattr(cycle, "BULK_ROWS", 1)
            patch.setattr(scope.ScopeRun, "_sharing_pays", lambda self, paths: True)
            patch.setattr(thread_pool.ThreadPool, "pays", lambda self, paths, storage, times=1.0: True)
            patch.setattr(worker, "PROBE", 1)
            patch.setattr(thread_pool, "WAKE_SECONDS", 0.001)
        if yielding:
            patch.setattr(worker, "MAX_ROWS_PER_CALL", 1)
        if computed:
            patch.setattr(plan_computed, "MIN_INDEXED_ROWS", 0.0)
        if restricted:
            patch.setattr(plan_restrict, "MAX_MATCHES_PER_ROW", 1e300)
        yield
