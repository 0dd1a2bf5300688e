"""The reference is what the tables say, and its examples hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dlog
from dlog.engine.compile.normal.comparisons import COMPARISONS
from dlog.engine.compile.warnings import CODES
from dlog.engine.ir.aggregates import AGGREGATES
from dlog.engine.ir.functors import FUNCTORS
from dlog.engine.ir.rules import Kind
from dlog.engine.ir.table_functions import TABLE_FUNCTIONS, TableFunction
from tests.mistakes import MISTAKES
from tests.reference import FOLDER, ROWS_OF_EXAMPLES, mistakes_of, pages

EXAMPLES = sorted({row.example for row in (*FUNCTORS.values(), *COMPARISONS.values(), *AGGREGATES.values()) if row.example})
FACTS = ".decl p(x: number)\n" + "".join(f"p({value}).\n" for value in ROWS_OF_EXAMPLES)


def program(conditions: list[str]) -> str:
    """Says by number which conditions hold, and which do not."""
    lines = [FACTS, ".decl holds(n: number)\n.decl fails(n: number)\n.output holds\n.output fails\n"]
    for number, condition in enumerate(conditions):
        lines.append(f"holds({number}) :- {condition}.\nfails({number}) :- !({condition}).\n")
    return "".join(lines)


@pytest.mark.parametrize("name", pages())
def test_the_committed_page_is_what_the_tables_say(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == pages()[name], "run `python -m tests.reference`"


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
    assert sorted(result["r"]) == sorted(row.given)


@pytest.mark.parametrize("code", MISTAKES)
def test_each_mistake_has_a_program_with_it_alone(code: str) -> None:
    assert {found.code for found in mistakes_of(MISTAKES[code][1])} == {code}


def constants(folder: Path) -> Iterator[tuple[str, str]]:
    """The strings in a package, each with what is called with it first and with more behind it."""
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > 1 and isinstance(first := node.args[0], ast.Constant):
                yield str(first.value), getattr(node.func, "attr", getattr(node.func, "id", ""))
            elif isinstance(node, ast.Constant):
                yield str(node.value), ""


def test_every_mistake_that_the_compiler_tells_is_there() -> None:
    found = [c for name in ("grammar", "engine/compile") for c in constants(Path(__file__).parents[1] / name)]
    of_files_and_options = {"bad-macro", "program-file", "encoding"}
    told = {text for text, called in found if called in ("Diagnostic", "add")}
    assert told - CODES.keys() - of_files_and_options <= MISTAKES.keys() <= {text for text, _ in found}
