"""Whoever starts dlog in a folder runs nothing that lies there."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dlog
from dlog.engine.spark import application
from dlog.engine.spark.foreign_files import is_value
from dlog.grammar.diagnostics import DlogError
from dlog.grammar.preprocess import preprocess
from dlog.graphs import library
from tests.conftest import ROOT
from tests.security.planted import PROGRAM, STARTER, module, run

LOADED_BEFORE = (
    *("collections", "contextlib", "functools", "importlib", "keyword"),
    *("operator", "pkgutil", "reprlib", "types", "warnings"),
)
"""What Python itself imports for `-m`, before the module that it is to run."""
BESIDE = (
    *("yaml", "sitecustomize", "usercustomize", "parsetab", "lextab", "pcpp", "numpy", "numba", "llvmlite", "lark", "pyarrow"),
    *("click", "rich", "pandas", "polars", "pyspark", "py4j", "zmq", "networkx"),
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A current folder with a module of every name that could be imported, and a program."""
    folder = tmp_path / "here"
    folder.mkdir()
    for name in sorted({*sys.stdlib_module_names, *BESIDE}):
        if name not in LOADED_BEFORE:
            (folder / f"{name}.py").write_text(module(tmp_path / f"ran {name}"))
    (folder / "program.dl").write_text(PROGRAM)
    (folder / ".numba_config.yaml").write_text("cache_dir: .\n")
    return folder


def ran(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.parent.glob("ran *"))


def script(here: Path) -> str:
    """A file like the one that an installation makes for the command."""
    made = here.parent / "installed" / "dlog"
    made.parent.mkdir()
    made.write_text(STARTER)
    return str(made)


STARTS: dict[str, tuple[str, ...]] = {
    "the command": (),
    "the module": (sys.executable, "-m", "dlog"),
    "the module, options before": (sys.executable, "-B", "-W", "ignore", "-mdlog"),
    "the module, options joined": (sys.executable, "-Bmdlog"),
}


def test_programs_on_graphs_are_those_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some are included by texts, which look in the current folder first: there `pagerank/program.dl` is anybody's."""
    names = library.names()
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "program.dl").write_text("#error planted\n")
    monkeypatch.chdir(tmp_path)
    for program in (library.Program(name, steps=steps) for name in names for steps in (0, 3)):
        assert str(library.folder() / program.name / "program.dl") in preprocess(program.text).files
    graph = dlog.graph([(1, 2), (2, 3)])
    assert dict(graph.label_propagation(1)) == {1: 2, 2: 1, 3: 2}
    assert len(list(graph.maximal_independent_set())) in (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["--version", "check program.dl", "run program.dl", "fmt --check program.dl"])
@pytest.mark.parametrize("start", STARTS)
def test_no_start_imports_from_the_current_folder(here: Path, start: str, arguments: str) -> None:
    command = STARTS[start]
    if start == "the command":
        command = (sys.executable, script(here))
    done = run(*command, *arguments.split(), cwd=here)
    assert ran(here) == []
    assert "ImportError" not in done.stderr and done.returncode in (0, 1), done.stderr


def test_what_python_imports_before_dlog_is_all_that_the_module_can_be_tricked_with(here: Path) -> None:
    """Which is why the command is safer; `-P` closes this, too."""
    for name in LOADED_BEFORE:
        (here / f"{name}.py").write_text(module(here.parent / f"ran {name}"))
    done = run(sys.executable, "-P", "-m", "dlog", "check", "program.dl", cwd=here)
    assert (done.returncode, ran(here)) == (0, []), done.stderr


def test_the_current_folder_stays_where_another_module_is_started(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("import dlog, sys, helper\nprint(sys.path[0])\n")
    (tmp_path / "helper.py").write_text("")
    done = run(sys.executable, "-m", "tool", cwd=tmp_path)
    assert done.stdout == f"{tmp_path}\n", done.stderr


def test_the_builder_of_the_kernels_looks_nowhere_near(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is started with the places of this environment, but for those that the current folder decides."""
    from dlog.engine.kernels.core import building

    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "lib", str(ROOT), ""]))
    seen = here.parent / "seen"
    seen.mkdir()
    program = "import sys, os, lark; print(os.environ['PYTHONPATH'], os.getcwd(), sys.flags.safe_path, file=open('seen', 'w'))"
    real = building.subprocess.run

    def instead(command: list[str], **given: object) -> object:
        assert command[1:3] == ["-P", "-m"]
        done = real([command[0], "-P", "-c", program], **given)  # type: ignore[call-overload]
        Path(command[-2]).write_bytes(b"")
        return done

    monkeypatch.setattr(building.subprocess, "run", instead)
    building._run(seen / "library")
    assert ran(here) == []
    assert (seen / "seen").read_text() == f"{ROOT}{os.pathsep}{ROOT} {seen} True\n"


BUILDER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from dlog.engine.kernels.core import building
real = building.subprocess.run

def instead(command, **given):
    done = real([command[0], "-P", "-c", "import random, dlog; print(dlog.__file__)"], **given)
    print(done.stdout + done.stderr)
    Path(command[-2]).touch()
    return done

building.subprocess.run = instead
building._run(Path("library").absolute())
"""


@pytest.mark.parametrize("name", ["dlog", "checkout"])
def test_the_builder_of_the_kernels_looks_nowhere_above_a_checkout(tmp_path: Path, name: str) -> None:
    """`git clone` names it as the package: what is beside it in a folder for everybody is anybody's."""
    (tmp_path / "random.py").write_text(module(tmp_path / "ran random"))
    (tmp_path / "elsewhere").mkdir()
    checkout = tmp_path / name
    for part in ("engine", "grammar"):
        shutil.copytree(ROOT / part, checkout / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "dlog", checkout / "dlog", symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    done = run(sys.executable, "-P", "-c", BUILDER, str(checkout), cwd=tmp_path / "elsewhere")
    assert (done.stdout.strip(), ran(tmp_path / name)) == (str(checkout / "dlog" / "__init__.py"), []), done.stderr


@pytest.mark.spark
@pytest.mark.parametrize("workers", [1, 2])
def test_neither_spark_nor_its_tasks_run_what_lies_here_or_above(here: Path, workers: int) -> None:
    pytest.importorskip("pyspark")
    for name in LOADED_BEFORE:
        (here / f"{name}.py").write_text(module(here.parent / f"ran {name}"))
    for place in (here, here.parent):
        planted = place / "bin" / "spark-submit"
        planted.parent.mkdir()
        planted.write_text(f"#!/bin/sh\nmkdir '{here.parent}/ran spark-submit'\n")
        planted.chmod(0o755)
        (place / "jars").mkdir()
    command = (sys.executable, script(here), "run", "--engine", "spark", "--workers", str(workers), "program.dl")
    named = {"SPARK_HOME": "", "PYSPARK_PYTHON": ""} if workers == 2 else {}  # as good as not named
    done = run(*command, cwd=here, **named)
    assert ran(here) == []
    assert (done.returncode, done.stdout) == (0, "path\t3\n"), done.stderr


@pytest.mark.spark
def test_a_source_that_spark_does_not_know_is_not_looked_for_here(here: Path) -> None:
    """Spark has Python say which sources of data are written in it."""
    pytest.importorskip("pyspark")
    for name in (*LOADED_BEFORE, "pyspark_here"):
        (here / f"{name}.py").write_text(module(here.parent / f"ran {name}"))
    source = '.decl edge(a: number, b: number)\n.input edge(IO=spark, format=nosuch, path="edges")\n.printsize edge\n'
    (here / "program.dl").write_text(source)
    done = run(sys.executable, script(here), "run", "--engine", "spark", "program.dl", cwd=here)
    assert (done.returncode, ran(here)) == (1, []), done.stderr
    assert "nosuch" in done.stderr


GIVEN = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
program = ".decl edge(a: number, b: number)" + chr(10) + ".input edge" + chr(10) + ".output edge"
found = dlog.run(program, {"edge": spark.read.parquet("edges.parquet")}, engine="spark")
print("edge", len(found["edge"]), sep=chr(9))
"""
OTHERS = {
    "given": GIVEN,
    "as rounds": GIVEN[: GIVEN.index("found = ")]
    + """
session = dlog.session(program)
session.commit_rounds({"edge": spark.read.parquet("edges.parquet").selectExpr("*", "1 round")})
print("edge", len(session["edge"]), sep=chr(9))
""",
    "to a collection": GIVEN[: GIVEN.index("program = ")]
    + """
from dlog.dataflow import Dataflow
flow = Dataflow()
edges = flow.input(a=int, b=int)
found = edges.capture()
edges.insert(spark.read.parquet("edges.parquet"))
flow.commit()
print("edge", len(list(found)), sep=chr(9))
""",
}


@pytest.mark.spark
@pytest.mark.parametrize("way", ["named", "wanted", *OTHERS])
def test_a_class_of_python_that_a_file_names_for_a_column_is_imported_by_nobody(here: Path, way: str) -> None:
    pytest.importorskip("pyspark")
    (here / "test_planted.py").write_text(module(here.parent / "ran test_planted"))  # what `unittest` looks for where it is run
    own = {"type": "udt", "pyClass": "unittest.__main__.Own", "serializedClass": "", "sqlType": "long"}
    types = {"a": "long", "b": "long", "c": {"type": "array", "elementType": own, "containsNull": True}}
    fields = [{"name": name, "type": type, "nullable": True, "metadata": {}} for name, type in types.items()]
    told = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    pq.write_table(pa.table({"a": [1], "b": [2], "c": [[3]]}).replace_schema_metadata(told), here / "edges.parquet")
    last = "c" if way == "wanted" else "b"
    source = f'.decl edge(a: number, {last}: number)\n.input edge(IO=spark, format=parquet, path="edges.parquet")\n'
    (here / "program.dl").write_text(source + ".printsize edge\n")
    command = (sys.executable, script(here), "run", "--engine", "spark", "program.dl")
    if way in OTHERS:
        command = (sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import dlog\n{OTHERS[way]}")
    done = run(*command, cwd=here)
    assert ran(here) == []
    if way == "wanted":
        assert (done.returncode, done.stdout) == (1, "")
        assert "column c is array<bigint>, but c is number" in done.stderr  # as it is stored
    else:
        assert (done.returncode, done.stdout) == (0, "edge\t1\n"), done.stderr


READ = {
    "by its path": '.input edge(IO=spark, format=parquet, path="edges")',
    "as a table": '.input edge(IO=spark, table="parquet.`edges`")',
    "in a query": """.input edge(IO=spark, query="select a, (select max(b) from parquet.`edges`) b from range(1) t(a)")""",
    "given": ".input edge",
    "by a query that is trusted": '.input edge(IO=spark, query="select {0} a, 1 b")',
}
COMPUTED = "java_method('org.apache.derby.jdbc.EmbeddedDriver', 'f')"
"""Spark loads a class to look whether it has such a method; that of Derby reads `derby.properties` in the current folder."""


@pytest.mark.spark
@pytest.mark.parametrize("way", READ)
def test_what_a_file_says_of_a_column_that_it_lacks_is_not_run(here: Path, way: str) -> None:
    pytest.importorskip("pyspark")
    (here.parent / "letter").write_text("dear")
    (here / "derby.properties").write_text(f"derby.stream.error.file={here.parent / 'letter'}\n")
    fields = [
        {"name": "a", "type": "long", "nullable": True, "metadata": {}},
        {"name": "b", "type": "long", "nullable": True, "metadata": {"EXISTS_DEFAULT": COMPUTED}},
    ]
    told = {"org.apache.spark.sql.parquet.row.metadata": json.dumps({"type": "struct", "fields": fields})}
    (here / "edges").mkdir()
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata(told), here / "edges" / "edges.parquet")
    (here / "program.dl").write_text(f".decl edge(a: number, b: number)\n{READ[way].format(COMPUTED)}\n.printsize edge\n")
    given = GIVEN.replace("edges.parquet", "edges")
    command = (script(here), "run", "--engine", "spark", "program.dl")
    if way == "given":
        command = ("-P", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); import dlog\n{given}")
    done = run(sys.executable, *command, cwd=here)
    assert ((here.parent / "letter").read_text(), (here / "derby.log").exists()) == ("dear", False)
    said = {"by its path": "has 1 columns: a; `edge` has 2", "by a query that is trusted": "cannot find a static method f"}
    assert done.returncode == 1
    assert said.get(way, "a file says how the column b is to be computed") in done.stderr


@pytest.mark.spark
def test_a_folder_of_files_does_not_list_those_of_another_one(here: Path) -> None:
    """A stream of Spark's leaves a list of what it has written."""
    pytest.importorskip("pyspark")
    (here.parent / "own" / "k=1").mkdir(parents=True)
    (here.parent / "own" / "k=1" / "edges.csv").write_text("1,2\n")
    (here / "edges" / "_spark_metadata").mkdir(parents=True)
    listed = {"path": (here.parent / "own" / "k=1" / "edges.csv").as_uri(), "size": 4, "isDir": False, "action": "add"}
    times = {"modificationTime": 1, "blockReplication": 1, "blockSize": 1 << 20}
    (here / "edges" / "_spark_metadata" / "0").write_text(f"v1\n{json.dumps(listed | times)}")
    source = '.decl edge(a: number, b: number)\n.input edge(IO=spark, format=csv, path="edges", columns="_c0:_c1")\n'
    (here / "program.dl").write_text(source + ".printsize edge\n")
    done = run(sys.executable, script(here), "run", "--engine", "spark", "program.dl", cwd=here)
    assert (done.returncode, done.stdout) == (1, "")
    assert "_spark_metadata has one that is elsewhere" in done.stderr


@pytest.mark.parametrize("text", ["'a'", "NULL", "-5", "1.5BD", "CAST(NULL AS STRING)", "DATE '2020-01-01'", "array(1, 2)"])
def test_a_default_that_is_written_out_is_a_value(text: str) -> None:
    assert is_value(text)


@pytest.mark.parametrize(
    "text",
    [
        *("upper('a')", "java_method('a', 'b')", "(select 1)", "'a' || f('b')", "1l2f('a')", "r'a' f('b')", "`f`('a')"),
        *("/* ' */ f('a') /* ' */", "'a' -- '\n|| f('b') --'", "'\\' || f('b') || '"),
    ],
)
def test_a_default_that_would_be_computed_is_no_value(text: str) -> None:
    assert not is_value(text)


def test_a_spark_is_looked_for_beside_pyspark_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark looks in the folder above the current one."""
    pyspark = pytest.importorskip("pyspark")
    monkeypatch.setattr(pyspark, "__file__", str(tmp_path / "lib" / "python" / "pyspark" / "__init__.py"))
    monkeypatch.setenv("SPARK_HOME", "")  # as good as none, and put back afterwards
    with pytest.raises(DlogError, match="there is no Spark beside PySpark"):
        application._name_home()
    assert os.environ["SPARK_HOME"] == ""
    other = tmp_path / "lib" / "python" / "pyspark" / "spark-distribution" / "bin" / "spark-submit"
    other.parent.mkdir(parents=True)
    other.touch()
    application._name_home()
    assert os.environ["SPARK_HOME"] == str(other.parent.parent)


@pytest.mark.skipif(os.name != "posix", reason="a script in the place of Java")
def test_a_jvm_is_told_to_look_for_no_classes_in_the_current_folder(tmp_path: Path) -> None:
    """Spark 4.0 has a part of the current one before its own, unless it is told another."""
    pytest.importorskip("pyspark")
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\nexit 1\n')
    java.chmod(0o755)
    (tmp_path / "p.dl").write_text(PROGRAM)
    done = run(sys.executable, "-P", "-c", STARTER, "run", "--engine", "spark", "p.dl", cwd=tmp_path, JAVA_HOME=str(tmp_path))
    assert done.returncode == 1
    assert "spark.driver.defaultExtraClassPath=" in (tmp_path / "told").read_text().splitlines()


CRASHING = """
import os, signal, sys, time
from dlog.engine.spark.application import start
spark = start("local[1]", {"spark.ui.enabled": "false"})
java = spark.sparkContext._gateway.proc.pid
os.symlink("kept", f"hs_err_pid{java}.log")
os.kill(java, signal.SIGSEGV)
spark.sparkContext._gateway.proc.wait()
told = [name for folder, _, names in os.walk(os.environ["TMPDIR"]) for name in names if name.startswith("hs_err")]
print(open("kept").read(), told == [f"hs_err_pid{java}.log"])
"""


@pytest.mark.spark
@pytest.mark.skipif(sys.platform != "linux", reason="whose JVM is the process that was started")
def test_a_jvm_that_crashes_writes_nothing_through_links_in_the_current_folder(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "kept").write_text("kept")
    (tmp_path / "t %p\"'").mkdir()
    done = run(sys.executable, "-c", CRASHING, cwd=tmp_path, TMPDIR=str(tmp_path / "t %p\"'"), PYTHONPATH=str(ROOT))
    assert done.stdout.endswith("kept True\n"), done.stdout + done.stderr


def test_a_place_for_crashes_that_was_chosen_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in application.GIVEN_OPTIONS:
        monkeypatch.delenv(name, raising=False)
    own = application._crash_options('/tmp/a "%p')
    assert own == r'''"-XX:ErrorFile=/tmp/a \"%%p/hs_err_pid%p.log" "-XX:ReplayDataFile=/tmp/a \"%%p/replay_pid%p.log"'''
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:ErrorFile=/var/crash/%p")
    assert application._crash_options("/tmp/a") == '"-XX:ReplayDataFile=/tmp/a/replay_pid%p.log"'


def message(**content: object) -> str:
    text = json.dumps({"jsonrpc": "2.0", **content})
    return f"Content-Length: {len(text)}\r\n\r\n{text}"


def test_a_server_that_an_editor_starts_among_programs_runs_nothing_and_ends_well(here: Path) -> None:
    text = '.pragma "libraries" "half"\n.functor half(x: number): number\n.decl r(x: number)\nr(@half(1)).\n.output r\n'
    (here / "half.py").write_text(module(here.parent / "ran half"))
    opened = {"textDocument": {"uri": (here / "program.dl").as_uri(), "languageId": "souffle", "version": 1, "text": text}}
    asked = {"textDocument": {"uri": opened["textDocument"]["uri"]}, "position": {"line": 3, "character": 4}}
    started = {"processId": None, "rootUri": here.as_uri(), "capabilities": {}}
    talk = [
        message(id=1, method="initialize", params=started),
        message(method="initialized", params={}),
        message(method="textDocument/didOpen", params=opened),
        message(id=2, method="textDocument/hover", params=asked),
        message(id=3, method="shutdown"),
        message(method="exit"),
    ]
    done = run(sys.executable, script(here), "lsp", cwd=here, said="".join(talk))
    assert (done.returncode, ran(here)) == (0, []), done.stderr
    assert "@half" in done.stdout or "half(x: number)" in done.stdout
