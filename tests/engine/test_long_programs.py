"""Compiling and planning take calls in step with the length of what is compiled: twice the length, hardly more than twice the
calls. Counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import pytest

from dlog import run_text
from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.source import Source

MOST = 2.8
"""Growth of the calls where twice as much is compiled: sorting, and rounds of it, are in step, pairs of everything are not."""
DECLARED = ".decl e(x: number, y: number)\n.input e\n.decl r(x: number, y: number)\n.output r\n"


def calls(action: Callable[[], object]) -> int:
    """Python functions that are called."""
    found = 0

    def count(frame: FrameType, event: str, arg: object) -> None:
        nonlocal found
        found += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(before)
    return found


def chain(n: int) -> str:
    return ", ".join(f"e(x{i}, x{i + 1})" for i in range(n))


SHAPES: dict[str, tuple[int, Callable[[int], str]]] = {
    "atoms": (60, lambda n: f"r(x0, x{n}) :- {chain(n)}."),
    "atoms of which nothing is used": (60, lambda n: f"r(x, 0) :- e(x, _), {chain(n)}."),
    "atoms apart": (60, lambda n: "r(a0, b0) :- " + ", ".join(f"e(a{i}, b{i})" for i in range(n)) + "."),
    "atoms of an aggregate": (60, lambda n: f"r(x, c) :- e(x, _), c = count : {{ {chain(n)} }}."),
    "checks": (100, lambda n: "r(x, y) :- e(x, y), " + ", ".join(f"x != {i}" for i in range(n)) + "."),
    "variables that occur once": (60, lambda n: "r(x, y) :- e(x, y), " + ", ".join(f"e(x, z{i})" for i in range(n)) + "."),
    "alternatives": (100, lambda n: "r(x, y) :- e(x, y), (" + " ; ".join(f"x = {i}" for i in range(n)) + ")."),
    "rules": (50, lambda n: "".join(f"r(x, {i}) :- e(x, {i}).\n" for i in range(n))),
    "declarations": (100, lambda n: "".join(f".decl q{i}(x: number)\n" for i in range(n))),
    "fields": (100, lambda n: f".type R = [{', '.join(f'f{i}: number' for i in range(n))}]\n.decl q(r: R)"),
    "branches": (100, lambda n: f".type A = {' | '.join(f'B{i} {{x: number}}' for i in range(n))}\n.decl q(a: A)"),
    "components": (100, lambda n: ".comp C0 {}\n" + "".join(f".comp C{i} : C{i - 1} {{ }}\n" for i in range(1, n))),
    "equations": (
        200,
        lambda n: "r(x0, y) :- e(x0, y), " + "".join(f"x{i + 1} = x{i} + 1, " for i in range(n)) + f"e(x{n}, _).",
    ),
    "instances": (100, lambda n: ".comp C { .decl q(x: number) q(1). }\n" + "".join(f".init c{i} = C\n" for i in range(n))),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_twice_as_long_is_compiled_with_about_twice_the_calls(shape: str) -> None:
    size, text = SHAPES[shape]
    for length in (3, size):  # what is kept from the first time on
        compile_source(Source(DECLARED + text(length)), lambda found: None)
    sources = [Source(DECLARED + text(length)) for length in (size, 2 * size)]
    once, twice = (calls(partial(compile_source, source, lambda found: None)) for source in sources)
    assert twice < MOST * once


def test_a_circle_of_components_that_is_twice_as_long_is_refused_with_about_twice_the_calls() -> None:
    def refuse(length: int) -> None:
        text = "".join(f".comp C{i} : C{(i + 1) % length} {{ }}\n" for i in range(length))
        with pytest.raises(DlogError, match="component `C0` inherits from itself") as found:
            compile_source(Source(DECLARED + text), lambda found: None)
        assert len(found.value.diagnostics) == 1

    refuse(3)
    once, twice = calls(partial(refuse, 200)), calls(partial(refuse, 400))
    assert twice < MOST * once


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["atoms", "atoms apart", "atoms of an aggregate", "checks", "equations", "rules"])
def test_what_is_twice_as_long_is_planned_and_run_with_about_twice_the_calls(shape: str) -> None:
    size, text = SHAPES[shape]
    facts = {"e": [(1, 2), (2, 3), (3, 1)]}
    run_text(DECLARED + text(3), facts)
    once, twice = (calls(partial(run_text, DECLARED + text(length), facts)) for length in (size, 2 * size))
    assert twice < MOST * once
