"""What `print` goals of rules write: a line for each match, to standard error."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from dlog.engine.formats.record_texts import record_texts
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Kind, Program
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import one_line


class ValueTables(Protocol):
    """The strings and records of a run."""

    @property
    def program(self) -> Program: ...
    @property
    def symbols(self) -> SymbolTable: ...
    @property
    def records(self) -> RecordTables: ...


class Printer:
    """Writes lines, but of those that the last run has written as many as there were."""

    def __init__(self) -> None:
        self._before: Counter[str] = Counter()
        self._now: Counter[str] = Counter()

    def begin(self) -> None:
        """Another run begins."""
        self._before, self._now = self._now, Counter()

    def write(self, types: Sequence[str], args: Sequence[np.ndarray], rows: int, tables: ValueTables) -> np.ndarray:
        """Writes a line for each row, its values with a space in between; control characters and line ends in them as signs."""
        columns = [_texts(name, column, tables) for name, column in zip(types, args, strict=True)]
        lines = list(map(" ".join, zip(*columns, strict=True))) if columns else [""] * rows
        fresh = [line for line in lines if not self._was_written(line)]
        self._now.update(lines)
        if fresh:
            sys.stderr.write("\n".join(map(one_line, fresh)) + "\n")
            sys.stderr.flush()
        return np.ones(rows, np.int64)

    def _was_written(self, line: str) -> bool:
        if self._before[line] <= 0:
            return False
        self._before[line] -= 1
        return True


def _texts(name: str, column: np.ndarray, tables: ValueTables) -> list[str]:
    found = tables.program.types.get(name)
    if found is not None and found.kind is Kind.RECORD:
        texts, places = record_texts(found, column, tables.program.types, tables.symbols, tables.records, quote=True)
        data, offsets = np.asarray(texts.data).tobytes(), np.asarray(texts.offsets).tolist()
        distinct = [data[a:b].decode() for a, b in pairwise(offsets)]
        return [distinct[place] for place in places.reshape(-1).tolist()]
    if name == Kind.SYMBOL.value:
        return [tables.symbols.text(number) for number in column.tolist()]
    return [str(value) for value in column.tolist()]
