"""Indexes by hash that become dense ones bit by bit, while rows come and go."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.jit import JIT
from dlog.engine.kernels.incremental.store.densifying import GROUPS_COPIED_PER_ROW
from tests.engine.kernels.store import Store
from tests.examples import examples

pytestmark = pytest.mark.skipif(not JIT, reason="such indexes are large")
KEY = (0,)
FAR = 1 << 40
"""Makes the first index one by hash."""


def by_hash(keys: range, random: Random) -> tuple[Store, list[int]]:
    """A store whose index is by hash, though few of its keys are far away, and keys that come in no order."""
    store = Store(2, keys=[KEY])
    store.batch([[((FAR * n, n), 1) for n in (-1, 0, 1)]])
    listed = list(keys)
    random.shuffle(listed)
    store.batch([[((key, 0), 1) for key in listed[:200]]])
    store.batch([[((FAR * n, n), -1) for n in (-1, 0, 1)]])
    assert not store.is_dense(KEY)
    return store, listed[200:]


def test_a_row_copies_few_groups() -> None:
    store, keys = by_hash(range(10_000), Random(1))
    struct = store.collection.indexes[KEY].struct
    store.memory.bytes[L.account.small] = 2 * len(keys)
    steps, copied = 0, 0
    for first in range(0, len(keys), 8):
        store.batch([[((key, 1), 1) for key in keys[first : first + 8]]])
        now = struct[L.index.next_dense_copied] if struct[L.index.next_dense_slabs] else 0
        if now:
            assert now - copied <= 8 * GROUPS_COPIED_PER_ROW
            steps += 1
        copied = now
    assert store.is_dense(KEY) and steps > 3
    store.check()
    store.close()


def test_groups_wait_for_pages() -> None:
    store, keys = by_hash(range(10_000), Random(1))
    struct, account = store.collection.indexes[KEY].struct, store.memory.bytes
    account[L.account.small], account[L.account.waiting] = 2 * len(keys), 1
    store.batch([[((key, 1), 1) for key in keys[:4500]]])
    assert struct[L.index.next_dense_slabs] and not struct[L.index.next_dense_copied] and not store.is_dense(KEY)
    account[L.account.waiting] = 0
    store.batch([[((key, 1), 1) for key in keys[4500:5000]]])
    assert store.is_dense(KEY)
    store.check()
    store.close()


def test_large_commits_do_not_wait() -> None:
    store, keys = by_hash(range(10_000), Random(1))
    store.batch([[((key, 1), 1) for key in keys[:4500]]])
    assert store.is_dense(KEY)
    store.check()
    store.close()


@pytest.mark.slow
@examples(12)
@given(seed=st.integers(0, 2**32), low=st.sampled_from([0, 500, -3000, 10**6]))
def test_groups_that_are_copied_follow_what_comes_and_goes(seed: int, low: int) -> None:
    random = Random(seed)
    store, keys = by_hash(range(low, low + 6000), random)
    struct, account = store.collection.indexes[KEY].struct, store.memory.bytes
    copying = 0
    rows = sorted(store.rows)
    for first in range(0, len(keys), 40):
        account[L.account.small] = 1000 * (random.random() < 0.97)
        coming = [(key, random.randrange(3)) for key in keys[first : first + 40]]
        coming += [(random.choice(rows)[0], random.randrange(9)) for _ in range(20)]
        if random.random() < 0.05:
            coming.append((random.choice([low - 3000, low + 9000, FAR, -FAR]), 0))
        going = random.sample(rows, min(len(rows), random.choice([0, 1, 30])))
        store.batch([[(row, 1) for row in coming], [(row, -1) for row in going]])
        rows = sorted(store.rows)
        if struct[L.index.next_dense_slabs]:
            copying += 1
            if copying % 3 == 0:
                store.check_index(KEY)
    store.check()
    store.batch([[(row, -1) for row in rows]])
    store.check()
    store.close()
