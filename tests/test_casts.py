"""`as` between numbers and floats takes the bits as they are, as Souffle's of 64 bits does; to convert, there is `to_float`."""

import pytest

from dlog.grammar.parser import parse
from dlog.grammar.source import Source
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
