"""Delta queries of random bodies: of two to five atoms over relations that may come several times, in a random order."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.dataclass import dataclass
from dlog.dataflow import Collection, Dataflow
from dlog.dataflow.joins import Proposals
from dlog.dataflow.scopes import Scope
from tests.examples import examples

RELATIONS, ROUNDS, ITERATIONS = 2, 4, 3
Atom = tuple[int, str, str]
Change = tuple[int, tuple[int, int], int, int, int]
Counts = dict[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Body:
    """Atoms, each a relation and its two variables, and the order of their rules: the changes of one atom see those that happen
    to others at the same time if the rules of these come later. `ways` is in which order each rule joins the others."""

    atoms: tuple[Atom, ...]
    order: tuple[int, ...]
    ways: tuple[tuple[int, ...], ...]

    @property
    def variables(self) -> list[str]:
        return sorted({v for _, *both in self.atoms for v in both})

    def comes_later(self, atom: int, than: int) -> bool:
        return self.order.index(atom) > self.order.index(than)

    def joined_by(self, first: int) -> list[int]:
        """The other atoms in the order of this rule's way, of those each time that have a bound variable the first one."""
        bound, waiting, found = set(self.atoms[first][1:]), [k for k in self.ways[first] if k != first], []
        while waiting:
            following = next(k for k in waiting if bound & set(self.atoms[k][1:]))
            waiting.remove(following)
            found.append(following)
            bound |= set(self.atoms[following][1:])
        return found


@st.composite
def bodies(draw: st.DrawFn) -> Body:
    atoms: list[Atom] = [(draw(st.integers(0, RELATIONS - 1)), "a", "b")]
    names = ["a", "b"]
    for fresh in "cdef"[: draw(st.integers(1, 4))]:
        bound = draw(st.sampled_from(names))
        other = draw(st.sampled_from([name for name in [*names, fresh] if name != bound]))
        names += [other] if other == fresh else []
        pair = (bound, other) if draw(st.booleans()) else (other, bound)
        atoms.append((draw(st.integers(0, RELATIONS - 1)), *pair))
    permuted = st.permutations(range(len(atoms))).map(tuple)
    return Body(tuple(atoms), draw(permuted), tuple(draw(permuted) for _ in atoms))


value = st.integers(0, 2)
change = st.tuples(
    st.integers(0, RELATIONS - 1), st.tuples(value, value), st.integers(0, ROUNDS - 1), st.integers(0, ITERATIONS - 1),
    st.sampled_from([1, 1, 1, -1]),
)  # fmt: skip
changes = st.lists(change, min_size=3, max_size=14)
ends = st.lists(st.integers(1, ROUNDS - 1), max_size=2, unique=True).map(lambda found: [*sorted(found), ROUNDS])


def half_joined(body: Body, relations: list[Collection]) -> Collection:
    """A rule for the changes of each atom, by half-joins."""
    parts = [relations[number].rename(**{v: "x", w: "y"}) for number, v, w in body.atoms]
    rules = []
    for k in range(len(parts)):
        rule: Proposals = parts[k].propose()
        for other in body.joined_by(k):
            shared = tuple(v for v in parts[other].columns if v in rule.schema.names)
            rule = rule.half_join(parts[other], shared, ties=body.comes_later(other, k))
        rules.append(rule.collect().map(*body.variables))
    return rules[0].concat(*rules[1:])


def nudged(body: Body, relations: list[Collection]) -> Collection:
    """The same by the calculus: what is read before its own rule is nudged to `Neu`."""
    scope: Scope = relations[0].scope.altneu()
    rules = []
    for k, (number, v, w) in enumerate(body.atoms):
        found = relations[number].differentiate(scope).rename(**{v: "x", w: "y"})
        for other in body.joined_by(k):
            number, v, w = body.atoms[other]
            alt = relations[number].enter(scope).rename(**{v: "x", w: "y"})
            shared = tuple(name for name in alt.columns if name in found.columns)
            found = found.join(alt.neu() if body.comes_later(other, k) else alt, on=shared)
        rules.append(found.map(*body.variables))
    return rules[0].concat(*rules[1:]).integrate()


def naive(body: Body, there: list[Counts]) -> Counts:
    """All combinations of the atoms' rows, a row of the body for each that agrees."""
    found: list[tuple[dict[str, int], int]] = [({}, 1)]
    for number, v, w in body.atoms:
        found = [
            ({**bound, v: x, w: y}, count * times)
            for bound, count in found
            for (x, y), times in there[number].items()
            if bound.get(v, x) == x and bound.get(w, y) == y
        ]
    summed: Counter[tuple[int, ...]] = Counter()
    for bound, count in found:
        summed[tuple(bound[name] for name in body.variables)] += count
    return {row: count for row, count in summed.items() if count}


def rows_at(changed: list[Change], number: int, round: int, iteration: int) -> Counts:
    found: Counter[tuple[int, ...]] = Counter()
    for relation, row, when, step, diff in changed:
        if relation == number and when <= round and step <= iteration:
            found[row] += diff
    return {row: count for row, count in found.items() if count}


@pytest.mark.parametrize("looped", [False, True], ids=["rounds", "in a loop"])
@examples(60)
@given(bodies(), changes, ends)
def test_0_14_delta_queries_in_any_order_are_joins(looped: bool, body: Body, changed: list[Change], batches: list[int]) -> None:
    flow = Dataflow()
    inputs = [flow.input(x=int, y=int, step=int) for _ in range(RELATIONS)]
    loop = flow.scope.loop()
    relations = [(each.enter_at(loop, "step") if looped else each).map("x", "y") for each in inputs]
    made = {"half-joins": half_joined(body, relations)} | ({} if looped else {"calculus": nudged(body, relations)})
    captured = {name: each.capture(history=True) for name, each in made.items()}
    for number, row, round, step, diff in changed:
        inputs[number].update([(*row, step)], diff, at=round)
    for end in batches:
        flow.advance_to(end)
    for round, step in itertools.product(range(ROUNDS), range(ITERATIONS) if looped else [ITERATIONS]):
        expected = naive(body, [rows_at(changed, number, round, step) for number in range(RELATIONS)])
        for name, found in captured.items():
            assert found.counts((round, step) if looped else round) == expected, (name, round, step)
