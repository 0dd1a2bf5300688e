"""Changes of a relation: rows with a round and a diff."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from dlog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Updates:
    """Rows as columns of raw 64-bit words (int64: numbers and ids as they are, unsigned and floats by their bits), with a diff
    (int64; +1 the row appears, -1 it disappears) and a round (int64, ascending) each. All arrays have equal length, which a
    relation without columns needs `diffs` for."""

    columns: tuple[np.ndarray, ...]
    diffs: np.ndarray
    rounds: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.diffs)

    @property
    def first(self) -> int:
        """The first round; of updates with rows."""
        return int(self.rounds[0])

    @property
    def last(self) -> int:
        """The last round; of updates with rows."""
        return int(self.rounds[-1])

    @property
    def only_come(self) -> bool:
        """Whether no row goes; of updates with rows."""
        diffs = self.diffs
        return bool((diffs[:1] if diffs.strides == (0,) else diffs).min() > 0)

    def listed(self) -> Iterable[tuple[tuple[int, ...], int]]:
        """Each row, of words, and its diff."""
        rows = zip(*[column.tolist() for column in self.columns], strict=True) if self.columns else repeat(())
        return zip(rows, self.diffs.tolist(), strict=bool(self.columns))

    def negated(self) -> Updates:
        """The updates that take these back."""
        return Updates(self.columns, -self.diffs, self.rounds)


class RowUpdates(Updates):
    """Updates of one round held as rows of Python: making arrays for one row takes longer than a small round does. Whoever
    asks for the arrays gets them.

    >>> updates = RowUpdates({(1, 2): 1, (3, 4): -1}, 2, 7)
    >>> [column.tolist() for column in updates.columns], updates.diffs.tolist(), updates.rounds.tolist()
    ([[1, 3], [2, 4]], [1, -1], [7, 7])
    """

    __slots__ = ("arity", "diff_of", "round")

    diff_of: Mapping[tuple[int, ...], int]
    """Each row, of words, and its diff."""
    arity: int
    round: int

    def __init__(self, diff_of: Mapping[tuple[int, ...], int], arity: int, round: int) -> None:
        for name, value in (("diff_of", diff_of), ("arity", arity), ("round", round)):
            object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        """The arrays of the class above, made when one of them is first asked for."""
        if name not in ("columns", "diffs", "rounds"):
            raise AttributeError(name)
        count = len(self.diff_of)
        words = np.fromiter(chain.from_iterable(self.diff_of), np.int64, count * self.arity)
        table = words.reshape(count, self.arity)
        arrays = {
            "columns": tuple(np.ascontiguousarray(table[:, i]) for i in range(self.arity)),
            "diffs": np.fromiter(self.diff_of.values(), np.int64, count),
            "rounds": np.full(count, self.round, np.int64),
        }
        for made, value in arrays.items():
            object.__setattr__(self, made, value)
        return arrays[name]

    @property
    def rows(self) -> int:
        return len(self.diff_of)

    @property
    def first(self) -> int:
        return self.round

    @property
    def last(self) -> int:
        return self.round

    def __reduce__(self) -> tuple[type[Updates], tuple[Any, ...]]:
        return Updates, (self.columns, self.diffs, self.rounds)

    def listed(self) -> Iterable[tuple[tuple[int, ...], int]]:
        return self.diff_of.items()

    def flat(self, round: int) -> list[int]:
        """Row after row: the values, the diff and this round, as words."""
        words: list[int] = []
        for row, diff in self.diff_of.items():
            words += (*row, diff, round)
        return words


class BlockUpdates(Updates):
    """Updates whose arrays are the rows of one block, one after the other: kernels find all of them by its address."""

    __slots__ = ("block",)

    block: np.ndarray

    def __init__(self, block: np.ndarray) -> None:
        *columns, diffs, rounds = block
        for name, value in (("block", block), ("columns", tuple(columns)), ("diffs", diffs), ("rounds", rounds)):
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type[Updates], tuple[Any, ...]]:
        return Updates, (self.columns, self.diffs, self.rounds)


def prepended(first: Mapping[str, Updates], then: Mapping[str, Updates]) -> dict[str, Updates]:
    """Changes by relation, with the `first` ones before the others."""
    both = {name: joined([updates, then[name]]) if name in then else updates for name, updates in first.items()}
    return {**then, **both}


def joined(parts: Sequence[Updates]) -> Updates:
    """Lists of changes one after the other."""
    if len(parts) == 1:
        return parts[0]
    rows = [part for part in parts if isinstance(part, RowUpdates)]
    if len(rows) == len(parts):
        flat = [word for part in rows for word in part.flat(part.round)]
        *fields, diffs, rounds = np.array(flat, np.int64).reshape(-1, rows[0].arity + 2).T.copy()
        return Updates(tuple(fields), diffs, rounds)
    columns = tuple(np.concatenate(pieces) for pieces in zip(*(p.columns for p in parts), strict=True))
    return Updates(columns, np.concatenate([p.diffs for p in parts]), np.concatenate([p.rounds for p in parts]))
