"""A short search with mutated programs and files (`python -m tests.fuzz` goes on for longer)."""

from __future__ import annotations

import pytest

from tests.fuzz import files, search
from tests.fuzz.children import Child
from tests.fuzz.mutations import corpus, mutant, sound
from tests.fuzz.programs import Outcome, attempt
from tests.fuzz.search import shrunk


@pytest.mark.slow
def test_mutants_are_known_by_their_numbers() -> None:
    assert mutant(3, 7) == mutant(3, 7)
    assert len({mutant(3, number) for number in range(50)}) > 45
    assert set(sound()) < set(corpus())


def test_files_are_known_by_their_numbers_and_most_are_as_they_should_be(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(str(tmp_path))
    assert files.mutant(3, 7) == files.mutant(3, 7)
    monkeypatch.setattr(files, "MUTATIONS", (lambda content, random: content,))
    ends = [files.attempt(files.mutant(1, number)).end for number in range(12)]
    assert set(ends) <= {"ok", "refused"}
    assert ends.count("ok") > 6


@pytest.mark.slow
def test_what_programs_end_in_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.children.SECONDS", 3.0)
    fine = ".decl a(x: number)\n.decl b(x: number)\nb(x) :- a(x).\n"
    assert attempt(f"{fine}a(1).\n").end == "ok"
    assert attempt(f"{fine}a(b).\n").end == "refused"
    child = Child(attempt)
    try:
        assert child.attempt(f"{fine}a(1).\n").end == "ok"
        assert child.attempt(f"{fine}a(1).\nb(x + 1) :- b(x).\n").end == "slow"
        monkeypatch.setattr("tests.fuzz.children.STARTING", 0.001)
        assert child.attempt(fine).end == "slow"  # of a new process
    finally:
        child.stop()


def test_findings_are_made_smaller() -> None:
    class Bad:
        def attempt(self, text: str) -> object:
            return attempt("") if "magic(" not in text else finding

    finding = Outcome("InternalError in engine/magic.py:1")
    assert finding.is_finding
    text = ".decl a(x: number)\na(1). magic(2, 3).\n.output a\n"
    assert shrunk(text, finding, Bad()) == "magic("


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", [1, 2])
def test_what_is_mutated_ends_well_or_with_a_mistake(seed: int) -> None:
    assert search.search(seed, 0, minutes=5.0, most=400, progress=False) == {}
