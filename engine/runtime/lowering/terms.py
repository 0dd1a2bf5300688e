"""Lowering of terms: each value that a step or the sink needs gets a register, and the instructions that fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from dlog.engine.ir.functors import FUNCTORS, is_called
from dlog.engine.ir.rules import Constant, Functor, Kind, Record, Term, Variable
from dlog.engine.ir.signatures import KEEP
from dlog.engine.kernels import instructions as I
from dlog.engine.kernels.arithmetic import Arithmetic
from dlog.engine.kernels.codes import Operation, TextForm
from dlog.engine.kernels.values.texts import READING, Text
from dlog.engine.runtime.lowering.code import Code
from dlog.engine.runtime.lowering.lowered import ExternalCall, ProducedRows, Tables
from dlog.engine.values.patterns import Verdicts

_FORMS = {
    Kind.SYMBOL: TextForm.ID,
    Kind.NUMBER: TextForm.NUMBER,
    Kind.UNSIGNED: TextForm.UNSIGNED,
    Kind.FLOAT: TextForm.FLOAT,
    Kind.RECORD: TextForm.NUMBER,
}
_TEXTS = {Text.DATE_TEXT: TextForm.DATE, Text.TIMESTAMP_TEXT: TextForm.TIMESTAMP}
"""What the arguments are whatever their kind."""


class Addressed(Protocol):
    @property
    def address(self) -> int: ...


class TermLowering:
    """Lowers the terms of one path. `records` gives the relation of records of so many fields, `constant` a constant's
    register."""

    def __init__(
        self,
        code: Code,
        records: Callable[[int], Addressed],
        tables: Tables,
        constant: Callable[[Constant], int],
    ) -> None:
        self.code = code
        self.records = records
        self.tables = tables
        self.constant = constant
        self.calls_python = False
        """Whether some value is one that kernels may leave to Python."""

    def register(self, term: Term) -> int:
        """The register that holds the term's value."""
        match term:
            case Variable(id=number):
                return self.code.registers[number]
            case Constant():
                return self.constant(term)
            case Record(args=args):
                fields = [self.register(a) for a in args]
                target = self.code.fresh()
                self.code.shareable = False
                self.code.emit(
                    Operation.PACK, *I.Pack.operands(relation=self.records(len(args)).address, target=target), *fields
                )
                return target
            case Functor():
                return self._functor(term)

    def kind(self, term: Term) -> Kind:
        match term:
            case Variable(id=number):
                return self.code.kinds[number]
            case Constant(kind=kind):
                return kind
            case Functor(result=result):
                return result
            case Record():
                return Kind.RECORD

    def _functor(self, term: Functor) -> int:
        kinds = tuple(self.kind(a) for a in term.args)
        op = operation(term, kinds)
        if op is Text.CAT:
            return self._cat(term)
        args = [self.register(a) for a in term.args]
        if op is None:
            return args[0]
        if isinstance(op, Text):
            target = self.code.fresh()
            self.external(term.op, op, tuple(args), kinds, term.result, target)
            return target
        result = args[0]
        for other in args[1:] or args:
            target = self.code.fresh()
            self.code.emit(Operation.ARITHMETIC, *I.Compute.operands(function=op, left=result, right=other, target=target))
            result = target
        return result

    def _cat(self, term: Functor) -> int:
        """One instruction for nested concatenations: what is inside makes no strings of its own."""
        pieces = list(self._pieces(term))
        args, kinds = tuple(self.register(p) for p in pieces), tuple(self.kind(p) for p in pieces)
        if kinds == (Kind.SYMBOL,):
            return args[0]
        target = self.code.fresh()
        self.external("cat", Text.CAT, args, kinds, Kind.SYMBOL, target)
        return target

    def _pieces(self, term: Term) -> Iterator[Term]:
        """The terms whose values' texts, one after the other, are the text of a term."""
        if isinstance(term, Functor) and term.op in ("cat", "to_string") and term.result is Kind.SYMBOL:
            for arg in term.args:
                yield from self._pieces(arg)
        else:
            yield term

    def value_as(self, value: Term, wanted: Kind) -> int:
        """The register of an aggregated value: numbers as floats for a mean."""
        register, kind = self.register(value), self.kind(value)
        if wanted is Kind.FLOAT and kind is not Kind.FLOAT:
            target = self.code.fresh()
            convert = Arithmetic[FUNCTORS[FUNCTORS["to_float"].overloads[kind]].opcodes[kind]]
            operands = I.Compute.operands(function=convert, left=register, right=register, target=target)
            self.code.emit(Operation.ARITHMETIC, *operands)
            return target
        return register

    def external(
        self,
        op: str,
        native: Text,
        args: tuple[int, ...],
        kinds: tuple[Kind, ...],
        result: Kind | None,
        target: int,
        produced: ProducedRows | None = None,
    ) -> None:
        self.code.shareable = self.code.shareable and native in READING
        verdicts = None
        if native in (Text.MATCH, Text.MATCH_NOT):
            if args[0] < 0:
                verdicts = self.tables.verdicts.setdefault(args[0], Verdicts())
            else:
                native = Text.NONE
        self.calls_python = True
        self.tables.externals.append(ExternalCall(op, args, kinds, result, target, verdicts, produced))
        known = 0 if verdicts is None else verdicts.address
        alike = _TEXTS.get(native)
        forms = [w for kind, register in zip(kinds, args, strict=True) for w in (alike or _FORMS[kind], register)]
        number = len(self.tables.externals) - 1
        head = I.External.operands(number=number, native=native, target=target, verdicts=known, count=len(args))
        self.code.emit(Operation.EXTERNAL, *head, *forms)


def operation(term: Functor, kinds: tuple[Kind, ...]) -> Arithmetic | Text | None:
    """What the kernels do for a functor on arguments of these kinds, of more than two from the left; None where the value has
    the argument's bits."""
    if is_called(term.op):
        return Text.NONE
    opcode = FUNCTORS[term.op].opcodes[kinds[0]]
    if opcode == KEEP:
        return None
    return Text[opcode] if Kind.SYMBOL in (kinds[0], term.result) else Arithmetic[opcode]
