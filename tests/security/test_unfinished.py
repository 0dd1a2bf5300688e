"""Files that a writer has not finished: what a killed one left goes, what another writes stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from dlog import caches, unfinished
from dlog.engine.formats.whole_files import write_whole
from dlog.engine.ir.rules import Io, Program
from dlog.locks import lock
from dlog.sessions import Session
from dlog.streaming import _Feed
from dlog.temporary import LOCK, PREFIX, TOKEN_SIZE, free_lock, lease
from dlog.unfinished import remove_left, replacing
from tests.security.ended import Place, finish, runs
from tests.security.machines import as_on_nfs


@pytest.mark.slow
def test_what_a_killed_writer_left_beside_its_file_goes_when_the_file_is_written_again(place: Place) -> None:
    left, written, others = f".n.csv.{'0' * 12}.part", f".n.csv.{'1' * 12}.part", f".other.csv.{'0' * 12}.part"
    for name in (left, written, others, ".n.csv.mine.part"):
        (place.folder / "out" / name).write_text("half")
    with (place.folder / "out" / written).open() as held:
        assert lock(held.fileno())
        assert finish(place.dlog("run", "-D", "out", "quick.dl")) == 0
    names = [written, ".n.csv.mine.part", others, "n.csv"]
    assert sorted(path.name for path in (place.folder / "out").iterdir()) == sorted(names)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="elsewhere files have no such owners")
def test_what_a_killed_stream_left_beside_its_changes_goes_when_the_next_one_begins(place: Place) -> None:
    writing = (
        "import os, signal, sys\nimport pyarrow as pa, pyarrow.parquet as pq\nfrom pathlib import Path\n"
        "from dlog.streaming import _write_changes\n"
        "def half(changes, file):\n    file.write(b'PAR1')\n    print(flush=True)\n    sys.stdin.read()\n"
        "pq.write_table = half\n_write_changes(pa.table({'x': [1]}), Path('out/s/round-000000000001.parquet'))\n"
    )
    with place.start(writing) as killed, place.start(writing.replace("0001.", "0002.")) as alive:
        for process in (killed, alive):
            assert process.stdout is not None and process.stdout.readline() == "\n"
        both = sorted(os.listdir(place.folder / "out" / "s"))
        killed.kill()
        killed.wait()
        (place.folder / "out" / "s" / "mine").touch()
        with Session(".decl s(x: number)\n") as session:
            _Feed(session, (), ("s",), place.folder / "out", None).begin()
        assert len(both) == 2
        assert sorted(os.listdir(place.folder / "out" / "s")) == [both[1], "mine"], "one is still being written"
        alive.kill()


WRITING = """import os, signal, sys
from pathlib import Path
from dlog.unfinished import remove_left, replacing
os.getpid = lambda: 1
remove_left(Path("out").glob(".*.part"))
with replacing(Path("out/n.csv")) as file:
    file.write(sys.argv[1].encode())
    file.flush()
    print(flush=True)
    sys.stdin.readline()
"""


def test_writers_of_the_same_number_neither_spare_what_one_left_nor_take_what_another_writes(place: Place) -> None:
    """As those have that are the first process of a container each."""
    killed, first, second = (place.start(WRITING, text) for text in ("killed", "first", "second"))
    for process in (killed, first, second):
        assert process.stdout is not None and process.stdout.readline() == "\n"
    killed.kill()
    killed.wait()
    assert len(os.listdir(place.folder / "out")) == 3
    for process, text in ((second, "second"), (first, "first")):
        process.communicate("\n", timeout=60)
        assert (process.returncode, (place.folder / "out" / "n.csv").read_text()) == (0, text)
    with place.start(WRITING, "last") as last:
        last.communicate("\n", timeout=60)
    assert os.listdir(place.folder / "out") == ["n.csv"]


def test_what_is_swept_before_it_is_locked_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    swept: list[int] = []

    def late(file: int) -> bool:
        if not swept:
            swept.append(file)
            remove_left(tmp_path.iterdir())
        return lock(file)

    monkeypatch.setattr(unfinished, "lock", late)
    with replacing(tmp_path / "n.csv") as file:
        file.write(b"1\n")
        assert len(list(tmp_path.iterdir())) == 1
    assert (tmp_path / "n.csv").read_bytes() == b"1\n" and swept and len(list(tmp_path.iterdir())) == 1


def test_what_was_left_on_another_machine_s_disk_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    as_on_nfs(monkeypatch)
    left, written = (tmp_path / f".n.csv.{digit * 12}.part" for digit in "01")
    folder, cache, used = tmp_path / f"{PREFIX}sqlite-left", *(tmp_path / f"zipped-{digit * 16}" for digit in "12")
    for path in (left, written):
        path.write_text("half")
    for made in (folder, cache, used):
        made.mkdir()
    (folder / LOCK).write_text("0" * TOKEN_SIZE)
    holding = caches.try_lock(used)
    for made in (cache, used, *used.iterdir()):
        os.utime(made, (0, 0))
    with written.open("r+") as held:
        assert lock(held.fileno()) and holding is not None
        remove_left([left, written])
        lease("sqlite", tmp_path).remove()
        caches.remove_unused(tmp_path / f"zipped-{'3' * 16}", "zipped")
    os.close(holding)
    assert set(tmp_path.iterdir()) == {written, used}


FORKED = """import os, signal, sys, time
from pathlib import Path
from dlog.temporary import lease
from dlog.unfinished import replacing
made = lease("sqlite")
with replacing(Path("out/n.csv")) as file:
    file.write(b"half")
    child = os.fork()
    if not child:
        os.close(1)
        if sys.argv[1] == "waits":
            os.read(os.pipe()[0], 1)
    else:
        if sys.argv[1] == "ends":
            os.waitpid(child, 0)
            file.write(b", whole")
        else:
            print(child, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="nothing is known of writers that were killed")
def test_what_a_killed_process_left_goes_though_one_that_it_has_forked_lives(place: Place) -> None:
    killed = place.start(FORKED, "waits")
    assert killed.stdout is not None
    forked = int(killed.stdout.readline())
    killed.wait()
    try:
        assert len(place.left()) == 2
        place.start(WRITING, "next").communicate("\n", timeout=60)
        place.start("from dlog.temporary import lease; lease('sqlite')").communicate(timeout=60)
        assert place.left() == [] and runs(forked)
    finally:
        os.kill(forked, signal.SIGKILL)


def test_a_forked_process_neither_writes_nor_names_nor_removes_what_the_one_before_writes(place: Place) -> None:
    assert finish(place.start(FORKED, "ends")) == 0
    assert (place.folder / "out" / "n.csv").read_text() == "half, whole" and place.left() == []


def test_a_process_that_is_to_hold_a_lock_holds_it_however_it_is_started(tmp_path: Path) -> None:
    """Spark's JVM goes on for a moment after the process that has started it; PySpark has code run in what it forks."""
    made = lease("spark", tmp_path)
    with made.lock.shared() as descriptor:
        command = [sys.executable, "-c", "input()"]
        started = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[descriptor], preexec_fn=lambda: None)
    made.lock.close()
    assert free_lock(made.folder) is None
    started.communicate(b"\n")
    assert free_lock(made.folder) is not None


@pytest.mark.parametrize("mode", [0o200, 0o400])
def test_what_only_can_be_written_or_read_is_removed_when_it_was_left(tmp_path: Path, mode: int) -> None:
    left = tmp_path / f".n.csv.{'0' * 12}.part"
    left.write_text("half")
    left.chmod(mode)
    tmp_path.chmod(0o777)
    child = os.fork()
    if not child:
        os.chdir(tmp_path)
        if os.getuid() == 0:  # who can open everything
            os.chown(left.name, 65534, 65534)
            os.setuid(65534)
        remove_left([Path(left.name)])
        os._exit(0)
    os.waitpid(child, 0)
    assert not left.exists()


@pytest.mark.parametrize("mode", [0o000, 0o200, 0o444])
def test_what_is_written_can_be_locked_by_whoever_removes_it_whatever_rights_it_will_have(tmp_path: Path, mode: int) -> None:
    (tmp_path / "n.csv").touch()
    (tmp_path / "n.csv").chmod(mode)
    meanwhile: list[int] = []

    def write(file: BinaryIO) -> None:
        meanwhile.append(os.fstat(file.fileno()).st_mode & 0o777)
        file.write(b"1\n")

    write_whole(cast(Io, None), cast(Program, None), tmp_path / "n.csv", write)
    assert meanwhile == [0o600] and (tmp_path / "n.csv").stat().st_mode & 0o777 == mode & 0o666


@pytest.mark.parametrize("number", ["\u00b2" * 12, "\u0663" * 12, "9" * 30, "0", "-1", "mine", "20261126"])
def test_files_named_like_those_of_killed_writers_end_no_run(tmp_path: Path, number: str) -> None:
    file = tmp_path / f".n.csv.{number}.part"
    file.write_text("somebody's")
    remove_left([file])
    assert file.exists()
