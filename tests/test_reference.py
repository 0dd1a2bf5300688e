"""The reference is what the tables say, and its examples hold."""

from __future__ import annotations

from typing import Any

import pytest

import dlog
from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.compile.warnings import CODES
from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS, TableFunction
from tests.diagnostic_codes import HEARD_BY_DLOG, diagnostic_codes
from tests.mistakes import MISTAKES
from tests.reference import FOLDER, ROWS_OF_EXAMPLES, mistakes_of, pages
from tests.run_mistakes import AREAS, RUN_MISTAKES
from tests.run_mistakes.example import Example, said

EXAMPLES = sorted({row.example for row in (*FUNCTORS.values(), *COMPARISONS.values(), *AGGREGATES.values()) if row.example})
FACTS = ".decl p(x: number)\n" + "".join(f"p({value}).\n" for value in ROWS_OF_EXAMPLES)
WITHOUT_EXAMPLE = {
    "changes-gone",  # needs two threads
    "dynamic-allocation",  # needs an application of Spark that is started so
    "file-changed",  # needs a race with somebody else
    "file-shrunk",  # waits for more until somebody else cuts the file
    "internal",  # would be mended
    "missing-package",  # needs a package taken away
    "no-graphframes",  # needs a package taken away
    "no-kernels",  # needs the cache taken away
    "no-process",  # needs a system that is out of processes
    "no-workers",  # needs workers of Spark killed
    "other-rows",  # needs Spark to lose rows
    "rule-too-long",  # needs a rule of 250,000 variables
    "state-version",  # needs a state of a later version
    "text-too-long",  # needs a program of 256 MiB
    "torn-round",  # needs workers that fail one by one
    "unsteady-rows",  # needs rows that differ from one reading to the next
}


def _marked(code: str, example: Example) -> Any:
    marks = [pytest.mark.spark] * example.spark + [pytest.mark.slow] * example.slow
    return pytest.param(code, marks=marks)


def program(conditions: list[str]) -> str:
    """Says by number which conditions hold, and which do not."""
    lines = [FACTS, ".decl holds(n: number)\n.decl fails(n: number)\n.output holds\n.output fails\n"]
    for number, condition in enumerate(conditions):
        lines.append(f"holds({number}) :- {condition}.\nfails({number}) :- !({condition}).\n")
    return "".join(lines)


@pytest.mark.parametrize("name", pages())
def test_the_committed_page_is_what_the_tables_say(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name](), "run `python -m tests.reference`"


def test_each_row_has_an_example_and_all_hold() -> None:
    assert all((row.form == "internal") == (not row.example) for row in FUNCTORS.values())
    assert all(row.example for row in AGGREGATES.values())
    result = dlog.run(program([*EXAMPLES, "1 = 2"]))
    assert sorted(result["holds"]) == [(number,) for number in range(len(EXAMPLES))]
    assert list(result["fails"]) == [(len(EXAMPLES),)]


@pytest.mark.parametrize("row", TABLE_FUNCTIONS.values(), ids=lambda row: row.name)
def test_each_table_function_gives_what_its_example_says(row: TableFunction) -> None:
    columns = ", ".join(f"{c.name}: {(c.kind or Kind.NUMBER).value}" for c in row.columns)
    names = ", ".join(c.name for c in row.columns)
    pattern = names if len(row.columns) == 1 else f"[{names}]"
    result = dlog.run(f".decl r({columns})\nr({names}) :- {pattern} = {row.example}.\n.output r\n")
    assert sorted(result["r"]) == sorted(row.example_rows)


@pytest.mark.parametrize("code", MISTAKES)
def test_each_mistake_has_a_program_with_it_alone(code: str) -> None:
    assert {found.code for found in mistakes_of(MISTAKES[code][1])} == {code}


@pytest.mark.parametrize("code", [_marked(code, example) for code, example in RUN_MISTAKES.items() if example.runs])
def test_each_mistake_of_a_run_has_an_example_with_it(code: str, request: pytest.FixtureRequest) -> None:
    example = RUN_MISTAKES[code]
    if example.spark:
        request.getfixturevalue("spark")
    if example.command.startswith("dlog lsp"):
        pytest.importorskip("pygls")
    assert {found for found, _ in said(example)} - {example.beside} == {code}


def test_every_mistake_that_is_told_has_an_entry_and_no_other_one() -> None:
    told = diagnostic_codes().keys() - HEARD_BY_DLOG.keys()
    assert sorted(told - MISTAKES.keys() - RUN_MISTAKES.keys() - CODES.keys()) == [], "entries are missing"
    assert sorted((MISTAKES.keys() | RUN_MISTAKES.keys() | HEARD_BY_DLOG.keys()) - diagnostic_codes().keys()) == [], (
        "nobody tells these"
    )
    assert MISTAKES.keys() & RUN_MISTAKES.keys() == set()
    assert sum(len(area) for area in AREAS.values()) == len(RUN_MISTAKES)


def test_mistakes_without_an_example_are_few_and_say_why() -> None:
    assert {code for code, example in RUN_MISTAKES.items() if not example.runs} == WITHOUT_EXAMPLE
    assert all(RUN_MISTAKES[code].why for code in WITHOUT_EXAMPLE)
