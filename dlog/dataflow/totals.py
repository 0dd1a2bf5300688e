"""What counts make of groups: the sums of diffs of one component or more."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.algebra import Group
from dlog.dataflow.components import Component, Extreme, Folded
from dlog.dataflow.exact import rounded_sums
from dlog.dataflow.folds import Fold
from dlog.dataflow.kinds import Objects, float_words
from dlog.engine.operators.delta import Columns
from dlog.engine.operators.groups import Groups, Logic, Outcome, Sums
from dlog.grammar.diagnostics import DlogError

Total = Callable[[Groups, np.ndarray], tuple[np.ndarray, np.ndarray]]
"""The words of a component of all groups, whose parts are chosen, and whether each is more than nothing."""


class Count(Sums):
    """The sums of the diffs, of as many components; of nothing where all are zero."""

    once = True

    def __init__(self, components: int = 1) -> None:
        self.components = self.shown = components

    def diffs(self, sums: np.ndarray) -> np.ndarray:
        return np.asarray(np.logical_or.reduce(sums), np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A component of which there is one part at most, whose value is its own."""

    zero: Callable[[], np.ndarray] | None
    """The word where there is none; a component without one has to be there beside others."""

    def __call__(self, groups: Groups, ours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        there = groups.sums(ours.astype(np.int64)) > 0
        words = groups.sums(np.where(ours, groups.columns[1], 0))
        if self.zero is not None and not there.all():
            words[~there] = self.zero()
        return words, there


def totals(components: Sequence[Component], objects: Objects, kept: bool, missing: Callable[[Columns], DlogError]) -> Logic:
    """The sums of the components of diffs, whose parts are the rows: a component and a value, times the diff. Of those that are
    `kept` apart (`kept_apart`) there is one part at most; `missing` makes a mistake of the key of others beside which there is
    none."""
    if set(components) == {int}:
        return Count(len(components))
    made = [_total(component, objects, kept) for component in components]

    def run(groups: Groups) -> Outcome:
        found = [total(groups, groups.columns[0] == number) for number, total in enumerate(made)]
        words, nonzero = zip(*found, strict=True)
        there = np.logical_or.reduce(nonzero)
        for total, present in zip(made, nonzero, strict=True):
            if isinstance(total, Kept) and total.zero is None and len(lost := np.flatnonzero(there > present)):
                raise missing(tuple(column[lost[:1]] for column in groups.keys))
        chosen = np.flatnonzero(there)
        return Outcome(chosen, tuple(column[chosen] for column in words), np.ones(len(chosen), np.int64))

    return run


def kept_apart(component: Component) -> bool:
    """Whether one value of a component is kept of each key, where times are in one order."""
    return isinstance(component, Extreme) or (isinstance(component, Folded) and component.algebra.exact)


def zero_of(component: Component, objects: Objects) -> Callable[[], np.ndarray] | None:
    """What gives the word of nothing, of a component that has one."""
    if not isinstance(component, Folded) or not isinstance(component.algebra, Group):
        return None
    fold, zero = Fold(component, objects), component.algebra.zero
    return lambda: fold.words(zero)


def _total(component: Component, objects: Objects, kept: bool) -> Total:
    if kept and kept_apart(component):
        return Kept(zero_of(component, objects))
    if isinstance(component, Folded):
        return _folded(Fold(component, objects))
    assert not isinstance(component, Extreme)
    return _float_sums if component is float else _integer_sums


def _integer_sums(groups: Groups, ours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    sums = groups.sums_of_diffs(ours)
    return sums, sums != 0


def _float_sums(groups: Groups, ours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows = np.flatnonzero(ours)
    floats = rounded_sums(groups.owners[rows], groups.columns[1][rows], groups.diffs[rows], groups.count)
    return float_words(floats), floats != 0


def _folded(fold: Fold) -> Total:
    zero = zero_of(fold.component, fold.objects)
    assert zero is not None

    def total(groups: Groups, ours: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = np.flatnonzero(ours)
        numbers, sums = fold.by_group(groups.owners[rows], groups.columns[1][rows], groups.diffs[rows])
        kept = fold.there(sums)
        there = np.zeros(groups.count, bool)
        there[numbers[kept]] = True
        words = np.zeros(groups.count, np.int64)
        words[there] = fold.words(sums[kept])
        if not there.all():
            words[~there] = zero()
        return words, there

    return total
