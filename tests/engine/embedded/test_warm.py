"""`dlog warmup` compiles all that runs need. What a process has loaded stays loaded, so that each test needs one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

COMPILED = """
import sys
from numba.core.dispatcher import Dispatcher

def compiled():
    kernels = {k for name, m in list(sys.modules.items()) if name.startswith("dlog.engine") for k in vars(m).values()
               if isinstance(k, Dispatcher)}
    return {(k.__module__, k.__name__, str(s)) for k in kernels for s in k.signatures}
"""
RUNS = """
import re
import tempfile
from pathlib import Path
from dlog.engine.kernels import arrange, bitmaps, machine, sets, storage
from dlog.pipeline import Job, run_job
from dlog.progress import Display
from dlog.warmup import warm
from tests.engine.embedded.runs import ran, variant
from tests.engine.embedded.test_team import DECLS, EDGES, PROGRAMS, WEIGHTS

warm()
before = compiled()
called = {name for source in Path("engine/embedded").glob("*.py")
          for name in re.findall(r"\\b(?:storage|bitmaps|sets|arrange|machine)[.]([a-z_]+)\\(", source.read_text())}
called = {name for name in called for module in (arrange, bitmaps, machine, sets, storage) if hasattr(module, name)}
assert {"scatter_column", "insert_block", "run"} <= called
assert called <= {name for _, name, _ in before}, sorted(called)
for threads in (1, 2):
    for flags in ({}, {"hashed": True}, {"bulk": True}, {"hashed": True, "bulk": True}):
        with variant(**flags):
            for text in PROGRAMS.values():
                ran(DECLS + text, {"e": EDGES, "w": WEIGHTS}, threads=threads)
for program in sorted(Path("programs").glob("*/program.dl")):
    with tempfile.TemporaryDirectory() as output:
        facts = next((str(f) for f in (program.parent / "facts", program.parent / "data") if f.is_dir()), str(program.parent))
        run_job(Job(program, facts=facts, output=output, threads=1), Display())
missed = compiled() - before
assert not missed, sorted(missed)
"""
FRESH = """
import os
from pathlib import Path
from numba import config
from dlog.warmup import warm
from tests.engine.embedded.runs import ran
from tests.engine.embedded.test_team import DECLS, EDGES, PROGRAMS, WEIGHTS

def files():
    return {(f.name, f.stat().st_mtime_ns) for f in Path(config.CACHE_DIR).rglob("*") if f.is_file()}

warm()
before = files()
assert len(before) > 100
for text in PROGRAMS.values():
    ran(DECLS + text, {"e": EDGES, "w": WEIGHTS}, threads=2)
assert files() == before
"""


def in_a_process(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **variables}
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)


def test_runs_load_no_kernel_that_the_warm_up_did_not() -> None:
    done = in_a_process(COMPILED + RUNS)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_after_a_warm_up_in_an_empty_cache_nothing_is_compiled(tmp_path: Path) -> None:
    done = in_a_process(FRESH, DLOG_CACHE=str(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_kernels_work_without_compilation() -> None:
    command = [sys.executable, "-m", "pytest", "tests/engine/kernels", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stdout[-3000:]
