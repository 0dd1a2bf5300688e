"""Programs that change while their inputs do: stories whose steps are rounds, or rules that come and go, told to a session and
compared with the naive evaluator after each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from hypothesis import reject
from hypothesis import strategies as st

import dlog
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.naive import TooBig, evaluate
from tests.rounds import BUDGET, Round, Row, State, Story, stories
from tests.strategies import Case, Relation, Rule

T = TypeVar("T")
Step = Round | Rule | int
"""A round; a rule that comes if it is not there, else goes; or a reader (see `reader`), likewise."""


@dataclass(frozen=True)
class Life:
    """A program (its rules at first) and what happens to it."""

    case: Case
    steps: list[Step]

    def __repr__(self) -> str:
        told = "\n".join(f"  {step.text if isinstance(step, Rule) else step}" for step in self.steps)
        return f"Life of\n{self.case.text}with\n{told}"


@st.composite
def lives(draw: Any, cases: st.SearchStrategy[Case], most: int = 6) -> Life:
    story: Story = draw(stories(cases, most))
    case = story.case
    rules = [rule for rule in case.rules if rule.body]
    first = [rule for rule in case.rules if not rule.body or draw(st.integers(0, 3))]
    steps: list[Step] = []
    for round in story.rounds:
        for _ in range(draw(st.sampled_from([0, 1, 1, 2]))):
            new = st.integers(0, 2 * len(case.relations) - 1)
            steps.append(draw(st.one_of(st.sampled_from(rules), new) if rules else new))
        steps.append(round)
    return Life(replace(case, rules=tuple(first)), steps)


def reader(case: Case, number: int) -> tuple[Relation, Rule]:
    """A relation that no other rule reads, and its rule: of all rows of some relation, or of pairs of them that agree."""
    read = [relation for relation in case.relations if relation.stratum < 9][number // 2]
    names = [f"a{i}" for i in range(len(read.types))]
    body = [f"{read.name}({', '.join(names)})"]
    if number % 2 and names and read.types[0] == read.types[-1]:
        body.append(f"{read.name}({', '.join(['_'] * (len(names) - 1) + names[:1])})")
    made = Relation(f"z{number}", read.types, 9)
    return made, Rule((f"{made.name}({', '.join(names)})",), tuple(body))


Between = Callable[[dlog.Session], dlog.Session]
Trouble = Callable[[], AbstractContextManager[object]]


def live(session: dlog.Session, life: Life, between: Between = lambda s: s, trouble: Trouble | None = None) -> dlog.Session:
    """Tells a life to a session of its first program; `between` steps it may be another one. With `trouble` each step is tried
    before, and either done then or interrupted, without a trace. Raises AssertionError where the session and the naive
    evaluator disagree."""
    case, held = life.case, {r.name: dict[str, Row]() for r in life.case.relations}
    before = _truth(case, held)
    for step in life.steps:
        session = between(session)
        done = None if trouble is None else _tried(session, case, step, before, trouble)
        done = done or _done(session, case, step)
        case = _after(case, step, held)
        now = _truth(case, held)
        assert list(session) == [r.name for r in case.relations]
        for name in session:
            assert {repr(row) for row in session[name]} == now[name].keys(), f"{name} after {step}"
            old = before.get(name, {})
            expected = dict.fromkeys(now[name].keys() - old.keys(), 1) | dict.fromkeys(old.keys() - now[name].keys(), -1)
            changes = [(repr(row), diff) for row, diff in done.changes(name)]
            assert len(changes) == len(dict(changes)) and dict(changes) == expected, f"changes of {name} by {step}"
        before = now
    return session


def _tried(session: dlog.Session, case: Case, step: Step, before: State, trouble: Trouble) -> dlog.Round | None:
    """What a step in trouble did, None if it has been interrupted: then everything is as it was."""
    round, names = session.round, list(session)
    try:
        with trouble():
            return _done(session, case, step)
    except KeyboardInterrupt:
        session.rollback()
    if session.round > round and isinstance(step, list):
        return dlog.Round(session, session.round, session.round)  # it came too late
    assert (session.round, list(session)) == (round, names)
    for name in session:
        if round:
            assert {repr(row) for row in session[name]} == before[name].keys(), f"{name} after {step} was interrupted"
    return None


def _done(session: dlog.Session, case: Case, step: Step) -> dlog.Round:
    if isinstance(step, list):
        for name, row, diff in step:
            (session.insert if diff > 0 else session.remove)(name, row)
        return session.commit()
    if isinstance(step, Rule):
        return session.drop_rules(step.text) if step in case.rules else session.add_rules(step.text)
    relation, rule = reader(case, step)
    if relation in case.relations:
        return session.drop_relation(relation.name)
    return session.add_rules(f"{relation.declaration}\n{rule.text}")


def _after(case: Case, step: Step, held: dict[str, dict[str, Row]]) -> Case:
    """The program after a step, and `held` the rows from outside."""
    if isinstance(step, list):
        for name, row, diff in step:
            held[name].pop(repr(row), None)
            if diff > 0:
                held[name][repr(row)] = row
        return case
    if isinstance(step, Rule):
        rules = tuple(r for r in case.rules if r != step) if step in case.rules else (*case.rules, step)
        return replace(case, rules=rules)
    relation, rule = reader(case, step)
    if relation in case.relations:
        held.pop(relation.name)
        return Case(_without(case.relations, relation), _without(case.rules, rule), {})
    held[relation.name] = {}
    return Case((*case.relations, relation), (*case.rules, rule), {})


def _without(listed: tuple[T, ...], gone: T) -> tuple[T, ...]:
    return tuple(one for one in listed if one != gone)


def _truth(case: Case, held: dict[str, dict[str, Row]]) -> State:
    try:
        found = evaluate(parse(Source(case.text)), {name: list(rows.values()) for name, rows in held.items()}, BUDGET)
    except TooBig:
        reject()
    return {name: {repr(row): row for row in rows} for name, rows in found.items()}
