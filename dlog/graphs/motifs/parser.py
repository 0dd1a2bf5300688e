"""Text to motif: `parse(text)`, with every rule of GraphFrames' motifs checked."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import lark
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.source import Source, Span
from dlog.graphs.motifs.syntax import Edge, Term, Vertex

GRAMMAR = Path(__file__).with_name("motif.lark")
NAME = "motif"
MAX_PATH_EDGES = 100
"""Edges of the longest path with a length: each is an atom of a rule."""
_SPELLED = {
    "NAME": "a name",
    "LENGTH": "a length",
    "BETWEEN": "`..`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "SEMICOLON": "`;`",
    "BANG": "`!`",
    "STAR": "`*`",
    "MINUS": "`-`",
    "$END": "the end",
}


def parse(text: str) -> tuple[Term, ...]:
    """The terms of a motif, in order; DlogError with the place of what is wrong.

    Edges that come in are turned round, `<-[e]->` is two edges, and a path of a given length is that many edges, with
    GraphFrames' names for them and for the vertices between."""
    source = Source(text, NAME)
    try:
        tree = _tables().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(source, error) from None
    terms = tuple(term for node in tree.children if node is not None for term in _terms(source, node))
    _check(source, terms)
    return tuple(simple for term in terms for simple in _without_length(term))


@cache
def _tables() -> lark.Lark:
    return lark.Lark(GRAMMAR.read_text(), parser="lalr", start="motif", propagate_positions=True, maybe_placeholders=True)


def refuse(source: Source, span: Span, message: str, *notes: str) -> NoReturn:
    """DlogError with the place in the motif."""
    raise DlogError(Diagnostic("bad-motif", message, (Label(span),), notes, source))


def _syntax_error(source: Source, error: UnexpectedInput) -> DlogError:
    """The place and what could stand there."""
    expected: set[str] = set()
    at = error.pos_in_stream if error.pos_in_stream is not None and error.pos_in_stream >= 0 else len(source.text)
    width, found = 1, "the end"
    if isinstance(error, UnexpectedCharacters):
        expected, found = set(error.allowed or ()), f"`{source.text[at]}`"
    elif isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        if error.token.type == "$END":
            at = len(source.text.rstrip())
        else:
            width, found = len(error.token), f"`{error.token}`"
    listed = sorted({_spelled(name) for name in expected})
    what = f"expected {' or '.join([', '.join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)}, found {found}"
    note = "an edge is (a)-[e]->(b); terms are separated by `;`"
    return DlogError(Diagnostic("bad-motif", what, (Label(Span(at, at + width)),), (note,), source))


def _spelled(terminal: str) -> str:
    if terminal in _SPELLED:
        return _SPELLED[terminal]
    patterns = {definition.name: definition.pattern.value for definition in _tables().terminals}
    return f"`{patterns.get(terminal, terminal)}`"


# --------------------------------------------------------------------------------------------------------------------- terms


def _terms(source: Source, node: Any) -> list[Term]:
    match node.data:
        case "vertex":
            return [_vertex(node)]
        case "negated":
            span = _span(node)
            edges = _edges(source, node.children[0])
            if len(edges) > 1:
                refuse(source, span, "an edge both ways cannot be negated", "negate each of the two edges")
            return [replace(edge, negated=True, span=span) for edge in edges]
        case _:
            return list(_edges(source, node))


def _vertex(node: Any) -> Vertex:
    name = node.children[0]
    return Vertex(None if name is None else str(name), _span(node))


def _edges(source: Source, node: Any) -> list[Edge]:
    first, left, label, hops, right, second = node.children
    name = None if label is None else str(label)
    into, out = str(left.children[0]) == "<-", str(right.children[0]) == "->"
    span = _span(node)
    least, most = (1, 1) if hops is None else _lengths(source, hops)
    one = Edge(name, _vertex(first), _vertex(second), span, into or out, least, most)
    turned = replace(one, src=one.dst, dst=one.src)
    if not (into and out):
        return [turned if into else one]
    if name is None or hops is not None:
        return [one, turned]
    return [replace(one, name=f"{name}1"), replace(turned, name=f"{name}2")]


def _lengths(source: Source, hops: Any) -> tuple[int, int | None]:
    """The least and the greatest number of edges; None for no greatest."""
    match hops.data:
        case "any":
            return 1, None
        case "exactly":
            return _checked_lengths(source, _span(hops), int(hops.children[0]), int(hops.children[0]))
        case _:
            low, _, high = hops.children
            least, most = 1 if low is None else int(low), None if high is None else int(high)
            return _checked_lengths(source, _span(hops), least, most)


def _checked_lengths(source: Source, span: Span, least: int, most: int | None) -> tuple[int, int | None]:
    if least < 1:
        refuse(source, span, "a path has one edge or more")
    if most is not None and most < least:
        refuse(source, span, f"a path cannot have from {least} to {most} edges")
    if max(least, most or 0) > MAX_PATH_EDGES:
        refuse(source, span, f"a path of a given length has at most {MAX_PATH_EDGES} edges", "`*` is a path of any length")
    return least, most


def _without_length(term: Term) -> list[Term]:
    """A path with a name and one length as its edges, other terms as they are.

    The vertices between have names if the path has one: `_ab1` is the first behind `a` on the way to `b`."""
    if isinstance(term, Vertex) or term.ranged or term.least == 1 or term.name is None or not term.directed:
        return [term]
    return list(chain(term, term.least))


def chain(path: Edge, length: int) -> list[Edge]:
    """The edges of a path of that length."""
    ends = f"_{path.src.name or ''}{path.dst.name or ''}"
    between = [Vertex(f"{ends}{i}", path.span) for i in range(1, length)]
    stops = [path.src, *between, path.dst]
    names = [None if path.name is None else f"_{path.name}{i}" for i in range(1, length + 1)]
    pairs = zip(stops[:-1], stops[1:], names, strict=True)
    return [replace(path, name=name, src=a, dst=b, least=1, most=1) for a, b, name in pairs]


def _span(node: Any) -> Span:
    return Span(node.meta.start_pos, node.meta.end_pos)


# -------------------------------------------------------------------------------------------------------------------- checks


def _check(source: Source, terms: tuple[Term, ...]) -> None:
    """Refuses what GraphFrames refuses, for its reasons."""
    edges = [term for term in terms if isinstance(term, Edge)]
    for term in terms:
        if isinstance(term, Vertex) and term.name is None:
            refuse(source, term.span, "a vertex alone needs a name")
    for edge in edges:
        _check_edge(source, edge)
    vertices = {v.name for edge in edges for v in (edge.src, edge.dst)} | {t.name for t in terms if isinstance(t, Vertex)}
    seen: set[str] = set()
    for edge in edges:
        if edge.name is None:
            continue
        if edge.name in vertices:
            refuse(source, edge.span, f"`{edge.name}` names a vertex and an edge")
        if edge.name in seen:
            refuse(source, edge.span, f"`{edge.name}` names two edges", "an edge can do without a name: []")
        seen.add(edge.name)


def _check_edge(source: Source, edge: Edge) -> None:
    if edge.negated and edge.name is not None:
        refuse(source, edge.span, "an edge that is not there cannot have a name", "leave it out: !(a)-[]->(b)")
    if edge.negated and (edge.ranged or edge.least > 1):
        refuse(source, edge.span, "a path of several edges cannot be negated")
    if edge.name is None and edge.src.name is None and edge.dst.name is None:
        refuse(source, edge.span, "an edge needs a name for itself or for an end")
    if edge.name is not None and edge.most is None:
        note = "leave out the name, or give the greatest length: [e*1..3]"
        refuse(source, edge.span, "the edges of a path of any length cannot have names", note)
