"""Lowering of paths over rounds (`total` and `partial` models) to the machine's code.

Besides its variables a block carries the seed's time, the latest iteration it met (partial only) and the product of diffs, as
variables with numbers of their own. Readings of the scope's variables look at inner histories; all others at outer ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Functor, Kind, Term, Variable
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels import layout as L
from dlog.engine.runtime.lowering.lower import LoweredPath, PathLowering, Tables
from dlog.engine.runtime.storage.collection import Collection, Index
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.reduction import Reduction
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.grammar.diagnostics import InternalError

TIME, ITERATION, DIFF, CHOICE = -1, -2, -3, -4


class RoundStorage(Protocol):
    """Where lowering finds what a path over rounds reads and writes."""

    def collection(self, name: str) -> Collection: ...
    def reduction(self, name: str) -> Reduction | None: ...
    def is_inner(self, name: str) -> bool: ...
    def partial(self) -> bool: ...
    def records(self, arity: int) -> StoredRelation: ...
    def field_kinds(self, record_type: str) -> tuple[Kind, ...]: ...
    def encode(self, constant: Constant) -> int: ...
    def lattice_column(self, name: str) -> int: ...


class RoundLowering(PathLowering):
    """Lowers one path over rounds."""

    def __init__(self, path: nodes.Path, storage: RoundStorage, tables: Tables) -> None:
        super().__init__(path, storage, tables)  # type: ignore[arg-type]
        self.rounds = storage
        self.tracked = frozenset({TIME, DIFF} | ({ITERATION} if storage.partial() else set()))
        self.needed = [n | self.tracked for n in self.needed]
        self.seed_list: Struct | None = None
        self.gates: list[Collection] = []
        self.target: Struct | None = None
        self.looping = isinstance(path.seed, nodes.Scan) and storage.is_inner(path.seed.relation)
        """Whether it is changes of the own scope's relations that seed the path."""

    def _finish(self) -> LoweredPath:
        code = [words(level) for level in self.levels]
        struct = Struct(L.path.size)
        struct[L.path.levels] = len(code)
        struct.point(L.path.code, words(c.address for c in code))
        if self.seed_list is not None:
            struct.point(L.path.list, self.seed_list)
        struct.point(L.path.gates, words(c.address for c in self.gates))
        struct[L.path.gate_count] = len(self.gates)
        assert self.target is not None
        struct.point(L.path.target, self.target)
        struct[L.path.few] = few = self._few()
        if few:
            self._note_columns(struct)
        return LoweredPath(self.path, struct, code, False)

    def _note_columns(self, struct: Struct) -> None:
        """Which columns decide what a path of one look-up touches, so that it can be asked for before."""
        first, second = self.levels
        binds = _pairs(first, I.ScanChanges.place.binds)
        seeded = {target: column for column, target in binds}
        carried, bound = moved(second)
        sought = next(first[at:] for at, op in _places(first) if op == L.OP_INDEX)
        *_, (at, op) = _places(second)
        keys = I.FindIndexGroup.place.keys
        struct[L.path.sought] = seeded.get(sought[keys], -1) if sought[_LENGTH] == keys + 1 else -1
        struct[L.path.group] = struct[L.path.key] = -1
        if op == L.OP_REDUCE and second[at + _LENGTH] == _REDUCE.keys + 1:
            key = second[at + _REDUCE.keys]
            struct[L.path.reduction] = second[at + _REDUCE.reduction]
            struct[L.path.group], struct[L.path.key] = seeded.get(carried.get(key, -1), -1), bound.get(key, -1)

    def _few(self) -> int:
        """Whether few changes can go through the path row by row: it is changes and then the rows of a group, and nothing of it
        is left to Python."""
        shape = [level[0] for level in self.levels]
        if not self.rounds.partial() or shape != [L.OP_CHANGES, L.OP_ROWS_OF]:
            return L.FEW_NOT
        operations = {op for level in self.levels for op in _operations(level)}
        if L.OP_EXTERNAL in operations:
            return L.FEW_NOT
        if L.OP_STAGGER in operations:
            return L.FEW_APART
        return L.FEW_VALUE if contributes_alone(self.levels[1]) else L.FEW_SHARED

    def _iteration(self) -> int:
        return self.registers.get(ITERATION, -1)

    def _times(self) -> dict[str, int]:
        """The registers of a row's time, iteration and diff."""
        return {"time": self.registers[TIME], "iteration": self._iteration(), "diff": self.registers[DIFF]}

    # ------------------------------------------------------------------------------------------------------------- seed

    def _seed(self) -> None:
        match self.path.seed:
            case nodes.Unit():
                self._track()
                self._emit(L.OP_ONCE, *I.Once.operands(**self._times()))
            case nodes.Scan(relation=name, binds=binds, negated=negated, missing=missing):
                collection = self.rounds.collection(name)
                self.seed_list = self._changes(name, collection, missing)
                self._track()
                pairs = [w for column, variable in binds for w in (column, self._bind(variable, collection.kinds[column]))]
                head = I.ScanChanges.operands(
                    collection=collection.address,
                    changes=self.seed_list.address,
                    negated=int(negated),
                    bound=len(binds),
                    **self._times(),
                )
                self._emit(L.OP_CHANGES, *head, *pairs)

    def _track(self) -> None:
        for variable in sorted(self.tracked):
            self._bind(variable, Kind.NUMBER)

    def _changes(self, name: str, collection: Collection, missing: bool) -> Struct:
        if missing:
            reduction = self.rounds.reduction(name)
            if reduction is None:
                raise InternalError("lower", f"{name} is not a reduction")
            reduction.seeds = True
            return reduction.missing
        found = collection.struct.keep[L.collection.inner_log if self.rounds.is_inner(name) else L.collection.log]
        assert isinstance(found, Struct)
        return found

    # ------------------------------------------------------------------------------------------------------------ steps

    def _gate(self, collection: Collection, view: nodes.View) -> None:
        """Notes a collection without whose old rows the path finds nothing. Paths seeded by iterations have none: there `alt`
        has this round's earlier iterations."""
        if view == "alt" and not self.looping and collection not in self.gates:
            self.gates.append(collection)

    def _viewed(self, name: str) -> Collection:
        """The collection of a relation that the path looks up."""
        collection = self.rounds.collection(name)
        inner = self.rounds.is_inner(name)
        collection.asked = collection.asked or not inner
        collection.followed = collection.followed or (inner and self.looping)
        return collection

    def _group_of(self, index: Index, key: Sequence[Term], *, proposes: bool = False) -> int:
        index.proposes, index.read = index.proposes or proposes, index.read or not proposes
        keys = [self._term(t) for t in key]
        group = self._fresh()
        self._emit(L.OP_INDEX, *I.FindIndexGroup.operands(index=index.address, group=group), *keys)
        return group

    def _half_join(self, step: nodes.HalfJoin, needed: frozenset[int]) -> None:
        name = step.arrangement.relation
        collection = self._viewed(name)
        self._gate(collection, step.view)
        if len(step.key) == collection.arity > 0:
            by_column = dict(zip(step.arrangement.key, step.key, strict=True))
            self._ask(name, [by_column[c] for c in range(collection.arity)], True, needed, step.view)
            return
        index = collection.index(step.arrangement.key)
        group = self._group_of(index, step.key)
        inner = self.rounds.is_inner(name)
        carried, tracked = self._next_round_level(needed, inner)
        kinds = collection.kinds
        bound = [(column, self._bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.RowsOf.operands(
            index=index.address,
            group=group,
            neu=int(step.view == "neu"),
            inner=int(inner),
            carried=len(carried),
            bound=len(bound),
            **tracked,
        )
        self._emit(L.OP_ROWS_OF, *head, *flat)

    def _next_round_level(self, needed: frozenset[int], inner: bool) -> tuple[list[tuple[int, int]], dict[str, int]]:
        """Ends the level. Returns what is carried over, and the registers of time, iteration and diff before it and of the last
        two behind it; an inner look-up makes those anew."""
        tracked = self._times()
        fresh = frozenset({ITERATION, DIFF}) if inner else frozenset()
        carried = self._next_level(needed - fresh)
        for variable in sorted(fresh):
            self._bind(variable, Kind.NUMBER)
        return carried, {**tracked, "latest": self._iteration(), "product": self.registers[DIFF]}

    def _extend(self, step: nodes.Extend, needed: frozenset[int]) -> None:
        collections = [self._viewed(p.arrangement.relation) for p in step.proposers]
        found = [c.index(p.arrangement.key) for c, p in zip(collections, step.proposers, strict=True)]
        for collection, proposer in zip(collections, step.proposers, strict=True):
            self._gate(collection, proposer.view)
        groups = [self._group_of(i, p.key, proposes=True) for i, p in zip(found, step.proposers, strict=True)]
        later = needed | {v.id for p in step.proposers for v in p.key if isinstance(v, Variable)} | {step.variable}
        old_time = self.registers[TIME]
        carried = self._next_level(later)
        target = self._bind(step.variable, collections[0].kinds[step.proposers[0].column])
        choice = self._bind(CHOICE, Kind.NUMBER)
        proposers = zip(found, groups, step.proposers, strict=True)
        flat = [w for i, g, p in proposers for w in (i.address, g, p.column, self._neu(p))]
        flat += [w for pair in carried for w in pair]
        counts = {"proposers": len(found), "carried": len(carried)}
        self._emit(L.OP_PROPOSE, *I.Propose.operands(target=target, choice=choice, time=old_time, **counts), *flat)
        for number, proposer in enumerate(step.proposers):
            args: list[Term | None] = [None] * self.rounds.collection(proposer.arrangement.relation).arity
            for column, term in zip(proposer.arrangement.key, proposer.key, strict=True):
                args[column] = term
            args[proposer.column] = Variable(step.variable)
            self._ask(proposer.arrangement.relation, tuple(args), True, later | {CHOICE}, proposer.view, number)

    def _neu(self, proposer: nodes.Proposer) -> int:
        return -1 if self.rounds.is_inner(proposer.arrangement.relation) else int(proposer.view == "neu")

    def _step(self, step: nodes.Step, needed: frozenset[int]) -> None:
        match step:
            case nodes.SemiJoin(relation=name, args=args, view=view):
                self._gate(self.rounds.collection(name), view)
                self._ask(name, args, True, needed, view)
            case nodes.AntiJoin(relation=name, args=args, view=view):
                self._ask(name, args, False, needed, view)
            case _:
                super()._step(step, needed)

    def _ask(
        self,
        name: str,
        args: Sequence[Term | None],
        wanted: bool,
        needed: frozenset[int],
        view: nodes.View,
        proposer: int = -1,
    ) -> None:
        """Keeps rows for which the relation has (not) the row `args`; those that came from the proposer have it."""
        collection = self._viewed(name)
        collection.found = collection.found or None not in args
        neu = int(view == "neu")
        if any(a is None for a in args):
            key = tuple(c for c, a in enumerate(args) if a is not None)
            index = collection.index(key)
            group = self._group_of(index, [a for a in args if a is not None])
            live = self._live(needed)
            self._emit(L.OP_ANY, *I.HasAny.operands(index=index.address, group=group, live=len(live)), *live)
            return
        keys = [self._term(a) for a in args if a is not None]
        if not self.rounds.is_inner(name):
            live = self._live(needed)
            head = I.Present.operands(
                collection=collection.address,
                wanted=int(wanted),
                neu=neu,
                time=self.registers[TIME],
                proposer=proposer,
                choice=self.registers[CHOICE] if proposer >= 0 else 0,
                live=len(live),
            )
            self._emit(L.OP_PRESENT, *head, *live, *keys)
            return
        row = self._fresh()
        live = [*self._live(needed), row]
        self._emit(L.OP_ROW, *I.HasRow.operands(collection=collection.address, row=row, live=len(live)), *live, *keys)
        carried, tracked = self._next_round_level(needed, True)
        flat = [w for pair in carried for w in pair]
        head = I.EntriesOf.operands(collection=collection.address, row=row, neu=neu, carried=len(carried), **tracked)
        self._emit(L.OP_ENTRIES, *head, *flat)

    def _look_up(self, step: nodes.LookUp, needed: frozenset[int]) -> None:
        collection = self._viewed(step.relation)
        keys = len(step.key)
        index = collection.index(tuple(range(keys)))
        group = self._group_of(index, step.key)
        live = self._live(needed)
        target = self._bind(step.variable, collection.kinds[keys])
        if step.default is None:
            self._gate(collection, step.view)
        head = I.ValueOf.operands(
            index=index.address,
            group=group,
            neu=int(step.view == "neu"),
            time=self.registers[TIME],
            column=keys,
            target=target,
            has_default=int(step.default is not None),
            default=step.default or 0,
            live=len(live) + 1,
        )
        self._emit(L.OP_VALUE, *head, *live, target)

    # ------------------------------------------------------------------------------------------------------------- sink

    def _stagger(self, lattice: str, values: Sequence[int]) -> None:
        """Lets small values enter a lattice of least ones first, where the plan says so."""
        if self.path.staggered != "no":
            value, ordered = values[self.rounds.lattice_column(lattice)], int(self.path.staggered == "ordered")
            enters = {"iteration": self.registers[ITERATION], "advance": self.path.advance}
            self._emit(L.OP_STAGGER, *I.Stagger.operands(value=value, ordered=ordered, **enters))

    def _sink(self) -> None:
        match self.path.sink:
            case nodes.Insert(relation=name, terms=terms, weight=weight):
                values = [self._term(t) for t in terms]
                self._stagger(name, values)
                diff = self.registers[DIFF]
                if weight is not None and weight != Constant(1, Kind.NUMBER):
                    diff = self._term(Functor("*", (Variable(DIFF), weight), Kind.NUMBER, Kind.NUMBER))
                tracked = {**self._times(), "diff": diff, "advance": self.path.advance}
                reduction = self.rounds.reduction(name)
                if reduction is None:
                    self.target = self.rounds.collection(name).struct
                    self._emit(L.OP_DERIVE, *I.Derive.operands(collection=self.target.address, **tracked), *values)
                else:
                    self.target = reduction.groups.struct
                    column = reduction.struct[L.reduction.value]
                    keys = [v for c, v in enumerate(values) if c != column]
                    head = I.Reduce.operands(reduction=reduction.address, value=values[column], **tracked)
                    self._emit(L.OP_REDUCE, *head, *keys)
            case nodes.Accumulate(relation=name, key=key, value=value):
                reduction = self.rounds.reduction(name)
                if reduction is None:
                    raise InternalError("lower", f"{name} is not a reduction")
                keys = [self._term(t) for t in key]
                contributed = self.tables.constant(1) if value is None else self._value(value, reduction.kind)
                reduction.sources += 1
                self.target = reduction.groups.struct
                head = I.Reduce.operands(reduction=reduction.address, value=contributed, advance=0, **self._times())
                self._emit(L.OP_REDUCE, *head, *keys)


def contributes_alone(level: Sequence[int]) -> bool:
    """Whether the second level of a path of one look-up does nothing with a row but contribute a value that is carried over to
    the group of a lattice, by the one key, which is the row's."""
    sink = level[level[_LENGTH] :]
    carried, bound = moved(level)
    one = sink[0] == L.OP_REDUCE and sink[_LENGTH] == _REDUCE.keys + 1 and not level[I.RowsOf.place.inner]
    return one and {sink[_REDUCE.iteration], sink[_REDUCE.value]} <= set(carried) and sink[_REDUCE.keys] in bound


def moved(level: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """Of the second level of a path of one look-up: what registers are carried over from, and the columns of the others."""
    pairs = _pairs(level, I.RowsOf.place.moves)
    count = level[I.RowsOf.place.carried]
    carried, bound = pairs[:count], pairs[count:]
    return {to: source for source, to in carried}, {to: column for column, to in bound}


def _pairs(code: Sequence[int], first: int) -> list[tuple[int, int]]:
    """The pairs that end an instruction."""
    return list(zip(code[first : code[_LENGTH] : 2], code[first + 1 : code[_LENGTH] : 2], strict=True))


def _operations(code: Sequence[int]) -> Iterator[int]:
    """The operations of a level."""
    return (op for _, op in _places(code))


def _places(code: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Where each operation of a level is."""
    at = 0
    while at < len(code):
        yield at, code[at]
        at += code[at + _LENGTH]


_LENGTH = I.Instruction.place.length
_REDUCE = I.Reduce.place
