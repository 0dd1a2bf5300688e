"""Changing graphs: edges to begin with, and the changes of each round. Seeded.

Rows are int64 arrays of (source, target) pairs. No stream inserts an edge that is there or removes one that is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tests.bench.inputs import Rows, random_graph
from tests.bench.limit import kernel
from tests.bench.rounds_twins import distances, out_index


@dataclass(frozen=True, slots=True)
class Stream:
    """A graph on nodes 0 to `nodes` - 1 and changes to its edges: in turn, one goes and another comes. A round has `per_round`
    changes: two replace an edge by another."""

    nodes: int
    first: Rows
    changed: Rows
    per_round: int = 2

    @property
    def rounds(self) -> int:
        return len(self.changed) // self.per_round

    @property
    def removed(self) -> Rows:
        return self.changed[0::2]

    @property
    def inserted(self) -> Rows:
        return self.changed[1::2]

    @property
    def last(self) -> Rows:
        """The edges that are there when all rounds are over."""
        return self.at(self.rounds)

    def at(self, rounds: int) -> Rows:
        """The edges after so many rounds."""
        codes = self.changed[: rounds * self.per_round] @ [self.nodes, 1]
        changed, place = np.unique(codes, return_inverse=True)
        net = np.bincount(place, diffs(len(codes)), len(changed))
        first = self.first[~np.isin(self.first @ [self.nodes, 1], changed[net < 0])]
        new = changed[net > 0]
        return np.concatenate([first, np.stack([new // self.nodes, new % self.nodes], 1)])

    def undone(self) -> Stream:
        """The way back to the first edges, the last change first. Changes in pairs only: that, too, takes away and gives in
        turn."""
        if len(self.changed) % 2:
            raise ValueError("the way back begins with an edge that goes: the last change must be one that came")
        return replace(self, first=self.last, changed=self.changed[::-1].copy())

    def until(self, rounds: int) -> Stream:
        """The first rounds only."""
        return replace(self, changed=self.changed[: rounds * self.per_round])

    def one_by_one(self) -> Stream:
        """The same changes, each of them a round."""
        return replace(self, per_round=1)


def diffs(changes: int, first: int = 0) -> Rows:
    """Those of so many changes of a stream, from number `first` on."""
    return np.resize(np.array([1, -1] if first % 2 else [-1, 1], np.int64), changes)


@kernel
def swap(pool, present, waiting, changed):
    """In turn the edge at `present[i]` changes places with the one at `waiting[i]`."""
    for i in range(len(present)):
        out, into = present[i], waiting[i]
        for c in range(2):
            changed[2 * i, c], changed[2 * i + 1, c] = pool[out, c], pool[into, c]
            pool[out, c], pool[into, c] = pool[into, c], pool[out, c]


def replacements(rng: np.random.Generator, nodes: int, pool: Rows, edges: int, rounds: int, kept: Rows | None = None) -> Stream:
    """Each round one of the first `edges` of a pool of different edges gives way to one of the others, which may come back.
    The edges `kept` are there all the time."""
    first = pool[:edges].copy()
    present, waiting = rng.integers(0, edges, rounds), rng.integers(edges, len(pool), rounds)
    changed = np.empty((2 * rounds, 2), np.int64)
    swap(pool, present, waiting, changed)
    kept = np.empty((0, 2), np.int64) if kept is None else kept
    return Stream(nodes, np.concatenate([first, kept]), changed)


def changing_graph(seed: int, nodes: int, edges: int, rounds: int) -> Stream:
    """A random graph of which one edge is replaced by another in every round."""
    rng = np.random.default_rng(seed)
    return replacements(rng, nodes, _pool(rng, nodes, edges, rounds), edges, rounds)


def rooted_graph(seed: int, nodes: int, edges: int, rounds: int) -> tuple[Stream, int]:
    """As `changing_graph`, with a root that reaches most nodes. Its own edges stay, so that it does so all the time."""
    rng = np.random.default_rng(seed)
    pool = _pool(rng, nodes, edges, rounds)
    root = far_reaching(nodes, pool[:edges])
    own = pool[:, 0] == root
    kept = pool[:edges][own[:edges]]
    return replacements(rng, nodes, pool[~own], edges - len(kept), rounds, kept), root


def far_reaching(nodes: int, edges: Rows) -> int:
    """Of the ten nodes with most edges the one that reaches most."""
    index = out_index(nodes, edges)
    candidates = np.argsort(-np.diff(index[0]), kind="stable")[:10]
    return int(max(candidates, key=lambda node: int((distances(nodes, index, int(node)) >= 0).sum())))


def _pool(rng: np.random.Generator, nodes: int, edges: int, rounds: int) -> Rows:
    """Different edges, enough that the ones which come in seem fresh, but no more than half of all there could be: random ones
    are then found quickly."""
    possible = nodes * (nodes - 1)
    wanted = edges + max(min(edges, 4 * rounds), rounds, 1000)
    return random_graph(rng, nodes, min(wanted, max(possible // 2, (edges + possible) // 2)))


def star(seed: int, spokes: int, rounds: int) -> Stream:
    """A hub with an edge to and from each of so many nodes, which are a path; random edges replace random ones."""
    rng, nodes = np.random.default_rng(seed), spokes + 1
    x = np.arange(1, nodes)
    hub = np.zeros_like(x)
    edges = np.concatenate([np.stack([hub, x], 1), np.stack([x, hub], 1), np.stack([x[:-1], x[1:]], 1)])
    others = random_graph(rng, nodes, min(4 * rounds + 1000, nodes * (nodes - 1) // 2))
    others = others[(others.min(1) > 0) & (others[:, 1] != others[:, 0] + 1)]
    return replacements(rng, nodes, np.concatenate([edges, others]), len(edges), rounds)


def w10(
    commits: int = 1000, batches: int = 100, changes: int = 1000, nodes: int = 100_000, edges: int = 300_000
) -> dict[str, Rows]:
    """A random graph and its source; `single` has a change per round (an insertion, a removal, ...) and `batch` has `changes`
    in each round, both from these edges on, as rows of (round, diff, x, y)."""
    rng = np.random.default_rng(10)
    pool = random_graph(rng, nodes, 2 * edges)
    first = pool[:edges].copy()
    source = int(np.bincount(first[:, 0], minlength=nodes).argmax())
    single = replacements(rng, nodes, pool.copy(), edges, commits // 2)
    batch = replacements(rng, nodes, pool, edges, batches * changes // 2)
    return {
        "edge": first,
        "source": np.array([source]),
        "single": _listed(single, 1),
        "batch": netted(_listed(batch, changes)),
    }


def _listed(stream: Stream, changes: int) -> Rows:
    """The changes of a stream in rounds of so many."""
    count = stream.rounds * 2
    rows = np.empty((count, 4), np.int64)
    rows[:, 0] = np.arange(count) // changes
    rows[0::2, 1], rows[1::2, 1] = 1, -1
    rows[0::2, 2:], rows[1::2, 2:] = stream.inserted, stream.removed
    return rows


def netted(rows: Rows) -> Rows:
    """Without changes that one round undoes again."""
    codes = (rows[:, 0] << 40) + rows[:, 2] * 1_000_000 + rows[:, 3]
    _, first, place = np.unique(codes, return_index=True, return_inverse=True)
    sums = np.bincount(place, rows[:, 1]).astype(np.int64)
    kept = np.sort(first[sums != 0])
    net = rows[kept]
    net[:, 1] = sums[place[kept]]
    return net
