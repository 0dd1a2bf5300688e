"""The prompt of `dlog run -t explain`: Souffle's commands, answered from the proofs of a session."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import dlog
from dlog.command.explain_prompt import ExplainPrompt
from dlog.pipeline import compile_program
from dlog.proofs.proof_trees import Tree
from tests.dlog.command import dlog as run_dlog

PROGRAM = """
.decl edge(x: symbol, y: symbol)
edge("a", "b"). edge("b", "c"). edge("c", "d"). edge("d", "e").
.decl path(x: symbol, y: symbol)
path("z", "z").
path(x, y) :- edge(x, y).
path(x, z) :- edge(x, y), path(y, z).
.decl size(n: number)
.decl near(n: number, x: symbol)
size(4).
near(m, y) :- size(n), n < 5, m = n + 1, edge("a", y), !path(y, "a").
.decl half(f: float)
half(0.5). half(-2.0).
.type Way = [at: symbol, rest: Way]
.type Mark = Plain {} | Named {name: symbol, way: Way}
.decl way(w: Way, m: Mark)
way([x, nil], $Named(x, [x, nil])) :- edge(x, "c").
.output path
"""


def answers(*commands: str) -> str:
    out = io.StringIO()
    with dlog.session(PROGRAM) as session:
        ExplainPrompt(session, compile_program(PROGRAM), io.StringIO("\n".join(commands)), out).run()
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_a_proof_is_drawn_with_rules_by_number() -> None:
    assert answers('explain path("b", "d")') == "\n".join(
        [
            '               edge("c", "d")',
            "               -----------(R2)",  # the fact of `path` is its first clause
            'edge("b", "c") path("c", "d")',
            "---------------------------(R3)",
            '        path("b", "d")',
        ]
    )


def test_constraints_stand_behind_rows() -> None:
    found = answers('explain near(5, "b")').splitlines()
    assert found[0] == 'size(4) edge("a", "b") !path("b", "a") 4 < 5'
    assert found[1].endswith("--(R1)") and found[2].strip() == 'near(5, "b")'


def test_what_is_cut_off_has_a_number_to_ask_for() -> None:
    found = answers("setdepth 2", 'explain path("a", "d")', "subproof path(0)", "subproof path(1)")
    assert found.splitlines() == [
        'edge("a", "b") subproof path(0)',
        "----------------------------(R3)",
        '         path("a", "d")',
        'edge("b", "c") subproof path(1)',
        "----------------------------(R3)",
        '         path("b", "d")',
        'edge("c", "d")',
        "-----------(R2)",
        'path("c", "d")',
    ]


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (['explain edge("a", "b")'], 'edge("a", "b")'),
        (['explain edge("b", "a")'], "Tuple not found"),
        (["explain egde(1)"], "Relation not found"),
        (["subproof path(7)"], "Subproof not found"),
        (["rule path 2"], "path(x, y) :- edge(x, y)."),
        (["rule path 9"], "Rule not found"),
        (["measure path"], "11"),
        (['query edge(x, "d")'], "x = c."),
        (['query edge("a", y), path(y, z)', ";", ".", "measure edge"], "y = b, z = c\ny = b, z = d\n4"),
        (["query half(x)", ";"], "x = -2\nx = 0.5."),
        (['query edge("a", "b")'], "true."),
        (['query edge("b", "a")'], "false."),
        (["query edge(x, x)"], "false."),
        (["exit", "measure edge"], ""),
    ],
)
def test_commands_are_answered(commands: list[str], expected: str) -> None:
    assert answers(*commands) == expected


def test_other_words_show_the_commands_and_mistakes_are_told() -> None:
    for wrong in ("nonsense", "explain", "explain path", "format xml", "setdepth much", "query"):
        assert answers(wrong).startswith("setdepth N"), wrong
    assert "unknown relation `egde`" in answers("query egde(x)")


def test_what_is_not_there_is_explained() -> None:
    assert answers('explainnegation path("b", "a")').startswith('path("b", "a") does not hold')


def test_proofs_go_to_a_file_as_json(tmp_path: Path) -> None:
    assert answers(f"output {tmp_path}/p.json", "format json", 'explain path("a", "b")', "output", "format proof") == ""
    proof = {"premises": 'path("a", "b")', "rule-number": "(R2)", "children": [{"axiom": 'edge("a", "b")'}]}
    written = json.loads((tmp_path / "p.json").read_text())
    assert written["proof"] == proof
    assert {"rule-number": "(R3)", "rule": "path(x, z) :- edge(x, y), path(y, z)."} in written["rules"]


def test_rows_with_records_and_branches_are_written_as_in_programs() -> None:
    found = answers('explain way(["b", nil], $Named("b", ["b", nil]))', 'explain way(nil, $Plain())', 'explain way(["b")')
    proof, missing = found.splitlines()[:3], found.splitlines()[3]
    assert proof[0].strip() == 'edge("b", "c")' and proof[2] == 'way(["b", nil], $Named("b", ["b", nil]))'
    assert missing == "Tuple not found"
    assert "error: missing `]`" in found


def test_a_text_may_be_wider_than_what_stands_above_it() -> None:
    tree = Tree("a text of some length", "(R1)", [Tree("a"), Tree("b")])
    assert tree.lines() == ["a b                  ", "-----------------(R1)", "a text of some length"]


@pytest.mark.slow
def test_a_run_ends_with_the_prompt_where_a_flag_or_a_pragma_says_so(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(PROGRAM)
    finished = run_dlog("run", "p.dl", "-w", "-t", "explain", cwd=tmp_path, stdin='query edge("c", x)\n')
    assert (finished.code, finished.out) == (0, "x = d.\n")
    assert (tmp_path / "path.csv").exists()
    (tmp_path / "p.dl").write_text(f'{PROGRAM}.pragma "provenance" "explain"\n')
    assert run_dlog("run", "p.dl", "-w", cwd=tmp_path, stdin="measure edge\n").out == "4\n"
    assert run_dlog("run", "p.dl", "-w", "-t", "none", cwd=tmp_path, stdin="measure edge\n").out == ""
    finished = run_dlog("run", "p.dl", "-t", "explain", "--engine", "spark", cwd=tmp_path)
    assert finished.code == 1 and "embedded engine" in finished.err
