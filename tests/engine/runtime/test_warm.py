"""`dlog warmup` compiles all that runs need. What a process has loaded stays loaded, so that each test needs one of its own."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

RUNS = """
import sys
import tempfile
from pathlib import Path
from dlog.pipeline import Job, run_job
from dlog.display.progress import Display
from dlog.command.warmup import warm
from tests.engine.runtime.runs import ran, variant
from tests.engine.runtime.test_thread_pool import DECLS, EDGES, PROGRAMS, WEIGHTS
import dlog

warm()
for threads in (1, 2):
    for flags in ({}, {"hashed": True}, {"bulk": True}, {"hashed": True, "bulk": True}):
        with variant(**flags):
            for text in PROGRAMS.values():
                ran(DECLS + text, {"e": EDGES, "w": WEIGHTS}, threads=threads)
for program in sorted(Path("programs").glob("*/program.dl")):
    with tempfile.TemporaryDirectory() as output:
        facts = next((str(f) for f in (program.parent / "facts", program.parent / "data") if f.is_dir()), str(program.parent))
        run_job(Job(program, facts=facts, output=output, threads=1), Display())
with tempfile.TemporaryDirectory() as state, dlog.session(program.parent.parent / "transitive_closure" / "program.dl",
                                                          state=state, history=3) as session:
    for edge in ((1, 2), (2, 3), (3, 1)):
        session.insert("edge", [edge])
        session.commit()
    session.remove("edge", [(2, 3)])
    assert session.commit().changes("path")
    assert session.at(2)["path"].to_numpy()
    assert list(session.query("?- path(1, X)"))
assert "numba" not in sys.modules, "a kernel that Python calls is no entry of the library"
"""
LIGHT = """
import sys
from pathlib import Path
from dlog.pipeline import Job, run_job
from dlog.display.progress import Display

program = Path(sys.argv[1])
run_job(Job(program, facts=str(program.parent), output=str(program.parent), threads=1), Display())
assert "pandas" not in sys.modules and "numba" not in sys.modules
"""
FRESH = """
from pathlib import Path
from dlog.command.warmup import warm
from dlog.engine.kernels.core.versions import cache_folder
from tests.engine.runtime.runs import ran
from tests.engine.runtime.test_thread_pool import DECLS, EDGES, PROGRAMS, WEIGHTS

def files():
    return {(f.name, f.stat().st_mtime_ns) for f in cache_folder().rglob("*") if f.is_file()}

warm()
before = files()
assert len([name for name, _ in before if not name.endswith(".lock")]) == 1
for text in PROGRAMS.values():
    ran(DECLS + text, {"e": EDGES, "w": WEIGHTS}, threads=2)
assert files() == before
"""


def in_a_process(code: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900
    )


def decorator(function: ast.FunctionDef) -> str:
    """How a kernel is declared, "" for a function of Python."""
    names = {n.id for d in function.decorator_list for n in ast.walk(d) if isinstance(n, ast.Name)}
    return "kernel" if "inlined" in names else next(iter(names & {"kernel", "entry"}), "")


def calls_from_python(tree: ast.AST) -> Iterator[str]:
    """Names and attributes that are called outside kernels."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef) and decorator(node):
            continue
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else ast.unparse(node.func)
        yield from calls_from_python(node)


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    return name if name.startswith("dlog") else f"dlog.{name}"


def names_in(module: str, tree: ast.AST) -> dict[str, str]:
    """What names of a module stand for that others import, or that it declares."""
    imported = {a.asname or a.name: f"{n.module}.{a.name}" for n in ast.walk(tree)
                if isinstance(n, ast.ImportFrom) and n.module for a in n.names}  # fmt: skip
    return {n.name: f"{module}.{n.name}" for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)} | imported


@pytest.mark.slow
def test_kernels_that_python_calls_are_entries_of_the_library() -> None:
    files = [path for folder in ("engine", "dlog") for path in (ROOT / folder).rglob("*.py")]
    trees = {module_of(path): ast.parse(path.read_text()) for path in files}
    declared: dict[str, set[str]] = {"kernel": set(), "entry": set()}
    called = set()
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and (kind := decorator(node)):
                declared[kind].add(f"{module}.{node.name}")
        names = names_in(module, tree)
        for name in calls_from_python(tree):
            first, dot, rest = name.partition(".")
            called.add(names.get(first, first) + dot + rest)
    some = {"kernels.machine.run", "kernels.incremental.loop.rounds.run_batch", "kernels.trace.seeking.seek",
            "formats.render.write_rows"}  # fmt: skip
    assert called & declared["entry"] >= {f"dlog.engine.{name}" for name in some}
    assert not called & declared["kernel"]


@pytest.mark.slow
def test_runs_need_nothing_but_the_library() -> None:
    done = in_a_process(RUNS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_run_that_writes_symbols_brings_in_neither_pandas_nor_numba(tmp_path: Path) -> None:
    (tmp_path / "program.dl").write_text('.decl a(x: symbol)\na("b"). a("a"). a("").\n.output a\n')
    done = in_a_process(LIGHT, str(tmp_path / "program.dl"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.csv").read_text() == "\na\nb\n"


@pytest.mark.slow
def test_after_a_warm_up_in_an_empty_cache_nothing_is_compiled(tmp_path: Path) -> None:
    done = in_a_process(FRESH, DLOG_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_kernels_work_without_compilation() -> None:
    command = [sys.executable, "-m", "pytest", "tests/engine/kernels", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:]


ITERATIONS = """
import dlog
s = dlog.session(".decl e(x: number, y: number) .decl p(x: number) p(0) :- e(_, _). p(y) :- p(x), e(x, y).\\n")
for change in (s.insert, s.remove, s.insert):
    change("e", [(i, i + 1) for i in range(70)] if not s.round else (66, 67))
    s.commit()
    print(len(s["p"]))
"""


@pytest.mark.slow
def test_iterations_that_fill_a_word_of_bits_run_without_compiled_code_too() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", ITERATIONS], env=environment, capture_output=True, text=True, timeout=300)
    assert (done.stderr, done.stdout.split()) == ("", ["71", "67", "71"])
