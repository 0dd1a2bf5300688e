"""Warnings on the command line: which are told, where, and as what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.dlog.command import dlog

PROGRAM = """.decl e(x: number, y: number)
.decl p(x: number)
.output p
e(1, 2).
p(x) :- e(x, why).
"""
WRONG = ".decl p(x: number)\n.output p\np(x) :- q(x).\n"
SAID = """warning[single-use-variable]: variable `why` occurs only once
 --> program.dl:5:14
  |
5 | p(x) :- e(x, why).
  |              ^^^
  = write `_` or `_why` if any value will do

"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.dl").write_text(PROGRAM)
    (tmp_path / "wrong.dl").write_text(WRONG)
    return tmp_path


def test_a_run_tells_warnings_and_goes_on(folder: Path) -> None:
    done = dlog("run", "program.dl", cwd=folder)
    assert (done.code, done.err) == (0, SAID)
    assert (folder / "p.csv").read_text() == "1\n"


@pytest.mark.parametrize("flag", ["-w", "--no-warn", "-Wno-single-use-variable"])
def test_warnings_can_be_silenced(folder: Path, flag: str) -> None:
    for command in ("run", "check"):
        done = dlog(command, "program.dl", flag, cwd=folder)
        assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("command", ["run", "check"])
def test_warnings_can_be_mistakes(folder: Path, command: str) -> None:
    done = dlog(command, "program.dl", "-Werror", cwd=folder)
    assert done.code == 1 and done.err.startswith("error: variable `why` occurs only once\n")
    assert not (folder / "p.csv").exists() and "ok" not in done.out
    assert dlog(command, "program.dl", "-Werror", "-Wno-single-use-variable", cwd=folder).code == 0
    assert dlog(command, "program.dl", "-Werror", "-w", cwd=folder).code == 0


def test_a_kind_that_there_is_not_is_a_mistake(folder: Path) -> None:
    done = dlog("check", "program.dl", "-Wno-single-use", cwd=folder)
    assert done.code == 1
    assert done.err.startswith("error: there is no `-Wno-single-use`\n  = did you mean `-Wno-single-use-variable`?\n")


def test_a_check_tells_warnings_and_mistakes_of_all_files(folder: Path) -> None:
    done = dlog("check", "program.dl", "wrong.dl", cwd=folder)
    assert (done.code, done.out) == (1, "program.dl: ok (2 relations, 1 rule)\n")
    assert done.err.startswith(SAID.rstrip("\n") + "\n") and "error: unknown relation `q`" in done.err


def test_findings_as_json(folder: Path) -> None:
    done = dlog("check", "program.dl", "wrong.dl", "--format", "json", cwd=folder)
    assert (done.code, done.err) == (1, "")
    warning, mistake = json.loads(done.out)
    assert warning == {
        "code": "single-use-variable",
        "severity": "warning",
        "message": "variable `why` occurs only once",
        "places": [{"file": "program.dl", "line": 5, "column": 14, "end": 17, "message": ""}],
        "notes": ["write `_` or `_why` if any value will do"],
    }
    assert (mistake["code"], mistake["severity"], mistake["places"][0]["line"]) == ("unknown-relation", "error", 3)
    assert json.loads(dlog("check", "program.dl", "-w", "--format", "json", cwd=folder).out) == []


def test_findings_as_sarif(folder: Path) -> None:
    done = dlog("check", "program.dl", "wrong.dl", "missing.dl", "--format", "sarif", cwd=folder)
    assert (done.code, done.err) == (1, "")
    log = json.loads(done.out)
    assert log["version"] == "2.1.0"
    [run] = log["runs"]
    assert [(r["ruleId"], r["level"]) for r in run["results"]] == [
        ("single-use-variable", "warning"), ("unknown-relation", "error"), ("program-file", "error"),
    ]
    assert {r["ruleId"] for r in run["results"]} == {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    places = [r["locations"][0]["physicalLocation"] for r in run["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["program.dl", "wrong.dl", "missing.dl"]
    assert places[0]["region"] == {"startLine": 5, "startColumn": 14, "endColumn": 17}


def test_a_warning_in_a_macro_is_within_its_line(folder: Path) -> None:
    text = "#define LONG(a, b) p(a) :- e(a, _), e(_, _), e(a, b).\n  LONG(some, other)\n"
    (folder / "macro.dl").write_text(PROGRAM.replace("why", "_") + text)
    [found] = json.loads(dlog("check", "macro.dl", "--format", "json", cwd=folder).out)
    assert found["message"] == "variable `other` occurs only once"
    [place] = found["places"]
    assert (place["line"], place["column"]) == (7, 3) and place["end"] <= len("  LONG(some, other)") + 1
