"""Expressions have the values that they have in a dataflow: at the ends of 64 bits, of zeros, of NaN."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.dataflow import Dataflow, Expression, apply, col, lit, when
from dlog.grammar.diagnostics import DlogError
from tests.dlog.as_rules.compared import shown
from tests.examples import examples

COLUMNS = {"i": int, "j": int, "x": float, "y": float, "s": str, "t": str, "f": bool, "g": bool}
ENDS = [0, 1, -1, 2, 7, -7, 2**63 - 1, -(2**63), 2**53 + 1]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.0**53, math.inf, -math.inf, math.nan, 1e-320, 1e300]
TEXTS = ["", "a", "b", "ab", "é", '"\\\n', "z\t"]
numbers, floats, texts = st.sampled_from(ENDS), st.sampled_from(FLOATS), st.sampled_from(TEXTS)
rows = st.lists(
    st.tuples(numbers, numbers, floats, floats, texts, texts, st.booleans(), st.booleans()), min_size=1, max_size=4
)


def columns(kind: type) -> st.SearchStrategy[Expression]:
    return st.sampled_from([col(name) for name, each in COLUMNS.items() if each is kind])


integers = st.deferred(
    lambda: (
        columns(int)
        | numbers.map(lit)
        | st.builds(_applied, st.sampled_from([_plus, _minus, _times, _over, _rest]), integers, integers | truths)
        | st.builds(lambda a, b, c: when(a).then(b).otherwise(c), truths, integers, integers | truths)
        | integers.map(lambda a: a.abs())
        | truths.map(lambda a: a.cast(int))
        | strings.map(lambda a: a.str.len_chars())
        | strings.map(lambda a: a.str.len_bytes())
    )
)
reals = st.deferred(
    lambda: (
        columns(float)
        | floats.map(lit)
        | st.builds(_applied, st.sampled_from([_plus, _minus, _times, _divided]), reals, reals | integers | truths)
        | st.builds(lambda a, b, c: when(a).then(b).otherwise(c), truths, reals, reals | integers)
        | reals.map(lambda a: a.abs())
        | (integers | truths).map(lambda a: a.cast(float))
    )
)
strings = st.deferred(
    lambda: (
        columns(str)
        | texts.map(lit)
        | st.builds(_plus, strings, strings)
        | st.builds(lambda a, b, c: when(a).then(b).otherwise(c), truths, strings, strings)
        | st.builds(lambda a, at, size: a.str.slice(at, size), strings, st.integers(0, 3), st.none() | st.integers(0, 3))
        | (integers | truths).map(lambda a: a.cast(str))
    )
)
truths = st.deferred(
    lambda: (
        columns(bool)
        | st.booleans().map(lit)
        | st.builds(_applied, comparisons, integers | reals | truths, integers | reals | truths)
        | st.builds(_applied, comparisons, strings, strings)
        | st.builds(lambda a, b: a & b, truths, truths)
        | st.builds(lambda a, b: a | b, truths, truths)
        | st.builds(lambda a: ~a, truths)
        | st.builds(lambda a, part, of: of(a.str, part), strings, texts, parts)
        | st.builds(lambda a, among: a.is_in(among), strings, st.lists(texts, max_size=3))
        | st.builds(lambda a, among: a.is_in(among), integers | reals, st.lists(numbers | floats, max_size=3))
        | (integers | reals | truths).map(lambda a: a.cast(bool))
    )
)
comparisons = st.sampled_from(
    [
        lambda a, b: a == b,
        lambda a, b: a != b,
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
    ]
)


parts = st.sampled_from(
    [
        lambda text, part: text.contains(part, literal=True),
        lambda text, part: text.starts_with(part),
        lambda text, part: text.ends_with(part),
        lambda text, part: text.like(part.replace("\\", "\\\\")),
        lambda text, part: text.like(f"%{part}%".replace("\\", "\\\\")),
        lambda text, part: text.like(f"{part}%".replace("\\", "\\\\")),
        lambda text, part: text.like(f"%{part}".replace("\\", "\\\\")),
    ]
)


def _applied(op, a, b):  # type: ignore[no-untyped-def]
    return op(a, b)


def _plus(a, b):  # type: ignore[no-untyped-def]
    return a + b


def _minus(a, b):  # type: ignore[no-untyped-def]
    return a - b


def _times(a, b):  # type: ignore[no-untyped-def]
    return a * b


def _divided(a, b):  # type: ignore[no-untyped-def]
    return a / b


def _over(a, b):  # type: ignore[no-untyped-def]
    return a // b


def _rest(a, b):  # type: ignore[no-untyped-def]
    return a % b


def check(made: Expression | None, predicate: Expression | None, given_rows: list) -> None:
    flow = Dataflow()
    values = flow.input("values", **COLUMNS)
    found = values if predicate is None else values.filter(predicate)
    found = found if made is None else found.map("i", made=made)
    expected = found.capture()
    values.insert(given_rows)
    flow.commit()
    try:
        rules = dlog.rules(found=found)
    except DlogError as error:
        assert "too many cases" in str(error)
        return
    assert shown(rules.counts(rules.run({"values": given_rows}, threads=1), "found")) == shown(expected.counts()), rules.text


@examples(300)
@given(integers | reals | strings | truths, rows)
def test_values_are_those_of_a_dataflow(made: Expression, given_rows: list) -> None:
    check(made, None, given_rows)


@examples(200)
@given(truths, rows)
def test_filters_keep_what_a_dataflow_keeps(predicate: Expression, given_rows: list) -> None:
    check(None, predicate, given_rows)


keys = st.tuples(integers, integers) | st.tuples(reals, reals) | st.tuples(strings, strings) | st.tuples(truths, truths)


@examples(200)
@given(keys, rows, st.booleans())
def test_keys_are_equal_where_they_are_in_a_dataflow(pair: tuple, given_rows: list, is_set: bool) -> None:
    """Of joins, negation, groups and the greatest."""
    flow = Dataflow()
    values = flow.input("values", **COLUMNS)
    one, other = values.map("i", "s", k=pair[0]), values.map("j", k=pair[1])
    outputs = {
        "met": one.join(other, on="k"),
        "lonely": one.antijoin(other.map("k").distinct(), on="k"),
        "groups": one.concat(other.map("k", i="j", s=lit("other"))).count("n", by="k"),
        "greatest": one.max("k", by="s"),
        "first": other.top_k(2, "k"),
    }
    expected = {name: output.capture() for name, output in outputs.items()}
    if is_set:  # of which no two differ by the sign of a zero alone
        given_rows = list({repr([v + 0.0 if isinstance(v, float) else v for v in row]): row for row in given_rows}.values())
    values.insert(given_rows)
    flow.commit()
    try:
        rules = dlog.rules(**outputs, sets=["values"] if is_set else [])
    except DlogError as error:
        assert "too many cases" in str(error)
        return
    result = rules.run({"values": given_rows}, threads=1)
    for name, captured in expected.items():
        assert shown(rules.counts(result, name)) == shown(captured.counts()), f"{name}:\n{rules.text}"


@pytest.mark.parametrize("other", [0.0, math.nan])
def test_what_is_not_less_need_not_be_greater(other: float) -> None:
    given_rows = [(1, 1, x, other, "", "", True, True) for x in FLOATS]
    for compared in (col("x") < 1.0, col("x") >= col("y"), col("x") == col("y"), col("x") != 1):
        check(None, compared, given_rows)
        check(None, ~compared, given_rows)
        check(compared, None, given_rows)


def test_floats_that_are_computed_are_keys_as_they_are_kept() -> None:
    """NaN is one key, though it is no number's equal; zeros are one."""
    flow = Dataflow()
    values = flow.input("values", i=int, x=float)
    zeros, plain = values.map("i", k=col("x") * 0.0), values.map(j="i", k="x")
    outputs = {"plain": zeros.join(plain, on="k"), "computed": zeros.join(zeros.rename(j="i"), on="k")}
    expected = {name: output.capture() for name, output in outputs.items()}
    given_rows = [(k, x) for k, x in enumerate([math.nan, math.inf, -1.0, 0.0, -0.0])]
    values.insert(given_rows)
    flow.commit()
    rules = dlog.rules(**outputs)
    result = rules.run({"values": given_rows}, threads=1)
    for name, captured in expected.items():
        assert shown(rules.counts(result, name)) == shown(captured.counts())
    assert len(expected["plain"]) == 2 * 1 + 3 * 2
    assert len(expected["computed"]) == 2 * 2 + 3 * 3


def _half(i, x, f):  # type: ignore[no-untyped-def]
    return i // 2 + x if f else -x


def test_compiled_functions_are_functors() -> None:
    given_rows = [(i, 3, x, 0.0, "", "", f, True) for i in ENDS for x in FLOATS for f in (True, False)]
    half = apply(_half, "i", "x", "f", kind=float)
    check(half, None, given_rows)
    check(half * apply(lambda a: a * a, col("i") + 1), None, given_rows)
    check(apply(lambda f, g: f and not g, "f", col("i") > col("j"), kind=bool), None, given_rows)
    check(None, apply(lambda i: i % 3 == 0, "i", kind=bool) | col("f"), given_rows)
    flow = Dataflow()
    numbers = flow.input("numbers", x=int)
    more = apply(_twice, col("x") + 0.5, kind=float)
    rules = dlog.rules(found=numbers.map(x=apply(_twice, "x"), y=apply(_twice, "x"), z=more))
    assert rules.text.startswith(".functor twice(x1: number): number\n.functor twice2(x1: float): float\n\n.decl")
    with rules.session({"numbers": [7]}, functors={"thrice": lambda x: 3 * x}, threads=1) as s:
        assert s.counts("found") == {(14, 14, 15.0): 1}
        s.add_rules(".functor thrice(x: number): number\n.decl more(x: number)\nmore(@thrice(x)) :- numbers(x, _).")
        assert list(s["more"]) == [(21,)]
    with pytest.raises(DlogError, match="`functors` must be functions by name"):
        rules.run({}, functors=["module"])


def _twice(x):  # type: ignore[no-untyped-def]
    return 2 * x


@pytest.mark.parametrize("divisor", ENDS)
@pytest.mark.parametrize("sign", ["//", "%"])
def test_division_rounds_down(divisor: int, sign: str) -> None:
    for by in (lit(divisor), col("j")):
        made = col("i") // by if sign == "//" else col("i") % by
        check(made, None, [(i, divisor, 0.0, 0.0, "", "", True, True) for i in ENDS])


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (col("x") // 2, "`//` cannot be said by rules: of floats"),
        (col("x") % col("y"), "`%` cannot be said by rules: of floats"),
        (col("s") == col("i"), "`==` cannot be said by rules: of int and str"),
        (col("s").str.contains("a+"), "`.str.contains` cannot be said by rules: of a regular expression"),
        (col("s").str.like("%a%b%"), "`.str.like` cannot be said by rules: of a pattern of several parts"),
        (col("s").str.like("_a"), "`.str.like` cannot be said by rules: of a pattern with `_`"),
        (col("s").str.slice(-2), "`.str.slice` cannot be said by rules: from the end of a text"),
        (col("s").str.to_uppercase(), "`.str.to_uppercase` cannot be said by rules"),
        (col("s").cast(int), "`cast` cannot be said by rules: of str to int"),
        (col("x").cast(int), "`cast` cannot be said by rules: of float to int"),
        (col("x").cast(str), "`cast` cannot be said by rules: of float to str"),
    ],
)
def test_what_has_no_exact_term_is_refused(made: Expression, message: str) -> None:
    flow = Dataflow()
    values = flow.input("values", **COLUMNS)
    with pytest.raises(DlogError, match="cannot be said") as error:
        dlog.rules(found=values.map(made=made))
    assert message in str(error.value)
