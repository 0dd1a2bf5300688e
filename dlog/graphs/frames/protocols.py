"""A graph in Spark as its answers, motifs and live twin read it; `core.SparkGraph` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from dlog.graphs.frames.numbers import Numbers
from dlog.graphs.frames.running import SparkRunning
from dlog.graphs.protocols import ArrayGraph
from dlog.graphs.sources import IdColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FrameGraph(Protocol):
    """Vertices and edges in DataFrames, which stay as they are."""

    columns: IdColumns
    running: SparkRunning
    numbers: Numbers

    @property
    def directed(self) -> bool: ...
    @property
    def origin(self) -> SparkSession: ...
    @property
    def vertices(self) -> DataFrame: ...
    @property
    def edges(self) -> DataFrame: ...
    @property
    def local(self) -> ArrayGraph: ...


class LiveFrames(Protocol):
    """One that changes, as what follows it reads it."""

    @property
    def numbers(self) -> Numbers: ...
