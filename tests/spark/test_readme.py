"""What the README says of Spark is so."""

from __future__ import annotations

import contextlib
import io
import re
from typing import TYPE_CHECKING

import pytest

from dlog.pipeline import compile_program
from tests.dlog.test_readme import blocks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.spark
def test_the_python_prints_what_its_comments_say(spark: SparkSession) -> None:
    [program] = blocks("py")
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(program, "README.md", "exec"), {})
    assert printed.getvalue().splitlines() == re.findall(r"^print\(.*\) +# (.*)", program, re.MULTILINE)


def test_the_directives_are_understood() -> None:
    [directives] = [block for block in blocks("prolog") if "IO=spark" in block]
    declared = ".decl edge(src: number, dst: number)\n.decl path(src: number, dst: number)\npath(x, y) :- edge(x, y).\n"
    program = compile_program(declared + directives)
    assert [io.action for io in program.io] == ["input"] * 3 + ["output"] * 3
    assert {io.get("IO") for io in program.io} == {"spark"}
