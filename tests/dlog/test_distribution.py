"""The name pip has for dlog: on the package index `dlog` is a stranger's, so nothing may install that."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from dlog.engine.spark.error_translation import DISTRIBUTION
from tests.conftest import ROOT

TEXTS = {".py", ".md", ".toml", ".dl", ".txt", ".yml", ".yaml", ".cfg", ""}
PLACES = ("dlog", "engine", "grammar", "programs", "tests", ".ci")
STRANGER = re.compile(
    r"""pip(?:x|\d)?["', ]+(?:install|wheel|download|run)\b[^\n;&|]*?(?<![\w./-])dlog(?![\w-])"""  # pip install dlog
    r"""|(?<![\w.-])dlog\[\w"""  # dlog[spark]
    r"""|(?<![\w./-])dlog(?:-\*|-\d[\w.*]*|[=~>]=[\w.]*\d)"""  # dlog-0.1.0.whl, dlog==0.1
)


def texts() -> Iterator[Path]:
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXTS)
    for folder in PLACES:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and path.suffix in TEXTS and path != Path(__file__).resolve() and "__pycache__" not in path.parts:
                yield path


@pytest.mark.slow
def test_no_text_installs_the_stranger() -> None:
    found = [f"{p}: {match[0]}" for p in texts() for match in STRANGER.finditer(p.read_text("utf-8", errors="replace"))]
    assert found == []


@pytest.mark.parametrize(
    ("text", "installs_it"),
    [
        ("pip install dlog", True),
        ("pip install 'dlog[spark]' brings it", True),
        ("dlog[spark] must be installed there", True),
        ('[sys.executable, "-m", "pip", "install", "dlog"]', True),
        ("mv dlog-*.whl dlog.zip", True),
        ("pip install 'dlog-engine[spark]'", False),
        ("pip install -e '.[dev]' && .venv/bin/dlog warmup", False),
        ("mv dlog_engine-*.whl dlog.zip", False),
    ],
)
def test_what_would_install_it_is_recognized(text: str, installs_it: bool) -> None:
    assert bool(STRANGER.search(text)) is installs_it


def test_the_distribution_has_a_name_of_its_own_and_the_command_is_dlog() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["name"] == DISTRIBUTION == "dlog-engine"
    assert project["scripts"] == {"dlog": "dlog.__main__:main"}
