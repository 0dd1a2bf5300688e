"""Random programs with stages: relations that only map or filter another one, which may be given, derived, recursive or a stage
itself; and rules that read them in every position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from tests.strategies import COLUMNS, Case, Relation, Rule, graphs, rows, rule
from tests.strategies_terms import Names, Scope, test
from tests.strategies_values import LITERALS

Draw = Any


@st.composite
def staged_programs(draw: Draw) -> Case:
    edge = Relation("e", ("number", "number"))
    other = Relation("i", tuple(draw(st.lists(COLUMNS, max_size=3))))
    facts = {"e": draw(graphs()), "i": draw(rows(other.types))}
    relations, rules = [edge, other], list[Rule]()
    if draw(st.booleans()):
        closure = Relation("r", ("number", "number"), 1)
        relations.append(closure)
        rules += [Rule(("r(x, y)",), ("e(x, y)",)), Rule(("r(x, z)",), ("r(x, y)", "e(y, z)"))]
    for number in range(draw(st.integers(2, 5))):
        if draw(st.integers(0, 2)):
            made, text = stage(draw, f"s{number}", draw(st.sampled_from(relations[-3:])), len(relations))
            relations.append(made)
            rules.append(text)
            if draw(st.integers(0, 9)) == 0:
                rules.append(Rule((f"{made.name}({', '.join(draw(LITERALS[t]) for t in made.types)})",)))
        else:
            rules += reader(draw, f"q{number}", relations)
    rules += reader(draw, "q", relations)
    return Case(tuple(relations), tuple(rules), facts)


def stage(draw: Draw, name: str, source: Relation, stratum: int) -> tuple[Relation, Rule]:
    """A relation of rows of the source: usually all of its columns, in any order, and perhaps with others between them, where
    some tests hold."""
    scope = Scope(Names())
    args = [_argument(draw, scope, type_name) for type_name in source.types]
    columns = [(v, scope.types[v]) for v in draw(st.permutations(sorted(scope.types)))]
    if columns and draw(st.integers(0, 4)) == 0:
        columns.insert(draw(st.integers(0, len(columns))), draw(st.sampled_from(columns)))
    if draw(st.integers(0, 4)) == 0:
        type_name = draw(st.sampled_from(["number", "symbol", "float"]))
        columns.insert(draw(st.integers(0, len(columns))), (draw(LITERALS[type_name]), type_name))
    tests = [_test(draw, scope) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    tests += _computed(draw, columns)
    body = tuple(draw(st.permutations([f"{source.name}({', '.join(args)})", *(found for found in tests if found)])))
    made = Relation(name, tuple(t for _, t in columns), stratum)
    return made, Rule((f"{name}({', '.join(term for term, _ in columns)})",), body)


def _computed(draw: Draw, columns: list[tuple[str, str]]) -> list[str]:
    """Has some columns computed of themselves, or adds one that is of others; returns what is to be in the body for that."""
    numbers = [place for place, (_, type_name) in enumerate(columns) if type_name == "number"]
    if not numbers or draw(st.integers(0, 2)):
        return []
    place = draw(st.sampled_from(numbers))
    value = columns[place][0]
    if draw(st.booleans()):
        other = columns[draw(st.sampled_from(numbers))][0]
        columns.insert(draw(st.integers(0, len(columns))), (f"{value} * {other} - 1", "number"))
        return []
    term = draw(st.sampled_from(["{} + 2", "3 - {}", "-{}", "bnot({})", "1 bxor ({} - 1)", "({} + 1) * 2"])).format(value)
    named = draw(st.booleans())
    columns[place] = ("computed" if named else term, "number")
    return [f"computed = {term}"] if named else []


def _argument(draw: Draw, scope: Scope, type_name: str) -> str:
    known = scope.of(type_name)
    match draw(st.sampled_from(["fresh"] * 12 + ["constant", "known" if known else "fresh", "none"])):
        case "constant":
            return draw(LITERALS[type_name])
        case "known":
            return draw(st.sampled_from(known))
        case "none":
            return "_"
        case _:
            return scope.bind(type_name)


def _test(draw: Draw, scope: Scope) -> str:
    """A comparison that a filter may have; now and then any test."""
    typed = [t for t in ("number", "unsigned", "float", "symbol", "Pair") if scope.of(t)]
    if not typed or draw(st.integers(0, 5)) == 0:
        return test(draw, scope)
    type_name = draw(st.sampled_from(typed))
    left = draw(st.sampled_from(scope.of(type_name)))
    right = draw(st.one_of(st.sampled_from(scope.of(type_name)), LITERALS[type_name]))
    if type_name in ("symbol", "Pair"):
        return f"{left} {draw(st.sampled_from(['!=', '!=', '=']))} {right}"
    computed = ["{x}", "{x}", "{x} + {y}", "{x} - {y}", "{x} * {y}", *(["-{x}"] if type_name != "unsigned" else [])]
    if type_name != "float":
        computed += ["{x} % 3", "{x} band {y}", "{x} bor {y}", "{x} bxor {y}", "bnot {x}"]
    term = draw(st.sampled_from(computed)).format(x=left, y=right)
    return f"{term} {draw(st.sampled_from(['=', '!=', '<', '<=', '>', '>=']))} {right}"


def reader(draw: Draw, name: str, relations: list[Relation]) -> list[Rule]:
    """One or two rules of a new relation over others, above all the last ones; the second may be recursive."""
    made = Relation(name, tuple(draw(st.lists(COLUMNS, max_size=3))), len(relations))
    lower: Sequence[Relation] = [*relations, *relations[-2:], *relations[-2:]]
    found = [_simple(draw, made, lower) if draw(st.booleans()) else rule(draw, [made], lower, ())]
    if draw(st.booleans()):
        found.append(rule(draw, [made], lower, [made] if draw(st.booleans()) else ()))
    relations.append(made)
    return found


def _simple(draw: Draw, made: Relation, lower: Sequence[Relation]) -> Rule:
    """A rule that reads one atom, or counts, or asks for what is not there."""
    read, beside = draw(st.sampled_from(lower)), draw(st.sampled_from(lower))
    scope = Scope(Names())
    args = [scope.bind(t) if draw(st.integers(0, 3)) else "_" for t in read.types]
    atom = f"{read.name}({', '.join(args)})"
    body = [atom]
    match draw(st.integers(0, 3)):
        case 0:
            body.append(f"{scope.bind('number')} = count : {{ {atom} }}")
        case 1:
            inner = ", ".join(draw(st.sampled_from([*scope.of(t), "_"])) for t in beside.types)
            body.append(f"{scope.bind('number')} = count : {{ {beside.name}({inner}) }}")
        case 2:
            body.append(f"!{beside.name}({', '.join(draw(st.sampled_from([*scope.of(t), '_'])) for t in beside.types)})")
        case _:
            pass
    terms = [draw(st.sampled_from(scope.of(t))) if scope.of(t) else draw(LITERALS[t]) for t in made.types]
    return Rule((f"{made.name}({', '.join(terms)})",), tuple(body))
