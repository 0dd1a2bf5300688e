"""A session's engine on Spark, of a program some of whose relations rounds feed: those are with the driver, which gives the
others to engines of parts, one after the other, that have their rows with the same workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from dlog.engine.ir.rules import Program, Relation
from dlog.engine.plan.incremental.layers import Part
from dlog.engine.rounds_engine import Frames, RoundsEngine, StartingPoint
from dlog.engine.runtime.incremental.engines.layered import Layered
from dlog.engine.spark.resident_workers import SparkResidentWorkers
from dlog.engine.spark.session_engine import SparkRounds
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkLayers(Layered):
    """See `dlog.engine.rounds_engine.RoundsEngine`."""

    def __init__(
        self, program: Program, resident_workers: SparkResidentWorkers, old: RoundsEngine | StartingPoint | None = None
    ) -> None:
        self.resident_workers = resident_workers
        super().__init__(program, {}, old=old)

    def _part_engine(self, part: Part, start: StartingPoint) -> RoundsEngine:
        return SparkRounds(part.program, self.resident_workers, start)

    def _commit_part(self, engine: RoundsEngine, share: Mapping[str, Updates], frames: Frames | None, last: int) -> None:
        spark = cast("SparkRounds", engine)
        spark.round = max(spark.round, last - 1)  # frames are of the round behind its own
        spark.commit(share, frames)

    @property
    def elsewhere(self) -> bool:
        return True

    def _first(self) -> SparkRounds:
        """The part with all inputs."""
        return cast("SparkRounds", self._layers[0].engine)

    def fitting(self, relation: Relation, rows: Any) -> DataFrame | None:
        return self._first().fitting(relation, rows)

    def saves(self, folder: Path) -> bool:
        return self._first().saves(folder)

    def save(self, relation: Relation, rows: DataFrame, folder: Path) -> int:
        return self._first().save(relation, rows, folder)

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> DataFrame:
        return self._first().saved(relation, files, without)

    def frame(self, relation: str) -> DataFrame:
        return self._of(relation, lambda engine: cast("SparkRounds", engine).frame(relation))
