"""Functions of texts in expressions. Where the texts of a column have numbers, each different one is worked out once; those
that are held (`held`) are worked out as they have come."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.arrow_texts import arrow_texts, object_texts
from dlog.dataflow.kinds import Kind, Objects, float_words
from dlog.dataflow.operands import DeltaFrame, Valued, Values
from dlog.dataflow.operations import Given, Operation
from dlog.dataflow.schema import Schema
from dlog.dataflow.text_functions import Found, TextFunction
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    import pyarrow as pa

MOST_OUTCOMES = 1 << 20
"""Texts, by number, of which the outcome of a function is kept: the first ones."""
_DTYPES: dict[Kind, Any] = {int: np.int64, float: np.float64, bool: np.bool_, str: object}
Work = Callable[["pa.Array", Objects], np.ndarray]
"""What works out the outcomes for some texts."""
_SIGNS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "==": ("equal", operator.eq), "!=": ("not_equal", operator.ne), "<": ("less", operator.lt), ">": ("greater", operator.gt),
    "<=": ("less_equal", operator.le), ">=": ("greater_equal", operator.ge),
}  # fmt: skip
"""Of a comparison: the name of Arrow's function, and Python's."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


@dataclass(frozen=True, slots=True, eq=False)
class OfTexts(Operation):
    """A function of texts. `methods` says what it is a method of: `.str`, or of all expressions."""

    function: TextFunction
    methods: str = ".str"

    def kind(self, schema: Schema, given: Given) -> Kind:
        found = given[0].kind(schema)
        if found is not str:
            notes = ("`cast(str)` makes texts of numbers",) if found in (int, float, bool) else ()
            message = f"there is no `{self.methods}.{self.function.name}` of {found.__name__}: it is for texts"
            raise DlogError(Diagnostic("bad-expression", message, notes=notes))
        return self.function.kind

    def values(self, schema: Schema, given: Given) -> Values:
        return self._evaluated(schema, given, _values)

    def words(self, schema: Schema, given: Given) -> Values:
        return self._evaluated(schema, given, _words)

    def _evaluated(self, schema: Schema, given: Given, of: Callable[[Kind, Found, Objects], np.ndarray]) -> Values:
        kind = self.kind(schema, given)
        source, functions = given[0].text_steps()
        functions = (*functions, self.function)
        dtype = np.dtype(np.int64 if of is _words else _DTYPES[kind])

        def work(texts: pa.Array, objects: Objects) -> np.ndarray:
            found = texts
            for function in functions:
                found = function.apply(found)
            return of(kind, found, objects)

        name = source.column_name
        if name is not None:
            return _of_column(schema.place(name), work, dtype)
        values = source.values(schema)

        def run(frame: DeltaFrame) -> np.ndarray:
            return work(arrow_texts(values(frame)), frame.objects) if frame.rows else np.empty(0, dtype)

        return run

    def total(self, schema: Schema, given: Given) -> bool:
        return False

    def shown(self, given: Given) -> str:
        return f"{given[0]!r}{self.methods}.{self.function!r}"


def compared_texts(place: int, sign: str, wanted: str) -> Values:
    """The comparison of a column's texts with one, in the order of code points."""
    name, function = _SIGNS[sign]

    def of_held(texts: pa.Array, objects: Objects) -> np.ndarray:
        import pyarrow as pa
        import pyarrow.compute as compute

        return np.asarray(compute.call_function(name, [texts, pa.scalar(wanted)]).to_numpy(zero_copy_only=False))

    def of_numbered(words: np.ndarray, objects: Objects) -> np.ndarray:
        return np.asarray(function(objects.decode(words), wanted), bool)

    by_arrow = _of_column(place, of_held, np.dtype(bool), of_numbered)

    def run(frame: DeltaFrame) -> np.ndarray:
        try:
            return by_arrow(frame)
        except (DlogError, UnicodeEncodeError):  # texts of Python's that Arrow does not have
            return of_numbered(frame.words[place], frame.objects)

    return run


Outcome = Callable[[np.ndarray, Objects], np.ndarray]
"""What works out the outcomes for the texts of some words."""


def _of_column(place: int, work: Work, dtype: np.dtype[Any], numbered: Outcome | None = None) -> Values:
    """A function of the texts of a column; `numbered` is one of those that have numbers, by these."""
    outcomes = _Outcomes(numbered or (lambda words, objects: work(arrow_texts(objects.decode(words)), objects)), dtype)

    def run(frame: DeltaFrame) -> np.ndarray:
        words = frame.words[place]
        if not frame.rows:
            return np.empty(0, dtype)
        if frame.objects.is_held(words):
            return work(frame.objects.held.arrow(words), frame.objects)
        return outcomes.of(words, frame.objects)

    return run


class _Outcomes:
    """What a function has given for texts, by their numbers."""

    def __init__(self, work: Outcome, dtype: np.dtype[Any]) -> None:
        self._work = work
        self._found, self._known = np.empty(0, dtype), np.empty(0, bool)

    def of(self, words: np.ndarray, objects: Objects) -> np.ndarray:
        """The outcomes for the texts of some numbers."""
        end = int(words.max()) + 1
        if end > MOST_OUTCOMES:
            different, places = np.unique(words, return_inverse=True)
            return np.asarray(self._work(different, objects)[places])
        if end > len(self._known):
            room = max(end, 2 * len(self._known)) - len(self._known)
            self._found = np.concatenate([self._found, np.empty(room, self._found.dtype)])
            self._known = np.concatenate([self._known, np.zeros(room, bool)])
        known = self._known[words]
        if not known.all():
            new = np.unique(words[~known])
            self._found[new], self._known[new] = self._work(new, objects), True
        return np.asarray(self._found[words])


def _values(kind: Kind, found: Found, objects: Objects) -> np.ndarray:
    """What a function has given, as values."""
    if isinstance(found, np.ndarray):
        return found != 0 if kind is bool else found
    if kind is str:
        return object_texts(found)
    return np.asarray(found.to_numpy(zero_copy_only=False), _DTYPES[kind])


def _words(kind: Kind, found: Found, objects: Objects) -> np.ndarray:
    """The same as words."""
    if isinstance(found, np.ndarray):
        return found
    if kind is str:
        encoded = found.dictionary_encode()
        return np.asarray(objects.encode(encoded.dictionary.to_pylist())[encoded.indices.to_numpy()])
    values = _values(kind, found, objects)
    return float_words(values) if kind is float else values.astype(np.int64, copy=False)


def steps_of(operation: Operation, given: Sequence[Valued]) -> tuple[Valued, tuple[TextFunction, ...]] | None:
    """What a function of texts begins with, and all functions up to it; None for other operations."""
    if not isinstance(operation, OfTexts):
        return None
    source, functions = given[0].text_steps()
    return source, (*functions, operation.function)
