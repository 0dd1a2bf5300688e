"""`dlog check` refuses what `dlog run` refuses before it reads anything, with the same words."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.command.cli import invoke
from dlog.display.progress import Display
from dlog.grammar.diagnostics import DlogError
from dlog.pipeline import Job, check_execution, compile_program, run_job
from tests.conftest import RunText

DECLARED = ".decl a(x: number, y: number)\n.decl b()\na(1, 2). b().\n"
RECURSIVE = """.decl e(x: number, y: number)
.decl r(x: number, y: number)
.output r
e(1, 2).
r(x, y) :- e(x, y).
r(y, c) :- r(x, c), e(x, y), count : { r(_, w), w = c } > c.
"""
REFUSED = {
    "input": f"{DECLARED}.input a(IO=nonsense)\n",
    "columns": f'{DECLARED}.input a(columns="0")\n',
    "misplaced": f"{DECLARED}.input a(IO=jsonfile, errors=skip)\n",
    "delimiter": f'{DECLARED}.output a(delimiter="")\n',
    "no columns": f"{DECLARED}.output b(IO=parquet)\n",
    "limit": f"{DECLARED}.limitsize a\n",
    "aggregate": RECURSIVE,
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_run_refuses_at_once_is_a_mistake_to_check(name: str, tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(REFUSED[name])
    with pytest.raises(DlogError) as ran:
        run_job(Job(program, output=str(tmp_path)), Display())
    with pytest.raises(DlogError) as checked:
        check_execution(compile_program(program))
    assert str(checked.value) == str(ran.value)


def test_what_another_engine_reads_is_no_mistake() -> None:
    check_execution(compile_program(f"{DECLARED}.output a(IO=spark)\n"))


def test_the_command_says_so(tmp_path: Path) -> None:
    program = tmp_path / "p.dl"
    program.write_text(RECURSIVE)
    with pytest.raises(DlogError, match="not supported yet: a bound whose variables"):
        invoke(["check", "-w", str(program)])


def test_a_long_body_is_checked_and_run(run_text: RunText) -> None:
    body = ", ".join(f"a(x{n}, x{n + 1})" for n in range(60))
    text = f".decl a(x: number, y: number)\na(1, 1).\n.decl p(x: number, y: number)\np(x0, x60) :- {body}.\n.output p\n"
    check_execution(compile_program(text))
    assert run_text(text, {})["p"] == {(1, 1)}
