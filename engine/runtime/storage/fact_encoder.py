"""The constants of a program's text as words, one by one and in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Constant, Kind, Program, Record, Term
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.updates import Updates

ConstantRows: TypeAlias = Mapping[str, tuple[tuple[Constant | Record, ...], ...]]
"""Facts by relation, as `Program.facts` has them."""


@dataclass(slots=True)
class FactEncoder:
    """Gives each constant the 64 bits that stand for it. Strings and records get their ids from these tables, which grow."""

    symbols: SymbolTable
    records: RecordTables

    def word(self, constant: Constant | Record) -> int:
        if isinstance(constant, Record):
            fields = [np.array([self.word(a)], np.int64) for a in constant.args if isinstance(a, Constant | Record)]
            return int(self.records.pack(len(fields), fields)[0])
        match constant.value:
            case None:
                return 0
            case str(text):
                return self.symbols.intern(text)
            case float(value):
                return int(np.float64(value).view(np.int64))
            case int(value):
                if constant.kind is Kind.FLOAT:
                    return int(np.float64(value).view(np.int64))
                return value - 2**64 if value >= 2**63 else value

    def columns(self, program: Program, relation: str) -> tuple[np.ndarray, ...]:
        """The facts of a relation in the program's text: a column of int64 words for each attribute."""
        return self.columns_of(program.facts.get(relation, ()), program.relations[relation].kinds)

    def updates(self, program: Program, facts: ConstantRows, diff: int, round: int) -> dict[str, Updates]:
        """Facts of relations of the program as changes of a round; of relations that have none, nothing."""
        return {
            name: Updates(
                self.columns_of(rows, program.relations[name].kinds),
                np.full(len(rows), diff, np.int64),
                np.full(len(rows), round, np.int64),
            )
            for name, rows in facts.items()
            if rows
        }

    def columns_of(self, rows: Sequence[Sequence[Constant | Record]], kinds: Sequence[Kind]) -> tuple[np.ndarray, ...]:
        """Rows of constants: a column of int64 words for each of their kinds."""
        if Kind.RECORD not in kinds:
            return self._plain_columns(rows, kinds)
        arity = len(kinds)
        ids = self._ids(list(dict.fromkeys(text for row in rows for c in row for text in _texts(c))))
        values = [ids[c.value] if isinstance(c, Constant) and c.value in ids else self.word(c) for row in rows for c in row]
        coded = np.array(values, np.int64).reshape(len(rows), arity)
        return tuple(np.ascontiguousarray(coded[:, c]) for c in range(arity))

    def _plain_columns(self, rows: Sequence[Sequence[Constant | Record]], kinds: Sequence[Kind]) -> tuple[np.ndarray, ...]:
        """Columns without records."""
        values = [[row[c].value for row in rows] for c in range(len(kinds))]  # type: ignore[union-attr]
        named = [values[c] for c, kind in enumerate(kinds) if kind is Kind.SYMBOL]
        ids = self._ids(list(dict.fromkeys(chain.from_iterable(zip(*named, strict=True)))))
        return tuple(_words(column, kind, ids) for column, kind in zip(values, kinds, strict=True))

    def _ids(self, texts: list[str]) -> dict[str, int]:
        return dict(zip(texts, self.symbols.intern_texts(texts).tolist(), strict=True))  # one by one takes ten times as long


def _words(values: list[Any], kind: Kind, ids: dict[str, int]) -> np.ndarray:
    match kind:
        case Kind.SYMBOL:
            return np.array([ids[v] for v in values], np.int64)
        case Kind.FLOAT:
            return np.array(values, np.float64).view(np.int64)
        case Kind.UNSIGNED:
            return np.array(values, np.uint64).view(np.int64)
        case Kind.NUMBER | Kind.RECORD:
            return np.array(values, np.int64)


def _texts(term: Term) -> Iterator[str]:
    """The texts in a constant, in their order."""
    if isinstance(term, Record):
        for arg in term.args:
            yield from _texts(arg)
    elif isinstance(term, Constant) and isinstance(term.value, str):
        yield term.value
