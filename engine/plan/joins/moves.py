"""The moves from which an order of a body is made, and a `SearchState`: what the moves made so far amount to.

    Scan      the rows of one reading, to start with,
    HalfJoin  the rows of one more reading that agree with the bound variables,
    SemiJoin  a reading whose variables are all bound, or used nowhere else: only asks whether there is a row,
    Extend    one more variable, from two or more readings in which it alone is unbound (worst-case optimal),
    Filter    a condition, as soon as its variables are bound.

They are called as the steps of the plan that they become (`dlog.engine.ir.nodes`).
"""

from __future__ import annotations

from typing import TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.plan.query import Condition, Reading

Index: TypeAlias = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Scan:
    reading: Reading


@dataclass(frozen=True, slots=True)
class HalfJoin:
    reading: Reading
    rows: float


@dataclass(frozen=True, slots=True)
class SemiJoin:
    reading: Reading


@dataclass(frozen=True, slots=True)
class Extend:
    variable: int
    readings: tuple[Reading, ...]
    rows: float


@dataclass(frozen=True, slots=True)
class Filter:
    condition: Condition


Move: TypeAlias = Scan | HalfJoin | SemiJoin | Extend | Filter
MoveChain: TypeAlias = "tuple[MoveChain | None, Move]"
"""The moves before one, and this."""


@dataclass(slots=True)
class SearchState:
    """A partial join order. `placed` and `done` are masks over the query's readings and conditions, `bound` over variables;
    `built` are the indexes that this order pays for."""

    cost: float
    rows: float
    placed: int
    bound: int
    done: int
    built: frozenset[Index]
    chain: MoveChain | None = None
    """The moves, the last one first."""
    near: int = 0
    """The readings that have a bound variable."""
    touched: int = -1
    """Those that may have become a `Keep` by the last moves: what these bound, placed or applied, they share variables with."""

    @property
    def moves(self) -> tuple[Move, ...]:
        found: list[Move] = []
        made = self.chain
        while made is not None:
            made, move = made
            found.append(move)
        return tuple(reversed(found))
