"""What reductions make of groups, in words: functions of all groups at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.dataflow.given import check_shape, diffs_of, lists_of, numbers_of, pair_of
from dlog.dataflow.kinds import Kind, Objects, comparable, decode
from dlog.dataflow.rows import rows_of, words_of
from dlog.dataflow.schema import Schema
from dlog.engine.operators.delta import Columns
from dlog.engine.operators.groups import Groups, Outcome, Sums
from dlog.grammar.diagnostics import Diagnostic, DlogError


@dataclass(frozen=True, slots=True)
class Threshold(Sums):
    """The key as often as a function of how often it is there says."""

    function: Callable[[np.ndarray], Any]

    def diffs(self, sums: np.ndarray) -> np.ndarray:
        there = np.flatnonzero(sums[0])
        counts = np.asarray(self._counts(sums[0, there]))
        if counts.shape != there.shape or not _are_whole(counts):
            raise _no_counts()
        found = np.zeros(sums.shape[1], np.int64)
        found[there] = counts
        return found

    def _counts(self, sums: np.ndarray) -> Any:
        try:
            return self.function(sums)
        except (TypeError, ValueError) as error:
            if self._is_of_one(sums):
                raise _no_counts() from error
            raise

    def _is_of_one(self, sums: np.ndarray) -> bool:
        """Whether the function, which fails for an array, has been written for one count."""
        try:
            return np.asarray(self.function(sums[0].item())).shape == ()
        except Exception:  # it fails for one count as well
            return False


def _no_counts() -> DlogError:
    message = "the function of `threshold` must give a whole number for each it gets"
    note = 'it gets an array of counts: write `threshold(col("count") > 0)`, or `np.where(counts > 0, 1, 0)` in the function'
    return DlogError(Diagnostic("bad-rows", message, notes=(note,)))


def _are_whole(counts: np.ndarray) -> bool:
    if counts.dtype.kind == "f":
        return bool(np.all(np.floor(counts) == counts) and np.all(np.abs(counts) < 2**63))
    return counts.dtype.kind in "bi" or (counts.dtype.kind == "u" and bool(np.all(counts < 2**63)))


def at_least_once(counts: np.ndarray) -> np.ndarray:
    return counts > 0


@dataclass(frozen=True, slots=True)
class Ordering:
    """An order of rows by some of their columns: their places, kinds, and whether the greatest come first; then by all
    columns."""

    places: tuple[int, ...]
    kinds: tuple[Kind, ...]
    descending: tuple[bool, ...]
    objects: Objects

    def sort(self, groups: Groups) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are there (their counts are positive), group by group in order, and the groups they are of."""
        rows = np.flatnonzero(groups.diffs > 0)
        owners = groups.owners[rows]
        if self.places == (0,) and self.kinds[0] not in (str, object) and not self.descending[0]:
            return rows, owners  # groups are in this order
        by = self.words(tuple(column[rows] for column in groups.columns))
        order = np.lexsort([*by[::-1], owners])  # equal ones keep their order, which is that of the columns
        return rows[order], owners[order]

    def words(self, columns: Columns) -> list[np.ndarray]:
        """What rows are compared by first, then second and so on."""
        found = (comparable(kind, columns[place], self.objects) for place, kind in zip(self.places, self.kinds, strict=True))
        return [~words if down else words for words, down in zip(found, self.descending, strict=True)]


def first(ordering: Ordering) -> Callable[[Groups], Outcome]:
    """The first row of each group, once."""

    def run(groups: Groups) -> Outcome:
        rows, owners = ordering.sort(groups)
        kept = np.flatnonzero(np.diff(owners, prepend=-1))
        rows = rows[kept]
        return Outcome(owners[kept], tuple(c[rows] for c in groups.columns), np.ones(len(rows), np.int64))

    return run


def top(count: int, ordering: Ordering) -> Callable[[Groups], Outcome]:
    """The first so many rows of each group; one that is there several times counts as often."""

    def run(groups: Groups) -> Outcome:
        rows, owners = ordering.sort(groups)
        diffs = np.minimum(groups.diffs[rows], count)  # no more are taken, and sums of more may need too many bits
        before = np.cumsum(diffs) - diffs
        begins = np.flatnonzero(np.diff(owners, prepend=-1))
        before -= np.repeat(before[begins], np.diff(begins, append=len(owners)))
        taken = np.minimum(diffs, count - before)
        kept = np.flatnonzero(taken > 0)
        return Outcome(owners[kept], tuple(c[rows[kept]] for c in groups.columns), taken[kept])

    return run


def by_group(
    function: Callable[..., Iterable[Any]], keys: Schema, values: Schema, made: Schema, objects: Objects
) -> Callable[[Groups], Outcome]:
    """A Python function of a key and the list of its (row, count): it gives rows, or (row, count) in a list."""

    def run(groups: Groups) -> Outcome:
        key_rows = rows_of(keys, groups.keys, groups.count, objects)
        rows = list(zip(rows_of(values, groups.columns, len(groups.diffs), objects), groups.diffs.tolist(), strict=True))
        starts = groups.starts.tolist()
        calls = ((key, rows[starts[g] : starts[g + 1]]) for g, key in enumerate(key_rows))
        found = lists_of("reduce", "(row, count)", function, calls)
        owners = np.repeat(np.arange(groups.count), [len(each) for each in found])
        flat = [each for made_rows in found for each in made_rows]
        check_shape("reduce", "(row, count)", flat, 2)
        columns, _ = words_of(made, [row for row, _ in flat], objects)
        return Outcome(owners, columns, diffs_of("reduce", [diff for _, diff in flat]))

    return run


def by_batch(
    function: Callable[..., tuple[Mapping[str, Any], Any]], keys: Schema, values: Schema, made: Schema, objects: Objects
) -> Callable[[Groups], Outcome]:
    """A Python function of many groups at once: of their keys, the columns of their rows, the counts of these, and where the
    rows of each group begin. It gives columns, and for each row the number of its group."""

    def run(groups: Groups) -> Outcome:
        given = _decoded(keys, groups.keys, objects), _decoded(values, groups.columns, objects)
        outcome = function(*given, groups.diffs, groups.starts)
        found, owners = pair_of("reduce_batches", "(columns, numbers of groups)", outcome)
        columns, rows = words_of(made, found, objects)
        numbers = numbers_of("reduce_batches", "group", owners, rows, groups.count)
        return Outcome(numbers, columns, np.ones(rows, np.int64))

    return run


def _decoded(schema: Schema, columns: Columns, objects: Objects) -> dict[str, np.ndarray]:
    return {n: decode(k, c, objects) for n, k, c in zip(schema.names, schema.kinds, columns, strict=True)}
