"""Motifs: patterns of named vertices and edges, found by Datalog. `parser` reads them, `rules` makes the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from dlog.graphs.motifs.parser import parse
from dlog.graphs.motifs.rules import AnswerColumn, compile_motif
from dlog.graphs.numbered import Numbered
from dlog.graphs.results import Motifs
from dlog.graphs.running import Columns

if TYPE_CHECKING:
    from dlog.graphs.names import Codes
    from dlog.graphs.protocols import ArrayGraph

__all__ = ["find", "program"]


def find(graph: ArrayGraph, motif: str) -> Motifs:
    """All occurrences of a motif; DlogError with the place if it is none."""
    compiled = compile_motif(motif, parse(motif), graph.directed)
    numbers = graph.numbered
    facts = {name: _relation(numbers, name) for name in compiled.inputs}
    rows = graph.running.run_source(compiled.text, facts, ("motif",))["motif"]
    columns = {c.name: _decoded(graph, c, codes) for c, codes in zip(compiled.columns, rows, strict=True)}
    held = [(c.holds, codes) for c, codes in zip(compiled.columns, rows, strict=True)]
    return Motifs(graph, pa.table(columns), held)


def program(motif: str, directed: bool = True) -> str:
    """The Datalog text of a motif.

    >>> print(program("(a)-[e]->(b); !(b)-[]->(a)").splitlines()[-1])
    motif(v_a, e_e, v_b) :- edge(e_e, v_a, v_b), !link(v_b, v_a).
    """
    return compile_motif(motif, parse(motif), directed).text


def _relation(graph: Numbered, name: str) -> Columns:
    """A relation that programs of motifs read."""
    if name == "vertex":
        return graph.vertex()
    *number, src, dst = graph.edge("numbered" if name == "edge" else "plain")
    if graph.directed:
        return (*number, src, dst)
    both = (np.concatenate([src, dst]), np.concatenate([dst, src]))
    return (*(np.concatenate([column, column]) for column in number), *both)


def _decoded(graph: ArrayGraph, column: AnswerColumn, codes: Codes) -> pa.Array:
    """Vertices and edges as structs of their columns, null where there is none; numbers as they are."""
    if column.holds == "value":
        return pa.array(codes)
    table = graph.vertices if column.holds == "vertex" else graph.edges
    absent = codes < 0
    places = pa.array(np.where(absent, 0, codes), mask=absent)
    fields = [table[name].combine_chunks().take(places) for name in table.column_names]
    mask = pa.array(absent) if absent.any() else None
    return pa.StructArray.from_arrays(fields, names=table.column_names, mask=mask)
