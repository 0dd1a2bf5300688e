"""Only what changes is touched: what a commit visits is counted, whatever else the program has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.runtime.incremental.engines.maintained import Maintained
from dlog.engine.runtime.incremental.schedule import Visits
from dlog.engine.values.updates import Updates
from dlog.grammar.source import Source
from tests.engine.runtime.maintaining import Fusing

DIAMOND = """
.decl a(x: number, y: number)
.input a
.decl b(x: number)
.decl c(x: number)
.decl d(x: number)
.output d
b(x) :- a(x, _).
c(y) :- a(_, y).
d(x) :- b(x), c(x).
"""
CHAINS = {
    "total": "{q}(x) :- {p}(x, _), x > 3.\n",
    "closure": "{q}(x, y) :- {p}(x, y).\n{q}(x, z) :- {q}(x, y), {p}(y, z).\n",
    "count": "{q}(x, c) :- {p}(x, _), c = count : {{ {p}(x, _) }}.\n",
    "minimum": "{q}(x, c) :- {p}(x, _), c = min y : {{ {p}(x, y) }}.\n",
    "default": "{q}(x, c) :- {p}(x, _), c = count : {{ {r}(x, _) }}.\n",
    "negation": "{q}(x, y) :- {p}(x, y), !{r}(y, x).\n",
}


class Driven:
    """An engine, and what its last commit visited."""

    def __init__(self, engine: Maintained) -> None:
        self.engine = engine
        self.touched: set[str] = set()

    def commit(self, *changes: tuple[str, int, int, int]) -> Visits:
        """Changes of one round: relation, diff, x, y."""
        flow = self.engine._flow
        before = Visits(0, 0, 0) if flow is None else flow.visits
        given = {}
        for name in {change[0] for change in changes}:
            own = [change[1:] for change in changes if change[0] == name]
            diffs, x, y = (np.array(column, np.int64) for column in zip(*own, strict=True))
            arity = self.engine.program.relations[name].arity
            given[name] = Updates((x, y)[:arity], diffs, np.full(len(x), self.engine.round + 1))
        self.engine.commit(given)
        flow = self.engine._flow
        assert flow is not None
        self.touched = set(flow.touched())
        return flow.visits.since(before)

    def changes(self, relation: str) -> list[tuple[tuple[int, ...], int]]:
        updates = self.engine.changes(relation)
        rows = zip(*(column.tolist() for column in updates.columns), strict=True)
        return sorted(zip(rows, updates.diffs.tolist(), strict=True))


@contextmanager
def driven(text: str, make: type[Maintained] = Maintained) -> Iterator[Driven]:
    engine = make(compile_source(Source(text)))
    try:
        yield Driven(engine)
    finally:
        engine.close()


def chain(kind: str, number: int) -> str:
    names = {"p": f"p{number}", "q": f"q{number}", "r": f"r{number}"}
    arity = "x: number" if kind == "total" else "x: number, y: number"
    inputs = "".join(f".decl {n}(x: number, y: number)\n.input {n}\n" for n in (names["p"], names["r"]))
    return f"{inputs}.decl {names['q']}({arity})\n.output {names['q']}\n" + CHAINS[kind].format(**names)


def test_each_task_of_a_diamond_runs_at_most_once() -> None:
    with driven(DIAMOND) as program:
        program.commit(("a", 1, 1, 2))
        visits = program.commit(("a", 1, 2, 1), ("a", 1, 3, 3))
        assert program.touched == {"a", "b", "c", "d"}
        # a to b, a to c; b and c; those two to d; d.
        assert (visits.tasks, visits.paths) == (7, 4)
        assert program.changes("d") == [((1,), 1), ((2,), 1), ((3,), 1)]


def test_nothing_is_visited_without_a_change() -> None:
    with driven(DIAMOND) as program:
        program.commit(("a", 1, 1, 1))
        assert program.commit() == Visits(0, 0, 0)
        assert program.touched == set()
        assert program.changes("d") == []
        assert program.commit(("a", 1, 1, 1)).tasks == 0  # it is there already


def test_a_change_ends_where_nothing_comes_of_it() -> None:
    text = DIAMOND + ".decl e(x: number)\n.output e\ne(x) :- d(x), x > 10.\n.decl f(x: number)\n.output f\nf(x) :- e(x).\n"
    with driven(text) as program:
        program.commit(("a", 1, 1, 1))
        program.commit(("a", 1, 2, 2))
        assert program.touched == {"a", "b", "c", "d"}  # 2 is not greater than 10
        program.commit(("a", 1, 2, 1))
        assert program.touched == {"a", "b", "c"}  # both are known
        assert program.changes("b") == program.changes("c") == []
        program.commit(("a", 1, 11, 11))
        assert program.touched == {"a", "b", "c", "d", "e", "f"}


@pytest.mark.parametrize("kind", CHAINS)
def test_others_are_not_visited(kind: str) -> None:
    found = []
    for count in (1, 70):
        with driven("".join(chain(kind, number) for number in range(count))) as program:
            program.commit(*((f"p{number}", 1, 4, 5) for number in range(count)))
            first = program.commit(("p0", 1, 5, 6))
            touched = program.touched
            assert touched == {"p0", "q0"}
            second = program.commit(("p0", -1, 4, 5), ("r0", 1, 5, 5))
            assert program.touched <= {"p0", "q0", "r0"}
            found.append((first, second, program.changes("q0")))
    assert found[0] == found[1]
    assert found[0][2]


def test_of_a_recursion_only_what_changes_is_looked_at() -> None:
    links, rules = 40, ""
    for number in range(links):
        after = (number + 1) % links
        rules += f".decl e{number}(x: number, y: number)\n.input e{number}\n.decl r{number}(x: number)\n.output r{number}\n"
        rules += f"r{after}(y) :- r{number}(x), e{number}(x, y).\n"
    text = ".decl s(x: number)\n.input s\n" + rules + "r0(x) :- s(x).\n"
    with driven(text) as program:
        program.commit(("s", 1, 7, 0))
        assert program.commit(("e3", 1, 1, 2)).collections == 0  # nothing is in r3
        assert program.touched == {"e3"}
        program.commit(("e0", 1, 7, 8), ("e1", 1, 8, 9))
        assert program.touched == {"e0", "e1", "r1", "r2"}
        visits = program.commit(("s", 1, 9, 0))
        assert program.touched == {"s", "r0"}
        assert (visits.tasks, visits.collections) == (1, 1)
        visits = program.commit(("s", -1, 7, 0))
        assert program.touched == {"s", "r0", "r1", "r2"}
        assert visits.collections == 3
        assert program.changes("r2") == [((9,), -1)]


def test_a_stretch_keeps_changes_of_what_it_touches() -> None:
    with driven("".join(chain("closure", number) for number in range(5)), Fusing) as program:
        program.commit(*((f"p{number}", 1, 4, 5) for number in range(5)))
        engine, rounds = program.engine, 6
        for number in (2, 3):
            x = np.arange(rounds) + 5
            updates = Updates((x, x + 1), np.ones(rounds, np.int64), np.arange(rounds) + engine.round + 1)
            engine.commit({f"p{number}": updates})
            flow = engine._flow
            assert flow is not None and set(flow.touched_by_fused_batches()) == {f"p{number}", f"q{number}"}
            assert len(engine.changes(f"q{number}").rounds) == sum(range(2, rounds + 2))
            assert not engine.changes(f"q{5 - number}").rows
