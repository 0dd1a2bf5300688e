"""The table functions: functors that give any number of rows for their arguments. One row each, which every stage reads.

    p(x) :- q(n), x = range(0, n).                each value of the range is a match of its own

To add one: a row here, a case where the machine makes rows (kernels/static/generators.py), a line of the oracle
(tests/naive_generators.py), and `python -m tests.reference` for its documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dlog.engine.ir.kinds import NUMERIC, Kinds
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.scalars import as_kind

LEAST: Final = {Kind.NUMBER: -(2**63), Kind.UNSIGNED: 0}
"""The least value of the integral kinds."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the rows; without a kind it has that of the arguments, which is one."""

    name: str
    kind: Kind | None


@dataclass(frozen=True, slots=True)
class TableFunction:
    """`args` are the kinds that each argument may have, the last `optional` of which may be left out. `rows` makes the rows for
    arguments of a kind, each a tuple of Python's values, and none twice. `example` is a call, which gives `given`."""

    name: str
    args: tuple[Kinds, ...]
    columns: tuple[Column, ...]
    rows: Callable[..., Iterator[tuple[Any, ...]]]
    documentation: str
    example: str
    given: tuple[tuple[Any, ...], ...]
    optional: int = 0

    def accepts(self, count: int) -> bool:
        return len(self.args) - self.optional <= count <= len(self.args)

    @property
    def is_overloaded(self) -> bool:
        return any(column.kind is None for column in self.columns)

    def kinds(self, kind: Kind) -> tuple[Kind, ...]:
        """The kinds of the columns, the arguments being of a kind."""
        return tuple(column.kind or kind for column in self.columns)


def _range(kind: Kind, first: Any, end: Any, *steps: Any) -> Iterator[tuple[Any, ...]]:
    step = steps[0] if steps else 1 if first <= end else -1
    value = first
    if not (step > 0 or step < 0):
        if first != end:
            yield (first,)
        return
    while value < end if step > 0 else end < value:
        yield (value,)
        following = as_kind(value + step, kind)
        if not (value < following if step > 0 else following < value):
            return  # beyond the last value of the kind
        value = following


_ROWS: Final = (
    TableFunction(
        "range",
        (NUMERIC,) * 3,
        (Column("value", None),),
        _range,
        "The values from the first argument on to the second one, which is none of them, in steps of the third one; without "
        "it, of 1 or, where the second is less than the first, of -1. With a step of zero it is the first argument alone, if "
        "that is not the second. A range ends where a step does not change its value any more.",
        "range(1, 6, 2)",
        ((1,), (3,), (5,)),
        optional=1,
    ),
)

TABLE_FUNCTIONS: Final = {row.name: row for row in _ROWS}
