"""Evaluates a stratum pass after pass, as `plan/static/alternating` says, until one derives what the one before did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Program, Stratum
from dlog.engine.plan.static.alternating import Passes, before
from dlog.engine.plan.static.build import build_scope
from dlog.engine.runtime.static.scope import RuleCosts, ScopeRun
from dlog.engine.runtime.static.settling import Rows, Settling, not_settled
from dlog.engine.runtime.static.thread_pool import ThreadPool
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.differences import difference, row_groups


@dataclass
class AlternatingRun:
    """One run of one stratum; see `ScopeRun` for what is called and raised."""

    stratum: Stratum
    program: Program
    catalog: Catalog
    thread_pool: ThreadPool
    pause: Callable[[], None]
    limits: Mapping[str, int] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    """The relations that have rows from outside."""
    costs: dict[int, RuleCosts] = field(default_factory=dict)
    iterations: int = 0
    """Passes."""

    def __post_init__(self) -> None:
        self.passes = Passes(self.stratum, self.program)
        self._run: ScopeRun | None = None
        self._plan: tuple[dict[str, int], nodes.Scope] | None = None

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(rule.text for rule in self.stratum.rules)

    def current_rule(self) -> int:
        """The rule that was evaluated last, -1 if none."""
        return self._run.current_rule() if self._run is not None else -1

    def run(self) -> None:
        given = {name: _rows(self._stored(name)) for name in self.stratum.relations}
        known = {name: _none(self._stored(name).arity) for name in self.passes.feedback}
        settling = Settling(self.passes)
        for name in self.passes.feedback:
            self.catalog.add(before(name), self._stored(name).kinds)
        try:
            while True:
                derived = self._derive(given, known)
                changed = {name: difference(*known[name], *rows) for name, rows in derived.items()}
                if not any(len(diffs) for _, diffs in changed.values()):
                    return
                if (endless := settling.endless(changed)) is not None:
                    raise not_settled(self.passes, endless, self.catalog)
                known = derived
        finally:
            for name in self.passes.feedback:
                self.catalog.remove(before(name))

    def _derive(self, given: Mapping[str, Rows], known: Mapping[str, Rows]) -> dict[str, Rows]:
        """What a pass derives, in the order of the values: the sums of floats of the next one depend on that."""
        self.iterations += 1
        for name, rows in given.items():
            self._fill(name, rows)
        for name, rows in known.items():
            self._fill(before(name), rows)
            self.catalog.complete.add(before(name))
        self._run = ScopeRun(self._scope(), self.catalog, self.thread_pool, self.pause, self.limits)
        self._run.run()
        for rule, costs in self._run.costs.items():
            self.costs.setdefault(rule, RuleCosts()).add(costs.cycles, costs.derived, costs.new)
        return {name: _in_order(_rows(self._stored(name))) for name in self.passes.feedback}

    def _scope(self) -> nodes.Scope:
        """The plan of a pass: another one where what is read of the pass before has twice or half the rows that it had then."""
        sizes = {name: self._stored(before(name)).rows for name in self.passes.feedback}
        if self._plan is None or any(not n <= 2 * sizes[name] <= 4 * n for name, n in self._plan[0].items()):
            self._plan = sizes, build_scope(self.passes.pass_stratum, self.passes.extended, self.catalog, self.loaded)
        return self._plan[1]

    def _stored(self, name: str) -> StoredRelation:
        return self.catalog.relations[name]

    def _fill(self, name: str, rows: Rows) -> None:
        self.catalog.renew(name)
        self._stored(name).load(*rows)


def _rows(stored: StoredRelation) -> Rows:
    return tuple(stored.column(c).astype(np.int64) for c in range(stored.arity)), stored.rows


def _none(arity: int) -> Rows:
    return tuple(np.empty(0, np.int64) for _ in range(arity)), 0


def _in_order(rows: Rows) -> Rows:
    columns, count = rows
    order, _ = row_groups(columns, count)
    return tuple(column[order] for column in columns), count
