"""What the README says of Spark is so."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from dlog.pipeline import compile_program
from tests import engines
from tests.dlog.test_readme import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_python_prints_what_its_comments_say(spark: SparkSession) -> None:
    [program] = blocks("py")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\) +# (.*)", program, re.MULTILINE)


@pytest.mark.spark
def test_the_python_runs_as_a_script_where_another_python_comes_first(tmp_path: Path) -> None:
    """Spark takes the PATH's `python3` for its workers, which need not be the one that has dlog."""
    if engines.NO_SPARK:
        pytest.skip(engines.NO_SPARK)
    [program] = blocks("py")
    (tmp_path / "x.py").write_text(program)
    (tmp_path / "python3").write_text(f'#!/bin/sh\nexec "{sys.base_prefix}/bin/python3" "$@"\n')
    (tmp_path / "python3").chmod(0o755)
    surroundings = {name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYTHONPATH")}
    surroundings["PATH"] = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run([sys.executable, "x.py"], cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == re.findall(r"^print\(.*\) +# (.*)", program, re.MULTILINE)


def test_the_directives_are_understood() -> None:
    [directives] = [block for block in blocks("prolog") if "IO=spark" in block]
    declared = ".decl edge(src: number, dst: number)\n.decl path(src: number, dst: number)\npath(x, y) :- edge(x, y).\n"
    program = compile_program(declared + directives)
    assert [io.action for io in program.io] == ["input"] * 3 + ["output"] * 3
    assert {io.get("IO") for io in program.io} == {"spark"}
