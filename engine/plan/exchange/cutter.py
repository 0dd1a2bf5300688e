"""One path of a scope cut into pieces where its rows must move.

A row that a path has reached is at the worker that owns the value of one of its variables (`Cutter.at`); a step that needs rows
of another owner sends it there: the piece ends in an outbox, and the next piece is seeded by the inbox that the exchange fills
on the other side. Rules' results go home the same way, unless a `EarlyExchange` has the rows leave earlier, where there are
fewer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, prod
from typing import assert_never

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import (
    Accumulate,
    AntiJoin,
    Extend,
    Filter,
    Generate,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Path,
    Scan,
    SemiJoin,
    Step,
    Unit,
    UnpackRecord,
)
from dlog.engine.ir.rules import Constant, Kind, Term, Variable
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.costs import SIFTED_SHARE
from dlog.engine.plan.exchange.exchanges import Exchange
from dlog.engine.plan.exchange.partition_context import PartitionContext
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, SELF, SOME, Copy, Heavy, Place
from dlog.engine.plan.joins.emit import binds_of, reads, relations_of, sink_terms
from dlog.engine.plan.query import mask_all
from dlog.engine.plan.steps import apart, key_terms, proposed, reading, with_key

REACHING_SHARE = 0.25
"""Share of a growing relation's rows that are taken to be reached from the rows of one that does not change."""


@dataclass(frozen=True, slots=True)
class EarlyExchange:
    """An exchange of rows other than step by step: ahead of step `at` they go to the owner of a variable, or to all workers
    (`EVERYWHERE`), of which each goes on with the matches whose value of `owner` is its own; or they stay (`SELF`) while the
    relation of that step, which grows, has a copy everywhere."""

    at: int
    place: Place
    owner: int = -1


class Cutter:
    """Cuts one path; `at` is the variable whose owner has the row, ROOT, or None where no variable says it. Where a relation's
    heavy rows are spread, a row that is to meet them goes to all workers: then it is `at` all of them for that one join, of
    which each match is found by one worker, and nobody knows which."""

    def __init__(
        self,
        partition_context: PartitionContext,
        path: Path,
        label: str,
        early_exchange: EarlyExchange | None = None,
        patient: bool = True,
    ) -> None:
        self.partition_context = partition_context
        self.path = path
        self.label = label
        self.at: int | None = None
        self.spread_for: str | None = None
        self.exchanged = False
        self.early_exchange = early_exchange
        self.early_step = None if early_exchange is None else path.steps[early_exchange.at]
        self.dealt_for: int | None = None
        """The variable whose owners go on with rows that all have, until it is bound."""
        self.patient = patient
        """Whether rows wait for an exchange before they meet a mirror."""
        self.waited = False
        self.settled = True
        """Whether rows went through an exchange before they met what grows."""
        self.estimate = partition_context.seeds(path)
        """How many rows there are here, about."""
        self.traffic = 0.0
        """What the path's exchanges and copies cost."""
        self.variables = path.variables
        self.kinds = dict(partition_context.types.variables(path))
        self.seed: Scan | Unit = path.seed
        self.steps: list[Step] = []
        self.bound = 0
        self.pieces: list[Path] = []
        self.pending: list[Step] = list(path.steps)
        self.sink: Insert | Accumulate = path.sink
        self._start()

    def _start(self) -> None:
        match self.path.seed:
            case Unit():
                self.at = ROOT
            case Scan(relation=relation, binds=binds):
                home = self.partition_context.homes[relation]
                self.bound = sum(1 << v for _, v in binds)
                self.at = ROOT if home == ROOT else next((v for c, v in binds if c == home), None)
                if relation in self.partition_context.split:
                    self.at = None
            case _:
                assert_never(self.path.seed)

    def cut(self) -> Path:
        """The first piece; later ones go to the context's streams."""
        self.run_steps()
        sink: Insert | Accumulate = self.sink
        if isinstance(sink, Insert) and not self._is_home(sink):
            self._pay(self.partition_context.homes[sink.relation], sink.terms)
            sink = self.partition_context.send_home(sink)
        self._end(sink)
        first, *rest = self.pieces
        self.partition_context.streams += rest
        return first

    def run_steps(self) -> None:
        while self.pending:
            step = self.pending.pop(0)
            early_exchange = self.early_exchange if step is self.early_step else None
            placed = self._place(step) if early_exchange is None else self._exchange_early(step, early_exchange)
            if placed is not None:
                self._append(placed)
                if any(self.partition_context.grows(name) for name in relations_of(step)):
                    self.settled = self.exchanged

    def _append(self, step: Step) -> None:
        self.steps.append(step)
        self.bound |= binds_of(step)
        if isinstance(step, HalfJoin | Extend):
            self.estimate *= step.rows

    def _is_home(self, sink: Insert) -> bool:
        home = self.partition_context.homes[sink.relation]
        if home == ROOT or sink.relation in self.partition_context.split:
            return self.at == ROOT == home
        term = sink.terms[home]
        return isinstance(term, Variable) and term.id == self.at

    # ------------------------------------------------------------------------------------------------------------ steps

    def _place(self, step: Step) -> Step | None:
        """The step as the worker at hand can do it; None when other steps were put before it instead."""
        match step:
            case Filter() | Map() | UnpackRecord() | Generate():
                return step
            case HalfJoin(binds=binds) if self.dealt_for is not None and self.dealt_for in (v for _, v in binds):
                return self._own_matches(step, self.dealt_for)
            case HalfJoin(arrangement=arrangement, key=key):
                found = self._find(arrangement.relation, arrangement.key, key, step)
                return None if found is None else replace(step, arrangement=replace(arrangement, relation=found))
            case SemiJoin(relation=relation, args=args) | AntiJoin(relation=relation, args=args):
                columns = tuple(c for c, a in enumerate(args) if a is not None)
                found = self._find(relation, columns, [a for a in args if a is not None], step, exists=True)
                return None if found is None else replace(step, relation=found)
            case LookUp(relation=relation, key=key):
                found = self._find(relation, tuple(range(len(key))), key, step)
                return None if found is None else replace(step, relation=found)
            case Extend():
                return self._extend(step)

    def _find(self, relation: str, key: Sequence[int], terms: Sequence[Term], step: Step, exists: bool = False) -> str | None:
        """The name of the rows that a lookup by these columns can read here, moving the row first if need be (None: the row
        has moved, or its values were named, and the step comes again)."""
        partition_context, keyed = self.partition_context, dict(zip(key, terms, strict=True))
        if self.spread_for == relation:
            self.at = self.spread_for = None
            return relation
        found = self._here(relation, keyed)
        if found is not None:
            return self._read(found, relation, step)
        home = partition_context.homes[relation]
        if home in keyed and relation in partition_context.split and isinstance(step, HalfJoin):
            self.spread_for = relation
            self._move_to(keyed[home], home, step, partition_context.split[relation])
            return None
        if home in keyed:
            self._move_to(keyed[home], home, step)
            return None
        columns = [c for c in keyed if partition_context.cuts(relation, c)]
        if columns and home != ROOT:
            column = next((c for c in columns if isinstance(keyed[c], Variable)), columns[0])
            self._move_to(keyed[column], column, step)
            return None
        place = SOME if exists and not keyed and not partition_context.grows(relation) else EVERYWHERE
        return self._read(Copy(relation, place), relation, step)

    def _here(self, relation: str, keyed: Mapping[int, Term]) -> str | Copy | None:
        """The rows a lookup can read without moving."""
        partition_context, home = self.partition_context, self.partition_context.homes[relation]
        owned = home in keyed and relation not in partition_context.split and self._owns(keyed[home])
        if owned or (self.at is not None and home == self.at == ROOT):
            return relation
        aligned = [c for c, term in keyed.items() if self._owns(term) and partition_context.cuts(relation, c)]
        if aligned and not (partition_context.grows(relation) and home in keyed):
            return Copy(relation, aligned[0])
        return Copy(relation, EVERYWHERE) if partition_context.reaches_everywhere(relation) else None

    def _owns(self, term: Term) -> bool:
        return isinstance(term, Variable) and term.id == self.at

    def _read(self, found: str | Copy, relation: str, step: Step) -> str | None:
        if isinstance(found, str):
            return found
        if not self.partition_context.grows(relation):
            return self._copy(found.relation, found.place)
        if not self.exchanged and self.patient:
            self.waited = True
            self._exchange(SELF, step)
            return None
        use, share = self._use_of(relation, step)
        self.partition_context.mirrors.setdefault(found, {})[use] = None
        if use is None and self.early_exchange is not None and self.early_exchange.place == SELF:
            self.traffic = inf  # all of what grows, everywhere: more memory than one worker may have
        self.traffic += (
            share * self.partition_context.estimated_rows(relation) * self.partition_context.sizes.price(found.place)
        )
        return found.name

    def _use_of(self, relation: str, step: Step) -> tuple[SemiJoin | None, float]:
        """The rows of a growing relation's copy that this path can use, and their share: those that lead to rows of a complete
        relation later, or can be reached from such rows."""
        if not isinstance(step, HalfJoin | SemiJoin) or self.partition_context.is_lattice(relation):
            return None, 1.0
        columns = {v: c for c, v in step.binds} if isinstance(step, HalfJoin) else {}
        later = (s for s in self.pending if isinstance(s, HalfJoin) and len(s.key) == 1 and self._sifts(s))
        for join in later:
            term = join.key[0]
            if isinstance(term, Variable) and term.id in columns:
                use = self._passing(join.arrangement.relation, join.arrangement.key[0], columns[term.id])
                return use, self.partition_context.sizes.share(join)
        keys = {t.id: c for c, t in key_terms(step).items() if isinstance(t, Variable)}
        for join in (s for s in self.path.steps if isinstance(s, HalfJoin)):
            name = join.arrangement.relation
            for column, variable in join.binds:
                if variable in keys and self.bound >> variable & 1 and self.partition_context.reaches_everywhere(name):
                    return self._passing(name, column, keys[variable]), REACHING_SHARE
        return None, 1.0

    def _passing(self, relation: str, column: int, of: int) -> SemiJoin:
        """Rows whose column `of` has a value that stands in a column of a complete relation."""
        width = len(self.partition_context.types.columns(relation))
        args = tuple(Variable(of) if c == column else None for c in range(width))
        return SemiJoin(self._copy(relation, EVERYWHERE), args)

    def _move_to(self, term: Term, column: int, step: Step, heavy: Heavy = ()) -> None:
        """Sends the row to the owner of a term's value, or to all workers if it is heavy, then comes back to the step."""
        if isinstance(term, Variable):
            self._exchange(term.id, step, heavy)
            return
        variable = self._name(term)
        self._exchange(variable, with_key(step, column, Variable(variable)), heavy)

    def _name(self, term: Term) -> int:
        """A variable that holds the term's value."""
        self.variables += 1
        variable = self.variables - 1
        self.kinds[variable] = self.partition_context.types.term(term, self.kinds)
        self.steps.append(Map(variable, term))
        self.bound |= 1 << variable
        return variable

    def _extend(self, step: Extend) -> Step | None:
        found = [self._here(p.arrangement.relation, proposed(p)) for p in step.proposers]
        if all(f is not None for f in found):
            return self._placed_extend(step, [f for f in found if f is not None])
        best = self._owner_for(step)
        if best is not None:
            self._exchange(best, step)
            return None
        self.pending[:0] = apart(step)
        return None

    def _placed_extend(self, step: Extend, found: Sequence[str | Copy]) -> Step | None:
        names = []
        for place, proposer in zip(found, step.proposers, strict=True):
            name = self._read(place, proposer.arrangement.relation, step)
            if name is None:
                return None
            names.append(name)
        proposers = zip(step.proposers, names, strict=True)
        return replace(step, proposers=tuple(replace(p, arrangement=replace(p.arrangement, relation=n)) for p, n in proposers))

    def _owner_for(self, step: Extend) -> int | None:
        """A variable whose owner has the rows of all proposers."""
        held = self.at
        for variable in (t.id for p in step.proposers for t in p.key if isinstance(t, Variable)):
            self.at = variable
            if all(self._here(p.arrangement.relation, proposed(p)) is not None for p in step.proposers):
                self.at = held
                return variable
        self.at = held
        return None

    # ------------------------------------------------------------------------------------------------------------- turns

    def _exchange_early(self, step: Step, early_exchange: EarlyExchange) -> Step | None:
        """Sends on the rows that lead anywhere, or has them meet a copy here."""
        if early_exchange.place == SELF:
            (relation,) = relations_of(step)
            name = self._read(Copy(relation, EVERYWHERE), relation, step)
            return None if name is None else reading(step, name)
        self.early_exchange = None
        step, *self.pending = (self._sifted(s) for s in (step, *self.pending))
        self._exchange(early_exchange.place, step)
        if early_exchange.place == EVERYWHERE:
            self.dealt_for = early_exchange.owner
        return None

    def _sifted(self, step: Step) -> Step:
        """A step still to come, once rows that it would drop are gone, if it can be asked here and now."""
        if not (isinstance(step, HalfJoin) and self._sifts(step)):
            return step
        if not all(isinstance(t, Constant) or (isinstance(t, Variable) and self.bound >> t.id & 1) for t in step.key):
            return step
        name, share = step.arrangement.relation, self.partition_context.sizes.share(step)
        keyed = key_terms(step)
        args = tuple(keyed.get(c) for c in range(len(self.partition_context.types.columns(name))))
        self.steps.append(SemiJoin(self._copy(name, EVERYWHERE), args))
        self.estimate *= share
        return replace(step, rows=step.rows / share)

    def _sifts(self, join: HalfJoin) -> bool:
        """Whether many rows find nothing in a join with a relation that all workers may have."""
        name = join.arrangement.relation
        return (
            bool(join.key)
            and self.partition_context.reaches_everywhere(name)
            and self.partition_context.sizes.share(join) < SIFTED_SHARE
        )

    def _own_matches(self, join: HalfJoin, variable: int) -> Step:
        """The join with the rows whose value for a variable is this worker's."""
        name = join.arrangement.relation
        column = next(c for c, v in join.binds if v == variable)
        if self.partition_context.homes[name] != column or name in self.partition_context.split:
            name = self._copy(name, column)
        self.at, self.dealt_for = variable, None
        return reading(join, name)

    # --------------------------------------------------------------------------------------------------------- exchanges

    def _exchange(self, place: int, step: Step, heavy: Heavy = ()) -> None:
        """Ends the piece: rows go on at the owner of variable `place`, at all workers (EVERYWHERE) or here (SELF); `step` comes
        next."""
        # What all have must not be sent on: it would arrive from each.
        self.traffic += inf if self.dealt_for is not None else 0.0
        self.pending.insert(0, step)
        live = self._live()
        types = tuple(self.kinds[v] for v in live)
        terms: tuple[Term, ...] = tuple(Variable(v) for v in live)
        if not live:
            types, terms = (ColumnType(Kind.NUMBER),), (Constant(0, Kind.NUMBER),)
        self._pay(place, terms)
        name = f"@{self.label}.{len(self.pieces)}"
        exchange = Exchange(name, place if place < 0 else live.index(place), "stream", types, heavy=heavy)
        self.partition_context.exchanges[name] = exchange
        # A row that was sent once need not be sent again: what it meets later meets the first one as a change of its own.
        distinct = isinstance(self.sink, Insert) and self.sink.distinct and not self._has_whole_rows(live)
        self._end(Insert(name, terms, distinct))
        self.seed = Scan(exchange.inbox, tuple(enumerate(live)))
        self.steps = []
        self.bound = sum(1 << v for v in live)
        self.at = {SELF: self.at, EVERYWHERE: None}.get(place, place)
        self.exchanged = True

    def _pay(self, place: Place, terms: Sequence[Term]) -> None:
        """Counts rows of these terms that go to a place, each of which is sent once."""
        distinct = prod(self.partition_context.values(self.path, t.id) if isinstance(t, Variable) else 1.0 for t in terms)
        self.traffic += min(self.estimate, distinct) * self.partition_context.sizes.price(place)

    def _copy(self, relation: str, place: Place) -> str:
        """The name of a copy of a complete relation, which is made before the phase."""
        copy = Copy(relation, place)
        if copy not in self.partition_context.copies:
            self.traffic += self.partition_context.sizes.about(relation) * self.partition_context.sizes.price(place)
            self.partition_context.copies[copy] = None
        return copy.name

    def _has_whole_rows(self, live: Sequence[int]) -> bool:
        """Whether the piece passes on whole rows of its seed: none comes twice."""
        if self.pieces or not isinstance(self.seed, Scan):
            return False
        whole = {column for column, variable in self.seed.binds if variable in live}
        columns = len(self.partition_context.types.columns(self.seed.relation))
        return len(whole) == columns and all(isinstance(s, SemiJoin | AntiJoin | Filter | Map) for s in self.steps)

    def _live(self) -> list[int]:
        """The bound variables that what is still to come reads."""
        needed = mask_all(sink_terms(self.sink))
        for step in reversed(self.pending):
            needed = needed & ~binds_of(step) | reads(step)
        needed &= self.bound
        return [v for v in range(needed.bit_length()) if needed >> v & 1]

    def _end(self, sink: Insert | Accumulate) -> None:
        self.pieces.append(Path(self.path.rule, self.seed, tuple(self.steps), sink, self.variables))
