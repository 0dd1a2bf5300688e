"""The order in which a path reads a body: the cheapest by estimates, whatever the order of the text.

Semijoins and filters are taken at once; among the others a shortest-path search over sets of readings (a dynamic program) finds
the order of least cost, for small bodies; large ones are ordered greedily. Costs are in the time to scan one row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from heapq import heappop, heappush
from itertools import islice
from math import inf, prod, sqrt

from dlog.engine.ir.rules import Constant, Variable
from dlog.engine.plan.joins import moves
from dlog.engine.plan.joins.conditions import CHECK, is_late, rank
from dlog.engine.plan.joins.costs import Costs, bound_columns, lookup_cost, readers_of, selectivity
from dlog.engine.plan.joins.moves import Index, SearchState
from dlog.engine.plan.query import Query, Reading, condition_mask, ids, mask_all, newly_bound
from dlog.engine.plan.statistics import Estimator

MAX_EXHAUSTIVE_READINGS = 8
"""Readings up to which all orders are considered: their number grows fast."""

MAX_GREEDY_SEEDS = 6
"""Seeds from which a large body is ordered greedily, those with the fewest rows: trades planning time against a better
order."""

MAX_GREEDY_READINGS = 600
"""Readings of a body times seeds from which it is ordered; there is one seed at least."""

MAX_APART = 8
"""Readings without a bound variable, those with the fewest rows, that a large body considers next: as many as are all ordered
in a small one."""

MAX_CHECKED_SEEDS = 24
"""Seeds, the smallest ones, to which the checks that are possible at once are applied before those are chosen."""

EXTENSION_COST = 2.0
"""Cost per incoming row of an extension beyond its lookups."""

SINK = 2.0
"""Cost per row of the sink, which looks each row up."""

MAX_PRODUCT_GROWTH = 16.0
"""Growth of rows up to which a cross product is considered beside connected readings."""

MAX_PRODUCT_READINGS = 100
"""Readings of a body up to which one is: each carries more variables through the rest of the path."""


def choose_order(
    query: Query, seeds: Sequence[int | None], estimator: Estimator, shared: Set[Index] = frozenset()
) -> SearchState:
    """The best complete state that starts with one of `seeds`: the number of a reading, or None for one empty row.
    Indexes in `shared` cost nothing, other paths have paid for them."""
    search = _Search(query, estimator, shared)
    starts = [search.start(seed) for seed in seeds]
    if len(query.readings) <= MAX_EXHAUSTIVE_READINGS:
        return search.exhaustive([search.settle(s) for s in starts])
    few = max(1, MAX_GREEDY_READINGS // len(query.readings))
    starts = [search.settle(s) for s in sorted(starts, key=lambda s: s.rows)[: min(MAX_CHECKED_SEEDS, few)]]
    starts.sort(key=lambda s: s.rows)
    return min((search.greedy(s) for s in starts[: min(MAX_GREEDY_SEEDS, few)]), key=lambda s: s.cost)


class _Search:
    """The moves and their costs for one query."""

    def __init__(self, query: Query, estimator: Estimator, shared: Set[Index]) -> None:
        self.query = query
        self.readings = query.readings
        self.estimator = estimator
        self.costs = Costs(query, estimator, shared)
        self.all = (1 << len(query.readings)) - 1
        self.output = mask_all(query.output)
        self.masks = self.costs.masks
        self.argument_counts = [sum(a is not None for a in r.args) for r in query.readings]
        """How many arguments each reading has that are not anonymous."""
        self.asked_by = readers_of([condition_mask(c) for c in query.conditions])
        self.asks = [condition_mask(c) for c in query.conditions]
        self.late = [is_late(c, query.conditions, self.masks) for c in query.conditions]
        self._new_bindings: dict[tuple[int, int], tuple[int, int] | None] = {}
        self._by_rows: list[int] | None = None
        """The readings, those with the fewest rows first."""
        self._fixed = sum(1 << i for i, r in enumerate(self.readings) if any(isinstance(a, Constant) for a in r.args))
        self.least: dict[int, float] | None = None
        """What it costs at least, of all ways seen, to place these readings and then to settle."""

    # ------------------------------------------------------------------------------------------------------- search

    def start(self, seed: int | None) -> SearchState:
        """The state with nothing but the seed, not settled."""
        state = SearchState(0.0, 1.0, 0, 0, 0, frozenset())
        if seed is not None:
            reading = self.readings[seed]
            state.rows = state.cost = self.estimator.rows(reading.relation)
            state.placed, state.bound = 1 << seed, self.masks[seed]
            state.chain = None, moves.Scan(reading)
            state.near = self.costs.others[seed]
            state.rows *= self.costs.seed_selectivity(reading)
        return state

    def exhaustive(self, starts: Sequence[SearchState]) -> SearchState:
        """Dijkstra's algorithm over the sets of placed readings."""
        heap: list[tuple[float, int, SearchState]] = []
        number = 0
        self.least = {}
        for state in starts:
            heappush(heap, (state.cost, number, state))
            number += 1
        closed: set[int] = set()
        while True:
            _, _, state = heappop(heap)
            if state.placed == self.all:
                return state
            if state.placed in closed:
                continue
            closed.add(state.placed)
            for following in self.next(state):
                if following.placed not in closed:
                    heappush(heap, (following.cost, number, following))
                    number += 1

    def greedy(self, state: SearchState) -> SearchState:
        """Always the move after which the fewest rows remain for what it costs."""
        while state.placed != self.all:
            state = min(self.next(state), key=lambda s: s.cost + s.rows)
        return state

    def next(self, state: SearchState) -> Iterator[SearchState]:
        yield from self._meets(state)
        connected = state.near & ~state.placed
        for i in ids(connected):
            yield from self._join(state, i)
        if connected and len(self.readings) > MAX_PRODUCT_READINGS:
            return
        for i in self._apart(state):
            if not connected or self.costs.rows_at(i, state)[0] <= MAX_PRODUCT_GROWTH:
                yield from self._join(state, i)

    def _apart(self, state: SearchState) -> Iterator[int]:
        """The readings without a bound variable that are considered."""
        there = self.all & ~state.placed & ~state.near
        if len(self.readings) <= MAX_EXHAUSTIVE_READINGS:
            return ids(there)
        if self._by_rows is None:
            nothing = self.start(None)
            self._by_rows = sorted(range(len(self.readings)), key=lambda i: self.costs.rows_at(i, nothing)[0])
        return islice((i for i in self._by_rows if there >> i & 1), MAX_APART)

    # -------------------------------------------------------------------------------------------------------- moves

    def _join(self, state: SearchState, i: int) -> Iterator[SearchState]:
        """The state after a join, unless the same readings have been placed and settled at no more than the join costs."""
        reading = self.readings[i]
        fanout, index = self.costs.rows_at(i, state)
        key = index[1]
        size = self.estimator.rows(reading.relation)
        cost = state.rows * (lookup_cost(size) + fanout if key else 1.0 + size)
        build = self.costs.build(state, index) if key else 0.0
        placed, total = state.placed | 1 << i, state.cost + cost + build
        if self.least is not None and total >= self.least.get(placed, inf):
            return
        repeated = self.argument_counts[i] - len(key) - _count(self.masks[i] & ~state.bound)
        result = SearchState(
            cost=total,
            rows=state.rows * fanout * 0.1**repeated,
            placed=placed,
            bound=state.bound | self.masks[i],
            done=state.done,
            built=state.built | {index} if build else state.built,
            chain=(state.chain, moves.HalfJoin(reading, fanout)),
            near=state.near | self.costs.others[i],
            touched=self.costs.others[i],
        )
        self.settle(result)
        if self.least is not None:
            self.least[placed] = min(result.cost, self.least.get(placed, inf))
        yield result

    def _meets(self, state: SearchState) -> Iterator[SearchState]:
        candidates: dict[int, list[int]] = {}
        for i in ids((state.near | self._fixed) & ~state.placed):
            unbound = self.masks[i] & ~state.bound
            if unbound and not unbound & (unbound - 1) and _only_column(self.readings[i], state.bound) is not None:
                candidates.setdefault(unbound, []).append(i)
        for unbound, members in sorted(candidates.items(), key=lambda c: c[1]):
            if len(members) > 1:
                yield self._meet(state, unbound, members)

    def _meet(self, state: SearchState, unbound: int, members: list[int]) -> SearchState:
        fanouts, cost, build, built = [], EXTENSION_COST, 0.0, set(state.built)
        domain = 1.0
        for i in members:
            relation = self.readings[i].relation
            fanout, index = self.costs.rows_at(i, state, skewed=False)
            fanouts.append(fanout)
            cost += lookup_cost(self.estimator.rows(relation))
            extra = 0.0 if index in built else self.costs.build(state, index)
            if extra:
                build += extra
                built.add(index)
            column = _only_column(self.readings[i], state.bound)
            assert column is not None
            domain = max(domain, self.estimator.distinct(relation, (column,)))
        fanouts.sort()
        rows = fanouts[0] * prod(sqrt(min(1.0, f / domain)) for f in fanouts[1:])
        placed, touched = state.placed, 0
        for i in members:
            placed |= 1 << i
            touched |= self.costs.others[i]
        result = SearchState(
            cost=state.cost + build + state.rows * (cost + fanouts[0] * 0.5 * len(members)),
            rows=state.rows * rows,
            placed=placed,
            bound=state.bound | unbound,
            done=state.done,
            built=frozenset(built),
            chain=(state.chain, moves.Extend(unbound.bit_length() - 1, tuple(self.readings[i] for i in members), rows)),
            near=state.near | touched,
            touched=touched,
        )
        return self.settle(result)

    def settle(self, state: SearchState) -> SearchState:
        """Takes all filters and semijoins that are possible, and pays for the sink if nothing else is left; changes `state`
        in place."""
        while self._apply(state) or self._keep(state):
            pass
        state.touched = 0
        if state.placed == self.all:
            state.cost += state.rows * SINK
        return state

    def _apply(self, state: SearchState) -> bool:
        """Applies the best condition that is possible, or all checks if one is: they make nothing else possible."""
        best: list[tuple[int, int]] = []
        for c, late in enumerate(self.late):
            if state.done >> c & 1 or (late and state.placed != self.all):
                continue
            possible = self._possible(c, state.bound)
            if possible is None or (best and possible[0] > best[0][0]):
                continue
            if not best or possible[0] < best[0][0]:
                best = []
            if not best or possible[0] == CHECK:
                best.append((possible[0], c))
        for _, c in best:
            self._applied(state, c)
        return bool(best)

    def _applied(self, state: SearchState, c: int) -> None:
        condition = self.query.conditions[c]
        _, added = self._possible(c, state.bound) or (0, 0)
        state.rows *= selectivity(condition, added)
        state.bound |= added
        state.done |= 1 << c
        state.chain = state.chain, moves.Filter(condition)
        state.near |= self.costs.readers_of_all(added)
        state.touched |= self.costs.readers_of_all(added | self.asks[c])

    def _possible(self, c: int, bound: int) -> tuple[int, int] | None:
        """The rank of a condition and the variables that it binds, given the bound ones; None where it is not possible yet."""
        what = c, bound & self.asks[c]
        if what not in self._new_bindings:
            condition = self.query.conditions[c]
            added = newly_bound(condition, bound)
            self._new_bindings[what] = None if added is None else (rank(condition, added), added)
        return self._new_bindings[what]

    def _keep(self, state: SearchState) -> bool:
        """All that are possible of `SemiJoin`, the most selective first: none of them changes what another one keeps."""
        options: list[tuple[float, float, int, Index]] = []
        for i in ids(self.all & ~state.placed & state.touched):
            unbound = self.masks[i] & ~state.bound
            if not (unbound and (self.query.bag or unbound & self.output)) and self._only_asks(i, state):
                selectivity, index = self.costs.rows_at(i, state, skewed=False)
                cost = lookup_cost(self.estimator.rows(self.readings[i].relation))
                options.append((min(1.0, selectivity), cost, i, index))
        for selectivity, cost, i, index in sorted(options):
            build = self.costs.build(state, index) if index[1] else 0.0
            state.cost += build + state.rows * cost
            state.rows *= selectivity
            state.built = state.built | {index} if build else state.built
            state.placed |= 1 << i
            state.chain = state.chain, moves.SemiJoin(self.readings[i])
            state.touched |= self.costs.others[i]
        return bool(options)

    def _only_asks(self, i: int, state: SearchState) -> bool:
        """Whether reading i binds nothing that is used later, and multiplies nothing that is counted."""
        unbound = self.masks[i] & ~state.bound
        if self.query.bag:
            return not unbound and self.argument_counts[i] == len(self.readings[i].args)
        if not unbound:
            return True
        others = self.all & ~state.placed & ~(1 << i)
        for variable in ids(unbound):
            if self.costs.readers[variable] & others or self.asked_by.get(variable, 0) & ~state.done:
                return False
        return not unbound & self.output and not _repeats(self.readings[i], unbound)


def _only_column(reading: Reading, bound: int) -> int | None:
    """The one column that is not bound, if all others are."""
    key = bound_columns(reading, bound)
    if not key or len(key) != len(reading.args) - 1:
        return None
    return next(c for c in range(len(reading.args)) if c not in key)


def _repeats(reading: Reading, unbound: int) -> bool:
    names = [a.id for a in reading.args if isinstance(a, Variable) and unbound >> a.id & 1]
    return len(names) != len(set(names))


def _count(variables: int) -> int:
    return variables.bit_count()
