"""The rows of a view (plan/incremental/views), given rows of what it is a view of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dlog.engine.ir.rules import Compare, Constant, Functor, Kind, Term, Variable
from dlog.engine.plan.incremental.views import View
from dlog.engine.values.differences import Columns, words
from dlog.engine.values.table import Table, from_words, typed
from dlog.engine.values.updates import Updates

Encode = Callable[[Constant], int]
"""Gives a constant the word that stands for it."""
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "neg": np.negative,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
    "bnot": np.invert,
    "%": np.fmod,
}


def seen_table(view: View, table: Table, kinds: Sequence[Kind], encode: Encode) -> Table:
    """The rows of a view, whose columns have these kinds, of those of its source."""
    if (picks := view.picks) is not None:
        fresh = table.fresh and len(set(picks)) == len(picks)
        return Table(tuple(kinds), tuple([table.columns[number] for number in picks]), -1 if picks else table.rows, fresh)
    chosen = _passing(view, tuple(map(words, table.columns)), encode)
    source, rows = _masked_rows(table.columns, table.rows, chosen)

    def column(term: Variable | Constant | Functor, kind: Kind) -> np.ndarray:
        if isinstance(term, Variable):
            return source[term.id]
        return from_words(_mapped_column(term, tuple(map(words, source)), rows, encode), kind)

    columns = tuple(column(term, kind) for term, kind in zip(view.columns, kinds, strict=True))
    return Table(tuple(kinds), columns, -1 if columns else rows)


def seen_updates(view: View, updates: Updates, encode: Encode) -> Updates:
    """The changes of a view, of those of its source."""
    if view.picks is not None:
        columns = updates.columns
        return Updates(tuple([columns[number] for number in view.picks]), updates.diffs, updates.rounds)
    chosen = _passing(view, updates.columns, encode)
    (diffs, rounds, *given), rows = _masked_rows((updates.diffs, updates.rounds, *updates.columns), updates.rows, chosen)
    return Updates(_mapped(view, given, rows, encode), diffs, rounds)


def seen_rows(view: View, columns: Columns, rows: int, encode: Encode) -> tuple[Columns, int]:
    """The same for rows as words."""
    columns, rows = _masked_rows(columns, rows, _passing(view, columns, encode))
    return _mapped(view, columns, rows, encode), rows


def _mapped(view: View, columns: Sequence[np.ndarray], rows: int, encode: Encode) -> Columns:
    """What a view makes of rows that pass."""
    return tuple(_mapped_column(term, columns, rows, encode) for term in view.columns)


def _mapped_column(term: Variable | Constant | Functor, columns: Sequence[np.ndarray], rows: int, encode: Encode) -> np.ndarray:
    match term:
        case Variable(id=id):
            return columns[id]
        case Constant():
            return np.full(rows, encode(term), np.int64)
        case Functor(kind=kind):
            return np.broadcast_to(words(_value(term, kind, columns, encode)), rows)


def _masked_rows(columns: Columns, rows: int, chosen: np.ndarray | None) -> tuple[Columns, int]:
    """The rows of a mask; None: all."""
    if chosen is None:
        return columns, rows
    if len(chosen) != rows:  # tests of constants say the same of all rows
        chosen = np.broadcast_to(chosen, rows)
    count = int(np.count_nonzero(chosen))
    return (columns if count == rows else tuple(column[chosen] for column in columns)), count


def _passing(view: View, columns: Columns, encode: Encode) -> np.ndarray | None:
    """A mask of the rows, as words, that are in the view; None: all."""
    found: Any = None
    for column, same in view.equal:
        holds = columns[column] == (encode(same) if isinstance(same, Constant) else columns[same.id])
        found = holds if found is None else found & holds
    for test in view.tests:
        holds = _holds(test, columns, encode)
        found = holds if found is None else found & holds
    mask: np.ndarray | None = found
    return mask


def _holds(test: Compare, columns: Columns, encode: Encode) -> Any:
    if test.kind is Kind.FLOAT:
        with np.errstate(all="ignore"):
            return _compared(test, columns, encode)
    return _compared(test, columns, encode)


def _compared(test: Compare, columns: Columns, encode: Encode) -> Any:
    left, right = (_value(term, test.kind, columns, encode) for term in (test.left, test.right))
    return _COMPARISONS[test.op](left, right)


def _value(term: Term, kind: Kind, columns: Sequence[np.ndarray], encode: Encode) -> np.ndarray:
    """The values of a term for all rows; of a constant one."""
    match term:
        case Variable(id=id):
            return typed(columns[id], kind)
        case Constant():
            return typed(np.array([encode(term)], np.int64), kind)
        case Functor(op=op, args=args):
            made: np.ndarray = _FUNCTIONS[op](*(_value(arg, kind, columns, encode) for arg in args))
            return made
        case _:
            raise AssertionError("views look at no records")
