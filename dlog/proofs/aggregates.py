"""Aggregates for many bindings at once: the matches of an aggregate's body, and what they come to.

Which matches count is as in `rules.Aggregate`: of a single atom every row; of any other body the distinct bindings of its
variables; of several alternatives the distinct bindings of those they share.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Protocol, assert_never

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.ir.aggregates import AGGREGATES, fold_all, functor_of, is_user_aggregate
from dlog.engine.ir.dominance import Dominance
from dlog.engine.ir.rules import Aggregate, Atom, Compare, Generator, Literal, Negation, Unpack, Variable
from dlog.engine.ir.traversal import literal_variables, term_variables
from dlog.engine.values.differences import row_groups, words
from dlog.engine.values.floats import one_nan
from dlog.engine.values.table import typed
from dlog.grammar.diagnostics import DlogError
from dlog.proofs.terms import Frame, Terms

GROUP = -1
"""The variable of the binding that a match belongs to."""


class BodySolver(Protocol):
    """What solves the bodies of aggregates, those inside of aggregates too (`solve.Solver`)."""

    @property
    def terms(self) -> Terms: ...
    def solutions(self, body: Sequence[Literal], frame: Frame) -> Iterator[Frame]: ...
    def of_every_row(self) -> BodySolver: ...


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches that count: of which group each is, the words of its target, and the frames they come from, each with the
    places of these matches among all."""

    groups: np.ndarray
    targets: np.ndarray
    frames: tuple[tuple[int, Frame], ...]
    """The alternative and its bindings, in pieces."""
    is_counted: np.ndarray
    """Of the frames' rows one after the other, which count."""


def reduced(solver: BodySolver, aggregate: Aggregate, frame: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The aggregate's value for each binding, and whether it has one."""
    groups, numbers = _groups(aggregate, frame)
    found = matches(solver, aggregate, groups)
    if is_user_aggregate(aggregate.op):
        values, has_value = _folded(solver.terms, aggregate, found, groups)
    else:
        values, has_value = _values(aggregate, found, groups.rows)
    return values[numbers], has_value[numbers]


def _groups(aggregate: Aggregate, frame: Frame) -> tuple[Frame, np.ndarray]:
    """The distinct bindings of the outer variables, and which of them each binding has."""
    outer = [v.id for v in aggregate.outer]
    order, starts = row_groups([frame.values[v] for v in outer], frame.rows)
    numbers = np.empty(frame.rows, np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, frame.rows)))
    firsts = order[starts]
    return Frame(len(firsts), {v: frame.values[v][firsts] for v in outer}), numbers


def matches(solver: BodySolver, aggregate: Aggregate, groups: Frame) -> Matches:
    """All matches for the bindings of the outer variables in `groups`."""
    numbered = groups.bind(GROUP, np.arange(groups.rows))
    inner = solver.of_every_row()
    frames: list[tuple[int, Frame]] = []
    targets: list[np.ndarray] = []
    for number, body in enumerate(aggregate.alternatives):
        for piece in inner.solutions(body, numbered):
            column = np.zeros(piece.rows, np.int64)
            if aggregate.target is not None:
                column, has_value = solver.terms.value(aggregate.target, piece)
                piece, column = piece.take(has_value), column[has_value]
            frames.append((number, piece))
            targets.append(column)
    of_all = np.concatenate([frame.values[GROUP] for _, frame in frames] or [np.empty(0, np.int64)])
    target = np.concatenate(targets or [np.empty(0, np.int64)])
    kept = _counted(aggregate, frames, target)
    return Matches(of_all[kept], target[kept], tuple(frames), kept)


def _counted(aggregate: Aggregate, frames: Sequence[tuple[int, Frame]], target: np.ndarray) -> np.ndarray:
    """The matches that count, each distinct one once where that is so."""
    if not _counts_bindings(aggregate) or not len(target):
        return np.arange(len(target))
    named = reduce(set.intersection, (mentioned(body) for body in aggregate.alternatives))
    shared = sorted({v for v in named if all(v in frame.values for _, frame in frames)} | {GROUP})
    columns = [np.concatenate([frame.values[v] for _, frame in frames]) for v in shared]
    order, starts = row_groups([*columns, target], len(target))
    return np.sort(order[starts])


def _counts_bindings(aggregate: Aggregate) -> bool:
    if len(aggregate.alternatives) > 1:
        return True
    [body] = aggregate.alternatives
    atoms = [x for x in body if isinstance(x, Atom)]
    named = [[a for a in x.args if isinstance(a, Variable)] for x in atoms]
    repeated = any(len(set(arguments)) < len(arguments) for arguments in named)
    return len(atoms) > 1 or repeated or any(isinstance(x, Aggregate | Generator) for x in body)


def mentioned(body: Sequence[Literal]) -> set[int]:
    """The variables of a body, those inside its aggregates apart."""
    found: set[int] = set()
    for literal in body:
        match literal:
            case Atom(args=args) | Negation(atom=Atom(args=args)):
                found |= {a.id for a in args if isinstance(a, Variable)}
            case Compare(left=left, right=right):
                found |= {*term_variables(left), *term_variables(right)}
            case Unpack(value=value, fields=fields):
                found |= {value.id} | {f.id for f in fields if isinstance(f, Variable)}
            case Generator():
                found |= set(literal_variables(literal))
            case Aggregate(result=result):
                found.add(result.id)
            case _:
                assert_never(literal)
    return found


def _folded(terms: Terms, aggregate: Aggregate, found: Matches, groups: Frame) -> tuple[np.ndarray, np.ndarray]:
    """The words of what a user's functor makes of each group, and whether it does not fail."""
    nothing = np.zeros(groups.rows, np.int64), np.zeros(groups.rows, bool)
    functor = terms.codec.program.functors.get(functor_of(aggregate.op))
    if functor is None or functor.function is None or aggregate.init is None or aggregate.target is None:
        return nothing
    init = typed(np.ascontiguousarray(terms.value(aggregate.init, groups)[0]), functor.result.kind)
    targets = typed(np.ascontiguousarray(found.targets), functor.params[1].kind)
    try:
        values = functor.function.fold(functor, init, targets, found.groups, terms.codec)
    except DlogError:
        return nothing
    return words(values), np.ones(groups.rows, bool)


def _values(aggregate: Aggregate, found: Matches, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """The words of each group's value, and whether it has one."""
    row, counts = AGGREGATES[aggregate.op], np.bincount(found.groups, minlength=groups)
    has_value = (counts > 0) | (row.identity is not None)
    if not row.target:
        return counts.astype(np.int64), has_value
    targets = typed(found.targets, aggregate.kind)
    if row.dominance is not None:
        return _dominant(row.dominance, targets, found.groups, counts).view(np.int64), has_value
    if aggregate.op in ("sum", "mean"):
        made = np.zeros(groups, targets.dtype)
        np.add.at(made, found.groups, targets)
        if aggregate.op == "mean":
            made = np.divide(made, np.maximum(counts, 1), dtype=np.float64)
    else:
        parts = np.split(targets[np.argsort(found.groups, kind="stable")], np.cumsum(counts)[:-1])
        made = np.array([fold_all(aggregate, part.tolist()) or 0 for part in parts], targets.dtype)
    return (one_nan(made) if made.dtype == np.float64 else made).view(np.int64), has_value


def _dominant(dominance: Dominance, targets: np.ndarray, groups: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Each group's value that no other dominates; of groups without values, zero."""
    order = np.lexsort((targets, groups))
    ends = np.cumsum(counts)
    places = ends - counts if dominance is Dominance.LEAST else ends - 1
    best = np.zeros(len(counts), targets.dtype)
    best[counts > 0] = targets[order[places[counts > 0]]]
    return best
