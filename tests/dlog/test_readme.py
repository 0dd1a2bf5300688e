"""What the README says is so: its programs run, its Python prints what the comments say, its errors come out as shown."""

import contextlib
import doctest
import io
import re
import subprocess
import sys
import textwrap
from datetime import date
from pathlib import Path

import pytest

from dlog import Branch, run_text
from tests.check import commands
from tests.dlog.command import CLOSURE, ROOT, dlog

README = (ROOT / "README.md").read_text(encoding="utf-8")
LANGUAGE = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def program_with(word: str) -> str:
    """The program of docs/language.md that has a word."""
    [text] = [block for block in re.findall(r"```prolog\n(.*?)```", LANGUAGE, re.DOTALL) if word in block]
    return text


def test_the_first_program_runs() -> None:
    result = run_text(blocks("prolog")[0], {"parent": [("Ada", "Bea"), ("Bea", "Cem")]})
    assert result["ancestor"] == {("Ada", "Bea"), ("Bea", "Cem"), ("Ada", "Cem")}


def test_recursion_through_count_and_sum_runs() -> None:
    friends = [(x, y) for x in "abcd" for y in "abcd" if x != y] + [("d", "e"), ("e", "d")]
    result = run_text(program_with(".decl owns"), {"owns": [("a", "b", 60), ("a", "c", 30), ("b", "c", 30)], "friend": friends})
    assert {(x, y) for x, y in result["controls"] if x != y} == {("a", "b"), ("a", "c")}
    assert result["core"] == {("a",), ("b",), ("c",), ("d",)}


def test_values_of_algebraic_data_types_are_built_and_taken_apart() -> None:
    result = run_text(program_with(".decl sign"), {})
    last = Branch("Add", Branch("Num", 2), Branch("Num", -3))
    whole = Branch("Add", Branch("Num", 1), last)
    assert {v for _, v in result["value"]} == {1, 2, -3, -1, 0}
    assert result["sign"] == {(whole, Branch("Zero")), (last, Branch("Minus")), (Branch("Num", -3), Branch("Minus"))}


def test_dates_and_times_run() -> None:
    result = run_text(program_with(".decl due"), {})
    assert result["due"] == {(1, date(2026, 2, 28), 2, -28)}


def test_the_equivalence_relation_runs() -> None:
    program = program_with("eqrel")
    facts = {
        "equal": [("a", "b"), ("c", "f(b)")],
        "apply": [("f(a)", "f", "a"), ("f(b)", "f", "b"), ("f(f(a))", "f", "f(a)"), ("f(c)", "f", "c"), ("g(a)", "g", "a")],
    }
    result = run_text(program, facts)
    assert result["alike"] == {("f(a)",), ("f(b)",), ("c",)}
    assert ("f(c)", "f(f(a))") in result["same"]


def test_the_components_run() -> None:
    text = program_with(".comp")
    result = run_text(text, {"roads.edge": [("Bonn", "Jena")], "flights.edge": [("Bonn", "Rome"), ("Rome", "Oslo")]})
    assert result["trip"] == {(x, y) for x in ("Bonn", "Jena") for y in ("Rome", "Oslo")}
    assert ("Jena", "Bonn") in result["roads.reach"]
    assert ("Rome", "Bonn") not in result["flights.reach"]


def test_the_tour_runs() -> None:
    result = run_text(blocks("prolog")[1], {})
    assert result["terminus"] == {("Aachen",), ("Ulm",)}
    assert result["label"] == {("Bonn 1",), ("Jena 1",), ("Ulm 2",)}
    assert result["nearest"] == {
        ("Bonn", "Aachen", 90),
        ("Jena", "Aachen", 470),
        ("Jena", "Bonn", 380),
        ("Ulm", "Aachen", 490),
        ("Ulm", "Bonn", 400),
        ("Ulm", "Jena", 340),
    }
    assert ("Ulm", "Aachen", ("Aachen", ("Bonn", ("Jena", None))), 810) in result["trip"]
    assert len(result["trip"]) == 8


@pytest.mark.parametrize("program", blocks("python"), ids=["run", "sessions", "state", "graphs", "proofs"])
def test_the_python_prints_what_its_comments_say(program: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path if "state=" in program else ROOT)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"^ *print\(.*\) +# (.*)", program, re.MULTILINE)


@pytest.mark.slow
def test_the_python_passes_the_strictest_check_of_types(tmp_path: Path) -> None:
    """The package says that it is typed: what a user writes is held to that."""
    pytest.importorskip("pyspark")
    for number, program in enumerate([*blocks("python"), *blocks("py")]):
        (tmp_path / f"block{number}.py").write_text(program)
    found = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *(path.name for path in tmp_path.glob("*.py"))],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert [line for line in found.stdout.splitlines() if line.startswith("block")] == []


def test_the_prompt_shows_what_is_shown() -> None:
    parser, runner = doctest.DocTestParser(), doctest.DocTestRunner()
    for number, text in enumerate(blocks("pycon")):
        runner.run(parser.get_doctest(text, {}, f"README.md, {number}", None, None))
    assert (runner.failures, runner.tries) == (0, 4)


@pytest.mark.slow
def test_watch_prints_what_is_shown(tmp_path: Path) -> None:
    [(stream, shown)] = re.findall(r"\$ printf '(.*)' \| dlog watch closure.dl\n((?:    \d.*\n)+)", README)
    (tmp_path / "closure.dl").write_text(CLOSURE)
    finished = dlog("watch", "closure.dl", cwd=tmp_path, stdin=stream.replace("\\n", "\n"))
    assert finished.out == textwrap.dedent(shown)


@pytest.mark.slow
def test_the_errors_come_out_as_shown(tmp_path: Path) -> None:
    (tmp_path / "wrong.dl").write_text(
        ".decl edge(from: number, to: number)\n.input edge\n.decl path(from: number, to: number)\n.output path\n\n"
        'path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), egde(y, w).\npath(x, "here") :- edge(x, _, _).\n'
    )
    finished = dlog("check", "wrong.dl", cwd=tmp_path)
    assert finished.code == 1
    assert textwrap.indent(finished.err, "    ").rstrip() in README


def test_the_two_commands_are_what_ci_runs() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "venv/bin/pip install . && " in README
    assert ".venv/bin/pip install -e '.[dev]' && .venv/bin/python -m pytest -n 2\n" in README
    assert "install --quiet --editable '.[dev,spark]'" in ci
    assert '"$venv/bin/python" -m pytest -n 2\n"$venv/bin/python" -m tests.check --rest -n 2\n' in ci


def test_the_rest_are_all_tests_but_the_default_ones_and_the_slow_ones_on_spark() -> None:
    names = commands(["--rest", "-n", "2"])
    thorough, on_spark = "pytest, slow tests and more examples", "pytest, on Spark"
    assert list(names) == ["ruff", "mypy", "import-linter", thorough, on_spark]
    assert names[thorough][-2:] == commands(["-n", "2"])["pytest"][-2:] == ["-n", "2"]
    assert "(slow or hypothesis) and not exhaustive and not spark and not bench" in names[thorough]
    assert "spark and not slow" in names[on_spark]
    assert list(commands(["--static"])) == ["ruff", "mypy", "import-linter"]
