"""JARs by way of a `mvn` that is played: one that copies, one that has not got it, and none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.maven import NoJar, jars

HAS_IT = """#!/bin/sh
echo "$@" >> "$(dirname "$0")/asked"
for arg in "$@"; do case "$arg" in -DoutputDirectory=*) folder=${arg#*=} ;; esac; done
mkdir -p "$folder" && touch "$folder/frames-1.jar" "$folder/needed-2.jar"
"""
HAS_NOT = """#!/bin/sh
echo "[ERROR] Could not find artifact g:frames:jar:1 in some place"
exit 1
"""
BROKEN = """#!/bin/sh
echo "[ERROR] no such plugin"
exit 1
"""


def played(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder.mkdir()
    (folder / "mvn").write_text(script)
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/bin:/usr/bin")
    return folder / "asked"


def test_what_maven_brings_is_kept_for_the_next_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = played(tmp_path / "bin", HAS_IT, monkeypatch)
    found = [jars("g:frames:1", tmp_path / "jars", ("org.apache.spark",)) for _ in range(2)]
    assert [[path.name for path in paths] for paths in found] == [["frames-1.jar", "needed-2.jar"]] * 2
    assert all(path.is_file() for path in found[0])
    (once,) = asked.read_text().splitlines()
    assert "-DexcludeGroupIds=org.apache.spark" in once


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (HAS_NOT, "Maven does not bring g:frames:1: Maven Central has none"),
        (BROKEN, "Maven does not bring g:frames:1: it fails"),
    ],
)
def test_a_jar_that_maven_does_not_bring_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    played(tmp_path / "bin", script, monkeypatch)
    with pytest.raises(NoJar) as caught:
        jars("g:frames:1", tmp_path / "jars")
    assert str(caught.value) == reason
    assert list((tmp_path / "jars").iterdir()) == []


def test_other_jars_do_not_stand_in_for_the_one_that_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    played(tmp_path / "bin", HAS_IT, monkeypatch)
    with pytest.raises(NoJar, match="without its JAR"):
        jars("g:graph:1", tmp_path / "jars")


def test_a_machine_without_maven_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJar, match="there is no `mvn`"):
        jars("g:frames:1", tmp_path / "jars")
