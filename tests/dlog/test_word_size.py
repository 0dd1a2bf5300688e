"""Numbers of 32 bits: what is computed is what Soufflé's default build computes, and what 32 bits do not have is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dlog
from dlog import DlogError
from tests.dlog.command import dlog as command

SHORT = '.pragma "word-size" "32"\n'
NUMBERS = ".decl p(x: number, y: number)\n.decl r(z: number)\n.output r\n"
UNSIGNED = NUMBERS.replace("number", "unsigned")
FLOATS = NUMBERS.replace("number", "float")
MOST, LEAST = 2**31 - 1, -(2**31)


def value(term: str, x: Any, y: Any = 0, declared: str = NUMBERS, result: str = "") -> Any:
    """The value of a term over `x` and `y`."""
    program = declared.replace(".decl r(z: number)", f".decl r(z: {result})") if result else declared
    found = dlog.run(f"{SHORT}{program}.input p\nr({term}) :- p(x, y).\n", {"p": [(x, y)]})
    ((found_value,),) = found["r"]
    return found_value


@pytest.mark.parametrize(
    ("term", "x", "y", "expected"),
    [
        ("x + y", MOST, 7, -2147483642),
        ("x - y", LEAST, MOST, 1),
        ("x * y", MOST, MOST, 1),
        ("x / y", LEAST, -1, LEAST),
        ("x ^ y", 2, 31, LEAST),
        ("-x", LEAST, 0, LEAST),
        ("abs(x)", LEAST, 0, LEAST),
        ("bnot x", MOST, 0, LEAST),
        ("x bxor y", LEAST, -1, MOST),
        ("x bshl y", MOST, -1, LEAST),
        ("x bshl y", 7, 32, 7),
        ("x bshr y", LEAST, 7, -16777216),
        ("x bshru y", LEAST, 7, 16777216),
        ("x bshru y", -1, 31, 1),
        ("bit_count(x)", -1, 0, 32),
        ("x + y - y", MOST, MOST, MOST),
        ("255.255.255.255", 0, 0, -1),
        ("to_number(to_string(x))", LEAST, 0, LEAST),
        ("ord(x)", LEAST, 0, LEAST),
        ("as(as(x, unsigned) + 1u, number)", -1, 0, 0),
        ("as(as(x, float), number)", 1069547520, 0, 1069547520),
    ],
)
def test_numbers_wrap_around_at_32_bits(term: str, x: int, y: int, expected: int) -> None:
    assert value(term, x, y) == expected


@pytest.mark.parametrize(
    ("term", "x", "y", "expected"),
    [
        ("x + y", 2**32 - 1, 1, 0),
        ("x - y", 0, 3, 2**32 - 3),
        ("bnot x", 3, 0, 2**32 - 4),
        ("x bshl y", 2**32 - 1, 3, 2**32 - 8),
        ("x / y", 2**32 - 1, 2, MOST),
        ("max(x, y)", 2**32 - 1, 1, 2**32 - 1),
        ("as(as(x, number), unsigned)", 2**32 - 1, 0, 2**32 - 1),
        ("255.255.255.255", 0, 0, 2**32 - 1),
    ],
)
def test_unsigned_numbers_have_32_bits(term: str, x: int, y: int, expected: int) -> None:
    assert value(term, x, y, UNSIGNED) == expected


@pytest.mark.parametrize(
    ("term", "x", "y", "expected"),
    [
        ("x", 0.1, 0, 0.10000000149011612),
        ("x + y", 16777216.0, 1.0, 16777216.0),
        ("x * y", 3e38, 10.0, float("inf")),
        ("x / y", 1.0, 3.0, 0.3333333432674408),
        ("x * 0.1", 1.0, 0.0, 0.10000000149011612),
        ("to_float(16777217)", 0.0, 0.0, 16777216.0),
        ('to_float("0.1")', 0.0, 0.0, 0.10000000149011612),
        ('as(to_number("1036831949"), float)', 0.0, 0.0, 0.10000000149011612),
        ('as(to_number("1"), float)', 0.0, 0.0, 2.0**-149),
        ('as(to_number("2139095040"), float)', 0.0, 0.0, float("inf")),
    ],
)
def test_floats_are_rounded_to_32_bits(term: str, x: float, y: float, expected: float) -> None:
    assert value(term, x, y, FLOATS) == expected


def test_the_bits_of_floats_are_those_of_32() -> None:
    given = [0.1, 1.5, -0.0, 2.0**-149, 2.0**-126, float("inf"), float("nan"), -3.4e38]
    program = SHORT + ".decl f(x: float)\n.input f\n.decl r(x: float, n: number)\nr(x, as(x, number)) :- f(x).\n.output r\n"
    found = dlog.run(program, {"f": [(x,) for x in given]})
    assert sorted(n for _, n in found["r"]) == sorted(np.array(given, np.float32).view(np.int32).tolist())


def test_aggregates_stay_within_32_bits() -> None:
    text = f"n({MOST}). n(5). u(4294967295). u(3). f(0.1). f(1e9).\n"
    declared = ".decl n(x: number)\n.decl u(x: unsigned)\n.decl f(x: float)\n"
    declared += ".decl s(n: number, u: unsigned, f: float, m: float)\n"
    rules = "s(n, u, f, m) :- n = sum x : { n(x) }, u = sum x : { u(x) }, f = sum x : { f(x) }, m = mean x : { f(x) }.\n"
    result = dlog.run(SHORT + declared + text + rules + ".output s\n")
    assert list(result["s"]) == [(-2147483644, 2, 1e9, 5e8)]


def test_a_session_maintains_numbers_of_32_bits() -> None:
    rules = ".input p\n.decl s(n: number)\ns(n) :- n = sum x : { p(x, _) }.\nr(x + y) :- p(x, y).\n"
    with dlog.session(SHORT + NUMBERS + rules) as s:
        s.insert("p", [(MOST, 1), (5, 5)])
        s.commit()
        assert sorted(s["r"]) == [(LEAST,), (10,)] and list(s["s"]) == [(LEAST + 4,)]
        s.remove("p", (5, 5))
        s.commit()
        assert list(s["r"]) == [(LEAST,)] and list(s["s"]) == [(MOST,)]
        assert list(s.query("?- p(x, y), z = x * 2.")) == [(MOST, 1, -2)]
        with pytest.raises(DlogError, match="is not of type number"):
            s.insert("p", (2**31, 0))


# ---------------------------------------------------------------------------------------------------------------- ways in


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("number", [(2**31,)]),
        ("unsigned", [(2**32,)]),
        ("float", [(3.5e38,)]),
        ("number", np.array([[2**31]])),
        ("unsigned", {"x": np.array([2**32], np.uint64)}),
        ("float", {"x": np.array([3.5e38])}),
        ("number", pa.table({"x": [2**31]})),
    ],
)
def test_values_of_python_out_of_range_are_refused(kind: str, rows: Any) -> None:
    with pytest.raises(DlogError, match=r"not of type|does not fit"):
        dlog.run(f"{SHORT}.decl e(x: {kind})\n.input e\n.output e\n", {"e": rows})


def test_values_of_files_out_of_range_are_wrong_rows(tmp_path: Path) -> None:
    wrong = "2147483648\t1\t1\n1\t4294967296\t1\n1\t1\t3.5e38\n"
    (tmp_path / "e.facts").write_text(f"1\t1\t0.1\n{wrong}-2147483648\t4294967295\t-3.4e38\n")
    program = SHORT + ".decl e(n: number, u: unsigned, f: float)\n.input e{}\n.output e\n"
    with pytest.raises(DlogError) as caught:
        dlog.run(program.format(""), facts=tmp_path)
    said = str(caught.value)
    assert "a number lies between -2147483648 and 2147483647" in said and "e.facts:2:1" in said
    assert "an unsigned number lies between 0 and 4294967295" in said and "a float is at most 3.4e38 in size" in said
    with pytest.warns(RuntimeWarning, match="3 wrong rows are left out"):
        dlog.run(program.format("(errors=skip)"), facts=tmp_path, output=tmp_path)
    assert (tmp_path / "e.csv").read_text() == "-2147483648\t4294967295\t-3.39999995e+38\n1\t1\t0.100000001\n"


@pytest.mark.slow
def test_a_flag_sets_the_word_size(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(".decl p(x: number)\np(2147483647 + 1).\n.output p\n")
    assert command("run", program, "-D", "-", "--word-size", "32", cwd=tmp_path).out.splitlines()[-2] == "-2147483648"
    assert command("run", program, "-D", "-", cwd=tmp_path).out.splitlines()[-2] == "2147483648"
    program.write_text(".decl p(x: number)\n#if RAM_DOMAIN_SIZE == 32\np(32).\n#endif\n.output p\n")
    assert command("run", program, "-D", "-", "--word-size", "32", cwd=tmp_path).out.splitlines()[-2] == "32"
    assert "'16' is not one of '64', '32'" in command("run", program, "--word-size", "16", cwd=tmp_path).err
