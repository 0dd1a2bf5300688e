"""Every functor's kernels, and its value in Python, against the oracle's."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir.functors import FUNCTORS, fold
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.signatures import KEEP, Intrinsic
from dlog.engine.kernels.arithmetic import Arithmetic, arithmetic_block
from dlog.engine.kernels.values.texts import Text
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.values.functions import evaluate
from tests.engine.kernels.test_texts import Desk as TextDesk
from tests.engine.kernels.workbench import EXAMPLES, MAX, MIN, Desk
from tests.naive_functors import DivisionByZero, apply

VALUES: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.NUMBER: st.sampled_from((0, 1, -1, 63, 64, MAX, MIN)) | st.integers(MIN, MAX) | st.integers(-9, 9),
    Kind.UNSIGNED: st.sampled_from((0, 1, 63, 64, 2**63, 2**64 - 1)) | st.integers(0, 2**64 - 1) | st.integers(0, 9),
    Kind.FLOAT: st.sampled_from((0.0, -0.0, -1.5, 2.5, 1e300, math.inf, -math.inf, math.nan)) | st.floats(),
    Kind.SYMBOL: st.sampled_from(("", "a", "ab", "\xe9", "a\xe9\U0001f600", "\U0001f600a")) | st.text(max_size=4),
}
RANGES = {"ftoi": (-(2.0**63), 2.0**63), "ftou": (0.0, 2.0**64)}
"""Floats outside of these have no integer."""
ON_NUMBERS = [
    (row, kind)
    for row in FUNCTORS.values()
    for kind in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT)
    if row.form != "internal" and row.opcodes.get(kind) in Arithmetic.__members__
]
ON_TEXTS = [row for row in FUNCTORS.values() if row.opcodes.get(Kind.SYMBOL, KEEP) != KEEP and not row.partial]
FORMS = {Kind.SYMBOL: 0, Kind.NUMBER: 1, Kind.UNSIGNED: 2, Kind.FLOAT: 3}


def word(value: Any) -> int:
    """The 64 bits of a value, one NaN for all."""
    if isinstance(value, float):
        return struct.unpack("q", struct.pack("d", math.nan if value != value else value))[0]
    return (int(value) + 2**63) % 2**64 - 2**63


def kinds_of(row: Intrinsic, first: Kind) -> list[Kind]:
    count = 2 if row.signature.variadic else len(row.signature.args)
    return [first if first in row.signature.arg(i) else min(row.signature.arg(i), key=lambda k: k.value) for i in range(count)]


def expected(row: Intrinsic, args: list[Any], result: Kind) -> Any:
    """The oracle's value; None where the functor has none."""
    low, high = RANGES.get(row.name, (-math.inf, math.inf))
    if row.name in RANGES and not low <= args[0] < high:
        return None
    try:
        value = apply(row.written, args, result.value)
    except (DivisionByZero, ArithmeticError):
        return None
    return None if isinstance(value, complex) else value


@pytest.mark.parametrize(("row", "kind"), ON_NUMBERS, ids=lambda x: x.name)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_functor_on_numbers_computes_what_the_oracle_does(row: Intrinsic, kind: Kind, data: st.DataObject) -> None:
    result = row.signature.result or kind
    drawn = data.draw(st.lists(st.tuples(*(VALUES[k] for k in kinds_of(row, kind))), max_size=20))
    rows = [(args, value) for args in drawn if (value := expected(row, list(args), result)) is not None]
    desk, found = Desk(Memory(None)), []
    pairs = [tuple(word(v) for v in (args * 2)[:2]) for args, _ in rows]
    for _, n in desk.blocks(pairs, 2):
        operation = Arithmetic[row.opcodes[kind]]
        assert arithmetic_block(operation, desk.register(0), desk.register(1), n, desk.register(2)) == 0
        found += desk.registers[2, :n].tolist()
    assert found == [word(value) for _, value in rows]
    assert [word(fold(row.name, args, result)) for args, _ in rows] == found


@pytest.mark.slow
@pytest.mark.parametrize("row", ON_TEXTS, ids=lambda row: row.name)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_functor_on_texts_computes_what_the_oracle_does(row: Intrinsic, data: st.DataObject) -> None:
    kinds, desk = kinds_of(row, Kind.SYMBOL), TextDesk()
    result = row.signature.result or Kind.SYMBOL
    small = {Kind.NUMBER: st.integers(-2, 5), Kind.SYMBOL: VALUES[Kind.SYMBOL]}
    rows = data.draw(st.lists(st.tuples(*(small[k] for k in kinds)), min_size=1, max_size=20))
    columns = [
        desk.ids(column) if kind is Kind.SYMBOL else np.array(column, np.int64)
        for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    native = desk.values(Text[row.opcodes[Kind.SYMBOL]], *((FORMS[k], c) for k, c in zip(kinds, columns, strict=True)))
    for found in (native, evaluate(row.name, columns, kinds, desk.table)):
        values = desk.texts(found) if result is Kind.SYMBOL else found.tolist()
        assert values == [apply(row.name, list(args), result.value) for args in rows]
    assert values == [fold(row.name, args, result) for args in rows]


@pytest.mark.parametrize("row", FUNCTORS.values(), ids=lambda row: row.name)
def test_the_order_of_a_functors_kinds_is_the_same_in_every_process(row: Intrinsic) -> None:
    assert list(row.opcodes) == [kind for kind in Kind if kind in row.opcodes]


def test_every_opcode_belongs_to_a_functor_or_a_comparison() -> None:
    named = {opcode for row in FUNCTORS.values() for opcode in row.opcodes.values()} - {KEEP, "NONE"}
    named |= {row.text for row in COMPARISONS.values()} - {""}
    assert named == {*Arithmetic.__members__, *Text.__members__} - {"NONE"}
