"""`dlog run` in a process of its own: files in, files out, figures, mistakes."""

import gzip
import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.dlog.command import arguments, closure, dlog

CLOSED = [(1, 2), (1, 3), (2, 3)]


def pairs(text: str) -> list[tuple[int, ...]]:
    """Rows of numbers in a tab-separated text, sorted."""
    return sorted(tuple(int(field) for field in line.split("\t")) for line in text.splitlines())


@pytest.mark.slow
def test_outputs_are_written_to_a_folder_that_is_made(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out/deep", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, "", "")
    assert [p.name for p in (tmp_path / "out" / "deep").iterdir()] == ["path.csv"]
    assert pairs((tmp_path / "out" / "deep" / "path.csv").read_text()) == CLOSED


@pytest.mark.slow
def test_flags_may_be_glued_as_souffle_users_do(tmp_path: Path) -> None:
    closure(tmp_path)
    assert dlog("run", "closure.dl", "-Ffacts", "-Dout", "-j1", cwd=tmp_path).code == 0
    assert pairs((tmp_path / "out" / "path.csv").read_text()) == CLOSED


@pytest.mark.slow
def test_without_flags_files_are_beside_where_one_stands(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "../closure.dl", cwd=tmp_path / "facts")
    assert finished.code == 0
    assert pairs((tmp_path / "facts" / "path.csv").read_text()) == CLOSED


@pytest.mark.slow
def test_a_dash_prints_instead_of_writing(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "-", cwd=tmp_path)
    assert (finished.code, finished.err) == (0, "")
    lines = finished.out.splitlines()
    assert "path" in lines
    assert {"1\t2", "1\t3", "2\t3"} <= set(lines)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["closure.dl", "facts"]


@pytest.mark.slow
def test_printsize_goes_to_standard_output(tmp_path: Path) -> None:
    closure(tmp_path)
    (tmp_path / "closure.dl").write_text((tmp_path / "closure.dl").read_text() + ".printsize path\n")
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, "path\t3\n", "")


@pytest.mark.slow
def test_several_inputs_are_read_and_all_their_mistakes_reported(tmp_path: Path) -> None:
    copy = ".decl r{i}(a: number)\n.input r{i}\n.decl s{i}(a: number)\n.output s{i}\ns{i}(x) :- r{i}(x).\n"
    (tmp_path / "p.dl").write_text("".join(copy.format(i=i) for i in range(6)))
    for i in range(6):
        (tmp_path / f"r{i}.facts").write_text(f"{i}\n{i + 10}\n")
    assert dlog("run", "p.dl", "-j2", "-D", "out", cwd=tmp_path).code == 0
    for i in range(6):
        assert pairs((tmp_path / "out" / f"s{i}.csv").read_text()) == [(i,), (i + 10,)]
    (tmp_path / "r1.facts").write_text("1\nx\n")
    (tmp_path / "r4.facts").unlink()
    finished = dlog("run", "p.dl", "-D", "other", cwd=tmp_path)
    assert finished.code == 1
    for part in ("r1.facts:2", "x", "r4"):
        assert part in finished.err
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
def test_a_missing_fact_folder_is_the_users_mistake(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "nowhere", cwd=tmp_path)
    assert (finished.code, finished.out) == (1, "")
    assert "nowhere" in finished.err
    assert "-F" in finished.err


@pytest.mark.slow
def test_a_fact_folder_is_not_asked_for_where_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x: number)\n.output a\na(7).\n")
    assert dlog("run", "p.dl", "-F", "nowhere", "-D", "out", cwd=tmp_path).code == 0
    assert (tmp_path / "out" / "a.csv").read_text() == "7\n"


@pytest.mark.slow
def test_a_place_that_cannot_be_written_is_the_users_mistake(tmp_path: Path) -> None:
    closure(tmp_path)
    (tmp_path / "out").write_text("a file where a folder should be")
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out", cwd=tmp_path)
    assert finished.code == 1
    assert "out" in finished.err
    assert "Traceback" not in finished.err


@pytest.mark.slow
def test_a_file_in_the_place_of_the_output_folder_is_the_users_mistake(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "closure.dl", cwd=tmp_path)
    assert (finished.code, finished.out) == (1, "")
    assert finished.err == "error: closure.dl is a file, where a folder is wanted\n"


def test_a_wrong_program_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(".decl a(x: number)\n.input a\n.decl b(x: number)\nb(y) :- a(x).\n")
    finished = dlog("run", "p.dl", "-F", "nowhere", cwd=tmp_path)
    assert finished.code == 1
    assert "p.dl:4" in finished.err
    assert "nowhere" not in finished.err


@pytest.mark.slow
@pytest.mark.parametrize("text", ["p\\tq", "p\\nq"], ids=["delimiter", "line end"])
def test_text_that_will_not_be_read_as_it_is_is_written_unless_warnings_are_mistakes(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.dl").write_text(f'.decl a(x: symbol)\na("{text}").\n.output a\n')
    refused = dlog("run", "p.dl", "-Werror", cwd=tmp_path)
    assert (refused.code, list(tmp_path.glob("*.csv*"))) == (1, [])
    assert refused.err.startswith("error: `x` of `a` has text with ") and "which will not be read as it is" in refused.err
    silent, told = dlog("run", "p.dl", "-w", cwd=tmp_path), dlog("run", "p.dl", cwd=tmp_path)
    assert (silent.code, silent.err, told.code) == (0, "", 0)
    assert told.err.startswith("warning: `x` of `a` has text with ")


@pytest.mark.slow
def test_wrong_outputs_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    closure(tmp_path)
    with (tmp_path / "closure.dl").open("a") as program:
        program.write('.output edge(IO=tape)\n.output edge(delimiter="")\n')
    finished = dlog("run", "closure.dl", "-F", "nowhere", "-D", "out", cwd=tmp_path)
    assert finished.code == 1
    assert "not supported yet: IO=tape" in finished.err
    assert "delimiter '' cannot part the columns of a line" in finished.err
    assert "nowhere" not in finished.err


@pytest.mark.slow
def test_a_warning_is_one_plain_line(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text('.decl p(x: symbol)\n.output p\np("a").\np("b") :- p(x), match("(", x).\n')
    finished = dlog("run", "p.dl", "-D", "-", cwd=tmp_path)
    assert finished.code == 0
    assert finished.err.startswith('warning: wrong pattern provided for match("(")')
    assert finished.err.count("\n") == 1


@pytest.mark.slow
def test_an_expression_nested_too_deeply_is_the_users_mistake(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(f".decl p(x: number)\n.output p\np({' + '.join(['1'] * 5000)}).\n")
    finished = dlog("run", "p.dl", "-D", "-", cwd=tmp_path)
    assert finished.code == 1
    assert finished.err.startswith("error: an expression of the program is nested too deeply")


@pytest.mark.slow
def test_stats_show_each_rule_and_its_tuples(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out", "--stats", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, "")
    for part in ("seconds", "derived", "iterations", "path(x, z) :- path(x, y), edge(y, z).", "peak memory"):
        assert part in finished.err


@pytest.mark.slow
def test_stats_as_json(tmp_path: Path) -> None:
    closure(tmp_path)
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out", "--stats-json", "stats.json", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, "", "")
    stats = json.loads((tmp_path / "stats.json").read_text())
    assert set(stats) == {"load_seconds", "evaluate_seconds", "write_seconds", "peak_bytes", "relations"}
    assert stats["relations"] == {"edge": 2, "path": 3}
    assert stats["peak_bytes"] > 10 << 20
    assert all(stats[name] >= 0 for name in ("load_seconds", "evaluate_seconds", "write_seconds"))


@pytest.mark.slow
def test_too_little_memory_is_the_users_mistake(tmp_path: Path) -> None:
    closure(tmp_path, "".join(f"{i}\t{i + 1}\n" for i in range(6000)))
    finished = dlog("run", "closure.dl", "-F", "facts", "-D", "out", "--memory", "120M", cwd=tmp_path)
    assert finished.code == 1
    assert "memory" in finished.err
    assert not (tmp_path / "out" / "path.csv").exists()


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_mistake(tmp_path: Path) -> None:
    closure(tmp_path, "".join(f"{i}\t{i + 1}\n" for i in range(600)))
    process = subprocess.Popen(
        arguments("run", "closure.dl", "-F", "facts", "-D", "-"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(4)
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.4, 1.5, 3.0])
def test_an_interruption_stops_within_a_second_and_leaves_no_file(pause: float, tmp_path: Path) -> None:
    # 800 million pairs: far longer than the test waits, in whatever stage the signal comes.
    closure(tmp_path)
    edges = "".join(f"{i}\t{i + 1}\n" for i in range(40_000)).encode()
    (tmp_path / "facts" / "edge.facts").write_bytes(edges)
    process = subprocess.Popen(
        arguments("run", "closure.dl", "-F", "facts", "-D", "out"), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        time.sleep(pause)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)  # it takes a second, and more on a busy machine
    finally:
        process.kill()
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")
    assert list(tmp_path.glob("out/*")) == []


@pytest.mark.slow
def test_compressed_input_is_read(tmp_path: Path) -> None:
    closure(tmp_path)
    program = (tmp_path / "closure.dl").read_text().replace(".input edge", '.input edge(compress="true", filename="edge.gz")')
    (tmp_path / "closure.dl").write_text(program)
    (tmp_path / "facts" / "edge.gz").write_bytes(gzip.compress(b"1\t2\n2\t3\n"))
    assert dlog("run", "closure.dl", "-F", "facts", "-D", "out", cwd=tmp_path).code == 0
    assert pairs((tmp_path / "out" / "path.csv").read_text()) == CLOSED
