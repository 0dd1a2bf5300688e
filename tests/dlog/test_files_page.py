"""What docs/files.md says is so: its programs print what it shows, and every parameter has a line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dlog.engine.formats.parameters import PARAMETERS
from tests.dlog.command import ROOT, dlog

PAGE = (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```csv (\S+)\n(.*?)```\n+```prolog\n(.*?)```\n+```printed\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("name", "content", "program", "printed"), EXAMPLES, ids=[example[0] for example in EXAMPLES])
def test_examples_print_what_is_shown(tmp_path: Path, name: str, content: str, program: str, printed: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "p.dl").write_text(program, encoding="utf-8")
    finished = dlog("run", "p.dl", "-D", "-", cwd=tmp_path)
    assert (finished.code, finished.out) == (0, printed)
    if name == "ages.facts":
        assert (tmp_path / "wrong.txt").read_text() == "Bob\tunknown\n"


def test_every_parameter_has_a_line() -> None:
    assert set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\|([^|]*)\|", PAGE, re.MULTILINE)))) == PARAMETERS
    assert len(EXAMPLES) == PAGE.count("```printed")
