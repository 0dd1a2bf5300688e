"""What docs/reference/constructs.md says is so: its programs print what it shows, and it has every directive and qualifier."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dlog.grammar.words import DIRECTIVES, QUALIFIERS
from tests.dlog.command import ROOT, dlog

PAGE = (ROOT / "docs" / "reference" / "constructs.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```prolog\n(.*?)```\n\n```printed\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("program", "printed"), EXAMPLES)
def test_examples_print_what_is_shown(tmp_path: Path, program: str, printed: str) -> None:
    (tmp_path / "p.dl").write_text(program, encoding="utf-8")
    finished = dlog("run", "p.dl", "-D", "-", cwd=tmp_path)
    assert (finished.code, finished.out, finished.err) == (0, printed, "")


def test_every_directive_and_qualifier_is_there() -> None:
    named = set(re.findall(r"(?<![\w#])\.?[a-z_]+", " ".join(re.findall(r"`([^`\n]+)`", PAGE))))
    assert named >= {*DIRECTIVES, *QUALIFIERS}
    assert len(EXAMPLES) == PAGE.count("```prolog") == PAGE.count("```printed")
