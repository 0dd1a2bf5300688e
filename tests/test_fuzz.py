"""A short search with mutated programs (`python -m tests.fuzz` goes on for longer)."""

from __future__ import annotations

import pytest

from tests.fuzz import Child, attempt, search, shrunk
from tests.fuzz_mutations import corpus, mutant, sound


@pytest.mark.slow
def test_mutants_are_known_by_their_numbers() -> None:
    assert mutant(3, 7) == mutant(3, 7)
    assert len({mutant(3, number) for number in range(50)}) > 45
    assert set(sound()) < set(corpus())


@pytest.mark.slow
def test_what_programs_end_in_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.SECONDS", 3.0)
    fine = ".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\n"
    assert attempt(f"{fine}a(1).\n").end == "ok"
    assert attempt(f"{fine}a(b).\n").end == "refused"
    child = Child()
    try:
        assert child.attempt(f"{fine}a(1).\n").end == "ok"
        assert child.attempt(f"{fine}a(1).\nb(x + 1) :- b(x).\n").end == "slow"
        monkeypatch.setattr("tests.fuzz.STARTING", 0.001)
        assert child.attempt(fine).end == "slow"  # of a new process
    finally:
        child.stop()


def test_findings_are_made_smaller() -> None:
    class Bad:
        def attempt(self, text: str) -> object:
            return attempt("") if "magic(" not in text else finding

    from tests.fuzz import Outcome

    finding = Outcome("InternalError in engine/magic.py:1")
    assert finding.is_finding
    text = ".decl a(x: number)\na(1). magic(2, 3).\n.output a\n"
    assert shrunk(text, finding, Bad()) == "magic("  # type: ignore[arg-type]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_programs_end_well_or_with_a_mistake(seed: int) -> None:
    assert search(seed, 0, minutes=5.0, most=400, progress=False) == {}
