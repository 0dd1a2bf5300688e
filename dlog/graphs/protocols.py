"""A graph as its answers, motifs, exports and live twin read it; `core.Graph` is one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from dlog.graphs.names import ArrowNames, ObjectNames
from dlog.graphs.numbered import Numbered
from dlog.graphs.running import Running
from dlog.graphs.sources import IdColumns

if TYPE_CHECKING:
    import networkx as nx


class ArrayGraph(Protocol):
    """Vertices and edges in arrays, which stay as they are."""

    columns: IdColumns
    running: Running

    @property
    def names(self) -> ArrowNames | ObjectNames: ...
    @property
    def numbered(self) -> Numbered: ...
    @property
    def directed(self) -> bool: ...
    @property
    def origin(self) -> Any: ...
    @property
    def vertices(self) -> pa.Table: ...
    @property
    def edges(self) -> pa.Table: ...
    def to_networkx(self) -> nx.Graph: ...
    def __len__(self) -> int: ...
