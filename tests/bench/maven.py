"""JARs from Maven: by the `mvn` of this machine and its own settings, so that nobody here says which host has them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.7.0:copy-dependencies"
PATIENCE = 300
"""Seconds that Maven has."""
_POM = """<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>dlog</groupId>
  <artifactId>wanted</artifactId>
  <version>1</version>
  <dependencies><dependency>
    <groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
  </dependency></dependencies>
</project>
"""


class NoJar(Exception):
    """Why there is none: a line that a skipped test can print."""


def jars(coordinate: str, target: Path, without: Sequence[str] = ()) -> list[Path]:
    """The JAR of `group:artifact:version` and those it needs at run time, but for the groups of `without`; kept in `target`
    for the next time. Raises NoJar."""
    folder = target / coordinate.replace(":", "_")
    if not folder.is_dir():
        _copy(coordinate, folder, without)
    found = sorted(folder.glob("*.jar"))
    artifact = coordinate.split(":")[1]
    if not any(path.name.startswith(artifact) for path in found):
        raise NoJar(f"Maven has brought {coordinate} without its JAR")
    return found


def _copy(coordinate: str, folder: Path, without: Sequence[str]) -> None:
    """All of them or none: the folder appears when Maven has succeeded."""
    maven = shutil.which("mvn")
    if maven is None:
        raise NoJar("there is no `mvn` to ask for it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder.parent) as scratch:
        pom, output = Path(scratch, "pom.xml"), Path(scratch, "jars")
        pom.write_text(_POM.format(*coordinate.split(":")))
        wanted = [f"-DoutputDirectory={output}", "-DincludeScope=runtime", f"-DexcludeGroupIds={','.join(without)}"]
        _run([maven, "-q", "-B", "-f", str(pom), COPY, *wanted], coordinate)
        output.mkdir(exist_ok=True)
        if not folder.is_dir():  # or another process was faster
            output.rename(folder)


def _run(command: Sequence[str], coordinate: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NoJar(f"Maven takes more than {PATIENCE} s to find {coordinate}") from None
    if done.returncode:
        artifact = coordinate.split(":")[1]
        said = [line for line in (done.stdout + done.stderr).splitlines() if "[ERROR]" in line and artifact in line]
        lacking = any("ould not find artifact" in line or "was not found" in line for line in said)
        raise NoJar(f"Maven does not bring {coordinate}: {'Maven Central has none' if lacking else 'it fails'}")
