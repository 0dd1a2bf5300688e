"""Random dataflows as terms: what a naive evaluator reads, and what the collections of a dataflow are built of.

All collections have the columns `a` and `b`, small integers. A loop is cut off after some iterations, so that it ends
whatever its body: an update of a later iteration is dropped, and so the collection is at later iterations what it was at the
last one."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

MODULUS = 4
LAST_ITERATION = 2
ROUNDS = 5
INPUTS = 2

UNARY = (
    "map", "swap", "filter", "flat_map", "explode", "negate", "distinct", "threshold", "count", "min", "max", "top_k", "sum",
    "reduce", "consolidate", "join_function", "temporal", "series", "repeat", "window", "session", "moving", "scan",
)  # fmt: skip
BINARY = ("concat", "join", "semijoin", "antijoin", "half_join")
LOOPED = ("enter_at", "delay_iteration")


@dataclass(frozen=True, eq=False)
class Term:
    """An operator over terms. `level` is how many loops it is in; terms that it reads may be of a lower level."""

    name: str
    level: int
    parts: tuple[Term, ...] = ()
    number: int = 0


@dataclass(frozen=True, eq=False)
class Loop(Term):
    """A loop, seen from outside: `parts` is what its variable starts from. Its body is set once."""

    body: list[Term] | None = None


@st.composite
def terms(
    draw: st.DrawFn,
    level: int = 0,
    variables: tuple[Term, ...] = (),
    size: int = 4,
    loops: int = 2,
    unary: tuple[str, ...] = UNARY,
    binary: tuple[str, ...] = BINARY,
) -> Term:
    """A term of a level, over inputs and the variables of the loops around."""
    if size <= 0:
        leaves = [Term("input", 0, number=k) for k in range(INPUTS)]
        return draw(st.sampled_from([*leaves, *variables, *variables]))
    names = [*unary, *binary, *binary, *(LOOPED if level else ()), *(["loop"] * 4 if level < loops else [])]
    name = draw(st.sampled_from(names))
    if name == "loop":
        return draw(_loops(level, variables, size, loops))
    if name == "enter_at":
        return Term(name, level, (draw(terms(level - 1, tuple(v for v in variables if v.level < level), size - 1, loops)),))
    parts = 2 if name in binary else 1
    number = draw(st.integers(0, 3))
    sizes = (size - 1,) if parts == 1 else (size // 2, size - 1 - size // 2)
    return Term(name, level, tuple(draw(terms(level, variables, each, loops, unary, binary)) for each in sizes), number)


@st.composite
def _loops(draw: st.DrawFn, level: int, variables: tuple[Term, ...], size: int, loops: int) -> Term:
    start = draw(terms(level, variables, size // 3, loops))
    loop = Loop("loop", level, (start,), body=[])
    variable = Term("variable", level + 1, (loop,))
    assert loop.body is not None
    loop.body.append(draw(terms(level + 1, (*variables, variable), size - 1, loops)))
    return loop


row = st.tuples(st.integers(0, MODULUS - 1), st.integers(0, MODULUS - 1))
change = st.tuples(st.integers(0, INPUTS - 1), row, st.integers(0, ROUNDS - 1), st.sampled_from([1, 1, 1, -1, 2]))
changes = st.lists(change, max_size=14)
ends = st.lists(st.integers(1, ROUNDS - 1), max_size=3, unique=True).map(lambda found: [*sorted(found), ROUNDS])
"""Where batches end."""
