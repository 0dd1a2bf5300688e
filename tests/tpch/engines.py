"""What answers the queries after each round: dlog, which maintains, and DuckDB, which computes them anew."""

from __future__ import annotations

import math
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa

import dlog
from tests.tpch.data import KEYS, TABLES, Refresh, Tables, numbers
from tests.tpch.queries import Query


class Maintained:
    """A session with the program of a query."""

    def __init__(self, query: Query, first: Tables, threads: int | None = None) -> None:
        self.query = query
        self.session = dlog.session(query.program, threads=threads)
        self.inputs = set(query.inputs)
        for name in self.inputs:
            self.session.insert(name, first[name])
        self.session.commit()

    def change(self, inserted: Tables, deleted: Tables) -> None:
        for name in self.inputs & set(KEYS):
            self.session.insert(name, inserted[name])
            self.session.remove(name, deleted[name])
        self.session.commit()

    def rows(self) -> pa.Table:
        return self.session["answer"].to_arrow()

    def presented(self) -> pa.Table:
        return self.query.presented(self.rows())

    def __enter__(self) -> Maintained:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.session.close()


class Recomputed:
    """A database in memory with all tables, whose orders follow the rounds."""

    def __init__(self, folder: Path, refresh: Refresh, threads: int | None = None) -> None:
        import duckdb

        self.database = duckdb.connect(config={} if threads is None else {"threads": threads})
        plan = pa.table({"key": refresh.keys, "comes": refresh.comes, "goes": refresh.goes})
        self.database.register("refresh", plan)
        for name in TABLES:
            file = f"'{folder / name}.parquet'"
            if key := KEYS.get(name):
                joined = f"from {file} t join refresh on key = {key}"
                self._do(f"create table {name} as select t.* {joined} where comes = 0")
                self._do(f"create table new_{name} as select t.*, comes {joined} where comes > 0")
            else:
                self._do(f"create table {name} as from {file}")
        self.round = 0

    def change(self) -> None:
        """Does the next round."""
        self.round += 1
        for name, key in KEYS.items():
            self._do(f"insert into {name} select * exclude (comes) from new_{name} where comes = {self.round}")
            self._do(f"delete from {name} where {key} in (select key from refresh where goes = {self.round})")

    def answer(self, sql: str) -> pa.Table:
        """The result of a query as of this round."""
        return self.database.sql(sql).to_arrow_table()

    def close(self) -> None:
        self.database.close()

    def _do(self, sql: str) -> None:
        self.database.execute(sql)


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Whether two answers have the same rows, as often, but for the rounding of floats; decimals as numbers. A row with
    NULL, which is what SQL's sum of nothing is, is none."""
    ours, theirs = (sorted(_tuples(table), key=_exact) for table in (found, expected))
    return len(ours) == len(theirs) and all(map(_alike, ours, theirs))


def same_order(query: Query, found: pa.Table, expected: pa.Table) -> bool:
    """Whether both have the same values in the columns of `ORDER BY`, row by row: among equal ones any may come first."""
    names = [name for name, _ in query.order]
    ours, theirs = (_tuples(table.select(names)) for table in (found, expected))
    return len(ours) == len(theirs) and all(map(_alike, ours, theirs))


def _tuples(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [numbers(column).to_pylist() for column in table.drop_null().columns]
    return list(zip(*columns, strict=True))


def _exact(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """What rows are sorted by: floats come last, for they may differ in rounding."""
    return (*(v for v in row if not isinstance(v, float)), *(v for v in row if isinstance(v, float)))


def _alike(ours: tuple[Any, ...], theirs: tuple[Any, ...]) -> bool:
    return all(_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-9)
    return bool(a == b)
