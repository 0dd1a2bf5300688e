"""Components: the items that instances become, what names in them refer to, and their warnings. Mistakes are in `errors`."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from dlog.engine.compile.components import expand
from dlog.engine.compiler import compile_source, parse
from dlog.grammar.diagnostics import Diagnostic, DlogError, render
from dlog.grammar.source import Source
from dlog.grammar.unparse import format_item
from tests.conftest import RunProgram
from tests.naive_components import without_components


def expanded(text: str) -> list[str]:
    source = Source(dedent(text))
    tree = parse(source)
    program = expand(tree, source).program
    assert sorted(map(repr, program.items)) == sorted(map(repr, without_components(tree).items))
    return [format_item(item) for item in program.items]


def test_a_program_without_components_stays_as_it_is() -> None:
    tree = parse(Source(".decl r(x: number)\nr(1)."))
    assert expand(tree, Source("")).program is tree


def test_an_instance_has_the_items_of_its_component_under_its_name() -> None:
    text = """
        .comp C {
            .type T <: number
            .type R = [head: T, tail: R]
            .type U = T | number
            .decl r(x: T, y: R) inline
            .decl s(x: U)
            r(x, [x, nil]) :- s(y), x = as(y, T), !outside(x), c = count : { s(_) }, c > 1.
            .input s
            .output r, s(IO=stdout)
        }
        .init c = C
    """
    assert expanded(text) == [
        ".type c.T <: number",
        ".type c.R = [head: c.T, tail: c.R]",
        ".type c.U = c.T | number",
        ".decl c.r(x: c.T, y: c.R) inline",
        ".decl c.s(x: c.U)",
        "c.r(x, [x, nil]) :- c.s(y), x = as(y, c.T), !outside(x), c = count : { c.s(_) }, c > 1.",
        ".input c.s",
        ".output c.r, c.s(IO=stdout)",
    ]


def test_branches_plans_and_subsumption_get_the_names_of_the_instance() -> None:
    text = """
        .comp C {
            .type T = A {} | B { t: T }
            .decl r(t: T)
            r($B($A())) :- r($A()), r(x), x != $A().
            .plan 0: (2, 1)
            r(x) <= r(y) :- r(y), x != y.
        }
        .init c = C
    """
    assert expanded(text) == [
        ".type c.T = c.A {} | c.B {t: c.T}",
        ".decl c.r(t: c.T)",
        "c.r($c.B($c.A())) :- c.r($c.A()), c.r(x), x != $c.A().\n.plan 0: (2, 1)",
        "c.r(x) <= c.r(y) :- c.r(y), x != y.",
    ]


def test_a_component_without_an_instance_leaves_nothing() -> None:
    assert expanded(".comp C { .decl r(x: unknown)\nr(1). }") == []


def test_type_parameters_stand_for_types_and_for_components() -> None:
    text = """
        .comp Store<V> { .decl r(x: V) }
        .comp Pair<A, Of> { .init left = Store<A>  .init right = Of }
        .comp Fixed { .decl f(x: symbol) }
        .init p = Pair<float, Fixed>
    """
    assert expanded(text) == [".decl p.left.r(x: float)", ".decl p.right.f(x: symbol)"]


def test_a_type_parameter_may_be_the_base() -> None:
    text = """
        .comp Numbers { .decl r(x: number)  r(1). }
        .comp More<Base> : Base { r(x + 1) :- r(x), x < 3. }
        .init m = More<Numbers>
    """
    assert expanded(text) == [".decl m.r(x: number)", "m.r(1).", "m.r(x + 1) :- m.r(x), x < 3."]


def test_the_parameters_of_a_base_are_not_those_of_what_inherits_it() -> None:
    text = """
        .type T <: symbol
        .comp Base<A> { .decl r(x: A, y: T) }
        .comp Sub<T> : Base<T> {}
        .init s = Sub<number>
    """
    assert expanded(text) == [".type T <: symbol", ".decl s.r(x: number, y: T)"]


def test_a_name_refers_to_the_innermost_instance_that_has_it() -> None:
    text = """
        .decl a(x: number)
        .decl b(x: number)
        .decl c(x: number)
        .comp Inner { .decl a(x: number)  a(x) :- b(x), c(x), in.a(x).  b(1). }
        .comp Outer { .decl b(x: number)  .init in = Inner  b(x) :- a(x), in.a(x), other.in.b(x). }
        .init o = Outer
        .init other = Outer
    """
    clauses = [line for line in expanded(text) if not line.startswith(".")]
    assert clauses == [
        "o.in.a(x) :- o.b(x), c(x), o.in.a(x).",
        "o.b(1).",
        "o.b(x) :- a(x), o.in.a(x), other.in.b(x).",
        "other.in.a(x) :- other.b(x), c(x), other.in.a(x).",
        "other.b(1).",
        "other.b(x) :- a(x), other.in.a(x), other.in.b(x).",
    ]


def test_components_are_looked_up_from_the_inside_outwards_and_in_bases() -> None:
    text = """
        .comp C { .decl global(x: number) }
        .comp Base { .comp C { .decl nested(x: number) }  .comp D { .decl d(x: number) } }
        .comp Sub : Base { .init c = C  .comp D { .decl own(x: number) }  .init d = D }
        .init c = C
        .init s = Sub
    """
    assert expanded(text) == [".decl c.global(x: number)", ".decl s.c.nested(x: number)", ".decl s.d.own(x: number)"]


def test_overriding_replaces_inherited_clauses_of_a_relation() -> None:
    text = """
        .comp A { .decl r(x: number) overridable  .decl s(x: number)  r(1). s(1).  r(x), s(x) :- s(x). }
        .comp B : A { .override r  r(2). }
        .comp C : B { .override r  r(3). }
        .init a = A
        .init b = B
        .init c = C
    """
    assert [line for line in expanded(text) if not line.startswith(".")] == [
        *["a.r(1).", "a.s(1).", "a.r(x), a.s(x) :- a.s(x)."],
        *["b.s(1).", "b.s(x) :- b.s(x).", "b.r(2)."],
        *["c.s(1).", "c.s(x) :- c.s(x).", "c.r(3)."],
    ]


def test_a_base_that_is_inherited_over_two_ways_is_there_once() -> None:
    text = """
        .comp Base<T> { .decl r(x: T) overridable  .decl s(x: T)  r(x) :- s(x). }
        .comp Left : Base<number> { .override r  r(1). }
        .comp Right : Base<number> { s(2). }
        .comp Both : Left, Right {}
        .init b = Both
        .comp Turned : Right, Left {}
        .init t = Turned
    """
    own = [".decl {0}.r(x: number) overridable", ".decl {0}.s(x: number)"]
    assert expanded(text) == [
        *[line.format("b") for line in (*own, "{0}.r(1).", "{0}.s(2).")],
        *[line.format("t") for line in (*own, "{0}.s(2).", "{0}.r(1).")],
    ]


def test_ladders_of_bases_are_walked_once() -> None:
    steps = "".join(f".comp L{i} : A{i} {{}}\n.comp R{i} : A{i} {{}}\n.comp A{i + 1} : L{i}, R{i} {{}}\n" for i in range(40))
    source = Source(f".comp A0 {{ .decl r(x: number) }}\n{steps}.init a = A40")
    assert [format_item(item) for item in expand(parse(source), source).program.items] == [".decl a.r(x: number)"]


def test_overloaded_names_of_nested_instances_stay_apart() -> None:
    text = """
        .comp Node { .decl value(x: number)  value(x) :- up(x). }
        .comp Tree<L, R> { .decl up(x: number)  .init left = L  .init right = R }
        .comp Wide { .decl up(x: number)  .init left = Node  .init right = Node }
        .init root = Tree<Wide, Node>
    """
    assert [line for line in expanded(text) if not line.startswith(".")] == [
        "root.left.left.value(x) :- root.left.up(x).",
        "root.left.right.value(x) :- root.left.up(x).",
        "root.right.value(x) :- root.up(x).",
    ]


# ------------------------------------------------------------------------------------------------------------- diagnostics


def refused(text: str) -> list[str]:
    with pytest.raises(DlogError) as raised:
        compile_source(Source(text, "c.dl"))
    return [d.message for d in raised.value.diagnostics]


def test_a_mistake_is_told_once_for_all_instances_with_names_as_written() -> None:
    text = ".comp C { .decl r(x: number)\nr(x) :- r(x, x). }\n.comp D { .init c = C\n.decl p(x: number)\np(x) :- c.q(x). }\n"
    many = "".join(f".init d{i} = D\n" for i in range(5))
    assert refused(text + many) == ["`r` has 1 attribute, but 2 arguments here", "unknown relation `c.q`"]


def test_a_mistake_of_one_instance_names_it() -> None:
    text = ".comp C<T> { .decl r(x: T)\nr(1). }\n.init good = C<number>\n.init bad = C<symbol>\n"
    with pytest.raises(DlogError) as raised:
        compile_source(Source(text, "c.dl"))
    (found,) = raised.value.diagnostics
    assert "of `r`" in render(found)
    assert found.notes[-1] == "in the instance `bad` of `C`"


def test_a_mistake_of_all_instances_names_none() -> None:
    text = ".comp C { .decl r(x: number)\nr(x) :- r(y), x = cat(y, y). }\n.init a = C\n.init b = C\n"
    with pytest.raises(DlogError) as raised:
        compile_source(Source(text, "c.dl"))
    for found in raised.value.diagnostics:
        assert "`r`" in render(found)
        assert "instance" not in render(found)


def test_a_mistake_outside_of_components_has_full_names() -> None:
    text = ".comp C { .decl r(x: number) }\n.init c = C\n.decl p(x: number)\np(x) :- c.r(x, x).\n"
    assert refused(text) == ["`c.r` has 1 attribute, but 2 arguments here"]


def test_instances_inside_of_each_other_without_end_are_refused_at_once() -> None:
    assert refused(".comp A<T> { .init x = A<T> }\n.init a = A<number>\n") == [
        "instances of components are more than 100 deep: does `A` contain itself?"
    ]
    assert refused(".comp A<T, U> : T<T, U> {}\n.init a = A<A, number>\n") == [
        "instances of components are more than 100 deep: does `T` contain itself?"
    ]
    levels = "".join(f".comp C{i} {{ .init a = C{i + 1}  .init b = C{i + 1} }}\n" for i in range(20))
    assert refused(f"{levels}.comp C20 {{}}\n.init c = C0\n") == ["there are more than 20,000 instances of components"]


def warnings(text: str) -> list[str]:
    found: list[Diagnostic] = []
    compile_source(Source(text), found.extend)
    return [w.message for w in found]


COMPONENT = ".comp C { .decl e(x: number, y: number)\n.input e\n.decl p(x: number)\np(x) :- e(x, y). }\n"


def test_a_warning_comes_once_for_all_instances() -> None:
    assert warnings(f"{COMPONENT}.init a = C\n.init b = C\n.output a.p, b.p") == ["variable `y` occurs only once"]


def test_what_one_instance_uses_is_of_use() -> None:
    single = "variable `y` occurs only once"
    assert warnings(f"{COMPONENT}.init a = C\n.init b = C\n.output a.p") == [single]
    unread = "relation `p` is neither read nor an output"
    assert warnings(f"{COMPONENT}.init a = C\n.init b = C\n.output a.e") == [unread, single]


def test_an_override_of_nothing_is_told() -> None:
    text = ".comp A { .decl rows(x: number) overridable\nrows(1). }\n.comp B : A { .override row\nrows(2). }\n.init b = B\n"
    assert warnings(f"{text}.output b.rows") == ["`B` inherits no relation `row`: there is nothing to override"]


# -------------------------------------------------------------------------------------------------------------------- files


def test_files_of_an_instance_have_its_name(tmp_path: Path, run_program: RunProgram) -> None:
    program = tmp_path / "c.dl"
    program.write_text(".comp C { .decl r(x: number)\n.input r\n.decl s(x: number)\ns(x) :- r(x).\n.output s }\n.init c = C\n")
    (tmp_path / "c.r.facts").write_text("7\n")
    assert run_program(program, tmp_path, tmp_path / "out") == {"c.s.csv": ["7"]}
