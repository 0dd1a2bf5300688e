"""The clock in filters: `rows.filter((col("start") <= now()) & (now() < col("end")))`.

Such a filter is a temporal one: each comparison with `now()` bounds the rounds in which a row is there, and what is to come
waits by round, so nothing is looked at again while the clock stands between bounds. (Materialize's `mz_now()`.)
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from dlog.dataclass import dataclass
from dlog.dataflow.bounds import Limit
from dlog.dataflow.expressions import Binary, Comparison, Expression, Named
from dlog.dataflow.kinds import Kind
from dlog.dataflow.operands import Values
from dlog.dataflow.schema import Schema
from dlog.dataflow.texts import MIRRORED
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, eq=False)
class Now(Expression):
    """The round, which a filter compares with what rows have."""

    def kind(self, schema: Schema) -> Kind:
        raise misplaced()

    def __repr__(self) -> str:
        return "now()"

    def values(self, schema: Schema) -> Values:
        raise misplaced()


def now() -> Expression:
    """The clock: the round, while rounds pass. `filter` takes it, compared (`<`, `<=`, `>`, `>=`, `==`) with columns and
    expressions, of which those that are null leave a row out; several comparisons, and others, are joined by `&`.

    >>> from dlog.dataflow import Dataflow, col, now
    >>> flow = Dataflow()
    >>> offers = flow.input(name=str, start=int, end=int)
    >>> valid = offers.filter((col("start") <= now()) & (now() < col("end"))).map("name").capture()
    >>> offers.insert([("tea", 0, 2), ("rum", 1, 9)])
    >>> flow.advance_to(3)
    >>> sorted(valid)
    [('rum',)]
    """
    return Now()


def misplaced() -> DlogError:
    """What is wrong where `now()` is no side of a comparison of a filter."""
    notes = ('write `col("start") + 10 <= now()`, several of them joined by `&`',)
    return DlogError(Diagnostic("bad-expression", "`now()` can only be compared, as it is, in a filter", notes=notes))


def split_filter(predicate: Expression) -> tuple[Expression | None, list[tuple[Limit | None, Limit | None]]]:
    """What a filter asks of rows alone (None: nothing), and the rounds from which on and until before which they are there."""
    plain: Expression | None = None
    lower: list[Limit] = []
    upper: list[Limit] = []
    for part in _parts(predicate):
        if not has_clock(part):
            plain = part if plain is None else plain & part
        else:
            _add_bounds(part, lower, upper)
    return plain, list(zip_longest(lower, upper))


def _parts(predicate: Expression) -> Iterator[Expression]:
    """What `&` joins."""
    if isinstance(predicate, Comparison) and predicate.sign == "&":
        yield from _parts(predicate.left)
        yield from _parts(predicate.right)
    else:
        yield predicate


def has_clock(found: Any) -> bool:
    """Whether an expression asks for the clock."""
    match found:
        case Now():
            return True
        case Comparison() | Binary():
            return has_clock(found.left) or has_clock(found.right)
        case Named():
            return has_clock(found.inner)
        case _:
            return any(map(has_clock, getattr(found, "arguments", ())))


def _add_bounds(part: Expression, lower: list[Limit], upper: list[Limit]) -> None:
    """The bounds that a comparison with the clock sets. Raises DlogError where it is none, or another one."""
    if not isinstance(part, Comparison) or part.sign not in MIRRORED or part.sign == "!=":
        raise misplaced()
    sign, bound = part.sign, part.right
    if isinstance(bound, Now):
        sign, bound = MIRRORED[sign], part.left
    elif not isinstance(part.left, Now):
        raise misplaced()
    if has_clock(bound):
        raise misplaced()
    if sign in (">=", ">", "=="):
        lower.append(Limit(bound, sign == ">"))
    if sign in ("<=", "<", "=="):
        upper.append(Limit(bound, sign != "<"))
