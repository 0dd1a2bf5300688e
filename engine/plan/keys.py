"""Columns that determine a relation's rows, and rows that therefore cannot be made twice.

    degree(x, d) :- vertex(x), d = count : { edge(x, _) }.      x determines the row: the aggregate follows from it
    share(x, v / d) :- rank(x, v), degree(x, d).                and here, if it does in `rank`

A rule whose head determines the rows that its body chose makes no row twice, so that nobody needs a set to find out; and where
fewer columns of the head do, these are a key of the relation, if it has no other rows. The closure is that of functional
dependencies (Armstrong 1974).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import assert_never

from dlog.engine.ir.nodes import AntiJoin, LookUp
from dlog.engine.ir.rules import Compare, Generator, Kind, Unpack, Variable
from dlog.engine.plan.joins import moves
from dlog.engine.plan.query import Condition, Query, Reading, mask, mask_all
from dlog.engine.plan.statistics import Estimator, Key

MAX_KEY_COLUMNS = 2
"""Columns of the widest key that is looked for: combinations of more are too many to try."""

MAX_HEAD_COLUMNS = 32
"""Columns of a head up to which keys are looked for, for the same reason."""


def injective(query: Query, order: Sequence[moves.Move], known: Estimator) -> bool:
    """Whether no row is made twice: every choice that the moves make (a row of a scan or join) shows in the output."""
    return _is_one_match(query, order, known, range(len(query.output)))


def key_of(query: Query, order: Sequence[moves.Move], known: Estimator) -> Key | None:
    """The least columns of the output, at most `MAX_KEY_COLUMNS`, to which there is one match at most."""
    columns = [c for c, term in enumerate(query.output) if isinstance(term, Variable)]
    if len(columns) > MAX_HEAD_COLUMNS:
        return None
    tried = (key for width in range(MAX_KEY_COLUMNS + 1) for key in combinations(columns, width))
    return next((key for key in tried if _is_one_match(query, order, known, key)), None)


def _is_one_match(query: Query, order: Sequence[moves.Move], known: Estimator, columns: Iterable[int]) -> bool:
    """Whether there is one match at most to the values of some columns of the output."""
    determined = _closure(query, mask_all(t for c in columns if isinstance(t := query.output[c], Variable)), known)
    generated = (c.results for c in query.conditions if isinstance(c, Generator))
    if any(None in results or mask_all(results) & ~determined for results in generated):
        return False
    return all(_is_determined(reading, determined, known) for move in order for reading in _readings_of(move))


def _is_determined(reading: Reading, determined: int, known: Estimator) -> bool:
    """Whether the values that are determined leave one row of the reading at most."""
    return any(_are_given(reading, key, determined) for key in (range(len(reading.args)), *known.keys(reading.relation)))


def _are_given(reading: Reading, columns: Iterable[int], determined: int) -> bool:
    args = [reading.args[c] for c in columns]
    return None not in args and not mask_all(args) & ~determined


def _readings_of(move: moves.Move) -> tuple[Reading, ...]:
    match move:
        case moves.Scan(reading=reading) | moves.HalfJoin(reading=reading):
            return (reading,)
        case moves.Extend(readings=readings):
            return readings
        case moves.SemiJoin() | moves.Filter():
            return ()
        case _:
            assert_never(move)


def _closure(query: Query, determined: int, known: Estimator) -> int:
    """The variables whose values follow from those of some."""
    while True:
        before = determined
        for condition in query.conditions:
            determined |= _follows(condition, determined)
        for reading in query.readings:
            if any(_are_given(reading, key, determined) for key in known.keys(reading.relation)):
                determined |= mask_all(reading.args)
        if determined == before:
            return determined


def _follows(condition: Condition, known: int) -> int:
    match condition:
        case Compare(op="=", left=left, right=right, kind=kind) if kind is not Kind.FLOAT:
            result = 0
            if isinstance(left, Variable) and not mask(right) & ~known:
                result |= mask(left)
            if isinstance(right, Variable) and not mask(left) & ~known:
                result |= mask(right)
            return result
        case Unpack(value=value, fields=fields):
            if known >> value.id & 1:
                return mask_all(fields)
            return mask(value) if None not in fields and not mask_all(fields) & ~known else 0
        case LookUp(key=key, variable=variable):
            return 0 if mask_all(key) & ~known else 1 << variable
        case Compare() | Generator() | AntiJoin():
            return 0
