"""Motif to Datalog.

    (a)-[e]->(b); !(b)-[]->(a)    ->    motif(v_a, e_e, v_b) :- edge(e_e, v_a, v_b), !link(v_b, v_a).

Vertices and edges are numbers; `link` are the ends of edges. A motif with named paths of several lengths is a rule for each of
their lengths, with -1 for the edges and vertices that a shorter one lacks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import pairwise, product
from typing import Literal

from dlog.dataclass import dataclass
from dlog.grammar.source import Source, Span
from dlog.graphs.motifs.parser import NAME, chain, refuse
from dlog.graphs.motifs.syntax import Edge, Term, Vertex

ABSENT = -1
MAX_RULES = 1000
ColumnContent = Literal["vertex", "edge", "value"]
Walk = tuple[str, str]
"""The name of a relation of paths, and its declaration and rules."""

DECLARATIONS = {
    "vertex": ".decl vertex(x: number)",
    "edge": ".decl edge(number: number, x: number, y: number)",
    "link": ".decl link(x: number, y: number)",
    "either": ".decl either(x: number, y: number)\neither(x, y), either(y, x) :- link(x, y).",
    "either_edge": ".decl either_edge(number: number, x: number, y: number)\n"
    "either_edge(e, x, y), either_edge(e, y, x) :- edge(e, x, y).",
}
INPUTS = ("vertex", "edge", "link")
"""`edge` and `link` have each edge both ways where edges have no direction."""


@dataclass(frozen=True, slots=True)
class AnswerColumn:
    """A column of the answer."""

    name: str
    holds: ColumnContent


@dataclass(frozen=True, slots=True)
class Compiled:
    """A program whose relation `motif` has `columns`; `inputs` are those of INPUTS that it reads."""

    text: str
    columns: tuple[AnswerColumn, ...]
    inputs: tuple[str, ...]


@dataclass(slots=True)
class _Body:
    """The body of one rule: its atoms, and the variables or numbers of its columns."""

    atoms: list[str] = field(default_factory=list)
    values: dict[AnswerColumn, str] = field(default_factory=dict)
    edges: dict[int, str] = field(default_factory=dict)
    """By the place of each atom of a named edge: the same without its number."""
    vertices: set[str] = field(default_factory=set)

    @property
    def cyclic(self) -> bool:
        """Whether named edges close a cycle."""
        return bool(self.edges) and len(self.edges) >= len(self.vertices)


def compile_motif(text: str, terms: Sequence[Term], directed: bool) -> Compiled:
    """The program of a motif in a graph whose edges have a direction, or have none: then they are there both ways."""
    if not directed:
        terms = [replace(term, directed=True) if isinstance(term, Edge) else term for term in terms]
    walks: dict[str, str] = {}
    bodies = [_body(chosen, walks) for chosen in _choices(text, terms)]
    columns = tuple(dict.fromkeys(column for body in bodies for column in body.values))
    columns = (*(c for c in columns if c.holds != "value"), *(c for c in columns if c.holds == "value"))
    head = ", ".join(f"c{i}: number" for i in range(len(columns)))
    rules = [f".decl motif({head})"]
    for number, body in enumerate(bodies):
        values = ", ".join(body.values.get(column, str(ABSENT)) for column in columns)
        if body.cyclic:
            rules.append(_vertices_first(body, f"shape_{number}"))
        rules.append(f"motif({values}) :- {', '.join(body.atoms)}.")
    program = "\n".join([*walks.values(), *rules, ""])
    declarations, inputs = _declarations(program)
    return Compiled(declarations + program, columns, inputs)


def _vertices_first(body: _Body, name: str) -> str:
    """The rule of a relation of the vertices in a body, which the body then reads: cycles are found much faster among pairs
    of vertices than among edges with numbers."""
    variables = sorted(body.vertices)
    head = f"{name}({', '.join(variables)})"
    atoms = ", ".join(body.edges.get(i, atom) for i, atom in enumerate(body.atoms))
    declaration = f".decl {name}({', '.join(f'{v}: number' for v in variables)})"
    body.atoms = [head, *(atom for i, atom in enumerate(body.atoms) if i in body.edges or "_hop" in atom)]
    return f"{declaration}\n{head} :- {atoms}."


def _declarations(program: str) -> tuple[str, tuple[str, ...]]:
    """The declarations that a program needs, and its inputs."""
    used = {name for name in DECLARATIONS if f" {name}(" in program or f"!{name}(" in program}
    used |= {"link"} if "either" in used else set()
    used |= {"edge"} if "either_edge" in used else set()
    lines = [declaration for name, declaration in DECLARATIONS.items() if name in used]
    return "\n".join([*lines, ""]), tuple(name for name in INPUTS if name in used)


# ---------------------------------------------------------------------------------------------------------------------- rules


def _choices(text: str, terms: Sequence[Term]) -> Iterable[list[tuple[Term, str, int]]]:
    """For each rule its terms: named paths as chains of one of their lengths, each with the column of its length, if it has
    one, and the length."""
    alternatives: list[list[list[tuple[Term, str, int]]]] = []
    hops = 0
    for term in terms:
        column = ""
        if isinstance(term, Edge) and term.ranged and term.most is not None:
            hops += 1
            column = "_hop" if hops == 1 else f"_hop{hops}"
        alternatives.append(_alternatives(term, column))
    rules = 1
    for each in alternatives:
        rules *= len(each)
    if rules > MAX_RULES:
        note = "named paths of several lengths are a rule for each length; leave out names"
        refuse(Source(text, NAME), Span(0, len(text)), f"the motif has {rules} forms, more than {MAX_RULES}", note)
    return ([part for chosen in choice for part in chosen] for choice in product(*alternatives))


def _alternatives(term: Term, column: str) -> list[list[tuple[Term, str, int]]]:
    """The forms of one term, each a list of terms: a path either way is one there or one back."""
    if isinstance(term, Vertex) or (term.least, term.most) == (1, 1):
        return [[(term, column, 0)]]
    ways = [term] if term.directed else [replace(term, directed=True), replace(term, src=term.dst, dst=term.src, directed=True)]
    if term.name is None or term.most is None:
        return [[(way, column, 0)] for way in ways]
    lengths = range(term.least, term.most + 1)
    chains = [(length, chain(way, length)) for length in lengths for way in ways]
    return [[(edge, column if i == 0 else "", length) for i, edge in enumerate(edges)] for length, edges in chains]


def _body(terms: Iterable[tuple[Term, str, int]], walks: dict[str, str]) -> _Body:
    body = _Body()
    bound: set[str] = set()
    listed = list(terms)
    for term, column, length in listed:
        if isinstance(term, Vertex):
            _name(body, term)
            body.atoms.append(f"vertex({_variable(term)})")
            body.vertices.add(_variable(term))
            bound.add(_variable(term))
            continue
        _name(body, term.src)
        if not term.negated:
            body.atoms.append(_atom(term, column, length, body, walks))
            bound |= {_variable(term.src), _variable(term.dst)}
        _name(body, term.dst)
    for term, _, _ in listed:
        if isinstance(term, Edge) and term.negated:
            ends = [_variable(end) for end in (term.src, term.dst)]
            new = dict.fromkeys(end for end in ends if end != "_" and end not in bound)
            body.atoms += [f"vertex({end})" for end in new]
            body.vertices |= set(new)
            bound |= set(new)
            body.atoms.append(f"!{'link' if term.directed else 'either'}({', '.join(ends)})")
    return body


def _name(body: _Body, vertex: Vertex) -> None:
    if vertex.name is not None:
        body.values.setdefault(AnswerColumn(vertex.name, "vertex"), _variable(vertex))


def _variable(vertex: Vertex) -> str:
    return "_" if vertex.name is None else f"v_{vertex.name}"


def _atom(edge: Edge, column: str, length: int, body: _Body, walks: dict[str, str]) -> str:
    """The atom of an edge or a path, its edge and its length noted in the body."""
    ends = f"{_variable(edge.src)}, {_variable(edge.dst)}"
    link = "link" if edge.directed else "either"
    body.vertices |= {_variable(end) for end in (edge.src, edge.dst) if end.name is not None}
    if edge.name is not None:
        body.values[AnswerColumn(edge.name, "edge")] = f"e_{edge.name}"
        if column:
            body.values[AnswerColumn(column, "value")] = str(length)
        body.edges[len(body.atoms)] = f"{link}({ends})"
        return f"{'edge' if edge.directed else 'either_edge'}(e_{edge.name}, {ends})"
    if (edge.least, edge.most) == (1, 1):
        return f"{link}({ends})"
    name, rules = _far(link, edge.least) if edge.most is None else _walk(link, edge.most)
    walks[name] = rules
    if edge.most is None:
        return f"{name}({ends})"
    if not column:
        return f"{name}({ends}, {edge.least})"
    hop = f"n{column}"
    body.values[AnswerColumn(column, "value")] = hop
    return f"{name}({ends}, {hop}), {hop} >= {edge.least}"


def _far(link: str, least: int) -> Walk:
    """Pairs of vertices with a path of so many edges or more between them."""
    name = f"far_{link}_{least}"
    if least == 1:
        first = f"{name}(x, y) :- {link}(x, y)."
    else:
        stops = ["x", *(f"s{i}" for i in range(1, least)), "y"]
        steps = ", ".join(f"{link}({a}, {b})" for a, b in pairwise(stops))
        first = f"{name}(x, y) :- {steps}."
    return name, f".decl {name}(x: number, y: number)\n{first}\n{name}(x, z) :- {name}(x, y), {link}(y, z)."


def _walk(link: str, most: int) -> Walk:
    """Pairs of vertices and the numbers of edges, up to `most`, of the paths between them."""
    name = f"walk_{link}_{most}"
    return name, (
        f".decl {name}(x: number, y: number, edges: number)\n"
        f"{name}(x, y, 1) :- {link}(x, y).\n"
        f"{name}(x, z, n + 1) :- {name}(x, y, n), {link}(y, z), n < {most}."
    )
