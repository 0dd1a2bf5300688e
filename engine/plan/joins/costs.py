"""Estimates of a move's cost and of the rows that remain after it; costs are in the time to scan one row."""

from __future__ import annotations

from collections.abc import Sequence, Set
from math import log2, sqrt

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.ir.rules import Compare, Constant, Generator, Unpack, Variable
from dlog.engine.plan.joins.moves import Index, SearchState
from dlog.engine.plan.joins.ranges import range_length
from dlog.engine.plan.query import Condition, Query, Reading, ids, mask, mask_all
from dlog.engine.plan.statistics import Estimator

BUILD = 3.0
"""Cost per row of making an arrangement that no other path needs."""

BUILD_SET = 1.0
"""Cost per row of making the set of all rows of a relation, which often exists."""

GENERATED = 8.0
"""Rows that a table function gives for each row."""

CACHED = 15
"""Base-two logarithm of the rows that fast memory holds: lookups in larger relations cost more."""


def lookup_cost(rows: float) -> float:
    """The cost of one random access in a relation of so many rows, in scanned rows."""
    return min(6.0, 1.0 + 0.5 * max(0.0, log2(max(rows, 1.0)) - CACHED))


@dataclass(slots=True)
class _MatchParameters:
    """The parameters of a reading's matches beside the rows before it: its index, its rows, how many keys there are, how many
    are asked for and by how many variables, and the root of the skew."""

    index: Index
    rows: float
    keys: float
    probed_keys: float
    columns: int
    skew: float | None = None


class Costs:
    """Estimates for one query. Indexes in `shared` cost nothing, other paths have paid for them."""

    def __init__(self, query: Query, estimator: Estimator, shared: Set[Index]) -> None:
        self.readings = query.readings
        self.estimator = estimator
        self.shared = shared
        self.masks = [mask_all(r.args) for r in query.readings]
        self.readers = readers_of(self.masks)
        self.others = [self.readers_of_all(m) for m in self.masks]
        """For each reading, those that share a variable with it."""
        self._values: dict[tuple[int, int], float] = {}
        self._parameters: dict[tuple[int, int, int], _MatchParameters] = {}

    def readers_of_all(self, variables: int) -> int:
        """The readings that have any of the variables."""
        result = 0
        for variable in ids(variables):
            result |= self.readers.get(variable, 0)
        return result

    def rows_at(self, i: int, state: SearchState, skewed: bool = True) -> tuple[float, Index]:
        """Estimated matches of reading i per row of `state`, and the index that finds them.

        Values are taken to be contained in each other: of two sets that are compared, the smaller is part of the larger.
        Several columns together are taken to be half way between that and independent."""
        what = i, state.bound & self.masks[i], state.placed & self.others[i]
        known = self._parameters.get(what)
        if known is None:
            known = self._parameters[what] = self._look(i, state)
        if not known.index[1]:
            return known.rows, known.index
        fanout = known.rows / max(known.keys, min(known.probed_keys, state.rows))
        if known.columns > 1:
            fanout = sqrt(fanout * known.rows / max(known.keys, known.probed_keys))
        if skewed and known.columns:
            if known.skew is None:
                known.skew = sqrt(self.estimator.skew(*known.index))
            fanout *= known.skew
        return fanout, known.index

    def _look(self, i: int, state: SearchState) -> _MatchParameters:
        reading = self.readings[i]
        key = bound_columns(reading, state.bound)
        rows = self.estimator.rows(reading.relation)
        if not key:
            return _MatchParameters((reading.relation, ()), rows, 1.0, 1.0, 0)
        there = self.estimator.distinct(reading.relation, key)
        asked, columns = 1.0, 0
        for column in key:
            arg = reading.args[column]
            if isinstance(arg, Variable):
                asked *= self._values_of(arg.id, state) or there
                columns += 1
        return _MatchParameters((reading.relation, key), rows, there, asked, columns)

    def _values_of(self, variable: int, state: SearchState) -> float:
        """Distinct values of a bound variable, as far as the placed readings tell; 0 if they do not."""
        placed = state.placed & self.readers.get(variable, 0)
        if (found := self._values.get((variable, placed))) is not None:
            return found
        known = [
            self.estimator.counted(self.readings[i].relation, (column,))
            for i in ids(placed)
            for column, arg in enumerate(self.readings[i].args)
            if isinstance(arg, Variable) and arg.id == variable
        ]
        self._values[variable, placed] = result = min((k for k in known if k), default=0.0)
        return result

    def seed_selectivity(self, reading: Reading) -> float:
        result, seen = 1.0, 0
        for column, arg in enumerate(reading.args):
            if isinstance(arg, Constant) or mask(arg) & seen:
                result /= self.estimator.distinct(reading.relation, (column,))
            seen |= mask(arg)
        return result

    def build(self, state: SearchState, index: Index) -> float:
        relation, key = index
        if index in self.shared or index in state.built or self.estimator.indexed(relation):
            return 0.0
        full = len(key) == self.estimator.arity(relation)
        return self.estimator.rows(relation) * (BUILD_SET if full else BUILD)


def readers_of(masks: Sequence[int]) -> dict[int, int]:
    """For each variable the numbers (as bits) of those among `masks` that it is in."""
    readers: dict[int, int] = {}
    for i, variables in enumerate(masks):
        for variable in ids(variables):
            readers[variable] = readers.get(variable, 0) | 1 << i
    return readers


def selectivity(condition: Condition, added: int) -> float:
    match condition:
        case Compare(op=op):
            if added:
                return 1.0
            return {"=": 0.1, "!=": 0.95}.get(op, 0.4)
        case Unpack(value=value, fields=fields):
            if added == 1 << value.id:
                return 1.0
            checked = sum(1 for f in fields if f is not None) - added.bit_count()
            return 0.8 * 0.1 ** max(checked, 0)
        case Generator():
            return (range_length(condition) or GENERATED) if added else 0.5
        case LookUp():
            return 1.0 if added else 0.1
        case AntiJoin():
            return 0.7


def bound_columns(reading: Reading, bound: int) -> tuple[int, ...]:
    """The columns that a lookup can use: constants and bound variables."""
    return tuple(
        c for c, a in enumerate(reading.args) if isinstance(a, Constant) or (isinstance(a, Variable) and bound >> a.id & 1)
    )
