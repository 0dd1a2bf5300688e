"""Diffs of Abelian groups of one's own: what they come to where rows come and go, at rounds and at times of loops."""

from __future__ import annotations

import itertools
import operator
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataclass import dataclass
from dlog.dataflow import Collection, Dataflow, col, group
from dlog.dataflow.folds import Weight
from dlog.grammar.diagnostics import DlogError
from tests.dlog.dataflow.terms import ends
from tests.dlog.dataflow.test_partial_orders import ITERATIONS, ROUNDS
from tests.examples import examples

Added = list[tuple[str, Any, int, int]]
"""Key, value, round and how often."""


@dataclass(frozen=True, slots=True)
class Case:
    """A group: the component of a column `value`, and what it comes to, by a sum of one element after the other."""

    kind: type
    values: list[Any]
    weight: Callable[[], Weight]
    zero: Any
    plus: Callable[[Any, Any], Any]
    negate: Callable[[Any], Any]
    lift: Callable[[Any], Any] = lambda value: value
    lower: Callable[[Any], Any] = lambda element: element

    def total(self, rows: dict[Any, int]) -> Any:
        """The naive twin: element by element."""
        elements = [
            self.lift(value) if count > 0 else self.negate(self.lift(value))
            for value, count in rows.items()
            for _ in range(abs(count))
        ]
        return reduce(self.plus, elements, self.zero)


def _added(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The sum of two polynomials, without zeros at the end."""
    found = [x + y for x, y in itertools.zip_longest(a, b, fillvalue=0)]
    while found and not found[-1]:
        found.pop()
    return tuple(found)


def _merged(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {name: count for name in {*a, *b} if (count := a.get(name, 0) + b.get(name, 0))}


WORDS = group.of(
    object,
    zero={},
    plus=_merged,
    negate=lambda a: {name: -count for name, count in a.items()},
    lift=lambda text: {text[0]: len(text)},
    lower=lambda a: tuple(sorted(a.items())),
)
PRODUCTS = group.of(object, zero=Fraction(1), plus=operator.mul, negate=lambda a: 1 / a)
POLYNOMIALS = group.of(object, zero=(), plus=_added, negate=lambda a: tuple(-x for x in a), lift=lambda x: _added((1, x), ()))
MATRICES = group.of(
    object,
    zero=np.zeros((2, 2), np.int64),
    plus=np.add,
    negate=np.negative,
    lift=lambda x: np.array([[x, 1], [0, -x]]),
    lower=lambda a: tuple(a.reshape(-1).tolist()),
)
MEAN = group.of(
    object,
    zero=(0, 0),
    plus=lambda a, b: (a[0] + b[0], a[1] + b[1]),
    negate=lambda a: (-a[0], -a[1]),
    times=lambda a, n: (a[0] * n, a[1] * n),
    lift=lambda x: (x, 1),
    lower=lambda a: a[0] / a[1] if a[1] else float("inf"),
    result=float,
)
COMPLEX = group.of(object, zero=0j, plus=operator.add, negate=operator.neg, exact=False)
CLOCK = group.of(int, zero=0, plus=lambda a, b: (a + b) % 12, negate=lambda a: -a % 12, lift=lambda a: a % 12)
HALVES = group.of(float, zero=0.0, plus=np.add, negate=np.negative)
NUMBERS = [0, 1, 5, -7, 2**40]
CASES = {
    "xor": Case(int, NUMBERS, lambda: group.xor("value"), 0, operator.xor, lambda a: a),
    "parity": Case(bool, [False, True], lambda: group.xor("value"), False, operator.xor, lambda a: a),
    "modulo": Case(int, NUMBERS, lambda: group.modulo("value", 7), 0, lambda a, b: (a + b) % 7, lambda a: -a),
    "clock": Case(int, NUMBERS, lambda: CLOCK("value"), 0, lambda a, b: (a + b) % 12, lambda a: -a),
    "halves": Case(float, [0.5, -0.25, 3.0], lambda: HALVES("value"), 0.0, operator.add, operator.neg),
    "large": Case(int, [2**62, -(2**63), 1], lambda: group.sum("value"), 0, operator.add, operator.neg),
    "fractions": Case(
        object, [Fraction(1, 3), Fraction(-2, 7), 0], lambda: group.sum("value"), 0, operator.add, operator.neg
    ),
    "products": Case(
        object,
        [Fraction(1, 3), Fraction(-2), Fraction(1)],
        lambda: PRODUCTS("value"),
        Fraction(1),
        operator.mul,
        lambda a: 1 / a,
    ),
    "polynomials": Case(
        int,
        [0, 1, -2],
        lambda: POLYNOMIALS("value"),
        (),
        _added,
        lambda a: tuple(-x for x in a),
        lambda x: (1, x) if x else (1,),
    ),
    "matrices": Case(
        int,
        [0, 1, -2],
        lambda: MATRICES("value"),
        (0, 0, 0, 0),
        lambda a, b: tuple(x + y for x, y in zip(a, b, strict=True)),
        lambda a: tuple(-x for x in a),
        lambda x: (x, 1, 0, -x),
    ),
    "words": Case(
        str,
        ["a", "ab", "b"],
        lambda: WORDS("value"),
        {},
        _merged,
        lambda a: {name: -count for name, count in a.items()},
        lambda text: {text[0]: len(text)},
        lambda a: tuple(sorted(a.items())),
    ),
    "mean": Case(
        int,
        [0, 1, 4],
        lambda: MEAN("value"),
        (0, 0),
        lambda a, b: (a[0] + b[0], a[1] + b[1]),
        lambda a: (-a[0], -a[1]),
        lambda x: (x, 1),
        lambda a: a[0] / a[1] if a[1] else float("inf"),
    ),
    "complex": Case(object, [1j, 0.5 - 2j, 0j], lambda: COMPLEX("value"), 0j, operator.add, operator.neg),
}
NAMES = st.sampled_from(list(CASES))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Case, Added, list[int]]:
    case = CASES[draw(NAMES)]
    row = st.tuples(
        st.sampled_from("kl"), st.sampled_from(case.values), st.integers(0, 11), st.sampled_from([1, 1, 2, 3, -1, -1, -2])
    )
    return case, draw(st.lists(row, max_size=20)), draw(st.lists(st.integers(1, 5), max_size=6))


def _rows(added: Added, round: int) -> dict[str, dict[Any, int]]:
    """By key the values that are there at a round, and how often."""
    found: dict[str, Counter] = {}
    for key, value, at, diff in added:
        if at <= round:
            found.setdefault(key, Counter())[value] += diff
    return {key: dict(counts) for key, counts in found.items()}


def _alone(case: Case, key: Any, rows: dict[Any, int]) -> dict[Any, int]:
    """The row of a key whose diffs are of the group alone."""
    total = case.total(rows)
    return {(*key, case.lower(total)): 1} if total != case.zero else {}


def _beside(case: Case, key: Any, rows: dict[Any, int]) -> dict[Any, int]:
    """The same with how many rows there are in front."""
    total, count = case.total(rows), sum(rows.values())
    return {(*key, count, case.lower(total)): 1} if count or total != case.zero else {}


@examples(300)
@given(cases())
def test_3_1_diffs_may_be_of_any_abelian_group(drawn: tuple[Case, Added, list[int]]) -> None:
    """At every round they are the sums of what is there, alone and beside a count, with and without a key."""
    case, added, steps = drawn
    flow = Dataflow()
    rows = flow.input(key=str, value=case.kind)
    alone = rows.explode("key", diff=case.weight()).count("total").capture(history=True)
    beside = rows.explode("key", diff=(1, case.weight())).count("rows", "total").capture(history=True)
    every = rows.explode(diff=(1, case.weight(), 1)).count("rows", "total", "again").map("rows", "total").capture(history=True)
    for key, value, round, diff in added:
        rows.update([(key, value)], diff, at=round)
    for step in [*steps, 12]:
        flow.advance_to(flow.round + step)
    for round in range(12):
        expected: dict[str, dict] = {"alone": {}, "beside": {}, "every": {}}
        there = _rows(added, round)
        for key, values in there.items():
            expected["alone"] |= _alone(case, (key,), values)
            expected["beside"] |= _beside(case, (key,), values)
        together: Counter = Counter()
        for values in there.values():
            together.update(values)
        if together:
            expected["every"] = _beside(case, (), together)
        assert alone.counts(round) == expected["alone"]
        assert beside.counts(round) == expected["beside"]
        assert every.counts(round) == expected["every"]


@st.composite
def changes(draw: st.DrawFn) -> tuple[Case, list, list[int]]:
    case, iteration = CASES[draw(NAMES)], st.integers(0, ITERATIONS - 1)
    time = st.integers(0, ROUNDS - 1), iteration, iteration
    change = st.tuples(st.sampled_from("kl"), st.sampled_from(case.values), *time, st.sampled_from([1, 1, 2, -1, -3]))
    return case, draw(st.lists(change, max_size=12)), draw(ends)


@examples(150)
@given(changes())
def test_3_1_sums_of_a_group_are_right_at_partially_ordered_times(drawn: tuple[Case, list, list[int]]) -> None:
    case, changed, batches = drawn
    flow = Dataflow()
    loop = flow.scope.loop()
    inner = loop.loop()
    rows = flow.input(key=str, value=case.kind, i=int, j=int)
    entered = rows.enter_at(loop, "i").enter_at(inner, "j")
    found = entered.explode("key", diff=(case.weight(), 1)).count("total", "rows").capture(history=True)
    for key, value, round, i, j, diff in changed:
        rows.update([(key, value, i, j)], diff, at=round)
    for end in batches:
        flow.advance_to(end)
    for time in itertools.product(range(ROUNDS), range(ITERATIONS), range(ITERATIONS)):
        added = [(k, v, 0, d) for k, v, *at, d in changed if all(a <= b for a, b in zip(at, time, strict=True))]
        expected: dict = {}
        for key, values in _rows(added, 0).items():
            expected |= {(key, total, count): 1 for (_, count, total) in _beside(case, (key,), values)}
        assert found.counts(time) == expected, time


@pytest.mark.parametrize("name", list(CASES))
def test_rows_are_there_as_often_as_there_are_bits_for(name: str) -> None:
    """So many times an element are as many sums of it: by halves, which are a sum of two."""
    case = CASES[name]
    value = case.values[1]
    flow = Dataflow()
    rows = flow.input(value=case.kind)
    found = rows.explode(diff=(case.weight(), 1)).count("total", "rows").capture(history=True)
    for round, diff in enumerate((1000, -999, -(2**10), 2**10 - 2)):
        rows.update([(value,)], diff, at=round)
    flow.advance_to(4)
    for round, count in enumerate((1000, 1, -1023, -1)):
        assert found.counts(round) == {(case.lower(case.total({value: count})), count): 1}


def test_sums_begin_with_a_zero_of_their_type() -> None:
    flow = Dataflow()
    rows = flow.input(span=object)
    found = rows.explode(diff=(1, group.sum("span", zero=timedelta(0)))).count("rows", "total").capture()
    rows.insert([timedelta(hours=2), timedelta(minutes=5)])
    rows.update([timedelta(minutes=1)], -3)
    flow.commit()
    assert list(found) == [(-1, timedelta(hours=2, minutes=2))]


def test_multiplicities_have_64_bits() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    many = group.of(int, zero=0, plus=lambda a, b: (a + b) % 1009, negate=lambda a: -a % 1009)
    found = rows.explode(diff=many("x")).count("total").capture()
    for diff in (2**63 - 1, -(2**63 - 1), -(2**63 - 1)):
        rows.update([(5,)], diff)
        flow.commit()
    assert found.counts() == {(-5 * (2**63 - 1) % 1009,): 1}


def _held(build: Callable[[Collection], Collection], rounds: int) -> tuple[int, int]:
    """Updates and bytes that a dataflow holds after so many rounds of 50 rows of 20 keys, of which each 7th goes again."""
    flow = Dataflow()
    rows = flow.input(key=int, value=int)
    build(rows).inspect(lambda *update: None)
    for round in range(rounds):
        numbers = np.arange(50 * round, 50 * (round + 1))
        added = {"key": numbers % 20, "value": numbers * 7919 % 100_003}
        rows.insert(added)
        rows.remove({name: column[::7] for name, column in added.items()}, at=flow.round + 1)
        flow.commit()
    return flow.updates, sum(trace.spine.nbytes for operator in flow.operators for trace in operator.traces)


def test_of_groups_no_more_is_kept_than_their_sums() -> None:
    def build(rows: Collection) -> Collection:
        return rows.explode("key", diff=(1, group.xor("value"), group.modulo("value", 97))).count("rows", "bits", "rest")

    short, long, all_rows = _held(build, 20), _held(build, 400), _held(lambda rows: rows.min("value", by="key"), 400)
    assert long[0] <= 30 * 20 + 20 and long[1] < 2 * short[1] + 4_000
    assert all_rows[0] > 15_000 and long[1] * 4 < all_rows[1]


def test_places_of_keys_that_go_are_taken_by_others() -> None:
    flow = Dataflow()
    rows = flow.input(key=int, value=int)
    found = rows.explode("key", diff=group.xor("value")).count("bits").capture()
    for round in range(50):
        rows.insert([(round, 3), (round + 1, 5)])
        rows.remove([(round, 3), (round + 1, 5)], at=round + 1)
        flow.commit()
    assert found.counts() == {(49, 3): 1, (50, 5): 1}
    (kept,) = (o for o in flow.operators if str(o) == "Accumulated")
    assert len(kept._elements) <= 8  # type: ignore[attr-defined]


def test_updates_show_elements_and_collections_of_one_group_add_up() -> None:
    flow, seen = Dataflow(), []
    rows = flow.input(key=str, a=int, b=int)
    first = rows.explode("key", diff=(1, group.modulo("a", 10), MEAN("a")))
    second = rows.explode("key", diff=(2, group.modulo("b", 10), MEAN("b")))
    both = first.concat(second)
    both.consolidate().inspect(lambda *update: seen.append(update))
    found = both.negate().count("rows", "rest", "mean").capture()
    rows.insert([("k", 8, 4), ("l", 1, 9)])
    flow.commit()
    assert seen == [(("k",), 0, (3, 2, (12, 2))), (("l",), 0, (3, 0, (10, 2)))]
    assert found.counts() == {("k", -3, 8, 6.0): 1, ("l", -3, 0, 5.0): 1}


def test_groups_are_joined_and_stand_in_alt_neu_scopes() -> None:
    flow = Dataflow()
    rows, names = flow.input(key=int, value=int), flow.input(key=int, name=str)
    weighted = rows.explode("key", diff=(1, group.xor("value")))
    joined = weighted.join(names).map("name").count("rows", "bits").capture()
    scope = flow.scope.altneu()
    changed = rows.differentiate(scope).explode("key", diff=(1, group.xor("value"))).count("rows", "bits").capture(history=True)
    rows.insert([(1, 6), (2, 5), (1, 3)])
    names.insert([(1, "x"), (2, "x")])
    flow.commit()
    rows.remove([(1, 6)])
    flow.commit()
    assert joined.counts() == {("x", 2, 3 ^ 5): 1}
    assert [changed.counts(dlog.dataflow.AltNeu((0,), neu)) for neu in (False, True)] == [{(1, 2, 5): 1, (2, 1, 5): 1}, {}]
    assert changed.counts(dlog.dataflow.AltNeu((1,))) == {(1, -1, 6): 1}


def _flow(weight: Any) -> None:
    """Two rounds of rows, whose sums are asked for."""
    flow = Dataflow()
    rows = flow.input(x=int, y=float, o=object)
    rows.explode(diff=weight).count("total").capture()
    rows.insert([(n, n + 0.5, n) for n in (3, 4, 5)])
    flow.commit()


def _ints(**others: Any) -> Any:
    return group.of(int, **({"zero": 0, "plus": np.add, "negate": np.negative} | others))


def _objects(**others: Any) -> Any:
    return group.of(object, **({"zero": 0, "plus": operator.add, "negate": operator.neg} | others))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (lambda: _ints(zero=1)("x"), r"`group.of` breaks a law: plus\(zero, x\) is 4, x is 3, where x = 3\n"),
        (lambda: _ints(plus=lambda a, b: (a + b) % 4, negate=lambda a: -a % 4)("x"), "zero, x(.|\n)*some by `lift=`"),
        (lambda: _ints(negate=np.abs)("x"), r"plus\(x, negate\(x\)\) is 6, zero is 0, where x = 3"),
        (lambda: _objects(plus=operator.sub, negate=lambda x: x)("x"), r"plus\(zero, x\) is -3, x is 3"),
        (lambda: _objects(zero="", plus=lambda a, b: a, negate=lambda x: x)("x"), "is '', x is 3, where x = 3\n"),
        (lambda: _ints(plus=lambda a, b: a + b + a * a * b * (a + b))("x"), r"plus\(x, y\) is .*, plus\(y, x\) is"),
        (lambda: _ints(plus=lambda a, b: abs(a - b), negate=abs)("x"), r"plus\(plus\(x, y\), z\) is 4, plus"),
        (lambda: _ints(times=lambda x, n: x)("x"), r"times\(x, -1\) is 3, negate\(x\) is -3, where x = 3"),
        (lambda: _objects(lift=[0, 0, 0, 0.1, 1e16, -1e16].__getitem__)("x"), r"y\), z\) is .*(.|\n)*`exact=False` keeps"),
    ],
)
def test_a_broken_law_is_told(weight: Callable[[], Any], message: str) -> None:
    with pytest.raises(DlogError, match=message) as refused:
        _flow(weight())
    assert refused.value.diagnostics[0].code == "broken-law"


def test_laws_hold_for_what_rounds_and_for_infinities_where_values_are_kept() -> None:
    _flow(_objects(lift=lambda x: x + 0.1, exact=False)("x"))
    flow = Dataflow()
    rows = flow.input(y=float)
    found = rows.explode(diff=HALVES("y")).count("total").capture()
    for values, total in (([0.1, 0.2], 0.1 + 0.2), ([float("inf")], float("inf")), ([-0.1], float("inf"))):
        rows.insert([(value,) for value in values])
        flow.commit()
        assert found.counts() == {(total,): 1}
    rows.remove([(float("inf"),), (0.2,)])
    rows.remove([(0.1,), (-0.1,)])
    flow.commit()
    assert found.counts() == {}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: group.of(str, zero="", plus=max, negate=min), "`kind` must be int, float, bool or object, not <class 'str'>"),
        (lambda: _ints(zero="a"), "`zero` must be an int, not 'a'"),
        (lambda: _ints(zero=0.5), "`zero` must be an int, not 0.5"),
        (lambda: _ints(plus=3), "`plus` must be a function of two elements, not 3"),
        (lambda: _objects(negate=lambda: 0), r"the function of `negate` gets an element, but it takes \(\)"),
        (lambda: _ints(lift=lambda a, b: a), r"the function of `lift` gets a value, as arrays, but it takes \(a, b\)"),
        (lambda: _ints(result=float), "`result` must be the kind of what `lower=` gives, which is int without it"),
        (lambda: group.modulo("x", 0), "`modulus` must be a whole number, 1 or more, not 0"),
        (lambda: group.sum("x", zero=[]), r"`zero` must be hashable, (.|\n)*`group.of` makes a group of any elements"),
        (lambda: _flow(group.xor("y")), "`diff` must be of int or bool in `group.xor`, not 'float'"),
        (lambda: _flow(group.modulo("y", 3)), "`diff` must be of int in `group.modulo`, not 'float'"),
        (lambda: _flow(group.sum("y")), r"`diff` must be of another kind in `group.sum`, not 'float'(.|\n)*is exact"),
        (lambda: _flow(group.sum("o", zero="")), "`group.sum` cannot add up such values: .*(.|\n)*`zero=` is what sums begin"),
        (lambda: _flow(_ints()("o")), "`diff` must be of int in `group.of`, not 'object'(.|\n)*`lift=` gives the element"),
        (lambda: _flow(_ints()), r"dlog.dataflow.group.of is no expression(.|\n)*called with a column(.|\n)*`explode\(diff="),
        (lambda: _integers().map(y=group.xor("x")), r"group.xor\(col.* is no expression(.|\n)*goes into `explode\(diff="),
        (lambda: _integers().sum(y=group.xor("x")), r"group.xor\(col\('x'\)\) is no expression"),
        (lambda: _flow(_ints(plus=lambda a, b: 3)("x")), "`plus` must give an int for each of 3 elements, not array"),
        (lambda: _flow(_ints(negate=lambda a: a * 0.5)("x")), "`negate` must give an int for each of 3 elements, not array"),
        (lambda: _flow(_objects(lower=lambda a: [a])("x")), "gives list, and values of kind object must be hashable"),
        (lambda: _flow(_objects(lower=str, result=int)("x")), "'12' is no int"),
        (lambda: _flow(_objects(lower=lambda a: 2**70, result=int)("x")), "is beyond 64 bits"),
        (lambda: _rules(), r"`explode` cannot be said by rules: `group.xor\(col\('x'\)\)` is no sum of numbers"),
        (lambda: _unlike(), r"tuples \(group.of of int\), those of the other tuples \(group.of of int\)"),
    ],
)
def test_mistakes_of_groups_are_told(wrong: Callable[[], Any], message: str) -> None:
    with pytest.raises(DlogError, match=message):
        wrong()


def _integers() -> Collection:
    return Dataflow().input(x=int)


def _rules() -> None:
    dlog.rules(found=Dataflow().input("rows", x=int).explode(diff=group.xor("x")).count("bits"))


def _unlike() -> None:
    rows = Dataflow().input(x=int)
    rows.explode(diff=_ints()("x")).concat(rows.explode(diff=_ints()("x")))


def test_values_that_arrow_does_not_know_are_there() -> None:
    flow = Dataflow()
    rows = flow.input(x=int)
    halves = group.of(object, zero=0, plus=operator.add, negate=operator.neg, lift=lambda x: Fraction(x, 2))
    found = rows.explode(diff=(1, halves("x"))).count("rows", "half").capture()
    rows.insert([3, 4])
    flow.commit()
    assert list(found) == [(2, Fraction(7, 2))]
    with pytest.raises(DlogError, match=r"Arrow does not know the values of the column `half`: .*(.|\n)*iterating over it"):
        found.to_arrow()
    assert "Arrow does not know the values" in repr(found)


def test_groups_say_what_they_are() -> None:
    assert repr(group.xor(col("x") + 1)) == "group.xor(col('x') + 1)"
    assert repr(_ints()) == "dlog.dataflow.group.of" and repr(_ints()("x")) == "group.of(col('x'))"
