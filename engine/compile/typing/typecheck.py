"""Type inference of one clause: every term gets one kind, every functor one overload, every record its type.

    .decl p(x: float)      p(y + 1) :- q(y).     ->   `+` works on FLOAT, and `1` is 1.0

Constraints are equalities between slots and restrictions of slots to kinds, so one pass over the clause and a fixed point
over record patterns decide everything. A number nobody restricts further is a `number`. Subtypes are checked afterwards
(subtypes.py).
"""

from __future__ import annotations

from typing import assert_never

from dlog.engine.compile.normal.comparisons import COMPARISONS, HAS_TYPE
from dlog.engine.compile.normal.literals import calendar_literal, literal_kinds, literal_text, number_constant
from dlog.engine.compile.prints import CALL
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.resolve import Resolved
from dlog.engine.compile.scope import Aggregation, Scoped, ScopedClause
from dlog.engine.compile.typing.slots import Evidence, Slots, kinds_name
from dlog.engine.compile.typing.typed import (
    TypedAggregate,
    TypedAtom,
    TypedClause,
    TypedCompare,
    TypedFalse,
    TypedGenerator,
    TypedLiteral,
    TypedTerm,
)
from dlog.engine.ir.aggregates import AGGREGATES, functor_of, is_user_aggregate
from dlog.engine.ir.functors import find_functor
from dlog.engine.ir.kinds import ALL, INTEGRAL, NUMERIC, ORDERED
from dlog.engine.ir.kinds import NUMBER as NUMBERS
from dlog.engine.ir.kinds import SYMBOL as SYMBOLS
from dlog.engine.ir.rules import NOW, Kind, Type
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS, TableFunction
from dlog.grammar.diagnostics import InternalError
from dlog.grammar.source import Span
from dlog.grammar.syntax import (
    AggregateTerm,
    Atom,
    BranchTerm,
    Call,
    Cast,
    Constraint,
    Counter,
    Nil,
    Not,
    Number,
    RecordTerm,
    String,
    Term,
    Truth,
    Variable,
    Wildcard,
)

_RECORD = frozenset({Kind.RECORD})


def typecheck(clause: ScopedClause, resolved: Resolved, problems: Problems) -> TypedClause:
    """The clause with all its types known. After an error the result is not meaningful, but well formed."""
    return _Checker(resolved, problems).clause(clause)


class _Checker:
    def __init__(self, resolved: Resolved, problems: Problems) -> None:
        self.resolved = resolved
        self.types = resolved.table.types
        self.problems = problems
        self.before = len(problems)
        self.slots = Slots(problems)
        self.names: dict[str, int] = {}
        self.records: list[TypedTerm] = []
        self.nils: list[TypedTerm] = []
        self.anonymous: dict[int, TypedTerm] = {}
        """By class of slots: a record of it, where none has a declared type."""
        self.same: set[tuple[int, int]] = set()
        self.numbers: list[tuple[str, int, Span]] = []

    def clause(self, clause: ScopedClause) -> TypedClause:
        body = self._literals(clause.body)
        head = self._atom(clause.head, False, clause.head.span)
        self._settle_records()
        kinds = tuple(self._choose(slot) for slot in range(len(self.slots)))
        for text, slot, span in self.numbers:
            self._check_range(text, kinds[slot], span)
        self._name_anonymous()
        records = tuple(self.slots.record(slot) for slot in range(len(self.slots)))
        return TypedClause(head, body, self.names, kinds, records, clause.text, clause.span)

    # -------------------------------------------------------------------------------------------------------- literals

    def _literals(self, literals: tuple[Scoped, ...]) -> tuple[TypedLiteral, ...]:
        found = (self._literal(literal) for literal in literals)
        return tuple(literal for literal in found if literal is not None)

    def _literal(self, literal: Scoped) -> TypedLiteral | None:
        match literal:
            case Atom():
                return self._atom(literal, False, literal.span)
            case Not(body=Atom() as atom):
                return self._atom(atom, True, literal.span)
            case Constraint(op=op, left=left, right=String(value=name)) if op == HAS_TYPE:
                typed, found = self._term(left), self.types[name]
                why = Evidence(left.span, _what(found), "an argument of an inline relation")
                self.slots.restrict_type(typed.slot, found, why)
                return None
            case Constraint(op="=", left=left, right=Call(name=name) as call) if name in TABLE_FUNCTIONS:
                return self._generator(left, call, literal.span)
            case Constraint():
                return self._compare(literal)
            case Aggregation():
                return self._aggregate(literal)
            case Truth() | Not():
                return TypedFalse(literal.span)
            case _:
                assert_never(literal)

    def _atom(self, atom: Atom, negated: bool, span: Span) -> TypedAtom:
        relation = self.resolved.relations[atom.name]
        declared = self.resolved.attributes[atom.name]
        args = []
        for arg, (name, found), attribute in zip(atom.args, relation.attributes, declared, strict=True):
            typed = self._term(arg)
            why = f"attribute `{name}` of `{atom.name}`"
            self.slots.restrict_type(typed.slot, found, Evidence(arg.span, _what(found), why, attribute.span))
            args.append(typed)
        return TypedAtom(atom.name, tuple(args), negated, span)

    def _compare(self, constraint: Constraint) -> TypedCompare:
        left, right = self._term(constraint.left), self._term(constraint.right)
        if self.slots.unify(left.slot, right.slot, constraint.span):
            allowed = COMPARISONS[constraint.op].kinds
            if allowed != ALL:
                name = constraint.op.removeprefix("not_")
                self.slots.restrict(left.slot, allowed, Evidence(constraint.span, kinds_name(allowed), f"compared by `{name}`"))
        return TypedCompare(constraint.op, left, right, constraint.span)

    def _generator(self, pattern: Term, call: Call, span: Span) -> TypedGenerator:
        row = TABLE_FUNCTIONS[call.name]
        args = tuple(self._term(a) for a in call.args)
        good = True
        for arg, allowed in zip(args, row.args, strict=False):
            why = Evidence(arg.node.span, kinds_name(allowed), f"an argument of `{call.name}`")
            good = self.slots.restrict(arg.slot, allowed, why) and good
        common = self.slots.new()
        if row.is_overloaded:
            why = Evidence(call.span, kinds_name(row.args[0]), f"the result of `{call.name}`")
            self.slots.restrict(common, row.args[0], why)
        for arg in args if good and row.is_overloaded else ():
            if not self.slots.unify(common, arg.slot, arg.node.span):
                break
        results = tuple(self._term(t) for t in self._results(pattern, row, call))
        for result, column in zip(results, row.columns, strict=False):
            if column.kind is None:
                self.slots.unify(common, result.slot, span)
            else:
                found = Type(column.kind.value, column.kind)
                self.slots.restrict_type(result.slot, found, Evidence(call.span, found.name, f"a result of `{call.name}`"))
        return TypedGenerator(call.name, args, results, common, span)

    def _results(self, pattern: Term, row: TableFunction, call: Call) -> tuple[Term, ...]:
        """The terms that take the columns of a table function's rows; one that is no list takes the last column."""
        width = len(row.columns)
        if width == 1 or not isinstance(pattern, RecordTerm):
            return (*(Wildcard(span=call.span),) * (width - 1), pattern)
        if len(pattern.args) != width:
            shown = ", ".join(column.name for column in row.columns)
            message = f"`{row.name}` gives rows of {width} values, but {len(pattern.args)} are named"
            notes = [f"write `[{shown}] = {row.name}(...)`, or `{row.columns[-1].name} = {row.name}(...)` for the last one"]
            self.problems.add("wrong-arity", message, Label(call.span), notes=notes)
        return pattern.args[:width]

    def _aggregate(self, aggregation: Aggregation) -> TypedAggregate:
        bodies = tuple(self._literals(body) for body in aggregation.alternatives)
        target = None if aggregation.target is None else self._term(aggregation.target)
        slot = self._variable(aggregation.result)
        op, span = aggregation.op, aggregation.span
        if is_user_aggregate(op):
            self._user_aggregate(aggregation, slot, target)
            return TypedAggregate(aggregation.result, slot, op, target, bodies, aggregation.own, span, aggregation.init)
        row = AGGREGATES[op]
        if row.result is not None:
            found = Type(row.result.value, row.result)
            self.slots.restrict_type(slot, found, Evidence(span, found.name, f"the result of `{op}`"))
        if target is not None and row.target:
            node_span = target.node.span
            self.slots.restrict(target.slot, row.target, Evidence(node_span, kinds_name(row.target), f"the target of `{op}`"))
            if row.result is None:
                self.slots.unify(target.slot, slot, span)
        return TypedAggregate(aggregation.result, slot, op, target, bodies, aggregation.own, span)

    def _user_aggregate(self, aggregation: Aggregation, slot: int, target: TypedTerm | None) -> None:
        """Its state is of the functor's first parameter, its values are of the second."""
        declared = self.resolved.functors[functor_of(aggregation.op)]
        assert aggregation.init is not None and target is not None
        typed = (
            (self._variable(aggregation.init), declared.params[0], "what `{}` begins with", aggregation.span),
            (target.slot, declared.params[1], "the target of `{}`", target.node.span),
            (slot, declared.result, "the result of `{}`", aggregation.span),
        )
        for place, found, what, span in typed:
            why = Evidence(span, _what(found), what.format(aggregation.op), declared.span)
            self.slots.restrict_type(place, found, why)

    # ----------------------------------------------------------------------------------------------------------- terms

    def _variable(self, name: str) -> int:
        slot = self.names.get(name)
        if slot is None:
            slot = self.names[name] = self.slots.new()
        return slot

    def _term(self, term: Term) -> TypedTerm:
        text = literal_text(term)
        if text is not None:
            return self._number(term, text)
        match term:
            case Variable(name=name):
                return TypedTerm(term, self._variable(name))
            case Wildcard():
                return TypedTerm(term, self.slots.new())
            case String():
                return TypedTerm(term, self.slots.new(SYMBOLS, Evidence(term.span, "symbol", "a symbol literal")))
            case Nil():
                self.nils.append(TypedTerm(term, self.slots.new(_RECORD, Evidence(term.span, "record", "`nil` is a record"))))
                return self.nils[-1]
            case RecordTerm(args=args):
                return self._record(term, args)
            case BranchTerm():
                return self._branch(term)
            case Call():
                return self._call(term)
            case Cast():
                return self._cast(term)
            case Counter():
                return TypedTerm(term, self.slots.new(NUMBERS, Evidence(term.span, "number", "a counter")), (), True)
            case Number() | AggregateTerm():
                return TypedTerm(term, self.slots.new())
            case _:
                assert_never(term)

    def _number(self, term: Term, text: str) -> TypedTerm:
        kinds = literal_kinds(text)
        what = kinds_name(kinds) if len(kinds) == 1 else "number"
        slot = self.slots.new(kinds, Evidence(term.span, what, "a numeric literal"))
        self.numbers.append((text, slot, term.span))
        return TypedTerm(term, slot)

    def _record(self, term: RecordTerm, args: tuple[Term, ...]) -> TypedTerm:
        fields = tuple(self._term(a) for a in args)
        slot = self.slots.new(_RECORD, Evidence(term.span, "record", "a record"))
        self.records.append(TypedTerm(term, slot, fields))
        return self.records[-1]

    def _branch(self, term: BranchTerm) -> TypedTerm:
        """The name of a branch says its type, and so those of its arguments."""
        adt, declared = self.resolved.table.branches[term.branch]
        args = tuple(self._term(a) for a in term.args)
        for arg, field in zip(args, declared.fields, strict=True):
            found, why = self.types[field.type], f"field `{field.name}` of `${term.branch}`"
            self.slots.restrict_type(arg.slot, found, Evidence(arg.node.span, _what(found), why, field.span))
        slot = self.slots.new()
        why = f"`${term.branch}` is a branch of `{adt}`"
        self.slots.restrict_type(slot, self.types[adt], Evidence(term.span, adt, why))
        return TypedTerm(term, slot, args)

    def _user_call(self, call: Call) -> TypedTerm:
        declared = self.resolved.functors[call.name[1:]]
        args = tuple(self._term(a) for a in call.args)
        for arg, found in zip(args, declared.params, strict=True):
            why = Evidence(arg.node.span, _what(found), f"an argument of `{call.name}`", declared.span)
            self.slots.restrict_type(arg.slot, found, why)
        slot = self.slots.new()
        why = Evidence(call.span, _what(declared.result), f"the result of `{call.name}`", declared.span)
        self.slots.restrict_type(slot, declared.result, why)
        return TypedTerm(call, slot, args, declared.stateful)

    def _call(self, call: Call) -> TypedTerm:
        if call.name.startswith("@"):
            return self._user_call(call)
        if call.name == NOW:
            return TypedTerm(call, self.slots.new(INTEGRAL, Evidence(call.span, "number", "the round")))
        if call.name == CALL:
            why = Evidence(call.span, "number", "what `print` gives")
            return TypedTerm(call, self.slots.new(NUMBERS, why), tuple(self._term(a) for a in call.args), True)
        row = find_functor(call.name, len(call.args))
        if row is None:
            raise InternalError("typecheck", f"no functor `{call.name}`")
        signature = row.signature
        self._check_date(call)
        args = tuple(self._term(a) for a in call.args)
        good = True
        for index, arg in enumerate(args):
            allowed = signature.arg(index)
            if allowed != ALL:
                why = Evidence(arg.node.span, kinds_name(allowed), f"an argument of `{call.name}`")
                good = self.slots.restrict(arg.slot, allowed, why) and good
        if signature.result is not None:
            why = Evidence(call.span, signature.result.value, f"the result of `{call.name}`")
            return TypedTerm(call, self.slots.new(frozenset({signature.result}), why), args)
        slot = self.slots.new(ORDERED, None)
        for arg in args if good else ():
            if not self.slots.unify(slot, arg.slot, arg.node.span):
                break
        return TypedTerm(call, slot, args)

    def _check_date(self, call: Call) -> None:
        try:
            calendar_literal(call)
        except ValueError:
            example = {"date": "2026-11-25"}.get(call.name, "2026-11-25T12:30:00")
            notes = [f'write {call.name}("{example}"), a day that there is']
            self.problems.add("bad-date", f"this text is no {call.name}", Label(call.args[0].span), notes=notes)

    def _cast(self, cast: Cast) -> TypedTerm:
        inner = self._term(cast.term)
        found = self.types[cast.type]
        slot = self.slots.new()
        why = Evidence(cast.span, _what(found), f"`as(..., {cast.type})`")
        self.slots.restrict_type(slot, found, why)
        if isinstance(cast.term, String | Nil | RecordTerm | BranchTerm) or literal_text(cast.term) is not None:
            self.slots.restrict_type(inner.slot, found, why)
        return TypedTerm(cast, slot, (inner,))

    # -------------------------------------------------------------------------------------------------------- solution

    def _settle_records(self) -> None:
        """Give record patterns their types, from outside in, until no more is known."""
        waiting = self.records
        while waiting:
            later = [r for r in waiting if not self._settle_record(r)]
            if len(later) == len(waiting) and not self._settle_anonymous(later):
                break
            waiting = later
        if len(self.problems) > self.before:
            return  # the type may be unknown because of the mistake already found
        for nil in self.nils:
            name = self.slots.record(nil.slot)
            if name is not None and self.types[name].branches:
                message = f"`nil` is a record, but `{name}` is an algebraic data type"
                self.problems.add("type-mismatch", message, Label(nil.node.span), notes=[self._branches(name)])
        for nil in self.nils:
            if self.slots.kinds(nil.slot) == _RECORD and self.slots.record(nil.slot) is None:
                notes = ["name its type with as(..., T)"]
                self.problems.add("ambiguous-record", "cannot tell the type of `nil`", Label(nil.node.span), notes=notes)

    def _settle_anonymous(self, waiting: list[TypedTerm]) -> bool:
        """Records without a declared type, `[x, 1] = [y, z]`, have one type if they are equal: so have their fields. Whether
        that was news."""
        news = False
        for record in waiting:
            root = self.slots.find(record.slot)
            first = self.anonymous.setdefault(root, record)
            if first is record or (self.slots.find(first.slot), record.slot) in self.same:
                continue
            self.same.add((root, record.slot))
            news = True
            if len(first.args) != len(record.args):
                counts = [f"{len(r.args)} field{'' if len(r.args) == 1 else 's'}" for r in (record, first)]
                labels = (Label(record.node.span, counts[0]), Label(first.node.span, counts[1]))
                self.problems.add("wrong-arity", f"a record of {counts[0]} never equals one of {counts[1]}", *labels)
                continue
            for one, other in zip(first.args, record.args, strict=True):
                self.slots.unify(one.slot, other.slot, other.node.span)
        return news

    def _name_anonymous(self) -> None:
        """Gives records without a declared type one that is named by its fields' types, `[number, symbol]`."""
        if len(self.problems) > self.before:
            return
        self.anonymous = {self.slots.find(record.slot): record for record in self.records}
        for record in self.records:
            if self.slots.record(record.slot) is None:
                self._anonymous_type(record, ())

    def _anonymous_type(self, record: TypedTerm, around: tuple[int, ...]) -> str:
        root = self.slots.find(record.slot)
        if root in around:
            self.problems.add("ambiguous-record", "this record would be inside itself", Label(record.node.span))
            return Kind.NUMBER.value
        names = []
        for arg in record.args:
            inner = self.anonymous.get(self.slots.find(arg.slot))
            name = self.slots.record(arg.slot)
            if name is None:
                kind = self._choose(arg.slot)
                name = kind.value if inner is None else self._anonymous_type(inner, (*around, root))
            names.append(name)
        found = Type(f"[{', '.join(names)}]", Kind.RECORD, tuple((f"_{n}", name) for n, name in enumerate(names)))
        self.types.setdefault(found.name, found)
        self.slots.restrict_type(record.slot, found, Evidence(record.node.span, found.name, "a record of these fields"))
        return found.name

    def _settle_record(self, record: TypedTerm) -> bool:
        name = self.slots.record(record.slot)
        if name is None:
            return False
        fields = self.types[name].fields
        if self.types[name].branches:
            message = f"this is a record, but `{name}` is an algebraic data type"
            self.problems.add("type-mismatch", message, Label(record.node.span), notes=[self._branches(name)])
            return True
        if len(fields) != len(record.args):
            shown = ", ".join(f"{f}: {t}" for f, t in fields)
            message = f"record type `{name}` has {len(fields)} fields, but {len(record.args)} here"
            self.problems.add("wrong-arity", message, Label(record.node.span), notes=[f"{name} = [{shown}]"])
            return True
        for arg, (field, type_name) in zip(record.args, fields, strict=True):
            found = self.types[type_name]
            self.slots.restrict_type(arg.slot, found, Evidence(arg.node.span, _what(found), f"field `{field}` of `{name}`"))
        return True

    def _branches(self, adt: str) -> str:
        shown = ", ".join(f"`{name}`" for name in self.types[adt].branches[:5])
        return f"its values are made by {shown}{', ...' if len(self.types[adt].branches) > 5 else ''}"

    def _choose(self, slot: int) -> Kind:
        """The kind of a slot: a number where several are possible."""
        kinds = self.slots.kinds(slot)
        return next(k for k in (Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT, Kind.SYMBOL, Kind.RECORD) if k in kinds)

    def _check_range(self, text: str, kind: Kind, span: Span) -> None:
        short = self.resolved.table.short
        if kind in NUMERIC and number_constant(text, kind, short) is None:
            bits = 32 if short else 64
            limits = {Kind.NUMBER: f"-2^{bits - 1} to 2^{bits - 1}-1", Kind.UNSIGNED: f"0 to 2^{bits}-1"}.get(
                kind, "the floats of 32 bits" if short else "the doubles"
            )
            notes = [f"{kind.value} literals range over {limits}"]
            self.problems.add("literal-range", f"`{text}` does not fit `{kind.value}`", Label(span), notes=notes)


def _what(found: Type) -> str:
    """The name of a type in a conflict of representations: records by name, subtypes by their kind."""
    if found.is_calendar:
        return found.domain.value
    return found.name if found.kind is Kind.RECORD else found.kind.value
