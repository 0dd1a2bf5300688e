"""Lowering of paths over rounds (`total` and `partial` models) to the machine's code.

Besides its variables a block carries the seed's time, the latest iteration it met (partial only) and the product of diffs, as
variables with numbers of their own. Readings of the scope's variables look at inner histories; all others at outer ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Constant, Functor, Kind, Term, Variable
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Divisible, Few, Operation
from dlog.engine.plan.incremental.renaming import Named
from dlog.engine.plan.incremental.shapes import Shape
from dlog.engine.plan.incremental.templates import StratumPlan, Template
from dlog.engine.runtime.lowering.linking import Form, ObjectCode, References, form_of, numbered
from dlog.engine.runtime.lowering.lower import PathLowering
from dlog.engine.runtime.lowering.lowered import LoweredPath, Tables
from dlog.engine.runtime.lowering.round_storage import RoundStorage
from dlog.engine.runtime.lowering.stratum_code import StratumCode, may_share
from dlog.grammar.diagnostics import InternalError

TIME, ITERATION, DIFF, CHOICE = -1, -2, -3, -4


class RoundCode:
    """Lowers the paths of a dataflow, those of one form once, and those of strata with one plan together. `forms` are known
    from other dataflows of the same program, and become more."""

    def __init__(self, tables: Tables, forms: dict[Shape, Form]) -> None:
        self.tables = tables
        self.forms = forms
        self._strata: dict[tuple[Template, int], StratumCode | None] = {}

    def lowered(self, path: nodes.Path, storage: RoundStorage) -> LoweredPath:
        shape, names = form_of(path, storage)
        form = self.forms.get(shape)
        if form is not None:
            return form.linked(path, names, References(storage, self.tables, _is_looping(path, storage)))
        lowering = RoundLowering(path, storage, self.tables)
        made = lowering.lower()
        if not lowering.terms.calls_python:  # that is noted for each path
            references = numbered(lowering.references.referred, names)
            self.forms[shape] = Form(lowering.object_code, references, lowering.code.next_register)
        return made

    def lowered_together(self, plan: StratumPlan, part: int, storage: RoundStorage) -> list[LoweredPath]:
        """The paths of a part of a stratum's plan (see `StratumPlan.paths`)."""
        if plan.template is not None:
            code = self._strata.get((plan.template, part))
            if code is not None:
                return code.linked(plan, part, storage, self.tables)
        paths = plan.paths(part)
        lowered = [self.lowered(path, storage) for path in paths]
        if plan.template is not None and (plan.template, part) not in self._strata:
            self._strata[plan.template, part] = self._stratum_code(paths, plan.named, storage)
        return lowered

    def _stratum_code(self, paths: Sequence[nodes.Path], named: Named, storage: RoundStorage) -> StratumCode | None:
        """The code of paths for strata with other names, where there is one."""
        found = []
        for path in paths:
            shape, names = form_of(path, storage)
            if shape not in self.forms:
                return None
            found.append((self.forms[shape], names, _is_looping(path, storage)))
        return StratumCode(found, named, storage) if found and may_share(paths, named) else None


def _is_looping(path: nodes.Path, storage: RoundStorage) -> bool:
    """Whether it is changes of the own scope's relations that seed the path."""
    return isinstance(path.seed, nodes.Scan) and storage.is_inner(path.seed.relation)


class RoundLowering(PathLowering):
    """Lowers one path over rounds."""

    object_code: ObjectCode

    def __init__(self, path: nodes.Path, storage: RoundStorage, tables: Tables) -> None:
        self.looping = _is_looping(path, storage)
        self.references = references = References(storage, tables, self.looping)
        super().__init__(path, storage, tables, lambda term: references.refer("constant", term))  # type: ignore[arg-type]
        self.rounds = storage
        self.tracked = frozenset({TIME, DIFF} | ({ITERATION} if storage.partial() else set()))
        self.needed = [n | self.tracked for n in self.needed]
        self.gates: dict[str, int] = {}
        self.changes = 0
        """The address of what seeds the path, 0 for one row."""
        self.target = 0
        """The address of the collection of which it makes rows."""
        self.summed = 0
        """The address of the reduction that is all the path contributes to, and whose groups have one key; else 0."""

    def _finish(self) -> LoweredPath:
        header = {L.path.list: self.changes, L.path.target: self.target}
        header[L.path.divisible] = self._divisible()
        header[L.path.monotone] = int(is_monotone(self.path))
        header[L.path.reduction] = self.summed
        header[L.path.few] = few = self._few()
        if few not in (Few.NOT, Few.ALONE):
            header |= self._columns()
        self.object_code = ObjectCode(header, self.code.levels, list(self.gates.values()), self.code.shareable)
        return self.object_code.linked(self.path, self.references, self.references.resolved)

    def _columns(self) -> dict[int, int]:
        """The columns that decide what a path of one look-up touches, so that it can be prefetched."""
        first, second = self.code.levels
        binds = _pairs(first, I.ScanChanges.place.binds)
        seeded = {target: column for column, target in binds}
        carried, bound = moved(second)
        sought = next(first[at:] for at, op in _places(first) if op == Operation.INDEX)
        *_, (at, op) = _places(second)
        keys = I.FindIndexGroup.place.keys
        noted = {L.path.sought: seeded.get(sought[keys], -1) if sought[_LENGTH] == keys + 1 else -1}
        noted |= {L.path.group: -1, L.path.key: -1}
        if op == Operation.REDUCE and second[at + _LENGTH] == _REDUCE.keys + 1:
            key = second[at + _REDUCE.keys]
            noted[L.path.reduction] = second[at + _REDUCE.reduction]
            noted[L.path.group], noted[L.path.key] = seeded.get(carried.get(key, -1), -1), bound.get(key, -1)
        return noted

    def _few(self) -> int:
        """Whether few changes can go through the path row by row: it is changes, perhaps with the rows of a group for each, and
        nothing of it is left to Python."""
        shape = [level[0] for level in self.code.levels]
        if not self.rounds.partial() or shape not in ([Operation.CHANGES], [Operation.CHANGES, Operation.ROWS_OF]):
            return Few.NOT
        operations = {op for level in self.code.levels for op in _operations(level)}
        if Operation.EXTERNAL in operations:
            return Few.NOT
        if len(shape) == 1:
            return Few.ALONE
        if Operation.DELAY in operations:
            return Few.APART
        return Few.VALUE if contributes_alone(self.code.levels[1]) else Few.SHARED

    def _divisible(self) -> Divisible:
        """Whether workers can each go through a part of the changes: they only read."""
        operations = {op for level in self.code.levels for op in _operations(level)}
        if not self.code.shareable:
            return Divisible.NOT
        if self.summed and len(self.code.levels) == 1 and operations <= _DIVISIBLE | {Operation.REDUCE}:
            return Divisible.SUMMED
        if not Operation.DERIVE in operations <= _DIVISIBLE:
            return Divisible.NOT
        return Divisible.YES if len(self.code.levels) > 1 else Divisible.CLAIMED

    def _iteration(self) -> int:
        return self.code.registers.get(ITERATION, -1)

    def _times(self) -> dict[str, int]:
        """The registers of a row's time, iteration and diff."""
        return {"time": self.code.registers[TIME], "iteration": self._iteration(), "diff": self.code.registers[DIFF]}

    # ------------------------------------------------------------------------------------------------------------- seed

    def _seed(self) -> None:
        match self.path.seed:
            case nodes.Unit():
                self._track()
                self.code.emit(Operation.ONCE, *I.Once.operands(**self._times()))
            case nodes.Scan(relation=name, binds=binds, negated=negated, missing=missing):
                kinds = self.rounds.source(name).kinds
                self.changes = self.references.refer("missing" if missing else "changes", name)
                self._track()
                pairs = [w for column, variable in binds for w in (column, self.code.bind(variable, kinds[column]))]
                head = I.ScanChanges.operands(
                    collection=self.references.refer("source", name),
                    changes=self.changes,
                    negated=int(negated),
                    bound=len(binds),
                    **self._times(),
                )
                self.code.emit(Operation.CHANGES, *head, *pairs)
            case _:
                assert_never(self.path.seed)

    def _track(self) -> None:
        for variable in sorted(self.tracked):
            self.code.bind(variable, Kind.NUMBER)

    # ------------------------------------------------------------------------------------------------------------ steps

    def _gate(self, name: str, view: nodes.View) -> None:
        """Notes a relation without whose old rows the path finds nothing. Paths seeded by iterations have none: there `alt`
        has this round's earlier iterations."""
        if view == "alt" and not self.looping and name not in self.gates:
            self.gates[name] = self.references.refer("collection", name)

    def _group_of(self, name: str, columns: tuple[int, ...], key: Sequence[Term], *, proposes: bool = False) -> tuple[int, int]:
        """The index of a relation by columns, and the register of the group with a key."""
        index = self.references.refer("index", name, columns, proposes)
        keys = [self.terms.register(t) for t in key]
        group = self.code.fresh()
        self.code.emit(Operation.INDEX, *I.FindIndexGroup.operands(index=index, group=group), *keys)
        return index, group

    def _half_join(self, step: nodes.HalfJoin, needed: frozenset[int]) -> None:
        name = step.arrangement.relation
        collection = self.rounds.collection(name)
        self.references.refer("viewed", name)
        self._gate(name, step.view)
        if len(step.key) == collection.arity > 0:
            by_column = dict(zip(step.arrangement.key, step.key, strict=True))
            self._ask(name, [by_column[c] for c in range(collection.arity)], True, needed, step.view)
            return
        index, group = self._group_of(name, step.arrangement.key, step.key)
        inner = self.rounds.is_inner(name)
        carried, tracked = self._next_round_level(needed, inner)
        kinds = collection.kinds
        bound = [(column, self.code.bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.RowsOf.operands(
            index=index,
            group=group,
            neu=int(step.view == "neu"),
            inner=int(inner),
            carried=len(carried),
            bound=len(bound),
            **tracked,
        )
        self.code.emit(Operation.ROWS_OF, *head, *flat)

    def _next_round_level(self, needed: frozenset[int], inner: bool) -> tuple[list[tuple[int, int]], dict[str, int]]:
        """Ends the level. Returns what is carried over, and the registers of time, iteration and diff before it and of the last
        two behind it; an inner look-up makes those anew."""
        tracked = self._times()
        fresh = frozenset({ITERATION, DIFF}) if inner else frozenset()
        carried = self.code.next_level(needed - fresh)
        for variable in sorted(fresh):
            self.code.bind(variable, Kind.NUMBER)
        return carried, {**tracked, "latest": self._iteration(), "product": self.code.registers[DIFF]}

    def _extend(self, step: nodes.Extend, needed: frozenset[int]) -> None:
        for proposer in step.proposers:
            self.references.refer("viewed", proposer.arrangement.relation)
            self._gate(proposer.arrangement.relation, proposer.view)
        groups = [self._group_of(p.arrangement.relation, p.arrangement.key, p.key, proposes=True) for p in step.proposers]
        later = needed | {v.id for p in step.proposers for v in p.key if isinstance(v, Variable)} | {step.variable}
        old_time = self.code.registers[TIME]
        carried = self.code.next_level(later)
        first = step.proposers[0]
        target = self.code.bind(step.variable, self.rounds.collection(first.arrangement.relation).kinds[first.column])
        choice = self.code.bind(CHOICE, Kind.NUMBER)
        flat = [w for (i, g), p in zip(groups, step.proposers, strict=True) for w in (i, g, p.column, self._neu(p))]
        flat += [w for pair in carried for w in pair]
        counts = {"proposers": len(groups), "carried": len(carried)}
        self.code.emit(Operation.PROPOSE, *I.Propose.operands(target=target, choice=choice, time=old_time, **counts), *flat)
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
                self._gate(name, view)
                self._ask(name, args, True, needed, view)
            case nodes.AntiJoin(relation=name, args=args, view=view):
                self._ask(name, args, False, needed, view)
            case nodes.HalfJoin() | nodes.Extend() | nodes.Filter() | nodes.Map() | nodes.LookUp():
                super()._step(step, needed)
            case nodes.UnpackRecord() | nodes.Generate():
                super()._step(step, needed)
            case _:
                assert_never(step)

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
        collection = self.references.refer("viewed", name)
        neu = int(view == "neu")
        if any(a is None for a in args):
            key = tuple(c for c, a in enumerate(args) if a is not None)
            index, group = self._group_of(name, key, [a for a in args if a is not None])
            live = self.code.live(needed)
            self.code.emit(Operation.ANY, *I.HasAny.operands(index=index, group=group, live=len(live)), *live)
            return
        self.references.refer("found_by_values", name)
        keys = [self.terms.register(a) for a in args if a is not None]
        if not self.rounds.is_inner(name):
            live = self.code.live(needed)
            head = I.Present.operands(
                collection=collection,
                is_positive=int(wanted),
                neu=neu,
                time=self.code.registers[TIME],
                proposer=proposer,
                choice=self.code.registers[CHOICE] if proposer >= 0 else 0,
                live=len(live),
            )
            self.code.emit(Operation.PRESENT, *head, *live, *keys)
            return
        row = self.code.fresh()
        live = [*self.code.live(needed), row]
        self.code.emit(Operation.ROW, *I.HasRow.operands(collection=collection, row=row, live=len(live)), *live, *keys)
        carried, tracked = self._next_round_level(needed, True)
        flat = [w for pair in carried for w in pair]
        head = I.EntriesOf.operands(collection=collection, row=row, neu=neu, carried=len(carried), **tracked)
        self.code.emit(Operation.ENTRIES, *head, *flat)

    def _look_up(self, step: nodes.LookUp, needed: frozenset[int]) -> None:
        self.references.refer("viewed", step.relation)
        keys = len(step.key)
        index, group = self._group_of(step.relation, tuple(range(keys)), step.key)
        live = self.code.live(needed)
        target = self.code.bind(step.variable, self.rounds.collection(step.relation).kinds[keys])
        if step.default is None:
            self._gate(step.relation, step.view)
        head = I.ValueOf.operands(
            index=index,
            group=group,
            neu=int(step.view == "neu"),
            time=self.code.registers[TIME],
            column=keys,
            target=target,
            has_default=int(step.default is not None),
            default=step.default or 0,
            live=len(live) + 1,
        )
        self.code.emit(Operation.VALUE, *head, *live, target)

    # ------------------------------------------------------------------------------------------------------------- sink

    def _delay(self, lattice: str, values: Sequence[int]) -> None:
        """Lets small values enter a lattice of least ones first, where the plan says so."""
        if self.path.delayed != "no":
            value, ordered = values[self.rounds.lattice_column(lattice)], int(self.path.delayed == "ordered")
            enters = {"iteration": self.code.registers[ITERATION], "advance": self.path.advance}
            self.code.emit(Operation.DELAY, *I.Delay.operands(value=value, ordered=ordered, **enters))

    def _sink(self) -> None:
        for sink in self.path.also:
            self._accumulate_in(Operation.REDUCE_AND, sink)
        match self.path.sink:
            case nodes.Insert(relation=name, terms=terms, weight=weight):
                values = [self.terms.register(t) for t in terms]
                self._delay(name, values)
                diff = self.code.registers[DIFF]
                if weight is not None and weight != Constant(1, Kind.NUMBER):
                    diff = self.terms.register(Functor("*", (Variable(DIFF), weight), Kind.NUMBER, Kind.NUMBER))
                tracked = {**self._times(), "diff": diff, "advance": self.path.advance}
                reduction = self.rounds.reduction(name)
                if reduction is None:
                    self.target = self.references.refer("collection", name)
                    self.code.emit(Operation.DERIVE, *I.Derive.operands(collection=self.target, **tracked), *values)
                else:
                    column = reduction.struct[L.reduction.value]
                    keys = [v for c, v in enumerate(values) if c != column]
                    self.target = self.references.refer("groups", name)
                    contributed_to = self.references.refer("reduction", name)
                    head = I.Reduce.operands(reduction=contributed_to, value=values[column], **tracked)
                    self.code.emit(Operation.REDUCE, *head, *keys)
            case nodes.Accumulate():
                self._accumulate_in(Operation.REDUCE, self.path.sink)
            case _:
                assert_never(self.path.sink)

    def _accumulate_in(self, op: Operation, sink: nodes.Accumulate) -> None:
        name = sink.relation
        reduction = self.rounds.reduction(name)
        if reduction is None:
            raise InternalError("lower", f"{name} is not a reduction")
        keys = [self.terms.register(t) for t in sink.key]
        value = sink.value
        contributed = self.references.refer("one", name) if value is None else self.terms.value_as(value, reduction.kind)
        self.target = self.references.refer("groups", name)
        reduced = self.references.refer("reduced", name)
        if op == Operation.REDUCE and len(keys) == 1 and not self.path.also and not self.rounds.partial():
            self.summed = reduced
        contribution = {"reduction": reduced, "value": contributed, "advance": 0}
        self.code.emit(op, *I.Reduce.operands(**contribution, **self._times()), *keys)


def is_monotone(path: nodes.Path) -> bool:
    """Whether rows that come never have the path take derivations away: it is not seeded by what a literal negates, and rows
    have no weights."""
    if isinstance(path.seed, nodes.Scan) and (path.seed.negated or path.seed.missing):
        return False
    return isinstance(path.sink, nodes.Insert) and path.sink.weight in (None, Constant(1, Kind.NUMBER))


def contributes_alone(level: Sequence[int]) -> bool:
    """Whether the second level of a path of one look-up does nothing with a row but contribute a value that is carried over to
    the group of a lattice, by the one key, which is the row's."""
    sink = level[level[_LENGTH] :]
    carried, bound = moved(level)
    one = sink[0] == Operation.REDUCE and sink[_LENGTH] == _REDUCE.keys + 1 and not level[I.RowsOf.place.inner]
    return one and {sink[_REDUCE.iteration], sink[_REDUCE.value]} <= set(carried) and sink[_REDUCE.keys] in bound


def moved(level: Sequence[int]) -> tuple[dict[int, int], dict[int, int]]:
    """The registers of the second level of a path of one look-up: those carried over, and the columns of the others."""
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
    """The position and the code of each operation of a level."""
    at = 0
    while at < len(code):
        yield at, code[at]
        at += code[at + _LENGTH]


_DIVISIBLE = frozenset(
    {
        *(Operation.CHANGES, Operation.ROWS_OF, Operation.ENTRIES, Operation.PROPOSE, Operation.NEXT, Operation.DERIVE),
        *(Operation.INDEX, Operation.ROW, Operation.PRESENT, Operation.VALUE, Operation.ANY),
        *(Operation.COMPARE, Operation.ARITHMETIC, Operation.MOVE, Operation.MASK, Operation.UNPACK),
    }
)
"""Operations of paths that several workers may run at once."""
_LENGTH = I.Instruction.place.length
_REDUCE = I.Reduce.place
