"""What engines keep of many commits is what each of these changed, whatever comes between."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.engine.runtime.incremental.batches import journal
from dlog.engine.runtime.incremental.engines.choice import make_engine
from dlog.engine.values.updates import Updates
from tests.engine.runtime.maintaining import (
    anew_rounds,
    fused_rounds,
    layered_rounds,
    replanned_rounds,
    with_classes_kept,
)
from tests.examples import examples
from tests.rounds import Driver, Story, grouped, stories
from tests.strategies import random_programs
from tests.strategies_views import staged_programs

ENGINES = {
    "maintained": make_engine,
    "fused": fused_rounds,
    "layered": layered_rounds,
    "replanned": replanned_rounds,
    "anew": anew_rounds,
    "classes": with_classes_kept(make_engine),
}
Added = dict[tuple[int, tuple[int, ...]], int]


def add(found: dict[str, Added], name: str, updates: Updates) -> None:
    """Adds up changes by round and row."""
    rounds = updates.rounds.tolist()
    assert rounds == sorted(rounds)
    for (row, diff), round in zip(updates.listed(), rounds, strict=True):
        at = round, tuple(row)
        found[name][at] = found[name].get(at, 0) + diff


def netted(found: dict[str, Added]) -> dict[str, Added]:
    added = {name: {at: diff for at, diff in by.items() if diff} for name, by in found.items()}
    return {name: by for name, by in added.items() if by}


def check_kept(make: Any, story: Story, taken: list[bool], words: int) -> None:
    """A journal, taken at times and with room for so many words, against the changes of each commit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "MAX_WORDS", words)
        driver = Driver(make, story.case.text)
        engine, names, done = driver.engine, list(driver.program.relations), 0
        kept: dict[str, Added] = defaultdict(dict)
        expected: dict[str, Added] = defaultdict(dict)
        for k, size in enumerate(grouped(len(story.rounds), story.groups)):
            driver.commit(story.rounds[done : done + size])
            done += size
            if engine.journal() is not None:
                for name in engine.touched:
                    add(expected, name, engine.changes(name))
            if taken[k % len(taken)]:
                for name, updates in engine.take_journal().items():
                    if name in names:
                        add(kept, name, updates)
                assert netted(kept) == netted(expected)
                assert engine.take_journal() == {}
        engine.close()


@pytest.mark.parametrize("make", ENGINES.values(), ids=ENGINES)
@examples(25)
@given(
    story=stories(st.one_of(random_programs(), staged_programs()), most=10),
    taken=st.lists(st.booleans(), min_size=1, max_size=5),
    words=st.sampled_from([1 << 14, 60]),
)
def test_a_journal_has_what_commits_changed(make: Any, story: Story, taken: list[bool], words: int) -> None:
    check_kept(make, story, taken, words)


TEXT = """
.decl edge(x: number, y: number)
.decl back(x: number, y: number)
.decl degree(x: number, n: number)
.decl some()
back(y, x) :- edge(x, y).
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
some() :- edge(_, _).
"""


def test_sessions_keep_commits_until_somebody_reads() -> None:
    with dlog.session(TEXT, history=1_000, threads=1) as s:
        for x in range(300):
            s.insert("edge", (x % 7, x))
            if x >= 20:
                s.remove("edge", ((x - 20) % 7, x - 20))
            s.commit()
        history = s._followers.history
        assert history._kept is not None
        assert sorted(s.at(101)["edge"]) == sorted((x % 7, x) for x in range(81, 101))
        assert history._kept is None and sorted(s.at(1)["back"]) == [(0, 0)]
        assert sorted(s.at(5)["degree"]) == [(x, 1) for x in range(5)]
        assert [len(s.at(round)["some"]) for round in (0, 1, 300)] == [0, 1, 1]


def test_rules_that_come_and_commits_that_fail_lose_no_changes() -> None:
    text = ".decl edge(x: number, y: number)\n.decl ratio(x: number, y: number)\nratio(x, 12 / y) :- edge(x, y).\n"
    with dlog.session(text, history=100, threads=1) as s:
        for x in range(1, 6):
            s.insert("edge", (x, x))
            s.commit()
        s.insert("edge", (9, 0))
        with pytest.raises(dlog.DlogError):
            s.commit()
        s.rollback()
        s.insert("edge", (6, 6))
        s.commit()
        s.add_rules(".decl back(x: number, y: number)\nback(y, x) :- edge(x, y).\n")
        s.remove("edge", (1, 1))
        s.commit()
        assert [len(s.at(round)["edge"]) for round in range(9)] == [0, 1, 2, 3, 4, 5, 6, 6, 5]
        assert [len(s.at(round)["back"]) for round in range(9)] == [0] * 7 + [6, 5]
        assert len(s.at(6)["ratio"]) == 6 and sorted(s.diff(5, 8)["edge"]) == [((1, 1), -1), ((6, 6), 1)]
