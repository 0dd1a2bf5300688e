"""Comparisons and arithmetic on blocks against Python's integers, wrapped to 64 bits, and its floats."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlog.engine.kernels import block
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.arithmetic import Arithmetic, arithmetic_block
from dlog.engine.kernels.codes import Comparison, Error
from dlog.engine.runtime.storage.memory import Memory
from tests.engine.kernels.workbench import EXAMPLES, EXTREMES, MAX, MIN, WORDS, Desk
from tests.examples import examples


def signed(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def unsigned(word: int) -> int:
    return word % 2**64


def bits(value: float) -> int:
    return struct.unpack("q", struct.pack("d", value))[0]


def double(word: int) -> float:
    return struct.unpack("d", struct.pack("q", word))[0]


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def power(a: int, b: int) -> int:
    """Negative powers are reciprocals, truncated."""
    return pow(a, b, 2**64) if b >= 0 else {1: 1, -1: (-1) ** (b % 2)}.get(a, 0)


SIGNED: dict[int, Callable[[int, int], int]] = {
    Arithmetic.ADD: operator.add,
    Arithmetic.SUB: operator.sub,
    Arithmetic.MUL: operator.mul,
    Arithmetic.DIV: truncated,
    Arithmetic.MOD: lambda a, b: a - b * truncated(a, b),
    Arithmetic.POW: power,
    Arithmetic.MIN: min,
    Arithmetic.MAX: max,
    Arithmetic.BAND: operator.and_,
    Arithmetic.BOR: operator.or_,
    Arithmetic.BXOR: operator.xor,
    Arithmetic.SHL: lambda a, b: a << b % 64,
    Arithmetic.SHR: lambda a, b: a >> b % 64,
    Arithmetic.LAND: lambda a, b: a != 0 and b != 0,
    Arithmetic.LOR: lambda a, b: a != 0 or b != 0,
    Arithmetic.LXOR: lambda a, b: (a != 0) != (b != 0),
    Arithmetic.BNOT: lambda a, b: ~a,
    Arithmetic.LNOT: lambda a, b: a == 0,
    Arithmetic.NEG: lambda a, b: -a,
    Arithmetic.ITOF: lambda a, b: bits(float(a)),
}
UNSIGNED: dict[int, Callable[[int, int], int]] = {
    Arithmetic.DIV_U: operator.floordiv,
    Arithmetic.MOD_U: operator.mod,
    Arithmetic.POW_U: lambda a, b: pow(a, b, 2**64),
    Arithmetic.MIN_U: min,
    Arithmetic.MAX_U: max,
    Arithmetic.SHRU: lambda a, b: a >> b % 64,
    Arithmetic.UTOF: lambda a, b: bits(float(a)),
}
DIVISIONS = (Arithmetic.DIV, Arithmetic.MOD, Arithmetic.DIV_U, Arithmetic.MOD_U)
ALL_PAIRS = [(a, b) for a in EXTREMES for b in EXTREMES]


def evaluate(operation: int, pairs: list[tuple[int, int]]) -> list[int]:
    """The operation on a block of these words; a division by zero raises."""
    desk = Desk(Memory(None))
    result: list[int] = []
    for _, n in desk.blocks(pairs, 2):
        if arithmetic_block(operation, desk.register(0), desk.register(1), n, desk.register(2)) != 0:
            raise ZeroDivisionError
        result += desk.registers[2, :n].tolist()
    return result


@pytest.mark.parametrize("operation", [*SIGNED, *UNSIGNED])
@examples(EXAMPLES)
@given(pairs=st.lists(st.tuples(WORDS, WORDS), max_size=20))
@example(pairs=ALL_PAIRS)
def test_integer_arithmetic_is_python_s_wrapped(operation: int, pairs: list[tuple[int, int]]) -> None:
    pairs = [(a, b) for a, b in pairs if b != 0 or operation not in DIVISIONS]
    if operation in SIGNED:
        expected = [signed(int(SIGNED[operation](a, b))) for a, b in pairs]
    else:
        expected = [signed(UNSIGNED[operation](unsigned(a), unsigned(b))) for a, b in pairs]
    assert evaluate(operation, pairs) == expected


@pytest.mark.parametrize("operation", DIVISIONS)
def test_a_zero_anywhere_in_the_divisors_is_told(operation: int) -> None:
    assert evaluate(operation, [(7, 2), (6, 3)]) in ([3, 2], [1, 0])
    with pytest.raises(ZeroDivisionError):
        evaluate(operation, [(7, 2), (6, 0), (1, 1)])


@pytest.mark.parametrize(("weight", "error"), [(-1, Error.WEIGHT), (-(2**63), Error.WEIGHT), (L.SUM_MOST + 1, Error.SUM)])
def test_a_weight_is_what_it_is_unless_it_is_negative_or_too_much(weight: int, error: int) -> None:
    desk = Desk(Memory(None))
    fine = [0, 1, 7, L.SUM_MOST]
    for values, expected in ((fine, 0), ([*fine, weight], error)):
        for _, n in desk.blocks([(value, 0) for value in values], 2):
            given = desk.register(0), desk.register(1), n, desk.register(2)
            assert arithmetic_block(Arithmetic.WEIGHT, *given) == expected
            assert desk.registers[2, : len(fine)].tolist() == fine


# --------------------------------------------------------------------------------------------------------------- floats

ODD = (0.0, -0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 2.0**53, 3.0, -3.0)
DOUBLES = st.one_of(st.sampled_from(ODD), st.floats())


def quotient(a: float, b: float) -> float:
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def float_power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0 and b % 2 == 1 else math.inf
    except ValueError:  # of a negative number, or of zero
        odd = b % 2 == 1
        return math.nan if a != 0 else math.copysign(math.inf, a if odd else 1.0)


FLOAT: dict[int, Callable[[float, float], float]] = {
    Arithmetic.ADD_F: operator.add,
    Arithmetic.SUB_F: operator.sub,
    Arithmetic.MUL_F: operator.mul,
    Arithmetic.DIV_F: quotient,
    Arithmetic.POW_F: float_power,
    Arithmetic.MIN_F: lambda a, b: b if b < a else a,
    Arithmetic.MAX_F: lambda a, b: b if b > a else a,
    Arithmetic.NEG_F: lambda a, b: -a,
}


@pytest.mark.parametrize("operation", list(FLOAT))
@examples(EXAMPLES)
@given(pairs=st.lists(st.tuples(DOUBLES, DOUBLES), max_size=20))
@example(pairs=[(a, b) for a in ODD for b in ODD])
def test_float_arithmetic_is_ieee(operation: int, pairs: list[tuple[float, float]]) -> None:
    found = [double(word) for word in evaluate(operation, [(bits(a), bits(b)) for a, b in pairs])]
    expected = [FLOAT[operation](a, b) for a, b in pairs]
    if operation == Arithmetic.POW_F:
        assert found == pytest.approx(expected, rel=1e-14, abs=5e-324, nan_ok=True)
    else:
        assert list(map(repr, found)) == list(map(repr, expected))


@examples(EXAMPLES)
@given(values=st.lists(st.floats(-(2.0**62), 2.0**62), max_size=20))
@example(values=[-0.9, 0.9, -1.5, 1.5, -0.0, 2.0**62, -(2.0**63)])
def test_floats_become_numbers_by_truncation(values: list[float]) -> None:
    assert evaluate(Arithmetic.FTOI, [(bits(x), 0) for x in values]) == [int(x) for x in values]


@examples(EXAMPLES)
@given(values=st.lists(st.floats(0, 2.0**63 * 1.99), max_size=20))
@example(values=[0.0, 0.9, 2.0**63, 2.0**63 - 1024, 2.0**63 + 2048, 2.0**64 - 2048])
def test_floats_become_unsigned_by_truncation(values: list[float]) -> None:
    assert [unsigned(w) for w in evaluate(Arithmetic.FTOU, [(bits(x), 0) for x in values])] == [int(x) for x in values]


def test_unsigned_numbers_are_rounded_once() -> None:
    """Halving first would lose the bit that decides the tie."""
    words = [2**63 + 1024, 2**63 + 1025, 2**64 - 1, 2**64 - 1024, 2**64 - 1025]
    assert [double(w) for w in evaluate(Arithmetic.UTOF, [(signed(w), 0) for w in words])] == [float(w) for w in words]


# ---------------------------------------------------------------------------------------------------------- comparisons

COMPARISONS: dict[int, tuple[Callable[[int], float], Callable[[float, float], bool]]] = {
    Comparison.EQ: (int, operator.eq),
    Comparison.NE: (int, operator.ne),
    Comparison.LT: (int, operator.lt),
    Comparison.LE: (int, operator.le),
    Comparison.LT_U: (unsigned, operator.lt),
    Comparison.LE_U: (unsigned, operator.le),
    Comparison.EQ_F: (double, operator.eq),
    Comparison.NE_F: (double, operator.ne),
    Comparison.LT_F: (double, operator.lt),
    Comparison.LE_F: (double, operator.le),
}


def chosen(desk: Desk, kept: int) -> list[int]:
    return desk.scratch[0, :kept].tolist()


@pytest.mark.parametrize("compare", list(COMPARISONS))
@examples(EXAMPLES)
@given(pairs=st.lists(st.tuples(*[st.one_of(WORDS, DOUBLES.map(bits))] * 2), max_size=20))
@example(pairs=ALL_PAIRS)
@example(pairs=[(bits(a), bits(b)) for a in ODD for b in ODD])
def test_a_comparison_chooses_the_rows_where_it_holds(compare: int, pairs: list[tuple[int, int]]) -> None:
    read, holds = COMPARISONS[compare]
    desk = Desk(Memory(None))
    for _, n in desk.blocks(pairs, 2):
        kept = block.select_compare(compare, desk.register(0), desk.register(1), n, desk.scratches()[0])
        assert chosen(desk, kept) == [i for i, (a, b) in enumerate(pairs) if holds(read(a), read(b))]


@examples(EXAMPLES)
@given(values=st.lists(WORDS, max_size=30))
@example(values=[MIN, -1, 0, 1, MAX])
def test_flags_and_masks_choose_rows_and_compact_keeps_them(values: list[int]) -> None:
    desk = Desk(Memory(None))
    for listed, n in desk.blocks([(v, v + 1 if v < MAX else 0) for v in values], 2):
        flags, target = desk.register(0), desk.scratches()[0]
        found = [chosen(desk, block.select_flag(flags, wanted, n, target)) for wanted in (1, 0)]
        assert found == [[i for i, v in enumerate(values) if v >= 0], [i for i, v in enumerate(values) if v < 0]]
        kept = block.select_nonzero(flags, n, target)
        block.compact(desk.address, listed.address, 2, target, kept)
        assert desk.registers[0, :kept].tolist() == [v for v in values if v != 0]
        assert desk.registers[1, :kept].tolist() == [v + 1 if v < MAX else 0 for v in values if v != 0]
