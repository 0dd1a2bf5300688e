"""The Spark application that runs programs: found, or started with settings made for iteration."""

from __future__ import annotations

import os
import re
import reprlib
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TextIO, cast
from weakref import WeakSet

from dlog.engine.interruption import Delayed
from dlog.engine.spark.error_translation import DISTRIBUTION, failures, reason_of
from dlog.engine.spark.orphans import Attended
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from dlog.engine.spark.rendezvous import Rendezvous
    from dlog.temporary import Lease, Process

SETTINGS = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "8",
    "spark.python.worker.reuse": "true",
}
"""Settings of a session that dlog starts, but for those that spark-submit was given; whoever starts one of their own keeps
theirs."""
NOT_BY_TCP = "spark.python.unix.domain.socket.enabled"
"""Over TCP a task of Python waits 40 ms for an acknowledgement; from Spark 4.1 on there is this other way: sockets in the file
system, without passwords."""
SOCKETS = "spark.python.unix.domain.socket.dir"
"""Where they are; else among the temporary files."""
HERE = ("spark.driver.host", "spark.driver.bindAddress")
"""Where Spark's driver listens: to everybody, unless it is told otherwise, and whoever talks to it need not say who it is."""
OPTIONS = "SPARK_SUBMIT_OPTS"
"""Options for the JVM of `spark-submit`, before those of `spark.driver.extraJavaOptions`."""
LAUNCHER_OPTIONS = "SPARK_LAUNCHER_OPTS"
"""Options for the JVM that finds out how to start that one."""
GIVEN_OPTIONS = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", OPTIONS)
"""What options for any JVM come from: an option that is given there holds, though the command line has it later."""
CRASH_FILES = {"ErrorFile": "hs_err_pid%p.log", "ReplayDataFile": "replay_pid%p.log"}
"""What a JVM that crashes writes, in the current folder and through links unless it is told where; heap dumps replace none."""
MAX_FOLDER_CHARACTERS = 64
"""Characters of a folder's name: systems take 104 or 108 for a socket's, and Spark's own have 43."""

SAFE = "PYTHONSAFEPATH"
"""What Python is told by to look for modules where they are installed only: the processes that a JVM starts for itself, too, to
look for sources of data that are written in Python."""
OTHERS_CLASSES = "spark.driver.defaultExtraClassPath"
"""Where the driver's JVM looks for classes before Spark's own, if nothing else is chosen: Spark 4.0 has a folder `hive-jackson`
there, in the current one."""
ENDING = 10.0
"""Seconds that a JVM has to end by itself, which may have files and applications elsewhere to leave in order."""
ATTEMPTS_MAX = 32
"""Attempts of a stage among which tasks are looked for; Spark itself gives up after a few."""

_rendezvous: dict[str, Rendezvous] = {}
_socket_lease: Lease | None = None
_rows_lease: Lease | None = None
_lock = threading.Lock()
_starting = threading.Lock()
"""Held while a JVM is started: what is changed for that, in the environment and in PySpark, is the whole process's."""


def missing(what: str, *notes: str) -> DlogError:
    return DlogError(Diagnostic("no-spark", what, notes=notes))


def need_packages() -> None:
    """Raises DlogError where a package is missing."""
    try:
        import pyspark  # noqa: F401
        import zmq  # noqa: F401
    except ImportError as error:
        raise missing(f"the Spark engine needs {error.name}", f"pip install '{DISTRIBUTION}[spark]' brings it") from None


def start(master: str | None = None, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session that is active, or a new one on `master` (default: what spark-submit says, else this machine's cores).
    Raises DlogError where PySpark or Java is missing."""
    need_packages()
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if SparkContext._active_spark_context is not None:  # active in another thread: it keeps its settings
        return SparkSession.builder.getOrCreate()
    os.environ["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON") or sys.executable
    chosen = {"spark.app.name": "dlog", **SETTINGS, **(settings or {}), **({} if master is None else {"spark.master": master})}
    refused: tuple[type[Exception], ...] = (*failures(), RuntimeError)
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        try:
            with _starting:
                launched = _launch(chosen, log)
            builder = SparkSession.builder
            for key, value in _unlike_given(chosen).items():
                builder = builder.config(key, value)
            session = builder.getOrCreate()
        except refused as error:
            notes = ("`java -version` should say 17 or 21",) if SparkContext._gateway is None else ()
            raise missing(f"Spark does not start: {_complaint(log) or reason_of(error)}", *notes) from error
    if launched:
        environment = cast("dict[str, str]", session.sparkContext.environment)
        environment.setdefault(SAFE, os.environ.get(SAFE, ""))  # the user's functions may have modules where they run
    return session


def _launch(settings: Mapping[str, str], log: TextIO) -> bool:
    """Starts the JVM, unless there is one; what it says on standard error goes to `log`, for people have terminals to read.
    Whether it did."""
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    launches = SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ
    if launches:
        _need_java()
        _name_home()
        conf = SparkConf(loadDefaults=False).setAll(list({OTHERS_CLASSES: "", **settings}.items()))
        with _temporary_files() as (keeping, processes), _in_environment(SAFE, "1"):
            with _ended_where_it_fails(processes):
                gateway = launch_gateway(conf, {"stderr": log, **keeping})
            SparkContext._ensure_initialized(gateway=gateway)
    SparkContext._ensure_initialized()
    return launches


@contextmanager
def _ended_where_it_fails(processes: list[Process]) -> Iterator[None]:
    """A block that has PySpark start the JVM, which is one of the `processes` from then on, and ends with a block that fails
    or is interrupted."""
    from pyspark import java_gateway

    from dlog.locks import hold

    class Jvm(subprocess.Popen[Any]):
        """Ends when its standard input does, a pipe that no forked process holds, but not while it begins: where PySpark has
        given up waiting for its port, it fails before it looks whether anybody is there, and its threads stay."""

        is_begun = False

        def __init__(self, *args: Any, **named: Any) -> None:
            processes.append(self)
            with Delayed():  # else one could come before the process is known, or in what others do after a fork
                hold(lambda: self._begin(*args, **named))

        def _begin(self, *args: Any, **named: Any) -> int:
            super().__init__(*args, **named)
            assert self.stdin is not None
            return self.stdin.fileno()

        def end(self) -> None:
            if getattr(self, "pid", None) is None:
                return
            try:
                if self.is_begun and self.stdin is not None:
                    _quieten_threads()
                    with suppress(OSError, subprocess.TimeoutExpired):
                        self.stdin.close()
                        self.wait(ENDING)
            finally:  # whoever interrupts the wait does not want it to end by itself
                self.kill()
                self.wait()

    with _replaced(java_gateway, Popen=Jvm):
        try:
            yield
        except BaseException:
            for process in processes:
                process.end()
            raise
        Jvm.is_begun = True


def _quieten_threads() -> None:
    """Has threads that talk to the JVM (PySpark's, Py4J's, those with jobs that nobody waits for) say nothing of how it ends:
    the process does, too."""
    import logging

    from pyspark import SparkContext

    server = getattr(SparkContext._active_spark_context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda *_: None
    logging.getLogger().addFilter(lambda said: said.module not in ("java_gateway", "clientserver"))
    threading.excepthook = lambda *_: None


@contextmanager
def _replaced(module: Any, **values: object) -> Iterator[None]:
    """A block in which names of a module mean something else."""
    before = {name: getattr(module, name) for name in values}
    vars(module).update(values)
    try:
        yield
    finally:
        vars(module).update(before)


@contextmanager
def _in_environment(name: str, value: str) -> Iterator[None]:
    """A block in which a variable has a value for what it starts."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextmanager
def _temporary_files() -> Iterator[tuple[dict[str, Any], list[Process]]]:
    """Has the JVM, and PySpark while it starts it, keep their temporary files in a folder that is removed after them, should
    both be killed. Arguments for the JVM's process, which holds the folder's lock, too, as it may outlive this one for a while;
    and the list of those that end before the folder goes. What Java has in `/tmp` for those who watch it
    (`hsperfdata_USER`) it would have nowhere else. Derby, the database of Spark, would take from the current folder what to
    do, such as which file to empty, whoever has it begin."""
    if os.name != "posix":
        yield {}, []
        return
    from pyspark import java_gateway

    from dlog.caches import Untrusted, own_lease

    try:
        place = own_lease("spark")
    except Untrusted as error:  # who takes the place of PySpark's folder with the port there is the JVM
        message = "Spark does not start: others can put something else in the place of its temporary files"
        note = "TMPDIR names another place for them, which needs the sticky bit if others can write there"
        raise missing(message, note) from error
    except OSError as error:
        raise missing(f"Spark does not start: it has no folder for temporary files: {error.strerror or error}") from error

    folder = str(place.folder)
    quoted = _quoted(folder)
    # What other threads make meanwhile is not to go with that folder.
    own_files = SimpleNamespace(mkdtemp=partial(tempfile.mkdtemp, dir=folder), mkstemp=tempfile.mkstemp)
    # Of two of a name the last one holds.
    own = f'"-Djava.io.tmpdir={quoted}" "-Dderby.system.home={quoted}" -XX:-UsePerfData {_crash_options(folder)}'
    options = f"{own} {os.environ.get(OPTIONS, '')}"
    nowhere = " ".join(f"-XX:{option}={os.devnull}" for option in CRASH_FILES)  # a shell splits these at blanks
    quiet = f"-XX:-UsePerfData {nowhere} {os.environ.get(LAUNCHER_OPTIONS, '')}"
    with (
        _replaced(java_gateway, tempfile=own_files),
        _in_environment(OPTIONS, options),
        _in_environment(LAUNCHER_OPTIONS, quiet),
        place.lock.shared() as descriptor,
    ):
        yield {"pass_fds": [descriptor]}, place.processes


def _crash_options(folder: str) -> str:
    """Options that have a JVM which crashes write about it in a folder, unless another place is given."""
    given = " ".join(os.environ.get(name, "") for name in GIVEN_OPTIONS)
    place = _quoted(folder.replace("%", "%%"))
    return " ".join(f'"-XX:{option}={place}/{name}"' for option, name in CRASH_FILES.items() if f"-XX:{option}=" not in given)


def _quoted(text: str) -> str:
    return re.sub(r'(["\\])', r"\\\1", text)


def _name_home() -> None:
    """PySpark would look for a Spark, and run it, in the folder above the current one before its own. Raises DlogError where
    there is none beside it."""
    import pyspark

    if os.environ.get("SPARK_HOME"):  # an empty one would be the current folder
        return
    own = Path(pyspark.__file__).resolve().parent
    places = (own / "spark-distribution", own, own.parent.parent)
    home = next((place for place in places if (place / "bin" / "spark-submit").is_file()), None)
    if home is None:
        raise missing(f"there is no Spark beside PySpark, in {own}", "set SPARK_HOME to the folder that has bin/spark-submit")
    os.environ["SPARK_HOME"] = str(home)


def _unlike_given(chosen: Mapping[str, str]) -> dict[str, str]:
    """Settings without those of dlog's that the JVM was given others for. Sockets in the file system are for one machine: on
    others dlog could not keep strangers from them."""
    from pyspark import SparkConf

    given = SparkConf()
    found = {key: value for key, value in chosen.items() if key not in SETTINGS or given.get(key, value) == value}
    master = chosen.get("spark.master") or given.get("spark.master") or ""
    if _is_this_machine(master) and not any(key in found or given.contains(key) for key in HERE):
        found |= dict.fromkeys(HERE, "127.0.0.1")
    place = None if given.contains(NOT_BY_TCP) or not master.startswith("local") else _sockets()
    return found if place is None else {**found, NOT_BY_TCP: "true", SOCKETS: given.get(SOCKETS, str(place))}


def rows_folder() -> Path:
    """A new folder for rows that tasks on this machine write and Spark reads, which nobody else can enter. All are in one of
    the process's temporary folders. Raises DlogError where there can be none."""
    global _rows_lease
    try:
        with _lock:
            _rows_lease = _there(_rows_lease)
        rows = _rows_lease.folder / "rows"
        rows.mkdir(exist_ok=True)
        return Path(tempfile.mkdtemp(dir=rows))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        raise DlogError(Diagnostic("file-error", f"{where}{error.strerror or error}")) from error


def _there(found: Lease | None) -> Lease:
    """A folder of this process, or a new one where there is none: that of the process from which this one was forked is not
    its own, and whoever cleans temporary files may have removed one. Raises OSError."""
    from dlog.caches import own_lease

    if found is not None and found.is_there:
        return found
    made = own_lease("spark")
    if found is not None:
        found.remove()
    return made


def _sockets() -> Path | None:
    """A folder for sockets that nobody else can enter, one for all applications: whoever can connect to one of them may have
    code run."""
    global _socket_lease
    with suppress(OSError):
        _socket_lease = _there(_socket_lease)
        folder = _socket_lease.folder
        return folder if len(os.fsencode(folder)) <= MAX_FOLDER_CHARACTERS else None
    return None


def _complaint(log: TextIO) -> str:
    """The first line in which the JVM names an error."""
    log.seek(0)
    telling = (line.strip() for line in log if re.search(r"Error|Exception|not supported|Unrecognized", line))
    return next(telling, "")


def _need_java() -> None:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if found is None:
        where = f"JAVA_HOME is {home}, where there is no bin/java" if home else "there is no `java` on the PATH"
        raise missing(f"Spark needs Java: {where}", "install a Java runtime 17 or 21, or set JAVA_HOME to one")


def is_stopped(spark: SparkSession) -> bool:
    """Whether the application is at its end: all calls fail then, most of them because of an attribute that is None."""
    return not _is_connect(spark) and cast("Any", spark.sparkContext)._jsc is None


def _is_connect(spark: SparkSession) -> bool:
    return ".connect." in type(spark).__module__


def need_running(spark: SparkSession) -> None:
    """Raises DlogError for a session that has been stopped."""
    if is_stopped(spark):
        raise missing("the SparkSession has been stopped", "make a new one, and what is to run on it anew")


def need_context(spark: SparkSession) -> None:
    """Raises DlogError for a session of Spark Connect, one that has been stopped, and what is none. On this machine alone its
    tasks run the Python that runs here from now on, unless one was chosen for them."""
    if not _is_connect(spark) and not hasattr(spark, "sparkContext"):
        raise DlogError(Diagnostic("bad-argument", f"`spark` must be a SparkSession, not {reprlib.repr(spark)}"))
    if _is_connect(spark):
        note = "make it in the driver's own process: SparkSession.builder.master(...), or by spark-submit"
        raise missing("the Spark engine needs a session with a Spark context, and one of Spark Connect has none", note)
    need_running(spark)
    if is_local(spark) and not _python_is_chosen(spark):
        spark.sparkContext.pythonExec = sys.executable  # read for each function; else the PATH's `python3`


def in_tasks(frame: DataFrame, function: Any, schema: str, barrier: bool = False) -> DataFrame:
    """`mapInArrow` in processes of Python that import nothing from their current folder, and end with those who started them.
    They are other ones than those of the user's functions, which may have modules there."""
    environment = cast("dict[str, str]", frame.sparkSession.sparkContext.environment)
    with _lock:  # it is read here, not when the tasks run
        before = environment.get(SAFE)
        environment[SAFE] = "1"
        try:
            return frame.mapInArrow(Attended(function), schema, barrier=barrier)
        finally:
            del environment[SAFE]
            if before is not None:
                environment[SAFE] = before


def _python_is_chosen(spark: SparkSession) -> bool:
    """Whether the user said which Python tasks run."""
    return "PYSPARK_PYTHON" in os.environ or spark.sparkContext.getConf().contains("spark.pyspark.python")


def rendezvous_of(spark: SparkSession) -> Rendezvous:
    """The rendezvous of this application's workers; made when it is first needed, and there until another application has
    one, or the process ends: Spark may compute a lost part of a result again at any time."""
    need_packages()
    from dlog.engine.spark.rendezvous import Rendezvous

    context = spark.sparkContext
    with _lock:
        if context.applicationId not in _rendezvous:
            while _rendezvous:  # a process has one application at a time
                _rendezvous.popitem()[1].close()
            _rendezvous[context.applicationId] = Rendezvous(*driver_host(spark))
        return _rendezvous[context.applicationId]


def driver_host(spark: SparkSession) -> tuple[str, str]:
    """The host by which workers find the driver, and where it listens: where all is on one machine, nobody else is heard."""
    from dlog.engine.spark.rendezvous import EVERYWHERE

    if is_local(spark):
        return "127.0.0.1", "tcp://127.0.0.1"
    return spark.sparkContext.getConf().get("spark.driver.host") or "127.0.0.1", EVERYWHERE


def slots(spark: SparkSession) -> int:
    """How many tasks can run at once now."""
    context: Any = spark.sparkContext
    try:
        scheduler = context._jsc.sc()
        return int(scheduler.maxNumConcurrentTasks(scheduler.resourceProfileManager().defaultResourceProfile()))
    except Exception:
        return int(context.defaultParallelism)


class Holder(Protocol):
    """A holder of slots for longer than a job."""

    spark: SparkSession
    size: int

    @property
    def is_gone(self) -> bool: ...


holders: WeakSet[Holder] = WeakSet()
"""All of this process."""


def free_slots(spark: SparkSession) -> int:
    """How many tasks of a job can run at once now, beside the workers of sessions."""
    here = spark.sparkContext.applicationId
    others = [h for h in list(holders) if not h.is_gone and h.spark.sparkContext.applicationId == here]
    return slots(spark) - sum(holder.size for holder in others)


def started_together(spark: SparkSession, stage: int, tasks: Sequence[int]) -> bool:
    """Whether tasks, by number, run in one attempt of a stage. Where Spark's scheduler does not say: whether their numbers
    follow each other, as those of one attempt do."""
    context: Any = spark.sparkContext
    try:
        scheduler = context._jsc.sc().taskScheduler()
        attempts = (scheduler.taskSetManagerForAttempt(stage, number) for number in range(ATTEMPTS_MAX))
        running = (a.get().runningTasksSet().mkString(",").split(",") for a in attempts if a.isDefined())
        return any({str(task) for task in tasks} <= set(ids) for ids in running)
    except Exception:
        return max(tasks) - min(tasks) < len(tasks)


def refuses_barriers(spark: SparkSession) -> bool:
    """Whether Spark runs no barrier stages: where it adds and takes away executors as it goes."""
    dynamic = spark.conf.get("spark.dynamicAllocation.enabled", "false") or "false"
    return dynamic.lower() == "true" and not _master(spark).startswith("local")


def is_local(spark: SparkSession) -> bool:
    """Whether all tasks run in this machine's one process: what they write here can be read here."""
    master = _master(spark)
    return _is_this_machine(master)


def _is_this_machine(master: str) -> bool:
    return master.startswith("local") and not master.startswith("local-cluster")


def _master(spark: SparkSession) -> str:
    return spark.sparkContext.master or ""  # None only before a context has one
