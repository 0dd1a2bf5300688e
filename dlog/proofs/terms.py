"""Values of terms for many bindings at once, by the same compiled operations that the executor uses.

A `Frame` is a set of bindings: one array of words for each variable. Where a term has no value, after a division by zero
say, its binding fails: a run would not have finished had any rule depended on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from dlog.codec import Codec
from dlog.dataclass import dataclass
from dlog.engine.ir.functors import is_called
from dlog.engine.ir.rules import Compare, Constant, Functor, Generator, Kind, Record, Term, Variable
from dlog.engine.ir.scalars import Scalar
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS
from dlog.engine.kernels.arithmetic import arithmetic_block
from dlog.engine.kernels.values.texts import Text
from dlog.engine.runtime.lowering.terms import operation
from dlog.engine.values import functions
from dlog.engine.values.differences import words
from dlog.engine.values.generated import rows_for
from dlog.engine.values.table import typed
from dlog.grammar.diagnostics import DlogError

_ORDER = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}


@dataclass(frozen=True, slots=True)
class Frame:
    """Bindings: `values[v]` are the words of variable v, `picks[id(a)]` which row of its relation atom a is matched with."""

    rows: int
    values: dict[int, np.ndarray] = field(default_factory=dict)
    picks: dict[int, np.ndarray] = field(default_factory=dict)

    def take(self, places: np.ndarray) -> Frame:
        """The bindings at these places, or where this mask is set."""
        rows = int(places.sum()) if places.dtype == np.bool_ else len(places)
        values = {v: column[places] for v, column in self.values.items()}
        return Frame(rows, values, {a: column[places] for a, column in self.picks.items()})

    def bind(self, variable: int, column: np.ndarray) -> Frame:
        return Frame(self.rows, self.values | {variable: column}, self.picks)


class Terms:
    """Evaluates the terms of one rule, whose variables have these `kinds`."""

    def __init__(self, codec: Codec, kinds: Sequence[Kind]) -> None:
        self.codec = codec
        self.kinds = kinds

    def value(self, term: Term, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
        """The term's words, and for which bindings it has a value."""
        has_value = np.ones(frame.rows, bool)
        return self._value(term, frame, has_value), has_value

    def holds(self, compare: Compare, frame: Frame) -> np.ndarray:
        """A mask of the bindings for which the comparison is true."""
        has_value = np.ones(frame.rows, bool)
        left, right = (self._value(side, frame, has_value) for side in (compare.left, compare.right))
        return np.asarray(has_value & self._compare(compare.op, left, right, compare.kind))

    def constant(self, constant: Constant) -> int:
        match constant.value:
            case None:
                return 0
            case str(text):
                return self.codec.symbols.intern(text)
            case value if constant.kind is Kind.FLOAT:
                return int(np.float64(value).view(np.int64))
            case value:
                return int(value) - 2**64 if value >= 2**63 else int(value)

    def kind(self, term: Term) -> Kind:
        match term:
            case Variable(id=number):
                return self.kinds[number]
            case Constant(kind=kind) | Functor(result=kind):
                return kind
            case Record():
                return Kind.RECORD

    def fields(self, type: str, ids: np.ndarray) -> list[np.ndarray]:
        """The words of the fields of records, none of which is nil."""
        return [words(column) for column in self.codec.records.fields(len(self.codec.program.types[type].fields), ids)]

    def rows(self, generator: Generator, args: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
        """The columns of what a table function gives for columns of arguments, and of which binding each row is."""
        kinds = [self.kind(a) for a in generator.args]
        values = [self._scalars(column, kind) for column, kind in zip(args, kinds, strict=True)]
        row = TABLE_FUNCTIONS[generator.function]
        made = rows_for(generator.function, generator.kind, list(zip(*values, strict=True)))
        found = [(i, *one) for i, rows in enumerate(made) for one in rows]
        origin, *columns = zip(*found, strict=True) if found else [()] * (len(row.columns) + 1)
        typed_columns = zip(columns, row.kinds(generator.kind), strict=True)
        words = [np.array([self.constant(Constant(v, kind)) for v in c], np.int64) for c, kind in typed_columns]
        return words, np.array(origin, np.int64)

    def _scalars(self, words: np.ndarray, kind: Kind) -> list[Scalar]:
        if kind is Kind.SYMBOL:
            return [self.codec.symbols.text(number) for number in words.tolist()]
        values: list[Scalar] = typed(np.ascontiguousarray(words), kind).tolist()
        return values

    # -------------------------------------------------------------------------------------------------------------- inside

    def _value(self, term: Term, frame: Frame, has_value: np.ndarray) -> np.ndarray:
        match term:
            case Variable(id=number):
                return frame.values[number]
            case Constant():
                return np.full(frame.rows, self.constant(term), np.int64)
            case Record(args=args):
                fields = [self._value(a, frame, has_value) for a in args]
                if not frame.rows:
                    return np.empty(0, np.int64)
                return np.resize(self.codec.records.pack(len(args), fields), frame.rows).astype(np.int64)
            case Functor():
                return self._functor(term, [self._value(a, frame, has_value) for a in term.args], has_value)

    def _functor(self, term: Functor, args: list[np.ndarray], has_value: np.ndarray) -> np.ndarray:
        kinds = tuple(self.kind(a) for a in term.args)
        if is_called(term.op):
            return self._called(term, args, kinds, has_value)
        op = operation(term, kinds)
        if op is None:
            return args[0]
        if isinstance(op, Text):
            return self._on_symbols(term, args, kinds, has_value)
        if term.op in ("/", "%") and term.kind is not Kind.FLOAT:
            has_value &= args[1] != 0
            args = [args[0], np.where(args[1] == 0, 1, args[1])]
        result = args[0]
        for other in args[1:] or args:
            left, right = np.ascontiguousarray(result), np.ascontiguousarray(other)
            result = np.empty(len(left), np.int64)
            arithmetic_block(op, left.ctypes.data, right.ctypes.data, len(left), result.ctypes.data)
        return result

    def _called(
        self, term: Functor, args: list[np.ndarray], kinds: tuple[Kind, ...], has_value: np.ndarray
    ) -> np.ndarray:
        """Values of a user's functor; what fails has none, and what is stateful is not asked."""
        functor = self.codec.program.functors.get(term.op[1:])
        result = np.zeros(len(has_value), np.int64)
        if functor is None or functor.function is None or functor.stateful:
            has_value[:] = False
            return result
        given = [typed(np.ascontiguousarray(a), kind) for a, kind in zip(args, kinds, strict=True)]
        for i in range(len(has_value)):
            try:
                result[i] = words(functor.function(functor, [a[i : i + 1] for a in given], 1, self.codec))[0]
            except DlogError:
                has_value[i] = False
        return result

    def _on_symbols(
        self, term: Functor, args: list[np.ndarray], kinds: tuple[Kind, ...], has_value: np.ndarray
    ) -> np.ndarray:
        typed = [a.view(np.float64) if kind is Kind.FLOAT else a for a, kind in zip(args, kinds, strict=True)]
        try:
            return words(functions.evaluate(term.op, typed, kinds, self.codec.symbols))
        except DlogError:  # a text that is no number
            result = np.zeros(len(has_value), np.int64)
            for i in range(len(has_value)):
                try:
                    one = [a[i : i + 1] for a in typed]
                    result[i] = words(functions.evaluate(term.op, one, kinds, self.codec.symbols))[0]
                except DlogError:
                    has_value[i] = False
            return result

    def _compare(self, op: str, left: np.ndarray, right: np.ndarray, kind: Kind) -> np.ndarray:
        if op in ("=", "!="):
            if kind is Kind.FLOAT:
                left, right = left.view(np.float64), right.view(np.float64)
            return np.asarray(left == right if op == "=" else left != right)
        if kind is Kind.SYMBOL:
            return functions.compare(op, left, right, self.codec.symbols)
        return np.asarray(_ORDER[op](typed(left, kind), typed(right, kind)))
