"""Rows that are elsewhere, without Spark: frames that an engine of this process takes as Spark's takes DataFrames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dlog.engine.ir.rules import Relation
from dlog.engine.rounds_engine import Frames
from dlog.engine.runtime.incremental.engines.choice import EmbeddedMaker
from dlog.engine.spark import inputs
from dlog.engine.spark.arrow import ArrowCodec, schema_of
from dlog.engine.values.differences import last_of_each, words
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates, joined
from dlog.sessions import options
from dlog.sessions.persistence import saving
from dlog.sessions.persistence.external_relation import last_changes


class Frame:
    """Rows in columns; records are text."""

    sparkSession = mapInArrow = None

    def __init__(self, table: pa.Table, without: Table | None = None) -> None:
        self.table, self.without = table, without

    @staticmethod
    def of(*rows: tuple[Any, ...]) -> Frame:
        return Frame(pa.table({f"c{i}": list(column) for i, column in enumerate(zip(*rows, strict=True))}))

    def toArrow(self) -> pa.Table:
        return self.table

    def count(self) -> int:
        return int(self.table.num_rows)


class TakesFrames:
    """An engine of this process that takes frames, and writes them to files."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def fitting(self, relation: Relation, rows: Any) -> Frame | None:
        return rows if isinstance(rows, Frame) and relation.arity else None

    def saves(self, folder: Path) -> bool:
        return True

    def frame(self, name: str) -> Frame:
        relation = self.engine.program.relations[name]
        codec = ArrowCodec(self.engine.program.types, self.engine.symbols, self.engine.records)
        schema = schema_of(relation)
        pieces = [pa.Table.from_arrays(columns, schema=schema) for columns in codec.write(relation, self.engine.table(name))]
        return Frame(pa.concat_tables([schema.empty_table(), *pieces]))

    def save(self, relation: Relation, rows: Frame, folder: Path) -> int:
        folder.mkdir()
        half = rows.table.num_rows // 2
        for number, part in enumerate((rows.table.slice(0, half), rows.table.slice(half))):
            pq.write_table(part, folder / f"part-{number}.parquet")
        return int(rows.table.num_rows)

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> Frame:
        return Frame(pa.concat_tables([pq.read_table(file) for file in files]), without)

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        given = {name: [updates] for name, updates in inputs.items()}
        last = max((int(u.rounds[-1]) for u in inputs.values() if u.rows), default=self.engine.round + 1)
        for name, listed in (frames or {}).items():
            for frame, diff in listed:
                given.setdefault(name, []).append(self._updates(self.engine.program.relations[name], frame, diff, last))
        both = {name: joined(parts) for name, parts in given.items()}
        for name, updates in both.items() if frames else ():
            both[name] = last_changes([(updates.columns, updates.diffs)], len(updates.columns), last)
        return int(self.engine.commit(both))

    def _updates(self, relation: Relation, frame: Frame, diff: int, round: int) -> Updates:
        codec = ArrowCodec(self.engine.program.types, self.engine.symbols, self.engine.records)
        table = codec.read(relation, frame.table)
        columns, diffs = tuple(words(c) for c in table.columns), np.full(table.rows, diff)
        if frame.without is not None:
            gone = tuple(words(c) for c in frame.without.columns)
            columns = tuple(np.concatenate(pair) for pair in zip(columns, gone, strict=True))
            diffs = np.concatenate([diffs, np.zeros(frame.without.rows, np.int64)])
        places = last_of_each(columns, len(diffs))
        places = places[diffs[places] != 0]
        return Updates(tuple(c[places] for c in columns), diffs[places], np.full(len(places), round))

    def take_back(self, successor: Any) -> None:
        self.engine.take_back(successor.engine)


class Maker(EmbeddedMaker):
    def __call__(self, program: Any, *, old: Any = None, **limits: Any) -> Any:
        return TakesFrames(super().__call__(program, old=getattr(old, "engine", old), **limits))

    def resumed(self, program: Any, image: Any, *, old: Any, **limits: Any) -> Any:
        made = super().resumed(program, image, old=old, **limits)
        return None if made is None else TakesFrames(made)


@contextmanager
def taking_frames(few: int = 0) -> Iterator[None]:
    """Sessions opened meanwhile take frames; of up to so many rows they log these."""
    before = options.Options._maker, saving.MAX_RELAYED_ROWS, inputs.as_declared
    options.Options._maker = lambda self: Maker(self.threads)  # type: ignore[method-assign]
    saving.MAX_RELAYED_ROWS, inputs.as_declared = few, lambda relation, rows: rows  # type: ignore[assignment]
    try:
        yield
    finally:
        options.Options._maker, saving.MAX_RELAYED_ROWS, inputs.as_declared = before  # type: ignore[method-assign]


def parts_of(folder: Path) -> set[str]:
    """What is in a state of lots, there already or on the way."""
    return {path.name for path in folder.iterdir() if path.suffix == ".parquet" or path.name.startswith("incoming-")}


def named_parts(session: Any) -> set[str]:
    """The files that a state knows."""
    return {part.name for part in session._engine._state._external_relations.parts()}
