"""Golden diagnostics: errors/<name>.dl must fail with exactly the text of errors/<name>.err. After a wanted change
`python -m tests.engine.compile.test_errors` writes them anew: read the difference before committing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import DlogError, render_all
from dlog.grammar.source import Source

PROGRAMS = sorted((Path(__file__).parent / "errors").glob("*.dl"))


def diagnose(path: Path) -> str:
    with pytest.raises(DlogError) as raised:
        compile_source(Source(path.read_text(), path.name))
    return render_all(raised.value.diagnostics).rstrip() + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_mistaken_program_gets_exactly_these_diagnostics(path: Path) -> None:
    assert diagnose(path) == path.with_suffix(".err").read_text()


if __name__ == "__main__":
    for program in PROGRAMS:
        program.with_suffix(".err").write_text(diagnose(program))
