"""However a process ends, nothing of it stays: in temporary folders, shared memory, among the processes, beside its files."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from tests.security.machines import as_on_nfs
from tests.security.planted import LEFT_OUT, STARTER, dlog

SLOW = """.decl n(x: number)
n(0). n(x + 1) :- n(x), x < 40000000.
.output n
"""
QUICK = SLOW.replace("40000000", "100")
WATCHED = """.decl edge(x: number, y: number)
.input edge
.decl path(x: number, y: number)
.output path
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
"""
SESSION = """import sys, time, dlog
session = dlog.session(open("watched.dl").read(), state="state", threads=2)
while True:
    session.insert("edge", [(session.round, session.round + 1)])
    session.commit()
    print(session.round, flush=True)
    if sys.argv[1:] == ["once"]:
        session.close()
        break
    if session.round % 3 == 2 and sys.argv[1:] == ["fail"]:
        raise SystemExit(3)
"""


@dataclass
class Place:
    """Where processes work that have these temporary files and no others."""

    folder: Path

    def start(self, *command: str, **named: str) -> subprocess.Popen[str]:
        temporary = str(self.folder / "tmp")
        environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
        environment |= {"TMPDIR": temporary, "PYTHONPATH": str(Path(__file__).parents[2])} | named
        return subprocess.Popen(
            [sys.executable, "-P", "-c", *command], cwd=self.folder, env=environment, start_new_session=True, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def dlog(self, *arguments: str, **named: str) -> subprocess.Popen[str]:
        return self.start(STARTER, *arguments, **named)

    def left(self) -> list[str]:
        """What is there of processes that have ended."""
        return sorted(str(path) for path in (*self.folder.glob("tmp/*"), *self.folder.rglob(".*.part"), *shared()))


def shared() -> Iterator[Path]:
    """Those in memory whose owner is no more: others belong to tests that run beside this one."""
    return (folder for folder in Path("/dev/shm").glob(f"{PREFIX}*") if free_lock(folder) is not None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    for name in ("tmp", "out"):
        (tmp_path / name).mkdir()
    for name, text in (("slow.dl", SLOW), ("quick.dl", QUICK), ("watched.dl", WATCHED), ("wrong.dl", "a(1).")):
        (tmp_path / name).write_text(text)
    (tmp_path / "edge.facts").write_text("1\t2\n")
    return Place(tmp_path)


def gone(process: subprocess.Popen[str], patience: float = 30.0) -> bool:
    """Whether the process and all that it has started are no more, soon after it has ended."""
    process.wait(120)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=180)
    assert gone(process)
    return process.returncode


TABLES = [f"{name}.{part}" for name in ("symbols", "program") for part in ("bytes", "ends")]
ENDS = [signal.SIGTERM, signal.SIGKILL, signal.SIGINT]


@pytest.mark.slow
@pytest.mark.parametrize("program", ["quick.dl", "wrong.dl"])
def test_a_run_that_ends_by_itself_leaves_nothing(place: Place, program: str) -> None:
    assert finish(place.dlog("run", "-j", "2", "-D", "out", program)) == (0 if program == "quick.dl" else 1)
    assert place.left() == []


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_run_that_is_ended_leaves_nothing_behind_the_next_one(place: Place, end: signal.Signals) -> None:
    for delay in (0.3, 1.5, 3.0):
        process = place.dlog("run", "-j", "2", "-D", "out", "slow.dl")
        time.sleep(delay)
        process.send_signal(end)
        finish(process)
    (place.folder / "quick.dl").write_text(QUICK)
    assert finish(place.dlog("run", "-j", "2", "-D", "out", "quick.dl")) == 0
    assert place.left() == []


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
        assert place.left() == [] and _runs(forked)
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


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_a_session_with_a_state_leaves_its_state_alone(place: Place, end: signal.Signals) -> None:
    for _ in range(2):
        process = place.start(SESSION)
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline()
        process.send_signal(end)
        finish(process)
    assert finish(place.start(SESSION, "fail")) == 3
    assert finish(place.start(SESSION, "once")) == 0
    assert place.left() == []
    names = {path.name.lstrip("0123456789") for path in (place.folder / "state").rglob("*") if path.is_file()}
    assert names <= {".log", ".layer", ".image", "manifest.json", "manifest.copy", "lock", *TABLES}


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
def test_watching_leaves_nothing(place: Place, end: signal.Signals) -> None:
    process = place.dlog("watch", "watched.dl", "-D", "out", "--follow")
    assert process.stdin is not None
    process.stdin.write("1,edge,+1,1,2\n2,edge,+1,2,3\n")
    process.stdin.flush()
    time.sleep(2)
    process.send_signal(end)
    finish(process)
    assert place.left() == []


@pytest.mark.spark
@pytest.mark.parametrize(
    ("end", "sign", "with_java"),
    [
        (None, "", False),
        (signal.SIGTERM, "rows", False),
        (signal.SIGKILL, "rows", False),
        (signal.SIGKILL, "rows", True),
        (signal.SIGKILL, "tmp*", False),  # while Spark's JVM starts: a folder of PySpark's
    ],
)
def test_a_run_on_spark_leaves_nothing_behind_the_next_one(
    place: Place, end: signal.Signals | None, sign: str, with_java: bool
) -> None:
    """`sign`: what is among its temporary files when it is ended, alone or with Spark's JVM."""
    pytest.importorskip("pyspark")
    run = ("run", "--engine", "spark", "--workers", "2", "-D", "out")
    if end is not None:
        process = place.dlog(*run, "slow.dl")
        deadline = time.monotonic() + 60
        while not list(place.folder.glob(f"tmp/dlog-spark-*/{sign}")) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert time.monotonic() < deadline
        assert sign != "rows" or list(place.folder.glob("tmp/dlog-spark-*/blockmgr-*")), "Spark's own are elsewhere"
        os.killpg(process.pid, end) if with_java else process.send_signal(end)
        finish(process)
    assert finish(place.dlog(*run, "quick.dl")) == 0
    assert place.left() == []
    assert {path.name for path in place.folder.iterdir()} <= {
        *("tmp", "out", "slow.dl", "quick.dl", "watched.dl", "wrong.dl", "edge.facts"),
    }


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no such list of processes")
@pytest.mark.parametrize("delay", [0, 5])
def test_workers_on_spark_end_though_nobody_tells_them(place: Place, delay: float) -> None:
    """PySpark's daemon, which would, is killed with the driver and the JVM: while workers begin, and when they are at work."""
    pytest.importorskip("pyspark")
    process = place.dlog("run", "--engine", "spark", "--workers", "2", "-D", "out", "slow.dl")

    def begun() -> list[list[int]]:
        """The JVM, PySpark's daemon, and its workers."""
        found = [[process.pid]]
        while found[-1]:
            found.append([child for parent in found[-1] for child in _children(parent)])
        return found[1:-1]

    found: list[list[int]] = []

    def are_at_work() -> bool:
        found[:] = begun()  # once: processes come and go
        return len(found) == 3 and len(found[2]) == 2

    until(are_at_work, seconds=120)
    time.sleep(delay)
    until(are_at_work, seconds=30)
    java, daemons, workers = found
    assert not [file for file in Path("/tmp").glob("hsperfdata_*/*") if int(file.name) in java]
    for ended in (process.pid, *java, *daemons):
        os.kill(ended, signal.SIGKILL)
    process.communicate(timeout=60)
    try:
        until(lambda: not any(_runs(worker) for worker in workers), seconds=30)
    finally:
        for worker in filter(_runs, workers):
            os.kill(worker, signal.SIGKILL)
    assert finish(place.dlog("run", "--engine", "spark", "--workers", "2", "-D", "out", "quick.dl")) == 0
    assert place.left() == []


def _children(process: int) -> list[int]:
    found = [tasks.read_text().split() for tasks in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for children in found for child in children if _runs(int(child))]


def _runs(process: int) -> bool:
    """Whether it is there, and is no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("number", ["\u00b2" * 12, "\u0663" * 12, "9" * 30, "0", "-1", "mine", "20261126"])
def test_files_named_like_those_of_killed_writers_end_no_run(tmp_path: Path, number: str) -> None:
    file = tmp_path / f".n.csv.{number}.part"
    file.write_text("somebody's")
    remove_left([file])
    assert file.exists()


BACKTRACKING = """.decl text(x: symbol)
text("{a}b").
.decl r(x: symbol)
r(x) :- text(x), match("(a*)*(\\\\1)*c", x).
.output r
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system ends such a process after ten seconds of work")
def test_patterns_are_not_tried_behind_the_end_of_a_killed_run(place: Place) -> None:
    """Which is long before the process has worked for ten seconds."""
    (place.folder / "p.dl").write_text(BACKTRACKING.format(a=40 * "a"))
    process = place.dlog("run", "p.dl")
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        until(lambda: _works(children.read_text().split()))
        [child] = children.read_text().split()
    finally:
        process.kill()
        process.wait()
    until(lambda: not _works([child]), seconds=5)


def _works(processes: list[str]) -> bool:
    """Whether there is one, and it has worked: a zombie does not any more."""
    try:
        fields = Path(f"/proc/{processes[0]}/stat").read_text().rpartition(") ")[2].split()
    except (IndexError, OSError):
        return False
    return fields[0] not in "ZX" and int(fields[11]) > 20


def until(holds: Callable[[], bool], seconds: float = 100) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_cache_that_went_with_its_process_is_not_made_anew(tmp_path: Path) -> None:
    """By one that was started with it, and goes on: the folder would have no owner, and stay."""
    for folder, mode in (("home", 0o777), ("tmp", 0o1777)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder).chmod(mode)
    (tmp_path / "tmp" / f"dlog-{os.getuid()}").symlink_to(tmp_path / "home")
    (tmp_path / "a.dl").write_text(QUICK)
    named = {"HOME": str(tmp_path / "home"), "TMPDIR": str(tmp_path / "tmp"), "XDG_CACHE_HOME": ""}
    gone = tmp_path / "tmp" / "dlog-cache-0_abcdef"
    done = dlog("check", "a.dl", cwd=tmp_path, **named, DLOG_CACHE=str(gone))
    assert (done.returncode, done.stderr.count("warning: ")) == (0, 1), done.stderr
    assert [path.name for path in (tmp_path / "tmp").iterdir()] == [f"dlog-{os.getuid()}"]


def test_a_server_ends_with_its_editor_though_others_hold_its_standard_input(place: Place) -> None:
    """And leaves no cache behind, where that is a temporary folder of its own."""
    (place.folder / "home").mkdir()
    (place.folder / "home").chmod(0o777)
    (place.folder / "tmp" / f"dlog-{os.getuid()}").symlink_to(place.folder / "home")
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    server = place.dlog("lsp", HOME=str(place.folder / "home"), XDG_CACHE_HOME="", DLOG_CACHE="")
    assert server.stdin is not None and editor.stdin is not None
    opened = {"uri": "file:///a.dl", "languageId": "dlog", "version": 1, "text": ".decl a(x: number)\n"}
    for message in (
        {"id": 1, "method": "initialize", "params": {"processId": editor.pid, "rootUri": None, "capabilities": {}}},
        {"method": "textDocument/didOpen", "params": {"textDocument": opened}},
    ):
        text = json.dumps({"jsonrpc": "2.0", **message})
        server.stdin.write(f"Content-Length: {len(text)}\r\n\r\n{text}")
    server.stdin.flush()
    assert server.stdout is not None and server.stdout.readline().startswith("Content-")
    until(lambda: len(place.left()) == 2)
    assert server.poll() is None
    editor.kill()
    editor.communicate()
    assert server.wait(30) == 0
    assert place.left() == [str(place.folder / "tmp" / f"dlog-{os.getuid()}")]


BUSY = """
import re, sys
from dlog.lsp import editor
editor.WORKING = 0.5
editor.end_with(int(sys.argv[1]), 0)
re.match("(a|a)*b", "a" * 60)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no such timers")
def test_a_server_ends_though_the_interpreter_runs_no_thread(tmp_path: Path) -> None:
    """A search with `re` lets none run; this one takes longer than anybody has."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        server = [sys.executable, "-c", BUSY, str(editor.pid)]
        assert subprocess.run(server, cwd=Path(__file__).parents[2], timeout=60).returncode == -signal.SIGPROF
    finally:
        editor.communicate()


SPOILT = """
import os, resource, signal, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
for _ in range(1100):
    os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)
signal.signal(signal.SIGPROF, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPROF})
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="says what is done with signals")
def test_a_server_ends_with_its_editor_whatever_it_was_given(place: Place) -> None:
    """Open files, so that the next have numbers that `select` does not take; signals that are ignored and blocked."""
    editor = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    command = [sys.executable, "-c", SPOILT, sys.executable, "-m", "dlog", "lsp"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = subprocess.Popen(command, cwd=Path(__file__).parents[2], text=True, **pipes)
    try:
        assert server.stdin is not None and server.stdout is not None
        begun = {"id": 1, "method": "initialize", "params": {"processId": editor.pid, "rootUri": None, "capabilities": {}}}
        text = json.dumps({"jsonrpc": "2.0", **begun})
        server.stdin.write(f"Content-Length: {len(text)}\r\n\r\n{text}")
        server.stdin.flush()
        assert server.stdout.readline().startswith("Content-")
        about = dict(line.split(":\t") for line in Path(f"/proc/{server.pid}/status").read_text().splitlines() if ":\t" in line)
        assert not (int(about["SigIgn"], 16) | int(about["SigBlk"], 16)) >> signal.SIGPROF - 1 & 1
        editor.kill()
        editor.communicate()
        assert server.wait(30) == 0
    finally:
        editor.kill()
        editor.communicate()
        server.kill()
        server.communicate()


LATE = """
import json, os, subprocess, sys, time
server = subprocess.Popen(sys.argv[2:], stdin=int(sys.argv[1]), stdout=subprocess.DEVNULL)
print(os.getpid(), server.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="says who has started a process")
def test_a_server_ends_with_an_editor_that_has_ended_before_it_was_greeted(place: Place) -> None:
    begin, end = os.pipe()  # which this process holds open
    command = [sys.executable, "-c", LATE, str(begin), sys.executable, "-m", "dlog", "lsp"]
    editor = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, pass_fds=[begin], cwd=Path(__file__).parents[2])
    try:
        assert editor.stdout is not None
        own, started = map(int, editor.stdout.readline().split())
        until(lambda: "_asyncio" in Path(f"/proc/{started}/maps").read_text())
        editor.kill()
        editor.communicate()
        begun = {"id": 1, "method": "initialize", "params": {"processId": own, "rootUri": None, "capabilities": {}}}
        text = json.dumps({"jsonrpc": "2.0", **begun})
        os.write(end, f"Content-Length: {len(text)}\r\n\r\n{text}".encode())
        until(lambda: not Path(f"/proc/{started}").exists(), 20)
    finally:
        os.close(begin)
        os.close(end)
