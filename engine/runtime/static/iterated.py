"""Evaluates a stratum iteration by iteration, as `plan/static/iterations` says: each step is a scope, which is planned once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import ITERATION_COUNTER, Kind, Program, Stratum
from dlog.engine.ir.traversal import stateful_functors
from dlog.engine.kernels import layout as L
from dlog.engine.plan.static.build import build_scope
from dlog.engine.plan.static.iterations import MARK, PAIRED, PARTS, Numbered, Steps, part
from dlog.engine.runtime.static.choices import ValueOrder, first_rows
from dlog.engine.runtime.static.combining import ORDERS
from dlog.engine.runtime.static.moving import MovingStatistics
from dlog.engine.runtime.static.scope import First, RuleCosts, ScopeRun
from dlog.engine.runtime.static.thread_pool import ThreadPool
from dlog.engine.runtime.storage.catalog import Catalog
from dlog.engine.runtime.storage.extent import Extent
from dlog.engine.runtime.storage.relation import StoredRelation

# -------------------------------------------------------------------------------------------------------------------- run


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
        moving = {ITERATION_COUNTER, *self._relations, *(part(name, p) for name in self._relations for p in (*PARTS, *PAIRED))}
        self._moving = frozenset(moving)
        self._logged: dict[str, list[list[np.ndarray]]] = {
            name: [] for name in self._relations if self.steps.retention(name).logs
        }
        self._order = ValueOrder(self.catalog)
        self._turns = {recursive: list(self.steps.turns(recursive)) for recursive in (False, True)}
        self._beside: dict[str, list[Numbered]] = {}
        self._firsts = {part(name, "new"): first for name in self.steps.choosing if (first := self._first(name)) is not None}
        self._running: tuple[ScopeRun, Sequence[int]] | None = None

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
        if self._running is None:
            return -1
        run, numbers = self._running
        at = run.current_rule()
        return numbers[at] if 0 <= at < len(numbers) else -1

    def run(self) -> None:
        for name in self._relations:
            for p in PARTS:
                self.catalog.add(part(name, p), self._stored(name).kinds)
            for p in PAIRED:
                self.catalog.add(part(name, p), (Kind.NUMBER, *self._stored(name).kinds))
        try:
            self._begin()
            while self._grows():
                self.iterations += 1
                self._tell()
                self._iterate()
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

    def _grows(self) -> bool:
        """Whether there is anything to go on from, and room for more."""
        full = any(name in self.limits and self._stored(name).rows >= self.limits[name] for name in self._relations)
        return not full and any(self._stored(part(name, "delta")).rows for name in self._relations)

    def _tell(self) -> None:
        """Progress is told, interruptions are heeded."""
        control = self.thread_pool.workers[0].control
        control[L.control.iteration] = self.iterations
        control[L.control.changes] = sum(self._stored(part(name, "delta")).rows for name in self._relations)
        self.pause()

    # -------------------------------------------------------------------------------------------------------- iterations

    def _begin(self) -> None:
        """Rows from outside, and those of rules without recursion; all of them are the first delta."""
        for name in self._relations:
            self._assign(part(name, "given"), [name])
            self._assign(name, [])
        for name in self.steps.choosing:
            self._guard(name)
            self._choose(name, "given")
            self._add(name, part(name, "chosen"))
        self._derive("enter", recursive=False)
        self._settle()
        for name in self._relations:
            self._assign(part(name, "delta"), [name])
            self._log(name)

    def _iterate(self) -> None:
        self._derive("loop", recursive=True)
        self._settle()
        for name in self._relations:
            self._log(name)

    def _derive(self, step: str, recursive: bool) -> None:
        """What rules say of the rows as they stand. Where there is a choice, rows of a rule come before those of later ones."""
        if ITERATION_COUNTER in self.program.relations:
            self._fill(ITERATION_COUNTER, [np.array([self.iterations])], 1)
        together = [part(name, "new") for name in self._relations if name not in self.steps.choosing]
        self._evaluate(step, self.steps.derive(recursive), together, derives=True)
        for name in self.steps.choosing:
            self._assign(part(name, "chosen"), [])
        for name, number, rules in self._turns[recursive]:
            self._take_turn(f"{step} {number}", name, rules)

    def _take_turn(self, step: str, name: str, rules: list[Numbered]) -> None:
        """What one rule says of a relation with a choice domain. Where something happens at each match, all are made."""
        standing = [relation for relation in (name, part(name, "chosen")) if self._stored(relation).rows]
        step = " beside ".join((step, *standing))
        if any(any(stateful_functors(rule)) for rule, _ in rules):
            self._evaluate(step, rules, [part(name, "new")], derives=True)
            self._evaluate(f"fresh {step}", self.steps.fresh(name, standing), [part(name, "fresh")])
            self._choose(name, "fresh")
            return
        if step not in self._beside:
            self._beside[step] = self.steps.beside(name, rules, standing)
        self._evaluate(step, self._beside[step], [part(name, "new")], derives=True)
        self._choose(name, "new")

    def _settle(self) -> None:
        """What was derived becomes rows, as far as the relations keep it."""
        for name in self._relations:
            self._sift(name)
        for name in self._relations:
            if self.steps.retention(name).dominated or self.steps.retention(name).join is not None:
                self._remove_gone(name)
            if name in self.steps.choosing:
                self._add(name, part(name, "delta"))
            else:
                self._assign(name, [name, part(name, "delta")])
        for name in self._relations:
            if rules := self.steps.overtaken(name):
                self._evaluate(f"overtaken {name}", rules, [part(name, "gone")])
                self._remove_gone(name, "delta")
                self._remove_gone(name)

    def _sift(self, name: str) -> None:
        """Says which rows of one relation are accepted, and which leave."""
        kept = self.steps.retention(name)
        if not kept.keys:
            self._evaluate(f"fresh {name}", self.steps.fresh(name, [name]), [part(name, "fresh")])
        if kept.keys:
            self._assign(part(name, "delta"), [part(name, "chosen")])
        elif kept.join is not None:
            self._join(name)
        elif not kept.dominated:
            self._assign(part(name, "delta"), [part(name, "fresh")])
        else:
            self._evaluate(f"rejected {name}", self.steps.rejected(name), [part(name, "bad")])
            self._evaluate(f"accepted {name}", self.steps.accepted(name), [part(name, "delta")])
            self._evaluate(f"leaving {name}", self.steps.leaving(name), [part(name, "gone")])

    def _remove_gone(self, name: str, of: str = "") -> None:
        if self._stored(part(name, "gone")).rows:
            self._evaluate(f"kept {name}{MARK}{of}", self.steps.kept(name, of), [part(name, "kept")])
            self._assign(part(name, of) if of else name, [part(name, "kept")])

    def _choose(self, name: str, among: str) -> None:
        """The first row of each key is chosen, too. Facts of the text are the first of what is given."""
        stored, chosen = self._stored(part(name, among)), self._stored(part(name, "chosen"))
        if not stored.rows:
            return
        types = [type for _, type in self.program.relations[name].attributes]
        leading = self._order.text_places(name, stored) if among == "given" else None
        if stored.keyed:
            places = np.arange(stored.rows)
        else:
            places = first_rows(stored, types, self.steps.retention(name).keys, self._order, leading)
        columns = [np.concatenate((chosen.column(c), stored.column(c)[places]), dtype=np.int64) for c in range(stored.arity)]
        self._fill(part(name, among), [np.empty(0, np.int64) for _ in columns], 0)
        self._fill(part(name, "chosen"), columns, len(columns[0]))

    def _join(self, name: str) -> None:
        """One row for each key that fresh rows have, pair by pair."""
        self._evaluate(f"touched {name}", self.steps.touched(name), [part(name, "touched")])
        keys = [c for c in range(self._stored(name).arity) if c not in self.steps.lattice_columns(name)]
        columns = _columns([self._stored(part(name, p)) for p in ("fresh", "touched")])
        while True:
            alone, lefts, rights = _pairs(columns, keys)
            if not len(lefts):
                break
            for side, places in (("left", lefts), ("right", rights)):
                self._fill(part(name, side), [np.arange(len(places)), *(c[places] for c in columns)], len(places))
            self._evaluate(f"joined {name}", self.steps.joined(name), [part(name, "joined")])
            made = _columns([self._stored(part(name, "joined"))])
            columns = [np.concatenate((old[alone], new)) for old, new in zip(columns, made, strict=True)]
        self._fill(part(name, "joined"), columns, len(columns[0]))
        self._evaluate(f"grown {name}", self.steps.grown(name), [part(name, "delta")])
        self._evaluate(f"replaced {name}", self.steps.replaced(name), [part(name, "gone")])

    # ------------------------------------------------------------------------------------------------------------- logs

    def _log(self, name: str) -> None:
        if name in self._logged:
            delta = self._stored(part(name, "delta"))
            self._logged[name].append([*_columns([delta]), np.full(delta.rows, self.iterations, np.int64)])

    def _write_logs(self) -> None:
        for name, parts in self._logged.items():
            columns = [np.concatenate(pieces) for pieces in zip(*parts, strict=True)]
            for log in self.steps.retention(name).logs:
                self._fill(log, columns, len(columns[-1]))

    # ---------------------------------------------------------------------------------------------------------- storage

    def _stored(self, name: str) -> StoredRelation:
        return self.catalog.relations[name]

    def _evaluate(self, step: str, rules: list[Numbered], into: Sequence[str], derives: bool = False) -> None:
        """Fills relations anew with what rules say, which are those of the program where it `derives`."""
        for name in into:
            self._fill(name, [np.empty(0, np.int64) for _ in self._stored(name).kinds], 0)
        if not rules:
            return
        if step not in self.scopes:
            stratum = Stratum(tuple(into), tuple(rule for rule, _ in rules), False)
            statistics = MovingStatistics(self.catalog, self._moving, looping=self.iterations > 0)
            self.scopes[step] = build_scope(stratum, self.steps.extended, statistics)
        run = ScopeRun(self.scopes[step], self.catalog, self.thread_pool, self.pause, firsts=self._firsts)
        self._running = run, [number for _, number in rules]
        run.run()
        self._account(run, derives)
        self.catalog.complete.difference_update(into)

    def _account(self, run: ScopeRun, derives: bool) -> None:
        assert self._running is not None
        for at, costs in run.costs.items():
            total = self.costs.setdefault(self._running[1][at], RuleCosts())
            total.cycles += costs.cycles
            total.derived += costs.derived
            total.new += costs.new if derives else 0

    def _assign(self, name: str, parts: Iterable[str]) -> None:
        """Makes a relation hold the rows of others, which have none in common."""
        listed = [self._stored(p) for p in parts]
        if listed == [self._stored(name)] or (len(listed) == 2 and listed[0] is self._stored(name) and not listed[1].rows):
            return
        columns = _columns(listed) if listed else [np.empty(0, np.int64) for _ in self._stored(name).kinds]
        self._fill(name, columns, sum(p.rows for p in listed))

    def _guard(self, name: str) -> None:
        """Readies an empty relation for rows that come iteration by iteration: its keys are indexed as they do."""
        stored = self._stored(name)
        stored.shape([None] * stored.arity)
        for key in self.steps.retention(name).keys:
            self.catalog.grow(nodes.Arrangement(name, key))

    def _add(self, name: str, of: str) -> None:
        """Rows of another relation come to those that are guarded."""
        if self._stored(of).rows:
            self._stored(name).append(self._stored(of))
            self.catalog.extend(name)

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
