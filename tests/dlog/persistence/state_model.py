"""A session on disk whose every round is known beforehand, and what its relations are after it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import dlog
from tests.dlog.persistence.state_frames import Frame, named_parts, parts_of

Change = tuple[str, int, tuple[Any, ...]]
"""Relation, diff, row."""
Rows = dict[str, set[tuple[Any, ...]]]

RULES = """
.type Pair = [number: number, text: symbol]
.decl edge(x: number, y: number)
.decl name(x: number, text: symbol)
.decl pair(p: Pair)
.decl both(x: number, y: number)
.input both
.decl path(x: number, y: number)
.decl lonely(x: number)
.decl degree(x: number, n: number)
.decl label(x: number, text: symbol)
.decl made(p: Pair)
.decl weight(x: number, w: float)
both(x, y) :- edge(y, x).
path(x, y) :- both(x, y).
path(x, z) :- path(x, y), both(y, z).
lonely(x) :- name(x, _), !path(x, _).
degree(x, n) :- edge(x, _), n = count : { edge(x, _) }.
label(x, cat(text, to_string(y))) :- name(x, text), edge(x, y).
made([x, text]) :- label(x, text).
made(p) :- pair(p).
weight(x, itof(n) / 2.0) :- degree(x, n).
"""
FACTS = 'edge(100, 101).\nname(100, "a hundred").\nboth(7, 7).\n'
PROGRAM = RULES + FACTS
INPUTS = ("edge", "name", "pair", "both")
_FIRST: list[Change] = [("edge", 1, (100, 101)), ("name", 1, (100, "a hundred")), ("both", 1, (7, 7))]


def changes_of(seed: int, round: int) -> list[Change]:
    """What a round changes. The first one has the program's facts; each row comes once."""
    if round == 1:
        return list(_FIRST)
    rng = random.Random(f"{seed} {round}")
    found: dict[tuple[str, tuple[Any, ...]], int] = {}
    for _ in range(rng.randrange(4)):
        found["edge", (rng.randrange(9), rng.randrange(9))] = rng.choice((1, 1, -1))
    if rng.random() < 0.5:
        found["name", (rng.randrange(9), f"n{rng.randrange(40)}")] = rng.choice((1, -1))
    if rng.random() < 0.3:
        found["pair", ((rng.randrange(5), f"p{rng.randrange(20)}"),)] = rng.choice((1, -1))
    if rng.random() < 0.2:
        found["both", (rng.randrange(9), rng.randrange(9))] = rng.choice((1, -1))
    if rng.random() < 0.1:
        name, _, row = rng.choice(_FIRST)
        found[name, row] = -1
    return [(name, diff, row) for (name, row), diff in found.items()]


def inputs_after(seed: int, round: int) -> Rows:
    """The rows from outside after a round."""
    rows: Rows = {name: set() for name in INPUTS}
    for r in range(1, round + 1):
        for name, diff, row in changes_of(seed, r):
            (rows[name].add if diff > 0 else rows[name].discard)(row)
    return rows


def expected(seed: int, round: int) -> Rows:
    """All relations after a round, from scratch."""
    result = dlog.run(RULES, inputs_after(seed, round), threads=1)
    return {name: set(relation) for name, relation in result.items()}


def commit(session: dlog.Session, seed: int, rounds: int, frames: bool = False) -> int:
    """Commits the next rounds, one in the way most sessions do, perhaps as frames, several at once."""
    first = session.round + 1
    if rounds == 1:
        listed = changes_of(seed, first)
        for name, diff, row in listed if not frames else ():
            (session.insert if diff > 0 else session.remove)(name, row)
        for name, diff in dict.fromkeys((name, diff) for name, diff, _ in listed) if frames else ():
            rows = [row for n, d, row in listed if (n, d) == (name, diff)]
            if name == "pair":
                rows = [(f"[{x}, {text}]",) for ((x, text),) in rows]
            (session.insert if diff > 0 else session.remove)(name, Frame.of(*rows))
        session.commit(mark=10 * first)
    else:
        last = first + rounds - 1
        listed = [(r, *change) for r in range(first, last + 1) for change in changes_of(seed, r)]
        if not any(r == last for r, *_ in listed):
            listed.append((last, "edge", -1, (50, 50)))  # so that the last round is there
        session.apply(listed, mark=10 * last)
    return session.round


def all_rows(session: dlog.Session) -> Rows:
    return {name: set(session[name]) for name in session}


def check(folder: Path, seed: int, close: bool) -> int:
    """Opens a state and compares it with what its round should be; returns the round."""
    session = dlog.session(PROGRAM, state=folder, sync="never", threads=1)
    assert all_rows(session) == expected(seed, session.round)
    assert parts_of(folder) == named_parts(session)
    external = {name: session._engine.external(name).rows for name in INPUTS}
    assert external == {name: len(rows) for name, rows in inputs_after(seed, session.round).items()}
    assert session.mark in (None, 10 * session.round) if session.round == 1 else session.mark == 10 * session.round
    round = session.round
    if close:
        session.close()
    else:
        session._engine.abandon()  # type: ignore[attr-defined]
    return round
