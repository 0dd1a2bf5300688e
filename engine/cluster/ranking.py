"""The places of symbols in their order, over all workers: 0, 1, 2 ... by their UTF-8 bytes.

A sample sort (J. S. Huang and Y. C. Chow, COMPSAC 1983): each worker sorts what it has, samples say which range of strings is
whose, each sorts its range and counts, and where a range begins follows from the counts of those before it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dlog.dataclass import dataclass
from dlog.engine.cluster.exchange import Rows
from dlog.engine.cluster.worker_group import WorkerGroup
from dlog.engine.values.symbols import SymbolTable

SAMPLES = 64
"""Strings of each worker, for each worker, by which ranges are cut."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """`relation`, of a symbol and a number, gets the symbols in some columns of inputs, `of`, each with its place."""

    relation: str
    of: tuple[tuple[str, int], ...]


def ranked(worker_group: WorkerGroup, symbols: SymbolTable, ids: np.ndarray) -> Rows:
    """This worker's range of all the symbols that any worker has in `ids`, with their places."""
    texts = _sorted(symbols.to_arrow(np.unique(ids)).cast(pa.large_string()))
    bounds = _bounds(
        [text for sample in worker_group.share(_sample(texts, worker_group.size)) for text in sample], worker_group.size
    )
    cuts = [0, *(_first_from(texts, bound) for bound in bounds), len(texts)]
    # A slice would take all that it was cut from along.
    parts = [pa.concat_arrays([texts[a:b]]) for a, b in pairwise(cuts)]
    mine = _sorted(pc.unique(pa.chunked_array(worker_group.swap(parts), pa.large_string())))
    first = sum(worker_group.share(len(mine))[: worker_group.rank])
    return Rows((symbols.intern_arrow(mine).astype(np.int32), np.arange(first, first + len(mine))), len(mine))


def _sorted(texts: pa.Array) -> pa.Array:
    return texts.take(pc.sort_indices(texts))


def _sample(texts: pa.Array, workers: int) -> list[str]:
    places = np.linspace(0, len(texts) - 1, min(len(texts), SAMPLES * workers)).astype(np.int64)
    found: list[str] = texts.take(pa.array(places)).to_pylist()
    return found


def _bounds(samples: Sequence[str], workers: int) -> list[str]:
    """The first string of each range but the first."""
    ordered = sorted(samples)
    return [ordered[len(ordered) * w // workers] for w in range(1, workers)] if ordered else [""] * (workers - 1)


def _first_from(texts: pa.Array, bound: str) -> int:
    """The place of the first of sorted strings that is not less."""
    return bisect_left(range(len(texts)), bound, key=lambda place: texts[place].as_py())
