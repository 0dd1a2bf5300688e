"""The law of rounds, for any engine: after every round, each relation is what the program says of the inputs as they are then.

A `Story` is a program with the rounds that happen to it, and how they are grouped into commits. `check` tells it to an engine
and compares with `naive.evaluate`, from scratch, after each round: the rows at the end of every commit, and in between the
changes, which must be exactly the difference of consecutive states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import reject
from hypothesis import strategies as st

from dlog.codec import Codec
from dlog.engine.ir.rules import Relation, with_inputs
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.differences import words
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from dlog.sessions.follow.changes import Changes
from dlog.sessions.ingest.streams import netted
from tests.naive import NotSettled, TooBig, evaluate
from tests.strategies import Case, programs
from tests.strategies_values import VALUES

Row = tuple[Any, ...]
Change = tuple[str, Row, int]
Round = list[Change]
MakeEngine = Callable[..., RoundsEngine]
State = dict[str, dict[str, Row]]
"""Per relation its rows by their text: -0.0 is not 0.0, and 1 is not 1.0."""

BUDGET = 60_000
"""Rows the naive evaluator may look at in one round."""


@dataclass(frozen=True)
class Story:
    case: Case
    rounds: list[Round] = field(hash=False)
    groups: list[int] = field(hash=False)
    """How many rounds go into each commit, over and over."""

    def __repr__(self) -> str:
        told = "\n".join(f"  {number}: {round}" for number, round in enumerate(self.rounds, 1))
        return f"Story of\n{self.case.text}with rounds in groups of {self.groups}\n{told}"


class Driver:
    """An engine with Python values on both sides."""

    def __init__(self, make: MakeEngine, text: str, **options: Any) -> None:
        program = compile_program(text)
        self.program = with_inputs(program, program.plain_eqrels)
        self.engine = make(self.program, **options)
        self.codec = Codec(self.program, self.engine.symbols, self.engine.records)

    def commit(self, rounds: Sequence[Round]) -> int:
        """The next rounds, all in one commit; the last change of a row in a round counts."""
        first = self.engine.round + 1
        by_relation: dict[str, list[tuple[Row, int, int]]] = {}
        for number, round in enumerate(rounds, first):
            for name, row, diff in round:
                by_relation.setdefault(name, []).append((row, diff, number))
        return self.engine.commit({name: self._updates(name, changes) for name, changes in by_relation.items()})

    def _updates(self, name: str, changes: list[tuple[Row, int, int]]) -> Updates:
        relation = self.program.relations[name]
        table = self.codec.table(relation, [row for row, _, _ in changes])
        columns = tuple(words(column) for column in table.columns)
        diffs, rounds = (np.array([change[i] for change in changes], np.int64) for i in (1, 2))
        return netted(relation, Updates(columns, diffs, rounds), self.engine.round)

    def rows(self, name: str) -> set[Row]:
        from dlog.relation import Relation as Rows

        table = self.engine.table(name)
        assert table.rows == self.engine.rows(name)
        found = list(Rows(self.program.relations[name], table, self.codec))
        assert len(found) == len(set(map(repr, found))) == table.rows, f"{name} has a row twice"
        return set(found)

    def changes(self, name: str) -> dict[int, dict[str, int]]:
        """The changes of the last commit: by round, the diff of each row's text."""
        relation: Relation = self.program.relations[name]
        found: dict[int, dict[str, int]] = {}
        changes = Changes(relation, self.engine.changes(name), self.codec)
        assert (np.diff(changes.rounds) >= 0).all(), f"the rounds of {name}'s changes do not ascend"
        for (row, diff), round in zip(changes, changes.rounds.tolist(), strict=True):
            assert repr(row) not in found.setdefault(round, {}), f"{row} of {name} changes twice in round {round}"
            found[round][repr(row)] = diff
        return found


def check_settled(make: MakeEngine, story: Story, **options: Any) -> None:
    """The same, where rounds after which rows depend on themselves are refused, and change nothing."""
    driver = Driver(make, story.case.text, **options)
    told: list[Round] = []
    states: list[State] = [{r.name: {} for r in story.case.relations}]
    for round in story.rounds:
        try:
            state = states_of(story.case, [*told, round])[-1]
        except NotSettled:
            with pytest.raises(DlogError, match="no result that stays the same"):
                driver.commit([round])
            assert driver.engine.round == len(told)
            continue
        told.append(round)
        states.append(state)
        _check_commit(driver, states, len(told) - 1, driver.commit([round]))
    driver.engine.close()


def check(make: MakeEngine, story: Story, **options: Any) -> None:
    """Raises AssertionError where the engine and the naive evaluator disagree."""
    states = [{r.name: {} for r in story.case.relations}, *states_of(story.case, story.rounds)]
    driver = Driver(make, story.case.text, **options)
    done = 0
    for size in grouped(len(story.rounds), story.groups):
        before, done = done, done + size
        _check_commit(driver, states, before, driver.commit(story.rounds[before:done]))
        while driver.engine.round < done:  # empty rounds at the end of a commit are not in any updates
            _check_commit(driver, states, driver.engine.round, driver.commit([]))
    driver.engine.close()


def _check_commit(driver: Driver, states: Sequence[State], before: int, now: int) -> None:
    assert before < now == driver.engine.round
    for name in driver.program.relations:
        rows = {repr(row) for row in driver.rows(name)}
        assert rows == states[now][name].keys(), f"{name} after round {now}"
        expected = differences([state[name] for state in states[before : now + 1]], before)
        assert driver.changes(name) == expected, f"changes of {name} in rounds {before + 1} to {now}"


def states_of(case: Case, rounds: Iterable[Round]) -> list[State]:
    """Every relation after each round, from scratch. The facts of the text are there from the first."""
    tree = parse(Source(case.text))
    held: dict[str, dict[str, Row]] = {r.name: {} for r in case.relations}
    states = []
    for round in rounds:
        for name, row, diff in round:
            if diff > 0:
                held[name][repr(row)] = row
            else:
                held[name].pop(repr(row), None)
        try:
            found = evaluate(tree, {name: list(rows.values()) for name, rows in held.items()}, BUDGET)
        except TooBig:
            reject()
        states.append({name: {repr(row): row for row in rows} for name, rows in found.items()})
    return states


def differences(states: Sequence[Mapping[str, Row]], before: int) -> dict[int, dict[str, int]]:
    """What changed from each state to the next, the first change being that of round `before + 1`."""
    found = {}
    for number, (old, new) in enumerate(pairwise(states), before + 1):
        changed = dict.fromkeys(new.keys() - old.keys(), 1) | dict.fromkeys(old.keys() - new.keys(), -1)
        if changed:
            found[number] = changed
    return found


def grouped(total: int, groups: Sequence[int]) -> list[int]:
    """Sizes of commits that make up `total` rounds."""
    sizes: list[int] = []
    while (left := total - sum(sizes)) > 0:
        sizes.append(min(left, groups[len(sizes) % len(groups)]))
    return sizes


# -------------------------------------------------------------------------------------------------------------- strategies


@st.composite
def stories(draw: Any, cases: st.SearchStrategy[Case] | None = None, most: int = 6) -> Story:
    """A program, and rounds that insert and remove rows of its inputs: those of its facts, so that joins meet, and others.

    Rows come and go several times, come that are there, and go that are not; a round may change nothing, or everything."""
    case = draw(programs() if cases is None else cases)
    inputs = [r for r in case.relations if not r.stratum]
    rows = {
        r.name: [*case.facts[r.name], *draw(st.lists(st.tuples(*(VALUES[t] for t in r.types)), max_size=2))] for r in inputs
    }
    known = [(name, row) for name, listed in rows.items() for row in listed]
    rounds: list[Round] = []
    if known and draw(st.booleans()):
        rounds.append([(name, row, 1) for name, row in known if draw(st.integers(0, 3))])
    for _ in range(draw(st.integers(1, most))):
        size = draw(st.sampled_from([0, 1, 1, 1, 2, 3, 5])) if known else 0
        picked = [draw(st.sampled_from(known)) for _ in range(size)]
        rounds.append([(name, row, draw(st.sampled_from([1, 1, -1, -1]))) for name, row in picked])
    if known and draw(st.integers(0, 4)) == 0:
        rounds.append([(name, row, -1) for name, row in known])
    groups = draw(st.sampled_from([[1], [len(rounds)], [1, 2], [3, 1], [2]]))
    return Story(replace(case, facts={}), rounds, groups)
