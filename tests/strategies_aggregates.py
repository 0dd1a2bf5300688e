"""Random programs whose rules have several aggregates over bodies that are the same but for their names, or nearly so."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.strategies import Case, Relation, Rule, graphs, rows

Draw = Any

BODIES = [
    ("e({x}, {y})", "f({y}, {z})"),
    ("e({x}, {y})", "f({y}, {z})"),
    ("e({x}, {y})",),
    ("w({x}, {y}, {z})", "{z} > 0"),
    ("w({y}, {x}, _)", "{y} != 1"),
    ("w({y}, {z}, {y})",),
    ("e({x}, {y})", "!f({y}, {x})", "{z} = {y} * 2 - {x}"),
    ("e({y}, {z})", "f({z}, {y})"),
    ("e({x}, {y})", "f({y}, {z})", "w({z}, _, {t})"),
    ("f({x}, {y})", "r({y}, {z})"),
    ("f({x}, {y})", "{z} = count : {{ e({y}, _) }}"),
]
"""Bodies over the inputs and a closure `r`; `x` stands for the outer variable, the others are the aggregate's own."""
TARGETS = ["{v}", "{v}", "{v} + 1", "{v} * {v}", "3 - {v}"]


@st.composite
def aggregating_programs(draw: Draw) -> Case:
    inputs = [Relation("e", ("number", "number")), Relation("f", ("number", "number")), Relation("w", ("number",) * 3)]
    facts = {"e": draw(graphs()), "f": draw(graphs()), "w": draw(rows(inputs[2].types))}
    closure = Relation("r", ("number", "number"), 1)
    rules = [Rule(("r(x, y)",), ("e(x, y)",)), Rule(("r(x, z)",), ("r(x, y)", "e(y, z)"))]
    ops = draw(st.lists(st.sampled_from(["count", "sum", "min", "max", "mean", "sum"]), min_size=2, max_size=5))
    made = Relation("q", ("number", *("float" if op == "mean" else "number" for op in ops)), 2)
    bodies = draw(st.lists(st.sampled_from(BODIES), min_size=1, max_size=2))
    for outer in draw(st.sampled_from([["e(x, _)"], ["e(x, _)"], ["e(x, _)", "f(_, x)"]])):
        names = [f"a{number}" for number in range(len(ops))]
        asked = [f"{name} = {_aggregate(draw, op, bodies, name)}" for name, op in zip(names, ops, strict=True)]
        rules.append(Rule((f"q(x, {', '.join(names)})",), tuple(draw(st.permutations([outer, *asked])))))
    return Case((*inputs, closure, made), tuple(rules), facts)


def _aggregate(draw: Draw, op: str, bodies: list[tuple[str, ...]], name: str) -> str:
    """An aggregate over one of the bodies, with names of its own."""
    body = draw(st.sampled_from(bodies))
    own = {letter: f"{letter}_{name}" for letter in "yzt"} | {"x": "x"}
    parts = [part.format(**own) for part in body]
    if draw(st.integers(0, 5)) == 0:
        parts.append(f"{own['y']} < {draw(st.integers(0, 4))}")
    if draw(st.integers(0, 5)) == 0:
        parts = draw(st.permutations(parts))
    known = [own[letter] for letter in "yzt" if own[letter] in " ".join(parts)]
    target = "" if op == "count" else draw(st.sampled_from(TARGETS)).format(v=draw(st.sampled_from(known)))
    return f"{op} {target} : {{ {', '.join(parts)} }}"
