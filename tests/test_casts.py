"""`as` between numbers and floats takes the bits as they are, as Souffle's of 64 bits does; to convert, there is `to_float`."""

import pytest

import dlog
from dlog.engine.plan.exchange.numbering import refuse_for_workers
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.parser import parse
from dlog.grammar.source import Source
from dlog.pipeline import compile_program
from tests.conftest import RunText
from tests.engines import EVERY_ENGINE
from tests.naive import evaluate

DECLARATIONS = """
.decl n(x: number)
.decl u(x: unsigned)
.decl f(x: float)
.decl out(x: float)
.decl bits(x: number)
.decl raw(x: unsigned)
"""
HALF_PAST_TWO = 4612811918334230528  # the bits of 2.5
NAN = 0x7FF8000000000001  # a NaN that no computation makes


@pytest.mark.parametrize(
    ("rules", "relation", "expected"),
    [
        (f"n({HALF_PAST_TWO}). out(as(x, float)) :- n(x).", "out", {2.5}),
        (f"u({HALF_PAST_TWO}). out(as(x, float) + 1.0) :- u(x).", "out", {3.5}),
        ("f(2.5). f(-0.0). bits(as(x, number)) :- f(x).", "bits", {HALF_PAST_TWO, -(2**63)}),
        ("f(-0.0). raw(as(x, unsigned)) :- f(x).", "raw", {2**63}),
        ("f(2.5). out(as(as(x, number), float)) :- f(x).", "out", {2.5}),
    ],
)
@EVERY_ENGINE
def test_the_bits_stay(run_text: RunText, rules: str, relation: str, expected: set[float]) -> None:
    assert {value for (value,) in run_text(DECLARATIONS + rules, {})[relation]} == expected
    assert {value for (value,) in evaluate(parse(Source(DECLARATIONS + rules)))[relation]} == expected


@EVERY_ENGINE
def test_any_nan_becomes_the_one_there_is(run_text: RunText) -> None:
    rows = run_text(f"{DECLARATIONS}n({NAN}). n({NAN + 1}). out(as(x, float)) :- n(x).", {})["out"]
    assert len(rows) == 1


def test_a_symbol_comes_back_from_its_number() -> None:
    text = '.decl s(x: symbol) .decl n(x: number, u: unsigned) .decl r(x: symbol, y: symbol) s("a"). s("b").\n'
    text += "n(as(x, number), as(x, unsigned)) :- s(x). r(as(x, symbol), as(u, symbol)) :- n(x, u)."
    assert set(dlog.run_text(text, {})["r"]) == {("a", "a"), ("b", "b")}
    with dlog.session(text) as session:
        session.insert("s", [("c",)])
        session.commit()
        assert set(session["r"]) == {("a", "a"), ("b", "b"), ("c", "c")}
    with pytest.raises(DlogError, match=r"not supported on Spark: as\(\) into symbols"):
        refuse_for_workers(compile_program(".decl n(x: number) .decl s(x: symbol) s(as(x, symbol)) :- n(x)."))


def test_a_number_that_is_no_symbols_is_told() -> None:
    with pytest.raises(DlogError, match=r"as\(-1, symbol\): no symbol has this number"):
        dlog.run_text(".decl n(x: number) .decl s(x: symbol) n(-1). s(as(x, symbol)) :- n(x).", {})
    kept_away = '.decl n(x: number) .decl s(x: symbol) n(-1). n(0). s("only"). s(as(x, symbol)) :- n(x), x >= 0.'
    assert set(dlog.run_text(kept_away, {})["s"]) == {("only",)}


SHAPES = """
.type A = [x: number, next: A]
.type B = [first: number, rest: C]
.type C = [first: number, rest: B]
.decl a(x: A) .decl b(x: B, y: number)
a([1, [2, nil]]). a(nil).
b(y, n) :- a(x), y = as(x, B), y = [_, [n, _]].
b(as(x, B), 0) :- a(x), x = nil.
"""


@EVERY_ENGINE
def test_a_record_is_one_of_another_type_of_the_same_shape(run_text: RunText) -> None:
    assert set(run_text(SHAPES, {})["b"]) == {((1, (2, None)), 2), (None, 0)}
    assert evaluate(parse(Source(SHAPES)))["b"] == {((1, (2, None)), 2), (None, 0)}
