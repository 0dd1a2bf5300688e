"""Lowering: a delta-query path of the plan becomes code for the machine (kernels/machine.py).

Registers are per level: a generator copies what later steps still need into fresh registers, so a level that is being resumed
never finds its rows overwritten. Constants live in registers of their own, filled once for the scope.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, assert_never

import numpy as np

from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.ir import nodes
from dlog.engine.ir.functors import FUNCTORS, is_called
from dlog.engine.ir.rules import Compare, Constant, Functor, Kind, Record, Term, Variable
from dlog.engine.ir.signatures import KEEP
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.arithmetic import Arithmetic
from dlog.engine.kernels.codes import Comparison, Operation, RangeForm, TextForm
from dlog.engine.kernels.values.texts import READING, Text
from dlog.engine.plan.joins.emit import sink_terms
from dlog.engine.runtime.lowering.sweeping import is_twin, swept_columns
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.native import Struct, words
from dlog.engine.runtime.storage.relation import StoredRelation
from dlog.engine.values.patterns import Verdicts
from dlog.grammar.diagnostics import Diagnostic, DlogError

CONSTANTS = 1 << 15
"""First register of the scope's constants; a path uses lower ones. Nobody touches the memory of those that none uses."""

_COMPARE = {
    Kind.NUMBER: {"=": Comparison.EQ, "!=": Comparison.NE, "<": Comparison.LT, "<=": Comparison.LE},
    Kind.UNSIGNED: {"=": Comparison.EQ, "!=": Comparison.NE, "<": Comparison.LT_U, "<=": Comparison.LE_U},
    Kind.FLOAT: {"=": Comparison.EQ_F, "!=": Comparison.NE_F, "<": Comparison.LT_F, "<=": Comparison.LE_F},
    Kind.SYMBOL: {"=": Comparison.EQ, "!=": Comparison.NE},
    Kind.RECORD: {"=": Comparison.EQ, "!=": Comparison.NE},
}
_RANGES = {Kind.NUMBER: RangeForm.NUMBER, Kind.UNSIGNED: RangeForm.UNSIGNED, Kind.FLOAT: RangeForm.FLOAT}
_FORMS = {
    Kind.SYMBOL: TextForm.ID,
    Kind.NUMBER: TextForm.NUMBER,
    Kind.UNSIGNED: TextForm.UNSIGNED,
    Kind.FLOAT: TextForm.FLOAT,
    Kind.RECORD: TextForm.NUMBER,
}
_TEXTS = {Text.DATE_TEXT: TextForm.DATE, Text.TIMESTAMP_TEXT: TextForm.TIMESTAMP}
"""What the arguments are whatever their kind."""


class ProducedRows:
    """Rows that a table function has made for the block at hand: see `machine_structs.Produced`."""

    def __init__(self) -> None:
        self._struct = Struct(L.produced.size)
        self._kept: tuple[np.ndarray, ...] = ()
        self.address = self._struct.address

    def take(self, offsets: np.ndarray, columns: Sequence[np.ndarray]) -> None:
        """The rows of row i of the block are those from offsets[i] on, before offsets[i + 1]."""
        values = np.ascontiguousarray(np.stack(columns))
        self._kept = offsets, values
        self._struct[L.produced.offsets], self._struct[L.produced.values] = offsets.ctypes.data, values.ctypes.data
        self._struct[L.produced.stride] = values.shape[1]


@dataclass(frozen=True, slots=True)
class ExternalCall:
    """A functor that is no kernel's or makes strings, or a comparison of strings whose mask goes to `target`: what Python needs
    to evaluate it on a block when kernels cannot. `verdicts` are those of a constant pattern."""

    op: str
    args: tuple[int, ...]
    kinds: tuple[Kind, ...]
    result: Kind | None
    target: int
    verdicts: Verdicts | None = None
    produced: ProducedRows | None = None
    """Takes the rows of a table function."""


@dataclass
class LoweredPath:
    """A path's struct and code; `marks` are the words of marks each worker must hold for its extensions."""

    path: nodes.Path
    struct: Struct
    code: list[Struct]
    shareable: bool
    """Several workers may run it at once: it makes no records and no strings and calls no Python."""

    @property
    def address(self) -> int:
        return self.struct.address


class Storage(Protocol):
    """The relations and indexes that a path reads and writes, for lowering."""

    def relation(self, name: str) -> StoredRelation: ...
    def set_of(self, name: str) -> StoredRelation: ...
    def arrangement(self, wanted: nodes.Arrangement) -> StoredArrangement: ...
    def records(self, arity: int) -> StoredRelation: ...
    def field_kinds(self, record_type: str) -> tuple[Kind, ...]: ...
    def encode(self, constant: Constant) -> int: ...


@dataclass
class Tables:
    """Tables shared by the paths of a scope: constants, external calls, room for marks."""

    constants: dict[int, int] = field(default_factory=dict)
    externals: list[ExternalCall] = field(default_factory=list)
    marks: int = 0
    marked: list[tuple[int, int]] = field(default_factory=list)
    """Per proposer of an extension: where its marks are and where its bits begin (words)."""
    registers: int = 0
    levels: int = 1
    """Of the longest path."""
    remembers: bool = False
    """Whether sweeps remember rows: where these paths are all that derives, from relations that only grow."""
    verdicts: dict[int, Verdicts] = field(default_factory=dict)
    """Of each constant pattern, by its register."""

    def constant(self, value: int) -> int:
        return CONSTANTS + self.constants.setdefault(value, len(self.constants))


class PathLowering:
    """Lowers one path; one instance per path."""

    def __init__(self, path: nodes.Path, storage: Storage, tables: Tables) -> None:
        self.path = path
        self.storage = storage
        self.tables = tables
        self.levels: list[list[int]] = []
        self.code: list[int] = []
        self.registers: dict[int, int] = {}
        self.kinds: dict[int, Kind] = {}
        self.next_register = 0
        self.shareable = True
        self.swept = False
        self.needed = _needed_after(path)

    def lower(self) -> LoweredPath:
        self._seed()
        for index, step in enumerate(self.path.steps):
            self._step(step, self.needed[index])
        if not self.swept:
            self._sink()
        self.levels.append(self.code)
        self.tables.registers = max(self.tables.registers, self.next_register)
        self.tables.levels = max(self.tables.levels, len(self.levels))
        if self.next_register > CONSTANTS:
            message = f"a rule has {len(self.path.steps) + 1} atoms that hand on too many variables"
            raise DlogError(Diagnostic("rule-too-long", message, notes=("derive a part of its body in a relation of its own",)))
        return self._finish()

    def _finish(self) -> LoweredPath:
        code = [words(level) for level in self.levels]
        struct = Struct(L.path.size)
        struct[L.path.levels] = len(code)
        struct.point(L.path.code, words(c.address for c in code))
        if isinstance(self.path.seed, nodes.Scan):
            struct[L.path.seed] = self.storage.relation(self.path.seed.relation).address
            struct[L.path.changes] = int(self.path.seed.changes)
        return LoweredPath(self.path, struct, code, self.shareable)

    # ------------------------------------------------------------------------------------------------------------- code

    def _emit(self, op: int, *operands: int) -> None:
        self.code += [op, len(operands) + 2, *operands]

    def _fresh(self) -> int:
        self.next_register += 1
        return self.next_register - 1

    def _bind(self, variable: int, kind: Kind | None = None) -> int:
        """A fresh register for a variable; `kind` when it is bound for the first time."""
        self.registers[variable] = self._fresh()
        if kind is not None:
            self.kinds[variable] = kind
        return self.registers[variable]

    def _live(self, needed: frozenset[int]) -> list[int]:
        return [r for v, r in sorted(self.registers.items()) if v in needed]

    def _next_level(self, needed: frozenset[int]) -> list[tuple[int, int]]:
        """Ends the level; returns the (src, dst) registers that the next generator carries over."""
        self._emit(Operation.NEXT)
        self.levels.append(self.code)
        self.code = []
        carried = []
        old = self.registers
        self.registers = {}
        for variable, register in sorted(old.items()):
            if variable in needed:
                carried.append((register, self._bind(variable)))
        return carried

    def _seed(self) -> None:
        match self.path.seed:
            case nodes.Unit():
                self._emit(Operation.UNIT)
            case nodes.Scan(relation=name, binds=binds, changes=changes):
                relation = self.storage.relation(name)
                pairs = [w for column, variable in binds for w in (column, self._bind(variable, relation.kinds[column]))]
                if changes and relation.struct[L.relation.heap]:
                    self._emit(Operation.QUEUE, *I.ScanQueue.operands(relation=relation.address, bound=len(binds)), *pairs)
                else:
                    head = I.Scan.operands(relation=relation.address, changes=int(changes), bound=len(binds))
                    self._emit(Operation.SCAN, *head, *pairs)
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
                source = self._term(term)
                target = self._bind(variable, self._kind(term))
                self._emit(Operation.MOVE, *I.Copy.operands(source=source, target=target))
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
        carried = self._next_level(needed)
        kinds = arrangement.relation.kinds
        bound = [(column, self._bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.Join.operands(arrangement=arrangement.address, group=group, carried=len(carried), bound=len(bound))
        self._emit(Operation.JOIN, *head, *flat)

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
        base = self._fresh()
        values = [base if c == place else self._term(t) for c, t in enumerate(self.path.sink.terms)]
        self._emit(Operation.NEXT)
        self.levels.append(self.code)
        self.code = []
        head = I.Sweep.operands(
            source=source,
            start=start,
            column=column,
            relation=target.address,
            swept=place,
            bases=base,
            last=last,
            seen=self._reserve_seen(),
        )
        self._emit(op, *head, *values)
        self.swept = True

    def _reserve_seen(self) -> int:
        """The position among the marks at which a sweep remembers rows, 0 where it does not: each worker does, beside the
        account of memory. A path of one join hardly meets a row twice."""
        if not self.tables.remembers or len(self.path.steps) < 2:
            return 0
        place = self.tables.marks + 1
        self.tables.marks = place + L.SEEN
        return place

    def _group(self, arrangement: StoredArrangement, key: Sequence[Term]) -> int:
        keys = [self._term(t) for t in key]
        group = self._fresh()
        self._emit(Operation.GROUP, *I.FindGroup.operands(arrangement=arrangement.address, group=group), *keys)
        return group

    def _extend(self, step: nodes.Extend, needed: frozenset[int]) -> None:
        arrangements = [self.storage.arrangement(p.arrangement) for p in step.proposers]
        groups = [self._group(a, p.key) for a, p in zip(arrangements, step.proposers, strict=True)]
        growing = [(a, p) for a, p in zip(arrangements, step.proposers, strict=True) if a.growing]
        later = needed | {v.id for _, p in growing for v in p.key if isinstance(v, Variable)}
        if growing:
            later |= {step.variable}
        carried = self._next_level(frozenset(later))
        target = self._bind(step.variable, arrangements[0].relation.kinds[step.proposers[0].column])
        low, span = self._mark_range(arrangements, step)
        offset = self._reserve_marks(len(arrangements), span)
        proposers = [w for a, g, p in zip(arrangements, groups, step.proposers, strict=True) for w in (a.address, g, p.column)]
        flat = [w for pair in carried for w in pair]
        counts = {"proposers": len(arrangements), "carried": len(carried)}
        head = I.Extend.operands(target=target, marks=offset, low=low, span=span, **counts)
        self._emit(Operation.EXTEND, *head, *proposers, *flat)
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
            keys = [self._term(t) for t in terms]
            live = self._live(needed)
            head = I.Contains.operands(relation=relation.address, wanted=int(wanted), live=len(live))
            self._emit(Operation.CONTAINS, *head, *live, *keys)
        else:
            arrangement = self.storage.arrangement(nodes.Arrangement(name, columns))
            group = self._group(arrangement, terms)
            live = self._live(needed)
            head = I.HasGroup.operands(arrangement=arrangement.address, wanted=int(wanted), live=len(live))
            self._emit(Operation.HAS_GROUP, *head, *live, group)

    def _filter(self, compare: Compare, needed: frozenset[int]) -> None:
        left, right = self._term(compare.left), self._term(compare.right)
        op = compare.op
        if op in (">", ">="):
            left, right, op = right, left, COMPARISONS[op].mirrored
        live = self._live(needed)
        known = _COMPARE[compare.kind].get(op)
        if known is not None:
            self._emit(Operation.COMPARE, *I.Compare.operands(comparison=known, left=left, right=right, live=len(live)), *live)
            return
        target = self._fresh()
        self._external(op, Text[COMPARISONS[op].text], (left, right), (Kind.SYMBOL, Kind.SYMBOL), None, target)
        self._emit(Operation.MASK, *I.Mask.operands(mask=target, live=len(live)), *live)

    def _external(
        self,
        op: str,
        native: Text,
        args: tuple[int, ...],
        kinds: tuple[Kind, ...],
        result: Kind | None,
        target: int,
        produced: ProducedRows | None = None,
    ) -> None:
        self.shareable = self.shareable and native in READING
        verdicts = None
        if native in (Text.MATCH, Text.MATCH_NOT):
            if args[0] >= CONSTANTS:
                verdicts = self.tables.verdicts.setdefault(args[0], Verdicts())
            else:
                native = Text.NONE
        self.tables.externals.append(ExternalCall(op, args, kinds, result, target, verdicts, produced))
        known = 0 if verdicts is None else verdicts.address
        alike = _TEXTS.get(native)
        forms = [w for kind, register in zip(kinds, args, strict=True) for w in (alike or _FORMS[kind], register)]
        number = len(self.tables.externals) - 1
        head = I.External.operands(number=number, native=native, target=target, verdicts=known, count=len(args))
        self._emit(Operation.EXTERNAL, *head, *forms)

    def _unpack(self, step: nodes.UnpackRecord, needed: frozenset[int]) -> None:
        kinds = self.storage.field_kinds(step.type)
        source = self.registers[step.variable]
        live = self._live(needed)
        bound = [(f, self._bind(v, kinds[f])) for f, v in step.binds if v in needed]
        flat = [w for pair in bound for w in pair]
        records = self.storage.records(len(kinds)).address
        head = I.Unpack.operands(relation=records, record=source, bound=len(bound), live=len(live))
        self._emit(Operation.UNPACK, *head, *flat, *live)

    def _generate(self, step: nodes.Generate, needed: frozenset[int]) -> None:
        args = [self._term(t) for t in step.args]
        if step.function != "range":
            self._rows_of_call(step, args, needed)
            return
        carried = self._next_level(needed)
        targets = [self._bind(v, step.kind) for _, v in step.binds if v in needed]
        target = targets[0] if targets else self._fresh()
        first, end, *steps = args
        head = I.Range.operands(
            form=_RANGES[step.kind],
            first=first,
            end=end,
            step=steps[0] if steps else -1,
            target=target,
            carried=len(carried),
        )
        self._emit(Operation.RANGE, *head, *(w for pair in carried for w in pair))

    def _rows_of_call(self, step: nodes.Generate, args: Sequence[int], needed: frozenset[int]) -> None:
        """Python makes the rows for a block, which the next level goes through."""
        produced = ProducedRows()
        arg_kinds = tuple(self._kind(t) for t in step.args)
        self._external(step.function, Text.NONE, tuple(args), arg_kinds, None, self._fresh(), produced)
        carried = self._next_level(needed)
        kinds = TABLE_FUNCTIONS[step.function].kinds(step.kind)
        bound = [(column, self._bind(variable, kinds[column])) for column, variable in step.binds if variable in needed]
        flat = [w for pair in (*carried, *bound) for w in pair]
        head = I.CalledRows.operands(produced=produced.address, carried=len(carried), bound=len(bound))
        self._emit(Operation.CALLED, *head, *flat)

    def _look_up(self, step: nodes.LookUp, needed: frozenset[int]) -> None:
        relation = self.storage.relation(step.relation)
        keys = [self._term(t) for t in step.key]
        row = self._fresh()
        self._emit(Operation.FIND, *I.Find.operands(relation=relation.address, row=row), *keys)
        live = self._live(needed)
        target = self._bind(step.variable, relation.kinds[len(step.key)])
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
        self._emit(Operation.FETCH, *head, *live)

    # ------------------------------------------------------------------------------------------------------------ terms

    def _term(self, term: Term) -> int:
        """The register that holds the term's value."""
        match term:
            case Variable(id=number):
                return self.registers[number]
            case Constant():
                return self._constant(term)
            case Record(args=args):
                fields = [self._term(a) for a in args]
                target = self._fresh()
                self.shareable = False
                self._emit(
                    Operation.PACK, *I.Pack.operands(relation=self.storage.records(len(args)).address, target=target), *fields
                )
                return target
            case Functor():
                return self._functor(term)

    def _constant(self, term: Constant) -> int:
        return self.tables.constant(self.storage.encode(term))

    def _kind(self, term: Term) -> Kind:
        match term:
            case Variable(id=number):
                return self.kinds[number]
            case Constant(kind=kind):
                return kind
            case Functor(result=result):
                return result
            case Record():
                return Kind.RECORD

    def _functor(self, term: Functor) -> int:
        kinds = tuple(self._kind(a) for a in term.args)
        op = operation(term, kinds)
        if op is Text.CAT:
            return self._cat(term)
        args = [self._term(a) for a in term.args]
        if op is None:
            return args[0]
        if isinstance(op, Text):
            target = self._fresh()
            self._external(term.op, op, tuple(args), kinds, term.result, target)
            return target
        result = args[0]
        for other in args[1:] or args:
            target = self._fresh()
            self._emit(Operation.ARITHMETIC, *I.Compute.operands(function=op, left=result, right=other, target=target))
            result = target
        return result

    def _cat(self, term: Functor) -> int:
        """One instruction for nested concatenations: what is inside makes no strings of its own."""
        pieces = list(self._pieces(term))
        args, kinds = tuple(self._term(p) for p in pieces), tuple(self._kind(p) for p in pieces)
        if kinds == (Kind.SYMBOL,):
            return args[0]
        target = self._fresh()
        self._external("cat", Text.CAT, args, kinds, Kind.SYMBOL, target)
        return target

    def _pieces(self, term: Term) -> Iterator[Term]:
        """The terms whose values' texts, one after the other, are the text of a term."""
        if isinstance(term, Functor) and term.op in ("cat", "to_string") and term.result is Kind.SYMBOL:
            for arg in term.args:
                yield from self._pieces(arg)
        else:
            yield term

    # ------------------------------------------------------------------------------------------------------------- sink

    def _sink(self) -> None:
        match self.path.sink:
            case nodes.Insert(relation=name, terms=terms, distinct=distinct):
                relation = self.storage.relation(name)
                values = [self._term(t) for t in terms]
                head = I.Sink.operands(relation=relation.address)
                if relation.keyed:
                    self.shareable = self.shareable and not relation.struct[L.relation.heap]
                    self._emit(Operation.MERGE, *head, *values, *(values[c] for c in relation.key))
                elif distinct:
                    self._emit(Operation.INSERT, *head, *values)
                else:
                    self._emit(Operation.APPEND, *head, *values)
            case nodes.Accumulate(relation=name, key=key, value=value):
                self._accumulate(self.storage.relation(name), key, value)
            case _:
                assert_never(self.path.sink)

    def _accumulate(self, relation: StoredRelation, key: Sequence[Term], value: Term | None) -> None:
        keys = [self._term(t) for t in key]
        one = self.tables.constant(1)
        values = [one if value is None else self._value(value, relation.kinds[len(keys)])]
        if relation.arity == len(keys) + 2:
            values.append(one)
        self._emit(Operation.MERGE, *I.Sink.operands(relation=relation.address), *keys, *values, *keys)

    def _value(self, value: Term, wanted: Kind) -> int:
        """The register of an aggregated value: numbers as floats for a mean."""
        register, kind = self._term(value), self._kind(value)
        if wanted is Kind.FLOAT and kind is not Kind.FLOAT:
            target = self._fresh()
            convert = Arithmetic[FUNCTORS[FUNCTORS["to_float"].overloads[kind]].opcodes[kind]]
            operands = I.Compute.operands(function=convert, left=register, right=register, target=target)
            self._emit(Operation.ARITHMETIC, *operands)
            return target
        return register


def operation(term: Functor, kinds: tuple[Kind, ...]) -> Arithmetic | Text | None:
    """What the kernels do for a functor on arguments of these kinds, of more than two from the left; None where the value has
    the argument's bits."""
    if is_called(term.op):
        return Text.NONE
    opcode = FUNCTORS[term.op].opcodes[kinds[0]]
    if opcode == KEEP:
        return None
    return Text[opcode] if Kind.SYMBOL in (kinds[0], term.result) else Arithmetic[opcode]


def _needed_after(path: nodes.Path) -> list[frozenset[int]]:
    """Per step, the variables that later steps or the sink read."""
    needed: set[int] = set()
    match path.sink:
        case nodes.Insert():
            _add_variables(sink_terms(path.sink), needed)
        case nodes.Accumulate(key=key, value=value):
            _add_variables((*key, value), needed)
        case _:
            assert_never(path.sink)
    result = []
    for step in reversed(path.steps):
        result.append(frozenset(needed))
        _add_variables(_terms_of(step), needed)
    return result[::-1]


def reads(step: nodes.Step) -> set[int]:
    """The variables that a step reads."""
    found: set[int] = set()
    _add_variables(_terms_of(step), found)
    return found


def _terms_of(step: nodes.Step) -> Sequence[Term | None]:
    match step:
        case nodes.HalfJoin(key=key) | nodes.LookUp(key=key):
            return key
        case nodes.Extend(proposers=proposers):
            return [t for p in proposers for t in p.key]
        case nodes.SemiJoin(args=args) | nodes.AntiJoin(args=args):
            return args
        case nodes.Filter(compare=compare):
            return compare.left, compare.right
        case nodes.Generate(args=args):
            return args
        case nodes.Map(term=term):
            return (term,)
        case nodes.UnpackRecord(variable=variable):
            return (Variable(variable),)


def _add_variables(terms: Iterable[Term | None], found: set[int]) -> None:
    """Adds the ids of the variables in terms."""
    for term in terms:
        if isinstance(term, Variable):
            found.add(term.id)
        elif isinstance(term, Functor | Record):
            _add_variables(term.args, found)
