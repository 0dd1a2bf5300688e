"""Memory of sessions: edges that come and go for long beside the same edges at once, and stages that only map or filter.

Bytes are those that the kernels hold. The stream has as many edges at its end as at its beginning; each commit takes some out
and brings as many others. What a commit needs for its changes is in the figures, too: it goes with the size of commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlog.engine.compiler import compile_source
from dlog.engine.runtime.incremental.engines.choice import make_engine
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.bench.process import Options
from tests.bench.report import save, show

EDGES = 1_000_000
UPDATES = 10 * EDGES
COMMIT = 2000
"""Updates of a commit."""
DECLARED = ".decl e(x: number, y: number)\n.input e\n"
PAIR = ".decl {}(x: number, y: number)\n"
FEW = ".decl few(x: number)\nfew(x) :- x = range(0, 1000).\n"


@dataclass(frozen=True, slots=True)
class Case:
    """Rules over edges between so many nodes, and how many bytes they may hold after churn for each that the same edges take
    when they come at once."""

    rules: str
    nodes: int
    bound: float


CASES = {
    "edges alone": Case("", 100_000, 1.3),
    "degrees": Case(".decl d(x: number, n: number)\nd(x, n) :- e(x, _), n = count : { e(x, _) }.", 100_000, 1.3),
    "join with few": Case(f"{FEW}{PAIR.format('p')}p(x, y) :- few(x), e(x, y).", 100_000, 1.3),
    "two steps": Case(PAIR.format("p") + "p(x, z) :- e(x, y), e(y, z).", EDGES, 1.3),
    "triangles": Case(
        ".decl t(x: number, y: number, z: number)\nt(x, y, z) :- e(x, y), e(y, z), e(x, z), x < y, y < z.", EDGES, 1.3
    ),
    "join of a derived relation": Case(
        f"{FEW}{PAIR.format('p')}{PAIR.format('q')}p(y, x) :- e(x, y), x * 2 != y.\nq(x, y) :- few(x), p(x, y).",
        100_000,
        1.3,
    ),
    "reachability": Case(".decl r(x: number)\nr(0).\nr(y) :- r(x), e(x, y).", 100_000, 1.3),
}
STAGES = {
    "permuted": "({1}, {0}) :- {2}({0}, {1}).",
    "computed": "({0}, {1} + 1) :- {2}({0}, {1}).",
    "filtered by !=": "({0}, {1}) :- {2}({0}, {1}), {0} != {1}.",
    "filtered by <": "({0}, {1}) :- {2}({0}, {1}), {0} < 100000.",
}
LONG = 4
"""Stages of a chain."""


def run(options: Options) -> bool:
    """Measures, prints and saves; false where an answer is wrong or a bound is missed."""
    churned = {name: churn(case) for name, case in CASES.items()}
    rows = [
        [name, *(f"{used / EDGES:.1f}" for used in (loaded, after)), f"{after / loaded:.2f}", f"{CASES[name].bound}"]
        for name, (loaded, after) in churned.items()
    ]
    title = f"{UPDATES:,} updates of {EDGES:,} edges: bytes per edge"
    show(title, ["program", "at once", "after churn", "ratio", "bound"], rows)
    staged = {name: stages(text) for name, text in STAGES.items()}
    show(
        f"a chain of {LONG} stages over {EDGES:,} rows: bytes that each stage holds for a row",
        ["stage", "bytes"],
        [[name, f"{held:.1f}"] for name, held in staged.items()],
    )
    save("memory-rounds", {"churn": churned, "stages": staged}, options.json)
    return all(after <= CASES[name].bound * loaded for name, (loaded, after) in churned.items())


def churn(case: Case) -> tuple[int, int]:
    """Bytes that are held for the last edges: loaded at once, and after the stream."""
    engine = Measured(DECLARED + case.rules)
    there = scattered(np.arange(EDGES), case.nodes)
    engine.change(there[:0], there, case.nodes)
    half, coming = COMMIT // 2, EDGES
    random = np.random.default_rng(1)
    for _ in range(UPDATES // COMMIT):
        at = random.choice(EDGES, half, replace=False)
        come = scattered(np.arange(coming, coming + half), case.nodes)
        engine.change(there[at], come, case.nodes)
        there[at], coming = come, coming + half
    other = Measured(DECLARED + case.rules)
    other.change(there[:0], there, case.nodes)
    found = other.memory.used, engine.memory.used
    for name in engine.engine.program.relations:
        if engine.engine.rows(name) != other.engine.rows(name):
            raise AssertionError(f"{name} has other rows than when all edges come at once")
    engine.engine.close()
    other.engine.close()
    return found


def stages(rule: str) -> float:
    """Bytes that each stage of a chain holds for a row."""
    texts = [DECLARED]
    for number in range(LONG):
        source, name = f"s{number - 1}" if number else "e", f"s{number}"
        texts.append(f"{PAIR.format(name)}{name}{rule.format('x', 'y', source)}\n")
    used = []
    for text in (DECLARED, "".join(texts)):
        engine = Measured(text)
        there = scattered(np.arange(EDGES), 100_000)
        engine.change(there[:0], there, 100_000)
        engine.change(there[:1], there[:0], 100_000)
        used.append(engine.memory.used)
        engine.engine.close()
    return (used[1] - used[0]) / LONG / EDGES


class Measured:
    """An engine over edges, and the account of what it holds."""

    def __init__(self, text: str) -> None:
        self.engine = make_engine(compile_source(Source(text)))
        inner: Any = self.engine
        while not isinstance(getattr(inner, "memory", None), Memory):
            inner = inner.inner
        self.memory: Memory = inner.memory

    def change(self, gone: np.ndarray, come: np.ndarray, nodes: int) -> None:
        both = np.concatenate([gone, come])
        diffs = np.repeat(np.array([-1, 1]), [len(gone), len(come)])
        rounds = np.full(len(both), self.engine.round + 1)
        self.engine.commit({"e": Updates((both // nodes, both % nodes), diffs, rounds)})


def scattered(numbers: np.ndarray, nodes: int) -> np.ndarray:
    """Different edges for different numbers, in no order: a permutation of all pairs of nodes (a Feistel network)."""
    bits = (nodes * nodes - 1).bit_length() + 1 >> 1
    mask, found, out = (1 << bits) - 1, numbers.copy(), np.ones(len(numbers), bool)
    while out.any():
        left, right = found >> bits, found & mask
        for key in (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D, 0x27D4EB2F):
            left, right = right, left ^ ((right * key + key) >> 15 & mask)
        found = np.where(out, left << bits | right, found)
        out = found >= nodes * nodes
    return found
