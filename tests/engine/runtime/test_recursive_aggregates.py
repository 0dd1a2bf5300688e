"""The classic programs that are recursive through aggregates, run once and over rounds, and what is told of doubtful ones."""

from __future__ import annotations

from math import log
from typing import Any

import pytest

from dlog import run_text, session
from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import Diagnostic
from dlog.grammar.source import Source

Facts = dict[str, list[tuple[Any, ...]]]


def maintained(text: str, facts: Facts, relation: str) -> set[Any]:
    """The rows after rounds that insert every fact, remove one of each relation, and insert it again."""
    with session(text) as s:
        for name, rows in facts.items():
            s.insert(name, rows)
        s.commit()
        for name, rows in facts.items():
            s.remove(name, rows[:1])
        s.commit()
        for name, rows in facts.items():
            s.insert(name, rows[:1])
        s.commit()
        return set(s[relation])


COMPANIES = """.decl owns(x: symbol, y: symbol, p: number)
.decl company(x: symbol)
.decl controls(x: symbol, y: symbol)
company(x), company(y), controls(x, x), controls(y, y) :- owns(x, y, _).
controls(x, z) :- company(x), company(z), sum p : { controls(x, y), owns(y, z, p) } > 50."""

MATERIALS = """.decl basic(p: symbol, days: number)
.decl sub(p: symbol, s: symbol)
.decl part(p: symbol)
.decl ready(p: symbol, days: number)
part(p) :- basic(p, _) ; sub(p, _).
ready(p, d) :- part(p), d = max x : { basic(p, x) ; sub(p, s), ready(s, x) }."""

MESSAGES = """.decl friend(x: symbol, y: symbol)
.decl host(x: symbol)
.decl comes(x: symbol)
comes(x) :- host(x).
comes(x) :- friend(x, _), n = count : { friend(x, y), comes(y) }, n >= 2."""

VITERBI = """.decl start(x: symbol, p: float)
.decl step(x: symbol, y: symbol, p: float)
.decl shows(x: symbol, o: symbol, p: float)
.decl seen(t: number, o: symbol)
.decl best(t: number, x: symbol, p: float)
best(0, x, p + q) :- start(x, p), seen(0, o), shows(x, o, q).
best(t + 1, y, p + s + q) :- best(t, x, p), step(x, y, s), seen(t + 1, o), shows(y, o, q).
best(t, x, p) <= best(t, x, q) :- p < q."""

HIDDEN: Facts = {
    "start": [("healthy", 0.6), ("ill", 0.4)],
    "step": [("healthy", "healthy", 0.7), ("healthy", "ill", 0.3), ("ill", "healthy", 0.4), ("ill", "ill", 0.6)],
    "shows": [("healthy", "normal", 0.5), ("healthy", "cold", 0.4), ("healthy", "dizzy", 0.1),
              ("ill", "normal", 0.1), ("ill", "cold", 0.3), ("ill", "dizzy", 0.6)],
    "seen": [(0, "normal"), (1, "cold"), (2, "dizzy")],
}  # fmt: skip
BEST = {(0, "healthy"): 0.3, (0, "ill"): 0.04, (1, "healthy"): 0.084, (1, "ill"): 0.027,
        (2, "healthy"): 0.00588, (2, "ill"): 0.01512}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "facts", "relation", "expected"),
    [
        (
            COMPANIES,
            {"owns": [("a", "b", 60), ("a", "c", 30), ("b", "c", 30), ("c", "d", 51), ("d", "a", 10)]},
            "controls",
            {(x, x) for x in "abcd"} | {("a", "b"), ("a", "c"), ("a", "d"), ("c", "d")},
        ),
        (
            MATERIALS,
            {"basic": [("frame", 5), ("spoke", 9)], "sub": [("bike", "frame"), ("bike", "wheel"), ("wheel", "spoke")]},
            "ready",
            {("frame", 5), ("spoke", 9), ("wheel", 9), ("bike", 9)},
        ),
        (
            MESSAGES,
            {"friend": [("c", "a"), ("c", "b"), ("d", "b"), ("d", "c"), ("e", "d"), ("e", "f")], "host": [("a",), ("b",)]},
            "comes",
            {("a",), ("b",), ("c",), ("d",)},
        ),
    ],
    ids=["company control", "bill of materials", "message passing"],
)
def test_recursion_through_aggregates(text: str, facts: Facts, relation: str, expected: set[Any]) -> None:
    assert run_text(text, facts)[relation] == expected == maintained(text, facts, relation)


def test_viterbi_in_logarithms_is_maintained() -> None:
    facts = {name: [(*row[:-1], log(row[-1])) for row in rows] if name != "seen" else rows for name, rows in HIDDEN.items()}
    for rows in (run_text(VITERBI, facts)["best"], maintained(VITERBI, facts, "best")):
        assert {(t, x): p for t, x, p in rows} == pytest.approx({key: log(p) for key, p in BEST.items()})


def test_viterbi_with_products_is_computed_anew() -> None:
    text = VITERBI.replace("p + q", "p * q").replace("p + s + q", "p * s * q")
    for rows in (run_text(text, HIDDEN)["best"], maintained(text, HIDDEN, "best")):
        assert {(t, x): p for t, x, p in rows} == pytest.approx(BEST)


@pytest.mark.parametrize(
    ("rule", "reason"),
    [
        ("r(p, n) :- e(p, _), n = count : { r(p, _) }, n < 3.", "more rows of the cycle make the `count` greater"),
        ("r(p, 1) :- e(p, _), x = mean to_float(m) : { r(p, m) }, x > 0.5.", "only `count` and `sum` can be compared"),
        ("r(p, n) :- e(p, _), n = min m : { e(p, m) ; r(q, k), e(p, q), m = 9 - k }.", "whose value does not grow with it"),
    ],
)
def test_what_may_have_no_result_is_told_with_the_reason(rule: str, reason: str) -> None:
    text = f".decl e(x: number, y: number)\n.decl r(p: number, n: number)\n{rule}"
    found: list[Diagnostic] = []
    compile_source(Source(text), found.extend)
    [told] = [w for w in found if w.code == "unstratified"]
    assert reason in told.notes[1]
    assert run_text(text, {})["r"] == set()
