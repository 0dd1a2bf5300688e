"""Readers of the sources of graphs into one form: a table of edges and, if there is one, a table of vertices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from dlog.dataclass import dataclass
from dlog.engine.values.arrow_memory import table_of, within_memory
from dlog.graphs.mistakes import missing_column, mistake, not_a_graph, with_nulls
from dlog.graphs.names import normal_column, plain
from dlog.tabular import Tabular

Ids: TypeAlias = pa.Array | list[Any]
"""A column of ids: Arrow's, or Python values that Arrow does not keep as they are."""


@dataclass(frozen=True, slots=True)
class IdColumns:
    """The names of the columns of ids."""

    id: str = "id"
    src: str = "src"
    dst: str = "dst"


@dataclass(frozen=True, slots=True)
class SourceGraph:
    """A graph as it was given. The tables of attributes have the rows of `src` and `dst`, or of `id`, and no ids; `id` is None
    if vertices are the ends of edges. `origin` is the graph of NetworkX, or the Spark session, that it came from."""

    src: Ids
    dst: Ids
    edge_attributes: pa.Table
    id: Ids | None = None
    vertex_attributes: pa.Table | None = None
    directed: bool = True
    origin: Any = None

    def with_direction(self, directed: bool) -> SourceGraph:
        """The same with edges that have a direction, or have none. It is not the graph of NetworkX any more if that differs."""
        origin = self.origin if directed == self.directed or not hasattr(self.origin, "adjacency") else None
        return replace(self, directed=directed, origin=origin)


def read(data: Any, edges: Any, columns: IdColumns) -> SourceGraph:
    """The graph that `data`, or vertices `data` and `edges`, are; DlogError if they are none."""
    if edges is not None:
        return _with_vertices(data, edges, columns)
    if hasattr(data, "adjacency") and hasattr(data, "is_directed"):
        return from_networkx(data)
    if hasattr(data, "vertices") and hasattr(data, "edges"):
        return _with_vertices(data.vertices, data.edges, columns)
    if isinstance(data, tuple) and len(data) == 2 and as_table(data[0]) is not None and as_table(data[1]) is not None:
        return _with_vertices(*data, columns)
    return _from_edges(data, columns)


# ----------------------------------------------------------------------------------------------------------------- of tables


def as_table(data: Any) -> pa.Table | None:
    """An Arrow table of anything with columns: of Arrow, pandas, polars, DuckDB or Spark, or a dict; None for all else. Raises
    DlogError where values are not where it says: it may come from a file of somebody else's."""
    table = _table(data)
    for name, column in () if table is None else zip(table.column_names, table.columns, strict=True):
        try:
            within_memory(column)
        except pa.ArrowInvalid as error:
            what = f"a graph cannot be made of a table whose column `{name}` is not within its memory"
            raise mistake("not-a-graph", f"{what}: {error}") from None
    return table


def _table(data: Any) -> pa.Table | None:
    if hasattr(data, "toArrow"):  # a DataFrame of Spark
        return data.toArrow()
    if type(data).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(data, preserve_index=False) if hasattr(data, "columns") else None
    if isinstance(data, Mapping):
        return pa.table(dict(data))
    if hasattr(data, "__arrow_c_stream__"):
        try:
            return table_of(data)
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):  # a column of polars or Arrow speaks it too
            return None
    return None


def _with_vertices(vertices: Any, edges: Any, columns: IdColumns) -> SourceGraph:
    given = _from_edges(edges, columns)
    table = as_table(vertices)
    if table is not None:
        id, attributes = _id_column("vertex", table, columns.id), table.drop_columns([columns.id])
    else:
        id, attributes = _ids(vertices), None
    return _agreeing(SourceGraph(given.src, given.dst, given.edge_attributes, id, attributes, origin=_spark_session(vertices)))


def _from_edges(data: Any, columns: IdColumns) -> SourceGraph:
    table = _of_relation(data, columns) if isinstance(data, Tabular) else as_table(data)
    if table is not None:
        src, dst = (_id_column("edge", table, column) for column in (columns.src, columns.dst))
        rest = table.drop_columns([columns.src, columns.dst])
        return _agreeing(SourceGraph(src, dst, rest, origin=_spark_session(data)))
    if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == 2:
        return _agreeing(SourceGraph(_ids(data[:, 0]), _ids(data[:, 1]), _no_attributes(len(data))))
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, np.ndarray) and part.ndim == 1 for part in data):
        if len(data[0]) != len(data[1]):
            raise mistake("bad-edges", f"arrays of {len(data[0])} and {len(data[1])} ends are no edges")
        return _agreeing(SourceGraph(_ids(data[0]), _ids(data[1]), _no_attributes(len(data[0]))))
    if isinstance(data, str | bytes) or not isinstance(data, Iterable):
        raise not_a_graph(data)
    return _agreeing(_from_tuples(list(data)))


def _of_relation(data: Tabular, columns: IdColumns) -> pa.Table:
    """A relation's columns are seldom called as those of edges are: then they are taken by order, as in tuples."""
    table = data.to_arrow()
    if {columns.src, columns.dst} <= set(table.column_names) or table.num_columns not in (2, 3):
        return table
    return table.rename_columns([columns.src, columns.dst, "weight"][: table.num_columns])


def _from_tuples(rows: list[Any]) -> SourceGraph:
    """Tuples (src, dst) or (src, dst, weight)."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, tuple | list) or len(row) not in (2, 3) or len(row) != len(rows[0]):
            note = "edges are (src, dst) or (src, dst, weight), all of them alike"
            raise mistake("bad-edges", f"edge {number} is not a tuple like the others: {row!r}", note)
    attributes = pa.table({"weight": [row[2] for row in rows]}) if rows and len(rows[0]) == 3 else _no_attributes(len(rows))
    return SourceGraph(_ids([row[0] for row in rows]), _ids([row[1] for row in rows]), attributes)


def _id_column(what: str, table: pa.Table, column: str) -> pa.Array:
    if column not in table.column_names:
        raise missing_column(what, column, table.column_names)
    if table[column].null_count:
        raise with_nulls(what, column)
    return normal_column(table[column])


def _ids(values: Any) -> Ids:
    """A column of ids of an array or a list."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return normal_column(values)
    if isinstance(values, np.ndarray) and values.dtype != np.object_:
        return normal_column(pa.array(np.ascontiguousarray(values)))
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise not_a_graph(values)
    listed = [value.item() if isinstance(value, np.generic) else value for value in values]
    column = plain(listed)
    return listed if column is None else column


def _agreeing(given: SourceGraph) -> SourceGraph:
    """The same with all columns of ids of one type; as Python values if they were given as such and differ."""
    parts = [part for part in (given.src, given.dst, given.id) if part is not None]
    arrow = [part for part in parts if isinstance(part, pa.Array)]
    types = {part.type for part in arrow if len(part)}
    if len(arrow) == len(parts) and len(types) <= 1:
        (type,) = types or {pa.int64()}
        src, dst, *id = (part if len(part) else pa.array([], type) for part in arrow)
    else:
        src, dst, *id = (part.to_pylist() if isinstance(part, pa.Array) else part for part in parts)
    return replace(given, src=src, dst=dst, id=id[0] if id else None)


def _no_attributes(rows: int) -> pa.Table:
    return pa.table({"_": pa.nulls(rows)}).drop_columns(["_"])


def _spark_session(data: Any) -> Any:
    """The session of a DataFrame of Spark."""
    return data.sparkSession if hasattr(data, "toArrow") and hasattr(data, "sparkSession") else None


# -------------------------------------------------------------------------------------------------------------- of NetworkX


def from_networkx(graph: Any) -> SourceGraph:
    """A graph of NetworkX with its attributes. Edges of an undirected one come once, either way round."""
    nodes = list(graph.nodes)
    edges = list(graph.edges(data=True))
    given = SourceGraph(
        _ids([edge[0] for edge in edges]),
        _ids([edge[1] for edge in edges]),
        attribute_table([edge[2] for edge in edges], ("src", "dst")),
        _ids(nodes),
        attribute_table([attributes for _, attributes in graph.nodes(data=True)], ("id",)),
        graph.is_directed(),
        graph,
    )
    return _agreeing(given)


def attribute_table(rows: Sequence[Mapping[Any, Any]], taken: Sequence[str]) -> pa.Table:
    """A column for each attribute that any of the rows has, null where it is missing; an underscore keeps it apart from a name
    that is taken. Values of no Arrow type are text."""
    keys = dict.fromkeys(key for row in rows if row for key in row)
    if not keys:
        return _no_attributes(len(rows))
    return pa.table({f"{key}_" if key in taken else str(key): _attribute([row.get(key) for row in rows]) for key in keys})


def _attribute(values: list[Any]) -> pa.Array:
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values])
