"""Lowering: a delta-query path of the plan becomes code for the machine (kernels/machine.py).

Registers are per level: a generator copies what later steps still need into fresh registers, so a level that is being resumed
never finds its rows overwritten. Constants live in registers of their own, filled once for the scope.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, assert_never

from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir import nodes
from dlog.engine.ir.rules import Compare, Constant, Kind, Term, Variable
from dlog.engine.ir.table_functions import kinds_of
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.codes import Comparison, Operation, RangeForm
from dlog.engine.kernels.values.texts import Text
from dlog.engine.runtime.lowering.code import Code
from dlog.engine.runtime.lowering.liveness import live_after
from dlog.engine.runtime.lowering.lowered import LoweredPath, ProducedRows, Tables
from dlog.engine.runtime.lowering.sweeping import is_twin, swept_columns
from dlog.engine.runtime.lowering.terms import TermLowering
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.grammar.diagnostics import Diagnostic, DlogError

MAX_REGISTERS = 1 << 18
"""Registers of a path, of which each block of rows may fill 4 KiB: a GiB."""

_RANGES = {Kind.NUMBER: RangeForm.NUMBER, Kind.UNSIGNED: RangeForm.UNSIGNED, Kind.FLOAT: RangeForm.FLOAT}
_COMPARE = {
    Kind.NUMBER: {"=": Comparison.EQ, "!=": Comparison.NE, "<": Comparison.LT, "<=": Comparison.LE},
    Kind.UNSIGNED: {"=": Comparison.EQ, "!=": Comparison.NE, "<": Comparison.LT_U, "<=": Comparison.LE_U},
    Kind.FLOAT: {"=": Comparison.EQ_F, "!=": Comparison.NE_F, "<": Comparison.LT_F, "<=": Comparison.LE_F},
    Kind.SYMBOL: {"=": Comparison.EQ, "!=": Comparison.NE},
    Kind.RECORD: {"=": Comparison.EQ, "!=": Comparison.NE},
}


class Storage(Protocol):
    """The relations and indexes that a path reads and writes, for lowering."""

    def relation(self, name: str) -> StoredRelation: ...
    def set_of(self, name: str) -> StoredRelation: ...
    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement: ...
    def records(self, arity: int) -> StoredRelation: ...
    def field_kinds(self, record_type: str) -> tuple[Kind, ...]: ...
    def encode(self, constant: Constant) -> int: ...


class PathLowering:
    """Lowers one path; one instance per path."""

    def __init__(
        self, path: nodes.Path, storage: Storage, tables: Tables, constant: Callable[[Constant], int] | None = None
    ) -> None:
        """`constant` gives the register of a constant; without it, one of `tables`."""
        self.path = path
        self.storage = storage
        self.tables = tables
        self.code = Code()
        constant = constant or (lambda term: tables.constant(storage.encode(term)))
        self.terms = TermLowering(self.code, storage.records, tables, constant)
        self.swept = False
        self.needed = live_after(path)

    def lower(self) -> LoweredPath:
        self._seed()
        for index, step in enumerate(self.path.steps):
            self._step(step, self.needed[index])
        if not self.swept:
            self._sink()
        self.code.end()
        self.tables.make_room(self.code.next_register, len(self.code.levels))
        if self.code.next_register > MAX_REGISTERS:
            message = f"a rule has {len(self.path.steps) + 1} atoms that hand on too many variables"
            raise DlogError(Diagnostic("rule-too-long", message, notes=("derive a part of its body in a relation of its own",)))
        return self._finish()

    def _finish(self) -> LoweredPath:
        code = [words(level) for level in self.code.levels]
        struct = Struct(L.path.size)
        struct[L.path.levels] = len(code)
        struct.point(L.path.code, words(c.address for c in code))
        if isinstance(self.path.seed, nodes.Scan):
            struct[L.path.seed] = self.storage.relation(self.path.seed.relation).address
            struct[L.path.changes] = int(self.path.seed.changes)
        return LoweredPath(self.path, struct, code, self.code.shareable)

    def _seed(self) -> None:
        match self.path.seed:
            case nodes.Unit():
                self.code.emit(Operation.UNIT)
            case nodes.Scan(relation=name, binds=binds, changes=changes):
                relation = self.storage.relation(name)
                pairs = [w for column, variable in binds for w in (column, self.code.bind(variable, relation.kinds[column]))]
                if changes and relation.struct[L.relation.heap]:
                    self.code.emit(Operation.QUEUE, *I.ScanQueue.operands(relation=relation.address, bound=len(binds)), *pairs)
                else:
                    head = I.Scan.operands(relation=relation.address, changes=int(changes), bound=len(binds))
                    self.code.emit(Operation.SCAN, *head, *pairs)
            case _:
                assert_never(self.path.seed)

    # ------------------------------------------------------------------------------------------------------------ steps

    def _step(self, step: nodes.Step, needed: frozenset[int]) -> None:
        match step:
            case nodes.HalfJoin():
                self._half_join(step, needed)
            case nodes.Extend():
                self._extend(step, needed)
            case nodes.SemiJoin(relation=relation, args=args):
                self._member(relation, args, True, needed)
            case nodes.AntiJoin(relation=relation, args=args):
                self._member(relation, args, False, needed)
            case nodes.Filter(compare=compare):
                self._filter(compare, needed)
            case nodes.Map(variable=variable, term=term):
                source = self.terms.register(term)
                target = self.code.bind(variable, self.terms.kind(term))
                self.code.emit(Operation.MOVE, *I.Copy.operands(source=source, target=target))
            case nodes.UnpackRecord():
                self._unpack(step, needed)
            case nodes.Generate():
                self._generate(step, needed)
            case nodes.LookUp():
                self._look_up(step, needed)
            case _:
                assert_never(step)

    def _half_join(self, step: nodes.HalfJoin, needed: frozenset[int]) -> None:
        arrangement = self.storage.arrangement(step.arrangement)
        group = self._group(arrangement, step.key)
        swept = self._swept(step, arrangement)
        if swept is not None:
            self._sweep(arrangement, group, *swept)
            return
        carried = self.code.next_level(needed)
        kinds = arrangement.relation.kinds
        bound = [(column, self.code.bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.Join.operands(arrangement=arrangement.address, group=group, carried=len(carried), bound=len(bound))
        self.code.emit(Operation.JOIN, *head, *flat)

    def _swept(self, step: nodes.HalfJoin, arrangement: StoredArrangement) -> tuple[int, int] | None:
        """The columns of the sweep in place of this join, if there is one."""
        return swept_columns(self.path, step, self.storage, arrangement)

    def _sweep(self, arrangement: StoredArrangement, group: int, column: int, place: int) -> None:
        """The join and the sink in one instruction: the arrangement's column goes to this place of the sink."""
        assert isinstance(self.path.sink, nodes.Insert)
        target = self.storage.relation(self.path.sink.relation)
        twin = arrangement.relation.address if is_twin(arrangement, column, target, place) else 0
        self._sweep_level(Operation.SWEEP, arrangement.address, group, column, place, twin)

    def _sweep_level(self, op: int, source: int, start: int, column: int, place: int, last: int) -> None:
        """A level that ends the path: what the source has goes to this place of the sink."""
        assert isinstance(self.path.sink, nodes.Insert)
        target = self.storage.relation(self.path.sink.relation)
        base = self.code.fresh()
        values = [base if c == place else self.terms.register(t) for c, t in enumerate(self.path.sink.terms)]
        self.code.end_level()
        head = I.Sweep.operands(
            source=source,
            start=start,
            column=column,
            relation=target.address,
            swept=place,
            bases=base,
            last=last,
            mark_offset=self._reserve_seen(),
        )
        self.code.emit(op, *head, *values)
        self.swept = True

    def _reserve_seen(self) -> int:
        """The position among the marks at which a sweep remembers rows, 0 where it does not: each worker does, beside the
        account of memory. A path of one join hardly meets a row twice."""
        if not self.tables.remembers or len(self.path.steps) < 2:
            return 0
        place = self.tables.marks + 1
        self.tables.marks = place + L.SWEEP_MARKS
        return place

    def _group(self, arrangement: StoredArrangement, key: Sequence[Term]) -> int:
        keys = [self.terms.register(t) for t in key]
        group = self.code.fresh()
        self.code.emit(Operation.GROUP, *I.FindGroup.operands(arrangement=arrangement.address, group=group), *keys)
        return group

    def _extend(self, step: nodes.Extend, needed: frozenset[int]) -> None:
        arrangements = [self.storage.arrangement(p.arrangement) for p in step.proposers]
        groups = [self._group(a, p.key) for a, p in zip(arrangements, step.proposers, strict=True)]
        growing = [(a, p) for a, p in zip(arrangements, step.proposers, strict=True) if a.growing]
        later = needed | {v.id for _, p in growing for v in p.key if isinstance(v, Variable)}
        if growing:
            later |= {step.variable}
        carried = self.code.next_level(frozenset(later))
        target = self.code.bind(step.variable, arrangements[0].relation.kinds[step.proposers[0].column])
        low, span = self._mark_range(arrangements, step)
        offset = self._reserve_marks(len(arrangements), span)
        proposers = [w for a, g, p in zip(arrangements, groups, step.proposers, strict=True) for w in (a.address, g, p.column)]
        flat = [w for pair in carried for w in pair]
        counts = {"proposers": len(arrangements), "carried": len(carried)}
        head = I.Extend.operands(target=target, marks=offset, low=low, span=span, **counts)
        self.code.emit(Operation.EXTEND, *head, *proposers, *flat)
        for arrangement, proposer in growing:
            args: list[Term | None] = [None] * arrangement.relation.arity
            for column, term in zip(proposer.arrangement.key, proposer.key, strict=True):
                args[column] = term
            args[proposer.column] = Variable(step.variable)
            self._member(proposer.arrangement.relation, tuple(args), True, frozenset(later))

    def _mark_range(self, arrangements: Sequence[StoredArrangement], step: nodes.Extend) -> tuple[int, int]:
        """Range of values that marks cover: the union of the proposers' columns, 0 where it is unknown or too wide."""
        extents = [a.relation.extents[p.column] for a, p in zip(arrangements, step.proposers, strict=True)]
        if any(e is None for e in extents):
            return 0, 0
        known = [e for e in extents if e is not None and e.span]
        if not known:
            return 0, 0
        low, high = min(e.low for e in known), max(e.high for e in known)
        return (low, high - low + 1) if high - low < 2**26 else (0, 0)

    def _reserve_marks(self, proposers: int, span: int) -> int:
        """Room for one extension's marks: per worker, since workers see different rows."""
        offset = self.tables.marks
        bits = (span + 63) // 64 + 1
        first = offset + L.marks.proposers + proposers * L.proposer.size
        for p in range(proposers):
            self.tables.marked.append((offset + L.marks.proposers + p * L.proposer.size, first + p * bits))
        self.tables.marks = first + proposers * bits
        return offset

    def _member(self, name: str, args: Sequence[Term | None], wanted: bool, needed: frozenset[int]) -> None:
        relation = self.storage.relation(name)
        columns = tuple(c for c, a in enumerate(args) if a is not None)
        terms = [a for a in args if a is not None]
        if len(columns) == relation.arity and relation.arity > 0 and not relation.keyed:
            relation = self.storage.set_of(name)
            keys = [self.terms.register(t) for t in terms]
            live = self.code.live(needed)
            head = I.Contains.operands(relation=relation.address, is_positive=int(wanted), live=len(live))
            self.code.emit(Operation.CONTAINS, *head, *live, *keys)
        else:
            arrangement = self.storage.arrangement(nodes.Arrangement(name, columns))
            group = self._group(arrangement, terms)
            live = self.code.live(needed)
            head = I.HasGroup.operands(arrangement=arrangement.address, is_positive=int(wanted), live=len(live))
            self.code.emit(Operation.HAS_GROUP, *head, *live, group)

    def _filter(self, compare: Compare, needed: frozenset[int]) -> None:
        left, right = self.terms.register(compare.left), self.terms.register(compare.right)
        op = compare.op
        if op in (">", ">="):
            left, right, op = right, left, COMPARISONS[op].mirrored
        live = self.code.live(needed)
        known = _COMPARE[compare.kind].get(op)
        if known is not None:
            head = I.Compare.operands(comparison=known, left=left, right=right, live=len(live))
            self.code.emit(Operation.COMPARE, *head, *live)
            return
        target = self.code.fresh()
        self.terms.external(op, Text[COMPARISONS[op].text], (left, right), (Kind.SYMBOL, Kind.SYMBOL), None, target)
        self.code.emit(Operation.MASK, *I.Mask.operands(mask=target, live=len(live)), *live)

    def _unpack(self, step: nodes.UnpackRecord, needed: frozenset[int]) -> None:
        kinds = self.storage.field_kinds(step.type)
        source = self.code.registers[step.variable]
        live = self.code.live(needed)
        bound = [(f, self.code.bind(v, kinds[f])) for f, v in step.binds if v in needed]
        flat = [w for pair in bound for w in pair]
        records = self.storage.records(len(kinds)).address
        head = I.Unpack.operands(relation=records, record=source, bound=len(bound), live=len(live))
        self.code.emit(Operation.UNPACK, *head, *flat, *live)

    def _generate(self, step: nodes.Generate, needed: frozenset[int]) -> None:
        args = [self.terms.register(t) for t in step.args]
        if step.function != "range":
            self._rows_of_call(step, args, needed)
            return
        carried = self.code.next_level(needed)
        targets = [self.code.bind(v, step.kind) for _, v in step.binds if v in needed]
        target = targets[0] if targets else self.code.fresh()
        first, end, *steps = args
        head = I.Range.operands(
            form=_RANGES[step.kind],
            first=first,
            end=end,
            step=steps[0] if steps else L.NO_REGISTER,
            target=target,
            carried=len(carried),
        )
        self.code.emit(Operation.RANGE, *head, *(w for pair in carried for w in pair))

    def _rows_of_call(self, step: nodes.Generate, args: Sequence[int], needed: frozenset[int]) -> None:
        """Python makes the rows for a block, which the next level goes through."""
        produced = ProducedRows()
        arg_kinds = tuple(self.terms.kind(t) for t in step.args)
        self.terms.external(step.function, Text.NONE, tuple(args), arg_kinds, None, self.code.fresh(), produced)
        carried = self.code.next_level(needed)
        kinds = kinds_of(step.function, step.kind)
        bound = [(column, self.code.bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.CalledRows.operands(produced=produced.address, carried=len(carried), bound=len(bound))
        self.code.emit(Operation.CALLED, *head, *flat)

    def _look_up(self, step: nodes.LookUp, needed: frozenset[int]) -> None:
        relation = self.storage.relation(step.relation)
        keys = [self.terms.register(t) for t in step.key]
        row = self.code.fresh()
        self.code.emit(Operation.FIND, *I.Find.operands(relation=relation.address, row=row), *keys)
        live = self.code.live(needed)
        target = self.code.bind(step.variable, relation.kinds[len(step.key)])
        live = [*live, target] if step.default is None else live
        head = I.Fetch.operands(
            relation=relation.address,
            column=len(step.key),
            row=row,
            target=target,
            has_default=int(step.default is not None),
            default=step.default or 0,
            live=len(live),
        )
        self.code.emit(Operation.FETCH, *head, *live)

    # ------------------------------------------------------------------------------------------------------------- sink

    def _sink(self) -> None:
        for sink in self.path.also:
            self._accumulate(Operation.MERGE_AND, self.storage.relation(sink.relation), sink.key, sink.value)
        match self.path.sink:
            case nodes.Insert(relation=name, terms=terms, distinct=distinct):
                relation = self.storage.relation(name)
                values = [self.terms.register(t) for t in terms]
                head = I.Sink.operands(relation=relation.address)
                if relation.keyed:
                    self.code.shareable = self.code.shareable and not relation.struct[L.relation.heap]
                    self.code.emit(Operation.MERGE, *head, *values, *(values[c] for c in relation.key))
                elif distinct:
                    self.code.emit(Operation.INSERT, *head, *values)
                else:
                    self.code.emit(Operation.APPEND, *head, *values)
            case nodes.Accumulate(relation=name, key=key, value=value):
                self._accumulate(Operation.MERGE, self.storage.relation(name), key, value)
            case _:
                assert_never(self.path.sink)

    def _accumulate(self, op: Operation, relation: StoredRelation, key: Sequence[Term], value: Term | None) -> None:
        keys = [self.terms.register(t) for t in key]
        one = self.tables.constant(1)
        values = [one if value is None else self.terms.value_as(value, relation.kinds[len(keys)])]
        if relation.arity == len(keys) + 2:
            values.append(one)
        self.code.emit(op, *I.Sink.operands(relation=relation.address), *keys, *values, *keys)
