"""The lowest versions that dlog says it works with are those that are tested."""

from __future__ import annotations

import re
import tomllib

from tests.conftest import ROOT


def test_the_lowest_versions_that_are_installed_for_tests_are_the_declared_ones() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    lowest = dict(re.match(r"([\w-]+)>=([\d.]+)", d).groups() for d in declared)  # type: ignore[union-attr]
    lines = (ROOT / "tests" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    tested = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert tested.keys() == lowest.keys()
    assert [name for name, version in tested.items() if not f"{version}.".startswith(f"{lowest[name]}.")] == []
