"""Bodies of many atoms, evaluated at once and over rounds."""

from __future__ import annotations

from typing import Any

import pytest

import dlog
from dlog.grammar.diagnostics import DlogError

EDGE = ".decl e(x: number, y: number)\n.input e\n"


def chain(atoms: int, wide: bool = False) -> str:
    """Paths of so many edges, with their ends or all they pass."""
    body = ", ".join(f"e(x{i}, x{i + 1})" for i in range(atoms))
    shown = [f"x{i}" for i in range(atoms + 1) if wide or i in (0, atoms)]
    columns = ", ".join(f"{x}: number" for x in shown)
    return f"{EDGE}.decl r({columns})\nr({', '.join(shown)}) :- {body}.\n"


@pytest.mark.parametrize(
    ("atoms", "wide"),
    [(42, False), (42, True), *(pytest.param(200, wide, marks=pytest.mark.slow) for wide in (False, True))],
)
def test_a_body_may_have_many_atoms(atoms: int, wide: bool) -> None:
    edges = [(i, i + 1) for i in range(atoms + 5)]
    found: Any = dlog.run(chain(atoms, wide), {"e": edges}, threads=1)
    passed = [tuple(range(start, start + atoms + 1)) for start in range(6)]
    assert sorted(found["r"]) == (passed if wide else [(row[0], row[-1]) for row in passed])


def test_all_variables_of_a_long_body_may_be_shown() -> None:
    found = dlog.run(chain(270, wide=True), {"e": [(i, i + 1) for i in range(271)]}, threads=1)
    assert sorted(found["r"]) == [tuple(range(start, start + 271)) for start in range(2)]


def test_a_chain_through_one_row_carries_two_variables() -> None:
    assert list(dlog.run(chain(1000), {"e": [(1, 1)]}, threads=1)["r"]) == [(1, 1)]


def test_it_is_maintained_over_rounds() -> None:
    edges = [(i, i + 1) for i in range(50)]
    with dlog.session(chain(42), {"e": edges}, threads=1) as s:
        assert sorted(s["r"]) == [(i, i + 42) for i in range(9)]
        s.remove("e", (3, 4))
        s.commit()
        assert sorted(s["r"]) == [(i, i + 42) for i in range(4, 9)]


def test_the_same_variable_in_many_atoms() -> None:
    body = ", ".join(f"e(x, y{i})" for i in range(60))
    program = f"{EDGE}.decl r(x: number)\nr(x) :- {body}.\n"
    assert list(dlog.run(program, {"e": [(1, 2)]}, threads=1)["r"]) == [(1,)]


def test_one_that_hands_on_too_much_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlog.engine.runtime.lowering.lower.MAX_REGISTERS", 100)
    with pytest.raises(DlogError, match="atoms that hand on too many variables"):
        dlog.run(chain(42, wide=True), {"e": [(1, 2)]}, threads=1)
