"""Recipes of the benchmark data: seeded, so that every machine gets the same bytes.

A recipe returns its relations by name, each an int64 array of rows. `prepare` writes them once, as `<relation>.facts` (tab
separated, no header) and `<relation>.parquet`, into a folder below `cache_folder()`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Recipe = Callable[[], dict[str, Rows]]


def cache_folder() -> Path:
    """Where inputs, compiled rivals and results are kept between runs."""
    chosen = os.environ.get("DLOG_WORKLOADS")
    return Path(chosen) if chosen else Path(tempfile.gettempdir()) / "dlog-workloads"


def prepare(name: str, recipe: Recipe) -> Path:
    """The folder with the facts of `name`, written first if it is not there yet."""
    folder = cache_folder() / name
    if not folder.is_dir():
        unfinished = folder.with_name(f".{folder.name}.{os.getpid()}")
        unfinished.mkdir(parents=True)
        for relation, rows in recipe().items():
            write_relation(unfinished, relation, rows)
        unfinished.rename(folder)
    return folder


def write_relation(folder: Path, relation: str, rows: Rows) -> None:
    columns = rows if rows.ndim == 2 else rows[:, None]
    table = pa.table({f"c{i}": np.ascontiguousarray(columns[:, i], dtype=np.int64) for i in range(columns.shape[1])})
    options = pa.csv.WriteOptions(include_header=False, delimiter="\t")
    pa.csv.write_csv(table, folder / f"{relation}.facts", options)
    pa.parquet.write_table(table, folder / f"{relation}.parquet")


# ------------------------------------------------------------------------------------------------------------ random shapes


def random_graph(rng: np.random.Generator, nodes: int, edges: int) -> Rows:
    """A directed graph of exactly `edges` different edges, without loops, in random order."""
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        source = rng.integers(0, nodes, int((edges - len(keys)) * 1.1) + 10)
        target = rng.integers(0, nodes, len(source))
        keys = np.unique(np.concatenate([keys, (source * nodes + target)[source != target]]))
    keys = rng.permutation(keys)[:edges]
    return np.stack([keys // nodes, keys % nodes], 1)


def power_law_graph(rng: np.random.Generator, nodes: int, edges: int) -> Rows:
    """An undirected Chung-Lu graph with degree exponent 2.3; each edge once, smaller node first."""
    weight = (np.arange(nodes) + 10.0) ** (-1 / 1.3)
    cumulated = np.cumsum(weight / weight.sum())
    name = rng.permutation(nodes)

    def endpoints() -> Rows:
        return name[np.minimum(np.searchsorted(cumulated, rng.random(edges)), nodes - 1)]

    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        one, other = endpoints(), endpoints()
        low, high = np.minimum(one, other), np.maximum(one, other)
        keys = np.unique(np.concatenate([keys, (low * nodes + high)[low != high]]))
    keys = rng.permutation(keys)[:edges]
    return np.stack([keys // nodes, keys % nodes], 1)


def path_graph(nodes: int) -> Rows:
    start = np.arange(nodes - 1)
    return np.stack([start, start + 1], 1)


def random_tree(rng: np.random.Generator, depth: int) -> Rows:
    """parent(child, parent): each of three possible children of a node exists with probability 0.74."""
    level, born, out = np.zeros(1, np.int64), 1, []
    for _ in range(depth):
        parents = np.repeat(level, (rng.random((len(level), 3)) < 0.74).sum(1))
        level = np.arange(born, born + len(parents))
        born += len(parents)
        out.append(np.stack([level, parents], 1))
    return np.concatenate(out)


def near_pairs(rng: np.random.Generator, variables: int, count: int, spread: float) -> Rows:
    """Pairs of different variables that lie close together, as those of one function do."""
    one = rng.integers(0, variables, count)
    other = (one + np.rint(rng.normal(0, spread, count)).astype(np.int64)) % variables
    return np.unique(np.stack([one, other], 1)[one != other], axis=0)


# ---------------------------------------------------------------------------------------------------------------- workloads


def closure(nodes: int = 2000, edges: int = 6000) -> dict[str, Rows]:
    return {"edge": random_graph(np.random.default_rng(1), nodes, edges)}


def path_closure() -> dict[str, Rows]:
    return {"edge": path_graph(2000)}


def same_generation() -> dict[str, Rows]:
    return {"parent": random_tree(np.random.default_rng(3), 9)}


def reachability(nodes: int = 1_000_000, edges: int = 5_000_000) -> dict[str, Rows]:
    return {"edge": random_graph(np.random.default_rng(4), nodes, edges), "source": np.zeros(1, np.int64)}


def components(nodes: int = 500_000, edges: int = 1_000_000) -> dict[str, Rows]:
    directed = random_graph(np.random.default_rng(5), nodes, edges)
    return {"edge": np.unique(np.sort(directed, axis=1), axis=0), "node": np.arange(nodes)}


def distances() -> dict[str, Rows]:
    rng = np.random.default_rng(6)
    edge = random_graph(rng, 200_000, 1_000_000)
    weight = rng.integers(1, 101, len(edge))
    return {"edge": np.column_stack([edge, weight]), "source": np.zeros(1, np.int64)}


def triangles(nodes: int = 100_000, edges: int = 1_000_000) -> dict[str, Rows]:
    return {"edge": power_law_graph(np.random.default_rng(7), nodes, edges)}


def points_to(variables: int = 6500) -> dict[str, Rows]:
    """Statements of a program with so many variables: x = &y, x = y, x = *y, *x = y."""
    rng = np.random.default_rng(8)
    addresses, assignments, loads, stores = (count * variables // 6500 for count in (2400, 4800, 420, 320))
    pointer, target = rng.integers(0, variables, addresses), rng.integers(0, variables, addresses)
    return {
        "addressof": np.unique(np.stack([pointer, target], 1), axis=0),
        "assign": near_pairs(rng, variables, assignments, 160),
        "load": near_pairs(rng, variables, loads, 160),
        "store": near_pairs(rng, variables, stores, 160),
    }


def pointer_analysis() -> dict[str, Rows]:
    """20,000 variables in communities of 40; one assignment in fifty goes anywhere."""
    rng, variables, community = np.random.default_rng(9), 20_000, 40

    def neighbours(of: Rows) -> Rows:
        return (of // community) * community + rng.integers(0, community, len(of))

    target = rng.integers(0, variables, 18_000)
    source = neighbours(target)
    far = rng.random(len(target)) < 0.02
    source = np.where(far, rng.integers(0, variables, len(target)), source)
    pointer = rng.integers(0, variables, 5000)
    held = neighbours(pointer)
    return {
        "assign": np.unique(np.stack([target, source], 1)[target != source], axis=0),
        "dereference": np.unique(np.stack([pointer, held], 1)[pointer != held], axis=0),
    }


def forest(nodes: int = 640_000, roots: int = 50) -> dict[str, Rows]:
    """Random recursive trees, edges from child to parent; the nodes' names have nothing to do with their places."""
    rng = np.random.default_rng(1)
    names, child = rng.permutation(nodes), np.arange(roots, nodes)
    parent = (rng.random(len(child)) * child).astype(np.int64)
    return {"edge": names[np.stack([child, parent], 1)]}


def rmat_graph(nodes: int, edges: int, seed: int = 11) -> tuple[Rows, Rows]:
    """A directed R-MAT graph (D. Chakrabarti, Y. Zhan and C. Faloutsos, SDM 2004; quadrants 0.57, 0.19, 0.19, 0.05) of
    different edges without loops, nodes in random order, and weights from 1 to 100. `nodes` is a power of two."""
    rng, bits = np.random.default_rng(seed), nodes.bit_length() - 1
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        draws = rng.random((bits, int((edges - len(keys)) * 1.2) + 10))
        below = (draws >= 0.76).astype(np.int64)
        right = ((draws >= 0.57) & (draws < 0.76) | (draws >= 0.95)).astype(np.int64)
        place = 1 << np.arange(bits)[:, None]
        source, target = (below * place).sum(0), (right * place).sum(0)
        keys = np.unique(np.concatenate([keys, (source * nodes + target)[source != target]]))
    name = rng.permutation(nodes)
    keys = rng.permutation(keys)[:edges]
    return np.stack([name[keys // nodes], name[keys % nodes]], 1), rng.integers(1, 101, edges)


def chain(nodes: int = 200_000) -> dict[str, Rows]:
    return {"edge": path_graph(nodes), "source": np.zeros(1, np.int64)}
