"""One scope of the plan for several workers: paths cut into pieces where the rows must move.

Every worker runs the same pieces on its own rows. A row that a path has reached is at the worker that owns the value of one of
its variables (`_Cutter.at`); a step that needs rows of another owner sends it there: the piece ends in an outbox, and the next
piece is seeded by the inbox that the `Exchange` fills on the other side. Rules' results go home the same way.

Sets grow only, so workers need not keep step within a scope: each runs its loop to a fixed point of its own, then all exchange
what they have for each other, until nobody has anything. No match is missed: a row that comes to be in step s of this dance is
in all its copies when step s + 1 begins, and whoever reads a copy of a growing relation does so after its own rows went through
an exchange (of its own, `SELF`, if need be), hence in a later step than the one they came to be in; of two rows the later one
therefore finds the earlier one, and of two of the same step each finds the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from dlog.engine.plan.column_types import ColumnType, Types
from dlog.engine.plan.emit import binds_of, reads, sink_terms
from dlog.engine.plan.nodes import (
    Accumulate,
    AntiJoin,
    Arrangement,
    Extend,
    Filter,
    HalfJoin,
    Insert,
    LookUp,
    Map,
    Path,
    Proposer,
    Scan,
    Scope,
    SemiJoin,
    Step,
    Unit,
    Unpack,
)
from dlog.engine.plan.places import EVERYWHERE, ROOT, SELF, SOME, Copy, Heavy, Place
from dlog.engine.plan.query import mask_all
from dlog.engine.plan.restrict import restrict_paths
from dlog.engine.program.rules import Constant, Kind, Program, Term, Variable

Role: TypeAlias = Literal["stream", "home", "copy"]
Rows: TypeAlias = Callable[[str], int]

NONE: Mapping[str, Heavy] = {}
EVERYWHERE_ROWS = 4_000_000
"""Rows up to which a relation that does not change may be copied to every worker."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """Moves the rows of `name` to where `place` says: the worker that owns the value in that column, `ROOT`, `EVERYWHERE` or
    `SELF`. They arrive in `inbox`, from where `delivery` (roles home and copy) or a path of the plan takes them on. A path
    whose sink is distinct allows that each row is sent once only."""

    name: str
    place: Place
    role: Role
    types: tuple[ColumnType, ...]
    delivery: Path | None = None
    heavy: Heavy = ()
    """Values of the place's column whose rows do not go to one worker: those of a stream go to all, others are spread."""

    @property
    def inbox(self) -> str:
        return f"{self.name} <"

    @property
    def target(self) -> str | None:
        """The relation that `delivery` fills."""
        return self.delivery.sink.relation if self.delivery is not None else None

    @property
    def transfer(self) -> Path:
        """What the exchange does to rows, for those who ask where values come from."""
        columns = range(len(self.types))
        seed = Scan(self.name, tuple((c, c) for c in columns))
        return Path(-1, seed, (), Insert(self.inbox, tuple(Variable(c) for c in columns), False), len(self.types))


@dataclass(frozen=True, slots=True)
class Phase:
    """What workers run together until nobody has anything to send: `paths` from their own rows, `streams` from inboxes.
    `copies` of complete relations are made before."""

    paths: tuple[Path, ...] = ()
    streams: tuple[Path, ...] = ()
    copies: tuple[Copy, ...] = ()
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class DistributedScope:
    """A scope cut for several workers. `mirrors` are the copies of growing relations, filled by exchanges of the loop;
    `homes` those of the planner's own relations; `apart` the reductions whose parts, one per worker, must be brought together
    when their stage ends; `split` the program's relations whose rows with these values at their home are spread."""

    scope: Scope
    stages: tuple[Phase, ...]
    enter: Phase
    loop: Phase
    mirrors: tuple[Copy, ...]
    homes: Mapping[str, Place]
    apart: frozenset[str]
    split: Mapping[str, Heavy] = field(default_factory=dict)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (*self.stages, self.enter, self.loop)


def distribute(
    scope: Scope, program: Program, homes: Mapping[str, Place], rows: Rows, everywhere: int, split: Mapping[str, Heavy] = NONE
) -> DistributedScope:
    """Cuts a scope of the static model.

    Parameters
    ----------
    homes
        Where the program's relations are.
    rows
        How many rows a complete relation has, over all workers.
    everywhere
        Rows up to which a complete relation may be copied to every worker.
    split
        The relations whose rows with heavy values at their home are spread; no growing ones.
    """
    own = {t.relation: _home_of(t.kinds) for t in scope.temporaries} | {r.relation: _home_of(r.keys) for r in scope.reductions}
    world = World(scope, Types(scope, program), {**homes, **own}, rows, everywhere, split)
    aligned = _aligned_reductions(scope, world)
    stages = tuple(world.phase(stage, f"{i}", aligned) for i, stage in enumerate(scope.stages))
    enter = world.phase(scope.enter, "e", aligned)
    loop = world.phase(scope.loop, "l", aligned)
    loop = world.restricted(world.with_mirrors(loop))
    apart = frozenset(r.relation for r in scope.reductions) - aligned
    return DistributedScope(scope, stages, enter, loop, tuple(world.mirrors), own, apart, split)


def _home_of(columns: Sequence[object]) -> Place:
    return 0 if columns else ROOT


def _aligned_reductions(scope: Scope, world: World) -> frozenset[str]:
    """The reductions whose groups are each complete on one worker already."""
    apart = set()
    for stage in scope.stages:
        for path in stage:
            if isinstance(path.sink, Accumulate):
                cutter = _Cutter(world.trial(), path, "")
                cutter.run_steps()
                key = path.sink.key
                if not (key and isinstance(key[0], Variable) and key[0].id == cutter.at):
                    apart.add(path.sink.relation)
    return frozenset(r.relation for r in scope.reductions) - apart


@dataclass
class World:
    """What cutting a path needs to know, and what the cut paths of a phase need."""

    scope: Scope
    types: Types
    homes: Mapping[str, Place]
    rows: Rows
    everywhere: int
    split: Mapping[str, Heavy]
    mirrors: dict[Copy, None] = field(default_factory=dict)
    copies: dict[Copy, None] = field(default_factory=dict)
    exchanges: dict[str, Exchange] = field(default_factory=dict)
    streams: list[Path] = field(default_factory=list)

    def trial(self) -> World:
        """A world like this whose books are thrown away."""
        return World(self.scope, self.types, self.homes, self.rows, self.everywhere, self.split)

    def grows(self, relation: str) -> bool:
        return relation in self.scope.variables

    def phase(self, paths: Sequence[Path], label: str, aligned: frozenset[str]) -> Phase:
        self.copies, self.exchanges, self.streams = {}, {}, []
        first = tuple(_Cutter(self, path, f"{label}.{i}").cut(aligned) for i, path in enumerate(paths))
        return Phase(first, tuple(self.streams), tuple(self.copies), tuple(self.exchanges.values()))

    def with_mirrors(self, loop: Phase) -> Phase:
        """The loop with what keeps the copies of growing relations up to date."""
        paths, exchanges = list(loop.paths), list(loop.exchanges)
        for copy in self.mirrors:
            types = self.types.columns(copy.relation)
            variables = tuple(Variable(c) for c in range(len(types)))
            delivery_of = f"@out {copy.name}"
            exchange = Exchange(delivery_of, copy.place, "copy", types)
            exchanges.append(replace(exchange, delivery=_delivery(exchange, copy.name, True)))
            seed = Scan(copy.relation, tuple((c, c) for c in range(len(types))), changes=True)
            paths.append(Path(-1, seed, (), Insert(delivery_of, variables, False), len(types)))
        return replace(loop, paths=tuple(paths), exchanges=tuple(exchanges))

    def restricted(self, loop: Phase) -> Phase:
        """The loop with arrangements of growing relations, and of their copies here, without rows that lead nowhere here."""
        lattices = {lattice.relation for lattice in self.scope.lattices}
        growing = frozenset((*self.scope.variables, *(copy.name for copy in self.mirrors)))
        whole = frozenset((*lattices, *(copy.name for copy in self.mirrors if copy.relation in lattices)))
        paths, streams = (restrict_paths(given, growing, whole) for given in (loop.paths, loop.streams))
        return replace(loop, paths=paths, streams=streams)

    def send_home(self, sink: Insert) -> Insert:
        """The sink for rows whose home may be another worker."""
        name = f"@out {sink.relation}"
        types = self.types.columns(sink.relation)
        exchange = Exchange(name, self.homes[sink.relation], "home", types, heavy=self.split.get(sink.relation, ()))
        held = self.exchanges.get(name)
        distinct = sink.distinct or (held is not None and held.delivery is not None and _inserts_distinct(held.delivery))
        self.exchanges[name] = replace(exchange, delivery=_delivery(exchange, sink.relation, distinct))
        return Insert(name, sink.terms, sink.distinct)

    def cuts(self, relation: str, column: int) -> bool:
        """Whether a copy of the relation may be cut by the column: rows that replace each other must meet."""
        return all(x.relation != relation or x.column != column for x in self.scope.lattices)

    def reaches_everywhere(self, relation: str) -> bool:
        return not self.grows(relation) and self.rows(relation) <= self.everywhere


def _inserts_distinct(path: Path) -> bool:
    return isinstance(path.sink, Insert) and path.sink.distinct


def _delivery(exchange: Exchange, target: str, distinct: bool) -> Path:
    columns = range(len(exchange.types))
    seed = Scan(exchange.inbox, tuple((c, c) for c in columns))
    return Path(-1, seed, (), Insert(target, tuple(Variable(c) for c in columns), distinct), len(exchange.types))


class _Cutter:
    """Cuts one path; `at` is the variable whose owner has the row, ROOT, or None where no variable says it. Where a relation's
    heavy rows are spread, a row that is to meet them goes to all workers: then it is `at` all of them for that one join, of
    which each match is found by one worker, and nobody knows which."""

    def __init__(self, world: World, path: Path, label: str) -> None:
        self.world = world
        self.path = path
        self.label = label
        self.at: int | None = None
        self.spread_for: str | None = None
        self.exchanged = False
        self.variables = path.variables
        self.kinds = dict(world.types.variables(path))
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
                home = self.world.homes[relation]
                self.bound = sum(1 << v for _, v in binds)
                self.at = ROOT if home == ROOT else next((v for c, v in binds if c == home), None)
                if relation in self.world.split:
                    self.at = None

    def cut(self, aligned: frozenset[str]) -> Path:
        """The first piece; later ones go to the world's streams."""
        self.run_steps()
        sink: Insert | Accumulate = self.sink
        if isinstance(sink, Insert) and not self._is_home(sink):
            sink = self.world.send_home(sink)
        self._end(sink)
        first, *rest = self.pieces
        self.world.streams += rest
        return first

    def run_steps(self) -> None:
        while self.pending:
            step = self.pending.pop(0)
            placed = self._place(step)
            if placed is not None:
                self.steps.append(placed)
                self.bound |= binds_of(placed)

    def _is_home(self, sink: Insert) -> bool:
        home = self.world.homes[sink.relation]
        if home == ROOT or sink.relation in self.world.split:
            return self.at == ROOT == home
        term = sink.terms[home]
        return isinstance(term, Variable) and term.id == self.at

    # ------------------------------------------------------------------------------------------------------------ steps

    def _place(self, step: Step) -> Step | None:
        """The step as the worker at hand can do it; None when other steps were put before it instead."""
        match step:
            case Filter() | Map() | Unpack():
                return step
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
        world, keyed = self.world, dict(zip(key, terms, strict=True))
        if self.spread_for == relation:
            self.at = self.spread_for = None
            return relation
        found = self._here(relation, keyed)
        if found is not None:
            return self._read(found, relation, step)
        home = world.homes[relation]
        if home in keyed and relation in world.split and isinstance(step, HalfJoin):
            self.spread_for = relation
            self._move_to(keyed[home], home, step, world.split[relation])
            return None
        if home in keyed:
            self._move_to(keyed[home], home, step)
            return None
        columns = [c for c in keyed if world.cuts(relation, c)]
        if columns and home != ROOT:
            column = next((c for c in columns if isinstance(keyed[c], Variable)), columns[0])
            self._move_to(keyed[column], column, step)
            return None
        place = SOME if exists and not keyed and not world.grows(relation) else EVERYWHERE
        return self._read(Copy(relation, place), relation, step)

    def _here(self, relation: str, keyed: Mapping[int, Term]) -> str | Copy | None:
        """The rows a lookup can read without moving."""
        world, home = self.world, self.world.homes[relation]
        owned = home in keyed and relation not in world.split and self._owns(keyed[home])
        if owned or (self.at is not None and home == self.at == ROOT):
            return relation
        aligned = [c for c, term in keyed.items() if self._owns(term) and world.cuts(relation, c)]
        if aligned and not (world.grows(relation) and home in keyed):
            return Copy(relation, aligned[0])
        return Copy(relation, EVERYWHERE) if world.reaches_everywhere(relation) else None

    def _owns(self, term: Term) -> bool:
        return isinstance(term, Variable) and term.id == self.at

    def _read(self, found: str | Copy, relation: str, step: Step) -> str | None:
        if isinstance(found, str):
            return found
        if not self.world.grows(relation):
            self.world.copies[found] = None
            return found.name
        if not self.exchanged:
            self._exchange(SELF, step)
            return None
        self.world.mirrors[found] = None
        return found.name

    def _move_to(self, term: Term, column: int, step: Step, heavy: Heavy = ()) -> None:
        """Sends the row to the owner of a term's value, or to all workers if it is heavy, then comes back to the step."""
        if isinstance(term, Variable):
            self._exchange(term.id, step, heavy)
            return
        variable = self._name(term)
        self._exchange(variable, _with_key(step, column, Variable(variable)), heavy)

    def _name(self, term: Term) -> int:
        """A variable that holds the term's value."""
        self.variables += 1
        variable = self.variables - 1
        self.kinds[variable] = self.world.types.term(term, self.kinds)
        self.steps.append(Map(variable, term))
        self.bound |= 1 << variable
        return variable

    def _extend(self, step: Extend) -> Step | None:
        found = [self._here(p.arrangement.relation, _keyed(p)) for p in step.proposers]
        if all(f is not None for f in found):
            return self._placed_extend(step, [f for f in found if f is not None])
        best = self._owner_for(step)
        if best is not None:
            self._exchange(best, step)
            return None
        self.pending[:0] = _apart(step)
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
            if all(self._here(p.arrangement.relation, _keyed(p)) is not None for p in step.proposers):
                self.at = held
                return variable
        self.at = held
        return None

    # --------------------------------------------------------------------------------------------------------- exchanges

    def _exchange(self, place: int, step: Step, heavy: Heavy = ()) -> None:
        """Ends the piece: rows go on at the owner of variable `place`, or here (SELF); `step` comes next."""
        self.pending.insert(0, step)
        live = self._live()
        types = tuple(self.kinds[v] for v in live)
        terms: tuple[Term, ...] = tuple(Variable(v) for v in live)
        if not live:
            types, terms = (ColumnType(Kind.NUMBER),), (Constant(0, Kind.NUMBER),)
        name = f"@{self.label}.{len(self.pieces)}"
        exchange = Exchange(name, SELF if place == SELF else live.index(place), "stream", types, heavy=heavy)
        self.world.exchanges[name] = exchange
        # A row that was sent once need not be sent again: what it meets later meets the first one as a change of its own.
        self._end(Insert(name, terms, isinstance(self.sink, Insert) and self.sink.distinct))
        self.seed = Scan(exchange.inbox, tuple(enumerate(live)))
        self.steps = []
        self.bound = sum(1 << v for v in live)
        self.at = self.at if place == SELF else place
        self.exchanged = True

    def _live(self) -> list[int]:
        """The bound variables that what is still to come reads."""
        needed = mask_all(sink_terms(self.sink))
        for step in reversed(self.pending):
            needed = needed & ~binds_of(step) | reads(step)
        needed &= self.bound
        return [v for v in range(needed.bit_length()) if needed >> v & 1]

    def _end(self, sink: Insert | Accumulate) -> None:
        self.pieces.append(Path(self.path.rule, self.seed, tuple(self.steps), sink, self.variables))


def _keyed(proposer: Proposer) -> dict[int, Term]:
    return dict(zip(proposer.arrangement.key, proposer.key, strict=True))


def _with_key(step: Step, column: int, term: Term) -> Step:
    """The lookup with another term for one column of its key."""
    match step:
        case HalfJoin(arrangement=arrangement, key=key):
            return replace(step, key=_replaced(key, arrangement.key.index(column), term))
        case SemiJoin(args=args) | AntiJoin(args=args):
            return replace(step, args=_replaced(args, column, term))
        case LookUp(key=key):
            return replace(step, key=_replaced(key, column, term))
        case _:
            raise AssertionError(step)


def _replaced(terms: Sequence[Term | None], place: int, term: Term) -> tuple[Term, ...]:
    return tuple(term if i == place else t for i, t in enumerate(terms))  # type: ignore[misc]


def _apart(extend: Extend) -> list[Step]:
    """An extension as a join with the first proposer and a check against each of the others."""
    first, *others = extend.proposers
    arrangement = Arrangement(first.arrangement.relation, first.arrangement.key)
    steps: list[Step] = [HalfJoin(arrangement, first.key, ((first.column, extend.variable),), first.view, extend.rows)]
    for other in others:
        args: list[Term | None] = [None] * (len(other.arrangement.key) + 1)
        for column, term in _keyed(other).items():
            args[column] = term
        args[other.column] = Variable(extend.variable)
        steps.append(SemiJoin(other.arrangement.relation, tuple(args), other.view))
    return steps
