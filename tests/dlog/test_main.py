"""From what happened to the exit code, and what is imported on the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dlog.__main__ import run_command
from dlog.command import cli
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError
from dlog.pipeline import stage
from tests.dlog.command import CLOSURE, ROOT, arguments

Patch = pytest.MonkeyPatch
Capture = pytest.CaptureFixture[str]


def outcome(monkeypatch: Patch, capsys: Capture, error: BaseException, *words: str) -> tuple[int, str]:
    """Exit code and standard error of a command that raises `error`."""

    def fail(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(cli, "invoke", fail)
    code = run_command(["run", *words])
    captured = capsys.readouterr()
    assert captured.out == ""
    return code, captured.err


def test_the_users_mistakes_give_1_and_all_diagnostics(monkeypatch: Patch, capsys: Capture) -> None:
    error = DlogError([Diagnostic("one", "first mistake"), Diagnostic("two", "second mistake", notes=("a note",))])
    code, text = outcome(monkeypatch, capsys, error)
    assert code == 1
    assert text.index("first mistake") < text.index("second mistake") < text.index("a note")
    assert "Traceback" not in text


def test_a_broken_promise_gives_2_and_one_line(monkeypatch: Patch, capsys: Capture) -> None:
    assert outcome(monkeypatch, capsys, InternalError("planner", "no path")) == (
        2,
        "internal error in planner: no path (--debug shows the traceback)\n",
    )


def test_debug_shows_the_traceback(monkeypatch: Patch, capsys: Capture) -> None:
    code, text = outcome(monkeypatch, capsys, InternalError("planner", "no path"), "--debug")
    assert code == 2
    assert text.startswith("Traceback")
    assert text.endswith("internal error in planner: no path\n")


def test_any_other_exception_gives_2(monkeypatch: Patch, capsys: Capture) -> None:
    code, text = outcome(monkeypatch, capsys, ZeroDivisionError("oops"))
    assert code == 2
    assert text == "internal error in the command line: ZeroDivisionError: oops (--debug shows the traceback)\n"


HALF_IMPORTED = """
import sys
from dlog import __main__
from dlog.command import cli
class Part:
    def __del__(self):
        raise KeyError("half imported")
def fail(words):
    part = Part()
    try:
        raise KeyboardInterrupt
    finally:
        if "clean" in words:
            raise KeyError("half imported")
cli.invoke = fail
__main__.main()
"""


@pytest.mark.parametrize("words", [[], ["clean"]])
def test_an_interruption_gives_130_and_no_word_of_what_it_left_half_done(words: list[str]) -> None:
    command = [sys.executable, "-c", HALF_IMPORTED, *words]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stdout, process.stderr) == (130, "", "interrupted\n")


def test_an_unexpected_exception_gets_the_name_of_its_stage() -> None:
    with pytest.raises(InternalError, match="internal error in evaluation: KeyError: 'x'") as caught, stage("evaluation"):
        raise KeyError("x")
    assert caught.value.stage == "evaluation"
    assert isinstance(caught.value.__cause__, KeyError)


def test_files_and_memory_are_not_internal_errors() -> None:
    with pytest.raises(DlogError, match="no/such/file: No such file or directory"), stage("loading"):
        Path("no/such/file").read_text()
    with pytest.raises(DlogError, match="out of memory in evaluation"), stage("evaluation"):
        raise MemoryError


@pytest.mark.parametrize(
    "error", [DlogError(Diagnostic("a", "b")), InternalError("x", "y"), BrokenPipeError(), KeyboardInterrupt()]
)
def test_what_already_has_a_meaning_passes_through_a_stage(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught, stage("evaluation"):
        raise error
    assert caught.value is error


def modules_after(program: str, folder: Path) -> set[str]:
    """The top-level modules loaded after a Python program ran."""
    show = "print(*{m.partition('.')[0] for m in sys.modules}, file=sys.stderr)"
    whole = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{program}\n{show}"
    process = subprocess.run([sys.executable, "-c", whole], cwd=folder, capture_output=True, text=True, check=True)
    return set(process.stderr.split())


def test_version_imports_nothing_it_does_not_need(tmp_path: Path) -> None:
    loaded = modules_after("from dlog.__main__ import run_command\nassert run_command(['--version']) == 0", tmp_path)
    assert loaded.isdisjoint({"click", "lark", "rich", "numpy", "numba", "pyarrow"})


def test_importing_dlog_is_cheap(tmp_path: Path) -> None:
    assert modules_after("import dlog", tmp_path).isdisjoint({"click", "lark", "rich", "numpy", "numba", "pyarrow"})


def test_check_imports_no_arrays(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(CLOSURE)
    loaded = modules_after("from dlog.__main__ import run_command\nassert run_command(['check', 'p.dl']) == 0", tmp_path)
    assert "lark" in loaded
    assert loaded.isdisjoint({"numpy", "numba", "llvmlite", "pyarrow", "rich"})


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_mistake(tmp_path: Path) -> None:
    # fmt of a file far larger than a pipe's buffer.
    (tmp_path / "large.dl").write_text(".decl a(x: number)\n" + "".join(f"a({i}).\n" for i in range(30_000)))
    process = subprocess.Popen(
        arguments("fmt", "large.dl"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert os.read(process.stdout.fileno(), 8)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 0


def test_standard_output_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no device that is always full")
    with open("/dev/full", "w") as full:
        process = subprocess.run(arguments("--version"), cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (process.returncode, process.stderr) == (1, "error: cannot write to standard output: No space left on device\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(("flags", "place"), [(["-D", "-"], "standard output"), (["--stats-json", "/dev/full"], "/dev/full")])
def test_what_a_run_cannot_write_is_named(tmp_path: Path, flags: list[str], place: str) -> None:
    (tmp_path / "p.dl").write_text(".decl r(x: number)\nr(1).\n.output r\n")
    with open("/dev/full", "w") as full:
        command = arguments("run", "p.dl", *flags)
        process = subprocess.run(command, cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (process.returncode, process.stderr) == (1, f"error: {place}: No space left on device\n")


CLOSED = """import os, sys
from dlog.__main__ import main
for number in (0, 1, 2):
    os.close(number)
sys.stdin = sys.stdout = sys.stderr = None  # as Python has them that starts without
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("program", "code"), [(".output a", 0), (".printsize a", 1), ("wrong", 1)])
def test_closed_streams_are_no_mistake_unless_something_is_printed(tmp_path: Path, program: str, code: int) -> None:
    (tmp_path / "a.dl").write_text(f".decl a(x: number)\na(1).\n{program}\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", CLOSED, "run", "a.dl"], cwd=tmp_path, env=environment)
    assert done.returncode == code
    assert [path.read_text() for path in tmp_path.glob("*.csv")] == (["1\n"] if program == ".output a" else [])


@pytest.mark.parametrize("given", [None, "9"])
def test_the_command_s_threads_of_linear_algebra_sleep_at_once_unless_the_user_says_when(given: str | None) -> None:
    """Those of NumPy's library turn round for a while, each on a core that something else may need."""
    name = "OPENBLAS_THREAD_TIMEOUT"
    environment = {key: value for key, value in os.environ.items() if key != name} | ({} if given is None else {name: given})
    code = f"import os, dlog.__main__ as c\nc.run_command = lambda words: print(os.environ[{name!r}]) or 0\nc.main()"
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.stdout == f"{given or 4}\n"
