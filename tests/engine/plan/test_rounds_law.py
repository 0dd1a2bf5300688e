"""The law of plans over rounds: after every round, what is maintained is what the program gives from scratch.

For every construct and for random programs, random statistics and random insertions and deletions; one round at a time and many
rounds as one batch."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from dlog.branch import Branch
from dlog.engine.compiler import compile_source
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Lattice, Program, Stratum, Type
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from tests.engine.plan.interpret import Random, Relations, naive
from tests.engine.plan.interpret_rounds import Row
from tests.engine.plan.maintain import Change, Maintained, incremental
from tests.engine.plan.rules_text import program
from tests.engine.plan.test_meaning import AGGREGATES, CONJUNCTIVE, RECURSIVE
from tests.examples import examples
from tests.naive import TooBig, evaluate
from tests.strategies import Case, programs

ARITIES = {"e": 2, "n": 1, "t": 3, "q": 0, "rec": 1}
BUDGET = 20_000


def stream(seed: int, rounds: int, arities: Mapping[str, int] = ARITIES) -> tuple[list[Change], list[Relations]]:
    """Random changes, and the inputs after each round. Early rounds mostly insert."""
    rng = random.Random(seed)
    state: Relations = {name: set() for name in arities}
    batch, states = [], []
    for number in range(rounds):
        changes: dict[str, list[tuple[Row, int]]] = {}
        for name, arity in sorted(arities.items()):
            drawn = [_row(rng, name, arity) for _ in range(rng.choice([0, 1, 3]) if number else 8)]
            rows = {*drawn, *rng.sample(sorted(state[name], key=repr), min(len(state[name]), rng.choice([0, 0, 1, 2])))}
            changes[name] = [(row, -1 if row in state[name] else 1) for row in sorted(rows, key=repr)]
            state[name] ^= rows
        batch.append(changes)
        states.append({name: set(rows) for name, rows in state.items()})
    return batch, states


def _row(rng: random.Random, name: str, arity: int) -> Row:
    if name == "rec":
        return (rng.choice([None, (rng.randrange(5), rng.randrange(5))]),)
    return tuple(rng.randrange(5) for _ in range(arity))


def commit(maintained: Maintained, batch: Sequence[Change], at_once: bool) -> None:
    if at_once:
        maintained.commit(*batch)
        return
    for changes in batch:
        maintained.commit(changes)


def obeys(stratum: Stratum, whole: Program, seed: int, at_once: bool, rounds: int = 5) -> None:
    batch, states = stream(seed, rounds)
    maintained = Maintained(whole, Random(seed))
    commit(maintained, batch, at_once)
    for number, inputs in enumerate(states, 1):
        assert {r: maintained.rows(r, number) for r in stratum.relations} == naive(stratum, inputs)


AT_ONCE = pytest.mark.parametrize("at_once", [False, True], ids=["each", "batch"])


@AT_ONCE
@pytest.mark.parametrize("text", CONJUNCTIVE + AGGREGATES)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_construct_is_maintained(text: str, seed: int, at_once: bool) -> None:
    stratum, whole = program(text, ARITIES)
    obeys(stratum, whole, seed, at_once)


@AT_ONCE
@pytest.mark.parametrize("text", RECURSIVE)
@pytest.mark.parametrize("seed", [0, 1])
def test_recursion_is_maintained(text: str, seed: int, at_once: bool) -> None:
    stratum, whole = program(text, ARITIES, recursive=True)
    obeys(stratum, whole, seed, at_once)


@AT_ONCE
@pytest.mark.parametrize("seed", range(6))
def test_a_lattice_is_maintained(seed: int, at_once: bool) -> None:
    text = "d(x, v) :- n(x), v = min c : { c = 0, s(x) ; d(y, b), w(y, x, l), c = b + l }."
    _, whole = program(text, recursive=True, lattices={"d": Lattice("d", Dominance.LEAST, 1)})
    batch, states = stream(seed, 6, {"n": 1, "s": 1, "w": 3})
    maintained = Maintained(whole)
    commit(maintained, batch, at_once)
    for number, inputs in enumerate(states, 1):
        far = {x: 0 for (x,) in inputs["s"] & inputs["n"]}
        for _ in range(6):
            for y, x, length in inputs["w"]:
                if y in far and (x,) in inputs["n"]:
                    far[x] = min(far.get(x, 999), far[y] + length)
        assert maintained.rows("d", number) == set(far.items())


# ---------------------------------------------------------------------------------------------------- random programs


@st.composite
def streams(draw: st.DrawFn, facts: Mapping[str, Sequence[Row]]) -> tuple[list[Change], list[dict[str, list[Row]]]]:
    """Rounds of changes that insert and delete rows of `facts`, and the inputs after each."""
    state: Relations = {name: set() for name in facts}
    batch, states = [], []
    for number in range(draw(st.integers(1, 4))):
        changes = {}
        for name, rows in facts.items():
            known = list(dict.fromkeys(rows))
            chosen = st.lists(st.sampled_from(known), max_size=3, unique=True) if known else st.just([])
            flipped = [row for row in known if draw(st.integers(0, 3))] if number == 0 else draw(chosen)
            changes[name] = [(row, -1 if row in state[name] else 1) for row in flipped]
            state[name] ^= set(flipped)
        batch.append(changes)
        states.append({name: sorted(rows, key=repr) for name, rows in state.items()})
    return batch, states


def hashable(value: Any) -> Any:
    if isinstance(value, Branch):
        return Branch(*map(hashable, value))
    return tuple(map(hashable, value)) if isinstance(value, tuple | list) else value


def as_stored(value: Any, types: Mapping[str, Type]) -> Any:
    """A value as plans have it: of an algebraic data type the record of its branch."""
    match value:
        case Branch(name, args):
            branch = types[f"${name}"]
            tag = types[branch.adt].branches.index(branch.name)
            return (tag, *(as_stored(arg, types) for arg in args), *(0,) * (len(branch.fields) - 1 - len(args)))
        case tuple():
            return tuple(as_stored(part, types) for part in value)
        case _:
            return value


def from_scratch(case: Case, inputs: dict[str, list[Row]]) -> dict[str, set[Row]]:
    try:
        return evaluate(parse(Source(case.text)), inputs, BUDGET)
    except TooBig:
        reject()


@examples(120)
@given(case=programs(), data=st.data(), figures=st.integers(0, 20), at_once=st.booleans())
def test_maintained_is_from_scratch(case: Case, data: st.DataObject, figures: int, at_once: bool) -> None:
    _maintained_is_from_scratch(case, data, figures, at_once)


@pytest.mark.exhaustive
@examples(3000)
@given(case=programs(), data=st.data(), figures=st.integers(0, 20), at_once=st.booleans())
def test_maintained_is_from_scratch_for_thousands_of_programs(
    case: Case, data: st.DataObject, figures: int, at_once: bool
) -> None:
    _maintained_is_from_scratch(case, data, figures, at_once)


def _maintained_is_from_scratch(case: Case, data: st.DataObject, figures: int, at_once: bool) -> None:
    """Rows are compared as text, so that their values have the same types."""
    compiled = compile_source(Source(case.text))
    maintained = incremental(compiled, Random(figures))
    assume(maintained is not None)
    assert maintained is not None
    batch, states = data.draw(streams({name: hashable(rows) for name, rows in case.facts.items()}))
    expected = [from_scratch(case, inputs) for inputs in states]
    types = compiled.types
    stored = [{name: [(as_stored(row, types), n) for row, n in own] for name, own in changes.items()} for changes in batch]
    commit(maintained, stored, at_once)
    for number, relations in enumerate(expected, 1):
        for r in case.relations:
            rows = [as_stored(row, compiled.types) for row in relations[r.name]]
            assert sorted(map(repr, maintained.rows(r.name, number))) == sorted(map(repr, rows)), (r.name, number)
