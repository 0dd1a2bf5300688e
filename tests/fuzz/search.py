"""The search: subjects by their numbers, what became of them, and each finding once, made smaller where it is a text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fuzz import files, mutations, programs
from tests.fuzz.children import Child
from tests.fuzz.mutations import TOKEN
from tests.fuzz.programs import Outcome

SHRINKING = 30.0
"""Seconds to make the text of a finding smaller."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is tried: the subject of each number, and how it is tried."""

    mutant: Callable[[int, int], Any]
    attempt: Callable[[Any], Outcome]


KINDS = {
    "programs": Kind(mutations.mutant, programs.attempt),
    "files": Kind(files.mutant, files.attempt),
}
SHARE = 4
"""Of so many subjects one is of the second kind, where both are tried."""


def kind_of(number: int, only: str | None) -> str:
    return only or ("files" if number % SHARE == 0 else "programs")


def shrunk(text: str, outcome: Outcome, child: Any) -> str:
    """A smaller text that ends in the same way: without pieces of halving sizes, first of lines, then of tokens."""
    stop = time.monotonic() + SHRINKING
    for parts in (text.splitlines(keepends=True), None):
        parts = TOKEN.findall(text) if parts is None else parts
        size = max(1, len(parts) // 2)
        while size and time.monotonic() < stop:
            at = 0
            while at < len(parts) and time.monotonic() < stop:
                less = parts[:at] + parts[at + size :]
                if child.attempt("".join(less) + "\n").end == outcome.end:
                    parts = less
                else:
                    at += size
            size //= 2
        text = "".join(parts)
    return text


def search(
    seed: int, first: int, minutes: float, most: int | None, progress: bool = True, only: str | None = None
) -> dict[str, str]:
    """Tries subjects from number `first` on; the findings, by how they end."""
    children = {name: Child(kind.attempt) for name, kind in KINDS.items()}
    ends, findings = Counter[str](), dict[str, str]()
    stop, number = time.monotonic() + 60 * minutes, first
    try:
        while time.monotonic() < stop and (most is None or number < first + most):
            name = kind_of(number, only)
            subject = KINDS[name].mutant(seed, number)
            outcome = children[name].attempt(subject)
            ends[f"{name} {'found' if outcome.is_finding else outcome.end}"] += 1
            if outcome.is_finding and outcome.end not in findings:
                smaller = shrunk(subject, outcome, children[name]) if isinstance(subject, str) else subject
                findings[outcome.end] = f"number {number} of {name}: {outcome.end}\n{outcome.detail}\n{smaller}"
                show(f"{'=' * 80}\n{findings[outcome.end]}")
            elif outcome.end == "slow" and progress:
                show(f"-- slow: number {number} of {name}")
            number += 1
            if progress and number % 500 == 0:
                show(f"-- {number} subjects: {dict(sorted(ends.items()))}")
    finally:
        for child in children.values():
            child.stop()
    show(f"seed {seed}, numbers {first} to {number - 1}, {len(mutations.corpus())} texts: {dict(sorted(ends.items()))}")
    return findings


def show(text: str) -> None:
    print(text.encode("utf-8", "backslashreplace").decode(), flush=True)
