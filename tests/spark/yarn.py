"""YARN on this machine: a resource manager and one node in processes of their own, whose containers are processes, too.

Both come from the JAR that Hadoop makes for tests, in the version of PySpark's own JARs, by way of Maven.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from tests.bench.inputs import cache_folder
from tests.bench.maven import jars
from tests.conftest import ROOT
from tests.spark.submitting import of_spark, started
from tests.zipped import FOLDERS

HOST = "127.0.0.1"
NEEDED = "org.bouncycastle:bcpkix-jdk18on:1.82"
"""What the resource manager signs with; the JAR for tests lacks it."""
NO_LOGGING = ("org.slf4j", "com.google.code.findbugs")
"""Groups of which PySpark has what both need."""
LOGGING = """rootLogger.level = info
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""
DAEMONS = {
    "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager": "Transitioned to active state",
    "org.apache.hadoop.yarn.server.nodemanager.NodeManager": "Registered with ResourceManager",
}
"""Programs in the order in which they start, and what their logs say when they are there."""


def class_path() -> str:
    """The JARs of both. Raises NoJar."""
    version = next(of_spark("jars").glob("hadoop-client-api-*.jar")).stem.rpartition("-")[2]
    wanted = f"org.apache.hadoop:hadoop-client-minicluster:{version}"
    found = [path for name in (wanted, NEEDED) for path in jars(name, cache_folder() / "jars", NO_LOGGING)]
    for pattern in ("slf4j-api-*", "log4j-*"):
        found += sorted(of_spark("jars").glob(f"{pattern}.jar"))
    return ":".join(map(str, found))


@dataclass(frozen=True)
class Yarn:
    """A running one. `settings` are for spark-submit; Spark's JARs are not copied to where they are already."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        """Of who submits: it says nothing that would tell containers where dlog is."""
        return {**_bare(), "HADOOP_CONF_DIR": str(self.folder / "conf"), "YARN_CONF_DIR": str(self.folder / "conf")}

    @property
    def settings(self) -> dict[str, str]:
        # Two of dlog's workers and Spark's own processes need nearly all that a container has by default beside its JVM's heap.
        return {
            "spark.yarn.stagingDir": f"file://{self.folder}",
            "spark.yarn.jars": f"local:{of_spark('jars')}/*",
            "spark.yarn.maxAppAttempts": "1",
            "spark.driver.memory": "512m",
            "spark.executor.memory": "512m",
            "spark.executor.memoryOverhead": "1g",
            "spark.executor.instances": "2",
            "spark.executor.cores": "2",
        }


def _bare() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "DLOG_CACHE", "VIRTUAL_ENV")}


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """YARN, until the context is left. Raises NoJar."""
    path = class_path()
    _configure(folder)
    running: list[subprocess.Popen[bytes]] = []
    try:
        for name, ready in DAEMONS.items():
            command = ["java", "-Xmx512m", "-cp", f"{folder / 'conf'}:{folder / 'logging'}:{path}", name]
            process, _ = started(command, folder / f"{name.rpartition('.')[2]}.log", ready, _bare())
            running.append(process)
        yield Yarn(folder)
    finally:
        for process in reversed(running):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # to end by itself takes a node a quarter of a minute
            process.wait()


def _configure(folder: Path) -> None:
    """A node with room for a few small containers, which it kills over their memory."""
    for name in ("conf", "logging", "local", "logs", "tmp"):
        (folder / name).mkdir()
    addresses = {
        f"yarn.resourcemanager.{name}address": f"{HOST}:{_free_port()}"
        for name in ("", "scheduler.", "resource-tracker.", "admin.", "webapp.")
    }
    node = {
        "yarn.resourcemanager.hostname": HOST,
        "yarn.nodemanager.hostname": HOST,
        "yarn.nodemanager.address": f"{HOST}:0",
        "yarn.nodemanager.localizer.address": f"{HOST}:{_free_port()}",
        "yarn.nodemanager.webapp.address": f"{HOST}:0",
        "yarn.nodemanager.local-dirs": str(folder / "local"),
        "yarn.nodemanager.log-dirs": str(folder / "logs"),
        "yarn.nodemanager.disk-health-checker.enable": "false",
        "yarn.nodemanager.resource.memory-mb": "8192",
        "yarn.nodemanager.resource.cpu-vcores": "8",
        "yarn.nodemanager.resource.memory.enforced": "false",
        "yarn.nodemanager.container-monitor.interval-ms": "500",
        "yarn.nodemanager.vmem-check-enabled": "false",
        "yarn.scheduler.minimum-allocation-mb": "256",
        "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
    }
    queues = {"root.queues": "default", "root.default.capacity": "100", "maximum-am-resource-percent": "1.0"}
    _write(folder / "conf" / "yarn-site.xml", {**addresses, **node})
    _write(folder / "conf" / "core-site.xml", {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(folder / "tmp")})
    _write(folder / "conf" / "capacity-scheduler.xml", {f"yarn.scheduler.capacity.{k}": v for k, v in queues.items()})
    (folder / "logging" / "log4j2.properties").write_text(LOGGING)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _write(path: Path, settings: Mapping[str, str]) -> None:
    lines = (f"<property><name>{name}</name><value>{escape(value)}</value></property>" for name, value in settings.items())
    path.write_text("<configuration>\n" + "\n".join(lines) + "\n</configuration>\n")


def environment_with_dlog(folder: Path) -> Path:
    """A virtual environment as an archive. What dlog needs it takes from this process', which all nodes here have."""
    packages = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    (folder / "deps.pth").write_text(sysconfig.get_path("purelib"))
    (folder / "pyvenv.cfg").write_text(f"home = {sys.base_prefix}/bin\n")
    (folder / "python").symlink_to(f"{sys.base_prefix}/bin/python{sys.version_info[0]}.{sys.version_info[1]}")
    with tarfile.open(folder / "env.tar.gz", "w:gz") as archive:
        archive.add(folder / "python", "bin/python")
        archive.add(folder / "pyvenv.cfg", "pyvenv.cfg")
        archive.add(folder / "deps.pth", f"{packages}/deps.pth")
        for name, target in FOLDERS.items():
            archive.add(ROOT / name, f"{packages}/{target}", filter=_no_links)
    return folder / "env.tar.gz"


def _no_links(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    return None if member.issym() or "__pycache__" in member.name else member
