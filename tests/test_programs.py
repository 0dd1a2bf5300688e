"""Every folder of `programs/` through the command line on every engine and through the naive evaluator, and programs on real
inputs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dlog.branch import Branch
from dlog.grammar.parser import parse
from dlog.grammar.preprocess import preprocess
from dlog.grammar.syntax import Directive, Program, RelationDecl
from tests.conftest import ROOT, RunProgram
from tests.engines import EVERY_ENGINE_FOR_PROGRAMS, lines_of
from tests.naive import evaluate

PROGRAMS = sorted(path.parent for path in (ROOT / "programs").rglob("program.dl"))
EACH_PROGRAM = pytest.mark.parametrize("folder", PROGRAMS, ids=lambda folder: str(folder.relative_to(ROOT / "programs")))

Id = tuple[int, ...]
Answer = Callable[[str], list[str]]


def read_facts(program: Program, folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """The input relations, read in the simplest way that does for the small data of `programs/`."""
    read = {"number": int, "unsigned": int, "float": float, "symbol": str}
    columns = {name: [read[a.type] for a in d.attributes] for d in relations(program) for name in d.names if is_flat(d)}
    facts = {}
    for directive in directives(program, "input"):
        params = dict(directive.params)
        for name in directive.relations:
            text = (folder / params.get("filename", f"{name}.facts")).read_text()
            split = [line.split(params.get("delimiter", "\t")) for line in text.splitlines()]
            facts[name] = [tuple(f(v) for f, v in zip(columns[name], row, strict=True)) for row in split]
    return facts


def relations(program: Program) -> Iterator[RelationDecl]:
    return (item for item in program.items if isinstance(item, RelationDecl))


def is_flat(declaration: RelationDecl) -> bool:
    return all(a.type in ("number", "unsigned", "float", "symbol") for a in declaration.attributes)


def directives(program: Program, kind: str) -> Iterator[Directive]:
    return (item for item in program.items if isinstance(item, Directive) and item.kind == kind)


def written(value: Any) -> str:
    match value:
        case float():
            return f"{value:.17g}"
        case Branch(name, args):
            return f"${name}({', '.join(map(written, args))})" if args else f"${name}"
        case _:
            return str(value)


def test_there_are_programs() -> None:
    assert len(PROGRAMS) >= 28


@EVERY_ENGINE_FOR_PROGRAMS
@EACH_PROGRAM
def test_program_writes_the_expected_files(run_program: RunProgram, folder: Path, tmp_path: Path) -> None:
    assert run_program(folder / "program.dl", folder / "facts", tmp_path) == lines_of(folder / "expected")


@pytest.mark.slow
@EACH_PROGRAM
def test_naive_evaluator_gives_the_expected_files(folder: Path) -> None:
    program = parse(preprocess(folder / "program.dl"))
    found = evaluate(program, read_facts(program, folder / "facts"))
    outputs = [name for directive in directives(program, "output") for name in directive.relations]
    lines = {f"{name}.csv": sorted("\t".join(map(written, row)) for row in found[name]) for name in outputs}
    assert lines == lines_of(folder / "expected")


# ---------------------------------------------------------------------------------------------------------- real inputs


def visible_elements(inserts: Path, removes: Path) -> list[Id]:
    """The elements with a value in the order of the text, by a walk through the tree."""
    children: dict[Id, list[Id]] = defaultdict(list)
    for line in inserts.read_text().splitlines():
        counter, node, *parent = map(int, line.split())
        children[tuple(parent)].append((counter, node))
    removed = {tuple(map(int, line.split())) for line in removes.read_text().splitlines()}
    order, stack = [], [(0, 0)]
    while stack:
        element = stack.pop()
        order.append(element)
        stack += sorted(children[element])
    return [element for element in order[1:] if element not in removed]


@pytest.mark.slow
@EVERY_ENGINE_FOR_PROGRAMS
def test_editing_trace_of_a_real_document(run_program: RunProgram, shared_data: Path, tmp_path: Path) -> None:
    """104,851 pairs of neighbours; 198 of them have the counters of another pair and differ in their nodes only."""
    found = run_program(ROOT / "programs" / "crdt" / "program.dl", shared_data / "crdt", tmp_path)
    elements = visible_elements(shared_data / "crdt" / "insert.txt", shared_data / "crdt" / "remove.txt")
    neighbours = list(pairwise(elements))
    assert len(found["visible.csv"]) == 104_851
    assert found["visible.csv"] == sorted("\t".join(map(str, (*a, *b))) for a, b in neighbours)
    assert len(found["result.csv"]) == 104_653
    assert found["result.csv"] == sorted({f"{a[0]}\t{b[0]}\thi" for a, b in neighbours})


FACEBOOK = """.decl given(x: number, y: number)
.input given(filename="facebook.tsv")
.decl edge(x: number, y: number)
edge(x, y), edge(y, x) :- given(x, y).
.decl node(x: number)
node(x) :- edge(x, _).
.decl answer(n: number)
.output answer
"""


@pytest.fixture
def facebook_answer(run_program: RunProgram, shared_data: Path, tmp_path: Path) -> Answer:
    """The rows of `answer` that rules on the graph of Facebook's users give."""

    def run(rules: str) -> list[str]:
        program = tmp_path / "program.dl"
        program.write_text(FACEBOOK + rules)
        return run_program(program, shared_data / "graphs", tmp_path / "out")["answer.csv"]

    return run


@EVERY_ENGINE_FOR_PROGRAMS
def test_triangles_of_a_real_graph(facebook_answer: Answer) -> None:
    rules = "answer(n) :- n = count : { edge(x, y), edge(y, z), edge(x, z), x < y, y < z }."
    assert facebook_answer(rules) == ["1612010"]


@EVERY_ENGINE_FOR_PROGRAMS
def test_stored_triangles_of_a_real_graph(facebook_answer: Answer) -> None:
    rules = """.decl triangle(x: number, y: number, z: number)
triangle(x, y, z) :- edge(x, y), edge(y, z), edge(x, z), x < y, y < z.
answer(n) :- n = count : { triangle(_, _, _) }.
"""
    assert facebook_answer(rules) == ["1612010"]


@EVERY_ENGINE_FOR_PROGRAMS
def test_components_of_a_real_graph(facebook_answer: Answer) -> None:
    rules = """.decl component(x: number, c: number)
component(x, c) :- node(x), c = min n : { node(x), n = x ; edge(x, y), component(y, n) }.
answer(n) :- n = count : { component(x, x) }.
"""
    assert facebook_answer(rules) == ["1"]


@EVERY_ENGINE_FOR_PROGRAMS
def test_eccentricity_of_a_node_by_levels(facebook_answer: Answer) -> None:
    rules = """.decl level(x: number, n: number)
level(0, 0).
level(y, n + 1) :- level(x, n), edge(x, y), n < 10.
.decl first(x: number, n: number)
first(x, n) :- node(x), n = min m : { level(x, m) }.
answer(n) :- n = max m : { first(_, m) }.
"""
    assert facebook_answer(rules) == ["6"]


DISTANCES = """.decl dist(s: number, x: number, d: number)
dist(s, x, d) :- from(s), node(x), d = min c : { from(s), x = s, node(x), c = 0 ; dist(s, y, b), edge(y, x), c = b + 1 }.
answer(n) :- n = max d : { dist(_, _, d) }.
"""


@EVERY_ENGINE_FOR_PROGRAMS
def test_diameter_of_a_real_graph_from_some_of_its_nodes(facebook_answer: Answer) -> None:
    """Node 3692 is an end of a longest shortest path."""
    rules = f".decl from(s: number)\nfrom(s) :- node(s), s % 100 = 92.\n{DISTANCES}"
    assert facebook_answer(rules) == ["8"]


@pytest.mark.slow
@EVERY_ENGINE_FOR_PROGRAMS
def test_diameter_of_a_real_graph(facebook_answer: Answer) -> None:
    rules = f".decl from(s: number)\nfrom(s) :- node(s).\n{DISTANCES}"
    assert facebook_answer(rules) == ["8"]
