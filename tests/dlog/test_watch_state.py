"""`dlog watch` with a state: a stream goes on where it was left, however it ended."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

import pytest

from dlog.sessions import Session
from dlog.watch import writing
from tests.dlog.command import Finished, arguments, dlog
from tests.dlog.watching import CHANGES, STREAM, RunWatch


def test_with_a_state_the_stream_goes_on_where_it_was_left(watch: RunWatch) -> None:
    lines, expected = STREAM.splitlines(keepends=True), CHANGES.splitlines(keepends=True)
    first = watch("closure.dl", "".join(lines[:2]), "--state", "kept")
    assert first == Finished(0, "".join(expected[:3]), "")
    with pytest.warns(RuntimeWarning, match="rounds up to 1 are in the state: they are left out"):
        rest = watch("closure.dl", STREAM, "--state", "kept")
    assert rest.out == "".join(expected[3:])
    with pytest.warns(RuntimeWarning, match="rounds up to 5"):
        nothing = watch("closure.dl", STREAM, "--state", "kept")
    assert (nothing.code, nothing.out) == (0, "")


@pytest.mark.filterwarnings("ignore:rounds up to")
def test_with_a_state_files_of_changes_go_on(watch: RunWatch, folder: Path) -> None:
    lines = STREAM.splitlines(keepends=True)
    for count in (2, 4, 5):
        assert watch("closure.dl", "".join(lines[:count]), "--state", "kept", "-D", "out").code == 0
    assert (folder / "out" / "path.changes.csv").read_text() == CHANGES


@pytest.mark.filterwarnings("ignore:rounds up to")
@pytest.mark.parametrize("format", ["csv", "json"])
@pytest.mark.parametrize("cut", [1, 8])
def test_a_line_that_was_cut_off_is_dropped_before_others_follow(
    watch: RunWatch, folder: Path, monkeypatch: pytest.MonkeyPatch, format: str, cut: int
) -> None:
    """By a kill or a full disk; in CSV its values may have line ends of their own."""
    monkeypatch.setattr(writing, "CHUNK", 7)
    (folder / "texts.dl").write_text(".decl t(s: symbol)\n.decl u(s: symbol)\n.output u\nu(s) :- t(s).\n")
    flags = ("--state", "kept", "-D", "out", "--format", format)
    texts = ('a "b" \\', "first\nsecond", "c")
    lines = [{"round": n, "relation": "t", "diff": 1, "row": [text]} for n, text in enumerate(texts, 1)]
    stream = [json.dumps(line) + "\n" for line in lines]
    assert watch("texts.dl", "".join(stream[:2]), *flags).code == 0
    (file,) = (folder / "out").iterdir()
    whole, last = file.read_bytes().split(b"\n", 1)
    file.write_bytes(whole + b"\n" + last[:-cut])
    assert watch("texts.dl", "".join(stream), *flags).code == 0
    added = b"3,u,+1,c\n" if format == "csv" else stream[2].replace('"t"', '"u"').encode()
    assert file.read_bytes() == whole + b"\n" + added


@pytest.mark.filterwarnings("ignore:rounds up to")
def test_a_quote_that_something_else_left_has_no_changes_dropped(watch: RunWatch, folder: Path) -> None:
    flags, lines = ("--state", "kept", "-D", "out"), STREAM.splitlines(keepends=True)
    assert watch("closure.dl", "".join(lines[:2]), *flags).code == 0
    (file,) = (folder / "out").iterdir()
    left = b'0,path,+1,"te1,path,+1,7,8\n' + file.read_bytes()
    file.write_bytes(left + b"2,pa")
    assert watch("closure.dl", STREAM, *flags).code == 0
    assert file.read_bytes().startswith(left)
    assert file.read_bytes()[len(left) :].startswith(CHANGES.splitlines(keepends=True)[3].encode())


def test_the_facts_are_written_when_the_state_is_new(watch: RunWatch, folder: Path) -> None:
    (folder / "edge.facts").write_text("1\t2\n")
    assert watch("closure.dl", "", "-F", ".", "--state", "kept").out == "0,path,+1,1,2\n"
    assert watch("closure.dl", "1,edge,+1,2,3\n", "-F", ".", "--state", "kept").out == "1,path,+1,1,3\n1,path,+1,2,3\n"


def test_the_state_of_another_program_is_a_mistake(watch: RunWatch) -> None:
    watch("closure.dl", STREAM, "--state", "kept")
    finished = watch("kinds.dl", "", "--state", "kept")
    assert finished.code == 1
    assert "error: the state has rows of `edge`, which the program does not declare" in finished.err


def test_a_locked_state_is_a_mistake(watch: RunWatch, folder: Path) -> None:
    with Session(folder / "closure.dl", state=folder / "kept"):
        finished = watch("closure.dl", STREAM, "--state", "kept")
    assert finished.code == 1 and "error: the state is in use" in finished.err


def test_a_damaged_state_is_a_mistake(watch: RunWatch, folder: Path) -> None:
    watch("closure.dl", STREAM, "--state", "kept", "--sync", "often")
    (folder / "kept" / "manifest.json").write_text("{")
    finished = watch("closure.dl", STREAM, "--state", "kept")
    assert finished.code == 1 and "error: the state is damaged" in finished.err


@pytest.mark.slow
def test_a_killed_watch_goes_on(folder: Path) -> None:
    path = folder / "changes.txt"
    path.write_text("")
    command = arguments("watch", "closure.dl", "changes.txt", "--follow", "--state", "kept", "-D", "out")
    out = folder / "out" / "path.changes.csv"
    with subprocess.Popen(command, cwd=folder) as process:
        with path.open("a") as stream:
            stream.write("1,edge,+1,1,2\n2,edge,+1,2,3\n3,edge,+1,3,4\n")
        end = time.monotonic() + 60
        while not out.exists() or out.read_text().count("\n") < 3:
            assert time.monotonic() < end
            time.sleep(0.05)
        process.kill()
    finished = dlog("watch", "closure.dl", "changes.txt", "--state", "kept", "-D", "out", cwd=folder)
    assert (finished.code, finished.err) == (0, "warning: rounds up to 2 are in the state: they are left out\n")
    assert out.read_text() == "1,path,+1,1,2\n2,path,+1,1,3\n2,path,+1,2,3\n3,path,+1,1,4\n3,path,+1,2,4\n3,path,+1,3,4\n"
