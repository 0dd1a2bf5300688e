"""Golden diagnostics: errors/<name>.dl must fail with exactly the text of errors/<name>.err, and cycles/<name>.dl compile with
the warnings of cycles/<name>.err about recursion. After a wanted change `python -m tests.engine.compile.test_errors` writes
them anew: read the difference before committing it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dlog.engine.compiler import compile_source
from dlog.grammar.diagnostics import Diagnostic, DlogError, render_all
from dlog.grammar.source import Source

PROGRAMS = sorted((Path(__file__).parent / "errors").glob("*.dl"))
CYCLES = sorted((Path(__file__).parent / "cycles").glob("*.dl"))


def diagnose(path: Path) -> str:
    with pytest.raises(DlogError) as raised:
        compile_source(Source(path.read_text(), path.name))
    return render_all(raised.value.diagnostics).rstrip() + "\n"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)
def test_a_mistaken_program_gets_exactly_these_diagnostics(path: Path) -> None:
    assert diagnose(path) == path.with_suffix(".err").read_text()


def warned(path: Path) -> str:
    found: list[Diagnostic] = []
    compile_source(Source(path.read_text(), path.name), found.extend)
    return render_all([w for w in found if w.code == "unstratified"]).rstrip() + "\n"


@pytest.mark.parametrize("path", CYCLES, ids=lambda p: p.stem)
def test_a_program_with_cycles_through_negation_or_aggregates_gets_exactly_these_warnings(path: Path) -> None:
    assert warned(path) == path.with_suffix(".err").read_text()


def messages(text: str) -> list[str]:
    with pytest.raises(DlogError) as raised:
        compile_source(Source(text))
    return [d.message for d in raised.value.diagnostics]


def test_floods_of_a_mistake_are_cut_and_counted() -> None:
    facts = "".join(f"e({n}).\n" for n in range(1000))
    other = ".decl p(x: number)\np(1, 2).\n"
    found = messages(facts + other)
    assert found == [
        *["unknown relation `e`"] * 20,
        "`p` has 1 attribute, but 2 arguments here",
        "980 more of the kind `unknown-relation` are not shown",
    ]
    assert messages("".join(f"e({n}).\n" for n in range(20))) == ["unknown relation `e`"] * 20
    assert messages("".join(f"e{n}(1).\n" for n in range(21)))[-1] == "1 more of the kind `unknown-relation` is not shown"


def test_floods_of_a_warning_are_cut_and_counted() -> None:
    rules = "".join(f"p(x) :- e(x, y{n}).\n" for n in range(25))
    found: list[Diagnostic] = []
    compile_source(Source(f".decl e(x: number, y: number)\n.input e\n.decl p(x: number)\n.output p\n{rules}"), found.extend)
    assert [w.message for w in found[19:]] == [
        "variable `y19` occurs only once",
        "5 more of the kind `single-use-variable` are not shown",
    ]
    assert {w.severity for w in found} == {"warning"}


if __name__ == "__main__":
    for program in PROGRAMS:
        program.with_suffix(".err").write_text(diagnose(program))
    for program in CYCLES:
        program.with_suffix(".err").write_text(warned(program))
