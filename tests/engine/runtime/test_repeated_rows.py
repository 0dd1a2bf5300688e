"""Blocks of rows most of which repeat a few others: what is derived of them is what Python's sets have, whatever repeats."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest

from dlog import Session, session

PROGRAM = """
.decl item(n: number, f: symbol, s: number)
.decl group(f: symbol, s: number)
.decl total(f: symbol, s: number, items: number)
.decl cross(s: number, f: symbol)
.input item
group(f, s) :- item(_, f, s).
total(f, s, n) :- group(f, s), n = count : { item(_, f, s) }.
cross(t + 1, f) :- item(_, f, s), t = s * 2.
.output group, total, cross
"""
Item = tuple[int, str, int]


def drawn(random: Random, numbers: range, others: float) -> list[Item]:
    """Rows of three groups but for a share of others, of which there are more than a block remembers."""
    return [(n, *(_other(random) if random.random() < others else ("abc"[n % 3], 1 << (n % 3) * 30))) for n in numbers]


def _other(random: Random) -> tuple[str, int]:
    return f"x{random.randrange(30)}", random.randrange(20)


def check(found: Session, items: set[Item]) -> None:
    groups = Counter((f, s) for _, f, s in items)
    assert set(found["group"]) == set(groups)
    assert set(found["total"]) == {(f, s, n) for (f, s), n in groups.items()}
    assert set(found["cross"]) == {(2 * s + 1, f) for f, s in groups}


@pytest.mark.parametrize("others", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("begun", [0, 1000])
def test_rows_that_repeat_are_derived_as_often_as_they_come_and_go(others: float, begun: int) -> None:
    random = Random(begun)
    items = set(drawn(random, range(begun), others))
    with session(PROGRAM, {"item": sorted(items)}, threads=1) as maintained:
        for first in range(begun, begun + 3000, 600):
            come = drawn(random, range(first, first + 600), others)
            gone = random.sample(sorted(items), min(len(items), 550))
            maintained.insert("item", come)
            maintained.commit()
            items |= set(come)
            check(maintained, items)
            maintained.remove("item", gone)
            maintained.commit()
            items -= set(gone)
            check(maintained, items)
        maintained.remove("item", sorted(items))
        maintained.commit()
        check(maintained, set())


def test_rows_that_repeat_in_several_rounds_of_a_batch_are_those_of_each() -> None:
    items = drawn(Random(3), range(900), 0.1)
    with session(PROGRAM, {"item": []}, threads=1) as maintained:
        for part in np.array_split(np.arange(900), 3):
            maintained.insert("item", [items[n] for n in part])
        maintained.commit()
        check(maintained, set(items))
