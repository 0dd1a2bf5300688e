"""The order in which a path reads a body over relations with hardly any rows: nothing is estimated. All matches count.

    p(x, y, z) :- a(x), e(x, y), e(y, z), e(z, x).    has, from a, the order    a(x), e(x, y), z by e(y, z) and e(z, x)
"""

from __future__ import annotations

from collections.abc import Set

from dlog.engine.ir.rules import Variable
from dlog.engine.plan.joins import moves
from dlog.engine.plan.joins.conditions import is_late, rank
from dlog.engine.plan.joins.costs import bound_columns
from dlog.engine.plan.joins.moves import Index
from dlog.engine.plan.query import Condition, Query, Reading, mask_all, newly_bound


def connected_order(query: Query, seed: int | None, shared: Set[Index]) -> tuple[moves.Move, ...]:
    """The moves from a seed, the number of a reading or None for one empty row. Where readings meet in a variable they are
    extended by it; else the next one is that of which most columns are bound, and have an index."""
    order = _Order(query)
    if seed is not None:
        order.scan(seed)
    order.settle()
    while order.left:
        if not order.meet():
            order.join(shared)
        order.settle()
    return tuple(order.moves)


class _Order:
    """Moves made so far: they leave some readings and conditions."""

    def __init__(self, query: Query) -> None:
        self.moves: list[moves.Move] = []
        self.left = list(query.readings)
        self._bound = 0
        masks = [mask_all(r.args) for r in query.readings] if query.conditions else []
        self._conditions = [(c, is_late(c, query.conditions, masks)) for c in query.conditions]

    def scan(self, seed: int) -> None:
        self._place(moves.Scan(self.left[seed]), self.left[seed])

    def settle(self) -> None:
        """Applies the conditions that are possible, and asks for the rows of which all is bound."""
        while self._apply() or self._ask():
            pass

    def meet(self) -> bool:
        """Extends by a variable in which readings meet, if there is one."""
        meeting: dict[int, list[Reading]] = {}
        for reading in self.left:
            variable = self._open_variable(reading)
            if variable is not None:
                meeting.setdefault(variable, []).append(reading)
        for variable, readings in meeting.items():
            if len(readings) > 1:
                self._place(moves.Extend(variable, tuple(readings), 1.0), *readings)
                return True
        return False

    def join(self, shared: Set[Index]) -> None:
        keys = [(bound_columns(reading, self._bound), reading) for reading in self.left]
        _, best = max(keys, key=lambda k: (len(k[0]), (k[1].relation, k[0]) in shared))
        self._place(moves.HalfJoin(best, 1.0), best)

    def _place(self, move: moves.Move, *readings: Reading) -> None:
        self.moves.append(move)
        for reading in readings:
            self._bound |= mask_all(reading.args)
        self.left = [reading for reading in self.left if not any(reading is placed for placed in readings)]

    def _open_variable(self, reading: Reading) -> int | None:
        """The variable in the one column that is not bound, where all others are."""
        opened = [a for a in reading.args if a is None or (isinstance(a, Variable) and not self._bound >> a.id & 1)]
        if len(opened) != 1 or len(reading.args) == 1 or opened[0] is None:
            return None
        assert isinstance(opened[0], Variable)
        return opened[0].id

    def _ask(self) -> bool:
        bound = [r for r in self.left if None not in r.args and not mask_all(r.args) & ~self._bound]
        for reading in bound:
            self._place(moves.SemiJoin(reading), reading)
        return bool(bound)

    def _apply(self) -> bool:
        """Applies the best condition that is possible."""
        possible: list[tuple[int, int, int, Condition]] = []
        for number, (condition, late) in enumerate(self._conditions):
            added = None if late and self.left else newly_bound(condition, self._bound)
            if added is not None:
                possible.append((rank(condition, added), number, added, condition))
        if not possible:
            return False
        _, number, added, condition = min(possible, key=lambda p: p[:2])
        self._bound |= added
        self.moves.append(moves.Filter(condition))
        del self._conditions[number]
        return True
