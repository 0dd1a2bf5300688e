"""Rows that came or went at once, so many that they did not pass through this process: each *bulk change* is files of its own.

The bulk changes of a state are entries of one table, in the order in which they came. An entry may also say that an earlier
relation of a name has been dropped, with its bulk changes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.budget import Budget
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Kind, Relation, Type
from dlog.engine.state.files import damaged
from dlog.engine.state.parts import Part, check
from dlog.engine.values.differences import Columns, words
from dlog.engine.values.symbols import SymbolTable
from dlog.grammar.diagnostics import DlogError

TABLE = "lots"
"""The table of entries."""


@dataclass(frozen=True, slots=True)
class BulkChange:
    """Rows of a relation with these kinds, which came (+1) or went (-1); without parts: the relation was dropped."""

    relation: str
    kinds: tuple[Kind, ...]
    diff: int
    parts: tuple[Part, ...]

    @property
    def drops(self) -> bool:
        return not self.parts

    @property
    def entry(self) -> bytes:
        """The entry as it is written."""
        parts = [(part.name, part.size, part.checksum) for part in self.parts]
        return json.dumps([self.relation, [kind.value for kind in self.kinds], self.diff, parts]).encode()


def bulk_change_of(entry: bytes) -> BulkChange:
    """The bulk change of an entry. Raises ValueError where that makes no sense."""
    try:
        relation, kinds, diff, parts = json.loads(entry)
        found = BulkChange(relation, tuple(map(Kind, kinds)), diff, tuple(Part(*part) for part in parts))
    except (TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    names = (relation, *(part.name for part in found.parts))
    if not all(isinstance(name, str) for name in names) or diff not in ((1, -1) if parts else (0,)):
        raise ValueError("no bulk change")
    return found


@dataclass(frozen=True, slots=True)
class BulkDecoder:
    """Decodes bulk files: the folder they are in, the relations and types of the program, and the tables for ids."""

    folder: Path
    relations: Mapping[str, Relation]
    types: Mapping[str, Type]
    symbols: SymbolTable
    records: RecordTables

    def rows(self, bulk: BulkChange) -> tuple[Columns, int]:
        """All rows of a bulk change as words; a row may be there twice. Raises DlogError where a file is not any more what it
        was."""
        for part in bulk.parts:
            check(self.folder, part)
        return read_parts([self.folder / part.name for part in bulk.parts], self.relations[bulk.relation], self)


def read_parts(paths: Sequence[Path], relation: Relation, decoder: BulkDecoder) -> tuple[Columns, int]:
    """The rows in files, one or several. Raises DlogError for values that the types do not have, and for more than the machine
    has memory left."""
    import pyarrow as pa

    from dlog.engine.formats import parquet
    from dlog.engine.formats.columnar import take_parquet, texts_of
    from dlog.engine.spark.arrow import ArrowCodec

    with Budget().part() as budget:
        with _as_written(paths[0]):
            found = [parquet.metadata(path) for path in paths]
            texts = [texts_of(relation, about.schema.to_arrow_schema().names) for about in found]
        for path, about in zip(paths, found, strict=True):
            take_parquet(about, about.num_columns, budget, str(path))
        with _as_written(paths[0]):
            data = pa.concat_tables([parquet.read(p, packed=t) for p, t in zip(paths, texts, strict=True)])
            data.validate(full=True)
            table = ArrowCodec(decoder.types, decoder.symbols, decoder.records).read(relation, data)
    return tuple(words(column) for column in table.columns), table.rows


@contextmanager
def _as_written(path: Path) -> Iterator[None]:
    """Takes what a file has against being read for damage."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, DlogError) as error:
        what = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise damaged(path, f"a part of a relation cannot be read: {what}") from None


def rows_in(paths: Sequence[Path]) -> int:
    """How many rows files have."""
    from dlog.engine.formats import parquet

    return sum(parquet.metadata(path).num_rows for path in paths)


def ones(rows: int, diff: int) -> np.ndarray:
    """The diffs of rows that all did the same."""
    return np.full(rows, diff, np.int64)
