"""What the pages of docs/ say is so: their Python runs and prints what the comments say, their links lead somewhere."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
TOLD_ELSEWHERE = {"dataflow.md", "functors.md"}
"""Pages whose blocks go on with each other, or need files: tests/dlog/dataflow and tests/dlog/test_functors.py run them."""
BLOCKS = [
    pytest.param(block, id=f"{page.relative_to(ROOT / 'docs')}-{number}")
    for page in PAGES
    if page.name not in TOLD_ELSEWHERE or page.parent != ROOT / "docs"
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize("block", BLOCKS)
def test_the_python_prints_what_its_comments_say(block: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for package in re.findall(r"^import (pandas|networkx|duckdb|polars)\b", block, re.MULTILINE):
        pytest.importorskip(package)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(block, "docs", "exec"), {})
    expected = re.findall(r"^ *print\(.*\) +# (.*)", block, re.MULTILINE)
    assert expected
    assert printed.getvalue().splitlines() == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
