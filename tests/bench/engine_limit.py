"""Runs the loops of `limit` as an engine: `python -m tests.bench.engine_limit W1` prints the best of three warm calls.

As for every engine, building the indexes counts as evaluation and reading the file does not.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as parquet

from tests.bench import limit
from tests.bench.process import Result, result_of_child
from tests.bench.workloads import WORKLOADS, Workload

Columns = list[limit.Column]
CAPACITY = 4_000_000
NODES = {"W1": 2000, "W4": 1_000_000, "W6": 200_000, "W7": 100_000, "W8": 6500, "W9": 20_000}


def run(workload: Workload, timeout: float) -> Result:
    return result_of_child("tests.bench.engine_limit", workload.name, timeout)


def unmarked(size: int) -> limit.Column:
    return np.full(size, -1, np.int32)


def closure(edge: Columns) -> dict[str, int]:
    size = NODES["W1"]
    out = limit.column(CAPACITY), limit.column(CAPACITY)
    return {"path": limit.closure(*limit.index(size, *edge), unmarked(size), *out)}


def same_generation(parent: Columns) -> dict[str, int]:
    child, parent_of = parent
    size = int(child.max()) + 1
    out = limit.bit_matrix(size), limit.column(CAPACITY), limit.column(CAPACITY)
    return {"sg": limit.same_generation(*limit.index(size, parent_of, child), *out)}


def reachability(edge: Columns, source: Columns) -> dict[str, int]:
    size = NODES["W4"]
    out = np.zeros(size, np.bool_), limit.column(size)
    return {"reach": limit.reachable(*limit.index(size, *edge), source[0][0], *out)}


def components(edge: Columns, node: Columns) -> dict[str, int]:
    itself = np.arange(len(node[0]), dtype=np.int32)
    label = itself.copy()
    limit.components(*edge, label)
    return {"cc": len(label), "component": int(np.count_nonzero(label == itself))}


def distances(edge: Columns, source: Columns) -> dict[str, int]:
    size, heaviest, far = NODES["W6"], 100, 2**30
    left, right, weight = edge
    index = limit.index(size, left, right.astype(np.int64) << 32 | weight)
    dist, entries = np.full(size, far, np.int32), len(left) + 1
    ring = np.full(heaviest + 1, -1, np.int64), np.empty(entries, np.int64), limit.column(entries), limit.column(entries)
    limit.distances(*index, source[0][0], dist, limit.Entries(*ring))
    reached = dist[dist < far]
    return {"dist": len(reached), "total": int(reached.sum(dtype=np.int64))}


def triangles(edge: Columns) -> dict[str, int]:
    size, (low, high) = NODES["W7"], (column.copy() for column in edge)
    limit.orient(low, high, np.zeros(size, np.int64))
    out = np.empty((3, CAPACITY), np.int32)
    return {"triangle": limit.triangles(*limit.index(size, low, high), unmarked(size), out)}


def points_to(addressof: Columns, assign: Columns, load: Columns, store: Columns) -> dict[str, int]:
    size = NODES["W8"]
    assigned, loaded = (limit.index(size, right, left) for left, right in (assign, load))
    stored = limit.index(size, *store)
    points, copies = limit.pairs(size, CAPACITY), limit.pairs(size, CAPACITY)
    return {"points_to": limit.points_to(*addressof, assigned, loaded, stored, points, copies)}


def pointer_analysis(assign: Columns, dereference: Columns) -> dict[str, int]:
    size, (target, source) = NODES["W9"], assign
    indexes = limit.index(size, source, target), limit.index(size, *dereference)
    flow, memory, value = (limit.pairs(size, CAPACITY) for _ in range(3))
    sizes = limit.pointer_analysis(target, source, *indexes, flow, memory, value)
    return dict(zip(("value_flow", "memory_alias", "value_alias"), sizes, strict=True))


LOOPS: dict[str, Callable[..., dict[str, int]]] = {
    "W1": closure,
    "W2": closure,
    "W3": same_generation,
    "W4": reachability,
    "W5": components,
    "W6": distances,
    "W7": triangles,
    "W8": points_to,
    "W9": pointer_analysis,
}


def read(folder: Path) -> dict[str, Columns]:
    tables = {path.stem: parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))}
    return {name: [column.to_numpy().astype(np.int32) for column in table.columns] for name, table in tables.items()}


def main(name: str) -> None:
    start = time.perf_counter()
    relations = read(WORKLOADS[name].facts())
    load_seconds = time.perf_counter() - start
    answer = LOOPS[name](**relations)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        LOOPS[name](**relations)
        seconds.append(time.perf_counter() - start)
    print(json.dumps({"eval_seconds": min(seconds), "load_seconds": load_seconds, "answer": answer}))


if __name__ == "__main__":
    main(sys.argv[1])
