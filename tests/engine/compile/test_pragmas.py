"""Pragmas: what is obeyed, what is refused, and what has no effect and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.engine.compiler import compile_source
from dlog.engine.ir.options import NO_OPTIONS
from dlog.engine.optimize import optimize
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.grammar.source import Source
from dlog.pipeline import Job, compile_program
from tests.conftest import RunText
from tests.dlog.command import dlog

ABOVE = ".decl n(x: number)\n.decl above(x: number, y: number) inline\n.decl p(x: number)\n.output p\nn(1). n(2).\n"
RULES = "above(x, y) :- x > y.\np(x) :- n(x), n(y), above(x, y).\n"


def refused(text: str) -> list[str]:
    with pytest.raises(DlogError) as raised:
        compile_source(Source(text))
    return [d.message for d in raised.value.diagnostics]


def warnings(text: str) -> list[str]:
    found: list[Diagnostic] = []
    compile_source(Source(text), found.extend)
    return [w.message for w in found]


@pytest.mark.parametrize("pragma", ['"inline-exclude" "above"', '"inline-exclude" "p, above"', '"magic-transform-exclude" "*"'])
def test_relations_are_not_inline_where_a_pragma_excludes_them(pragma: str) -> None:
    assert compile_source(Source(ABOVE + RULES)).inline == {"above"}
    assert "variable `x` of the rule for `above` is not bound" in refused(f".pragma {pragma}\n{ABOVE}{RULES}")[0]


def test_a_relation_that_is_not_to_be_inline_is_none() -> None:
    declared = ABOVE.replace("inline", "inline no_inline")
    assert "variable `x` of the rule for `above` is not bound" in refused(declared + RULES)[0]


def test_legacy_programs_may_put_a_value_where_one_of_a_subtype_is_declared(run_text: RunText) -> None:
    text = ".type T <: symbol\n.decl a(x: symbol)\n.decl b(x: T)\na(\"x\").\nb(x) :- a(x).\n"
    assert refused(text) == ["`x` is `symbol`, which is not a subtype of `T`"]
    assert run_text(f'.pragma "legacy"\n{text}', {})["b"] == {("x",)}


GENERATION = """.decl node(x: number)
.decl parent(x: number, y: number)
.decl same(x: number, y: number)
.decl q(y: number)
.output q
same(x, x) :- node(x).
same(x, y) :- parent(x, a), same(a, b), parent(y, b).
q(y) :- same(1, y).
"""


@pytest.mark.parametrize(
    ("more", "by_demand"),
    [
        ("", set()),
        ('.pragma "magic-transform" "*"', {"node", "parent", "same", "q"}),
        ('.pragma "magic-transform" "same"', {"same"}),
        ('.pragma "magic-transform" "*"\n.pragma "magic-transform-exclude" "same, q"', {"node", "parent"}),
        ('.pragma "magic-transform" "*"\n.pragma "magic-transform" "q"', {"q"}),
    ],
)
def test_relations_are_computed_by_demand_where_a_pragma_says_so(more: str, by_demand: set[str]) -> None:
    program = compile_source(Source(f"{more}\n{GENERATION}"))
    assert program.options.by_demand == by_demand
    rewritten = optimize(program, frozenset({"q"}))
    assert any(name.endswith("?") for name in rewritten.relations) == ("same" in by_demand)


def test_a_declaration_says_so_too() -> None:
    for word, expected in (("magic", {"same"}), ("no_magic", set())):
        declared = GENERATION.replace("same(x: number, y: number)", f"same(x: number, y: number) {word}")
        assert compile_source(Source(declared)).options.by_demand == expected
        every = compile_source(Source(f'.pragma "magic-transform" "*"\n{declared}')).options.by_demand
        assert ("same" in every) == (word == "magic")


def test_folders_of_pragmas_are_those_of_the_run(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    text = '.pragma "fact-dir" "in"\n.pragma "output-dir" "out"\n.decl a(x: number)\n.input a\n.output a\n'
    program.write_text(text)
    for folder, value in (("in", "1"), ("other", "2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.facts").write_text(f"{value}\n")
    assert dlog("run", "p.dl", cwd=tmp_path).code == 0
    assert (tmp_path / "out" / "a.csv").read_text() == "1\n"
    assert dlog("run", "p.dl", "-F", "other", "-D", ".", cwd=tmp_path).code == 0
    assert (tmp_path / "a.csv").read_text() == "2\n"
    assert dlog("run", "p.dl", "-P", "fact-dir:other", cwd=tmp_path).code == 0
    assert (tmp_path / "out" / "a.csv").read_text() == "2\n"


def test_pragmas_of_the_command_line_stand_at_the_end_of_the_text() -> None:
    program = compile_program('.pragma "fact-dir" "in"\n', pragmas=["fact-dir:a:b", "legacy"])
    assert program.options.facts == "a:b"
    assert Job(Path("p"), facts="x").folders(program) == ("x", ".")
    assert Job(Path("p")).folders(program) == ("a:b", ".")
    assert compile_program("").options == NO_OPTIONS


def test_what_is_something_else_than_running_the_program_is_refused() -> None:
    assert refused('.pragma "generate" "x.cpp"\n') == ["pragma `generate` asks for something else than running the program"]
    assert compile_source(Source('.pragma "jobs" "4"\n.pragma "profile" "x.json"\n')).options == NO_OPTIONS


WHOLE = ".decl p(x: number)\n.output p\np(1).\n"


@pytest.mark.parametrize(
    ("pragmas", "said"),
    [
        ('.pragma "jobs" "4"', []),
        ('.pragma "legcy"', ["pragma `legcy` has no effect"]),
        ('.pragma "provenance" "explain"', []),
        ('.pragma "fact-dir" "a"\n.pragma "fact-dir" "b"', ["pragma `fact-dir` is set again later"]),
        ('.pragma "libraries" "a"\n.pragma "libraries" "b"', []),
        ('.pragma "magic-transform" "p,q"', ["pragma `magic-transform` names no relation: `q`"]),
        ('.pragma "no-warn"\n.pragma "nonsense"', []),
    ],
)
def test_a_pragma_without_effect_has_a_warning(pragmas: str, said: list[str]) -> None:
    assert warnings(f"{pragmas}\n{WHOLE}") == said


def test_warnings_about_relations_are_silent_where_a_pragma_says_so() -> None:
    declared = ".decl a(x: number)\n.decl b(x: number)\n.comp C { .decl c(x: number) }\n.init k = C\n.init l = C\n"
    text = f"{declared}.output a, b, k.c, l.c\n"
    empty = "relation `{}` has no rules, facts or input: it is empty"
    assert warnings(text) == [empty.format("a"), empty.format("b"), empty.format("c")]
    assert warnings(f'.pragma "suppress-warnings" "a"\n{text}') == [empty.format("b"), empty.format("c")]
    assert warnings(f'.pragma "suppress-warnings" "*"\n{text}') == []
    rule = ".decl p(x: number)\n.decl e(x: number, y: number)\n.input e\n.output p\np(x) :- e(x, y).\n"
    assert warnings(f'.pragma "suppress-warnings" "p"\n{rule}') == []
