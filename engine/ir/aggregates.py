"""The aggregates: one row each, which every stage reads.

To add an aggregate: its word in the grammar (grammar/words.py, grammar/datalog.lark; then `python -m tests.textmate`), a row
here, a case in the kernels for each opcode that it names (kernels/combine.py, whose members stand in the order that it says), a
line in the oracle (tests/naive_functors.py), random programs (tests/strategies.py, tests/strategies_aggregates.py), and `python
-m tests.reference` for its documentation. One that is no dominance and whose groups begin with something else than zero, or
cannot take a value back, also needs its way to merge blocks (kernels/static/merge.py) and to keep a group over rounds
(kernels/incremental/reduce/sums.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from operator import xor
from typing import Any, Final

from dlog.dataclass import dataclass
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.kinds import INTEGRAL, NUMERIC, Kinds
from dlog.engine.ir.rules import Aggregate, Constant, Kind
from dlog.engine.ir.scalars import as_kind

_SUFFIXES: Final = {Kind.NUMBER: "", Kind.UNSIGNED: "_UNSIGNED", Kind.FLOAT: "_FLOAT"}


def opcodes_of(dominance: Dominance) -> dict[Kind, str]:
    """What the kernels call a dominance (`combine.Combine`), by the kind of the values."""
    return {kind: dominance.name + suffix for kind, suffix in _SUFFIXES.items()}


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate of the language.

    `target` are the kinds that it takes values of; without any it counts matches. `result` is the result's kind, to which
    values are converted first; None: that of the values. `identity` is its value where nothing matches; None: it has none
    then, and what asks for it fails. `dominance` is what it keeps one value by, if it does. `opcodes` names, by the kind of
    its result, how the kernels combine values (kernels/combine.py). `beside` are the kinds of what it keeps beside its value
    until all have come. `value` computes it in Python from all values, up to `scalars.as_kind`. `example` is a condition that
    holds over `p(1)`, `p(2)` and `p(6)`.
    """

    name: str
    target: Kinds
    result: Kind | None
    opcodes: Mapping[Kind, str]
    value: Callable[[Sequence[Any]], Any]
    documentation: str
    example: str
    identity: int | None = None
    dominance: Dominance | None = None
    beside: tuple[Kind, ...] = field(default=())

    def columns(self, kind: Kind) -> tuple[Kind, ...]:
        """The kinds of what is kept of values of a kind: the value, and what stands beside it."""
        return (self.result or kind, *self.beside)

    def empty(self, kind: Kind) -> Constant | None:
        """The value of no match, of a result of this kind."""
        if self.identity is None:
            return None
        return Constant(float(self.identity) if kind is Kind.FLOAT else self.identity, kind)


_ROWS: Final = (
    AggregateFunction(
        "count",
        frozenset(),
        Kind.NUMBER,
        {Kind.NUMBER: "COUNT"},
        len,
        "How many matches the body has.",
        "count : { p(_) } = 3",
        identity=0,
    ),
    AggregateFunction(
        "sum",
        NUMERIC,
        None,
        {Kind.NUMBER: "SUM", Kind.UNSIGNED: "SUM", Kind.FLOAT: "SUM_FLOAT"},
        sum,
        "The sum of the values over all matches; integers wrap around at 64 bits.",
        "sum x : { p(x) } = 9",
        identity=0,
    ),
    AggregateFunction(
        "min",
        NUMERIC,
        None,
        opcodes_of(Dominance.LEAST),
        min,
        "The least value. A recursion may pass through it.",
        "min x : { p(x) } = 1",
        dominance=Dominance.LEAST,
    ),
    AggregateFunction(
        "max",
        NUMERIC,
        None,
        opcodes_of(Dominance.GREATEST),
        max,
        "The greatest value. A recursion may pass through it.",
        "max x : { p(x) } = 6",
        dominance=Dominance.GREATEST,
    ),
    AggregateFunction(
        "mean",
        NUMERIC,
        Kind.FLOAT,
        {Kind.FLOAT: "MEAN"},
        lambda values: sum(values) / len(values),
        "The mean of the values over all matches, as a float.",
        "mean x : { p(x) } = 3.0",
        beside=(Kind.NUMBER,),
    ),
    AggregateFunction(
        "bit_xor",
        INTEGRAL,
        None,
        dict.fromkeys(INTEGRAL, "BIT_XOR"),
        lambda values: reduce(xor, values),
        "The bitwise exclusive or of the values over all matches: a checksum that does not depend on their order.",
        "bit_xor x : { p(x) } = 5",
        identity=0,
    ),
)

AGGREGATES: Final = {row.name: row for row in _ROWS}


def is_user_aggregate(op: str) -> bool:
    """Whether an aggregate is a user's functor."""
    return op.startswith("@@")


def functor_of(op: str) -> str:
    """The name of the functor that a user's aggregate is."""
    return op.removeprefix("@@")


def dominance_of(aggregate: str) -> Dominance | None:
    """What an aggregate keeps one value by; None also for users' own."""
    row = AGGREGATES.get(aggregate)
    return None if row is None else row.dominance


def aggregate_of(dominance: Dominance | None) -> str:
    """The aggregate whose values a lattice keeps; without a dominance it sums up weights."""
    return "sum" if dominance is None else next(row.name for row in _ROWS if row.dominance is dominance)


def fold_all(aggregate: Aggregate, values: Sequence[Any]) -> int | float | None:
    """The value of an aggregate over these values, None where it has none."""
    row = AGGREGATES[aggregate.op]
    if not values:
        return row.identity
    folded = as_kind(row.value(values), aggregate.kind)
    assert not isinstance(folded, str)
    return folded
