"""Whether passes over a stratum that alternates (plan/static/alternating) come to an end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.record_texts import record_texts
from dlog.engine.ir.rules import Kind, Type
from dlog.engine.plan.static.alternating import Passes
from dlog.engine.runtime.storage.printer import ValueTables
from dlog.engine.values.differences import Columns, difference, row_groups
from dlog.engine.values.table import typed
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label

Rows: TypeAlias = tuple[Columns, int]
"""Columns of words, and how many rows there are."""
Changed: TypeAlias = tuple[Columns, np.ndarray]
"""The rows in one of two sets only, in order, and the diff of each."""
PATIENCE: Final = 64
"""Passes of a window (`Settling`) from which on rows that go on changing are taken to do so for ever."""
PATIENCE_WITH_SUMS: Final = 1
"""The same with sums of integers: these soon exceed 64 bits, and in the end may stay the same for that."""
MAX_SUM: Final = 1 << 61
"""From here on a sum of integers is taken for one that grows for ever, before its multiples are the same in 64 bits."""
PATIENCE_WITH_FLOATS: Final = 4096
"""The same with floats: they may approach a limit bit by bit."""


@dataclass(frozen=True, slots=True)
class Endless:
    """A row that does not stay, as columns of one word. After `passes` it is new; None: it comes and goes. Of one that is too
    `large` nobody can say."""

    relation: str
    row: Columns
    passes: int | None
    large: bool = False


class Settling:
    """Looks whether passes come to an end.

    What a pass changes depends on what the one before changed. So where no row depends on itself, of all keys that change in a
    window of passes there is one, which depends on none of the others, that no pass of the next window changes. Windows are of
    1, 2, 4, ... passes: a circle of dependencies goes on through all of them, and is found when they are as long as it is."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._patience = _patience(passes)
        self._sums = {op for op, _ in passes.aggregates} in ({"sum"}, {"sum", "count"}) and self._patience == PATIENCE_WITH_SUMS
        self._last: Mapping[str, Changed] | None = None
        self._passed = 0
        self._before: dict[str, Rows] = {}
        self._window: dict[str, Rows] = {}
        self._size, self._remaining = 1, 1

    def endless(self, changed: Mapping[str, Changed]) -> Endless | None:
        """A row that will not stay, by what a pass has changed of what the one before derived; None if there may be an end."""
        self._passed += 1
        name, (columns, diffs) = next((n, c) for n, c in changed.items() if len(c[1]))
        row = tuple(column[np.argmax(diffs)][None] for column in columns)
        last, self._last = self._last, changed
        if self._sums and (large := self._large(changed)) is not None:
            return large
        if last is not None and all(_is_undone(last[n], changed[n]) for n in changed):
            return Endless(name, row, None)
        if not self._remaining:
            self._before, self._window = self._window, {}
            self._size = self._remaining = self._size * 2
        self._remaining -= 1
        for n, rows in changed.items():
            self._window[n] = _joined(self._window.get(n), _keys(rows, self._passes.keys[n]))
        if self._size < self._patience or not self._before:
            return None
        again = all(_within(rows, self._window[n]) for n, rows in self._before.items())
        return Endless(name, row, self._passed) if again else None

    def _large(self, changed: Mapping[str, Changed]) -> Endless | None:
        """A new row with a sum that is too large to go on."""
        for name, (columns, diffs) in changed.items():
            kinds = self._passes.program.relations[name].kinds
            for c in set(range(len(columns))).difference(self._passes.keys[name]):
                if kinds[c] in (Kind.NUMBER, Kind.UNSIGNED):
                    beyond = (diffs > 0) & ((columns[c] >= MAX_SUM) | (columns[c] < -MAX_SUM))
                    if beyond.any():
                        row = tuple(column[np.argmax(beyond)][None] for column in columns)
                        return Endless(name, row, self._passed, large=True)
        return None


def _patience(passes: Passes) -> int:
    if any(kind is Kind.FLOAT for _, kind in passes.aggregates):
        return PATIENCE_WITH_FLOATS
    return PATIENCE_WITH_SUMS if any(op == "sum" for op, _ in passes.aggregates) else PATIENCE


def _is_undone(last: Changed, now: Changed) -> bool:
    """Whether changes, in the order of rows, undo others."""
    if not np.array_equal(last[1], -now[1]):
        return False
    return all(np.array_equal(a, b) for a, b in zip(last[0], now[0], strict=True))


def _keys(changed: Changed, columns: tuple[int, ...]) -> Rows:
    """The keys of changed rows, each once."""
    values, diffs = changed
    return _distinct(tuple(values[c] for c in columns), len(diffs))


def _distinct(columns: Columns, rows: int) -> Rows:
    order, starts = row_groups(columns, rows)
    return tuple(column[order[starts]] for column in columns), len(starts)


def _joined(some: Rows | None, rows: Rows) -> Rows:
    if some is None:
        return rows
    return _distinct(tuple(map(np.concatenate, zip(some[0], rows[0], strict=True))), some[1] + rows[1])


def _within(some: Rows, rows: Rows) -> bool:
    """Whether all rows of one set are in another."""
    return not (difference(*some, *rows)[1] < 0).any()


# --------------------------------------------------------------------------------------------------------------- mistakes


def not_settled(passes: Passes, endless: Endless, tables: ValueTables) -> DlogError:
    """The mistake of a program whose passes have no end."""
    types = (type for _, type in passes.program.relations[endless.relation].attributes)
    texts = [_text(type, word, passes, tables) for type, word in zip(types, endless.row, strict=True)]
    shown = f"{endless.relation}({', '.join(texts)})"
    if endless.passes is None:
        why = f"`{shown}` comes and goes from pass to pass: it depends on itself through a negation or an aggregate"
    elif endless.large:
        why = f"`{shown}` is so large after {endless.passes} passes that sums of 64 bits may soon be the same for that alone"
    else:
        why = f"after {endless.passes} passes `{shown}` is still new: values depend on themselves, and change each time"
    read = next(span for rule in passes.stratum.rules for span in passes.spans(rule))
    message = f"`{endless.relation}` has no result that stays the same"
    notes = (why, "look for a circle in the data: where no row depends on itself there is a result")
    return DlogError(Diagnostic("not-settled", message, (Label(read, "read here"),), notes, passes.program.source))


def _text(type: Type, word: np.ndarray, passes: Passes, tables: ValueTables) -> str:
    """A value as a program has it."""
    if type.kind is Kind.RECORD:
        found, _ = record_texts(type, word, passes.program.types, tables.symbols, tables.records, quote=True)
        return bytes(np.asarray(found.data)).decode()
    if type.kind is Kind.SYMBOL:
        return json.dumps(tables.symbols.text(int(word[0])), ensure_ascii=False)
    return str(typed(word, type.kind)[0])
