"""SECURITY.md names every place of the source that can run what it reads, or starts a process; no more and no fewer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

MODULES = frozenset(
    [
        *("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml", "subprocess", "multiprocessing"),
        *("runpy", "imp", "zipimport", "code", "codeop", "pty", "sqlite3"),
    ]
)
BUILTINS = frozenset(["eval", "exec", "compile", "__import__", "breakpoint"])
OF_OS = re.compile(r"(system|popen|exec[lv]\w*|spawn\w*|posix_spawn\w*|fork\w*|startfile|add_dll_directory)\Z")
ATTRIBUTES = {
    **dict.fromkeys(["CDLL", "PyDLL", "WinDLL", "OleDLL", "LibraryLoader", "dlopen"], "ctypes.CDLL"),
    **dict.fromkeys(["import_module", "spec_from_file_location", "exec_module", "load_module"], "importlib"),
    **dict.fromkeys(["add_object_file", "load_library_permanently"], "machine code"),
    **dict.fromkeys(["extractall", "unpack_archive"], "archive"),
    "CACHE_DIR": "Numba's cache",
    "launch_gateway": "subprocess",
    "allow_pickle": "pickle",
}


def found_in(text: str) -> Iterator[str]:
    """What a module has that can run something."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (n.name.partition(".")[0] for n in names if n.name.partition(".")[0] in MODULES)
            case ast.ImportFrom(module=str(module), names=names):
                yield from [module.partition(".")[0]] if module.partition(".")[0] in MODULES else []
                yield from (ATTRIBUTES[n.name] for n in names if n.name in ATTRIBUTES)
                yield from (f"os.{n.name}" for n in names if module == "os" and OF_OS.match(n.name))
            case ast.Call(func=ast.Name(id=name)) if name in BUILTINS:
                yield name
            case ast.Attribute(value=ast.Name(id="os" | "posix"), attr=name) if OF_OS.match(name):
                yield f"os.{name}"
            case ast.Attribute(value=ast.Name(id="np" | "numpy"), attr="load"):
                yield "numpy.load"
            case ast.Attribute(value=ast.Name(id="sys"), attr="path" | "meta_path" | "path_hooks"):
                yield "sys.path"
            case ast.Attribute(value=ast.Name(id="Lark"), attr="load") | ast.keyword(arg="cache", value=ast.Constant(str())):
                yield "pickle"
            case ast.Attribute(attr=name) if name in ATTRIBUTES:
                yield ATTRIBUTES[name]
            case ast.keyword(arg="allow_pickle" | "shell" as name):
                yield "pickle" if name == "allow_pickle" else "subprocess"


def in_source() -> set[tuple[str, str]]:
    files = (file for folder in ("dlog", "engine", "grammar") for file in sorted((ROOT / folder).rglob("*.py")))
    own = {file.resolve() for file in files}
    return {(str(file.relative_to(ROOT)), what) for file in own for what in found_in(file.read_text())}


def listed(text: str) -> set[tuple[str, str]]:
    """Of the table: `file` | `what`, `what` | why it may be trusted."""
    rows = re.findall(r"^\| `([\w/.]+\.py)` \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
    return {(file, what) for file, whats, _ in rows for what in re.findall(r"`(.+?)`", whats)}


def test_what_can_run_something_is_listed_with_its_source_of_trust() -> None:
    source, told = in_source(), listed((ROOT / "SECURITY.md").read_text())
    assert source - told == set(), "in the source, but not in SECURITY.md"
    assert told - source == set(), "in SECURITY.md, but not in the source"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import pickle", {"pickle"}),
        ("from pickle import loads", {"pickle"}),
        ("import os\nos.execvp('a', [])", {"os.execvp"}),
        ("from os import system", {"os.system"}),
        ("eval('1')", {"eval"}),
        ("import ctypes\nctypes.CDLL(path)", {"ctypes.CDLL"}),
        ("from ctypes import CDLL", {"ctypes.CDLL"}),
        ("import importlib.util as u\nu.spec_from_file_location('a', path)", {"importlib"}),
        ("np.load(path)", {"numpy.load"}),
        ("x.load(path, allow_pickle=True)", {"pickle"}),
        ("import sqlite3", {"sqlite3"}),
        ("import sys\nsys.path.insert(0, '.')", {"sys.path"}),
        ("re.compile('a')\njson.loads('1')\nfrom ctypes import c_int64", set()),
    ],
)
def test_the_look_finds_what_it_should(text: str, what: set[str]) -> None:
    assert set(found_in(text)) == what


def test_the_list_itself_is_there(tmp_path: Path) -> None:
    assert len(listed((ROOT / "SECURITY.md").read_text())) > 15
