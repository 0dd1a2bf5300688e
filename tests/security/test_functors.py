"""Modules with functors: what is run is the text of the file that the user named, as this machine's settings say."""

from __future__ import annotations

import importlib.util
import py_compile
import sys
from pathlib import Path

import pytest

import dlog
from tests.security import planted

PROGRAM = """.functor half(x: number): number
.decl n(x: number)
n(x) :- x = range(0, 2000).
.decl r(x: number)
r(@half(x)) :- n(x).
.printsize r
"""
MODULE = """import dlog
@dlog.functor
def half(x):
    return x // 2
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """The user's modules."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "halves.py").write_text(MODULE)
    return folder


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "program.dl").write_text(PROGRAM)
    return folder


def test_what_lies_compiled_beside_a_module_is_not_run(own: Path, here: Path, tmp_path: Path) -> None:
    (tmp_path / "evil.py").write_text(planted.module(tmp_path / "ran"))
    place = importlib.util.cache_from_source(str(own / "halves.py"))
    py_compile.compile(str(tmp_path / "evil.py"), place, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    done = planted.dlog("run", "program.dl", "-l", "halves", "-L", str(own), cwd=here)
    assert (done.stdout, (tmp_path / "ran").exists()) == ("r\t1000\n", False), done.stderr


@pytest.mark.slow
def test_numba_takes_no_settings_from_the_current_folder(own: Path, here: Path, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    written = tmp_path / "written.html"
    (here / ".numba_config.yaml").write_text(f"dump_html: {written}\n")
    done = planted.dlog("run", "program.dl", "-l", "halves", "-L", str(own), cwd=here)
    assert (done.stdout, done.stderr, written.exists()) == ("r\t1000\n", "", False)
    (own / "halves.py").write_text(f"import numba\n{MODULE}")
    done = planted.dlog("run", "program.dl", "-l", "halves", "-L", str(own), cwd=here)
    assert (done.stdout, written.exists()) == ("r\t1000\n", False), done.stderr


def test_a_module_beside_a_program_is_not_imported_by_another(own: Path, here: Path, tmp_path: Path) -> None:
    (here / "helper.py").write_text(planted.module(tmp_path / "ran"))
    (own / "halves.py").write_text(f"import helper\n{MODULE}")
    done = planted.dlog("run", "program.dl", "-l", "halves", "-L", str(own), cwd=here)
    assert (done.returncode, (tmp_path / "ran").exists()) == (1, False)
    assert "cannot be loaded: ModuleNotFoundError: No module named 'helper'" in done.stderr


STORED = """.functor system(text: symbol): number
.functor half(x: number): number
.decl a(text: symbol)
.decl r(x: number)
r(@system(text)) :- a(text).
r(@half(strlen(text))) :- a(text).
"""


@pytest.mark.slow
@pytest.mark.parametrize("begun", ["from os import system", "def system(text):\n    import os\n    return os.system(text)"])
def test_the_program_of_a_state_calls_no_function_that_is_not_for_functors(own: Path, tmp_path: Path, begun: str) -> None:
    """Whoever made the folder has chosen the program, and what it calls; what the user names is meant to be called."""
    with dlog.session(STORED, state=tmp_path / "state", functors={"system": len, "half": abs}) as session:
        session.insert("a", [(f"touch {tmp_path / 'ran'}",)])
        session.commit()
    (own / "halves.py").write_text(f"{begun}\n{MODULE}")
    command = ("repl", "--state", str(tmp_path / "state"), "-l", "halves", "-L", str(own))
    done = planted.run(sys.executable, "-P", "-c", planted.STARTER, *command, cwd=tmp_path, said="?- r(x).\n")
    assert "there is no function for the functor `@system`" in done.stderr and not (tmp_path / "ran").exists()
    assert "@dlog.functor" in done.stderr and "`@half`" not in done.stderr
