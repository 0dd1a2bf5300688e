"""What uncollected functions make is old at once, and the collector finds it all the same."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from dlog.engine import garbage
from dlog.engine.garbage import MANY, uncollected


class Node:
    """One of two that refer to each other."""

    def __init__(self) -> None:
        self.other = self


@uncollected
def make(count: int) -> list[Node]:
    assert not gc.isenabled()
    return [Node() for _ in range(count)]


@pytest.fixture(autouse=True)
def ordinary() -> Iterator[None]:
    gc.collect()
    yield
    gc.unfreeze()
    gc.enable()
    gc.collect()


def young_collections() -> int:
    return int(gc.get_stats()[0]["collections"])


def test_what_was_made_is_not_gone_through_when_the_function_ends() -> None:
    before = young_collections()
    made = make(3 * MANY)
    assert gc.isenabled() and young_collections() == before and gc.get_count()[0] < MANY
    assert len(made) == 3 * MANY


def test_garbage_is_found() -> None:
    make(3 * MANY)
    assert gc.collect() >= 3 * MANY


def test_few_objects_stay_young() -> None:
    before = gc.get_count()[0]
    made = make(100)
    assert gc.get_count()[0] >= before + 100 or young_collections()
    assert len(made) == 100


def test_so_many_are_kept_from_the_collector_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "MOST", 4 * MANY)
    kept, before = [make(3 * MANY), make(3 * MANY)], young_collections()
    assert young_collections() == before
    kept += [make(3 * MANY), [Node()]]
    assert young_collections() > before
    gc.collect()
    before = young_collections()
    kept.append(make(3 * MANY))
    assert young_collections() == before


def test_objects_that_no_collector_is_to_see_stay_so() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    make(3 * MANY)
    assert gc.get_freeze_count() >= frozen - MANY
    assert gc.get_freeze_count() > 0


def test_who_has_no_collector_gets_none() -> None:
    gc.disable()
    make(3 * MANY)
    assert not gc.isenabled()
