"""DataFrames as a graph: which column is what, and whether the rows make one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dlog.dataclass import dataclass
from dlog.engine.spark.inputs import quoted
from dlog.graphs.mistakes import missing_column, mistake, unknown_vertex, with_nulls
from dlog.graphs.sources import IdColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

INTEGERS = ("tinyint", "smallint", "int", "bigint")
VERTEX, SRC, DST = 0, 1, 2
"""Where an id stands: in the table of vertices, or at an end of an edge."""


@dataclass(frozen=True, slots=True)
class SourceFrames:
    """A graph as it was given: edges with the columns `src`, `dst` and their attributes, vertices, if there are any, with `id`
    and theirs. `integers` says whether ids are integers: these are bigint, all others as they came."""

    edges: DataFrame
    vertices: DataFrame | None
    integers: bool

    @property
    def type(self) -> str:
        """Spark's type of the ids."""
        return str(self.edges.dtypes[0][1])


@dataclass(frozen=True, slots=True)
class VertexIds:
    """The vertices of a graph: a DataFrame `id` that Spark keeps, how many there are, and the least of them."""

    ids: DataFrame
    count: int
    least: Any


def frames_of(data: Any, edges: Any) -> tuple[Any, Any] | None:
    """The DataFrames of Spark that hold vertices (or None) and edges; None if it is anything else."""
    if edges is None and hasattr(data, "vertices") and hasattr(data, "edges"):
        data, edges = data.vertices, data.edges
    elif edges is None and isinstance(data, tuple) and len(data) == 2:
        data, edges = data
    vertices, edges = (None, data) if edges is None else (data, edges)
    given = [frame for frame in (vertices, edges) if frame is not None]
    return (vertices, edges) if all(_is_frame(frame) for frame in given) else None


def _is_frame(data: Any) -> bool:
    return hasattr(data, "sparkSession") and hasattr(data, "mapInArrow")


def arranged(vertices: DataFrame | None, edges: DataFrame, columns: IdColumns) -> SourceFrames:
    """The DataFrames with our names for the columns of ids. Raises DlogError where these are missing, or of types that have
    no vertex in common."""
    types: dict[str, str] = {}
    parts: list[tuple[str, DataFrame, tuple[str, ...]]] = [("edge", edges, (columns.src, columns.dst))]
    parts += [("vertex", vertices, (columns.id,))] if vertices is not None else []
    for what, frame, names in parts:
        found = dict(frame.dtypes)
        for name in names:
            if name not in found:
                raise missing_column(what, name, frame.columns)
            types[name if what == "edge" else f"{name} of the vertices"] = found[name]
    integers = all(type in INTEGERS for type in types.values())
    if not integers and len(set(types.values())) > 1:
        listed = ", ".join(f"`{name}` is {type}" for name, type in types.items())
        raise mistake("bad-vertex", f"ids of different types: {listed}", "cast them, so that they are of one type")
    renamed = _renamed(edges, {columns.src: "src", columns.dst: "dst"}, integers)
    return SourceFrames(renamed, None if vertices is None else _renamed(vertices, {columns.id: "id"}, integers), integers)


def _renamed(frame: DataFrame, names: dict[str, str], integers: bool) -> DataFrame:
    """The columns of ids first and by their new names, then all others."""
    from pyspark.sql import functions as F

    ids = [F.col(quoted(old)).alias(new) for old, new in names.items()]
    if integers:
        ids = [F.col(quoted(old)).cast("bigint").alias(new) for old, new in names.items()]
    return frame.select(*ids, *(F.col(quoted(c)) for c in frame.columns if c not in names))


def checked(given: SourceFrames, columns: IdColumns) -> VertexIds:
    """The vertices, after one pass of Spark's over all ids. Raises DlogError for ids that are null, twice in the table of
    vertices, or not there though there is such a table."""
    from pyspark import StorageLevel
    from pyspark.sql import functions as F

    ends = given.edges.select(F.explode(F.array(_end("src", SRC), _end("dst", DST))).alias("e")).select("e.*")
    known = ends if given.vertices is None else given.vertices.select(F.col("id"), F.lit(VERTEX).alias("kind")).unionAll(ends)
    times = [F.count(F.when(F.col("kind") == kind, True)).alias(f"times_{kind}") for kind in (VERTEX, SRC, DST)]
    known = known.groupBy("id").agg(*times).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        figures = _figures(known)
        _check(figures, given.vertices is not None, columns)
    except BaseException:
        known.unpersist()
        raise
    return VertexIds(known, int(figures["vertices"]), figures["least"])


def _end(column: str, kind: int) -> Any:
    from pyspark.sql import functions as F

    return F.struct(F.col(column).alias("id"), F.lit(kind).alias("kind"))


def _figures(known: DataFrame) -> Row:
    from pyspark.sql import functions as F

    stray, twice, null = F.col("times_0") == 0, F.col("times_0") > 1, F.col("id").isNull()
    nulls = [F.max(F.when(null, F.col(f"times_{kind}"))).alias(f"nulls_{kind}") for kind in (VERTEX, SRC, DST)]
    of_src = stray & (F.col("times_1") > 0)
    least = [F.min(F.when(F.col("id").isNotNull() & where, F.col("id"))) for where in (stray, of_src, twice)]
    named = [column.alias(name) for column, name in zip(least, ("stray", "stray_src", "twice"), strict=True)]
    return known.agg(F.count("id").alias("vertices"), F.min("id").alias("least"), *named, *nulls).collect()[0]


def _check(figures: Row, with_table: bool, columns: IdColumns) -> None:
    for kind, (what, column) in enumerate((("vertex", columns.id), ("edge", columns.src), ("edge", columns.dst))):
        if figures[f"nulls_{kind}"]:
            raise with_nulls(what, column)
    if with_table and figures["twice"] is not None:
        raise mistake("repeated-vertex", f"the vertex table has {figures['twice']!r} twice", "ids of vertices are unique")
    if with_table and figures["stray"] is not None:
        src = figures["stray_src"] is not None
        raise unknown_vertex(figures["stray_src" if src else "stray"], f"`{'src' if src else 'dst'}` of the edges")
