"""Relations and growing arrangements that are emptied and filled again."""

from __future__ import annotations

import numpy as np
import pytest

from dlog.engine.kernels.codes import SetKind
from dlog.engine.runtime.storage.arrangement import StoredArrangement
from dlog.engine.runtime.storage.extent import Extent
from tests.engine.kernels.test_arrange import groups_of, matches
from tests.engine.kernels.workbench import Desk, Row, relation_of

WIDE = Extent(-(2**40), 2**40)
SPANS = {
    SetKind.BITS: (Extent(-5, 2**11), Extent(0, 2**13)),
    SetKind.PAGES: (Extent(-5, 2**15), Extent(0, 2**13)),
    SetKind.HASH: (WIDE, WIDE),
}


def some(rows: int, seed: int) -> list[Row]:
    values = np.random.default_rng(seed).integers(0, 300, (rows, 2))
    return sorted({(int(a), int(b)) for a, b in values})


def columns(rows: list[Row]) -> list[np.ndarray]:
    return [np.array([row[c] for row in rows], np.int64) for c in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", SPANS)
@pytest.mark.parametrize("sizes", [(3, 5, 2), (4000, 3, 4000, 1, 1), (0, 700, 0, 700)])
def test_a_relation_that_is_filled_anew_has_these_rows_and_no_others(kind: SetKind, sizes: tuple[int, ...]) -> None:
    relation = relation_of(SPANS[kind])
    relation.ensure_set()
    assert relation.set_kind == kind
    before: list[Row] = []
    for seed, size in enumerate(sizes):
        rows = some(size, seed)
        relation.refill(columns(rows), len(rows))
        there = Desk(relation.memory).found(relation, [*rows, *before])
        assert [place >= 0 for place in there] == [row in set(rows) for row in [*rows, *before]]
        before = rows


@pytest.mark.parametrize("extent", [Extent(0, 300), WIDE])
@pytest.mark.parametrize("sizes", [(3, 5, 2), (4000, 3, 4000, 1, 1), (0, 700, 0, 700)])
def test_an_arrangement_that_is_emptied_takes_up_what_comes_then(extent: Extent, sizes: tuple[int, ...]) -> None:
    relation = relation_of((extent, WIDE))
    index = StoredArrangement(relation, (0,), (), growing=True)
    index.start(-1)
    for seed, size in enumerate(sizes):
        rows = some(size, seed)
        index.empty()
        relation.refill(columns(rows), len(rows))
        index.take_up()
        groups = groups_of(index, [(key,) for key in range(300)])
        assert [sorted(matches(index, group, [0, 1])) for group in groups] == [
            [row for row in rows if row[0] == key] for key in range(300)
        ]
