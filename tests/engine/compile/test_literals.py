"""The values of literals, at the ends of their ranges and beyond what Python converts."""

from __future__ import annotations

import pytest

from dlog.engine.compile.normal.literals import number_constant
from dlog.engine.ir.rules import Constant, Kind


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "1" + "0" * 308 + "0", "1.2.3." + "9" * 5000])
def test_what_has_too_many_digits_fits_no_kind(text: str) -> None:
    assert number_constant(text, Kind.NUMBER) is None
    assert number_constant(text, Kind.FLOAT) is None


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0" * 5000 + "7", Kind.NUMBER, 7),
        ("-9223372036854775808", Kind.NUMBER, -(2**63)),
        ("0xffffffffffffffff", Kind.UNSIGNED, 2**64 - 1),
        ("1" + "0" * 308, Kind.FLOAT, 1e308),
        ("0.0.1.2", Kind.NUMBER, 258),
        ("0_1_000", Kind.NUMBER, 1000),
        ("-0xff_ff", Kind.NUMBER, -65535),
        ("0b1_0u", Kind.UNSIGNED, 2),
        ("1_000", Kind.FLOAT, 1000.0),
        ("1e3", Kind.FLOAT, 1000.0),
        ("1_0.2_5E-1", Kind.FLOAT, 1.025),
    ],
)
def test_zeros_and_all_that_fits_are_read(text: str, kind: Kind, value: float) -> None:
    assert number_constant(text, kind) == Constant(value, kind)
