"""One vertex with a tenth of the edges: several workers give what one gives."""

from __future__ import annotations

import random

import pytest

from dlog.api import run_text
from tests.shards import run_sharded

HUB = 0
PROGRAM = """.decl e(x: number, y: number)
.decl two(x: number, z: number)
two(x, z) :- e(x, y), e(y, z).
.decl triangle(x: number, y: number, z: number)
triangle(x, y, z) :- e(x, y), e(y, z), e(z, x).
.decl degree(x: number, n: number)
degree(x, n) :- e(x, _), n = count : { e(x, _) }.
.decl far(x: number, n: number)
far(0, 0).
far(y, n + 1) :- far(x, n), e(x, y), n < 4.
"""


def skewed(edges: int, nodes: int) -> list[tuple[int, int]]:
    """A tenth of the edges leave the hub, a tenth arrive there."""
    chance = random.Random(1)
    tenth = edges // 10
    leaving = [(HUB, y) for y in chance.sample(range(1, nodes), tenth)]
    arriving = [(x, HUB) for x in chance.sample(range(1, nodes), tenth)]
    others = [(chance.randrange(1, nodes), chance.randrange(1, nodes)) for _ in range(edges - 2 * tenth)]
    return sorted({*leaving, *arriving, *others})


@pytest.mark.parametrize("everywhere", [10**6, 0], ids=["copying", "moving"])
def test_a_hub_changes_no_answer(everywhere: int) -> None:
    facts = {"e": skewed(5_000, 2_000)}
    found, expected = run_sharded(PROGRAM, facts, 3, everywhere), run_text(PROGRAM, facts)
    assert {name: len(rows) for name, rows in found.items()} == {name: len(rows) for name, rows in expected.items()}
    assert found == expected
