"""However a process ends, nothing of it stays: in temporary folders, shared memory, among the processes, beside its files."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.security.ended import ENDS, QUICK, Place, finish, gone, runs, until
from tests.security.planted import dlog

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


TABLES = [f"{name}.{part}" for name in ("symbols", "program") for part in ("bytes", "ends")]


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
    assert place.left_by_workers() == []
    assert {path.name for path in place.folder.iterdir()} <= {
        *("tmp", "out", "slow.dl", "quick.dl", "watched.dl", "wrong.dl", "edge.facts"),
    }


INTERRUPTED = """import time, types
import dlog, pyspark.java_gateway
def wait(seconds):
    time.sleep(DELAY)
    raise KeyboardInterrupt
pyspark.java_gateway.time = types.SimpleNamespace(sleep=wait)
try:
    dlog.run(open("quick.dl").read(), engine="spark")
except KeyboardInterrupt:
    print("interrupted")
"""


ENDING = """import threading, time, types
import dlog, pyspark.java_gateway
begun = threading.Event()
def wait(seconds):
    begun.set()
    time.sleep(seconds)
pyspark.java_gateway.time = types.SimpleNamespace(sleep=wait)
text = open("quick.dl").read()
threading.Thread(target=lambda: dlog.run(text, engine="spark"), daemon=True).start()
begun.wait()
time.sleep(DELAY)
print("interrupted")
"""


FORKING = """import signal, subprocess
import dlog
def fork(*arguments):
    process = forked(*arguments)
    if b"spark-submit" in b"".join(arguments[1]):
        signal.raise_signal(signal.SIGINT)  # nobody knows the process yet
    return process
forked, subprocess._fork_exec = subprocess._fork_exec, fork
try:
    dlog.run(open("quick.dl").read(), engine="spark")
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.spark
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")
@pytest.mark.parametrize(
    ("code", "delay"),
    [*((code, delay) for code in (INTERRUPTED, ENDING) for delay in (0.0, 0.7)), (FORKING, 0.0)],
    ids=["interrupted", "interrupted later", "beside a thread", "beside a thread, later", "interrupted at its first moment"],
)
def test_a_run_that_is_interrupted_while_spark_starts_leaves_no_jvm(place: Place, code: str, delay: float) -> None:
    """Python waits for the JVM's port: it has no more use for that, and the JVM would not see that nobody is there."""
    pytest.importorskip("pyspark")
    process = place.start(code.replace("DELAY", str(delay)))
    try:
        shown, _ = process.communicate(timeout=60)
        assert (shown, process.returncode) == ("interrupted\n", 0)
        assert gone(process) and place.left_by_workers() == []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


LEAVING = """import os, signal, sys, time
import dlog
dlog.run(open("quick.dl").read(), engine="spark")
child = os.fork()
if not child:
    time.sleep(300)
    os._exit(0)
from pyspark import SparkContext
print(SparkContext._gateway.proc.pid, child, flush=True)
if sys.argv[1:] == ["killed"]:
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no such list of processes")
@pytest.mark.parametrize("end", ["ends", "killed"])
def test_sparks_jvm_ends_with_its_driver_though_a_process_lives_that_this_had_forked(place: Place, end: str) -> None:
    pytest.importorskip("pyspark")
    process = place.start(LEAVING, end)
    assert process.stdout is not None
    java, child = map(int, process.stdout.readline().split())
    try:
        assert process.wait(60) == (0 if end == "ends" else -signal.SIGKILL)
        until(lambda: not runs(java), seconds=30 if end == "killed" else 0.1)  # it ends first, as it writes in the folder
        assert runs(child)
        assert finish(place.dlog("run", "--engine", "spark", "-D", "out", "quick.dl")) == 0
        assert place.left_by_workers() == []
    finally:
        os.killpg(process.pid, signal.SIGKILL)


STUCK = """import os, signal
import dlog
from dlog.engine.spark import application
dlog.run(open("quick.dl").read(), engine="spark")
from pyspark import SparkContext
application.ENDING = 1.0
os.kill(SparkContext._gateway.proc.pid, signal.SIGSTOP)
"""


@pytest.mark.spark
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="no groups of processes")
def test_sparks_jvm_is_ended_where_it_does_not_end_by_itself(place: Place) -> None:
    """Before its folder is removed, which it would make anew for what it has still to write."""
    pytest.importorskip("pyspark")
    process = place.start(STUCK)
    try:
        assert process.wait(60) == 0
        assert gone(process, patience=2) and place.left_by_workers() == []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


FORKED = """import os, sys
import dlog
session = dlog.session(open("watched.dl").read(), engine="spark", workers=1)
def put(x):
    session.insert("edge", [(x, x + 1)])
    session.commit()
put(1)
for way in ("ends", "closes", "commits"):
    if not os.fork():
        try:
            if way == "closes":
                session.close()
            if way == "commits":
                put(7)
        except dlog.DlogError as error:
            print(error.diagnostics[0].code, flush=True)
        sys.exit()
    print(way, os.wait()[1], flush=True)
put(2)
print(sorted(session["path"]), flush=True)
"""


@pytest.mark.spark
@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked")
def test_a_process_that_was_forked_beside_a_session_on_spark_ends(place: Place) -> None:
    """Also where nobody answers it what it asks of the session, which goes on as if it were not there."""
    pytest.importorskip("pyspark")
    process = place.start(FORKED)
    try:
        shown, _ = process.communicate(timeout=90)
        assert shown == "ends 0\ncloses 0\nno-workers\ncommits 0\n[(1, 2), (1, 3), (2, 3)]\n"
        assert gone(process) and place.left_by_workers() == []
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


STOPPED = """import gc, os, threading
import dlog
from pyspark.sql import SparkSession
def there():
    dlog.run(open("quick.dl").read(), engine="spark", workers=1).release()
    SparkSession.getActiveSession().stop()
    gc.collect()
    answering = [thread for thread in threading.enumerate() if thread.name == "dlog-rendezvous"]
    places = ("/proc/self/fd", os.environ["TMPDIR"])
    return len(answering), threading.active_count(), *(len(os.listdir(place)) for place in places)
first = there()
print(first[0], there() == there() == first, flush=True)
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no such list of descriptors")
def test_applications_of_spark_that_have_been_stopped_keep_nothing(place: Place) -> None:
    """Descriptors, threads that answer on a port, folders."""
    pytest.importorskip("pyspark")
    process = place.start(STOPPED)
    shown, _ = process.communicate(timeout=120)
    assert (shown, process.returncode) == ("1 True\n", 0)
    assert gone(process) and place.left_by_workers() == []


DROPPED = """import glob, os
import dlog
def run():
    return dlog.run(open("quick.dl").read(), engine="spark", workers=1)
def there():
    places = ("/proc/self/fd", os.environ["TMPDIR"])
    return [len(os.listdir(place)) for place in places], len(glob.glob(os.environ["TMPDIR"] + "/dlog-spark-*/rows/*"))
run()
session = dlog.session(open("watched.dl").read(), engine="spark", workers=1)
session.insert("edge", [(1, 2)])
session.commit()
before, held = there()
for number in range(3):
    run()
    assert session["path"].df.count() == 1
run().release()
after, now = there()
print(after == before, now - held, flush=True)
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no such list of descriptors")
def test_rows_on_spark_take_no_descriptors(place: Place) -> None:
    pytest.importorskip("pyspark")
    process = place.start(DROPPED)
    shown, _ = process.communicate(timeout=150)
    assert (shown, process.returncode) == ("True 6\n", 0)
    assert gone(process) and place.left_by_workers() == []


def test_rows_on_spark_have_another_folder_where_somebody_removed_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    from dlog.engine.spark import application

    monkeypatch.setattr(application, "_rows_lease", None)
    first = application.rows_folder()
    shutil.rmtree(first.parent.parent)
    second = application.rows_folder()
    assert second.is_dir() and second.parent.parent != first.parent.parent
    assert application.rows_folder().parent == second.parent
    lease = application._rows_lease
    assert lease is not None
    lease.remove()


AT_ONCE = """import os, tempfile, threading, time
import pyspark.java_gateway as gateway
from dlog.engine.spark import application
from dlog.grammar.diagnostics import DlogError
def launch(conf=None, popen_kwargs=None):
    assert os.path.dirname(gateway.tempfile.mkdtemp()) != tempfile.gettempdir()
    made.append(tempfile.mkdtemp())
    time.sleep(next(waits))
    raise RuntimeError("no JVM")
def start():
    try:
        application.start("local[1]")
    except DlogError as error:
        said.append(str(error))
def seen():
    return {**os.environ, "tempdir": tempfile.gettempdir(), "gateway": (gateway.Popen, gateway.tempfile)}
gateway.launch_gateway, waits, made, said = launch, iter((0.5, 1.0)), [], []
application._name_home()
os.environ["PYSPARK_PYTHON"] = "python3"
before = seen()
threads = [threading.Thread(target=start) for _ in range(2)]
for thread in threads:
    thread.start()
    time.sleep(0.2)
for thread in threads:
    thread.join()
print(seen() == before, ["no JVM" in text for text in said])
for place in made:
    assert os.path.dirname(place) == tempfile.gettempdir()
    os.rmdir(place)
"""


@pytest.mark.spark
def test_threads_that_start_spark_at_once_leave_the_process_as_it_was(place: Place) -> None:
    """And what other threads keep in temporary files meanwhile is no part of what goes with Spark."""
    pytest.importorskip("pyspark")
    process = place.start(AT_ONCE)
    shown, _ = process.communicate(timeout=60)
    assert (shown, process.returncode, place.left_by_workers()) == ("True [True, True]\n", 0, [])


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
        until(lambda: not any(runs(worker) for worker in workers), seconds=30)
    finally:
        for worker in filter(runs, workers):
            os.kill(worker, signal.SIGKILL)
    assert finish(place.dlog("run", "--engine", "spark", "--workers", "2", "-D", "out", "quick.dl")) == 0
    assert place.left_by_workers() == []


def _children(process: int) -> list[int]:
    found = [tasks.read_text().split() for tasks in Path(f"/proc/{process}/task").glob("*/children")]
    return [int(child) for children in found for child in children if runs(int(child))]


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


CHILD = """import multiprocessing, os, sys, tempfile
def work():
    from dlog.temporary import lease
    lease("cache")
    print(len(os.listdir(tempfile.gettempdir())))
if __name__ == "__main__":
    import dlog
    child = multiprocessing.get_context(sys.argv[1]).Process(target=work)
    child.start()
    child.join()
    print(child.exitcode, len(os.listdir(tempfile.gettempdir())))
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_a_process_of_multiprocessing_that_ends_well_leaves_nothing(
    tmp_path_factory: pytest.TempPathFactory, method: str
) -> None:
    place = Place(tmp_path_factory.mktemp("m"))  # names of sockets are short
    (place.folder / "tmp").mkdir()
    (place.folder / "child.py").write_text(CHILD)
    process = place.start("import os, sys; os.execv(sys.executable, [sys.executable, '-P', 'child.py', *sys.argv[1:]])", method)
    shown, _ = process.communicate(timeout=120)
    assert gone(process)
    before, exitcode, after = map(int, shown.split())
    assert (exitcode, after, place.left()) == (0, before - 1, []), shown
