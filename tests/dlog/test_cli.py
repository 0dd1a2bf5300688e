"""The commands and their flags, each in a process of its own; `test_run` has `dlog run`."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from dlog import __version__
from dlog.command.cli import app
from dlog.command.options import jobs_of
from dlog.command.warmup import warm
from dlog.grammar.diagnostics import DlogError
from tests.dlog.command import CLOSURE, closure, dlog

UNFORMATTED = ".decl   a( x:number )\na(1) .\na( 2 ).\n"
FORMATTED = ".decl a(x: number)\na(1).\na(2).\n"
WRONG = ".decl edge(x: number)\nedge(1, 2).\nedj(3).\n"


def test_version_is_printed(tmp_path: Path) -> None:
    for flag in ("--version", "-V"):
        finished = dlog(flag, cwd=tmp_path)
        assert (finished.code, finished.out, finished.err) == (0, f"dlog {__version__}\n", "")


def test_help_lists_the_commands() -> None:
    result = CliRunner().invoke(app, ["--help"])
    assert result.exit_code == 0
    for command in ("run", "check", "fmt", "plan", "warmup"):
        assert f"\n  {command} " in result.output


def test_warmup_fails_where_kernels_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.kernels.core.jit.JIT", True)
    monkeypatch.setattr("dlog.engine.runtime.preload.preload", lambda: None)
    monkeypatch.setattr("dlog.engine.kernels.core.library.library", lambda: None)
    monkeypatch.setenv("DLOG_CACHE", str(tmp_path))
    with pytest.raises(DlogError, match="the kernels are not kept in the folder"):
        warm()


def test_help_of_run_names_souffles_flags() -> None:
    result = CliRunner().invoke(app, ["run", "--help"])
    assert result.exit_code == 0
    for flag in ("-F, --fact-dir", "-D, --output-dir", "-I, --include-dir", "-M, --macro", "-j, --jobs", "--memory", "--stats"):
        assert flag in result.output


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["rn"], ["No such command 'rn'", "Did you mean 'run'?", "dlog --help"]),
        (["run"], ["Missing argument 'PROGRAM'", "dlog run --help"]),
        (["run", "p.dl", "--fact-dri", "x"], ["--fact-dri", "--fact-dir"]),
        (["run", "p.dl", "-j", "two"], ["'two' is not a number of threads", "auto"]),
        (["run", "p.dl", "--memory", "lots"], ["'lots' is not a size", "512M"]),
        (["run", "p.dl", "--engine", "flink"], ["flink", "embedded"]),
        (["run", "p.dl", "--engine", "spark", "--workers", "0"], ["--workers", "x>=1"]),
        (["fmt", "--write", "--check", "p.dl"], ["exclude each other"]),
        (["plan", "p.dl", "--stage", "ram"], ["ram", "strata"]),
        (["p.dl", "-F", "facts"], ["'p.dl' is not a command", "did you mean `dlog run p.dl -F facts`?"]),
    ],
)
def test_a_command_line_that_makes_no_sense_gives_1_and_help(words: list[str], parts: list[str], tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(CLOSURE)
    finished = dlog(*words, cwd=tmp_path)
    assert (finished.code, finished.out) == (1, "")
    for part in parts:
        assert part in finished.err
    assert "Traceback" not in finished.err


def test_no_command_shows_the_help(tmp_path: Path) -> None:
    finished = dlog(cwd=tmp_path)
    assert finished.code == 1
    assert "Usage: dlog" in finished.out


# ---------------------------------------------------------------------------------------------------------------- check


@pytest.mark.slow
def test_check_of_a_right_program_says_so(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("check", "closure.dl", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, "closure.dl: ok (2 relations, 2 rules)\n", "")


@pytest.mark.slow
def test_check_reports_all_mistakes_of_all_files(tmp_path: Path) -> None:
    closure(tmp_path)
    (tmp_path / "wrong.dl").write_text(WRONG)
    (tmp_path / "worse.dl").write_text(".decl a(x: nmber)\n")
    finished = dlog("check", "wrong.dl", "closure.dl", "worse.dl", cwd=tmp_path)
    assert finished.code == 1
    assert finished.out == "closure.dl: ok (2 relations, 2 rules)\n"
    for part in ("wrong.dl:2", "wrong.dl:3", "edj", "did you mean", "worse.dl:1", "nmber"):
        assert part in finished.err


def test_check_of_a_missing_file_is_the_users_mistake(tmp_path: Path) -> None:
    finished = dlog("check", "missing.dl", cwd=tmp_path)
    assert finished.code == 1
    assert "missing.dl" in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.slow
def test_macros_and_include_folders_reach_the_preprocessor(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "types.dl").write_text(".decl a(x: KIND)\n")
    (tmp_path / "p.dl").write_text('#include "types.dl"\n#ifdef EXTRA\na("text").\n#endif\n')
    flags = ["-I", "library", "-M", "KIND=symbol EXTRA=1"]
    assert dlog("check", "p.dl", *flags, cwd=tmp_path).code == 0
    refused = dlog("check", "p.dl", "-I", "library", "-M", "KIND=number", "-M", "EXTRA", cwd=tmp_path)
    assert refused.code == 1
    assert "p.dl:3" in refused.err


# ------------------------------------------------------------------------------------------------------------------ fmt


@pytest.mark.slow
def test_fmt_prints_the_canonical_layout(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text(UNFORMATTED)
    finished = dlog("fmt", "a.dl", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, FORMATTED, "")
    assert (tmp_path / "a.dl").read_text() == UNFORMATTED


@pytest.mark.slow
def test_fmt_check_fails_for_each_unformatted_file(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text(UNFORMATTED)
    (tmp_path / "b.dl").write_text(FORMATTED)
    finished = dlog("fmt", "--check", "a.dl", "b.dl", cwd=tmp_path)
    assert finished.code == 1
    assert "a.dl is not formatted" in finished.err
    assert "b.dl" not in finished.err
    assert (tmp_path / "a.dl").read_text() == UNFORMATTED
    assert dlog("fmt", "--check", "b.dl", cwd=tmp_path).code == 0


def test_fmt_write_rewrites_in_place_and_keeps_links_and_modes(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text(UNFORMATTED)
    (tmp_path / "a.dl").chmod(0o640)
    (tmp_path / "link.dl").symlink_to("a.dl")
    finished = dlog("fmt", "--write", "link.dl", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, "")
    assert (tmp_path / "a.dl").read_text() == FORMATTED
    assert (tmp_path / "a.dl").stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "link.dl").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.dl", "link.dl"]


def test_fmt_of_a_syntax_error_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.dl").write_text(".decl a(x: number\n")
    finished = dlog("fmt", "--write", "a.dl", cwd=tmp_path)
    assert finished.code == 1
    assert "a.dl:" in finished.err
    assert (tmp_path / "a.dl").read_text() == ".decl a(x: number\n"


# ----------------------------------------------------------------------------------------------------------------- plan


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["ast", "typed", "strata", "plan"])
def test_every_stage_of_the_compiler_can_be_printed(stage: str, tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("plan", "closure.dl", "--stage", stage, cwd=tmp_path)
    assert (finished.code, finished.err) == (0, "")
    assert "path" in finished.out


@pytest.mark.slow
def test_a_plan_can_follow_the_sizes_of_real_inputs(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("plan", "closure.dl", "-F", "facts", cwd=tmp_path)
    assert (finished.code, finished.err) == (0, "")
    assert "path" in finished.out
    missing = dlog("plan", "closure.dl", "-F", "nowhere", cwd=tmp_path)
    assert missing.code == 1
    assert "nowhere" in missing.err


@pytest.mark.slow
def test_a_plan_over_rounds_shows_how_relations_are_maintained(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("plan", "closure.dl", "--rounds", cwd=tmp_path)
    assert (finished.code, finished.err) == (0, "")
    assert "stratum path, recursive, over rounds and iterations" in finished.out
    assert "at alt" in finished.out
    refused = dlog("plan", "closure.dl", "--rounds", "-F", "facts", cwd=tmp_path)
    assert refused.code == 1
    assert "`--rounds`" in refused.err


@pytest.mark.parametrize("text", ["\u00b2", "-1", "1" * 5000, "many"])
def test_threads_are_a_number_or_auto(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number of threads"):
        jobs_of(text)
