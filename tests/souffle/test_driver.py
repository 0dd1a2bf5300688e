"""The driver of Soufflé's tests, on a small checkout that is made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.souffle.__main__ import main
from tests.souffle.attempts import Limits, Outcome, outcomes
from tests.souffle.cases import Case, cases
from tests.souffle.outputs import difference

FILES = {
    "CMakeLists.txt": "if (SOUFFLE_TEST_EVALUATION)\n  add_subdirectory(evaluation)\nendif()\nadd_subdirectory(semantic)\n",
    "evaluation/CMakeLists.txt": """
        function(POSITIVE_TEST NAME)  # a function of the list's own
            souffle_positive_test(${NAME} evaluation ${ARGN})
        endfunction()
        positive_test(path COMPILED_SPLITTED)
        positive_test(wrong)
        if (MSVC)
            positive_test(elsewhere)
        elseif (FALSE)
            positive_test(never)
        else ()
            positive_test(typo)
        endif ()
        souffle_positive_multi_test(TEST_NAME several CATEGORY evaluation FACTS_DIR_NAMES one two)
        souffle_positive_functor_test(own CATEGORY evaluation)
    """,
    "evaluation/path/path.dl": ".decl e, p(a: number, b: number)\n.input e\n.output p\np(b, a) :- e(a, b).",
    "evaluation/path/facts/e.facts": "1\t2\n10\t3\n",
    "evaluation/path/p.csv": "3\t10\n2\t1 \n",
    "evaluation/path/path.out": "",
    "evaluation/wrong/wrong.dl": ".decl p(a: number)\n.output p\np(1). p(2).",
    "evaluation/wrong/p.csv": "1\n3\n",
    "evaluation/wrong/wrong.out": "",
    "evaluation/typo/typo.dl": ".decl p(a: number)\n.output p\np(x) :- q(x).",
    "evaluation/typo/typo.out": "",
    "evaluation/several/several.dl": ".decl e(a: symbol)\n.input e\n.printsize e",
    "evaluation/several/one/e.facts": "a\nb\n",
    "evaluation/several/one/several.out": "e\t2\n",
    "evaluation/several/two/e.facts": "a\n",
    "evaluation/several/two/several.out": "e\t1\n",
    "semantic/CMakeLists.txt": """
        souffle_negative_test(unbound semantic)
        souffle_negative_test(fine semantic)
        souffle_run_test(TEST_NAME printed CATEGORY semantic NO_PREPROCESSOR INCLUDE_DIRS q1 OUTPUT_STDOUT)
    """,
    "semantic/unbound/unbound.dl": ".decl p(a: number)\n.output p\np(x).",
    "semantic/fine/fine.dl": ".decl p(a: number)\n.output p\np(1).",
    "semantic/printed/printed.dl": '#include "more.dl"\n.output p',
    "semantic/printed/q1/more.dl": ".decl p(a: number)\np(1).",
    "semantic/printed/printed.out": "---------------\np\na\n===============\n1\n===============\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


def test_cases_are_what_the_lists_say(checkout: Path) -> None:
    found = {case.name: case for case in cases(checkout)}
    assert list(found) == [
        *("evaluation/path", "evaluation/wrong", "evaluation/typo", "evaluation/several_one", "evaluation/several_two"),
        *("evaluation/own", "semantic/unbound", "semantic/fine", "semantic/printed"),
    ]
    assert [name for name, case in found.items() if case.negative] == ["semantic/unbound", "semantic/fine"]
    assert found["evaluation/several_one"].expected.name == found["evaluation/several_one"].facts.name == "one"
    assert found["evaluation/own"].functors
    printed = found["semantic/printed"]
    assert (printed.preprocessor, printed.to_stdout, [path.name for path in printed.includes]) == (False, True, ["q1"])


def test_each_test_ends_as_it_must(
    checkout: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    assert main([str(checkout), "--json", str(report), "--processes", "1"]) == 1
    ends = {row["name"]: (row["end"], row["group"]) for row in json.loads(report.read_text())}
    assert ends == {
        "evaluation/path": ("holds", "positive"),
        "evaluation/wrong": ("differs", "positive"),
        "evaluation/typo": ("refused", "positive"),
        "evaluation/several_one": ("holds", "positive"),
        "evaluation/several_two": ("holds", "positive"),
        "evaluation/own": ("refused", "with functors in C++"),
        "semantic/unbound": ("holds", "negative"),
        "semantic/fine": ("accepted wrongly", "negative"),
        "semantic/printed": ("holds", "positive"),
    }
    said = capfd.readouterr().out
    assert "p.csv (1 missing, 1 in excess): - 3 | + 2" in said
    assert "positive: 4 of 6 hold; 1 differs; 1 refused\n" in said
    assert "negative: 1 of 2 hold; 1 accepted wrongly\n" in said


def test_tests_are_chosen_by_name_and_listed(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(checkout), "-k", "several", "-k", "fine", "--list"]) == 0
    listed = ["evaluation/several_one  (positive)", "evaluation/several_two  (positive)", "semantic/fine  (negative)"]
    assert capsys.readouterr().out.splitlines() == listed


def test_another_program_is_run_by_its_command_and_ended_when_it_takes_too_long(checkout: Path, tmp_path: Path) -> None:
    program = tmp_path / "program"
    ends = '*path.dl) printf "2\\t1\\n3\\t10\\n" > p.csv;; *wrong.dl) sleep 60;; *) exit 3;;'
    program.write_text(f'#!/bin/sh\ncase "$*" in {ends} esac\n')
    program.chmod(0o755)
    found = _ends(checkout, ["path", "wrong", "typo"], Limits(1.0, 1 << 32, 2, (str(program),)))
    assert found == {"evaluation/path": "holds", "evaluation/wrong": "timeout", "evaluation/typo": "exit 2"}


def _ends(checkout: Path, names: list[str], limits: Limits) -> dict[str, str]:
    scratch = checkout / "scratch"
    scratch.mkdir()
    chosen = [case for case in cases(checkout) if case.name.rpartition("/")[2] in names]
    found: list[Outcome] = list(outcomes(chosen, scratch, limits))
    assert not list(scratch.iterdir())
    return {outcome.case.name: outcome.end.value for outcome in found}


def test_files_that_are_missing_or_in_excess_differ(tmp_path: Path) -> None:
    expected, own, stdout = tmp_path / "expected", tmp_path / "own", tmp_path / "stdout"
    expected.mkdir(), own.mkdir(), stdout.write_text("b\na\n")
    (expected / "t.out").write_text("a\nb  \n")
    case = Case("c/t", expected / "t.dl", tmp_path, expected)
    assert difference(case, own, stdout) == ""
    (expected / "p.csv").write_text("1\n")
    assert difference(case, own, stdout) == "not written: p.csv"
    (own / "p.csv").write_text("1\n1\n")
    assert difference(case, own, stdout) == "p.csv (0 missing, 1 in excess): + 1"
    (own / "q.csv").write_text("")
    assert difference(case, own, stdout) == "not expected: q.csv"
