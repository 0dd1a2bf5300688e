"""Indexes from keys to rows, for `upsert`: the committed rows with the staged changes on top.

The index is made at the first upsert with its key, a dict from key to rows, and follows single rows; whatever comes in bulk, a
rollback or a failed commit drops it. Upserts of many rows at once do without: arrays are matched with arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from dlog.arguments import texts
from dlog.engine.ir.rules import Relation
from dlog.engine.values.differences import Columns, row_groups
from dlog.grammar.suggest import closest
from dlog.sessions.ingest.staged_relation import Words
from dlog.sessions.mistakes import mistake

Key = tuple[int, ...]


def key_columns(relation: Relation, names: Sequence[str] | str | None) -> Key:
    """The places of the key's columns: by default the first."""
    if not relation.arity:
        raise mistake("bad-key", f"`{relation.name}` has no columns, so no key")
    if names is None:
        return (0,)
    declared = [name for name, _ in relation.attributes]
    found = []
    for name in texts("key", (names,) if isinstance(names, str) else names, "the name of a column, or several"):
        if name not in declared:
            close = closest(name, declared)
            notes = [f"its columns are {', '.join(declared)}", *([f"did you mean `{close}`?"] if close else [])]
            raise mistake("bad-key", f"`{relation.name}` has no column `{name}`", *notes)
        found.append(declared.index(name))
    if not found:
        raise mistake("bad-key", "a key has at least one column")
    return tuple(found)


class KeyIndex:
    """The rows of each key."""

    def __init__(self, key: Key, rows: Iterable[Words]) -> None:
        self.key = key
        self._rows: dict[Words, set[Words]] = {}
        for row in rows:
            self.put(row)

    def of(self, row: Words) -> Words:
        return tuple([row[i] for i in self.key])

    def find(self, row: Words) -> list[Words]:
        """The rows with the key of this one."""
        return list(self._rows.get(self.of(row), ()))

    def put(self, row: Words) -> None:
        self._rows.setdefault(self.of(row), set()).add(row)

    def drop(self, row: Words) -> None:
        key = self.of(row)
        held = self._rows.get(key)
        if held is not None:
            held.discard(row)
            if not held:
                del self._rows[key]


def having_keys(columns: Columns, rows: int, keys: Columns, count: int) -> np.ndarray:
    """The numbers of those of the first `rows` rows, given by their key columns, that have one of the `count` keys."""
    joined = tuple(np.concatenate(pair) for pair in zip(columns, keys, strict=True))
    order, starts = row_groups(joined, rows + count)
    group = np.zeros(rows + count, np.int64)
    group[starts[1:]] = 1
    number = np.empty(rows + count, np.int64)
    number[order] = np.cumsum(group)
    wanted = np.zeros(len(starts), bool)
    wanted[number[rows:]] = True
    return wanted[number[:rows]]
