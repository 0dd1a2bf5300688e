"""DuckDB as an engine: `python -m tests.bench.engine_duckdb W1` prints one run.

Tables are loaded before the clock starts; each query leaves its relation as a table, as the other engines do. Recursive
aggregates use `USING KEY`; W8 and W9, which a recursive query cannot say (nonlinear, mutual), are driven from Python, one
semi-naive round of joins at a time.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.bench.process import NotMeasured, Result, result_of_child
from tests.bench.workloads import WORKLOADS, Workload

try:
    import duckdb
except ImportError:  # the rival is optional
    duckdb = None

THREADS = 2
COLUMNS = ("x", "y", "w")

CLOSURE = """
    create table path as with recursive path(x, y) as (
        select x, y from edge union select path.x, edge.y from path join edge on path.y = edge.x)
    select * from path"""

QUERIES = {
    "W1": CLOSURE,
    "W2": CLOSURE,
    "W3": """
        create table sg as with recursive sg(x, y) as (
            select a.x, b.x from parent a join parent b on a.y = b.y
            union select a.x, b.x from sg join parent a on a.y = sg.x join parent b on b.y = sg.y)
        select * from sg""",
    "W4": """
        create table reach as with recursive reach(x) as (
            select x from source union select edge.y from reach join edge on reach.x = edge.x)
        select * from reach""",
    "W5": """
        create table link as select x, y from edge union all select y, x from edge;
        create table cc as with recursive cc(x, label) using key (x) as (
            select x, x from node union (
                select link.y, min(cc.label) from cc join link on cc.x = link.x join recurring.cc known on known.x = link.y
                where cc.label < known.label group by link.y))
        select * from cc;
        create table component as select label from cc where x = label""",
    "W6": """
        create table dist as with recursive dist(x, d) using key (x) as (
            select x, 0::bigint from source union (
                select edge.y, min(dist.d + edge.w) as d
                from dist join edge on dist.x = edge.x left join recurring.dist known on known.x = edge.y
                group by edge.y having min(dist.d + edge.w) < coalesce(any_value(known.d), 9223372036854775807)))
        select * from dist""",
    "W7": """
        create table triangle as
        select a.x, a.y, b.y as z from edge a join edge b on a.y = b.x join edge c on c.x = a.x and c.y = b.y""",
}

# In the rounds below `<relation>` holds all, `new_<relation>` what the last round added, `next_<relation>` what this one adds.
FIRST_ROUND = {
    "W8": {"points_to": "select x, y from addressof"},
    "W9": {
        "value_flow": "select x, y from assign union select x, x from assign union select y, y from assign",
        "memory_alias": "select x, x as y from assign union select y, y from assign",
        "value_alias": "select x, y from assign where false",
    },
}
NEXT_ROUND = {
    "W8": {
        "points_to": """
            select s.x, n.y from assign s join new_points_to n on s.y = n.x
            union select s.x, p.y from load s join new_points_to n on s.y = n.x join points_to p on p.x = n.y
            union select s.x, n.y from load s join points_to p on s.y = p.x join new_points_to n on n.x = p.y
            union select n.y, p.y from store s join new_points_to n on s.x = n.x join points_to p on s.y = p.x
            union select p.y, n.y from store s join points_to p on s.x = p.x join new_points_to n on s.y = n.x""",
    },
    "W9": {
        "value_flow": """
            select a.x, n.y from assign a join new_memory_alias n on a.y = n.x
            union select n.x, f.y from new_value_flow n join value_flow f on n.y = f.x
            union select f.x, n.y from value_flow f join new_value_flow n on f.y = n.x""",
        "memory_alias": """
            select p.y as x, q.y from dereference p join new_value_alias n on p.x = n.x join dereference q on n.y = q.x""",
        "value_alias": """
            select n.y as x, f.y from new_value_flow n join value_flow f on n.x = f.x
            union select f.y, n.y from value_flow f join new_value_flow n on f.x = n.x
            union select n.y, f.y from new_value_flow n join memory_alias m on n.x = m.x join value_flow f on f.x = m.y
            union select f.y, g.y from value_flow f join new_memory_alias m on f.x = m.x join value_flow g on g.x = m.y
            union select f.y, n.y from value_flow f join memory_alias m on f.x = m.x join new_value_flow n on n.x = m.y""",
    },
}


def run(workload: Workload, timeout: float) -> Result:
    if duckdb is None:
        raise NotMeasured("absent")
    return result_of_child("tests.bench.engine_duckdb", workload.name, timeout)


def load(connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
    for path in sorted(folder.glob("*.parquet")):
        table = connection.from_parquet(str(path))
        names = ", ".join(f"{old} as {new}" for old, new in zip(table.columns, COLUMNS, strict=False))
        table.project(names).create(path.stem)


def run_rounds(connection: duckdb.DuckDBPyConnection, first: dict[str, str], following: dict[str, str]) -> None:
    for name, query in first.items():
        connection.execute(f"create table {name} as {query}; create table new_{name} as from {name}")
    while True:
        for name, query in following.items():
            connection.execute(f"create or replace table next_{name} as select x, y from ({query}) except from {name}")
        if not any(rows(connection, f"next_{name}") for name in following):
            return
        for name in following:
            connection.execute(f"insert into {name} from next_{name}; create or replace table new_{name} as from next_{name}")


def rows(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    return connection.execute(f"select count(*) from {table}").fetchone()[0]


def answer(connection: duckdb.DuckDBPyConnection, workload: Workload) -> dict[str, int]:
    sizes = {name: rows(connection, name) for name in workload.rows}
    if "total" in workload.values:
        sizes["total"] = int(connection.execute("select sum(d) from dist").fetchone()[0])
    return sizes


def main(name: str) -> None:
    workload = WORKLOADS[name]
    connection = duckdb.connect(config={"threads": THREADS})
    start = time.perf_counter()
    load(connection, workload.facts())
    loaded = time.perf_counter()
    if name in QUERIES:
        connection.execute(QUERIES[name])
    else:
        run_rounds(connection, FIRST_ROUND[name], NEXT_ROUND[name])
    done = time.perf_counter()
    told = {"eval_seconds": done - loaded, "load_seconds": loaded - start, "answer": answer(connection, workload)}
    print(json.dumps(told))


if __name__ == "__main__":
    main(sys.argv[1])
