"""Which names of a program with components are one: those that are renamed together."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dlog
from dlog.branch import Branch
from dlog.lsp.bindings import ROLES, Bindings, Part
from dlog.lsp.names import Role, find_names
from tests.examples import examples
from tests.strategies import Case
from tests.strategies_components import ComponentCase, component_programs

PROGRAM = """\
.type Node <: symbol
.comp Graph<T> {
    .decl edge(x: T, y: T)
    .decl reach(x: T, y: T) overridable
    reach(x, y) :- edge(x, y).
    .comp Inner { .decl in(x: T)  in(x) :- edge(x, _), seen(x). }
    .init inner = Inner
}
.comp Sym<T> : Graph<T> {
    .override reach
    edge(y, x) :- edge(x, y).
    reach(x, y) :- edge(y, x), inner.in(x).
}
.decl seen(x: Node)
.decl edge(x: Node, y: Node)
.init g = Sym<Node>
.init h = Graph<Node>
seen(x) :- g.edge(x, _), h.inner.in(x), edge(x, x), as(x, Node) = x.
.comp Use<C> { .init c = C  .decl p(x: Node)  p(x) :- c.edge(x, _). }
.init u = Use<Other>
.comp Other { .decl edge(x: Node, y: Node) }
.output g.reach, h.reach
"""


def lines(text: str, wanted: str, nth: int = 0) -> list[int]:
    """The lines (from 1) of what is one with the n-th place in a text."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(wanted, at + 1)
    return [text.count("\n", 0, part.span.start) + 1 for part in Bindings(find_names(text)).group(at)]


@pytest.mark.parametrize(
    ("wanted", "nth", "expected"),
    [
        ("edge(x: T", 0, [3, 5, 6, 11, 11, 12, 18]),
        ("edge(x, x)", 0, [15, 18]),
        ("edge(x, _). }", 0, [19, 21]),
        ("reach(x: T", 0, [4, 5, 10, 12, 22, 22]),
        ("in(x: T", 0, [6, 6, 12, 18]),
        ("inner = ", 0, [7, 12, 18]),
        ("seen(x).", 0, [6, 14, 18]),
        ("g = ", 0, [16, 18, 22]),
        ("Graph<T> {", 0, [2, 9, 17]),
        ("Other {", 0, [20, 21]),
        ("C> {", 0, [19, 19]),
        ("Node <", 0, [1, 14, 15, 15, 16, 17, 18, 19, 21, 21]),
    ],
)
def test_a_name_is_one_wherever_an_instance_has_it(wanted: str, nth: int, expected: list[int]) -> None:
    assert lines(PROGRAM, wanted, nth) == expected


def test_a_name_may_be_that_of_several_instances() -> None:
    text = ".comp C { .decl p(x: number)\np(x) :- q(x). }\n"
    text += ".comp A { .decl q(x: number)\n.init c = C }\n.comp B { .decl q(x: number)\n.init c = C }\n"
    text += ".init a = A\n.init b = B\n.decl q(x: number)\nq(1).\n"
    assert lines(text, "q(x).") == [2, 3, 5]
    assert lines(text, "q(1)") == [9, 10]


def test_components_without_end_are_told() -> None:
    for text in (".comp A { .init a = A }\n.init x = A\n", ".comp A { .init a = A\n.init b = A }\n.init x = A\n"):
        assert Bindings(find_names(text)).is_endless
    assert not Bindings(find_names(".comp A : A { .decl r(x: number) }\n.init x = A\n")).is_endless


def test_what_is_reached_through_an_unknown_component_is_told() -> None:
    text = ".comp A<T> : T { .decl p(x: number)\np(x) :- q(x). }\n.comp B { .decl q(x: number) }\n"
    bindings = Bindings(find_names(text))
    assert bindings.unknown(bindings.group(text.index("q(x: n"))) == "q"
    bindings = Bindings(find_names(text + ".init a = A<B>\n"))
    group = bindings.group(text.index("q(x: n"))
    assert len(group) == 2 and bindings.unknown(group) == ""


def renamed(text: str, group: list[Part], name: str) -> str:
    for part in reversed(group):
        text = text[: part.span.start] + name + text[part.span.end :]
    return text


def renamed_branches(value: Any, old: str, new: str) -> Any:
    if isinstance(value, Branch):
        return Branch(new if value.name == old else value.name, *(renamed_branches(v, old, new) for v in value.args))
    return type(value)(renamed_branches(v, old, new) for v in value) if isinstance(value, (tuple, list)) else value


@examples(40)
@given(cases=component_programs(), data=st.data())
def test_a_program_means_the_same_when_names_are_renamed(cases: tuple[ComponentCase, Case], data: st.DataObject) -> None:
    text, facts = cases[0].text, cases[0].facts
    names = find_names(text)
    bindings = Bindings(names)
    given_names = {part for name in facts for part in name.split(".")}
    declared = [o for o in names if o.declares and o.role in ROLES and o.name not in given_names]
    chosen = data.draw(st.sampled_from(declared))
    group = bindings.group(chosen.span.start)
    assert chosen.span in [part.span for part in group] and bindings.unknown(group) == ""
    before, renamed_facts = dlog.run_text(text, facts), facts
    results = [list(before[n]) for n in before]
    if chosen.role is Role.BRANCH:
        renamed_facts = {n: renamed_branches(rows, chosen.name, "renamed") for n, rows in facts.items()}
        results = renamed_branches(results, chosen.name, "renamed")
    after = dlog.run_text(renamed(text, group, "renamed"), renamed_facts)
    assert [sorted(map(repr, rows)) for rows in results] == [sorted(map(repr, after[n])) for n in after]
