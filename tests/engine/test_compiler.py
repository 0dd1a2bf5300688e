"""The pipeline: its stages, what it imports, how long it takes."""

from __future__ import annotations

import subprocess
import sys
from time import process_time

import pytest

from dlog.engine.compiler import STAGES, Stage, compile_source, compile_until, print_stage
from dlog.grammar.source import Source

TEXT = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path(IO=stdout)
edge(1, 2).
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""

PRINTED: dict[Stage, str] = {
    "typed": """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path(IO=stdout)
edge(1, 2).

path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
""",
    "strata": """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.input edge
.output path(IO=stdout)
edge(1, 2).

stratum 1: path recursive
  path(x, y) :- edge(x, y).
  path(x, z) :- path(x, y), edge(y, z).
""",
}


@pytest.mark.parametrize("stage", PRINTED)
def test_a_stage_prints_as_text(stage: Stage) -> None:
    assert print_stage(Source(TEXT), stage) == PRINTED[stage]


def test_the_first_stage_prints_the_program() -> None:
    assert "path(x, z) :- path(x, y), edge(y, z)." in " ".join(print_stage(Source(TEXT), "ast").split())


def test_the_last_stage_is_the_compiled_program() -> None:
    source = Source(TEXT)
    assert compile_until(source, STAGES[-1]) == compile_source(source)


def test_checking_imports_no_array_library() -> None:
    code = (
        "import sys; from dlog.engine.compiler import compile_source; from dlog.grammar.source import Source;"
        f"compile_source(Source({TEXT!r}));"
        "print([m for m in ('numpy', 'numba', 'pyarrow', 'networkx') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_thousand_rules_are_checked_at_once() -> None:
    decls = [f".decl r{i}(a: number, b: number)" for i in range(1001)]
    rules = [f"r{i + 1}(x, z + 1) :- r{i}(x, y), r{max(0, i - 3)}(y, z), x < z, y != 2, !r0(z, x)." for i in range(1000)]
    source = Source("\n".join([*decls, *rules]))
    from dlog.engine.compile.strata.stratify import stratify
    from dlog.engine.compiler import check_tree, parse

    tree = parse(source)
    start = process_time()
    program = stratify(check_tree(tree, source))
    assert process_time() - start < 30  # about half a second; looking at all pairs of rules would take minutes
    assert len(program.strata) == 1000
