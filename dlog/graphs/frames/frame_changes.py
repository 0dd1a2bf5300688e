"""Changes of a graph that are DataFrames: few rows come to the driver, many stay with Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlog.engine.rounds_engine import MAX_RELAYED_ROWS
from dlog.engine.spark.inputs import quoted
from dlog.graphs.frames.numbers import NUMBER
from dlog.graphs.frames.source_frames import INTEGERS, arranged, frames_of
from dlog.graphs.mistakes import missing_column, mistake, with_nulls
from dlog.graphs.sources import IdColumns, SourceGraph, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def edges_of(data: Any, columns: IdColumns, type: str) -> SourceGraph | DataFrame:
    """Edges, in any form that `dlog.graph` takes them in, between vertices of this type. Many of a DataFrame are one that Spark
    keeps: `src`, `dst`, their attributes, and a number for each, which is none of another edge of them."""
    from pyspark.sql import functions as F

    frames = frames_of(data, None)
    if frames is None:
        return read(data, None, columns)
    edges = arranged(None, frames[1], columns).edges
    kept = edges.withColumn(NUMBER, F.monotonically_increasing_id()).persist()
    try:
        named = {"src": columns.src, "dst": columns.dst}
        if _rows(kept, "edge", named) <= MAX_RELAYED_ROWS:
            given = read(kept.drop(NUMBER).toArrow(), None, IdColumns())
            kept.unpersist()
            return given
        _check_types(kept, named, type)
    except BaseException:
        kept.unpersist()
        raise
    return kept


def ids_of(data: Any, columns: IdColumns, type: str) -> Any:
    """Ids of vertices; many of a DataFrame are one that Spark keeps: `id`."""
    from pyspark.sql import functions as F

    if not hasattr(data, "mapInArrow"):
        return data
    if columns.id not in data.columns:
        raise missing_column("vertex", columns.id, data.columns)
    ids = data.select(F.col(quoted(columns.id)).alias("id"))
    kept = (ids.selectExpr("cast(id as bigint) as id") if ids.dtypes[0][1] in INTEGERS else ids).persist()
    try:
        if _rows(kept, "vertex", {"id": columns.id}) <= MAX_RELAYED_ROWS:
            few = kept.toArrow()["id"]
            kept.unpersist()
            return few
        _check_types(kept, {"id": columns.id}, type)
    except BaseException:
        kept.unpersist()
        raise
    return kept


def _rows(kept: DataFrame, what: str, named: dict[str, str]) -> int:
    """How many there are; DlogError for nulls in a column of ids."""
    from pyspark.sql import functions as F

    nulls = [F.count(F.when(F.col(column).isNull(), True)).alias(column) for column in named]
    figures = kept.agg(F.count(F.lit(1)).alias("rows"), *nulls).collect()[0]
    for column, given in named.items():
        if figures[column]:
            raise with_nulls(what, given)
    return int(figures["rows"])


def _check_types(kept: DataFrame, named: dict[str, str], type: str) -> None:
    types = dict(kept.dtypes)
    for column, given in named.items():
        if types[column] != type:
            message = f"vertices have ids of type {type}, and those in `{given}` are of type {types[column]}"
            raise mistake("bad-vertex", message, f"cast the column to {type}")
