"""Several threads give what one gives, on everything a path can do; an interruption leaves none of them behind."""

from __future__ import annotations

import threading

import networkx as nx
import pytest

from dlog.engine.runtime.static import thread_pool
from dlog.engine.runtime.static.executor import Progress
from tests.engine.runtime.runs import executor_of, ran, rows_of, variant

GRAPH = nx.gnm_random_graph(60, 200, seed=3, directed=True)
EDGES = [(x, y) for x, y in GRAPH.edges]
LONG = [(x, x + 1) for x in range(100, 400)]
"""A chain: hundreds of iterations, so that the threads are not done before anyone asks."""
WEIGHTS = [(x, y, (x * 7 + y * 5) % 11 + 1) for x, y in EDGES]
DECLS = ".decl e(x: number, y: number)\n.decl w(x: number, y: number, n: number)\n"
PROGRAMS = {
    "closure": ".decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "nonlinear": ".decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z).",
    "wide values": ".decl p(x: number, y: number)\np(x * 1099511627776, y) :- e(x, y). p(x, z) :- p(x, y), e(y, z).",
    "mutual": ".decl p(x: number, y: number)\n.decl q(x: number, y: number)\n"
    "p(x, y) :- e(x, y). q(x, z) :- p(x, y), e(y, z). p(x, z) :- q(x, y), e(y, z), !e(z, x).",
    "triangles": ".decl p(x: number, y: number, z: number)\np(x, y, z) :- e(x, y), e(y, z), e(z, x).",
    "recursive triangles": ".decl p(x: number, y: number)\np(x, y) :- e(x, y). p(x, z) :- p(x, y), p(y, z), p(z, x), e(x, _).",
    "aggregates": ".decl p(x: number, n: number, s: number, l: number, h: number, m: float)\n"
    "p(x, n, s, l, h, m) :- e(x, _), n = count : { e(x, _) }, s = sum y : { e(x, y) }, l = min y : { e(x, y) }, "
    "h = max y : { e(x, y) }, m = mean y : { e(x, y) }.",
    "a count of everything": ".decl p(n: number)\np(n) :- n = count : { e(_, _) }.",
    "distances": ".decl p(x: number, d: number)\np(x, d) :- e(x, _), "
    "d = min c : { x = 0, e(x, _), c = 0 ; p(y, b), w(y, x, n), c = b + n }.",
    "records": ".type Pair = [x: number, y: number]\n.decl p(r: Pair)\n.decl q(x: number)\n"
    "p([x, y]) :- e(x, y). p([x, z]) :- p([x, y]), e(y, z). q(x) :- p([x, x]).",
    "symbols": ".decl p(x: number, s: symbol)\np(x, to_string(y)) :- e(x, y). p(y, s) :- p(x, s), e(x, y), strlen(s) = 1.",
    "nullary": ".decl a()\n.decl p(x: number)\np(0). p(y) :- p(x), e(x, y). a() :- p(59). p(1000) :- a(), p(x), x = 3.",
    "several heads": ".decl p(x: number, y: number)\n.decl q(x: number)\np(x, y), p(y, x), q(x) :- e(x, y). "
    "q(y) :- q(x), p(x, y), x < y.",
}


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("hashed", [False, True])
def test_threads_change_nothing(name: str, threads: int, hashed: bool) -> None:
    facts = {"e": EDGES, "w": WEIGHTS}
    expected = ran(DECLS + PROGRAMS[name], facts)
    with variant(hashed=hashed, bulk=True):
        assert ran(DECLS + PROGRAMS[name], facts, threads=threads) == expected


def test_the_answers_are_not_empty() -> None:
    for name, text in PROGRAMS.items():
        found = ran(DECLS + text, {"e": EDGES, "w": WEIGHTS})
        assert all(found[r] for r in found if r not in ("e", "w")), name
    closure = ran(DECLS + PROGRAMS["closure"], {"e": EDGES})["p"]
    assert set(closure) == {(x, z) for x, y in EDGES for z in {y, *nx.descendants(GRAPH, y)}}


def test_bulk_work_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests above would prove nothing if no work were given to the threads."""
    shared: list[int] = []
    run_paths = thread_pool.ThreadPool.run_paths

    def counted(self: thread_pool.ThreadPool, paths: list[object], *rest: object, **options: object) -> None:
        shared.append(len(paths))
        run_paths(self, paths, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(thread_pool.ThreadPool, "run_paths", counted)
    with variant(bulk=True):
        ran(DECLS + PROGRAMS["closure"], {"e": EDGES}, threads=2)
    assert len(shared) > 4
    shared.clear()
    ran(DECLS + PROGRAMS["closure"], {"e": EDGES}, threads=2)
    assert shared == []


# --------------------------------------------------------------------------------------------------------- interruption


class Stop(BaseException):
    """Raised between native calls, as Ctrl-C is."""


def workers() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("dlog-worker")]


@pytest.mark.parametrize(
    ("name", "after", "threads"),
    [
        *(("closure", after, threads) for after in (0, 1, 20) for threads in (1, 2, 3)),
        ("records", 5, 1),
        ("aggregates", 2, 1),
        ("distances", 5, 1),
    ],
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
def test_an_interruption_comes_through_and_leaves_no_thread(
    name: str, after: int, error: type[BaseException], threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def progress(state: object) -> None:
        seen.append(state)
        if len(seen) > after:
            raise error

    with variant(bulk=True, yielding=True):
        monkeypatch.setattr(thread_pool, "WAKE_SECONDS", 0.0)
        facts = {"e": [*EDGES, *LONG], "w": WEIGHTS}
        executor = executor_of(DECLS + PROGRAMS[name], facts, threads=threads, on_progress=progress)
        with pytest.raises(error):
            executor.run()
    assert len(seen) == after + 1
    assert workers() == []


def test_a_finished_run_leaves_no_thread() -> None:
    with variant(bulk=True):
        ran(DECLS + PROGRAMS["closure"], {"e": EDGES}, threads=3)
    assert workers() == []


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2])
def test_progress_tells_where_the_run_stands(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Progress] = []
    with variant(yielding=True, bulk=True):
        monkeypatch.setattr(thread_pool, "WAKE_SECONDS", 0.0)
        text = DECLS + PROGRAMS["closure"] + "\n.decl q(x: number)\nq(x) :- p(x, x)."
        executor = executor_of(text, {"e": LONG[:100]}, threads=threads, on_progress=seen.append)
        executor.run()
    final = len(rows_of(executor, "p"))
    places = [(s.stratum, s.strata, s.relations) for s in seen]
    assert ("p",) in {relations for _, _, relations in places}
    assert set(places) <= {(1, 2, ("p",)), (2, 2, ("q",))}
    while_closing = [s for s in seen if s.relations == ("p",)]
    for figures in ([s.rows for s in while_closing], [s.iteration for s in while_closing]):
        assert figures == sorted(figures) and figures[0] < figures[-1]
    assert while_closing[-1].rows <= final == 100 * 101 // 2
    assert all(s.bytes > 0 for s in seen)
