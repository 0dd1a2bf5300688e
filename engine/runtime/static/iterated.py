"""Evaluates a stratum iteration by iteration, as `plan/static/iterations` says: its steps are the moves of a cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import ITERATION_COUNTER, Kind, Program, Stratum
from dlog.engine.ir.traversal import stateful_functors
from dlog.engine.kernels import layout as L
from dlog.engine.plan.static.iterations import MARK, PAIRED, PARTS, Numbered, Steps, part
from dlog.engine.runtime.static.choices import ValueOrder, first_rows
from dlog.engine.runtime.static.combining import ORDERS
from dlog.engine.runtime.static.cycle import Cycle
from dlog.engine.runtime.static.cycle_plan import CyclePlan, First, Setting
from dlog.engine.runtime.static.moves import Add, Begin, Call, Count, Empty, Evaluate, Move, Where, copied
from dlog.engine.runtime.static.scope import RuleCosts
from dlog.engine.runtime.static.thread_pool import ThreadPool
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.relation import StoredRelation


@dataclass
class IteratedRun:
    """One run of one stratum; see `ScopeRun` for what is called and raised."""

    stratum: Stratum
    program: Program
    catalog: Catalog
    thread_pool: ThreadPool
    pause: Callable[[], None]
    limits: Mapping[str, int] = field(default_factory=dict)
    costs: dict[int, RuleCosts] = field(default_factory=dict)
    iterations: int = 0
    scopes: dict[str, nodes.Scope] = field(default_factory=dict)
    """The plans, by step."""

    def __post_init__(self) -> None:
        self.steps = Steps(self.stratum, self.program)
        self._relations = self.steps.relations
        moving = {*self._relations, *(part(name, p) for name in self._relations for p in (*PARTS, *PAIRED))}
        if ITERATION_COUNTER in self.program.relations:
            moving.add(ITERATION_COUNTER)
        self._logged: dict[str, list[list[np.ndarray]]] = {
            name: [] for name in self._relations if self.steps.retention(name).logs
        }
        self._order = ValueOrder(self.catalog)
        firsts = {part(name, "new"): first for name in self.steps.choosing if (first := self._first(name)) is not None}
        around = (self.steps.extended, self.catalog, self.thread_pool, self.pause)
        self._setting = Setting(*around, frozenset(moving), firsts, self.limits)
        self._cycle: Cycle | None = None
        self._alone: dict[str, list[np.ndarray]] = {}
        """By lattice, the rows that have been joined as far as can be while others are."""

    def _first(self, name: str) -> First | None:
        """How rows of a key are compared as they are derived: where there is one key, and values tell."""
        keys, kinds = self.steps.retention(name).keys, self.program.relations[name].kinds
        others = [(c, kind) for c, kind in enumerate(kinds) if c not in keys[0]]
        if len(keys) > 1 or any(kind not in ORDERS for _, kind in others):
            return None
        return First(keys[0], tuple((c, ORDERS[kind]) for c, kind in others), self._order.first_symbols)

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(rule.text for rule in self.stratum.rules)

    def current_rule(self) -> int:
        """The rule that was evaluated last, -1 if none."""
        return self._cycle.current_rule() if self._cycle is not None else -1

    def run(self) -> None:
        for name in self._relations:
            for p in PARTS:
                self.catalog.add(part(name, p), self._stored(name).kinds)
            for p in PAIRED:
                self.catalog.add(part(name, p), (Kind.NUMBER, *self._stored(name).kinds))
        try:
            self._load_external()
            self._make([*self._derive("enter", recursive=False), *self._settle()])
            self._begin()
            self._make([Begin(tuple((name, part(name, "delta")) for name in self._relations)), *self._iterate()], looping=True)
        finally:
            for name in self._relations:
                for p in (*PARTS, *PAIRED):
                    self.catalog.remove(part(name, p))
        if ITERATION_COUNTER in self.program.relations:
            self._fill(ITERATION_COUNTER, [np.empty(0, np.int64)], 0)
        for name in self.steps.choosing:
            self._fill(name, _columns([self._stored(name)]), self._stored(name).rows)
        self._write_logs()
        self.catalog.complete.update(self.stratum.relations)

    def _make(self, moves: Sequence[Move], looping: bool = False) -> None:
        self._cycle = Cycle(CyclePlan(moves, self._setting, looping))
        self.scopes |= self._cycle.plan.scopes
        self.iterations = self._cycle.run()
        for rule, costs in self._cycle.costs.items():
            self.costs.setdefault(rule, RuleCosts()).add(costs.cycles, costs.derived, costs.new)

    def _load_external(self) -> None:
        """Rows from outside go through rules, as all others, or where there is a choice are the first that stand."""
        for name in self._relations:
            stored = self._stored(name)
            columns, rows = _columns([stored]), stored.rows
            if name in self.steps.choosing:
                places = self._first_places(name, stored, self._order.text_places(name, stored)) if rows else np.empty(0, int)
                self._fill(name, [column[places] for column in columns], len(places))
            else:
                self._fill(part(name, "given"), columns, rows)
                self._fill(name, [np.empty(0, np.int64) for _ in columns], 0)

    def _begin(self) -> None:
        """All rows that stand are the first delta."""
        for name in self._relations:
            for p in (*PARTS, *PAIRED):
                self._fill(part(name, p), [np.empty(0, np.int64) for _ in self._stored(part(name, p)).kinds], 0)
            self._fill(part(name, "delta"), _columns([self._stored(name)]), self._stored(name).rows)
            if name in self._logged:
                self._log(name)

    # -------------------------------------------------------------------------------------------------------- iterations

    def _iterate(self) -> Iterator[Move]:
        yield from self._derive("loop", recursive=True)
        yield from self._settle()
        for name in self._logged:
            yield Call(partial(self._log, name))

    def _derive(self, step: str, recursive: bool) -> Iterator[Move]:
        """What rules say of the rows as they stand. Where there is a choice, rows of a rule come before those of later ones."""
        if ITERATION_COUNTER in self.program.relations:
            yield Count(ITERATION_COUNTER)
        together = [part(name, "new") for name in self._relations if name not in self.steps.choosing]
        if together:
            yield Evaluate(step, tuple(self.steps.derive(recursive)), tuple(together), derives=True)
        for name in self.steps.choosing:
            yield Empty(part(name, "chosen"))
        standing = {name: [name] if recursive or self._stored(name).rows else [] for name in self.steps.choosing}
        for name, number, rules in self.steps.turns(recursive):
            yield from self._take_turn(f"{step} {number}", name, rules, standing[name])
            standing[name] = list(dict.fromkeys((*standing[name], part(name, "chosen"))))

    def _take_turn(self, step: str, name: str, rules: list[Numbered], standing: Sequence[str]) -> Iterator[Move]:
        """What one rule says of a relation with a choice domain. Where something happens at each match, all are made."""
        among, into = "new", (part(name, "new"),)
        if any(any(stateful_functors(rule)) for rule, _ in rules):
            among = "fresh"
            yield Evaluate(step, tuple(rules), into, derives=True)
            yield Evaluate(f"fresh {step}", tuple(self.steps.fresh(name, standing)), (part(name, "fresh"),))
        else:
            yield Evaluate(step, tuple(self.steps.beside(name, rules, standing)), into, derives=True)
        if part(name, among) not in self._setting.firsts:
            yield Where(part(name, among), (Call(partial(self._choose, name, among)),))
        yield Add(part(name, "chosen"), part(name, among))

    def _settle(self) -> Iterator[Move]:
        """What was derived becomes rows, as far as the relations keep it."""
        for name in self._relations:
            yield from self._sift(name)
        for name in self._relations:
            if self.steps.retention(name).dominated or self.steps.retention(name).join is not None:
                yield self._remove_leaving(name)
            yield Add(name, part(name, "delta"))
        for name in self._relations:
            if rules := self.steps.overtaken(name):
                yield Evaluate(f"overtaken {name}", tuple(rules), (part(name, "gone"),))
                yield self._remove_leaving(name, "delta")
                yield self._remove_leaving(name)

    def _sift(self, name: str) -> Iterator[Move]:
        """Says which rows of one relation are accepted, and which leave."""
        kept, steps = self.steps.retention(name), self.steps
        if not kept.keys:
            yield Evaluate(f"fresh {name}", tuple(steps.fresh(name, [name])), (part(name, "fresh"),))
        if kept.join is not None:
            yield from self._join(name)
        elif kept.dominated:
            yield Evaluate(f"rejected {name}", tuple(steps.rejected(name)), (part(name, "bad"),))
            yield Evaluate(f"accepted {name}", tuple(steps.accepted(name)), (part(name, "delta"),))
            yield Evaluate(f"leaving {name}", tuple(steps.leaving(name)), (part(name, "gone"),))
        else:
            yield Empty(part(name, "delta"))
            yield Add(part(name, "delta"), part(name, "chosen" if kept.keys else "fresh"))

    def _remove_leaving(self, name: str, of: str = "") -> Move:
        rows = part(name, of) if of else name
        kept = Evaluate(f"kept {name}{MARK}{of}", tuple(self.steps.remaining(name, of)), (part(name, "kept"),))
        return Where(part(name, "gone"), (kept, Empty(rows), Add(rows, part(name, "kept"))))

    # ------------------------------------------------------------------------------------------------------------ choices

    def _choose(self, name: str, among: str) -> None:
        """Only the first row of each key is left."""
        stored = self._stored(part(name, among))
        places = self._first_places(name, stored)
        assert self._cycle is not None
        self._cycle.storage.replace(part(name, among), [column[places] for column in _columns([stored])], len(places))

    def _first_places(self, name: str, rows: StoredRelation, leading: np.ndarray | None = None) -> np.ndarray:
        """The places of the first rows of each key. Facts of the text are the first of what is given."""
        types = [type for _, type in self.program.relations[name].attributes]
        return first_rows(rows, types, self.steps.retention(name).keys, self._order, leading)

    # ----------------------------------------------------------------------------------------------------------- lattices

    def _join(self, name: str) -> Iterator[Move]:
        """One row for each key that fresh rows have, pair by pair."""
        arity = self._stored(name).arity
        yield Evaluate(f"touched {name}", tuple(self.steps.touched(name)), (part(name, "touched"),))
        flows = [copied(part(name, side), part(name, p), arity, 1) for side in PAIRED for p in ("fresh", "touched", "joined")]
        flows += [copied(part(name, "joined"), part(name, p), arity) for p in ("fresh", "touched")]
        yield Call(partial(self._pair, name, ("fresh", "touched")), tuple(flows))
        joined = Evaluate(f"joined {name}", tuple(self.steps.joined(name)), (part(name, "joined"),))
        yield Where(part(name, "left"), (joined, Call(partial(self._pair, name, ("joined",)))), again=True)
        yield Evaluate(f"grown {name}", tuple(self.steps.grown(name)), (part(name, "delta"),))
        yield Evaluate(f"replaced {name}", tuple(self.steps.replaced(name)), (part(name, "gone"),))

    def _pair(self, name: str, parts: Sequence[str]) -> None:
        """Puts rows of one key side by side, with those left over; without two of one key all are joined."""
        assert self._cycle is not None
        made = _columns([self._stored(part(name, p)) for p in parts])
        alone = self._alone.pop(name, None)
        columns = made if alone is None else [np.concatenate(both) for both in zip(alone, made, strict=True)]
        keys = [c for c in range(len(columns)) if c not in self.steps.lattice_columns(name)]
        rest, lefts, rights = _pairs(columns, keys)
        for side, places in (("left", lefts), ("right", rights)):
            rows = [np.arange(len(places)), *(column[places] for column in columns)]
            self._cycle.storage.replace(part(name, side), rows, len(places))
        if len(lefts):
            self._alone[name] = [column[rest] for column in columns]
        else:
            self._cycle.storage.replace(part(name, "joined"), columns, len(columns[0]))

    # ------------------------------------------------------------------------------------------------------------- logs

    def _log(self, name: str) -> None:
        delta = self._stored(part(name, "delta"))
        iteration = self.thread_pool.workers[0].control[L.control.iteration]
        self._logged[name].append([*_columns([delta]), np.full(delta.rows, iteration, np.int64)])

    def _write_logs(self) -> None:
        for name, parts in self._logged.items():
            columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
            for log in self.steps.retention(name).logs:
                self._fill(log, columns, len(columns[-1]))

    # ---------------------------------------------------------------------------------------------------------- storage

    def _stored(self, name: str) -> StoredRelation:
        return self.catalog.relations[name]

    def _fill(self, name: str, columns: Sequence[np.ndarray], rows: int) -> None:
        stored = self._stored(name)
        self.catalog.renew(name)
        stored.clear()
        stored.shape(list(_extents(stored.kinds, columns)))
        stored.assign(columns, rows)


def _pairs(columns: Sequence[np.ndarray], keys: Sequence[int]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The places of rows in pairs of the same key, and those of what is left: at most one row of each key."""
    rows = len(columns[0])
    order = np.lexsort([columns[c] for c in keys]) if keys else np.arange(rows)
    starts = np.zeros(rows, bool)
    starts[:1] = True
    for c in keys:
        starts[1:] |= np.diff(columns[c][order]) != 0
    first = np.maximum.accumulate(np.where(starts, np.arange(rows), 0)) if rows else np.empty(0, np.int64)
    second = (np.arange(rows) - first) % 2 == 1
    lefts = np.flatnonzero(second) - 1
    alone = ~second
    alone[lefts] = False
    return order[alone], order[lefts], order[second]


def _columns(parts: Sequence[StoredRelation]) -> list[np.ndarray]:
    """The rows of relations as words."""
    return [np.concatenate([p.column(c).astype(np.int64) for p in parts]) for c in range(parts[0].arity)]


def _extents(kinds: Sequence[Kind], columns: Sequence[np.ndarray]) -> Iterator[Extent | None]:
    for kind, column in zip(kinds, columns, strict=True):
        if not len(column):
            yield Extent(0, -1)
        else:
            yield None if kind is Kind.FLOAT else Extent(int(column.min()), int(column.max()))
