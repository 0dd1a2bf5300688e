"""An image of a dataflow: everything that it keeps between two commits, as arrays, so that another process goes on from there
without evaluating anything.

An image is put into a dataflow that has just been built and has no rows. That has to be the same one: planned from the same
figures, which the image has with it, for the same program by the same version of dlog. Where anything differs the image is of
no use (`IncompatibleImage`), and the program is evaluated. Addresses are never part of an image; what is not listed in `held`
begins anew.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.kernels import layout as L
from dlog.engine.kernels.core.versions import ENGINE, kernel_files
from dlog.engine.kernels.static import storage
from dlog.engine.plan.explain import explain
from dlog.engine.plan.statistics import Statistics
from dlog.engine.rounds_engine import Image, ImageArray, IncompatibleImage
from dlog.engine.runtime.incremental.dataflow import Dataflow
from dlog.engine.runtime.incremental.plan_changes.planner_statistics import ReplayedStatistics
from dlog.engine.runtime.incremental.stratum_builder import EXTERNAL_SUFFIX
from dlog.engine.runtime.storage import memory_map
from dlog.engine.runtime.storage.collection import Collection
from dlog.engine.runtime.storage.index import Index
from dlog.engine.runtime.storage.memory_map import give_back
from dlog.engine.runtime.storage.native import view
from dlog.engine.runtime.storage.reduction import Reduction

STRIPE = 1 << 15
"""Rows of a table that are written together."""
FORMAT = 1
"""Of images: what `head` has, and in which order arrays come."""


@dataclass(frozen=True)
class _Holder:
    """Something with arrays, under a name that is its own in a dataflow."""

    name: str
    cells: tuple[memory_map.Cells, ...]
    owner: Collection | Index | Reduction

    def arrays(self) -> Iterator[memory_map.Array]:
        match self.owner:
            case Collection():
                return memory_map.collection_arrays(self.owner)
            case Index():
                return memory_map.index_arrays(self.owner)
            case Reduction():
                return memory_map.reduction_arrays(self.owner)


def take(flow: Dataflow, round: int) -> Image:
    """The image of a dataflow between two commits, `round` being the last one. Its arrays are views of the kernels' memory:
    they hold until something is committed."""
    told: dict[str, Any] = {}
    arrays: list[ImageArray] = []
    for holder in _holders(flow):
        sizes = []
        for array in holder.arrays():
            address = array.struct[array.field]
            sizes.append(array.used if address else -1)
            if address and array.used:
                arrays.append(_table(array).T)
        told[holder.name] = [[struct[field] for struct, fields in holder.cells for field in fields], sizes]
    head = {
        "version": version(),
        "plan": _plan(flow),
        "figures": {str(n): recorded.entries() for n, recorded in flow.recorded_statistics.items()},
        "given": [name.removesuffix(EXTERNAL_SUFFIX) for name in flow.collections if name.endswith(EXTERNAL_SUFFIX)],
        "ways": {collection.name: collection.ways for collection in flow.stamped()},
        "holders": told,
    }
    return Image(round, head, arrays)


def bytes_of(flow: Dataflow) -> int:
    """The bytes of the image that `take` would make."""
    return sum(a.used for holder in _holders(flow) for a in holder.arrays() if a.struct[a.field])


def statistics_of(image: Image, number: int) -> Statistics:
    """The statistics with which a stratum was planned. Raises IncompatibleImage where the planner asks for more."""
    try:
        return ReplayedStatistics(image.head["figures"][str(number)])
    except KeyError:
        raise IncompatibleImage("the program has another stratum") from None


def put(flow: Dataflow, image: Image) -> None:
    """Gives a dataflow without rows everything that an image has. Raises IncompatibleImage, or DlogError where memory does not
    suffice; the dataflow is of no use then, but to be freed."""
    check_version(image)
    if image.head["plan"] != _plan(flow):
        raise IncompatibleImage("the program is planned in another way")
    for collection in flow.stamped():
        if not collection.take_ways(image.head["ways"][collection.name]):
            raise IncompatibleImage(f"{collection.name} is not kept in this way")
    told = image.head["holders"]
    arrays = iter(image.arrays)
    wanted = {holder.name: holder for holder in _holders(flow)}
    for name, (words, sizes) in told.items():
        holder = wanted.pop(name, None)
        if holder is None or len(words) != sum(len(fields) for _, fields in holder.cells):
            raise IncompatibleImage(f"{name} is not kept in this way")
        _fill(flow, holder, words, sizes, arrays)
    if wanted:
        raise IncompatibleImage(f"{next(iter(wanted))} is not in it")
    flow.work[L.work.first] = 0
    flow.started = True


def check_version(image: Image) -> None:
    """Raises IncompatibleImage where the image is of another dlog."""
    if image.head["version"] != version():
        raise IncompatibleImage("it is of another version of dlog")


def _table(array: memory_map.Array) -> np.ndarray:
    """An array as rows of its columns."""
    address = array.struct[array.field]
    if not array.columns:
        return view(address, array.used, np.uint8).reshape(-1, 1)
    return view(address, array.used // 4, np.int32).reshape(-1, array.columns)


def _fill(
    flow: Dataflow, holder: _Holder, words: Sequence[int], sizes: Sequence[int], arrays: Iterator[ImageArray]
) -> None:
    control = flow.memory.control.address
    give_back(control, holder.arrays())
    values = iter(words)
    for struct, fields in holder.cells:
        for field in fields:
            struct[field] = next(values)
    for array, size in zip(list(holder.arrays()), sizes, strict=True):
        if size < 0:
            continue
        if size != array.used:
            raise IncompatibleImage(f"{holder.name} has an array of another size")
        address = int(storage.zeroed(control, array.size))
        flow.memory.check()
        array.struct[array.field] = address
        if size:
            table, columns = _table(array), next(arrays)
            if len(columns) != table.shape[1] or any(len(c) not in (1, len(table)) for c in columns):
                raise IncompatibleImage(f"{holder.name} has an array of another size")
            _write(table, columns)
    if isinstance(holder.owner, Collection):
        holder.owner.point_columns()


def _write(table: np.ndarray, columns: ImageArray) -> None:
    """Writes the columns of a table, some rows after the other: they share lines of the cache."""
    for first in range(0, len(table), STRIPE):
        part = table[first : first + STRIPE]
        for number, column in enumerate(columns):
            part[:, number] = column[first : first + STRIPE] if len(column) == len(table) else column


def _holders(flow: Dataflow) -> Iterator[_Holder]:
    """Everything with arrays, in the order of an image."""
    for collection in flow.stamped():
        yield _Holder(collection.name, tuple(memory_map.collection_cells(collection)), collection)
        for key in sorted(collection.indexes):
            index = collection.indexes[key]
            yield _Holder(f"{collection.name} by {key}", tuple(memory_map.index_cells(index)), index)
    for name, reduction in flow.reductions.items():
        yield _Holder(f"{name} reduced", tuple(memory_map.reduction_cells(reduction)), reduction)


def _plan(flow: Dataflow) -> str:
    """Stands for what is kept, and why; not for the layout of rules."""
    sha = hashlib.sha256()
    for scope in flow.scopes.values():
        numbered = replace(scope, rules=tuple(map(str, range(len(scope.rules)))))
        sha.update(explain(numbered, flow.program).encode())
    for collection in flow.stamped():
        kept = collection.name, [k.value for k in collection.kinds], collection.role.value, sorted(collection.indexes)
        sha.update(repr(kept).encode())
    return sha.hexdigest()


@cache
def version() -> str:
    """Stands for the form of images and all code that has a part in what is in them: an image is never read in another way."""
    sha = hashlib.sha256(f"{FORMAT} {sys.byteorder}".encode())
    others = (path for folder in ("ir", "runtime", "plan") for path in sorted((ENGINE / folder).rglob("*.py")))
    for path in (*kernel_files(), *others):
        sha.update(path.read_bytes())
    return sha.hexdigest()
