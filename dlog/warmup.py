"""Compiles every kernel into the cache by running one program that needs nearly all of them, and maintaining another."""

from __future__ import annotations

import tempfile
from pathlib import Path

PROGRAM = """
.type Pair = [left: number, right: number]
.decl edge(x: number, y: number)
.decl named(x: number, name: symbol, weight: float, mark: unsigned)
.decl pair(p: Pair)
.decl quoted(name: symbol, x: number)
.input edge, named, pair
.input quoted(rfc4180=true, delimiter=",")
.output quoted(rfc4180=true, delimiter=",", compress=true)
.decl path(x: number, y: number)
.decl twice(x: number, y: number)
.decl big(x: number, y: number)
.decl triangle(x: number, y: number, z: number)
.decl distance(x: number, d: number)
.decl degree(x: number, n: number, low: number, high: number, total: float, middle: float)
.decl label(x: number, text: symbol)
.decl first(name: symbol)
.decl packed(p: Pair, q: Pair)
.decl leaf(x: number)
.decl odd(m: unsigned, f: float)
.output path, triangle, distance, degree, label, first, packed, leaf, odd, big
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
twice(x, y) :- edge(x, y).
twice(x, z) :- twice(x, y), twice(y, z), x != z.
big(x * 4294967296, y) :- edge(x, y).
big(x, z) :- big(x, y), edge(y, z), big(w, z), w != x.
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(x, z).
distance(x, d) :- edge(x, _), d = min c : { x = 1, edge(x, _), c = 0 ; distance(y, b), edge(y, x), c = b + 1 }.
degree(x, n, l, h, t, m) :- edge(x, _), n = count : { edge(x, _) }, l = min y : { edge(x, y) }, h = max y : { edge(x, y) },
    t = sum w : { named(x, _, w, _) }, m = mean y : { edge(x, y) }.
leaf(y) :- edge(_, y), !edge(y, _).
packed([x, y], [y, z]) :- edge(x, y), edge(y, z).
packed(p, p) :- pair(p), p = [l, r], l < r.
first(n) :- named(_, n, _, _), n > "p".
odd(m / 2, w * 2.0) :- named(_, _, w, m), w > 0.5.
label(x, cat(n, to_string(x + strlen(n)))) :- named(x, n, w, _), substr(n, 0, 1) != "q", n < "z", match("[a-y]+", n),
    !contains("zz", n), w < to_float("12.5"), x >= to_number("0").
label(x, to_string(w)) :- named(x, _, w, _).
label(x, to_string(m)) :- named(x, _, _, m).
"""
FACTS = {
    "edge.facts": "1\t2\n2\t3\n1\t3\n3\t4\n4\t1\n1\t2\n5\t6\n",
    "named.facts": "1\tone\t1.5\t7\n2\ttwo\t0.25\t8\n3\tthree\t-2\t9\n",
    "pair.facts": "[1, 2]\n[2, 1]\nnil\n",
    "quoted.facts": '"a, b",1\nplain,2\n',
}
MAINTAINED = """
.decl edge(x: number, y: number)
.decl named(x: number, name: symbol)
.decl path(x: number, y: number)
.decl distance(x: number, d: number)
.decl degree(x: number, n: number)
.decl spread(n: number, nodes: number)
.decl least(x: number, y: number)
.decl loop(x: number, y: number, z: number)
.decl leaf(name: symbol)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
distance(x, d) :- edge(x, _), d = min c : { x = 1, edge(x, _), c = 0 ; distance(y, b), edge(y, x), c = b + 1 }.
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
spread(n, c) :- degree(_, n), c = count : { degree(_, n) }.
least(x, l) :- edge(x, _), l = min y : { edge(x, y) }.
loop(x, y, z) :- edge(x, y), edge(y, z), edge(z, x).
leaf(n) :- edge(_, y), !edge(y, _), named(y, n).
"""


def warm(threads: int = 2) -> None:
    """Runs the first program above on its own few facts, once alone and once with several threads, maintains the second, and
    compiles the rest."""
    from dlog.pipeline import Job, run_job
    from dlog.progress import Display

    with tempfile.TemporaryDirectory(prefix="dlog-warmup-") as folder:
        program = Path(folder) / "program.dl"
        program.write_text(PROGRAM)
        for name, text in FACTS.items():
            (Path(folder) / name).write_text(text)
        for workers in (1, threads):
            run_job(Job(program, facts=folder, output=folder, threads=workers), Display())
    _maintain()
    _compile_rare()


def _maintain() -> None:
    """Rounds that come alone, together, and with many rows."""
    import numpy as np

    from dlog.sessions import Session

    edges = np.array([(i, (i * 7 + j) % 2000) for i in range(2000) for j in (1, 5)])
    with Session(MAINTAINED, threads=1, history=2) as session:
        session.insert("edge", edges[:8])
        session.commit()
        session.insert("named", [(1, "one"), (6, "six")])
        session.remove("edge", edges[:2])
        done = session.commit()
        for relation in session:
            len(done.changes(relation)), list(session[relation])
        more = {"x": edges[10:20, 0], "y": edges[10:20, 1], "round": np.arange(10) + session.round + 1}
        session.commit_rounds({"edge": more})
        session.at(session.round - 1)["path"].to_numpy()
    with Session(MAINTAINED.partition("path(x, y) :-")[0] + "leaf(n) :- named(x, n), !edge(x, _).", threads=1) as session:
        session.insert("edge", edges)
        session.commit()


def _compile_rare() -> None:
    """The kernels that only many rows in an inconvenient order need, or several threads, or a trace."""
    from numba import int64

    from dlog.engine.kernels import arrange, bitmaps, chains, sets, trace
    from dlog.engine.kernels.jit import JIT

    sorting = (arrange.place_rows, arrange.scatter_column, arrange.sort_pass, arrange.ascends_within)
    merging = (trace.build_layer, trace.plan_merge, trace.start_merge, trace.merge_layers)
    looking_up = (trace.seek, trace.expand, trace.accumulate)
    others = (chains.grow_arrangement, bitmaps.collect_bits, sets.find_repeated)
    for rare in (*sorting, *merging, *looking_up, *others) if JIT else ():
        rare.compile((int64,) * rare.py_func.__code__.co_argcount)  # type: ignore[attr-defined]
