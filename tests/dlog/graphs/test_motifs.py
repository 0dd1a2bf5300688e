"""Motifs against a search through all assignments of vertices and edges, and what is refused, at its place."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.grammar.diagnostics import render_all
from dlog.graphs.motifs import program
from tests.dlog.graphs.graph_strategies import Sample, samples
from tests.examples import examples

TERM = re.compile(r"(!?)\((\w*)\)(<?)-\[(\w*)\]-(>?)\((\w*)\)|\((\w+)\)")
MOTIFS = [
    "(a)-[e]->(b)",
    "(a)<-[e]-(b)",
    "(a)-[]->(b); (b)-[]->(c); (c)-[]->(a)",
    "(a)-[e]->(b); (b)-[f]->(a)",
    "(a)-[e]->(b); (b)-[f]->(c); (c)-[g]->(a)",
    "(a)-[e]->(a)",
    "(a)-[]->(b); !(b)-[]->(a)",
    "(a)-[e]->(); ()-[f]->(a)",
    "(a)-[]-(b)",
    "(a)-[e]-(b); (b)-[]->(c)",
    "(a)-[]->(b); (c)",
    "(a)-[e]->(b); (b)-[f]->(a); (c); !(c)-[]->(a)",
    "(a); !(a)-[]->(b)",
    "(b); !()-[]->(b)",
    "(a)-[]-(b); !(a)-[]->(b)",
    "(a)-[]->(b); !(a)-[]-(a)",
    "(z)-[]->(); (y)-[]->(z)",
]


def occurrences(motif: str, sample: Sample, directed: bool) -> set[tuple[Any, ...]]:
    """The rows of a motif by trying everything: vertices by name, edges by their number."""
    terms = [TERM.fullmatch(term.strip()).groups() for term in motif.split(";")]  # type: ignore[union-attr]
    names = list(dict.fromkeys(n for t in terms for n in (t[1], t[5], t[6]) if n))
    rows = set()
    for chosen in product(sample.vertices, repeat=len(names)):
        value = dict(zip(names, chosen, strict=True))
        ways = [matches(term, value, sample.edges, directed) for term in terms]
        rows |= {row(terms, value, dict(found for found in way if found)) for way in product(*ways)}
    return rows


def matches(term: Any, value: Any, edges: Any, directed: bool) -> list[Any]:
    """The ways in which a term holds: each the name and number of its edge, or nothing."""
    negated, a, into, name, out, b, alone = term
    if alone:
        return [()]
    if into:
        a, b = b, a
    either = not directed or not (into or out)
    found = [i for i, (x, y) in enumerate(edges) if fits(a, x, value) and fits(b, y, value)]
    found += [i for i, (x, y) in enumerate(edges) if either and fits(a, y, value) and fits(b, x, value)]
    if negated:
        return [] if found else [()]
    return [(name, i) for i in set(found)] if name else [()] * bool(found)


def fits(name: str, vertex: Any, value: Any) -> bool:
    return not name or value[name] == vertex


def row(terms: Any, value: Any, edges: Any) -> tuple[Any, ...]:
    columns = list(dict.fromkeys(n for _, a, _, e, _, b, alone in terms for n in (a, e, b, alone) if n))
    return tuple(value[n] if n in value else ("edge", edges[n]) for n in columns)


def found(sample: Sample, motif: str, directed: bool) -> list[tuple[Any, ...]]:
    edges = {"src": [a for a, _ in sample.edges], "dst": [b for _, b in sample.edges], "n": range(len(sample.edges))}
    graph = dlog.graph(sample.vertices, {k: list(v) for k, v in edges.items()}, directed=directed)
    return [tuple(v["id"] if "id" in v else ("edge", v["n"]) for v in row) for row in graph.find(motif)]


@pytest.mark.parametrize("motif", MOTIFS)
@given(samples(vertices=4, edges=8), st.booleans())
@examples(15)
def test_motifs_are_found(motif: str, sample: Sample, directed: bool) -> None:
    turned = "<-" in motif  # the names of an edge that comes in are met in the other order
    rows = found(sample, motif, directed)
    assert len(rows) == len(set(rows))
    expected = occurrences(motif, sample, directed)
    assert {tuple(sorted(map(str, r))) if turned else r for r in rows} == {
        tuple(sorted(map(str, r))) if turned else r for r in expected
    }


@pytest.fixture(scope="module")
def graph() -> dlog.Graph:
    vertices = {"id": ["a", "b", "c"], "age": [30, 40, 50]}
    return dlog.graph(vertices, {"src": ["a", "b", "b"], "dst": ["b", "a", "c"], "kind": ["likes", "likes", "knows"]})


def test_columns_are_structs_with_attributes(graph: dlog.Graph) -> None:
    table = graph.find("(x)-[e]->(y); !(y)-[]->(x)").table
    assert table.column_names == ["x", "e", "y"]
    assert table.to_pylist() == [
        {"x": {"id": "b", "age": 40}, "e": {"src": "b", "dst": "c", "kind": "knows"}, "y": {"id": "c", "age": 50}}
    ]


def ids(rows: Any) -> list[Any]:
    values = [tuple(v.get("id", (v.get("src"), v.get("dst"))) if isinstance(v, dict) else v for v in row) for row in rows]
    return sorted(values, key=str)


def test_both_ways_is_two_edges(graph: dlog.Graph) -> None:
    motifs = graph.find("(x)<-[e]->(y)")
    assert motifs.table.column_names == ["x", "e1", "y", "e2"]
    assert ids(motifs) == [("a", ("a", "b"), "b", ("b", "a")), ("b", ("b", "a"), "a", ("a", "b"))]
    assert ids(graph.find("(x)<-[]->(y)")) == [("a", "b"), ("b", "a")]


def test_paths_of_one_length_name_their_edges_and_vertices(graph: dlog.Graph) -> None:
    motifs = graph.find("(x)-[e*2]->(y)")
    assert motifs.table.column_names == ["x", "_e1", "_xy1", "_e2", "y"]
    assert ids(motifs) == [
        ("a", ("a", "b"), "b", ("b", "a"), "a"),
        ("a", ("a", "b"), "b", ("b", "c"), "c"),
        ("b", ("b", "a"), "a", ("a", "b"), "b"),
    ]
    assert ids(graph.find("(x)-[*2]->(y)")) == [("a", "a"), ("a", "c"), ("b", "b")]


def test_paths_of_several_lengths_say_how_long_they_are(graph: dlog.Graph) -> None:
    motifs = graph.find("(x)-[e*1..2]->(y)")
    assert motifs.table.column_names == ["x", "_e1", "y", "_xy1", "_e2", "_hop"]
    assert len(motifs) == 6
    assert ("b", ("b", "c"), "c", None, None, 1) in ids(motifs)
    assert ("a", ("a", "b"), "c", "b", ("b", "c"), 2) in ids(motifs)
    short = graph.find("(x)-[*1..2]->(y)")
    assert short.table.column_names == ["x", "y", "_hop"]
    assert ids(short) == [("a", "a", 2), ("a", "b", 1), ("a", "c", 2), ("b", "a", 1), ("b", "b", 2), ("b", "c", 1)]
    assert ids(graph.find("(x)-[*..2]->(y)")) == ids(short)


def test_paths_of_any_length(graph: dlog.Graph) -> None:
    everything = [("a", "a"), ("a", "b"), ("a", "c"), ("b", "a"), ("b", "b"), ("b", "c")]
    assert ids(graph.find("(x)-[*]->(y)")) == everything
    path = dlog.graph([(1, 2), (2, 3), (3, 4)])
    assert ids(path.find("(x)-[*2..]->(y)")) == [(1, 3), (1, 4), (2, 4)]
    assert ids(path.find("(x)-[*2..]->(y); (y)-[]->(z)")) == [(1, 3, 4)]


def test_paths_either_way_go_all_the_one_way_in_directed_graphs() -> None:
    edges = [(1, 2), (3, 2), (3, 4)]
    assert ids(dlog.graph(edges).find("(x)-[*2]-(y)")) == []
    assert ids(dlog.graph([(1, 2), (2, 3)]).find("(x)-[*2]-(y)")) == [(1, 3), (3, 1)]
    assert (1, 4, 3) in ids(dlog.graph(edges, directed=False).find("(x)-[*1..3]->(y)"))


def test_the_program_of_a_motif() -> None:
    assert program("(a)-[e]->(b); (b)-[*1..2]->(c)").splitlines()[-1] == (
        "motif(v_a, e_e, v_b, v_c, n_hop) :- edge(e_e, v_a, v_b), walk_link_2(v_b, v_c, n_hop), n_hop >= 1."
    )


# ------------------------------------------------------------------------------------------------------------------- refused

REFUSED = {
    "(a)-[e->(b)": """\
error: expected `*` or `]`, found `->`
 --> motif:1:7
  |
1 | (a)-[e->(b)
  |       ^^
  = an edge is (a)-[e]->(b); terms are separated by `;`""",
    "(a)-[e]->(b": """\
error: expected `)`, found the end
 --> motif:1:12
  |
1 | (a)-[e]->(b
  |            ^
  = an edge is (a)-[e]->(b); terms are separated by `;`""",
    "(a) and (b)": """\
error: expected `-`, `;`, `<-` or the end, found `and`
 --> motif:1:5
  |
1 | (a) and (b)
  |     ^^^
  = an edge is (a)-[e]->(b); terms are separated by `;`""",
    "(a)-[]->(b); ()-[]->()": """\
error: an edge needs a name for itself or for an end
 --> motif:1:14
  |
1 | (a)-[]->(b); ()-[]->()
  |              ^^^^^^^^^""",
    "(a); !(a)-[e]->(b)": """\
error: an edge that is not there cannot have a name
 --> motif:1:6
  |
1 | (a); !(a)-[e]->(b)
  |      ^^^^^^^^^^^^^
  = leave it out: !(a)-[]->(b)""",
    "(a)-[a]->(b)": """\
error: `a` names a vertex and an edge
 --> motif:1:1
  |
1 | (a)-[a]->(b)
  | ^^^^^^^^^^^^""",
    "(a)-[e]->(b); (b)-[e]->(c)": """\
error: `e` names two edges
 --> motif:1:15
  |
1 | (a)-[e]->(b); (b)-[e]->(c)
  |               ^^^^^^^^^^^^
  = an edge can do without a name: []""",
    "(a)-[e*0]->(b)": """\
error: a path has one edge or more
 --> motif:1:7
  |
1 | (a)-[e*0]->(b)
  |       ^^""",
    "(a)-[*3..2]->(b)": """\
error: a path cannot have from 3 to 2 edges
 --> motif:1:6
  |
1 | (a)-[*3..2]->(b)
  |      ^^^^^""",
    "(a)-[e*]->(b)": """\
error: the edges of a path of any length cannot have names
 --> motif:1:1
  |
1 | (a)-[e*]->(b)
  | ^^^^^^^^^^^^^
  = leave out the name, or give the greatest length: [e*1..3]""",
    "(a)-[*999]->(b)": """\
error: a path of a given length has at most 100 edges
 --> motif:1:6
  |
1 | (a)-[*999]->(b)
  |      ^^^^
  = `*` is a path of any length""",
    "(a); !(a)-[*2]->(b)": """\
error: a path of several edges cannot be negated
 --> motif:1:6
  |
1 | (a); !(a)-[*2]->(b)
  |      ^^^^^^^^^^^^^^""",
    "(a); !(a)<-[]->(b)": """\
error: an edge both ways cannot be negated
 --> motif:1:6
  |
1 | (a); !(a)<-[]->(b)
  |      ^^^^^^^^^^^^^
  = negate each of the two edges""",
    "()": """\
error: a vertex alone needs a name
 --> motif:1:1
  |
1 | ()
  | ^^""",
    "(a)-[e*1..90]->(b); (b)-[f*1..90]->(c)": """\
error: the motif has 8100 forms, more than 1000
 --> motif:1:1
  |
1 | (a)-[e*1..90]->(b); (b)-[f*1..90]->(c)
  | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = named paths of several lengths are a rule for each length; leave out names""",
}


@pytest.mark.parametrize(("motif", "expected"), REFUSED.items(), ids=REFUSED.keys())
def test_bad_motifs_are_refused_at_their_place(motif: str, expected: str, graph: dlog.Graph) -> None:
    with pytest.raises(dlog.DlogError) as error:
        graph.find(motif)
    assert render_all(error.value.diagnostics) == expected
    assert {d.code for d in error.value.diagnostics} == {"bad-motif"}
